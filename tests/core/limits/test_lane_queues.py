"""One lane's claims: each bot's in order, the bots by the tags that the line gives them."""

import pytest

from sealgate.core.limits.claims import Claim
from sealgate.core.limits.lane_queues import LaneQueues
from sealgate.core.routes import Lane


def claim(name: str, bot: str = "a", cost: float = 1.0, *, is_again: bool = False, serial: str = "") -> Claim:
    return Claim(name, bot, Lane.ORDER, 1e12, cost=cost, is_again=is_again, serial=serial)


def filled(tags: dict[str, float], *claims: Claim) -> LaneQueues:
    queues = LaneQueues(tags)
    for one in claims:
        queues.add(one)
    return queues


def emptied(queues: LaneQueues) -> list[str]:
    """Take out all claims; return their names in the order in which they came up."""
    names = []
    while queues:
        head = queues.head()
        names.append(head.id)
        queues.remove(head)
    return names


@pytest.mark.parametrize(
    ("claims", "order"),
    [
        pytest.param((claim("1"), claim("2"), claim("3")), ["1", "2", "3"], id="as they came"),
        pytest.param(
            (claim("1"), claim("2", is_again=True)), ["2", "1"], id="refused once: before the others"
        ),
        pytest.param((claim("1"), claim("2", "b")), ["2", "1"], id="the bot with the lowest tag first"),
        pytest.param((), [], id="nobody"),
    ],
)
def test_who_comes_up_when(claims: tuple[Claim, ...], order: list[str]) -> None:
    assert emptied(filled({"a": 2.0, "b": 1.0}, *claims)) == order


def test_a_bot_whose_tag_has_grown_is_put_right() -> None:
    tags = {"a": 1.0, "b": 2.0}
    queues = filled(tags, claim("1"), claim("2", "b"))
    tags["a"] = 3.0
    assert emptied(queues) == ["2", "1"]


def test_a_bot_that_left_and_comes_back_stands_in_line_once() -> None:
    queues = filled({"a": 1.0, "b": 2.0}, claim("1"), claim("2", "b"))
    queues.remove(claim("1"))
    queues.add(claim("3"))
    assert len(queues._heap) == 2
    assert emptied(queues) == ["3", "2"]
    queues.add(claim("4"))
    assert queues.head().id == "4"


def test_a_bot_that_left_is_forgotten_when_it_comes_up() -> None:
    queues = filled({"a": 1.0, "b": 2.0}, claim("1"), claim("2", "b"))
    queues.remove(claim("1"))
    assert queues.head().id == "2"
    queues.add(claim("3"))
    assert queues.head().id == "3"


def test_before_one_of_a_busy_serial_goes_the_first_of_another() -> None:
    waiting = [
        claim("1", serial="k"),
        claim("2", "b", serial="k"),
        claim("3", "b", serial="l"),
        claim("4", "c"),
    ]
    queues = filled({"a": 1.0, "b": 2.0, "c": 3.0}, *waiting)
    assert [queues.head(busy).id for busy in ((), ("l",), ("k",), ("k", "l"))] == ["1", "1", "3", "4"]
    queues.remove(waiting[3])
    assert queues.head(("k", "l")).id == "1"
    queues.remove(waiting[2])
    assert queues.head(("k",)).id == "1"


def test_what_waits_is_counted_by_bot_and_in_all() -> None:
    queues = filled({"a": 1.0, "b": 2.0}, claim("1", cost=2.0), claim("2", cost=3.0), claim("3", "b"))
    assert (queues.cost_of("a"), queues.cost_of("b"), queues.cost_of("c"), queues.cost) == (
        5.0,
        1.0,
        0.0,
        6.0,
    )
    assert dict(queues.depths()) == {"a": 2, "b": 1}
    queues.remove(claim("1", cost=2.0))
    assert (queues.cost_of("a"), queues.cost, bool(queues)) == (3.0, 4.0, True)
    queues.remove(claim("2", cost=3.0))
    queues.remove(claim("3", "b"))
    assert (queues.cost_of("a"), queues.cost, bool(queues)) == (0.0, 0.0, False)
