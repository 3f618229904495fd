"""Which reads of prices the gateway sends itself, so that a policy can judge orders though no bot reads any.

There are two kinds, as the venue's file says (`[reads] prices`): one that has the prices of all symbols, and
one for a symbol (`{symbol}`), for those whose price no other read brought. Each is sent once a minute at
most, and only while a price that orders need, or may need, did not come within the last minute.
"""

import re
from collections.abc import Iterable, Sequence

from sealgate.orders.prices import FRESH_S, Prices

# Symbols are put into a target that is sent: nothing that could mean something else there.
_SYMBOL = re.compile(r"[A-Za-z0-9._\-]{1,40}", re.ASCII)
_MOST_SYMBOLS = 50


class PriceReads:
    """What to ask next. `templates` are the file's, in its order; `symbols` those that the policies name."""

    def __init__(self, templates: Sequence[str], symbols: Iterable[str]) -> None:
        self._of_all = [template for template in templates if "{symbol}" not in template]
        self._of_one = [template for template in templates if "{symbol}" in template]
        self._symbols = sorted(symbols)
        self._asked: dict[str, float] = {}

    def due(self, prices: Prices, now: float) -> list[str]:
        """Return the targets to be asked now; each counts as asked."""
        self._asked = {target: at for target, at in self._asked.items() if at > now - FRESH_S}
        recent, half = list(reversed(prices.wanted)), _MOST_SYMBOLS // 2
        # A bot that asks for ever new symbols leaves half of the places to those that policies name.
        order = (*recent[:half], *self._symbols, *recent[half:])
        watched = list(dict.fromkeys(order))[:_MOST_SYMBOLS]
        stale = [symbol for symbol in watched if not prices.is_fresh(symbol, now)]
        targets: list[str] = []
        if stale or not watched:
            targets = [target for target in self._of_all if target not in self._asked]
        if not targets:  # first those of all symbols: after them few are left
            for symbol in filter(_SYMBOL.fullmatch, stale):
                own = (template.replace("{symbol}", symbol) for template in self._of_one)
                targets += [target for target in own if target not in self._asked][:1]
        self._asked |= dict.fromkeys(targets, now)
        return targets
