"""The open file of orders, in the hands of one thread: writing, and looking after it.

Every method may raise sqlite3.Error, OSError, JournalError or JournalMovedError. `close` then; the next write
opens the file anew, which shows whether it can be used again.

A file that was moved away while the gateway runs is a failure until it is back: a new one would know no
order and no Idempotency-Key, so that the next start would let an order be sent twice.
"""

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sealgate.orders.doubts import Doubt
from sealgate.orders.journal import orders
from sealgate.orders.journal.file import Identity, check_sound, connect, prepare
from sealgate.orders.journal.orders import Row, SettledKind, is_unknown

_AT_ONCE = 100  # rows of one transaction
SHOWN = 100  # orders in doubt at hand
_PRUNED_AT_ONCE = 100  # rows of one transaction
_PRUNES = 40  # each time that the file is looked after, so that no order waits for long


class Shedding:
    """One round. The rows are counted once, at its start, and kept count of from then on.

    First go replies: a key without its reply is still spent. Then settled orders without an Idempotency-Key,
    which nobody asks for again. Then settled ones with a key, oldest first, of the bot that has most rows: so
    nothing that one bot does makes another's keys forgotten while that one has less. Rows in doubt count for
    their bot there, but never go; where the bot with most rows has nothing else, the file may exceed its
    bound.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._counts = {kind: Counter[str]() for kind in SettledKind}
        for kind, bot, count in orders.count_settled(database):
            self._counts[kind][bot] = count
        self._doubts = Counter(orders.doubts_by_bot(database))

    def shed(self) -> bool:
        """Take the next rows or replies out of the file, in one transaction; say whether there were any."""
        for kind, counts in self._counts.items():
            if not +counts:
                continue
            total = counts + self._doubts if kind is SettledKind.KEYED else counts
            bot = max(total, key=total.__getitem__)
            return self._take(kind, bot)
        return False

    def _take(self, kind: SettledKind, bot: str) -> bool:
        counts = self._counts[kind]
        if not counts[bot]:
            return False
        # A tenth at the most, lest the bot that had most fall far below the next.
        most = min(_AT_ONCE, counts[bot] // 10 + 1)
        if kind is SettledKind.REPLIES:
            orders.drop_replies(self._database, bot, most)
            self._counts[SettledKind.KEYED][bot] += most
        else:
            orders.drop(self._database, kind, bot, most)
        counts[bot] -= most
        return True


@dataclass(frozen=True, slots=True)
class Keeping:
    """How long settled orders are kept, how large the file may grow with them, and what a bad disk costs.

    `must_be_written` refuses orders that cannot be journalled.
    """

    longest_s: float
    most_bytes: int
    must_be_written: bool = True


class Ledger:
    """Makes the file if it is missing. Raises JournalError.

    `in_doubt` is the number of orders in doubt as last read, `doubts` the oldest of them.
    """

    in_doubt: int = 0
    doubts: tuple[Doubt, ...] = ()

    def __init__(self, file: Path, keeping: Keeping) -> None:
        prepare(file)
        self._file = file
        self._identity = Identity(file)
        self._keeping = keeping
        self._open: sqlite3.Connection | None = None

    def write(self, rows: Sequence[Row]) -> None:
        """Write rows; when this returns, they outlive the process."""
        database = self._database()
        orders.write(database, rows)
        if any(is_unknown(row) for row in rows):
            self.read_doubts(database)

    def look_after(self, wall: float) -> None:
        """Sync what was written, prune, and see what others did with the file.

        `wall`, epoch seconds, is the time to which ages are counted (`Ages`).
        """
        database = self._database()
        # The automatic one would come in the middle of some order's transaction.
        _checkpoint(database)
        self._prune(database, wall)
        self.read_doubts(database)  # `sealgate orders --settle` is another process

    def read_doubts(self, database: sqlite3.Connection) -> None:
        """Take in which orders are in doubt."""
        self.in_doubt = orders.count_in_doubt(database)
        self.doubts = orders.in_doubt(database, SHOWN)

    def close(self) -> None:
        """Close the file, if it is open."""
        if self._open is not None:
            with contextlib.suppress(sqlite3.Error):
                # For one that was moved away, closing it does not: the latest orders would stay behind.
                _checkpoint(self._open)
            with contextlib.suppress(sqlite3.Error):
                self._open.close()
        self._open = None

    def _database(self) -> sqlite3.Connection:
        self._identity.check()  # each time: SQLite would go on writing to what nobody finds
        if self._open is None:
            self._open = connect(self._file)
            check_sound(self._open, self._file)
            self._open.execute("PRAGMA wal_autocheckpoint = 0")
        return self._open

    def _prune(self, database: sqlite3.Connection, wall: float) -> None:
        """Delete what is too old, then shed what is too much; a bounded number at a time."""
        too_old_ms = int((wall - self._keeping.longest_s) * 1000)
        shedding: Shedding | None = None
        for _ in range(_PRUNES):
            if orders.prune(database, too_old_ms, _PRUNED_AT_ONCE):
                continue
            if orders.used_bytes(database) <= self._keeping.most_bytes:
                return
            shedding = shedding or Shedding(database)
            if not shedding.shed():
                return


def _checkpoint(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
