"""The orders as the pipeline uses them: `intent` before the first byte, `ended` when all is over."""

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import structlog

from sealgate.machine.system import System
from sealgate.orders.doubts import Doubt, JournalStatus
from sealgate.orders.idempotency import Kept
from sealgate.orders.journal import orders
from sealgate.orders.journal.file import JournalError, Lock, as_journal_error, check_made, connect, is_in_use
from sealgate.orders.journal.ledger import Keeping, Ledger
from sealgate.orders.journal.orders import Order
from sealgate.orders.journal.writer import HANGS_AFTER_S, Ages, Item, Writer
from sealgate.orders.outcome import Conclusion, Ending

_PATIENCE_S = 0.1  # with a disk that hangs, where the order is sent in any case
MOST_REPLAYS = 10_000  # of one bot, that are kept, and read at the start

log = structlog.get_logger("sealgate.journal")


class OrderJournal:
    """The journal of orders of one running gateway. Made in a running loop, before the first request.

    What an earlier run had under way is in doubt from now on, and logged. Raises JournalError;
    blocks while the file is checked.
    """

    def __init__(self, file: Path, keeping: Keeping, system: System) -> None:
        self._keeping = keeping
        self._system = system
        self._loop = asyncio.get_running_loop()
        self._begun: set[str] = set()  # orders that have not ended, and that the file has, or may have
        self._lock = Lock(file)
        try:
            ledger = Ledger(file, keeping)
            self._kept = self._recover(file, ledger)
            self._writer = Writer(ledger, keeping, system, self._ages)
        except BaseException:
            self._lock.release()
            raise
        self._writer.start()

    def recall(self) -> list[Kept]:
        """Return the file's Idempotency-Keys for `IdempotencyKeys.restore`; once, as they may be many."""
        kept, self._kept = self._kept, []
        return kept

    def recall_passed(self) -> list[tuple[str, int, int]]:
        """Return what was sent under policies, as in `PolicyMemory.undated`."""
        return self._passed

    async def intent(self, order: Order, *, is_cancel: bool = False) -> bool:
        """Write an order that is about to be sent; say whether it may be.

        After True it is in the file, or need not be: a cancel is worth more than its record, and
        `journal.on_failure` may say the same of every order. A disk that hangs is waited for up to a bound,
        then no more until it answers; for room in a full queue nobody waits. Whoever called this calls
        `ended` in any case, also where the order was not sent after all or the call was cancelled.
        """
        may_go_without = is_cancel or not self._keeping.must_be_written
        written: asyncio.Future[str | None] = self._loop.create_future()
        if self._writer.status.trouble is not None:
            self._writer.log_hang()
            is_put = False
        else:
            is_put = self._writer.put(Item(orders.sent_row(order), written))
        if not is_put:
            return may_go_without
        self._begun.add(order.id)
        await asyncio.wait((written,), timeout=_PATIENCE_S if may_go_without else HANGS_AFTER_S)
        if may_go_without:
            return True
        if not written.done():
            # The write began after the wait did, and after a loop that was held the disk had no time yet.
            await asyncio.wait((written,), timeout=_PATIENCE_S)
        if not written.done():
            self._writer.log_hang()
            return False
        return written.result() is None

    def ended(self, order: Order, ending: Ending) -> None:
        """Write how an order ended, as it was last sent; nobody waits for it.

        An order that was not sent, and of which the file has nothing, stays out of it: a bot that tries on
        while the disk is full must not leave more to write than the space that is freed.
        """
        if ending.conclusion is Conclusion.NOT_SENT and order.id not in self._begun:
            return
        self._begun.discard(order.id)
        settled_ms = int(self._ages.at(self._system.now()) * 1000)
        self._writer.put(Item(orders.settled_row(order, ending, settled_ms)))

    @property
    def status(self) -> JournalStatus:
        """The journal at this moment."""
        return self._writer.status

    async def close(self) -> None:
        """Write what is left, and let another gateway have the file.

        Where the disk hangs, what is left may be written yet: then the lock ends with the process only.
        """
        if await asyncio.to_thread(self._writer.stop):
            self._lock.release()

    def _recover(self, file: Path, ledger: Ledger) -> list[Kept]:
        with as_journal_error(file), closing(connect(file)) as database:
            check_made(database, file)
            self._ages = Ages(self._system.wall(), self._system.now(), orders.newest_s(database))
            now_ms = int(self._ages.at(self._system.now()) * 1000)
            orders.recover(database, now_ms)
            ledger.read_doubts(database)
            self._passed = list(orders.passed(database))
            _log_doubts(ledger.in_doubt, ledger.doubts)
            since_ms = now_ms - int(self._keeping.longest_s * 1000)
            return list(orders.kept_replays(database, since_ms, MOST_REPLAYS, now_ms))


def _log_doubts(count: int, doubts: tuple[Doubt, ...]) -> None:
    if count:
        fix = "look them up at the exchange, then `sealgate orders --settle REQUEST_ID`"
        log.warning("orders_in_doubt", count=count, fix=fix)
    for doubt in doubts:
        told = {"bot": doubt.bot, "key": doubt.key, "route": doubt.route, "fence_ms": doubt.fence_ms}
        log.warning("order_in_doubt", request_id=doubt.request_id, id=doubt.id, **told)


class OrdersInDoubt:
    """The orders in doubt, oldest first, and the way to take them off."""

    def __init__(self, database: sqlite3.Connection, *, is_in_use: bool) -> None:
        self._database = database
        self.doubts = orders.in_doubt(database, orders.ALL, is_left_alone=not is_in_use)

    def settle(self, chosen: Sequence[Doubt], wall_ms: int) -> None:
        """Take orders off at that time, which a running gateway notices within a second."""
        orders.settle(self._database, [doubt.id for doubt in chosen], wall_ms)


@contextmanager
def orders_in_doubt(file: Path) -> Iterator[OrdersInDoubt]:
    """Open a journal that a gateway has made. Raises JournalError: a damaged one may hide orders in doubt.

    While a gateway runs, what it has under way is not in doubt; after its end it is. WAL lets both have the
    file.
    """
    if not file.is_file():
        raise JournalError(file, "there is no such file yet", "start the gateway once, or correct the path")
    with as_journal_error(file), closing(connect(file)) as database:
        check_made(database, file)
        yield OrdersInDoubt(database, is_in_use=is_in_use(file))
