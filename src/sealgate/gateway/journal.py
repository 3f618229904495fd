"""The journal: what must outlive the process, in one SQLite file.

Kept so far: what was learned of each key's limit. Writing is done in a thread, because a disk may be slow; a
disk that refuses costs the memory of the limits, never a request.
"""

import asyncio
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import structlog

from sealgate.core.pacing.memory import Snapshot
from sealgate.gateway.host import Host
from sealgate.gateway.turnstile import Turnstile

_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS learned (subject TEXT PRIMARY KEY, limits TEXT NOT NULL, at REAL NOT NULL) STRICT
"""
_INTERVAL_S = 60.0

log = structlog.get_logger("sealgate.journal")


class JournalError(Exception):
    """The file cannot be used as a journal. `str()` is one line: cause and fix."""


class Journal:
    """The file. Each call opens it, as calls are rare and come from several threads.

    `subject` names what a limit belongs to: the exchange and the API key. Raises JournalError where the file
    is not a journal or cannot be written.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            with closing(self._open()) as database, database:
                _check_version(database, file)
                database.execute(_SCHEMA)
                database.execute(f"PRAGMA user_version = {_VERSION}")
        except sqlite3.Error as error:
            raise JournalError(f"journal.file {file}: {error}; choose a writable path of its own") from None

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._file)
        database.execute("PRAGMA journal_mode = WAL")
        return database

    def learned(self, subject: str, wall: float) -> Snapshot:
        """Return what was learned of a limit, aged by the time since; `wall` is epoch seconds."""
        with closing(self._open()) as database:
            row = database.execute("SELECT limits, at FROM learned WHERE subject = ?", (subject,)).fetchone()
        if row is None:
            return []
        limits: Snapshot = json.loads(row[0])
        return [{**limit, "age": limit["age"] + max(0.0, wall - row[1])} for limit in limits]

    def keep(self, learned: Mapping[str, Snapshot], wall: float) -> None:
        """Write what was learned, by subject. Raises sqlite3.Error where the disk refuses."""
        rows = [(subject, json.dumps(limits), wall) for subject, limits in learned.items()]
        with closing(self._open()) as database, database:
            database.executemany("INSERT OR REPLACE INTO learned VALUES (?, ?, ?)", rows)


def _check_version(database: sqlite3.Connection, file: Path) -> None:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version not in (0, _VERSION):
        raise JournalError(f"journal.file {file}: made by another version ({version}); choose another file")


class Keeper:
    """Writes what is learned from time to time, and once more at the end."""

    def __init__(self, journal: Journal, subjects: Mapping[str, Turnstile], host: Host) -> None:
        self._journal = journal
        self._subjects = subjects
        self._host = host
        for subject, turnstile in subjects.items():
            turnstile.restore(journal.learned(subject, host.wall()))

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._host.sleep(_INTERVAL_S)
            await self.keep()

    async def keep(self) -> None:
        """Write now; a disk that refuses is told in the log."""
        learned = {subject: turnstile.snapshot() for subject, turnstile in self._subjects.items()}
        try:
            await asyncio.to_thread(self._journal.keep, learned, self._host.wall())
        except sqlite3.Error as error:
            log.warning("journal_not_written", cause=str(error), fix="free space, or check journal.file")
