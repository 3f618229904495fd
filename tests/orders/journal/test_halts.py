"""The table of halts: written whole, read as it was, and told where it cannot be."""

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from rig.journals import running_journal
from sealgate.orders.halts import Halt, Halts, Origin, Scope
from sealgate.orders.journal import JournalError
from sealgate.orders.journal.file import connect, prepare
from sealgate.orders.journal.halts import read_halts, write_halts

ALL, GRID, MAIN = (
    Halt(Scope(), 30, Origin(1000, 7, "a bad day")),
    Halt(Scope("grid"), 10),
    Halt(Scope("grid", "main", "spot"), 20),
)
HALTS = Halts(GRID, MAIN, ALL)


def test_they_come_back_the_oldest_first(database: sqlite3.Connection) -> None:
    assert read_halts(database) == Halts()
    write_halts(database, Halts(ALL, MAIN, GRID))
    assert list(read_halts(database)) == [GRID, MAIN, ALL]


def test_what_is_written_takes_the_place_of_what_was(database: sqlite3.Connection) -> None:
    for halts in (HALTS, Halts(MAIN), Halts()):
        write_halts(database, halts)
        assert read_halts(database) == halts


def test_they_are_synced_and_nothing_else_is(database: sqlite3.Connection) -> None:
    """A power cut must not release orders; syncing each order would hold it up."""
    statements: list[str] = []
    database.set_trace_callback(statements.append)
    write_halts(database, HALTS)
    assert (statements[0], statements[-1]) == ("PRAGMA synchronous = FULL", "PRAGMA synchronous = NORMAL")


async def test_a_write_that_fails_in_the_middle_releases_nothing(file: Path) -> None:
    async with running_journal(file) as journal:
        await journal.run(partial(write_halts, halts=HALTS))
        with closing(connect(file)) as database, database:
            database.execute(
                "CREATE TRIGGER full BEFORE INSERT ON halts BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
            )
        with pytest.raises(JournalError, match=r"journal\.file .+: disk is full; "):
            await journal.run(partial(write_halts, halts=Halts(ALL)))
        assert await journal.run(read_halts) == HALTS


async def test_what_cannot_be_read_is_not_taken_for_no_halts(file: Path) -> None:
    prepare(file)
    with closing(connect(file)) as database, database:
        database.execute("INSERT INTO halts (bot, key, since_ms) VALUES (CAST(x'ff' AS TEXT), NULL, 1)")
    async with running_journal(file) as journal:
        with pytest.raises(JournalError, match="damaged; move it away"):
            journal.run_now(read_halts)


async def test_a_file_that_another_program_holds(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealgate.orders.journal.file.LOCK_WAIT_S", 0.0)
    async with running_journal(file) as journal:
        with closing(sqlite3.connect(file)) as database:
            database.execute("BEGIN IMMEDIATE")
            with pytest.raises(JournalError, match="database is locked"):
                await journal.run(partial(write_halts, halts=HALTS))
