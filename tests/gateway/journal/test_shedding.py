"""What is taken out of a full file, one round after the other: first what is worth least, of who has most."""

import sqlite3
from collections import Counter

import pytest

from gateway.journal.test_orders import DONE, ORDER, UNKNOWN
from sealgate.core.outcome import Conclusion, Ending
from sealgate.gateway.journal import ledger, orders
from sealgate.gateway.journal.ledger import Shedding
from sealgate.gateway.journal.orders import Shelf, sent_row, settled_row

BARE = Ending(Conclusion.DONE)

Left = Counter[tuple[Shelf, str]]


def fill(database: sqlite3.Connection, bot: str, count: int, ending: Ending, *, keyed: bool = True) -> None:
    """Let a bot have settled orders, or some in doubt."""
    (before,) = database.execute("SELECT count(*) FROM orders").fetchone()
    made = [ORDER._replace(id=f"{before + number}", bot=bot) for number in range(count)]
    kept = made if keyed else [one._replace(idempotency_key=None, digest=None) for one in made]
    orders.write(database, [settled_row(one, ending, 0) for one in kept])


def left(database: sqlite3.Connection) -> Left:
    return Counter({(shelf, bot): count for shelf, bot, count in orders.count_settled(database)})


def test_where_nothing_is_settled_nothing_goes(database: sqlite3.Connection) -> None:
    fill(database, "grid", 3, UNKNOWN)
    orders.write(database, [sent_row(ORDER._replace(id="under way"))])
    assert not Shedding(database).shed()
    assert database.execute("SELECT count(*) FROM orders").fetchone() == (4,)


def test_one_after_the_other_until_only_doubts_are_left(
    database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "_AT_ONCE", 2)
    fill(database, "grid", 2, DONE)
    fill(database, "grid", 1, BARE, keyed=False)
    fill(database, "watch", 2, BARE)
    round_ = Shedding(database)
    seen = [left(database)]
    while round_.shed():
        seen.append(left(database))
    replies, keyless, keyed = Shelf
    assert seen[:4] == [
        Counter({(replies, "grid"): 2, (keyless, "grid"): 1, (keyed, "watch"): 2}),
        Counter({(replies, "grid"): 1, (keyless, "grid"): 1, (keyed, "grid"): 1, (keyed, "watch"): 2}),
        Counter({(keyless, "grid"): 1, (keyed, "grid"): 2, (keyed, "watch"): 2}),
        Counter({(keyed, "grid"): 2, (keyed, "watch"): 2}),
    ]
    assert [one.total() for one in seen[4:]] == [3, 2, 1, 0]
    # Where two have as many, either may be first; then it is the other's turn.
    assert set(seen[5].values()) == {1}


def test_a_tenth_goes_at_once_and_never_more_than_a_bound(
    database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(database, "grid", 30, BARE)
    round_ = Shedding(database)
    assert round_.shed()
    assert left(database)[Shelf.KEYED, "grid"] == 26
    monkeypatch.setattr(ledger, "_AT_ONCE", 2)
    assert round_.shed()
    assert left(database)[Shelf.KEYED, "grid"] == 24


def test_who_has_most_with_its_doubts_gives_first_and_then_nobody_does(database: sqlite3.Connection) -> None:
    """So that no bot's doubts make another's keys forgotten; the file may then exceed its bound."""
    fill(database, "doubtful", 3, UNKNOWN)
    fill(database, "doubtful", 1, BARE)
    fill(database, "calm", 2, BARE)
    round_ = Shedding(database)
    assert round_.shed()
    assert left(database) == Counter({(Shelf.KEYED, "calm"): 2})
    assert not round_.shed()


def test_replies_go_whoever_has_doubts(database: sqlite3.Connection) -> None:
    fill(database, "doubtful", 3, UNKNOWN)
    fill(database, "calm", 1, DONE)
    assert Shedding(database).shed()
    assert left(database) == Counter({(Shelf.KEYED, "calm"): 1})
