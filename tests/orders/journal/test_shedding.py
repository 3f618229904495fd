"""Whose rows go first where the file is too large."""

from collections import Counter

from sealgate.orders.journal.shedding import SettledKind, Shed, Shedding

REPLIES, KEYLESS, KEYED = SettledKind


def test_replies_go_first_then_rows_without_a_key_then_keys() -> None:
    shedding = Shedding({kind: Counter(grid=1) for kind in SettledKind}, Counter())
    assert [shedding.next() for _ in range(5)] == [
        Shed(REPLIES, "grid", 1),
        Shed(KEYLESS, "grid", 1),
        Shed(KEYED, "grid", 1),
        Shed(KEYED, "grid", 1),  # the row that has lost its reply
        None,
    ]


def test_the_bot_that_has_most_gives_a_tenth_or_a_hundred_rows() -> None:
    shedding = Shedding({KEYED: Counter(calm=50, busy=2000)}, Counter())
    assert shedding.next() == Shed(KEYED, "busy", 100)
    shedding = Shedding({KEYED: Counter(calm=50, busy=500)}, Counter())
    assert shedding.next() == Shed(KEYED, "busy", 51)


def shed_to(rows: int, settled: Counter[str], doubts: Counter[str]) -> Counter[str]:
    """Return what is left of settled keys once no more than so many rows are left, or nothing more may go."""
    shedding, left = Shedding({KEYED: settled}, doubts), Counter(settled)
    while (left + doubts).total() > rows and (shed := shedding.next()) is not None:
        left[shed.bot] -= shed.most
    return left


def test_no_bot_makes_anothers_keys_forgotten() -> None:
    left = shed_to(400, Counter(calm=50, busy=4950), Counter())
    assert left["calm"] == 50
    assert 300 < left["busy"] <= 350


def test_nor_by_orders_in_doubt_which_never_go() -> None:
    assert shed_to(400, Counter(calm=50), Counter(busy=4950)) == Counter(calm=50)
    assert shed_to(400, Counter(calm=50, busy=300), Counter(busy=4950)) == Counter(calm=50)


def test_bots_that_fill_the_file_together_share_it() -> None:
    left = shed_to(400, Counter(one=2000, other=2000), Counter())
    assert min(left.values()) > 0.8 * max(left.values()) > 0
