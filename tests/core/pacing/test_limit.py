import math

import pytest

from sealgate.core.pacing.explain import Kind
from sealgate.core.pacing.limit import Limit


def searched(most: float = math.inf) -> Limit:
    limit = Limit(20.0, 1.0, most)
    limit.search(0.0, 0.0)
    return limit


def go_on(limit: Limit, *, reads: float = 1.0) -> float:
    """Come to the next point of the search, with that part of reads; return its time."""
    now = limit.probe_at
    limit.probe(now, limit.n * (1 + limit.step * reads))
    return now


def test_nothing_happens_before_its_time() -> None:
    limit = searched()
    limit.probe(limit.probe_at - 0.001, 20.0)
    assert limit.step == 0.0


def test_reads_probe_and_orders_stay_at_what_held() -> None:
    limit = searched()
    go_on(limit)
    assert limit.allowed(is_read=True) == pytest.approx(20.4)
    assert limit.allowed(is_read=False) == 20.0


def test_steps_that_hold_double() -> None:
    limit = searched()
    steps = []
    for _ in range(8):
        go_on(limit)
        steps.append(limit.step)
    assert steps == [0.02, 0.04, 0.08, 0.16, 0.32, 0.35, 0.35, 0.35]


def test_only_what_the_reads_tried_is_believed() -> None:
    limit = searched()
    go_on(limit)
    go_on(limit, reads=0.95)
    assert limit.n == pytest.approx(20.38)


def test_without_reads_a_step_is_held_on() -> None:
    limit = searched()
    go_on(limit)
    go_on(limit, reads=0.1)
    assert (limit.n, limit.step) == (20.0, 0.02)


def test_a_failed_step_goes_back_and_halves_the_bracket() -> None:
    limit = searched()
    for _ in range(5):
        go_on(limit)
    held = limit.n
    limit.probe_failed(100.0)
    assert (limit.n, limit.step) == (held, 0.0)
    assert limit.failed == pytest.approx(held * 1.32)
    go_on(limit)
    assert limit.step == pytest.approx(0.16)


def test_a_narrow_bracket_rests_at_growing_distances() -> None:
    limit = searched()
    rests = []
    for _ in range(6):
        limit.failed, limit.step = limit.n * 1.02, 0.01
        now = go_on(limit)
        rests.append(limit.probe_at - now)
    assert rests == [60, 120, 240, 480, 600, 600]
    assert limit.failed == math.inf


def test_a_published_limit_is_not_probed_beyond() -> None:
    limit = searched(most=20.0)
    go_on(limit)
    assert limit.step == 0.0


def test_a_published_limit_is_come_back_to() -> None:
    limit = searched(most=20.0)
    limit.n = 19.9
    go_on(limit)
    go_on(limit)
    assert limit.n == 20.0


@pytest.mark.parametrize(
    ("accepted", "rate", "expected"),
    [(10.0, 99.0, 19.0), (1000.0, 99.0, 19.9), (1000.0, 10.0, 10.0), (0.0, 0.0, 0.5)],
)
def test_the_pace_is_lowered_by_how_dear_the_429_was(accepted: float, rate: float, expected: float) -> None:
    limit = searched()
    limit.lower(5.0, rate, accepted)
    assert limit.n == pytest.approx(expected)
    assert limit.failed == 20.0


def test_what_was_proven_is_not_overthrown() -> None:
    limit = searched()
    go_on(limit)
    go_on(limit)
    held = limit.n
    limit.lower(50.0, 1.0, 1.0)
    assert limit.n == pytest.approx(0.85 * held)


def test_a_fall_is_remembered() -> None:
    limit = searched()
    limit.fall(7.0, 10.0)
    assert (limit.n, limit.fell_at) == (10.0, 7.0)


def test_a_long_window_is_searched_in_small_steps() -> None:
    limit = Limit(1200.0, 60.0)
    limit.search(0.0, 30.0)
    assert limit.next_step == 0.025
    assert limit.rate == 20.0


def test_a_limit_that_held_is_lowered_by_steps_that_double() -> None:
    limit = Limit(20.0, 1.0, kind=Kind.FIXED, is_proven=True)
    limit.lower(5.0, 1.0, 1000.0)
    assert limit.n == pytest.approx(19.8)
    limit.lower(6.0, 1.0, 1000.0)
    assert limit.n == pytest.approx(19.404)
