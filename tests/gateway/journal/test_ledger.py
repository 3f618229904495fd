"""The open file of orders in one pair of hands: when it is opened, what closing forgives, and its rounds."""

import sqlite3
from pathlib import Path

import pytest

from gateway.journal.test_orders import DONE, KEEPING, ORDER, UNKNOWN, order, read
from sealgate.core.outcome import Conclusion, Ending
from sealgate.gateway.journal import JournalError, ledger, orders
from sealgate.gateway.journal.file import JournalMovedError
from sealgate.gateway.journal.ledger import Keeping, Ledger
from sealgate.gateway.journal.orders import settled_row

WALL = 1_790_000_000.0
BARE = Ending(Conclusion.DONE)


def test_making_it_makes_the_file_and_leaves_it_closed(file: Path) -> None:
    made = Ledger(file, KEEPING)
    assert list(file.parent.iterdir()) == [file]
    made.close()


def test_what_was_closed_is_opened_anew_by_the_next_write(file: Path) -> None:
    made = Ledger(file, KEEPING)
    made.write([settled_row(ORDER, DONE, 0)])
    made.close()
    made.close()
    made.write([settled_row(order(2), DONE, 0)])
    made.close()
    assert read(file, "id") == [("a1-1",), ("a1-2",)]


def test_doubts_are_read_when_there_may_be_new_ones(file: Path) -> None:
    made = Ledger(file, KEEPING)
    made.write([settled_row(ORDER, UNKNOWN, 0)])
    assert (made.in_doubt, [doubt.id for doubt in made.doubts]) == (1, ["a1-1"])
    made.write([settled_row(ORDER, DONE, 0)])
    assert made.in_doubt == 1, "an ending is no reason to read them"
    made.look_after(WALL)
    assert (made.in_doubt, made.doubts) == (0, ())
    made.close()


def test_a_connection_that_fails_can_be_closed(file: Path) -> None:
    made = Ledger(file, KEEPING)
    made.write([settled_row(ORDER, DONE, 0)])
    assert made._open is not None
    made._open.close()
    with pytest.raises(sqlite3.ProgrammingError):
        made.write([])
    made.close()
    made.write([settled_row(ORDER, DONE, 0)])
    made.close()


def test_a_file_that_was_damaged_meanwhile_is_not_opened_again(file: Path) -> None:
    made = Ledger(file, KEEPING)
    content = file.read_bytes()
    with file.open("r+b") as raw:
        raw.write(content[:100] + b"\xff" * (len(content) - 100))
    with pytest.raises((JournalError, sqlite3.DatabaseError), match=r"damaged|malformed"):
        made.write([])


def test_another_file_in_its_place_is_not_written_to(file: Path) -> None:
    made = Ledger(file, KEEPING)
    made.close()
    file.rename(file.with_suffix(".old"))
    Ledger(file, KEEPING)
    with pytest.raises(JournalMovedError, match="another file is in its place"):
        made.write([settled_row(ORDER, DONE, 0)])
    assert read(file, "id") == []


def test_a_round_has_a_bound_and_the_next_goes_on(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No order may wait for the pruning of a million old ones."""
    monkeypatch.setattr(ledger, "_PRUNES", 2)
    monkeypatch.setattr(ledger, "_PRUNED_AT_ONCE", 3)
    made = Ledger(file, KEEPING)
    made.write([settled_row(order(number), BARE, 0) for number in range(8)])
    left = []
    for _ in range(3):
        made.look_after(WALL)
        left.append(len(read(file, "id")))
    made.close()
    assert left == [2, 0, 0]


def test_what_is_young_goes_only_where_the_file_is_too_large(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "_PRUNES", 1)
    made = Ledger(file, Keeping(longest_s=3600.0, most_bytes=0))
    young_ms = int(WALL * 1000)
    made.write([settled_row(order(number), BARE, young_ms) for number in range(25)])
    made.look_after(WALL)
    assert len(read(file, "id")) == 22
    monkeypatch.setattr(orders, "used_bytes", lambda _: 0)
    made.look_after(WALL)
    made.close()
    assert len(read(file, "id")) == 22
