"""What is deleted from the file, and what stays in it."""

import sqlite3
from pathlib import Path

from rig.journals import DONE, KEEPING, ORDER, UNKNOWN, order
from sealgate.orders.idempotency import Kept, Name
from sealgate.orders.journal import Keeping, Order, counts, orders
from sealgate.orders.journal.rows import Row, sent_row, settled_row
from sealgate.orders.journal.shedding import SettledKind
from sealgate.orders.journal.upkeep import look_after
from sealgate.orders.outcome import BotReply, Conclusion, Ending


def column(database: sqlite3.Connection, name: str) -> list[object]:
    return [value for (value,) in database.execute(f"SELECT {name} FROM orders ORDER BY rowid")]  # noqa: S608 - a test's


def keyed(number: int, bot: str = "grid") -> Order:
    return ORDER._replace(id=f"{bot}-{number}", bot=bot, idempotency_key=f"k-{number}")


def replied(number: int, size: int, bot: str = "grid") -> Row:
    return settled_row(
        keyed(number, bot), Ending(Conclusion.DONE, 0, BotReply(200, "OK", (), bytes(size))), number
    )


def test_old_orders_are_pruned_but_never_one_in_doubt(database: sqlite3.Connection) -> None:
    rows = [settled_row(order(number), DONE, number * 1000) for number in range(10)]
    doubtful = [sent_row(order(98)), settled_row(order(99), UNKNOWN, 0)]
    orders.write(database, [*rows, *doubtful])
    look_after(database, Keeping(5.0, 10**8), 10.0)
    assert column(database, "id") == [*(f"a1-{number}" for number in range(5, 10)), "a1-98", "a1-99"]


def test_the_file_has_a_bound_for_which_the_oldest_replies_go(
    file: Path, database: sqlite3.Connection
) -> None:
    keeping = Keeping(longest_s=10**6, most_bytes=5_000_000)
    orders.write(database, [replied(number, 10_000) for number in range(1000)])
    look_after(database, keeping, 10.0)
    look_after(database, keeping, 10.0)  # so that the file is cut, too
    assert keeping.most_bytes / 2 < file.stat().st_size <= keeping.most_bytes
    kept = [body is not None for body in column(database, "body")]
    assert len(kept) == 1000, "no key is forgotten"
    assert kept == sorted(kept), "the oldest went"
    assert any(kept)


def test_small_replies_give_room_too(database: sqlite3.Connection) -> None:
    """What is in a page beside others is given back only when the page is."""
    rows = [replied(number, 900, bot) for number in range(1000) for bot in ("one", "other")]
    orders.write(database, rows)
    before = None
    while before != (before := column(database, "head")):
        look_after(database, Keeping(10**9, 1_700_000), 10.0)
    assert len(before) == len(rows), "replies were enough"
    assert any(head is not None for head in before)


def test_what_has_no_key_and_then_keys_go_where_replies_are_not_enough(database: sqlite3.Connection) -> None:
    """A bound that nothing meets: all goes that may, and orders in doubt exceed the bound."""
    rows = [replied(1, 10), settled_row(order(2), DONE, 2), settled_row(keyed(3), UNKNOWN, 3)]
    orders.write(database, rows)
    look_after(database, Keeping(10**9, 1), 10.0)
    assert column(database, "id") == ["grid-3"]


def test_a_key_whose_reply_went_is_still_spent(database: sqlite3.Connection) -> None:
    orders.write(database, [settled_row(keyed(1), DONE, 1)])
    orders.drop(database, SettledKind.REPLIES, "grid", 100)
    (kept,) = orders.kept_replays(database, 0, 10, 1)
    assert kept == Kept(Name("grid", "spot", "k-1"), "d" * 64, Ending(Conclusion.DONE, ORDER.fence_ms), 0.0)


def test_an_order_whose_reply_went_counts_once_for_its_bots_policy(database: sqlite3.Connection) -> None:
    orders.write(database, [settled_row(keyed(1)._replace(counted=1), DONE, 1)])
    orders.drop(database, SettledKind.REPLIES, "grid", 100)
    assert [one.orders for one in counts.passed(database)] == [1]


def test_the_log_before_the_file_stays_small(file: Path, database: sqlite3.Connection) -> None:
    for turn in range(4):
        orders.write(database, [sent_row(order(turn * 1000 + number)) for number in range(1000)])
        look_after(database, KEEPING, 0.0)
    assert Path(f"{file}-wal").stat().st_size < 2_000_000
