"""Up to which number each key's nonces are reserved, so that those after a restart are above those before.

A mark is written some seconds ahead of what is used, so that few requests wait for the disk. A disk that
refuses costs the memory of the nonces, never a request: they go by the time then, and an order is refused for
its own record.
"""

import asyncio
import math
import sqlite3
from contextlib import closing
from pathlib import Path

import structlog

from sealgate.machine.system import System
from sealgate.orders.journal.file import JournalError, as_journal_error, connect, is_in_use
from sealgate.orders.journal.writer import HANGS, HANGS_AFTER_S
from sealgate.orders.validity import Nonces

_AGAIN_S = 1.0
FAR_S = 60.0
FAR_FIX = (
    "if the exchange refuses them or a clock was wrong, make a new API key; until then they go on above it"
)

log = structlog.get_logger("sealgate.journal")


class NoncesTable:
    """The marks in a file that `prepare` made; each call opens it. Raises JournalError."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def raise_to(self, place: str, until: int) -> int:
        """Write that nonces up to `until` may be used, unless more are; return the mark of before, or 0."""
        with as_journal_error(self._file), closing(connect(self._file)) as database, database:
            database.execute("BEGIN IMMEDIATE")
            row = database.execute("SELECT until FROM nonces WHERE place = ?", (place,)).fetchone()
            kept = 0 if row is None else int(row[0])
            database.execute("INSERT OR REPLACE INTO nonces VALUES (?, ?)", (place, max(kept, until)))
            return kept


def read_marks(database: sqlite3.Connection) -> dict[str, int]:
    """Return the marks by place; a file that no gateway of this version has used yet has none."""
    if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'nonces'").fetchone() is None:
        return {}
    return dict(database.execute("SELECT place, until FROM nonces"))


def nonce_of_command(file: Path | None, nonces: Nonces, now_ms: int) -> tuple[bytes, str]:
    """Return a nonce for a request of a command, and in words why it does not go by the mark, if so.

    It is above the mark, which it moves, so that the next start goes above it. While a gateway holds the
    journal its nonces follow the time, below the mark: one above that would make the exchange refuse them.
    """
    words = ""
    if nonces.is_number and file is not None and file.exists():
        try:
            if is_in_use(file):
                words = "a gateway is using the journal, so this nonce is the time; the gateway's are higher"
            else:
                table = NoncesTable(file)
                nonces.reserved(table.raise_to(nonces.place, 0), 0)
                nonce = nonces.take(now_ms)
                table.raise_to(nonces.place, int(nonce))
                return nonce, ""
        except (JournalError, OSError) as error:
            words = f"the nonce is the time: {error}"
    return nonces.take(now_ms), words


class NoncesKeeper:
    """Reserves nonces before they are used. One write serves all requests of a key that wait for it."""

    def __init__(self, table: NoncesTable, system: System) -> None:
        self._table = table
        self._system = system
        self._writing: dict[str, asyncio.Task[None]] = {}
        self._again_at = 0.0  # while the disk refuses or hangs nobody waits
        self._is_trouble_logged = False

    async def reserve(self, nonces: Nonces, alias: str, now_ms: int) -> None:
        """Return when the next ones are reserved, or cannot be. `now_ms` is the exchange's time."""
        while nonces.lacks(now_ms) and self._system.now() >= self._again_at:
            task = self._writing.get(nonces.place)
            if task is None:
                task = asyncio.create_task(self._write(nonces, alias, now_ms))
                self._writing[nonces.place] = task
            await asyncio.wait((task,), timeout=HANGS_AFTER_S)
            if not task.done():
                self._again_at = math.inf
                self._log(HANGS)

    async def close(self) -> None:
        """Wait for what is being written, within reason."""
        if self._writing:
            await asyncio.wait(self._writing.values(), timeout=HANGS_AFTER_S)

    async def _write(self, nonces: Nonces, alias: str, now_ms: int) -> None:
        until = nonces.wanted(now_ms)
        try:
            kept = await asyncio.to_thread(self._table.raise_to, nonces.place, until)
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait must not try it without end
            self._again_at = self._system.now() + _AGAIN_S
            self._log(str(error) or type(error).__name__)
        else:
            self._again_at = 0.0
            self._is_trouble_logged = False
            if nonces.is_new and (ahead_s := nonces.ahead_s(kept, now_ms)) > FAR_S:
                cause = f"the journal has them reserved up to {ahead_s:.0f} s ahead of the exchange's time"
                log.warning("nonces_ahead", key=alias, cause=cause, fix=FAR_FIX)
            nonces.reserved(kept, until)
        finally:
            del self._writing[nonces.place]

    def _log(self, cause: str) -> None:
        if not self._is_trouble_logged:
            self._is_trouble_logged = True
            fix = (
                "free space, or check journal.file; until then a restart does not know which nonces were used"
            )
            log.error("nonces_not_reserved", cause=cause, fix=fix)
