"""The reads of prices that the gateway sends itself, for policies, if no bot reads prices.

There are two kinds, stated in the venue's file (`[reads] prices`): reads of all symbols, and reads of one
symbol (`{symbol}`), for prices that no other read has. Each is sent at most once a minute, and only if a
price that orders need or may need is older than a minute.
"""

import re
from collections.abc import Iterable, Sequence

from sealgate.orders.prices import FRESH_S, Prices

# Symbols are put into a target: allow no characters with a special meaning there.
_SYMBOL = re.compile(r"[A-Za-z0-9._\-]{1,40}", re.ASCII)
_MOST_SYMBOLS = 50


class PriceReads:
    """Chooses the next reads. `templates` are the file's, in its order; `symbols` those named by policies."""

    def __init__(self, templates: Sequence[str], symbols: Iterable[str]) -> None:
        self._of_all = [template for template in templates if "{symbol}" not in template]
        self._of_one = [template for template in templates if "{symbol}" in template]
        self._symbols = sorted(symbols)
        self._asked: dict[str, float] = {}

    def due(self, prices: Prices, now: float) -> list[str]:
        """Return the targets to read now; each counts as read."""
        self._asked = {target: at for target, at in self._asked.items() if at > now - FRESH_S}
        recent, half = list(reversed(prices.wanted)), _MOST_SYMBOLS // 2
        # Symbols named by policies keep half of the places, even if a bot uses ever new symbols.
        order = (*recent[:half], *self._symbols, *recent[half:])
        watched = list(dict.fromkeys(order))[:_MOST_SYMBOLS]
        stale = [symbol for symbol in watched if not prices.is_fresh(symbol, now)]
        targets: list[str] = []
        if stale or not watched:
            targets = [target for target in self._of_all if target not in self._asked]
        if not targets:  # first the reads of all symbols: few single ones remain after them
            for symbol in filter(_SYMBOL.fullmatch, stale):
                own = (template.replace("{symbol}", symbol) for template in self._of_one)
                targets += [target for target in own if target not in self._asked][:1]
        self._asked |= dict.fromkeys(targets, now)
        return targets
