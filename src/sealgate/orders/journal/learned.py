"""What outlives a restart beside the orders: what was learned of each key's limit, prices, and halts.

Writing is done in a thread, because a disk may be slow; a disk that refuses costs the memory of the limits,
never a request.
"""

import asyncio
import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import astuple, dataclass, field
from pathlib import Path

import structlog

from sealgate.limits.memory import Snapshot, aged
from sealgate.limits.scheduler import RateScheduler
from sealgate.machine.system import System
from sealgate.orders.halts import Halt, Halts, Origin, Scope
from sealgate.orders.journal import orders
from sealgate.orders.journal.file import (
    VERSION,
    as_journal_error,
    check_sound,
    connect,
    connect_to_look,
    is_in_use,
)
from sealgate.orders.journal.nonces import read_marks
from sealgate.orders.policy import Prices

UNREAD_FIX = "nothing after an update, else check journal.file; the gateway learns them anew"

_INTERVAL_S = 60.0
# As bytes: whether they are text is found out with all else that may be wrong with them.
_READ = "SELECT CAST(limits AS BLOB), at FROM learned WHERE subject = ?"

log = structlog.get_logger("sealgate.journal")
_COLUMNS = "bot, key, since_ms, uid, pid, reason"  # the last three are those of `Origin`, in its order


class LimitsTable:
    """The table of limits in a file that `prepare` made. `subject` names what a limit belongs to.

    That is the exchange and the API key. Each call opens the file, as calls are rare and come from several
    threads. Raises sqlite3.Error.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def learned(self, subject: str, wall: float) -> Snapshot:
        """Return what was learned of a limit, as `read_learned` does."""
        with closing(connect(self._file)) as database:
            return read_learned(database, subject, wall)

    def keep(self, learned: Mapping[str, Snapshot], wall: float) -> None:
        """Write what was learned, by subject."""
        rows = [(subject, json.dumps(limits), wall) for subject, limits in learned.items()]
        with closing(connect(self._file)) as database, database:
            database.executemany("INSERT OR REPLACE INTO learned VALUES (?, ?, ?)", rows)


def read_learned(database: sqlite3.Connection, subject: str, wall: float) -> Snapshot:
    """Return what was learned of a limit, aged by the time since; `wall` is epoch seconds.

    Raises sqlite3.DataError where the row is nothing that `keep` writes.
    """
    row = database.execute(_READ, (subject,)).fetchone()
    return [] if row is None else _read_row(row[0], wall - row[1])


def _read_row(limits: bytes, seconds: float) -> Snapshot:
    """Return the limits of a row, so much older. Raises sqlite3.DataError where it is bad."""
    try:
        kept = json.loads(limits)
        if isinstance(kept, list) and all(isinstance(one, dict) for one in kept):
            return [aged(one, max(0.0, seconds)) for one in kept]
    except (ValueError, RecursionError, OverflowError):  # no JSON, too deep for it, too large for a float
        pass
    raise sqlite3.DataError("what was learned is damaged, or of another version")


class LimitsKeeper:
    """Writes what is learned from time to time, when a pause begins, and once more at the end."""

    def __init__(self, table: LimitsTable, system: System) -> None:
        self._table = table
        self._subjects: Mapping[str, RateScheduler] = {}
        self._system = system
        self._writing: set[asyncio.Task[None]] = set()

    def follow(self, subjects: Mapping[str, RateScheduler]) -> None:
        """Keep these from now on."""
        self._subjects = subjects
        for scheduler in subjects.values():
            scheduler.on_pause = self._keep_now

    def recall(self, subjects: Iterable[str]) -> dict[str, Snapshot]:
        """Return what was kept of those that are not followed yet; blocks.

        They start from it, before their first request. What cannot be read is logged.
        """
        kept: dict[str, Snapshot] = {}
        refused: dict[str, sqlite3.Error] = {}
        for subject in subjects:
            if subject not in self._subjects:
                try:
                    kept[subject] = self._table.learned(subject, self._system.wall())
                except sqlite3.Error as error:
                    refused[subject] = error
        if refused:
            causes = ", ".join(sorted({str(error) for error in refused.values()}))
            log.warning("journal_not_read", cause=causes, limits=len(refused), fix=UNREAD_FIX)
        return kept

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._system.sleep(_INTERVAL_S)
            await self.keep()

    def _keep_now(self) -> None:
        """Write in the background: a pause must be known to the next run, even if this one is killed."""
        task = asyncio.create_task(self.keep())
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def keep(self) -> None:
        """Write now; a disk that refuses is logged."""
        learned = {subject: scheduler.snapshot() for subject, scheduler in self._subjects.items()}
        try:
            await asyncio.to_thread(self._table.keep, learned, self._system.wall())
        except sqlite3.Error as error:
            log.warning("journal_not_written", cause=str(error), fix="free space, or check journal.file")


class PricesKeeper:
    """Writes the prices that policies need from time to time, and once more at the end.

    `prices` are those of each exchange; one that a reload adds is kept, too.
    """

    def __init__(self, file: Path, prices: dict[str, Prices], system: System) -> None:
        self._file = file
        self._prices = prices
        self._system = system

    def recall(self) -> None:
        """Let the exchanges' prices start from what was kept; blocks. What cannot be read is logged."""
        kept: dict[str, dict[str, tuple[str, float]]] = {}
        wall = self._system.wall()
        try:
            with closing(connect(self._file)) as database:
                for exchange, symbol, price, at in database.execute("SELECT * FROM prices"):
                    kept.setdefault(exchange, {})[symbol] = price, wall - at
        except sqlite3.Error as error:
            log.warning("journal_not_read", cause=str(error), fix=UNREAD_FIX)
        for exchange, prices in kept.items():
            if exchange in self._prices:
                self._prices[exchange].restore(prices, self._system.now())

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._system.sleep(_INTERVAL_S)
            await self.keep()

    async def keep(self) -> None:
        """Write now; a disk that refuses is logged."""
        now, wall = self._system.now(), self._system.wall()
        rows = [
            (exchange, symbol, text, wall - age_s)
            for exchange, prices in self._prices.items()
            for symbol, (text, age_s) in prices.kept(now).items()
        ]
        if not rows:  # what the file has is not trusted for longer than an hour
            return
        try:
            await asyncio.to_thread(self._write, rows)
        except sqlite3.Error as error:
            log.warning("journal_not_written", cause=str(error), fix="free space, or check journal.file")

    def _write(self, rows: Iterable[tuple[str, str, str, float]]) -> None:
        with closing(connect(self._file)) as database, database:
            database.execute("DELETE FROM prices")
            database.executemany("INSERT INTO prices VALUES (?, ?, ?, ?)", rows)


class HaltsTable:
    """The table in a file that `prepare` made; each call opens it.

    Raises JournalError where that is not possible.

    It is rewritten whole each time, and synced: a power cut must not let orders go that were halted.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self) -> Halts:
        """Return the halts that stand."""
        with as_journal_error(self._file), closing(connect(self._file)) as database:
            rows = database.execute(f"SELECT {_COLUMNS} FROM halts ORDER BY since_ms")  # noqa: S608 - a constant
            return Halts(
                *(Halt(Scope(bot, key), since_ms, Origin(*origin)) for bot, key, since_ms, *origin in rows)
            )

    def write(self, halts: Halts) -> None:
        """Write the halts that stand; when this returns, they outlive a power cut."""
        rows = [(halt.scope.bot, halt.scope.key, halt.since_ms, *astuple(halt.origin)) for halt in halts]
        with as_journal_error(self._file), closing(connect(self._file)) as database:
            database.execute("PRAGMA synchronous = FULL")
            with database:
                database.execute("DELETE FROM halts")
                database.executemany(
                    f"INSERT INTO halts ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",  # noqa: S608 - a constant
                    rows,
                )


@dataclass(frozen=True, slots=True)
class Insight:
    """What a journal holds; `limits` by subject, aged to the moment of the look.

    The limits of the `unread` are there, but damaged. `nonces` are the marks of nonces.py, by place.
    """

    in_doubt: int
    is_in_use: bool
    limits: Mapping[str, Snapshot]
    unread: tuple[str, ...] = ()
    nonces: Mapping[str, int] = field(default_factory=dict)


def look_into(file: Path, subjects: Iterable[str], wall: float) -> Insight | None:
    """Read a journal that is there, None where an older version made it; `wall` is epoch seconds.

    `subjects` are those whose limits are wanted. Raises JournalError.
    """
    with as_journal_error(file), closing(connect_to_look(file)) as database:
        if check_sound(database, file) != VERSION:
            return None
        in_use = is_in_use(file)
        doubts = orders.in_doubt(database, orders.ALL, is_left_alone=not in_use)
        limits: dict[str, Snapshot] = {}
        unread: list[str] = []
        for subject in subjects:
            try:
                limits[subject] = read_learned(database, subject, wall)
            except sqlite3.DataError:
                unread.append(subject)
        return Insight(len(doubts), in_use, limits, tuple(unread), read_marks(database))
