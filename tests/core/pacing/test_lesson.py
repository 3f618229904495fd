"""One case per row of the table in the module."""

import math

import pytest

from sealgate.core.pacing.episode import Episode
from sealgate.core.pacing.lesson import Lesson
from sealgate.core.pacing.limit import Limit
from sealgate.core.pacing.reading import Kind, Reading
from sealgate.core.pacing.sent_log import SentLog, Tally


def sent(rate: float, since: float, until: float) -> Tally:
    log = SentLog(3600.0)
    for index in range(round((until - since) * rate)):
        log.add(since + index / rate, 1.0)
    return log.all


def correct(limit: Limit, episode: Episode, log: Tally, jitter_s: float = 0.005) -> None:
    Lesson(limit, episode, log, episode.latest + 0.1, jitter_s).correct()


def test_a_refusal_while_probing_was_the_probe() -> None:
    limit = Limit(20.0, 1.0, step=0.1, paced_since=0.0, cycle_start=0.0)
    correct(limit, Episode(9.9, 10.0, 10.0), sent(22, 0, 9.9))
    assert (limit.n, limit.failed) == (20.0, 22.0)


def test_a_refusal_at_the_pace_lowers_it_towards_what_was_delivered() -> None:
    limit = Limit(21.0, 1.0, paced_since=0.0, cycle_start=0.0)
    correct(limit, Episode(9.95, 10.0, 10.0), sent(21, 0.001, 9.9))
    assert limit.n == pytest.approx(20.8)
    assert limit.failed == 21.0


def test_a_refusal_far_below_the_pace_is_a_fall() -> None:
    limit = Limit(20.0, 1.0, paced_since=0.0, cycle_start=0.0)
    correct(limit, Episode(10.5, 11.0, 11.0), sent(20, 0.001, 10.5))
    assert (limit.n, limit.fell_at) == (10.0, 11.1)


def test_a_blurred_end_is_not_taken_for_a_fall() -> None:
    limit = Limit(20.0, 1.0, paced_since=0.0, cycle_start=0.0)
    correct(limit, Episode(10.5, 10.5, 11.5), sent(20, 0.001, 10.5))
    assert limit.n > 18.0
    assert limit.fell_at == -math.inf


def test_a_refusal_in_a_burst_reads_window_and_number_again() -> None:
    limit = Limit(1200.0, 60.0)
    correct(limit, Episode(0.34, 1.0, 1.0), sent(60, 0.001, 0.334))
    assert (limit.n, limit.window) == (20.0, 1.0)


def test_a_published_limit_keeps_its_window() -> None:
    limit = Limit(1200.0, 60.0, most=1200.0)
    correct(limit, Episode(0.34, 1.0, 1.0), sent(60, 0.001, 0.334))
    assert (limit.n, limit.window) == (1195.0, 60.0)


def test_a_burst_of_nothing_leaves_the_limit() -> None:
    limit = Limit(1200.0, 60.0)
    correct(limit, Episode(0.0, 1.0, 1.0), SentLog(3600.0).all)
    assert (limit.n, limit.window) == (1200.0, 60.0)


def test_a_burst_that_is_refused_at_a_rate_that_held_is_made_smaller() -> None:
    limit = Limit(20.0, 1.0, kind=Kind.FIXED, is_proven=True)
    correct(limit, Episode(0.34, 0.36, 0.36), sent(30, 0.001, 0.334))
    assert (limit.n, limit.window) == (10.0, 0.5)


def test_a_burst_has_one_at_the_least() -> None:
    limit = Limit(20.0, 1.0, kind=Kind.FIXED, is_proven=True)
    correct(limit, Episode(0.34, 0.36, 0.36), sent(1, 0.001, 1.001))
    assert (limit.n, limit.window) == (1.0, 0.05)


@pytest.mark.parametrize(
    ("believed", "n"),
    [
        pytest.param(19.0, 18.94, id="as it was believed, and is slowed down"),
        pytest.param(25.0, 19.0, id="another way, which is taken as it is"),
    ],
)
def test_a_pace_that_is_refused_is_explained(believed: float, n: float) -> None:
    limit = Limit(believed, 1.0, kind=Kind.FIXED, paced_since=0.0, cycle_start=0.2)
    correct(limit, Episode(1.45, 1.46, 1.46), sent(20, 0.001, 1.44), jitter_s=0.0)
    assert limit.window == 1.0
    assert limit.n == pytest.approx(n, abs=0.01)


def test_the_rate_of_a_bucket_that_refused_for_long_is_precise() -> None:
    limit = Limit(10.0, 1.0, kind=Kind.BUCKET, paced_since=0.0, cycle_start=4.0)
    limit.episodes = [Episode(at, at, at, resumed=at) for at in (1.0, 4.0)]
    correct(limit, Episode(8.0, 8.0, 8.0), sent(20, 0.001, 8.0))
    assert 19.5 < limit.rate < 20.5
    assert limit.probe_at == pytest.approx(68.1)


def test_a_bucket_that_was_full_in_between_is_searched_on() -> None:
    limit = Limit(10.0, 0.5, kind=Kind.BUCKET, step=0.2, paced_since=0.0, cycle_start=4.0)
    limit.episodes = [Episode(at, at, at, resumed=at) for at in (1.0, 4.0)]
    correct(limit, Episode(8.0, 8.0, 8.0), sent(15, 0.001, 8.0))
    assert 14.5 < limit.rate < 15.5
    assert limit.failed / limit.window == pytest.approx(24.0)


def test_a_young_bucket_is_searched() -> None:
    limit = Limit(10.0, 0.5, kind=Kind.BUCKET, paced_since=0.0, cycle_start=2.0)
    limit.episodes = [Episode(at, at, at, resumed=at) for at in (1.0, 2.0)]
    correct(limit, Episode(3.0, 3.0, 3.0), sent(15, 0.001, 3.0))
    assert 14.0 < limit.rate < 16.0
    assert limit.probe_at < 20.0
    assert limit.next_step == pytest.approx(0.02)


def test_a_bucket_that_had_time_to_fill_says_nothing_of_its_rate() -> None:
    limit = Limit(10.0, 0.5, kind=Kind.BUCKET, paced_since=0.0, cycle_start=2.0)
    limit.episodes = [Episode(1.0, 1.0, 1.0, resumed=1.0), Episode(2.0, 2.0, 2.0, resumed=2.9)]
    correct(limit, Episode(3.0, 3.0, 3.0), sent(15, 0.001, 3.0))
    assert limit.kind is Kind.SLIDING


def test_a_burst_that_was_taken_before_the_pace_is_remembered() -> None:
    log = SentLog(3600.0)
    for _ in range(20):
        log.add(0.5, 1.0)
    for index in range(120):
        log.add(1.0 + index / 20, 1.0)
    limit = Limit(5.0, 0.25, kind=Kind.BUCKET, paced_since=0.8, cycle_start=5.0)
    limit.episodes = [Episode(at, at, at, resumed=at) for at in (0.6, 4.0, 5.0)]
    correct(limit, Episode(6.0, 6.0, 6.0), log.all)
    assert limit.n >= 19.0
    assert 19.0 < limit.rate < 21.0


@pytest.mark.parametrize(
    ("earlier", "kept"),
    [
        pytest.param((10.0, 11.0, 12.0, 13.0), 1, id="four"),
        pytest.param((11.0, 12.0, 13.0), 4, id="three may be explained yet"),
    ],
)
def test_episodes_that_nothing_explains_are_forgotten(earlier: tuple[float, ...], kept: int) -> None:
    log = SentLog(3600.0)
    for index in range(10):
        log.add(float(index), 1.0)
    for index in range(1000):
        log.add(20.0 + index / 100, 1.0)
    limit = Limit(10.0, 1.0, cycle_start=13.0)
    limit.episodes = [Episode(at, at, at + 0.4) for at in earlier]
    correct(limit, Episode(30.5, 30.5, 30.9), log.all)
    assert len(limit.episodes) == kept
    assert (limit.n, limit.window) == (1009.0, 30.0), "what the last one alone says"


def test_the_rate_of_a_few_refusals_at_once_is_hardly_known() -> None:
    """Three within 60 ms, true to 50: nearly any rate fits, so the search takes long steps."""
    limit = Limit(20.0, 0.5, kind=Kind.BUCKET, paced_since=0.0, cycle_start=1.04)
    limit.episodes = [Episode(at, at, at, resumed=at) for at in (1.0, 1.04)]
    correct(limit, Episode(1.06, 1.06, 1.06), sent(100, 0.995, 1.06), jitter_s=0.05)
    assert limit.kind is Kind.BUCKET
    assert limit.next_step == pytest.approx(0.35)


def test_what_a_bucket_let_through_of_late_is_its_rate_though_it_was_full_before() -> None:
    """Half of what it grants was asked for, for long, and then more than it grants until it was empty."""
    log = SentLog(3600.0)
    for index in range(200):
        log.add(0.001 + index / 20, 1.0)
    for index in range(90):
        log.add(10.0 + index / 45, 1.0)
    limit = Limit(20.0, 0.5, kind=Kind.BUCKET, step=0.2, paced_since=0.0, cycle_start=0.06)
    limit.episodes = [Episode(at, at, at, resumed=at) for at in (0.001, 0.06)]
    correct(limit, Episode(12.0, 12.01, 12.01), log.all, jitter_s=0.02)
    assert (limit.n, limit.kind) == (20.0, Kind.BUCKET)
    assert limit.rate == pytest.approx(35.0, abs=1.0)


def test_a_moment_without_a_count_does_not_bound_the_rate() -> None:
    """Patience is thin, and the scout is all that went since: there may have been one more."""
    episodes = [Episode(1.0, 1.0, 1.0, resumed=1.01), Episode(1.02, 1.03, 1.03)]
    limit = Limit(20.0, 1.0, episodes=episodes)
    lesson = Lesson(limit, episodes[-1], sent(100, 1.01, 1.02), 1.05, is_patience_thin=True)
    assert lesson.bounded(Reading(Kind.BUCKET, 20.0, 0.4)).rate == pytest.approx(40.0)


@pytest.mark.parametrize("look_s", [1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0])
def test_the_rate_beside_a_burst_is_looked_for_over_several_spans(look_s: float) -> None:
    log = SentLog(3600.0)
    for _ in range(30):
        log.add(20.01 - look_s, 1.0)
    lesson = Lesson(Limit(10.0, 1.0, cycle_start=0.0), Episode(20.0, 20.0, 20.0), log.all, 20.1)
    assert lesson._rate_beside(10.0) == pytest.approx(20 / look_s)


@pytest.mark.parametrize(("cycle_start", "rate"), [(15.0, -10 / 3), (19.5, 0.0)])
def test_and_not_beyond_what_gave_way_before(cycle_start: float, rate: float) -> None:
    log = sent(30.0, 13.0, 14.0)
    lesson = Lesson(Limit(10.0, 1.0, cycle_start=cycle_start), Episode(20.0, 20.0, 20.0), log, 20.1)
    assert lesson._rate_beside(10.0) == pytest.approx(rate)


SHARP = Episode(0.9, 1.0, 1.0)
VAGUE = Episode(0.9, 0.6, 1.0)  # known to 0.2 s either way
BLURRED = Episode(0.9, 0.4, 1.0)


def taken_up(found: Reading, episode: Episode, count: float, *, heard: int = 1) -> Limit:
    """Return a limit of 20 per second, below which 30 were refused, once that was read instead."""
    limit = Limit(20.0, 1.0, failed_rate=30.0, episodes=[episode] * heard)
    Lesson(limit, episode, sent(count / 0.9, 0.0001, 0.9), 5.0).take_up(found)
    return limit


@pytest.mark.parametrize(
    ("kind", "episode", "count", "step"),
    [
        pytest.param(Kind.FIXED, SHARP, 10.0, 0.1, id="one of those that were counted"),
        pytest.param(Kind.FIXED, SHARP, 90.0, 0.02, id="the least, where many were"),
        pytest.param(Kind.FIXED, SHARP, 1.0, 0.35, id="the most, where one was"),
        pytest.param(Kind.FIXED, VAGUE, 90.0, 0.2, id="as little as is known of the end"),
        pytest.param(Kind.SLIDING, VAGUE, 90.0, 0.02, id="which a sliding window does not need"),
        pytest.param(Kind.BUCKET, VAGUE, 90.0, 0.2, id="and a bucket does"),
    ],
)
def test_the_search_from_what_was_read(kind: Kind, episode: Episode, count: float, step: float) -> None:
    limit = taken_up(Reading(kind, 100.0, 1.0), episode, count)
    assert (limit.n, limit.window, limit.kind) == (100.0, 1.0, kind)
    assert limit.next_step == pytest.approx(step)
    assert (limit.failed, limit.probe_at) == (math.inf, 15.0)


@pytest.mark.parametrize(("heard", "kind"), [(1, Kind.UNKNOWN), (2, Kind.FIXED)])
def test_one_blurred_end_tells_no_kind_and_what_was_refused_bounds_it(heard: int, kind: Kind) -> None:
    limit = taken_up(Reading(Kind.FIXED, 20.0, 1.0), BLURRED, 90.0, heard=heard)
    assert (limit.kind, limit.failed) == (kind, 30.0)


@pytest.mark.parametrize(("window", "failed"), [(0.5, 15.0), (1.0, 30.0), (1.2, math.inf)])
def test_an_end_is_blurred_beyond_a_quarter_of_the_window(window: float, failed: float) -> None:
    limit = taken_up(Reading(Kind.FIXED, 20.0, window), BLURRED, 90.0)
    assert limit.failed == failed


def test_a_lesson_is_taught_with_patience_unless_told() -> None:
    lesson = Lesson(Limit(20.0, 1.0), SHARP, SentLog(3600.0).all, 5.0)
    assert (lesson.jitter_s, lesson.slow_until, lesson.is_patience_thin) == (0.005, -math.inf, False)


EARLY = Episode(1.0, 1.0, 1.0, resumed=2.0)
LATE = Episode(3.0, 3.0, 3.5)
SHORT = Reading(Kind.SLIDING, 5.0, 0.5)


@pytest.mark.parametrize(
    ("episodes", "found", "n"),
    [
        pytest.param([EARLY, LATE], 10.0, 16.0, id="what was delivered from one to the other"),
        pytest.param([EARLY, LATE], 15.6, 16.0, id="a little more than was read"),
        pytest.param([EARLY, LATE], 15.8, None, id="hardly more"),
        pytest.param([EARLY, LATE], 30.0, None, id="less"),
        pytest.param([LATE], 10.0, None, id="no other is known"),
        pytest.param([Episode(-7.0, -7.0, -7.0), LATE], 1.0, None, id="none of the ten seconds before"),
        pytest.param([Episode(-6.9, -6.9, -6.9), LATE], 1.0, 5.77, id="the first of them"),
        pytest.param(
            [Episode(-7.0, -7.0, -7.0), Episode(-6.9, -6.9, -6.9), LATE], 1.0, 5.77, id="and no older one"
        ),
    ],
)
def test_what_was_read_is_no_less_than_was_delivered(
    episodes: list[Episode], found: float, n: float | None
) -> None:
    lesson = Lesson(Limit(20.0, 1.0, episodes=episodes), LATE, sent(20, 0.001, 3.001), 4.0)
    read = Reading(Kind.SLIDING, found, 1.0)
    bounded = lesson.bounded(read)
    assert (bounded is read) is (n is None)
    assert bounded.n == pytest.approx(n or found, abs=0.01)
    assert (bounded.kind, bounded.window) == (Kind.UNKNOWN if n else Kind.SLIDING, 1.0)


@pytest.mark.parametrize(
    ("episodes", "slow_until", "found", "n"),
    [
        pytest.param([EARLY, LATE], -math.inf, 30.0, 19.98, id="what went since it was sent again"),
        pytest.param([EARLY, LATE], 2.5, 30.0, 19.96, id="and not slowly"),
        pytest.param([EARLY, LATE], 2.93, 50.0, 14.08, id="for as long as a count takes"),
        pytest.param([EARLY, LATE], 2.96, 50.0, 20.0, id="or with one more, where that is too short"),
        pytest.param([LATE], -math.inf, 30.0, 19.98, id="in the second before, where no other is known"),
        pytest.param([Episode(0.5, 0.5, 0.6)], -math.inf, 30.0, 20.0, id="or since something was sent"),
    ],
)
def test_where_patience_is_thin_what_was_read_is_no_more_than_went(
    episodes: list[Episode], slow_until: float, found: float, n: float
) -> None:
    limit, log = Limit(20.0, 1.0, episodes=episodes), sent(20, 0.001, 3.001)
    lesson = Lesson(limit, episodes[-1], log, 4.0, slow_until=slow_until, is_patience_thin=True)
    read = lesson.bounded(Reading(Kind.SLIDING, found / 2, 0.5))
    assert read.n == pytest.approx(n, abs=0.01)
    assert (read.kind, read.window) == (Kind.UNKNOWN, 1.0)


def test_where_nothing_went_nothing_bounds_what_was_read() -> None:
    limit, log = Limit(20.0, 1.0, episodes=[EARLY, LATE]), SentLog(3600.0).all
    assert Lesson(limit, LATE, log, 4.0, is_patience_thin=True).bounded(SHORT) is SHORT


def test_a_rate_of_less_than_one_per_second_is_bounded_too() -> None:
    log = SentLog(3600.0)
    log.add(2.0, 1.0)
    bounded = Lesson(Limit(20.0, 1.0, episodes=[EARLY, LATE]), LATE, log.all, 4.0).bounded(
        Reading(Kind.SLIDING, 10.0, 50.0)
    )
    assert bounded == Reading(Kind.UNKNOWN, 20.0, 50.0)


def test_what_was_counted_over_a_second_is_kept_though_patience_is_thin() -> None:
    limit, found = Limit(20.0, 1.0, episodes=[LATE]), Reading(Kind.SLIDING, 30.0, 1.0)
    lesson = Lesson(limit, LATE, sent(20, 0.001, 3.001), 4.0, is_patience_thin=True)
    assert lesson.bounded(found) is found


def test_a_bucket_keeps_its_burst_when_its_rate_is_bounded() -> None:
    lesson = Lesson(Limit(20.0, 1.0, episodes=[EARLY, LATE]), LATE, sent(20, 0.001, 3.001), 4.0)
    found = lesson.bounded(Reading(Kind.BUCKET, 5.0, 0.5))
    assert (found.kind, found.n) == (Kind.BUCKET, 5.0)
    assert found.window == pytest.approx(5.0 / 16)


@pytest.mark.parametrize(
    ("began", "is_proven", "has_held"),
    [
        pytest.param(3.0, False, True, id="two windows and a second"),
        pytest.param(2.9, False, False, id="less"),
        pytest.param(2.9, True, True, id="or it was proven"),
    ],
)
def test_when_a_pace_has_held(began: float, *, is_proven: bool, has_held: bool) -> None:
    """One that has is lowered, and otherwise all is read again, which begins a search."""
    limit = Limit(21.0, 1.0, paced_since=0.0, cycle_start=0.0, is_proven=is_proven)
    correct(limit, Episode(began, began + 0.2, began + 0.2), sent(21, 0.001, began))
    assert (limit.probe_at < 10.0) is has_held


@pytest.mark.parametrize(
    ("count", "fell_at"),
    [
        pytest.param(12, 10.1, id="less than seven tenths of it, and one"),
        pytest.param(13, -math.inf, id="as much"),
        pytest.param(1, 10.1, id="even one"),
        pytest.param(0, -math.inf, id="nothing, which says nothing"),
    ],
)
def test_how_little_is_a_fall(count: int, fell_at: float) -> None:
    limit = Limit(20.0, 1.0, paced_since=0.0, cycle_start=0.0)
    correct(limit, Episode(9.8, 10.0, 10.0), sent(count / 0.5, 9.2, 9.7))
    assert limit.fell_at == fell_at


@pytest.mark.parametrize(
    ("earliest", "latest", "kind", "is_soft"),
    [
        pytest.param(9.96, 9.96, Kind.SLIDING, True, id="a little too early, as by a sliding window"),
        pytest.param(10.02, 10.02, Kind.SLIDING, True, id="by a slot and a half at most"),
        pytest.param(10.03, 10.03, Kind.FIXED, False, id="by more, which a sliding one does not refuse"),
        pytest.param(9.95, 9.97, Kind.FIXED, False, id="nobody knows by how much, but by little"),
        pytest.param(9.6, 10.4, Kind.SLIDING, False, id="or not even that"),
    ],
)
def test_what_a_refusal_of_the_pace_says_of_the_kind(
    earliest: float, latest: float, kind: Kind, *, is_soft: bool
) -> None:
    limit = Limit(20.0, 1.0, kind=Kind.SLIDING, paced_since=0.0, cycle_start=0.0, is_proven=True)
    correct(limit, Episode(9.95, earliest, latest), sent(20, 0.001, 9.95))
    assert (limit.kind, limit.is_soft) == (kind, is_soft)


def test_a_refusal_half_a_window_after_the_pace_began_is_of_the_pace() -> None:
    limit = Limit(20.0, 1.0, kind=Kind.SLIDING, paced_since=9.25, cycle_start=0.0, is_proven=True)
    correct(limit, Episode(9.75, 10.5, 10.5), sent(20, 0.001, 9.75))
    assert limit.kind is Kind.FIXED


def test_a_refusal_before_the_pace_was_kept_says_nothing_of_the_kind() -> None:
    limit = Limit(20.0, 1.0, kind=Kind.SLIDING, paced_since=9.5, cycle_start=0.0, is_proven=True)
    correct(limit, Episode(9.95, 10.5, 10.5), sent(20, 0.001, 9.95))
    assert limit.kind is Kind.SLIDING


def delivered_rate(limit: Limit, episode: Episode, slow_until: float = -math.inf) -> float:
    log = sent(10, 0.001, 9.0)
    return Lesson(limit, episode, log, 10.0, slow_until=slow_until)._delivered_rate()


@pytest.mark.parametrize(
    ("cycle_start", "slow_until", "latest", "rate"),
    [
        pytest.param(0.0, -math.inf, 9.0, 12.5, id="what was delivered and a quarter of the excess"),
        pytest.param(0.0, -math.inf, 12.0, 14.28, id="half of it, where the end is blurred"),
        pytest.param(0.0, 4.0, 9.0, 12.5, id="since it was not slow any more"),
        pytest.param(9.0, -math.inf, 9.0, 5.0, id="of a moment: hardly anything"),
        pytest.param(-math.inf, -math.inf, 9.0, 20.0, id="what is believed, before anything gave way"),
    ],
)
def test_the_rate_to_go_on_with(cycle_start: float, slow_until: float, latest: float, rate: float) -> None:
    limit = Limit(20.0, 1.0, cycle_start=cycle_start)
    assert delivered_rate(limit, Episode(9.0, 9.0, latest), slow_until) == pytest.approx(rate, abs=0.1)


@pytest.mark.parametrize(
    ("step", "window", "rate"),
    [
        pytest.param(0.2, 1.0, 20.0, id="a step that was tried, at a rate that is found higher"),
        pytest.param(0.2, 1.0, 10.0, id="or hardly lower"),
        pytest.param(0.0, 0.4, 20.0, id="no step, at a rate that is found lower"),
    ],
)
def test_a_bucket_that_was_not_full_in_between_has_no_rate_that_failed(
    step: float, window: float, rate: float
) -> None:
    limit = Limit(10.0, window, kind=Kind.BUCKET, step=step, paced_since=0.0, cycle_start=4.0)
    limit.episodes = [Episode(at, at, at, resumed=at) for at in (1.0, 4.0)]
    correct(limit, Episode(8.0, 8.0, 8.0), sent(rate, 0.001, 8.0))
    assert (limit.failed, limit.step) == (math.inf, 0.0)


def test_a_pace_that_was_refused_before_it_held_is_remembered() -> None:
    limit = Limit(21.0, 1.0, paced_since=0.0, cycle_start=0.0)
    correct(limit, Episode(2.0, 2.2, 2.2), sent(21, 0.001, 2.0))
    assert limit.failed_rate == 21.0


def test_a_kind_that_does_not_explain_all_is_given_up() -> None:
    log = SentLog(3600.0)
    for index in range(10):
        log.add(float(index), 1.0)
    for index in range(1000):
        log.add(20.0 + index / 100, 1.0)
    limit = Limit(10.0, 1.0, kind=Kind.FIXED, paced_since=0.0, cycle_start=13.0)
    limit.episodes = [Episode(at, at, at + 0.4) for at in (10.0, 11.0, 12.0, 13.0)]
    correct(limit, Episode(30.5, 30.5, 30.9), log.all)
    assert (limit.kind, limit.window, len(limit.episodes)) == (Kind.UNKNOWN, 1.0, 1)
    assert limit.n == pytest.approx(9.95), "it went at a pace, which is lowered"


@pytest.mark.parametrize(
    ("kind", "most", "found", "n"),
    [
        pytest.param(Kind.BUCKET, math.inf, Kind.BUCKET, 10.0, id="whose burst may come back"),
        pytest.param(Kind.UNKNOWN, math.inf, Kind.BUCKET, 1.0, id="which nothing was known of"),
        pytest.param(Kind.FIXED, math.inf, Kind.SLIDING, 15.0, id="of a window that another one explains"),
        pytest.param(Kind.UNKNOWN, 10.0, Kind.UNKNOWN, 8.125, id="that is published"),
    ],
)
def test_refusals_like_those_of_a_bucket(kind: Kind, most: float, found: Kind, n: float) -> None:
    limit = Limit(10.0, 0.5, kind=kind, most=most, paced_since=0.0, cycle_start=2.0)
    limit.episodes = [Episode(at, at, at, resumed=at) for at in (1.0, 2.0)]
    correct(limit, Episode(3.0, 3.0, 3.0), sent(15, 0.001, 3.0))
    assert (limit.kind, limit.n) == (found, n)


@pytest.mark.parametrize(
    ("resumed", "n"),
    [
        pytest.param(11.0, 5.0, id="long ago, so others spend it"),
        pytest.param(11.1, 19.0, id="less than two windows and a second"),
    ],
)
def test_a_pace_has_held_since_the_last_episode(resumed: float, n: float) -> None:
    """Five went in the last four seconds, of the twenty that are published."""
    limit = Limit(20.0, 4.0, most=20.0, paced_since=0.0)
    limit.episodes = [Episode(at, at, at, resumed=at) for at in (1.0, 2.0, resumed)]
    correct(limit, Episode(20.0, 20.2, 20.2), sent(1.25, 16.3, 20.3))
    assert limit.n == pytest.approx(n, abs=0.5)
