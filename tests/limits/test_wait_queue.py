import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sealgate.limits.claims import Claim
from sealgate.limits.turns import Turns
from sealgate.limits.wait_queue import WaitQueue
from sealgate.venues.routes import Lane

CANCEL, ORDER, READ = Lane.CANCEL, Lane.ORDER, Lane.READ


def claim(name: str, lane: Lane = ORDER, bot: str = "a", **more: float) -> Claim:
    return Claim(name, bot, lane, more.pop("give_up_at", 100.0), **more)  # type: ignore[arg-type] # ids and times


class Line:
    """A queue in which all claims wait for one pool."""

    def __init__(self) -> None:
        self.queue, self.turns = WaitQueue(), Turns()

    def __len__(self) -> int:
        return len(self.queue)

    def __contains__(self, one: Claim) -> bool:
        return one in self.queue

    def add(self, one: Claim) -> None:
        self.queue.add(one, (self.turns,))

    def remove(self, one: Claim) -> None:
        self.queue.remove(one)

    def heads(self) -> Iterator[Claim]:
        return self.queue.heads()

    def send_head(self, one: Claim, now: float, *, is_probing: bool = False) -> None:
        self.queue.remove(one)
        self.turns.charge(one, now, is_probing=is_probing)

    def ended(self, now: float) -> list[Claim]:
        return [one for group in self.queue.groups() for one in self.queue.ended(group, now)]

    def next_end(self) -> float:
        return self.queue.next_end()

    def cost_ahead(self, one: Claim, now: float, slot_s: float, *, is_apart: bool = False) -> float:
        return self.queue.cost_ahead(
            one, self.queue.groups_at("all"), self.turns, now, slot_s, is_apart=is_apart
        )

    def depths(self) -> Counter[tuple[Lane, str]]:
        return Counter({(lane, bot): count for (_, lane, bot), count in self.queue.depths().items()})


def served(line: Line, count: int, *, is_probing: bool = False) -> list[Claim]:
    heads = []
    for _ in range(count):
        head = next(line.heads())
        line.send_head(head, 0.0, is_probing=is_probing)
        heads.append(head)
    return heads


def test_cancels_before_orders_before_reads() -> None:
    line = Line()
    for name, lane in (("r", READ), ("o", ORDER), ("c", CANCEL)):
        line.add(claim(name, lane))
    assert [one.id for one in served(line, 3)] == ["c", "o", "r"]
    assert list(line.heads()) == []


@pytest.mark.parametrize(
    ("cost", "order"),
    [
        pytest.param(1.0, ["c", "c1", "c2", "o", "o1"], id="a tenth of a request"),
        pytest.param(9.0, ["c", "c1", "o", "c2", "o1"], id="nine tenths, and one more with the next"),
        pytest.param(10.0, ["c", "o", "c1", "c2", "o1"], id="a request"),
        pytest.param(20.0, ["c", "o", "o1", "c1", "c2"], id="two"),
    ],
)
def test_a_lower_lane_is_owed_a_tenth_of_what_goes_while_it_waits(cost: float, order: list[str]) -> None:
    line = Line()
    for name, lane in (("o", ORDER), ("o1", ORDER), ("c1", CANCEL), ("c2", CANCEL)):
        line.add(claim(name, lane, is_again=name == "o"))
    line.add(claim("c", CANCEL, cost=cost, is_again=True))
    assert [one.id for one in served(line, 5)] == order


def test_a_lane_that_gave_up_keeps_what_it_earned() -> None:
    line = Line()
    line.add(claim("o"))
    line.add(claim("c", CANCEL, cost=10.0))
    served(line, 1)
    line.remove(claim("o"))
    line.add(claim("c1", CANCEL))
    served(line, 1)
    line.add(claim("o1"))
    line.add(claim("c2", CANCEL))
    assert [one.id for one in served(line, 2)] == ["o1", "c2"]


def test_a_lane_that_is_away_saves_up_one_request_and_no_more() -> None:
    line = Line()
    for index in range(50):
        line.add(claim(f"c{index}", CANCEL))
    served(line, 30)
    for index in range(5):
        line.add(claim(f"r{index}", READ))
    assert [one.lane for one in served(line, 11)] == [READ, *[CANCEL] * 9, READ]


def test_a_costly_request_pays_its_lanes_tenth_in_full() -> None:
    line = Line()
    for index in range(100):
        line.add(claim(f"o{index}"))
        line.add(claim(f"r{index}", READ, cost=5.0))
    lanes = [one.lane for one in served(line, 100)]
    assert lanes.count(READ) in (2, 3)  # a tenth of the cost: 45 orders between two of them


def test_reads_get_more_while_the_limit_is_probed() -> None:
    line = Line()
    for index in range(100):
        line.add(claim(f"o{index}", ORDER))
        line.add(claim(f"r{index}", READ))
    lanes = [one.lane for one in served(line, 100, is_probing=True)]
    assert 20 <= lanes.count(READ) <= 40


def test_shares_go_by_weight_and_cost() -> None:
    line = Line()
    for index in range(300):
        line.add(claim(f"a{index}", bot="a", weight=1.0))
        line.add(claim(f"b{index}", bot="b", weight=2.0))
        line.add(claim(f"c{index}", bot="c", weight=1.0, cost=2.0))
    bots = [one.bot for one in served(line, 70)]
    assert [bots.count(bot) for bot in "abc"] == pytest.approx([20, 40, 10], abs=2)


def test_a_bot_that_asks_little_is_not_behind_one_that_floods() -> None:
    line = Line()
    for index in range(500):
        line.add(claim(f"a{index}", bot="a"))
    served(line, 100)
    line.add(claim("b", bot="b"))
    assert "b" in [one.id for one in served(line, 2)]


def test_nobody_saves_up_while_away() -> None:
    line = Line()
    line.add(claim("b0", bot="b"))
    served(line, 1)
    for index in range(300):
        line.add(claim(f"a{index}", bot="a"))
    served(line, 100)
    for index in range(300):
        line.add(claim(f"b{index}", bot="b"))
    bots = [one.bot for one in served(line, 20)]
    assert bots.count("a") == pytest.approx(10, abs=1)


def test_claims_end_when_their_time_is_over() -> None:
    line = Line()
    line.add(claim("late", give_up_at=1.0))
    line.add(claim("long", give_up_at=9.0))
    line.add(claim("gone", give_up_at=2.0))
    line.remove(claim("gone"))
    assert line.next_end() == 1.0
    assert [one.id for one in line.ended(5.0)] == ["late"]
    assert line.next_end() == 9.0
    assert claim("long") in line
    served(line, 1)
    assert line.next_end() == math.inf
    assert len(line) == 0


@pytest.mark.parametrize(
    ("lane", "bot", "expected"),
    [
        (CANCEL, "b", 0.0),  # of equal shares the first by name goes first
        (CANCEL, "d", 1.0),  # behind the other cancel only
        (ORDER, "a", 5.0),  # the cancel; of its own two and two more bots' as much, but there are only four
        (
            ORDER,
            "c",
            3.0,
        ),  # the cancel; one order each of the two bots that are due as it is, and first by name
        (
            READ,
            "d",
            5.0,
        ),  # all cancels and orders; bot b, whose read was there before, has had its share then
    ],
)
def test_the_cost_ahead_is_by_rank_and_share(lane: Lane, bot: str, expected: float) -> None:
    line = Line()
    waiting = [(CANCEL, "c"), (ORDER, "a"), (ORDER, "a"), (ORDER, "b"), (ORDER, "b"), (READ, "b")]
    for index, (its_lane, its_bot) in enumerate(waiting):
        line.add(claim(str(index), its_lane, its_bot))
    assert line.cost_ahead(claim("x", lane, bot), 0.0, 1.0) == expected


def test_a_read_behind_many_orders_waits_for_its_tenth_and_no_longer() -> None:
    line = Line()
    for index in range(100):
        line.add(claim(str(index)))
    assert line.cost_ahead(claim("r", READ, "b"), 0.0, 1.0) == 10.0
    served(line, 4)
    assert line.cost_ahead(claim("r", READ, "b"), 0.0, 1.0) == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        pytest.param(0, 1.0, id="none of late: only what waits"),
        pytest.param(5, 3.0, id="half of what could go: it counts twice"),
        pytest.param(10, 9.0, id="all: its tenth is left, and a tenth of a request is earned"),
    ],
)
def test_those_of_higher_lanes_that_will_come_are_counted_by_those_of_late(
    gone: int, expected: float
) -> None:
    line = Line()
    for index in range(gone):
        line.add(claim(str(index)))
        line.send_head(claim(str(index)), 20.0, is_probing=False)
    line.add(claim("r", READ, "c"))
    line.send_head(claim("r", READ, "c"), 20.0, is_probing=False)
    line.add(claim("o"))
    assert line.cost_ahead(claim("x", READ, "b"), 25.0, 1.0) == pytest.approx(expected)


def test_a_bot_of_twice_the_weight_waits_for_half_as_much() -> None:
    line = Line()
    for index in range(2):
        line.add(claim(f"a{index}", weight=2.0))
    for index in range(4):
        line.add(claim(f"b{index}", bot="b"))
    assert line.cost_ahead(claim("x", weight=2.0), 0.0, 1.0) == 3.0


def test_a_bot_that_was_served_waits_for_what_the_others_are_due_since() -> None:
    line = Line()
    line.add(claim("1"))
    served(line, 1)
    line.add(claim("2"))
    for name in "345":
        line.add(claim(name, bot="b"))
    assert line.cost_ahead(claim("6"), 0.0, 1.0) == 3.0


def test_one_that_was_refused_goes_before_its_bots_others() -> None:
    line = Line()
    for name, bot in (("1", "a"), ("2", "a"), ("3", "b")):
        line.add(claim(name, bot=bot))
    again = replace(claim("4"), is_again=True)
    assert line.cost_ahead(again, 0.0, 1.0) == 0.0
    line.add(again)
    assert [one.id for one in served(line, 1)] == ["4"]


def test_a_cancel_waits_only_for_those_of_bots_that_come_up_before() -> None:
    line = Line()
    for name in "12":
        line.add(claim(name))
    served(line, 2)  # so bot a has had its share
    for name in "345":
        line.add(claim(name, CANCEL))
    assert line.cost_ahead(claim("x", CANCEL, "b"), 0.0, 1.0) == 0.0
    line.add(claim("x", CANCEL, "b"))
    assert line.cost_ahead(claim("6", CANCEL), 0.0, 1.0) == 4.0
    assert [one.id for one in served(line, 2)] == ["x", "3"]


def test_a_bot_that_left_has_no_share() -> None:
    line = Line()
    for name, bot in (("1", "a"), ("2", "a"), ("3", "b"), ("4", "b"), ("5", "b"), ("6", "c")):
        line.add(claim(name, bot=bot))
    line.remove(claim("6", bot="c"))
    assert line.cost_ahead(claim("7"), 0.0, 1.0) == 4.0


def test_what_waits_in_a_higher_lane_counts_towards_a_bots_share_of_a_lower_one() -> None:
    line = Line()
    for name, bot, lane in (("1", "a", ORDER), ("2", "b", READ), ("3", "b", READ)):
        line.add(claim(name, lane, bot))
    assert line.cost_ahead(claim("4", READ), 0.0, 1.0) == 2.0  # the order, and one read of the other bot
    assert [one.id for one in served(line, 3)] == ["1", "2", "3"]


def test_a_lower_lane_that_is_owed_its_tenth_goes_first() -> None:
    line = Line()
    for number in range(10):
        line.add(claim(f"{number}"))
    served(line, 10)
    for name, lane in (("read", READ), ("order", ORDER)):
        line.add(claim(name, lane))
    assert line.cost_ahead(claim("next"), 0.0, 1.0) == pytest.approx(2.0, abs=0.2)


def test_use_without_contention_is_no_debt() -> None:
    line = Line()
    for number in range(1000):
        line.add(claim(f"early{number}", bot="early"))
        served(line, 1)
    for number in range(100):
        for bot in ("late", "early"):
            line.add(claim(f"{bot} later {number}", bot=bot))
    assert 40 <= [one.bot for one in served(line, 100)].count("early") <= 60


@pytest.mark.parametrize(
    ("dash", "grid", "maker", "expected"),
    [
        pytest.param(0.1, 1.0, 1.0, 60, id="equal"),
        pytest.param(1.0, 2.0, 4.0, 40, id="half of the other's"),
        pytest.param(1.0, 1.0, 9.0, 12, id="little"),
    ],
)
def test_a_bot_with_one_order_at_a_time_gets_its_share_whatever_others_read(
    dash: float, grid: float, maker: float, expected: int
) -> None:
    """A dashboard's reads have their tenth whatever its weight: they move nobody's place among the orders."""
    line = Line()
    waiting = {"dash": (READ, dash), "grid": (ORDER, grid)}
    for index in range(300):
        line.add(claim(f"m{index}", bot="maker", weight=maker))
    orders = []
    back: list[str] = ["dash", "grid"]
    for number in range(135):
        for bot in back:
            lane, weight = waiting[bot]
            line.add(claim(f"{bot}{number}", lane, bot, weight=weight))
        head = served(line, 1)[0]
        back = [head.bot] if head.bot in waiting else []
        if head.lane is ORDER:
            orders.append(head.bot)
    assert orders.count("grid") == pytest.approx(expected, abs=2)


def test_a_bots_reads_hold_back_none_of_its_orders() -> None:
    line = Line()
    for number in range(300):
        line.add(claim(f"o{number}", bot="maker", weight=20.0))
        line.add(claim(f"r{number}", READ, "grid"))
    served(line, 200)
    line.add(claim("order", bot="grid"))
    assert "order" in [one.id for one in served(line, 3)]


def test_one_that_comes_back_to_read_is_not_behind_a_reader_for_what_others_ordered() -> None:
    line = Line()
    for number in range(300):
        line.add(claim(f"r{number}", READ, "dash"))
        line.add(claim(f"o{number}", bot="maker"))
    served(line, 200)
    line.add(claim("read", READ, "grid"))
    assert "read" in [one.id for one in served(line, 25)]
