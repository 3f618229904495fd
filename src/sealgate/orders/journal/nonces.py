"""The number up to which each key's nonces are reserved, so that they keep rising over a restart.

A mark is written some seconds ahead of the nonces in use, so that few requests wait for the disk. If the disk
fails, the nonces follow the time, and no request fails because of that; an order is then refused because it
cannot be recorded.
"""

import asyncio
import math
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import structlog

from sealgate.exchange.stamps import Nonces
from sealgate.machine.system import System
from sealgate.orders.journal.file import JournalError, as_journal_error, connect
from sealgate.orders.journal.journal import Journal
from sealgate.orders.journal.lock import user_of

FAR_S = 60.0
FAR_FIX = (
    "if the exchange refuses them, or a clock was wrong, make a new API key; until then nonces continue "
    "above it"
)
_UNRESERVED_FIX = (
    "free space, or check journal.file; until then a restart does not know which nonces were used"
)
_AGAIN_S = 1.0

log = structlog.get_logger("sealgate.journal")


def raise_mark(database: sqlite3.Connection, place: str, until: int) -> int:
    """Reserve nonces up to `until`, unless more are reserved; return the previous mark, or 0.

    Raises sqlite3.Error.
    """
    with database:
        database.execute("BEGIN IMMEDIATE")
        row = database.execute("SELECT until FROM nonces WHERE place = ?", (place,)).fetchone()
        kept = 0 if row is None else int(row[0])
        database.execute("INSERT OR REPLACE INTO nonces VALUES (?, ?)", (place, max(kept, until)))
        return kept


def read_marks(database: sqlite3.Connection) -> dict[str, int]:
    """Return the marks by place. Raises sqlite3.Error."""
    return dict(database.execute("SELECT place, until FROM nonces"))


def nonce_of_command(file: Path | None, nonces: Nonces, now_ms: int) -> tuple[bytes, str]:
    """Return a nonce for a request of a command, and the reason, in words, if it ignores the mark.

    The nonce is above the mark, and raises it, so that the next start continues above it. While a gateway
    holds the journal, the gateway's nonces follow the time, below the mark: a nonce above the mark would make
    the exchange refuse them.
    """
    if not nonces.is_number or file is None or not file.exists():
        return nonces.take(now_ms), ""
    try:
        if user_of(file) is not None:
            words = "a gateway is using the journal, so this nonce is the time; the gateway's are higher"
            return nonces.take(now_ms), words
        with as_journal_error(file), closing(connect(file)) as database:
            nonces.reserved(raise_mark(database, nonces.place, 0), 0)
            nonce = nonces.take(now_ms)
            raise_mark(database, nonces.place, int(nonce))
            return nonce, ""
    except (JournalError, OSError) as error:
        return nonces.take(now_ms), f"the nonce is the time: {error}"


class NoncesKeeper:
    """Reserves nonces before they are used. One write serves all requests of a key that wait for it."""

    def __init__(self, journal: Journal, system: System) -> None:
        self._journal = journal
        self._system = system
        self._writing: dict[str, asyncio.Task[None]] = {}
        self._again_at = -math.inf  # while the disk fails or hangs, one request a second tries it
        self._is_trouble_logged = False

    async def reserve(self, nonces: Nonces, key: tuple[str, str], now_ms: int) -> None:
        """Wait until the next nonces are reserved, or cannot be. `now_ms` is the exchange's time.

        `key` has the names of the exchange and of the API key, for the log.
        """
        while nonces.lacks(now_ms) and self._system.now() >= self._again_at:
            if (task := self._writing.get(nonces.place)) is None:
                task = asyncio.create_task(self._write(nonces, key, now_ms))
                self._writing[nonces.place] = task
            await asyncio.wait((task,))

    async def _write(self, nonces: Nonces, key: tuple[str, str], now_ms: int) -> None:
        exchange, alias = key
        until = nonces.wanted(now_ms)
        try:
            kept = await self._journal.run(partial(raise_mark, place=nonces.place, until=until))
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait must not try it without end
            self._again_at = self._system.now() + _AGAIN_S
            if not self._is_trouble_logged:
                self._is_trouble_logged = True
                cause = error.cause if isinstance(error, JournalError) else str(error) or type(error).__name__
                log.error("nonces_not_reserved", exchange=exchange, cause=cause, fix=_UNRESERVED_FIX)  # noqa: TRY400
        else:
            self._is_trouble_logged = False
            if nonces.is_new and (ahead_s := nonces.ahead_s(kept, now_ms)) > FAR_S:
                cause = f"the journal has them reserved up to {ahead_s:.0f} s ahead of the exchange's time"
                log.warning("nonces_ahead", exchange=exchange, key=alias, cause=cause, fix=FAR_FIX)
            nonces.reserved(kept, until)
        finally:
            del self._writing[nonces.place]
