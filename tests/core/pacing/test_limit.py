import math

import pytest

from sealgate.core.pacing.episode import Episode
from sealgate.core.pacing.limit import Limit
from sealgate.core.pacing.reading import Kind
from sealgate.core.pacing.sent_log import LimitScope


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


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [
        pytest.param(Limit(20.0, 1.0), 2.5, id="a window and a half, and a second"),
        pytest.param(Limit(20.0, 60.0), 91.0, id="a long window"),
        pytest.param(Limit(20.0, 60.0, kind=Kind.BUCKET), 2.5, id="a bucket's window is none"),
        pytest.param(Limit(20.0, 1.0, step=0.1), 3.25, id="until a step came to more than a request"),
        pytest.param(Limit(20.0, 2.0, step=0.1), 5.5, id="a step of a longer window"),
        pytest.param(Limit(20.0, 1.0, step=0.1, failed=30.0), 13.25, id="as long as a burst lasts"),
        pytest.param(Limit(20.0, 1.0, step=0.02, failed=30.0), 26.25, id="but not the longest burst"),
        pytest.param(
            Limit(20.0, 1.0, kind=Kind.FIXED, step=0.1, failed=30.0), 3.25, id="a fixed window has no burst"
        ),
        pytest.param(
            Limit(20.0, 1.0, kind=Kind.SLIDING, step=0.1, failed=30.0), 3.25, id="nor has a sliding one"
        ),
    ],
)
def test_how_long_a_step_must_hold(limit: Limit, seconds: float) -> None:
    assert limit.hold_s() == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("limit", "blur_s", "step"),
    [
        pytest.param(Limit(20.0, 1.0), 0.0, 0.02, id="the least"),
        pytest.param(Limit(20.0, 1.0, kind=Kind.BUCKET), 0.0, 0.02, id="the least of a bucket"),
        pytest.param(Limit(20.0, 1.0, kind=Kind.FIXED), 0.0, 0.05, id="a whole request"),
        pytest.param(Limit(20.0, 1.0, kind=Kind.SLIDING), 0.0, 0.05, id="a whole request in any window"),
        pytest.param(Limit(100.0, 1.0, kind=Kind.FIXED), 0.0, 0.02, id="a request is less than the least"),
        pytest.param(Limit(10.0, 1.0, kind=Kind.FIXED), 0.0, 0.1, id="a whole request of ten"),
        pytest.param(Limit(9.9, 1.0, kind=Kind.FIXED), 0.0, 0.02, id="of fewer a request is too much"),
        pytest.param(Limit(20.0, 1.0), 0.1, 0.1, id="as little as is known of the window"),
        pytest.param(Limit(20.0, 2.0), 0.2, 0.1, id="as a part of the window"),
        pytest.param(Limit(20.0, 1.0), 10.0, 0.35, id="the longest"),
        pytest.param(Limit(20.0, 30.0), 9.0, 0.05, id="no more than fills a window 1.5 s too early"),
    ],
)
def test_the_first_step_of_a_search(limit: Limit, blur_s: float, step: float) -> None:
    limit.search(0.0, blur_s)
    assert limit.next_step == pytest.approx(step)


@pytest.mark.parametrize(("window", "probe_at"), [(1.0, 15.0), (60.0, 96.0)])
def test_a_search_begins_calmly_and_anew(window: float, probe_at: float) -> None:
    limit = Limit(20.0, window, step=0.1, is_proven=True)
    limit.search(5.0, 0.0, failed=30.0)
    assert (limit.failed, limit.step, limit.is_proven, limit.probe_at) == (30.0, 0.0, False, probe_at)


def test_what_may_be_no_limit_is_tried_by_long_steps() -> None:
    limit = searched()
    limit.hurry()
    go_on(limit)
    assert limit.step == 0.35


@pytest.mark.parametrize(
    ("window", "is_soft", "step"),
    [
        pytest.param(60.0, False, 2 / 60, id="stands still for 2 s at most"),
        pytest.param(60.0, True, 0.35, id="soft: refused for a moment only"),
        pytest.param(200.0, False, 0.02, id="the least all the same"),
    ],
)
def test_the_longest_step(window: float, step: float, *, is_soft: bool) -> None:
    limit = Limit(1000.0, window, probe_at=0.0, next_step=0.5, is_soft=is_soft)
    limit.probe(0.0, 1000.0)
    assert limit.step == pytest.approx(step)
    limit.probe(limit.probe_at, 2000.0)
    assert limit.next_step == pytest.approx(step)


@pytest.mark.parametrize(
    ("held", "n", "waits_s"),
    [
        pytest.param(21.79, 20.0, 3.25, id="less than nine tenths of the step: held on"),
        pytest.param(20.0 * (1 + 0.9 * 0.1), 21.8, 2.5 + 1.5 / (21.8 * 0.2), id="just nine tenths: believed"),
        pytest.param(21.81, 21.81, 2.5 + 1.5 / (21.81 * 0.2), id="enough of it: believed, and doubled"),
        pytest.param(30.0, 22.0, 2.5 + 1.5 / (22.0 * 0.2), id="more than the step: the step is believed"),
    ],
)
def test_a_step_counts_where_most_of_it_went(held: float, n: float, waits_s: float) -> None:
    limit = Limit(20.0, 1.0, step=0.1, probe_at=5.0, cuts=2, lifted=21.0)
    limit.probe(5.0, held)
    is_believed = n > 20.0
    assert limit.n == pytest.approx(n)
    assert (limit.is_proven, limit.cuts, limit.lifted) == (
        (True, 0, 0.0) if is_believed else (False, 2, 21.0)
    )
    assert limit.probe_at == pytest.approx(5.0 + waits_s)


def test_a_bucket_that_held_is_faster_not_larger() -> None:
    limit = Limit(20.0, 1.0, kind=Kind.BUCKET, step=0.1, probe_at=0.0, failed=40.0)
    limit.probe(0.0, 22.0)
    assert (limit.n, limit.window, limit.failed) == pytest.approx((20.0, 20 / 22, 40 * 20 / 22))
    assert limit.since == -math.inf


@pytest.mark.parametrize(("kind", "kept"), [(Kind.UNKNOWN, 2), (Kind.FIXED, 1)])
def test_what_held_voids_older_evidence_where_the_kind_is_known(kind: Kind, kept: int) -> None:
    limit = Limit(20.0, 1.0, kind=kind, step=0.1, probe_at=9.0, failed_rate=30.0)
    for began in (8.0, 9.0):
        limit.heard(Episode(began, began, began))
    limit.probe(9.0, 22.0)
    assert len(limit.episodes) == kept
    assert (limit.since, limit.failed_rate) == ((9.0, math.inf) if kept == 1 else (-math.inf, 30.0))


def test_the_latest_eight_episodes_are_remembered() -> None:
    limit = Limit(20.0, 1.0)
    for began in range(10):
        limit.heard(Episode(float(began), 0.0, 0.0))
    assert [one.began for one in limit.episodes] == [2, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("n", "failed", "kind", "rests"),
    [
        pytest.param(20.0, 21.0, Kind.FIXED, True, id="nothing between n and n + 1"),
        pytest.param(20.0, 21.1, Kind.FIXED, False, id="a request between them"),
        pytest.param(20.0, 21.0, Kind.UNKNOWN, False, id="a rate has no whole requests"),
        pytest.param(1000.0, 1029.0, Kind.UNKNOWN, True, id="half of it is not worth a 429"),
        pytest.param(1000.0, 1030.5, Kind.UNKNOWN, False, id="half of it is worth one"),
    ],
)
def test_when_a_bracket_is_narrow(n: float, failed: float, kind: Kind, *, rests: bool) -> None:
    limit = Limit(n, 1.0, kind=kind, failed=failed, probe_at=0.0)
    limit.probe(0.0, n)
    assert (limit.step == 0.0) is rests
    if rests:
        assert (limit.failed, limit.probe_at) == (math.inf, 60.0)
    else:
        assert limit.step == pytest.approx((failed / n - 1) / 2)


def test_a_refusal_of_the_pace_while_it_rests_does_not_lengthen_the_rest() -> None:
    limit = Limit(20.0, 1.0, failed=20.1, probe_at=0.0)
    limit.probe(0.0, 20.0)
    assert (limit.rest_s, limit.probe_at, limit.next_step) == (60.0, 60.0, 0.02)


def test_a_rest_lasts_three_windows_at_least() -> None:
    limit = Limit(20.0, 100.0)
    limit.rest(5.0)
    assert limit.probe_at == 305.0


@pytest.mark.parametrize(
    ("window", "step", "probe_at"),
    [
        pytest.param(1.0, 0.1, 7.0, id="wide bracket: again after two windows"),
        pytest.param(0.5, 0.1, 7.0, id="but not within two seconds"),
        pytest.param(60.0, 0.1, 125.0, id="two long windows"),
        pytest.param(1.0, 0.02, 65.0, id="narrow bracket: a rest"),
    ],
)
def test_after_a_probe_that_failed(window: float, step: float, probe_at: float) -> None:
    limit = Limit(20.0, window, step=step)
    limit.probe_failed(5.0)
    assert (limit.step, limit.probe_at) == (0.0, probe_at)


@pytest.mark.parametrize(
    ("early_s", "delivered", "n"),
    [
        pytest.param(0.25, 0.0, 16.0, id="as much slower as it came early"),
        pytest.param(0.25, 18.0, 18.0, id="not below what was delivered"),
        pytest.param(0.25, 20.0, 19.94, id="but a little in any case"),
        pytest.param(0.0, 0.0, 19.94, id="a little where it was not early"),
        pytest.param(99.0, 0.0, 0.5, id="half a request at the least"),
    ],
)
def test_it_slows_by_how_early_a_request_came(early_s: float, delivered: float, n: float) -> None:
    limit = Limit(20.0, 1.0, failed=30.0)
    limit.slow(early_s, delivered)
    assert limit.n == pytest.approx(n)
    assert limit.failed == 20.0


def test_what_was_delivered_counts_by_the_window() -> None:
    limit = Limit(20.0, 2.0)
    limit.slow(0.5, 9.0)
    assert limit.n == pytest.approx(18.0)


def test_a_failure_below_is_remembered_rather_than_this_one() -> None:
    slowed, lowered = Limit(20.0, 1.0, failed=15.0), Limit(20.0, 1.0, failed=15.0)
    slowed.slow(0.1, 0.0)
    lowered.lower(0.0, 1.0, 1.0)
    assert (slowed.failed, lowered.failed) == (15.0, 15.0)


def test_the_cuts_of_a_limit_that_held_are_bounded_and_end_with_what_holds() -> None:
    limit = Limit(100.0, 1.0, kind=Kind.SLIDING, is_proven=True, cuts=4)
    limit.lower(5.0, 1.0, 1000.0)
    assert (limit.n, limit.cuts) == (85.0, 5)
    assert limit.probe_at == 7.0


def test_a_long_window_that_gave_way_is_left_alone_for_two() -> None:
    limit = Limit(100.0, 60.0)
    limit.lower(5.0, 1.0, 1000.0)
    assert limit.probe_at == 125.0


def test_a_fall_begins_a_new_search_and_forgets() -> None:
    limit = Limit(20.0, 1.0, is_proven=True, failed=30.0)
    limit.fall(7.0, 10.0)
    assert (limit.since, limit.failed, limit.is_proven, limit.probe_at) == (7.0, math.inf, False, 17.0)
    assert limit.next_step == 0.02


@pytest.mark.parametrize(
    ("limit", "reads", "others"),
    [
        pytest.param(Limit(20.0, 1.0), 20.0, 20.0, id="no probe"),
        pytest.param(Limit(20.0, 1.0, step=0.5), 30.0, 20.0, id="reads go first"),
        pytest.param(Limit(20.0, 1.0, step=0.5, lifted=25.0), 30.0, 25.0, id="others as far as reads came"),
        pytest.param(Limit(20.0, 1.0, step=0.5, lifted=35.0), 30.0, 30.0, id="and not beyond the step"),
        pytest.param(
            Limit(20.0, 1.0, step=0.5, scope=LimitScope.OTHERS),
            30.0,
            30.0,
            id="where no read counts, others do",
        ),
    ],
)
def test_who_may_go_how_far(limit: Limit, reads: float, others: float) -> None:
    assert (limit.allowed(is_read=True), limit.allowed(is_read=False)) == (reads, others)


def test_what_a_limit_is_before_anything_is_known() -> None:
    limit = Limit(20.0, 1.0)
    assert (limit.most, limit.failed, limit.failed_rate, limit.probe_at) == (math.inf,) * 4
    assert (limit.last_seen, limit.fell_at, limit.since) == (-math.inf,) * 3
    assert (limit.cycle_start, limit.last_slot) == (-math.inf,) * 2
    assert (limit.scope, limit.kind, limit.seen, limit.step, limit.lifted) == (
        LimitScope.ALL,
        Kind.UNKNOWN,
        0,
        0.0,
        0.0,
    )
    assert [limit.is_proven, limit.is_soft, limit.cuts] == [False, False, 0]


def test_since_when_requests_are_paced() -> None:
    """From the first that waited, unless one went at once or was slower than the limit allows."""
    limit = Limit(10.0, 1.0)
    assert limit.goes_paced(5.0, 0.1, 1.0, is_slow=False) == 5.0
    assert limit.goes_paced(6.0, 0.1, 1.0, is_slow=False) == 5.0
    assert limit.goes_paced(7.0, 0.1, 1.0, is_slow=True) == 7.0
    limit.goes_at_once(8.0)
    assert limit.goes_paced(9.0, 0.1, 1.0, is_slow=False) == 9.0
