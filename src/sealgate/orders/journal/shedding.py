"""What goes first when the journal's file is too large."""

from collections import Counter
from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

_MOST_AT_ONCE = 100  # rows of one transaction


class SettledKind(IntEnum):
    """What a settled row is worth, least first; the numbers are those of the index `orders_settled`."""

    REPLIES = 0  # it has a reply, which alone goes: a key without its reply is still spent
    KEYLESS = 1  # it has no Idempotency-Key, so that nobody asks for it again
    KEYED = 2


class Shed(NamedTuple):
    """The oldest `most` rows of a kind that a bot has."""

    kind: SettledKind
    bot: str
    most: int


class Shedding:
    """One round. The rows are counted at its start, and kept count of from then on.

    `settled` is how many settled rows each bot has, by kind, `doubts` how many in doubt.
    """

    def __init__(self, settled: Mapping[SettledKind, Counter[str]], doubts: Counter[str]) -> None:
        self._settled = {kind: Counter(settled.get(kind, {})) for kind in SettledKind}
        self._doubts = doubts

    def next(self) -> Shed | None:
        """Return what goes next, None where nothing may go, and count it as gone."""
        # 1. The kind that is worth least.
        kind = next((kind for kind, counts in self._settled.items() if +counts), None)
        if kind is None:
            return None
        counts = self._settled[kind]
        # 2. Of the bot that has most, so that no bot makes another's keys forgotten while that one has less.
        #    Its rows in doubt count, but never go: where it has nothing else, the file exceeds its bound.
        total = counts + self._doubts if kind is SettledKind.KEYED else counts
        bot = max(total, key=total.__getitem__)
        if not counts[bot]:
            return None
        # 3. A tenth at the most, lest the bot that had most fall far below the next.
        most = min(_MOST_AT_ONCE, counts[bot] // 10 + 1)
        counts[bot] -= most
        if kind is SettledKind.REPLIES:
            self._settled[SettledKind.KEYED][bot] += most
        return Shed(kind, bot, most)
