import pytest

from sealgate.core.pacing.in_flight import InFlight


def episode(under_way: InFlight, accepted: int) -> None:
    """Send one more than are accepted, all at once; the last one is refused."""
    for index in range(accepted + 1):
        under_way.sent(str(index), 0.1 * index)
    under_way.refused(str(accepted), 0.01, is_first=True)
    for index in range(accepted):
        under_way.accepted(str(index))


def test_a_small_limit_on_requests_at_a_time_is_tried_after_one_episode() -> None:
    under_way = InFlight()
    episode(under_way, 4)
    assert under_way.cap == 4
    for name in "abcd":
        assert under_way.has_room()
        under_way.sent(name, 9.0)
    assert not under_way.has_room()
    under_way.over("a")
    assert under_way.has_room()
    assert len(under_way) == 3


def test_a_large_one_is_believed_once_episodes_agree() -> None:
    under_way = InFlight()
    episode(under_way, 20)
    assert under_way.is_suspected
    assert under_way.cap is None
    episode(under_way, 20)
    assert under_way.cap == 20


def test_what_is_accepted_right_after_a_refusal_shows_it() -> None:
    under_way = InFlight()
    for index in range(14):
        under_way.sent(str(index), 0.1 * index)
    under_way.refused("10", 0.01, is_first=True)
    under_way.accepted("11")
    assert under_way.cap is None
    under_way.accepted("12", is_interleaved=True)
    assert under_way.cap is None
    under_way.accepted("13", is_interleaved=True)
    assert under_way.cap == 10


def test_nothing_is_suspected_before_an_episode_nor_with_few_under_way() -> None:
    under_way = InFlight()
    assert not under_way.is_suspected
    episode(under_way, 2)
    assert not under_way.is_suspected


def test_a_burst_that_goes_through_refutes_it() -> None:
    under_way = InFlight()
    episode(under_way, 4)
    for index in range(9):
        under_way.sent(str(index), 0.1 * index)
    under_way.accepted("8")
    assert under_way.cap is None


def test_a_refusal_with_few_under_way_refutes_it() -> None:
    under_way = InFlight()
    episode(under_way, 4)
    episode(under_way, 1)
    assert under_way.cap is None


def test_what_was_refused_is_under_way_for_nobody_after_it() -> None:
    under_way = InFlight()
    for index in range(12):
        under_way.sent(str(index), 0.1 * index)
    for index in range(4, 11):
        under_way.refused(str(index), 0.01, is_first=index == 4)
    under_way.accepted("11")
    assert under_way.cap == 4


@pytest.mark.parametrize(
    ("later", "cap"),
    [
        pytest.param(0.501, 3, id="right after"),
        pytest.param(0.75, 3, id="as late as arrivals differ"),
        pytest.param(0.76, None, id="too late"),
    ],
)
def test_what_was_sent_right_after_may_have_overtaken_it(later: float, cap: int | None) -> None:
    under_way = InFlight()
    for index, at in enumerate((0.1, 0.2, 0.5, later)):
        under_way.sent(str(index), at)
    under_way.refused("2", 0.25, is_first=True)
    assert under_way.cap == cap


@pytest.mark.parametrize(("accepted", "cap"), [(8, 8), (9, None)])
def test_what_is_few_enough_to_be_tried_after_one_episode(accepted: int, cap: int | None) -> None:
    under_way = InFlight()
    episode(under_way, accepted)
    assert under_way.cap == cap


@pytest.mark.parametrize(("last", "cap"), [("7", 4), ("8", None)])
def test_a_limit_that_is_believed_bears_twice_as_many_under_way_here(last: str, cap: int | None) -> None:
    under_way = InFlight()
    episode(under_way, 4)
    for index in range(9):
        under_way.sent(str(index), 0.1 * index)
    under_way.accepted(last)
    assert under_way.cap == cap


@pytest.mark.parametrize(("last", "cap"), [("20", 10), ("21", None)])
def test_what_is_accepted_right_after_a_refusal_may_be_twice_as_many(last: str, cap: int | None) -> None:
    under_way = InFlight()
    for index in range(22):
        under_way.sent(str(index), 0.1 * index)
    under_way.refused("10", 0.01, is_first=True)
    under_way.accepted("12", is_interleaved=True)
    under_way.accepted(last, is_interleaved=True)
    assert under_way.cap == cap
