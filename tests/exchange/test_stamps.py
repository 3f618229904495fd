"""Timestamps that are signed: equal requests get different ones, none of the future and none that is old."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.exchange.stamps import Stamps

FURTHEST_MS = 500


def test_different_requests_share_a_millisecond() -> None:
    stamps = Stamps()
    assert [stamps.take(1000, content) for content in range(3)] == [1000] * 3


@pytest.mark.parametrize("gap_ms", [2, 100, 499, 500, 501, 5000])
def test_equal_requests_after_any_time_of_the_same_get_earlier_ones_too(gap_ms: int) -> None:
    """What was taken long ago neither is in the way, nor makes the next ones repeat themselves."""
    stamps = Stamps()
    taken = [stamps.take(10_000 + turn * gap_ms, 7) for turn in range(400) for _ in range(2)]
    assert len(set(taken)) == len(taken)


def test_the_largest_gap_of_late_is_filled() -> None:
    stamps = Stamps()
    nows = [*range(1000, 2000, 100), 1901, 1901]
    assert [stamps.take(now, 7) for now in nows] == [*range(1000, 2000, 100), 1901, 1499]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), max_size=30))
def test_no_pair_comes_twice_and_none_is_of_the_future(steps: list[tuple[int, int]]) -> None:
    stamps, now, taken = Stamps(), 1_790_000_000_000, []
    for passed, content in steps:
        now += passed
        taken.append((stamps.take(now, content), content))
        assert now - FURTHEST_MS <= taken[-1][0] <= now
    assert len(set(taken)) == len(taken)


@given(st.lists(st.tuples(st.integers(5, 600), st.integers(1, 5)), max_size=40))
def test_a_few_at_once_are_told_apart_however_long_it_goes_on(bursts: list[tuple[int, int]]) -> None:
    stamps, now, taken = Stamps(), 1_790_000_000_000, []
    for passed, count in bursts:
        now += passed
        taken += [stamps.take(now, 7) for _ in range(count)]
        assert now - FURTHEST_MS <= min(taken[-count:])
    assert len(set(taken)) == len(taken)


def test_a_flood_of_equal_requests_repeats_itself_rather_than_grow_old() -> None:
    stamps = Stamps()
    taken = [stamps.take(1_000_000, 7) for _ in range(3 * FURTHEST_MS)]
    assert min(taken) == 1_000_000 - FURTHEST_MS
    assert len(set(taken)) == FURTHEST_MS + 1


def test_what_it_remembers_is_bounded_and_the_oldest_goes() -> None:
    stamps = Stamps()
    for content in range(1025):
        stamps.take(1000, content)
    assert [stamps.take(1000, content) for content in (1024, 1, 0)] == [999, 999, 1000]


def test_a_clock_that_is_set_back_is_followed() -> None:
    stamps = Stamps()
    assert stamps.take(1_000_000, 7) == 1_000_000
    assert stamps.take(970_000, 7) == 970_000
    assert stamps.take(970_000, 7) == 969_999
