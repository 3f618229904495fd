"""The journal of a gateway: call `intent` before an order's first byte, `ended` at its end."""

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

import structlog

from sealgate.machine.system import System
from sealgate.orders.doubts import Doubt, JournalStatus
from sealgate.orders.idempotency import Kept
from sealgate.orders.journal import counts, orders
from sealgate.orders.journal.ages import Ages
from sealgate.orders.journal.file import JournalError, as_journal_error, check_sound, connect, prepare
from sealgate.orders.journal.lock import Lock, user_of
from sealgate.orders.journal.rows import Order, sent_row, settled_row
from sealgate.orders.journal.thread import HANGS, HANGS_AFTER_S, DatabaseThread, Work
from sealgate.orders.journal.upkeep import Keeping, look_after
from sealgate.orders.outcome import Conclusion, Ending
from sealgate.orders.policy import Counted

_PATIENCE_S = 0.1  # with a disk that hangs, if the order is sent in any case
MOST_REPLAYS = 10_000  # per bot, kept and read at the start

log = structlog.get_logger("sealgate.journal")
T = TypeVar("T")


class Journal:
    """The journal of one running gateway. Create it in a running loop, before the first request.

    Orders that an earlier run had in flight are in doubt from now on, and logged. Raises JournalError; blocks
    while the file is checked.
    """

    def __init__(self, file: Path, keeping: Keeping, system: System) -> None:
        self._file = file
        self._keeping = keeping
        self._system = system
        self._loop = asyncio.get_running_loop()
        self._begun: set[str] = set()  # orders that have not ended, and that are or may be in the file
        self._lock = Lock(file)
        try:
            prepare(file)
            with as_journal_error(file):
                self._thread = self._start(connect(file))
        except BaseException:
            self._lock.release()
            raise
        _log_doubts(self.status)

    def _start(self, database: sqlite3.Connection) -> DatabaseThread:
        """Read the records of earlier runs, and pass the database to its thread."""
        try:
            started = self._system.now()
            self._ages = Ages(self._system.wall(), started, orders.newest_s(database))
            now_ms = int(self._ages.at(started) * 1000)
            orders.recover(database, now_ms)
            self._passed = list(counts.passed(database))
            since_ms = now_ms - int(self._keeping.longest_s * 1000)
            self._kept = list(orders.kept_replays(database, since_ms, MOST_REPLAYS, now_ms))
            must_be_written = self._keeping.must_be_written
            return DatabaseThread(
                self._file, database, self._look_after, self._system, must_be_written=must_be_written
            )
        except BaseException:
            database.close()
            raise

    def _look_after(self, database: sqlite3.Connection) -> None:
        look_after(database, self._keeping, self._ages.at(self._system.now()))

    def recall(self) -> list[Kept]:
        """Return the file's Idempotency-Keys for `IdempotencyKeys.restore`, once, as they may be many."""
        kept, self._kept = self._kept, []
        return kept

    def recall_passed(self) -> list[Counted]:
        """Return the orders sent under policies, the oldest first."""
        return self._passed

    async def intent(self, order: Order, *, is_cancel: bool = False) -> bool:
        """Record an order before it is sent; return whether it may be sent.

        The caller calls `ended` in any case, even if the order was not sent after all, or the call was
        cancelled. There are three cases:

        1. The disk is faulty, or the queue is full. Nothing is written, and the call does not wait. A cancel
           is sent even so: it matters more than its record. `journal.on_failure` may allow it for any order.
        2. The order may be sent without a record: it waits for the record only for a moment.
        3. It must be recorded: it waits until it is in the file, or the disk seems to hang.
        """
        may_go_without = is_cancel or not self._keeping.must_be_written
        written: asyncio.Future[str | None] = self._loop.create_future()
        if self._thread.status.trouble is not None:
            self._thread.log_hang()
            return may_go_without
        if not self._thread.put(sent_row(order), written):
            return may_go_without
        self._begun.add(order.id)
        if may_go_without:
            await asyncio.wait((written,), timeout=_PATIENCE_S)
            return True
        await asyncio.wait((written,), timeout=HANGS_AFTER_S)
        if not written.done():
            # The write began after the wait; after a stall of the loop, the disk may have had no time yet.
            await asyncio.wait((written,), timeout=_PATIENCE_S)
        if not written.done():
            self._thread.log_hang()
            return False
        return written.result() is None

    def ended(self, order: Order, ending: Ending) -> None:
        """Record how an order ended, as it was last sent, without waiting for the write.

        An order that was not sent and is not in the file is not recorded: a bot that keeps trying while the
        disk is full must not leave more to write than the space that will be freed.
        """
        if ending.conclusion is Conclusion.NOT_SENT and order.id not in self._begun:
            return
        self._begun.discard(order.id)
        settled_ms = int(self._ages.at(self._system.now()) * 1000)
        self._thread.put(settled_row(order, ending, settled_ms))

    async def run(self, work: Work[T]) -> T:
        """Do work on the database in its thread, as `DatabaseThread.run` does. Raises JournalError.

        If the disk hangs, the work may still be done later, in the order of the calls.
        """
        done = asyncio.wrap_future(self._thread.run(work))
        done.add_done_callback(asyncio.Future.exception)  # the caller may stop waiting
        await asyncio.wait((done,), timeout=HANGS_AFTER_S)
        if not done.done():
            raise JournalError(self._file, HANGS, "check the disk")
        return done.result()

    def run_now(self, work: Work[T]) -> T:
        """Do the same, but block: for the start, or for another thread. Raises JournalError."""
        return self._thread.run(work).result()

    @property
    def status(self) -> JournalStatus:
        """The present state of the journal."""
        return self._thread.status

    async def close(self) -> None:
        """Write the remaining records, and release the file for another gateway.

        If the disk hangs, the records may still be written later: the lock then lasts until the process ends.
        """
        if await asyncio.to_thread(self._thread.stop):
            self._lock.release()


def _log_doubts(status: JournalStatus) -> None:
    if status.in_doubt:
        fix = "look them up at the exchange, then `sealgate orders --settle REQUEST_ID`"
        log.warning("orders_in_doubt", count=status.in_doubt, fix=fix)
    for doubt in status.doubts:
        whose = {"bot": doubt.bot, "exchange": doubt.exchange, "key": doubt.key, "route": doubt.route}
        log.warning(
            "order_in_doubt", request_id=doubt.request_id, id=doubt.id, **whose, fence_ms=doubt.fence_ms
        )


class OrdersInDoubt:
    """The orders in doubt, oldest first, and the means to settle them."""

    def __init__(self, database: sqlite3.Connection, *, is_in_use: bool) -> None:
        self._database = database
        self.doubts = orders.in_doubt(database, orders.ALL, is_left_alone=not is_in_use)

    def settle(self, chosen: Sequence[Doubt], wall_ms: int) -> None:
        """Settle orders at that time; a running gateway notices within a second."""
        orders.settle(self._database, [doubt.id for doubt in chosen], wall_ms)


@contextmanager
def orders_in_doubt(file: Path) -> Iterator[OrdersInDoubt]:
    """Open an existing journal. Raises JournalError, also if it is damaged and may hide orders in doubt.

    Orders in flight are in doubt only if no gateway is running. Thanks to WAL, both can use the file.
    """
    if not file.is_file():
        raise JournalError(file, "there is no such file yet", "start the gateway once, or correct the path")
    with as_journal_error(file), closing(connect(file)) as database:
        check_sound(database, file)
        yield OrdersInDoubt(database, is_in_use=user_of(file) is not None)
