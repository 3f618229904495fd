"""The file of a journal, and one that is made and open."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sealgate.orders.journal.file import connect, prepare


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def database(file: Path) -> Iterator[sqlite3.Connection]:
    prepare(file)
    with closing(connect(file)) as opened:
        yield opened
