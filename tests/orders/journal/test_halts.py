"""The table of halts: written whole, read as it was, and told where the file cannot be used."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sealgate.orders.halts import Halt, Halts, Origin, Scope
from sealgate.orders.journal import HaltsTable, JournalError
from sealgate.orders.journal.file import connect, prepare

ALL, GRID, MAIN = (
    Halt(Scope(), 30, Origin(1000, 7, "a bad day")),
    Halt(Scope("grid"), 10),
    Halt(Scope("grid", "main"), 20),
)
HALTS = Halts(GRID, MAIN, ALL)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "journal.db"
    prepare(path)
    return path


def test_there_are_none_at_first(file: Path) -> None:
    assert HaltsTable(file).read() == Halts()


def test_they_come_back_the_oldest_first(file: Path) -> None:
    HaltsTable(file).write(Halts(ALL, MAIN, GRID))
    assert list(HaltsTable(file).read()) == [GRID, MAIN, ALL]


def test_those_of_a_file_of_version_3_come_back(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE halts (bot TEXT, key TEXT, since_ms INTEGER NOT NULL) STRICT")
        database.execute("INSERT INTO halts VALUES ('grid', NULL, 10)")
        database.execute("PRAGMA user_version = 3")
    prepare(file)
    assert HaltsTable(file).read() == Halts(GRID)
    HaltsTable(file).write(HALTS)
    prepare(file)
    assert HaltsTable(file).read() == HALTS


def test_what_is_written_takes_the_place_of_what_was(file: Path) -> None:
    table = HaltsTable(file)
    table.write(HALTS)
    table.write(Halts(MAIN))
    assert table.read() == Halts(MAIN)
    table.write(Halts())
    assert table.read() == Halts()


def test_a_write_that_fails_in_the_middle_lets_nothing_go(file: Path) -> None:
    table = HaltsTable(file)
    table.write(HALTS)
    with closing(connect(file)) as database, database:
        database.execute(
            "CREATE TRIGGER full BEFORE INSERT ON halts BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
        )
    with pytest.raises(JournalError, match=r"journal\.file .+: disk is full; "):
        table.write(Halts(ALL))
    assert table.read() == HALTS


def folder_in_its_place(file: Path) -> None:
    file.unlink()
    file.mkdir()


def no_database(file: Path) -> None:
    file.write_text("no database, " * 100)


def no_utf_8(file: Path) -> None:
    with closing(connect(file)) as database, database:
        database.execute("INSERT INTO halts (bot, key, since_ms) VALUES (CAST(x'ff' AS TEXT), NULL, 1)")


UNREADABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "gone": (Path.unlink, "unable to open database file; choose a writable path"),
    "a folder": (folder_in_its_place, "unable to open database file; choose a writable path"),
    "no database": (no_database, "file is not a database; name another file"),
    "no UTF-8": (no_utf_8, "damaged; move it away"),
}


@pytest.mark.parametrize(("spoil", "told"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_cannot_be_read_is_told_and_nothing_is_taken_for_no_halts(
    file: Path, spoil: Callable[[Path], object], told: str
) -> None:
    spoil(file)
    with pytest.raises(JournalError, match=told):
        HaltsTable(file).read()


def test_a_file_that_another_program_holds(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealgate.orders.journal.file.LOCK_WAIT_S", 0.0)
    with closing(sqlite3.connect(file)) as database:
        database.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalError, match="database is locked; stop the program that holds it open"):
            HaltsTable(file).write(HALTS)
