"""What goes from a full file, and whose.

First replies: a key without its reply is still spent. Then settled orders without an Idempotency-Key, which
nobody asks for again. Then settled ones with a key, oldest first, of the bot that has most rows: so nothing
that one bot does makes another's keys forgotten while that one has less. Rows in doubt count for their bot
there, but never go; where the bot with most rows has nothing else, the file may exceed its bound.
"""

import sqlite3
from collections import Counter

from sealgate.gateway.journal import orders
from sealgate.gateway.journal.orders import Shelf

_AT_ONCE = 100  # rows of one transaction


class Shedding:
    """One round. The rows are counted once, at its start, and kept count of from then on."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._counts = {shelf: Counter[str]() for shelf in Shelf}
        for shelf, bot, count in orders.count_settled(database):
            self._counts[shelf][bot] = count
        self._doubts = Counter(orders.doubts_by_bot(database))

    def shed(self) -> bool:
        """Take the next rows or replies out of the file, in one transaction; say whether there were any."""
        for shelf, counts in self._counts.items():
            if not +counts:
                continue
            total = counts + self._doubts if shelf is Shelf.KEYED else counts
            bot = max(total, key=total.__getitem__)
            return self._take(shelf, bot)
        return False

    def _take(self, shelf: Shelf, bot: str) -> bool:
        counts = self._counts[shelf]
        if not counts[bot]:
            return False
        # A tenth at the most, lest the bot that had most fall far below the next.
        most = min(_AT_ONCE, counts[bot] // 10 + 1)
        if shelf is Shelf.REPLIES:
            orders.drop_replies(self._database, bot, most)
            self._counts[Shelf.KEYED][bot] += most
        else:
            orders.drop(self._database, shelf, bot, most)
        counts[bot] -= most
        return True
