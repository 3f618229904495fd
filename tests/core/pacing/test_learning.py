"""Which limit an episode speaks of, and when one is added, widened or split."""

import math
from collections.abc import Sequence

import pytest

from sealgate.core.pacing.episode import Episode
from sealgate.core.pacing.learning import Context, _refuser, learn
from sealgate.core.pacing.limit import Limit
from sealgate.core.pacing.sent_log import LimitScope, SentLog


def sent(rate: float, since: float, until: float) -> SentLog:
    log = SentLog(3600.0)
    for index in range(round((until - since) * rate)):
        log.add(since + index / rate, 1.0)
    return log


def teach(limits: list[Limit], episode: Episode, log: SentLog, before: Sequence[Episode] = ()) -> None:
    learn(limits, episode, Context(log, [*before, episode]), episode.latest + 0.1)


def test_the_first_episode_finds_a_limit() -> None:
    limits: list[Limit] = []
    teach(limits, Episode(0.34, 1.0, 1.0), sent(60, 0.001, 0.334))
    assert [(limit.n, limit.window, limit.seen, limit.cycle_start) for limit in limits] == [
        (20.0, 1.0, 1, 1.0)
    ]
    assert limits[0].probe_at < 20.0  # its true height is searched for


def test_the_limit_that_refused_is_corrected() -> None:
    limit = Limit(20.0, 1.0, step=0.1, paced_since=0.0, cycle_start=0.0)
    teach([limit], Episode(9.9, 10.0, 10.0), sent(22, 0, 9.9))
    assert limit.failed == 22.0


def test_a_context_is_of_little_jitter_and_much_patience_unless_told() -> None:
    context = Context(SentLog(3600.0), [])
    assert (context.jitter_s, context.slow_until, context.is_patience_thin) == (0.005, -math.inf, False)


def test_an_episode_without_anything_accepted_teaches_nothing() -> None:
    limits: list[Limit] = []
    teach(limits, Episode(0.0, 1.0, 1.0), SentLog(3600.0))
    assert limits == []


@pytest.mark.parametrize(
    ("earliest", "window"),
    [
        pytest.param(60.0, 60.0, id="which is known"),
        pytest.param(30.0, 30.0, id="which is not, so that the same window explains it"),
    ],
)
def test_a_much_longer_wait_is_that_of_a_stacked_limit(earliest: float, window: float) -> None:
    limits = [Limit(20.0, 1.0)]
    limits[0].episodes = [Episode(0.34, 1.0, 1.0)]
    log = sent(60, 0.001, 0.334)
    for index in range(580):
        log.add(1.0 + index / 20, 1.0)
    teach(limits, Episode(30.0, earliest, 60.0), log)
    assert [(limit.n, limit.window) for limit in limits] == [(20.0, 1.0), (600.0, window)]


def test_a_much_longer_wait_that_explains_all_is_that_of_another_window() -> None:
    log = sent(60, 5.0, 25.0)
    for index in range(1200):
        log.add(30.0 + index / 48, 1.0)
    limit = Limit(720.0, 15.0)
    limit.episodes = [Episode(25.0, 28.0, 30.0, resumed=30.0)]
    limits = [Limit(100.0, 1.0), limit]
    teach(limits, Episode(55.0, 80.0, 98.0), log)
    assert [(one.n, one.window, len(one.episodes)) for one in limits] == [(100.0, 1.0, 0), (1200.0, 60.0, 2)]


def test_a_published_limit_is_not_widened() -> None:
    limits = [Limit(20.0, 1.0, most=20.0)]
    teach(limits, Episode(30.0, 60.0, 60.0), sent(20, 0.001, 30.0))
    assert [(limit.n, limit.window) for limit in limits] == [(20.0, 1.0), (600.0, 60.0)]


def test_of_several_limits_the_fullest_is_the_one_that_refused() -> None:
    short, long = Limit(40.0, 1.0, paced_since=0.0), Limit(600.0, 30.0, paced_since=0.0)
    teach([short, long], Episode(30.5, 31.0, 31.0), sent(20, 0.001, 30.5))
    assert (short.n, short.seen, long.seen) == (40.0, 0, 1)


def test_the_fullest_is_that_of_which_the_most_is_used_not_the_largest() -> None:
    episode, log = Episode(10.0, 10.5, 10.5), sent(10, 0.001, 10.0)
    small, large = Limit(10.0, 1.0), Limit(100.0, 2.0)
    assert _refuser([small, large], episode, Context(log, [episode])) is small


def test_a_burst_of_nothing_is_still_seen() -> None:
    limit = Limit(1200.0, 60.0)
    teach([limit], Episode(0.0, 1.0, 1.0), SentLog(3600.0))
    assert (limit.seen, limit.last_seen) == (1, 1.1)


def apart() -> tuple[SentLog, list[Episode]]:
    """Return ten reads a second and then ten orders a second, refused beyond that, thrice."""
    log, episodes = SentLog(3600.0), []
    for start, reads, others in ((0.0, 10, 3), (10.0, 4, 10), (20.0, 10, 6)):
        for index in range(max(reads, others)):
            at = start + index / 50
            if index < reads:
                log.add(at, 1.0, is_read=True)
            if index < others:
                log.add(at + 0.001, 1.0)
        began, gave_way = start + 0.25, start + 1.001 * (reads < others) + 1.0 * (reads > others)
        episodes.append(Episode(began, gave_way, gave_way, is_read=reads > others, resumed=gave_way + 0.01))
    return log, episodes


def test_refusals_that_fit_no_common_count_split_it() -> None:
    log, episodes = apart()
    limits = [Limit(13.0, 1.0)]
    teach(limits, episodes[-1], log, episodes[:-1])
    assert [(one.scope, one.n, one.window) for one in limits] == [
        (LimitScope.READS, 10.0, 1.0),
        (LimitScope.OTHERS, 10.0, 1.0),
    ]
    assert [one.episodes for one in limits] == [[episodes[0], episodes[2]], [episodes[1]]]
    assert [(one.seen, one.probe_at < 40.0) for one in limits] == [(1, True), (1, True)]


def test_a_published_limit_is_not_split() -> None:
    log, episodes = apart()
    limits = [Limit(13.0, 1.0, most=13.0)]
    teach(limits, episodes[-1], log, episodes[:-1])
    assert [one.scope for one in limits] == [LimitScope.ALL]


def test_stacked_limits_are_not_split() -> None:
    log, episodes = apart()
    limits = [Limit(13.0, 1.0), Limit(600.0, 60.0)]
    teach(limits, episodes[-1], log, episodes[:-1])
    assert [one.scope for one in limits] == [LimitScope.ALL, LimitScope.ALL]


def test_a_class_without_a_limit_gets_one_of_its_own() -> None:
    log, episodes = apart()
    limits = [Limit(10.0, 1.0, scope=LimitScope.READS)]
    teach(limits, episodes[1], log)
    assert [(one.scope, one.n) for one in limits] == [(LimitScope.READS, 10.0), (LimitScope.OTHERS, 10.0)]


def test_limits_stay_sorted_by_window() -> None:
    log, episodes = apart()
    limits = [Limit(10.0, 60.0, scope=LimitScope.OTHERS)]
    teach(limits, episodes[0], log)
    assert [(one.scope, one.window) for one in limits] == [(LimitScope.READS, 1.0), (LimitScope.OTHERS, 60.0)]


def test_refusals_that_fit_a_common_count_only_join_it() -> None:
    log, episodes = SentLog(3600.0), []
    for start, reads in ((0.0, 4), (10.0, 15), (20.0, 9)):
        for index in range(20):
            log.add(start + index / 50, 1.0, is_read=index < reads)
        episodes.append(Episode(start + 0.41, start + 1.0, start + 1.0, is_read=True, resumed=start + 1.01))
    limits = [Limit(10.0, 1.0, scope=LimitScope.READS), Limit(10.0, 1.0, scope=LimitScope.OTHERS)]
    teach(limits, episodes[-1], log, episodes[:-1])
    assert [(one.scope, one.n, one.window) for one in limits] == [(LimitScope.ALL, 20.0, 1.0)]


@pytest.mark.parametrize(("wait_s", "is_its_own"), [(16.0, True), (16.1, False)])
def test_a_limit_makes_wait_no_longer_than_a_window_and_a_half_and_a_second(
    wait_s: float, *, is_its_own: bool
) -> None:
    episode = Episode(0.0, wait_s, wait_s)
    found = _refuser([Limit(20.0, 10.0)], episode, Context(SentLog(3600.0), [episode]))
    assert (found is not None) is is_its_own
