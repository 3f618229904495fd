"""What is counted for policies in the file: once, at its exchange, and gone where it was not sent."""

import sqlite3
from collections.abc import Sequence
from decimal import Decimal

import pytest

from rig.journals import order
from sealgate.orders.journal import Order, orders
from sealgate.orders.journal.counts import passed
from sealgate.orders.journal.rows import Row, sent_row, settled_row
from sealgate.orders.outcome import Conclusion, Ending
from sealgate.orders.policy import Counted

BIG, SMALL = Decimal("123456789012345678901234567890.1"), Decimal("0.00000000000000000000000001")


def counted(number: int = 1, **changed: object) -> Order:
    fields = {"counted": 2, "notional": "7.5", "sent_ms": 10_999, **changed}
    return order(number)._replace(**fields)  # type: ignore[arg-type]


def ended(one: Order, conclusion: Conclusion) -> Row:
    return settled_row(one, Ending(conclusion, 0), 1)


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (["sent"], [(10, 2, "7.5")]),
        (["sent", "done"], [(10, 2, "7.5")]),
        (["sent", "unknown"], [(10, 2, "7.5")]),
        (["sent", "refused"], [(10, 2, "0.0")]),
        (["sent", "not_sent"], []),
        (["not_sent"], []),  # its intent could not be written
        (["done"], [(10, 2, "7.5")]),
        (["refused"], [(10, 2, "0")]),
        (["sent", "sent later", "done later"], [(11, 2, "7.5")]),
        (["sent", "sent later", "refused later"], [(11, 2, "0.0")]),
        (["sent", "sent later", "not_sent later"], []),
        (["sent", "done", "done"], [(10, 2, "7.5")]),
    ],
)
def test_only_what_was_sent_counts_and_only_once(
    database: sqlite3.Connection,
    states: Sequence[str],
    expected: Sequence[tuple[int, int, str]],
    at_once: bool,
) -> None:
    rows = []
    for state, _, later in (state.partition(" ") for state in states):
        one = counted(sent_ms=11_000 if later else 10_999)
        rows.append(sent_row(one) if state == "sent" else ended(one, Conclusion(state)))
    for batch in [rows] if at_once else [[row] for row in rows]:
        orders.write(database, batch)
    assert list(passed(database)) == [
        Counted("grid", "spot", at_s, count, Decimal(worth)) for at_s, count, worth in expected
    ]


def test_what_was_not_sent_leaves_the_counts_of_others(database: sqlite3.Connection) -> None:
    one, other, free = (counted(number, counted=number, notional=str(number)) for number in (1, 2, 0))
    orders.write(database, [sent_row(one), sent_row(other), sent_row(free)])
    orders.write(database, [ended(one, Conclusion.NOT_SENT)])
    assert list(passed(database)) == [Counted("grid", "spot", 10, 2, Decimal(2))]


def test_each_bot_counts_at_each_exchange_by_itself(database: sqlite3.Connection) -> None:
    whose = [("grid", "spot"), ("grid", "perp"), ("maker", "spot")]
    rows = [sent_row(counted(number, bot=bot, exchange=name)) for number, (bot, name) in enumerate(whose)]
    orders.write(database, rows)
    assert {one[:2] for one in passed(database)} == set(whose)
    orders.write(database, [ended(counted(1, exchange="perp"), Conclusion.NOT_SENT)])
    assert {one[:2] for one in passed(database)} == {("grid", "spot"), ("maker", "spot")}


def test_no_digit_of_a_sum_is_lost(database: sqlite3.Connection) -> None:
    big, small = counted(1, notional=str(BIG)), counted(2, notional=str(SMALL))
    orders.write(database, [sent_row(big), sent_row(small)])
    (both,) = passed(database)
    assert both.notional == Decimal(f"{BIG}0000000000000000000000001")
    orders.write(database, [ended(big, Conclusion.NOT_SENT)])
    (left,) = passed(database)
    assert left.notional == SMALL


def test_what_is_older_than_a_day_is_forgotten_where_it_was_sent(database: sqlite3.Connection) -> None:
    day_ms = 86_400_000
    elsewhere = counted(3, exchange="perp")
    orders.write(database, [sent_row(counted(1)), sent_row(elsewhere)])
    orders.write(database, [sent_row(counted(2, sent_ms=10_999 + day_ms))])
    assert len(list(passed(database))) == 3
    orders.write(database, [sent_row(counted(4, sent_ms=11_999 + day_ms))])
    assert [(one.exchange, one.at_s) for one in passed(database)] == [
        ("perp", 10),
        ("spot", 86_410),
        ("spot", 86_411),
    ]


def test_a_row_that_no_gateway_wrote_is_damaged(database: sqlite3.Connection) -> None:
    with database:
        database.execute("INSERT INTO counted VALUES ('grid', 'spot', 1, 1, 'much')")
    with pytest.raises(sqlite3.DataError, match="damaged"):
        list(passed(database))
