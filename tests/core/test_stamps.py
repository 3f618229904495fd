from hypothesis import given
from hypothesis import strategies as st

from sealgate.core.stamps import FURTHEST_MS, Stamps


def test_equal_requests_of_one_millisecond_get_earlier_ones() -> None:
    stamps = Stamps()
    assert [stamps.take(1000, 7) for _ in range(3)] == [1000, 999, 998]
    assert stamps.take(1001, 7) == 1001


def test_different_requests_share_a_millisecond() -> None:
    stamps = Stamps()
    assert [stamps.take(1000, content) for content in range(3)] == [1000] * 3


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), max_size=100))
def test_no_pair_comes_twice_and_none_is_of_the_future(steps: list[tuple[int, int]]) -> None:
    stamps, now, taken = Stamps(), 1_790_000_000_000, []
    for passed, content in steps:
        now += passed
        taken.append((stamps.take(now, content), content))
        assert now - FURTHEST_MS <= taken[-1][0] <= now
    assert len(set(taken)) == len(taken)


def test_a_flood_of_equal_requests_repeats_itself_rather_than_grow_old() -> None:
    stamps = Stamps()
    taken = [stamps.take(1_000_000, 7) for _ in range(3 * FURTHEST_MS)]
    assert min(taken) == 1_000_000 - FURTHEST_MS
    assert len(set(taken)) == FURTHEST_MS + 1


def test_what_it_remembers_is_bounded() -> None:
    stamps = Stamps()
    for content in range(5000):
        stamps.take(1000, content)
    assert len(stamps._taken) <= 1024


def test_a_clock_that_is_set_back_is_followed() -> None:
    stamps = Stamps()
    assert stamps.take(1_000_000, 7) == 1_000_000
    assert stamps.take(970_000, 7) == 970_000
    assert stamps.take(970_000, 7) == 969_999
