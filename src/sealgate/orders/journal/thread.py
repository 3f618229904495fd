"""The one thread that uses the database, and its behaviour when the disk fails.

`put` writes an order's row, `run` does any other work. All waiting rows become one transaction (a group
commit), so that many simultaneous orders wait hardly longer than one. Work given to `run` follows, one by
one. Once a second the thread does the file's upkeep.

There are three cases of a faulty disk:

1. It fails to write an order. That is a trouble until the upkeep succeeds again. Meanwhile the disk is not
   tried for each order: intents fail immediately, and endings are owed, to be written later.
2. It hangs. Waiting requests see by the clock that the present work has taken too long, and treat it as a
   trouble until the work is done; new rows are not even queued.
3. It fails at work given to `run`. Only the caller is told.

A file that was moved away or replaced counts as a disk that fails, until the same file is back.
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

HANGS_AFTER_S = 2.0  # in one piece of work; no order waits longer
SHOWN = 100  # orders in doubt in memory
_LOOK_S = 1.0
_MOST_AT_ONCE = 1000  # rows of one transaction
_MOST_OWED = 10_000  # endings; rows beyond it stay `sent`, and so are in doubt at the next start
_STOP_S = 10.0
HANGS = "the disk does not respond"
_FIX = "free space, or check journal.file; the gateway tries again every second"
_FIX_HANG = "check the disk"

log = structlog.get_logger("sealgate.journal")
T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]


class _Write(NamedTuple):
    """A row, and the future of the waiting request, whose result is None, or the trouble in words."""

    row: Row
    written: asyncio.Future[str | None] | None


class _Job(NamedTuple):
    work: Work[Any]
    done: Future[Any]


class DatabaseThread:
    """The thread, its queue and its connection. Create it in a running loop, whose futures it completes.

    `database` is open, and belongs to the thread from now on. `look_after` is called once a second. Raises
    JournalError if the file is already gone.
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

    # Called by other threads.

    def put(self, row: Row, written: asyncio.Future[str | None] | None = None) -> bool:
        """Queue a row, and return whether it was queued; rows of one order keep their sequence.

        While the disk hangs, the queue is bounded; rows beyond the bound are lost, like endings that are
        owed.
        """
        if self._queue.qsize() >= _MOST_OWED:
            return False
        self._queue.put(_Write(row, written))
        return True

    def run(self, work: Work[T]) -> Future[T]:
        """Do work on the database, after the waiting rows; the future raises JournalError on failure.

        Work that writes is a separate transaction. During a trouble, nothing is tried.
        """
        done: Future[T] = Future()
        if (trouble := self.status.trouble) is not None:
            done.set_exception(JournalError(self._file, trouble, _FIX))
        else:
            self._queue.put(_Job(work, done))
        return done

    def stop(self) -> bool:
        """Write the remaining rows and end; return whether it ended. Blocks, but not indefinitely."""
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
        """If the disk hangs, log it, once for each time."""
        if self.is_hanging and not self._is_hang_logged:
            self._is_hang_logged = True
            self._log_failure(HANGS, _FIX_HANG)

    @property
    def status(self) -> JournalStatus:
        """The state of the journal as of the latest transaction, or the hang."""
        if self.is_hanging:
            return replace(self._status, trouble=HANGS, is_refusing=self._must_be_written)
        return self._status

    # Called by the thread itself.

    def _run(self) -> None:
        is_running = True
        while is_running:
            items = self._next_items()
            is_running = None not in items
            with self._timed():
                self._write([item for item in items if isinstance(item, _Write)])
            for job in [item for item in items if isinstance(item, _Job)]:  # no variable keeps an order's row
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
        """Wait for work; return everything that is queued, with None at its end to stop."""
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
        with contextlib.suppress(RuntimeError):  # the loop is closed: no request is waiting
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
        """Write owed endings and do the file's upkeep; if both succeed, the disk works again."""
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
        """Return the connection, reopened after a failure to test whether the file can be used."""
        self._identity.check()  # each time: SQLite would keep writing to a file that was moved away
        if self._database is None:
            self._database = connect(self._file)
            check_sound(self._database, self._file, "quick_check")
        return self._database

    def _close(self) -> None:
        if self._database is not None:
            with contextlib.suppress(sqlite3.Error):
                # Closing does not checkpoint a file that was moved away: the latest orders would be lost with
                # the log.
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
    for written in waiting:  # these are never cancelled: a request that stops waiting leaves them
        written.set_result(trouble)
