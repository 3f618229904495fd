"""The one thread that writes orders.

Whatever waits in its queue becomes one transaction (a group commit), so that many orders at once wait hardly
longer than one. Between transactions it looks after the file.

A disk that refuses: whoever waits for an intent learns it at once, endings are owed and written later. The
disk is tried again once a second and not for each order, so that a broken one costs no more than that.

A disk that hangs holds the thread, so those who wait see it by the clock: what one write has taken by then.
It counts as a disk that refuses until the write returns, and what comes meanwhile is not even queued.
"""

import asyncio
import contextlib
import math
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import structlog

from sealgate.machine.system import System
from sealgate.orders.doubts import JournalStatus
from sealgate.orders.journal.file import JournalMovedError
from sealgate.orders.journal.ledger import Keeping, Ledger
from sealgate.orders.journal.orders import Row, is_sent, is_unknown

HANGS_AFTER_S = 2.0  # in one write; no order waits for longer
_LOOK_S = 1.0
_MOST_AT_ONCE = 1000  # rows of one transaction
_MOST_OWED = 10_000  # endings; what goes beyond stays `sent`, and so is in doubt at the next start
_STOP_S = 10.0
HANGS = "the disk does not respond"
_FIX = "free space, or check journal.file; the gateway tries again every second"
_FIX_MOVED = (
    "put the same file back; or look up the latest orders at the exchange and restart the gateway, which then"
    " has no record of earlier orders and Idempotency-Keys"
)

log = structlog.get_logger("sealgate.journal")


class Ages:
    """Made at the start. `wall` is epoch seconds, `now` a clock that nobody sets.

    `newest` is when the newest row of the file was settled, by the same count; None where there is none.

    By the wall clock every Idempotency-Key would be forgotten once it is ahead, at a start or later, and an
    order could be sent twice. So the age of a row is the time for which gateways ran since: rows are written
    down with, and judged by, the time of the newest row at the start plus what has passed since. The wall
    clock is asked once in the life of a file, to begin with.
    """

    def __init__(self, wall: float, now: float, newest: float | None) -> None:
        self._started = (wall if newest is None else newest) - now

    def at(self, now: float) -> float:
        """Return the time to write down for what ends now, and to count the age of a row to."""
        return self._started + now


class Item(NamedTuple):
    """A row to write, and the future of whoever waits for it: its result is None, or the trouble in words."""

    row: Row
    waiting: asyncio.Future[str | None] | None = None


class Writer:
    """The thread and its queue. Made in a running loop, whose futures it answers."""

    def __init__(self, ledger: Ledger, keeping: Keeping, system: System, ages: Ages) -> None:
        self._ledger = ledger
        self._ages = ages
        self._keeping = keeping
        self._system = system
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._owed: list[Row] = []
        self._owed_doubts = 0
        self._trouble: str | None = None
        self._busy_since = math.inf  # when the write under way began
        self._is_hang_logged = False
        self._look_at = 0.0
        self._thread = threading.Thread(target=self._run, name="sealgate-journal", daemon=True)
        self._publish()

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def put(self, item: Item) -> bool:
        """Add to what is written next, and say whether it was; rows of one order stay in their order.

        Behind a disk that hangs there is a bound; what goes beyond counts as endings do that are owed.
        """
        if self._queue.qsize() >= _MOST_OWED:
            return False
        self._queue.put(item)
        return True

    def stop(self) -> bool:
        """Write what is left and end; say whether it did. Blocks for as long as that takes, within reason."""
        self._queue.put(None)
        self._thread.join(_STOP_S)
        if self._thread.is_alive():
            log.error("journal_hangs", cause=HANGS, fix="check the disk")
        return not self._thread.is_alive()

    @property
    def is_hanging(self) -> bool:
        """Whether the disk does not answer."""
        return self._system.now() - self._busy_since >= HANGS_AFTER_S

    def log_hang(self) -> None:
        """Say in the log that the disk does not answer, if it does not; once until it does."""
        if self.is_hanging and not self._is_hang_logged:
            self._is_hang_logged = True
            self._log_failure(HANGS, "check the disk")

    @property
    def status(self) -> JournalStatus:
        """The journal as of the latest transaction, or as a hang left it; from any thread."""
        if self.is_hanging:
            return replace(self._status, trouble=HANGS, is_refusing=self._keeping.must_be_written)
        return self._status

    def _run(self) -> None:
        is_running = True
        while is_running:
            items = self._next_items()
            with self._timed():
                self._write([item for item in items if item is not None])
            is_running = None not in items
            if self._system.now() >= self._look_at or not is_running:
                with self._timed():
                    self._attempt(self._look_after)
                self._look_at = self._system.now() + _LOOK_S
        if self._owed:
            log.error("journal_incomplete", orders=len(self._owed), fix="they are in doubt at the next start")
        self._ledger.close()

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        self._busy_since = self._system.now()
        yield
        self._busy_since = math.inf
        if self._is_hang_logged:
            self._is_hang_logged = False
            if self._trouble is None:
                log.warning("journal_recovered", written_late=self._queue.qsize())

    def _next_items(self) -> list[Item | None]:
        """Wait until there is something to do; return all that is there, None at its end to stop."""
        items: list[Item | None] = []
        with contextlib.suppress(queue.Empty):
            items.append(self._queue.get(timeout=max(0.0, self._look_at - self._system.now())))
            while items[-1] is not None and len(items) < _MOST_AT_ONCE:
                items.append(self._queue.get_nowait())
        return items

    def _write(self, items: Sequence[Item]) -> None:
        if not items:
            return
        rows = [item.row for item in items]
        if self._trouble is None:
            self._attempt(lambda: self._ledger.write(rows))
        if self._trouble is not None:
            self._owe(rows)
        self._publish()
        self._answer([item.waiting for item in items if item.waiting is not None])

    def _owe(self, rows: Sequence[Row]) -> None:
        owed = [row for row in rows if not is_sent(row)][: _MOST_OWED - len(self._owed)]
        self._owed += owed
        self._owed_doubts += sum(map(is_unknown, owed))

    def _answer(self, waiting: Sequence[asyncio.Future[str | None]]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(_resolve, waiting, self._trouble)

    def _look_after(self) -> None:
        """Write what is owed and look after the file; what gets so far has shown that the disk is back."""
        self._ledger.write(self._owed)
        self._ledger.look_after(self._ages.at(self._system.now()))
        if self._trouble is not None:
            log.warning("journal_recovered", written_late=len(self._owed))
        self._trouble = None
        self._owed.clear()
        self._owed_doubts = 0
        self._publish()

    def _attempt(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - a thread that ends would hold every order for ever
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        cause = str(error) or type(error).__name__
        if self._trouble is None:
            self._log_failure(cause, _FIX_MOVED if isinstance(error, JournalMovedError) else _FIX)
        self._trouble = cause
        self._ledger.close()
        self._publish()

    def _log_failure(self, cause: str, fix: str) -> None:
        meanwhile = "refused" if self._keeping.must_be_written else "sent without a record"
        log.error("journal_failed", cause=cause, orders=meanwhile, fix=fix)

    def _publish(self) -> None:
        in_doubt = self._ledger.in_doubt + self._owed_doubts
        is_refusing = self._trouble is not None and self._keeping.must_be_written
        self._status = JournalStatus(in_doubt, self._ledger.doubts, self._trouble, is_refusing)


def _resolve(waiting: Sequence[asyncio.Future[str | None]], trouble: str | None) -> None:
    for one in waiting:  # whoever stopped waiting has left it as it was
        one.set_result(trouble)
