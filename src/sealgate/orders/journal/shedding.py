"""Which rows to delete first when the journal's file is too large."""

from collections import Counter
from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

_MOST_AT_ONCE = 100  # rows per transaction


class SettledKind(IntEnum):
    """The kinds of settled rows, the least valuable first; numbered as in the index `orders_settled`."""

    REPLIES = 0  # with a reply; only that is deleted: a key without its reply is still spent
    KEYLESS = 1  # without an Idempotency-Key, so no request can refer to it again
    KEYED = 2


class Shed(NamedTuple):
    """The oldest `most` rows of a bot and kind."""

    kind: SettledKind
    bot: str
    most: int


class Shedding:
    """One round of deletions. Rows are counted at its start; later counts are computed.

    `settled` is the number of settled rows of each bot, by kind, `doubts` the number in doubt.
    """

    def __init__(self, settled: Mapping[SettledKind, Counter[str]], doubts: Counter[str]) -> None:
        self._settled = {kind: Counter(settled.get(kind, {})) for kind in SettledKind}
        self._doubts = doubts

    def next(self) -> Shed | None:
        """Return the next rows to delete, and count them as deleted; None if nothing may be deleted."""
        # 1. The least valuable kind.
        kind = next((kind for kind, counts in self._settled.items() if +counts), None)
        if kind is None:
            return None
        counts = self._settled[kind]
        # 2. Of the bot with the most rows, so that no bot displaces the keys of one that has fewer. Its rows
        #    in    doubt count, but are never deleted: if there are no others, the file exceeds its bound.
        total = counts + self._doubts if kind is SettledKind.KEYED else counts
        bot = max(total, key=total.__getitem__)
        if not counts[bot]:
            return None
        # 3. At most a tenth, so that the largest bot does not fall far below the next.
        most = min(_MOST_AT_ONCE, counts[bot] // 10 + 1)
        counts[bot] -= most
        if kind is SettledKind.REPLIES:
            self._settled[SettledKind.KEYED][bot] += most
        return Shed(kind, bot, most)
