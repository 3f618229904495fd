"""The tables: their columns are those of an order, and the questions that are asked use the indices."""

import sqlite3

import pytest

from gateway.journal.test_orders import DONE, ORDER, REPLY, UNKNOWN, order
from sealgate.core.outcome import Conclusion, Ending
from sealgate.gateway.journal import Order, orders
from sealgate.gateway.journal.file import IN_DOUBT, ORDERS, SCHEMA, SETTLED
from sealgate.gateway.journal.orders import Row, Shelf, sent_row, settled_row


def test_an_order_fills_the_first_columns() -> None:
    assert tuple(ORDERS)[: len(Order._fields)] == Order._fields
    assert len(ORDERS) == len(sent_row(ORDER)) == len(settled_row(ORDER, DONE, 0))


def test_they_can_be_made_twice(database: sqlite3.Connection) -> None:
    orders.write(database, [sent_row(ORDER)])
    database.executescript(SCHEMA)
    assert database.execute("SELECT count(*) FROM orders").fetchone() == (1,)


STATES: dict[str, tuple[Row, bool, bool]] = {
    "under way": (sent_row(ORDER), False, False),
    "in doubt": (settled_row(ORDER, UNKNOWN, 0), True, False),
    "done": (settled_row(ORDER, DONE, 0), False, True),
    "refused": (settled_row(ORDER, Ending(Conclusion.REFUSED), 0), False, True),
    "not sent": (settled_row(ORDER, Ending(Conclusion.NOT_SENT), 0), False, True),
}


@pytest.mark.parametrize(("row", "in_doubt", "settled"), STATES.values(), ids=STATES)
def test_no_order_is_in_doubt_and_settled(
    database: sqlite3.Connection, row: Row, *, in_doubt: bool, settled: bool
) -> None:
    orders.write(database, [row])
    found = database.execute(f"SELECT {IN_DOUBT}, {SETTLED} FROM orders").fetchone()  # noqa: S608 - our own
    assert found == (in_doubt, settled)


SHELVES = {
    "with its reply": (settled_row(ORDER, DONE, 0), Shelf.REPLIES),
    "with its key alone": (settled_row(ORDER, Ending(Conclusion.DONE), 0), Shelf.KEYED),
    "without a key": (settled_row(order(1), Ending(Conclusion.DONE, 0, REPLY), 0), Shelf.KEYLESS),
}


@pytest.mark.parametrize(("row", "shelf"), SHELVES.values(), ids=SHELVES)
def test_what_a_settled_order_is_worth(database: sqlite3.Connection, row: Row, shelf: Shelf) -> None:
    orders.write(database, [row])
    assert list(orders.count_settled(database)) == [(shelf, "grid", 1)]


ASKED = {
    "orders in doubt": (orders._DOUBTS, (1,), "orders_in_doubt"),
    "how many in doubt": (orders._DOUBTS_COUNT, (), "orders_in_doubt"),
    "how many on each shelf": (orders._COUNTS, (), "orders_settled"),
    "the oldest on a shelf": (orders._OLDEST, (0, "grid", 1), "orders_settled"),
}


@pytest.mark.parametrize(("question", "values", "index"), ASKED.values(), ids=ASKED)
def test_an_index_answers_without_a_sort(
    database: sqlite3.Connection, question: str, values: tuple[object, ...], index: str
) -> None:
    """A file of many orders is looked after once a second."""
    plan = [row[-1] for row in database.execute(f"EXPLAIN QUERY PLAN {question}", values)]
    assert len(plan) == 1
    assert index in plan[0]
