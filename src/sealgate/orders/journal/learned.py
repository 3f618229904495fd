"""What was learned, in the journal: the limits of each key, and the prices that policies need.

A disk that refuses costs this memory, never a request.
"""

import asyncio
import json
import sqlite3
from collections.abc import Iterable, Mapping
from functools import partial

import structlog

from sealgate.limits.scheduler import RateScheduler
from sealgate.limits.snapshots import Snapshot, aged
from sealgate.machine.system import System
from sealgate.orders.journal.file import JournalError
from sealgate.orders.journal.journal import Journal
from sealgate.orders.prices import Prices

UNREAD_FIX = "nothing after an update, else check journal.file; the gateway learns them anew"

_INTERVAL_S = 60.0

log = structlog.get_logger("sealgate.journal")

Price = tuple[str, str, str, float]  # exchange, symbol, price, epoch seconds


def read_limits(database: sqlite3.Connection, subject: str, wall: float) -> Snapshot:
    """Return what was learned of a limit, aged by the time since; `wall` is epoch seconds.

    `subject` names what the limit belongs to: the exchange and, mostly, the API key. Raises sqlite3.DataError
    where the row is nothing that `write_limits` writes.
    """
    # As bytes: whether they are text is found out with all else that may be wrong with them.
    statement = "SELECT CAST(limits AS BLOB), at FROM learned WHERE subject = ?"
    row = database.execute(statement, (subject,)).fetchone()
    if row is None:
        return []
    try:
        kept = json.loads(row[0])
        if isinstance(kept, list) and all(isinstance(one, dict) for one in kept):
            return [aged(one, max(0.0, wall - row[1])) for one in kept]
    except (ValueError, RecursionError, OverflowError):  # no JSON, too deep for it, too large for a float
        pass
    raise sqlite3.DataError("what was learned is damaged, or of another version")


def write_limits(database: sqlite3.Connection, learned: Mapping[str, Snapshot], wall: float) -> None:
    """Write what was learned, by subject; other subjects stay. Raises sqlite3.Error."""
    rows = [(subject, json.dumps(limits), wall) for subject, limits in learned.items()]
    with database:
        database.executemany("INSERT OR REPLACE INTO learned VALUES (?, ?, ?)", rows)


def _write_prices(database: sqlite3.Connection, prices: Iterable[Price]) -> None:
    with database:
        database.execute("DELETE FROM prices")
        database.executemany("INSERT INTO prices VALUES (?, ?, ?, ?)", prices)


def read_all_limits(
    database: sqlite3.Connection, subjects: Iterable[str], wall: float
) -> tuple[dict[str, Snapshot], dict[str, str]]:
    """Return the limits of those that can be read, and the cause for each that is damaged, by subject."""
    kept: dict[str, Snapshot] = {}
    damaged: dict[str, str] = {}
    for subject in subjects:
        try:
            kept[subject] = read_limits(database, subject, wall)
        except sqlite3.DataError as error:
            damaged[subject] = str(error)
    return kept, damaged


class LearnedKeeper:
    """Writes what was learned once a minute, when a pause begins, and at the end.

    `prices` are those of each exchange; one that a reload adds is kept, too.
    """

    def __init__(self, journal: Journal, prices: Mapping[str, Prices], system: System) -> None:
        self._journal = journal
        self._prices = prices
        self._system = system
        self._subjects: Mapping[str, RateScheduler] = {}
        self._writing: set[asyncio.Task[None]] = set()

    def follow(self, subjects: Mapping[str, RateScheduler]) -> None:
        """Keep the limits of these from now on."""
        self._subjects = subjects
        for scheduler in subjects.values():
            scheduler.on_pause = self._keep_soon

    def recall(self, subjects: Iterable[str]) -> dict[str, Snapshot]:
        """Return the kept limits of those that are not followed yet; blocks.

        They start from it, before their first request. What cannot be read is logged.
        """
        wanted = [subject for subject in subjects if subject not in self._subjects]
        wall = self._system.wall()
        kept: dict[str, Snapshot] = {}
        try:
            kept, damaged = self._journal.run_now(partial(read_all_limits, subjects=wanted, wall=wall))
            causes = set(damaged.values())
        except JournalError as error:
            causes = {error.cause}
        if causes:
            cause = ", ".join(sorted(causes))
            log.warning("journal_not_read", cause=cause, limits=len(wanted) - len(kept), fix=UNREAD_FIX)
        return kept

    def recall_prices(self) -> None:
        """Let the exchanges' prices start from what was kept; blocks. What cannot be read is logged."""
        kept: dict[str, dict[str, tuple[str, float]]] = {}
        wall = self._system.wall()
        try:
            rows = self._journal.run_now(lambda database: list(database.execute("SELECT * FROM prices")))
        except JournalError as error:
            log.warning("journal_not_read", cause=error.cause, fix=UNREAD_FIX)
            return
        for exchange, symbol, price, at in rows:
            kept.setdefault(exchange, {})[symbol] = price, wall - at
        for exchange, prices in kept.items():
            if exchange in self._prices:
                self._prices[exchange].restore(prices, self._system.now())

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._system.sleep(_INTERVAL_S)
            await self.keep()

    def _keep_soon(self) -> None:
        """Write in the background: a pause must be known to the next run, even if this one is killed."""
        task = asyncio.create_task(self.keep())
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def keep(self) -> None:
        """Write now; a disk that refuses is logged."""
        now, wall = self._system.now(), self._system.wall()
        limits = {subject: scheduler.snapshot() for subject, scheduler in self._subjects.items()}
        prices = [
            (exchange, symbol, text, wall - age_s)
            for exchange, known in self._prices.items()
            for symbol, (text, age_s) in known.kept(now).items()
        ]

        def write(database: sqlite3.Connection) -> None:
            write_limits(database, limits, wall)
            if prices:  # else those in the file stay, which are not trusted for longer than an hour
                _write_prices(database, prices)

        try:
            await self._journal.run(write)
        except JournalError as error:
            log.warning("journal_not_written", cause=error.cause, fix="free space, or check journal.file")
