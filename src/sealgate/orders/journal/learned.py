"""Learned values in the journal: the limits of each key, and the prices that policies need.

If the disk fails, these values are lost, but no request is affected.
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

UNREAD_FIX = "after an update, nothing; otherwise check journal.file. The gateway learns the limits again"

_INTERVAL_S = 60.0
_KEPT_S = 30 * 86_400.0  # how long to keep a pool without requests
_MOST_KEPT = 1000  # pools per exchange

log = structlog.get_logger("sealgate.journal")

Price = tuple[str, str, str, float]  # exchange, symbol, price, epoch seconds


def _read_row(limits: bytes, age_s: float) -> Snapshot:
    """Return the learned limits of a pool, aged by `age_s`. Raises sqlite3.DataError if damaged."""
    try:
        kept = json.loads(limits)
        if isinstance(kept, list) and all(isinstance(one, dict) for one in kept):
            return [aged(one, age_s) for one in kept]
    except (
        ValueError,
        RecursionError,
        OverflowError,
    ):  # not JSON, too deeply nested, or too large
        pass
    raise sqlite3.DataError("the learned limits are damaged, or from another version")


def write_limits(database: sqlite3.Connection, learned: Mapping[str, Snapshot], wall: float) -> None:
    """Write learned limits, by place; rows of other places stay for a month. Raises sqlite3.Error."""
    rows = [(place, json.dumps(limits), wall) for place, limits in learned.items() if limits]
    forgotten = [(place,) for place, limits in learned.items() if not limits]
    with database:
        database.execute("DELETE FROM learned WHERE at <= ?", (wall - _KEPT_S,))
        database.executemany("DELETE FROM learned WHERE subject = ?", forgotten)
        database.executemany("INSERT OR REPLACE INTO learned VALUES (?, ?, ?)", rows)


def _write_prices(database: sqlite3.Connection, prices: Iterable[Price]) -> None:
    with database:
        database.execute("DELETE FROM prices")
        database.executemany("INSERT INTO prices VALUES (?, ?, ?, ?)", prices)


def read_limits(
    database: sqlite3.Connection, exchange: str, wall: float
) -> tuple[dict[str, Snapshot], dict[str, str]]:
    """Return the limits of an exchange's pools, aged until now, and the cause for each damaged one.

    Both are by place, which begins with the exchange's address. `wall` is epoch seconds. Rows not written for
    a month are left out.
    """
    kept: dict[str, Snapshot] = {}
    damaged: dict[str, str] = {}
    # As bytes: that they are text is checked together with everything else.
    statement = (
        "SELECT subject, CAST(limits AS BLOB), at FROM learned"
        " WHERE substr(subject, 1, ?) = ? AND at > ? ORDER BY at DESC LIMIT ?"
    )
    begin = f"{exchange} "
    for place, limits, at in database.execute(statement, (len(begin), begin, wall - _KEPT_S, _MOST_KEPT)):
        try:
            kept[place] = _read_row(limits, max(0.0, wall - at))
        except sqlite3.DataError as error:
            damaged[place] = str(error)
    return kept, damaged


class LearnedKeeper:
    """Writes learned limits and prices once a minute, when a pause begins, and at the end.

    `prices` are those of each exchange, including exchanges added by a reload.
    """

    def __init__(self, journal: Journal, prices: Mapping[str, Prices], system: System) -> None:
        self._journal = journal
        self._prices = prices
        self._system = system
        self._schedulers: Mapping[str, RateScheduler] = {}
        self._writing: asyncio.Task[None] | None = None
        self._is_due = False  # a pause began after the values for the present write were collected

    def follow(self, schedulers: Mapping[str, RateScheduler]) -> None:
        """Write what these schedulers learn from now on; they are by the address of their exchange."""
        self._schedulers = schedulers
        for scheduler in schedulers.values():
            scheduler.on_pause = self._keep_soon

    def recall(self, exchanges: Iterable[str]) -> dict[str, dict[str, Snapshot]]:
        """Return the stored limits of exchanges that are not followed yet; blocks.

        They start from these, before their first request. Unreadable rows are logged.
        """
        wall = self._system.wall()
        kept: dict[str, dict[str, Snapshot]] = {}
        unread = 0
        causes: set[str] = set()
        for exchange in exchanges:
            if exchange in self._schedulers:
                continue
            try:
                kept[exchange], damaged = self._journal.run_now(
                    partial(read_limits, exchange=exchange, wall=wall)
                )
            except JournalError as error:
                damaged = {exchange: error.cause}
            causes.update(damaged.values())
            unread += len(damaged)
        if causes:
            cause = ", ".join(sorted(causes))
            log.warning("journal_not_read", cause=cause, limits=unread, fix=UNREAD_FIX)
        return kept

    def recall_prices(self) -> None:
        """Load the stored prices of the exchanges; blocks. Unreadable rows are logged."""
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
        """Write in the background, so that the next run knows of a pause even if this one is killed.

        Pauses that begin during a write are written together, so that many cost no time of orders.
        """
        self._is_due = True
        if self._writing is None:
            self._writing = asyncio.create_task(self._keep_all())

    async def _keep_all(self) -> None:
        try:
            while self._is_due:
                self._is_due = False
                await self.keep()
        finally:
            self._writing = None

    async def keep(self) -> None:
        """Write now; log it if the disk fails."""
        now, wall = self._system.now(), self._system.wall()
        limits: dict[str, Snapshot] = {}
        for scheduler in self._schedulers.values():
            limits.update(scheduler.snapshot())
        prices = [
            (exchange, symbol, text, wall - age_s)
            for exchange, known in self._prices.items()
            for symbol, (text, age_s) in known.kept(now).items()
        ]

        def write(database: sqlite3.Connection) -> None:
            write_limits(database, limits, wall)
            if prices:  # otherwise the stored prices stay, which are trusted for an hour at most
                _write_prices(database, prices)

        try:
            await self._journal.run(write)
        except JournalError as error:
            log.warning("journal_not_written", cause=error.cause, fix="free space, or check journal.file")
