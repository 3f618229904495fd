"""The one thread that has the database, and what follows when the disk fails it.

`put` writes a row of an order, `run` does anything else. All rows that wait become one transaction (a group
commit), so that many orders at once wait hardly longer than one. What `run` was given follows them, one by
one. Once a second the thread looks after the file.

There are three cases of a bad disk:

1. It refuses to write an order. That is a trouble, until looking after the file succeeds again. Meanwhile the
   disk is not tried for each order: intents fail at once, and endings are owed, to be written later.
2. It hangs. Those who wait see by the clock that the work under way has taken too long, and count it as a
   trouble until the work is done; what comes meanwhile is not even queued.
3. It refuses what `run` was given. That is told to the caller alone.

A file that was moved away or replaced counts as a disk that refuses, until the same file is back.
"""

import asyncio
import contextlib
import math
import queue
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import structlog

from sealgate.machine.system import System
from sealgate.orders.doubts import Doubt, JournalStatus
from sealgate.orders.journal import orders
from sealgate.orders.journal.file import Identity, JournalError, as_journal_error, check_sound, connect
from sealgate.orders.journal.rows import Row, exchange_of, is_sent, is_unknown
from sealgate.orders.journal.upkeep import checkpoint

HANGS_AFTER_S = 2.0  # in one piece of work; no order waits for longer
SHOWN = 100  # orders in doubt at hand
_LOOK_S = 1.0
_MOST_AT_ONCE = 1000  # rows of one transaction
_MOST_OWED = 10_000  # endings; those beyond it stay `sent`, and so are in doubt at the next start
_STOP_S = 10.0
HANGS = "the disk does not respond"
_FIX = "free space, or check journal.file; the gateway tries again every second"
_FIX_HANG = "check the disk"

log = structlog.get_logger("sealgate.journal")
T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]


class _Write(NamedTuple):
    """A row, and the future of the request that waits for it: its result is None, or the trouble in words."""

    row: Row
    written: asyncio.Future[str | None] | None


class _Job(NamedTuple):
    work: Work[Any]
    done: Future[Any]


class DatabaseThread:
    """The thread, its queue and its connection. Made in a running loop, whose futures it answers.

    `database` is open and handed over. `look_after` is done once a second. Raises JournalError where the file
    is gone already.
    """

    def __init__(
        self,
        file: Path,
        database: sqlite3.Connection,
        look_after: Work[None],
        system: System,
        *,
        must_be_written: bool,
    ) -> None:
        self._file = file
        self._identity = Identity(file)
        self._database: sqlite3.Connection | None = database
        self._look_after = look_after
        self._system = system
        self._must_be_written = must_be_written
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[_Write | _Job | None] = queue.SimpleQueue()
        self._owed: list[Row] = []
        self._trouble: str | None = None
        self._busy_since = math.inf  # when the work under way began
        self._is_hang_logged = False
        self._look_at = 0.0
        self._doubts: tuple[Doubt, ...] = ()
        self._in_doubt = Counter[str]()
        self._read_doubts(database)
        self._publish()
        self._thread = threading.Thread(target=self._run, name="sealgate-journal", daemon=True)
        self._thread.start()

    # What other threads call.

    def put(self, row: Row, written: asyncio.Future[str | None] | None = None) -> bool:
        """Add a row to what is written next, and say whether it was; rows of one order stay in their order.

        Behind a disk that hangs there is a bound; what goes beyond it is lost as endings are that are owed.
        """
        if self._queue.qsize() >= _MOST_OWED:
            return False
        self._queue.put(_Write(row, written))
        return True

    def run(self, work: Work[T]) -> Future[T]:
        """Do work on the database, after what waits; the future raises JournalError where that fails.

        Work that writes is a transaction of its own. While there is a trouble, nothing is tried.
        """
        done: Future[T] = Future()
        if (trouble := self.status.trouble) is not None:
            done.set_exception(JournalError(self._file, trouble, _FIX))
        else:
            self._queue.put(_Job(work, done))
        return done

    def stop(self) -> bool:
        """Write what is left and end; say whether it did. Blocks for as long as that takes, within reason."""
        self._queue.put(None)
        self._thread.join(_STOP_S)
        if self._thread.is_alive():
            log.error("journal_hangs", cause=HANGS, fix=_FIX_HANG)
        return not self._thread.is_alive()

    @property
    def is_hanging(self) -> bool:
        """Whether the disk does not answer."""
        return self._system.now() - self._busy_since >= HANGS_AFTER_S

    def log_hang(self) -> None:
        """Log that the disk does not answer, if it does not; once until it does."""
        if self.is_hanging and not self._is_hang_logged:
            self._is_hang_logged = True
            self._log_failure(HANGS, _FIX_HANG)

    @property
    def status(self) -> JournalStatus:
        """The journal as of the latest transaction, or as a hang left it."""
        if self.is_hanging:
            return replace(self._status, trouble=HANGS, is_refusing=self._must_be_written)
        return self._status

    # What the thread does.

    def _run(self) -> None:
        is_running = True
        while is_running:
            items = self._next_items()
            is_running = None not in items
            with self._timed():
                self._write([item for item in items if isinstance(item, _Write)])
            for job in [
                item for item in items if isinstance(item, _Job)
            ]:  # no name stays with an order's row
                with self._timed():
                    self._do(job)
            if self._system.now() >= self._look_at or not is_running:
                with self._timed():
                    self._look()
                self._look_at = self._system.now() + _LOOK_S
        if self._owed:
            log.error("journal_incomplete", orders=len(self._owed), fix="they are in doubt at the next start")
        self._close()

    def _next_items(self) -> list[_Write | _Job | None]:
        """Wait until there is something to do; return all that is there, None at its end to stop."""
        items: list[_Write | _Job | None] = []
        with contextlib.suppress(queue.Empty):
            items.append(self._queue.get(timeout=max(0.0, self._look_at - self._system.now())))
            while items[-1] is not None and len(items) < _MOST_AT_ONCE:
                items.append(self._queue.get_nowait())
        return items

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        self._busy_since = self._system.now()
        yield
        self._busy_since = math.inf
        if self._is_hang_logged:
            self._is_hang_logged = False
            if self._trouble is None:
                log.warning("journal_recovered", written_late=self._queue.qsize())

    def _write(self, writes: Sequence[_Write]) -> None:
        if not writes:
            return
        rows = [write.row for write in writes]
        if self._trouble is None:
            try:
                database = self._connection()
                orders.write(database, rows)
                if any(map(is_unknown, rows)):
                    self._read_doubts(database)
            except Exception as error:  # noqa: BLE001 - a thread that ends would hold every order for ever
                self._fail(error)
        if self._trouble is not None:
            self._owed += [row for row in rows if not is_sent(row)][: _MOST_OWED - len(self._owed)]
        self._publish()
        waiting = [write.written for write in writes if write.written is not None]
        with contextlib.suppress(RuntimeError):  # the loop is closed: no request waits any more
            self._loop.call_soon_threadsafe(_resolve, waiting, self._trouble)

    def _do(self, job: _Job) -> None:
        if self._trouble is not None:
            job.done.set_exception(JournalError(self._file, self._trouble, _FIX))
            return
        try:
            with as_journal_error(self._file):
                result = job.work(self._connection())
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the caller's
            job.done.set_exception(error)
        else:
            job.done.set_result(result)

    def _look(self) -> None:
        """Write what is owed and look after the file; where both succeed, the disk is well again."""
        try:
            database = self._connection()
            orders.write(database, self._owed)
            self._look_after(database)
            self._read_doubts(database)  # `sealgate orders --settle` is another process
        except Exception as error:  # noqa: BLE001 - as above
            self._fail(error)
            return
        if self._trouble is not None:
            log.warning("journal_recovered", written_late=len(self._owed))
        self._trouble = None
        self._owed.clear()
        self._publish()

    def _connection(self) -> sqlite3.Connection:
        """Return the connection, opened anew after a failure, which shows whether the file can be used."""
        self._identity.check()  # each time: SQLite would go on writing to a file that nobody finds
        if self._database is None:
            self._database = connect(self._file)
            check_sound(self._database, self._file, "quick_check")
        return self._database

    def _close(self) -> None:
        if self._database is not None:
            with contextlib.suppress(sqlite3.Error):
                # Closing does not checkpoint a file that was moved away: the latest orders would stay behind.
                checkpoint(self._database)
            with contextlib.suppress(sqlite3.Error):
                self._database.close()
        self._database = None

    def _fail(self, error: Exception) -> None:
        cause, fix = str(error) or type(error).__name__, _FIX
        if isinstance(error, JournalError):
            cause, fix = error.cause, error.fix
        if self._trouble is None:
            self._log_failure(cause, fix)
        self._trouble = cause
        self._close()
        self._publish()

    def _log_failure(self, cause: str, fix: str) -> None:
        meanwhile = "refused" if self._must_be_written else "sent without a record"
        log.error("journal_failed", cause=cause, orders=meanwhile, fix=fix)

    def _read_doubts(self, database: sqlite3.Connection) -> None:
        self._in_doubt = orders.count_in_doubt(database)
        self._doubts = orders.in_doubt(database, SHOWN)

    def _publish(self) -> None:
        in_doubt = self._in_doubt + Counter(exchange_of(row) for row in self._owed if is_unknown(row))
        is_refusing = self._trouble is not None and self._must_be_written
        self._status = JournalStatus(
            in_doubt.total(), self._doubts, self._trouble, is_refusing, by_exchange=dict(in_doubt)
        )


def _resolve(waiting: Sequence[asyncio.Future[str | None]], trouble: str | None) -> None:
    for written in waiting:  # nobody cancels these: a request that stops waiting leaves them
        written.set_result(trouble)
