"""A look into a journal that a gateway has open, and that it closed."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rig.kept_limit import kept
from sealgate.orders.journal.file import connect, prepare
from sealgate.orders.journal.insight import Insight, look_into
from sealgate.orders.journal.learned import write_limits
from sealgate.orders.journal.lock import Lock

[LIMIT] = kept(20.0, 1.0, age_s=10.0)
EXCHANGES = ("exchange", "other")
LEARNED = {"exchange key": [{**LIMIT, "age": 15.0}]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "journal.db"
    prepare(path)
    with closing(connect(path)) as database:
        write_limits(database, {"exchange key": [LIMIT]}, 100.0)
    return path


def test_one_that_is_closed_is_left_as_it_was(file: Path) -> None:
    assert look_into(file, EXCHANGES, 105.0) == Insight(0, is_in_use=False, limits=LEARNED)
    assert list(file.parent.glob("journal.db*")) == [file]


def test_one_that_is_open_is_read_with_what_is_not_in_the_file_yet(file: Path) -> None:
    lock = Lock(file)
    with closing(connect(file)) as database:
        with database:
            database.execute("UPDATE learned SET subject = 'other key'")
        found = look_into(file, EXCHANGES, 105.0)
    lock.release()
    assert found is not None
    assert (found.is_in_use, [len(limits) for limits in found.limits.values()]) == (True, [1])


def test_an_empty_one_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "empty.db"
    sqlite3.connect(file).close()
    assert look_into(file, EXCHANGES, 105.0) is None
