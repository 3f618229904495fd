"""A look into a journal that a gateway has open, that it left in a crash, and that it closed."""

from pathlib import Path

import pytest

from limits.test_status import kept
from sealgate.orders.journal import LimitsTable
from sealgate.orders.journal.file import Lock, connect, prepare
from sealgate.orders.journal.learned import Insight, look_into

[LIMIT] = kept(20.0, 1.0, age_s=10.0)
SUBJECTS = ("exchange key", "other key")
LEARNED = {"exchange key": [{**LIMIT, "age": 15.0}], "other key": []}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "journal.db"
    prepare(path)
    LimitsTable(path).keep({"exchange key": [LIMIT]}, 100.0)
    return path


def test_one_that_is_closed_is_left_as_it_was(file: Path) -> None:
    assert look_into(file, SUBJECTS, 105.0) == Insight(0, is_in_use=False, limits=LEARNED)
    assert list(file.parent.glob("journal.db*")) == [file]


def test_one_that_is_open_is_read_with_what_is_not_in_the_file_yet(file: Path) -> None:
    lock = Lock(file)
    database = connect(file)
    database.execute("UPDATE learned SET subject = 'other key'")
    database.commit()
    found = look_into(file, SUBJECTS, 105.0)
    database.close()
    lock.release()
    assert found is not None
    assert (found.is_in_use, [len(limits) for limits in found.limits.values()]) == (True, [0, 1])


def test_one_of_an_older_version_says_nothing(file: Path) -> None:
    database = connect(file)
    database.execute("PRAGMA user_version = 1")
    database.close()
    assert look_into(file, SUBJECTS, 105.0) is None
