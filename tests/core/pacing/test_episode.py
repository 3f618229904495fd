import math

import pytest

from sealgate.core.pacing.episode import Episode
from sealgate.core.pacing.explain import explain_last
from sealgate.core.pacing.reading import Evidence
from sealgate.core.pacing.sent_log import SentLog


def read_episode(episode: Episode, log: SentLog, at_most: float = math.inf) -> tuple[float, float] | None:
    found = explain_last(Evidence([episode], log.all, 0.0), at_most)
    return None if found is None else (found.n, found.window)


def flood(count: int, rate: float, start: float = 0.0) -> SentLog:
    log = SentLog(3600.0)
    for index in range(count):
        log.add(start + index / rate, 1.0)
    return log


CASES = [
    # A flood of 60/s from 0 on met its first 429 at `began`; the window gave way at `end`.
    ("20 per 1 s, from its start", 20, 0.34, 1.0, (20, 1.0)),
    ("1200 per 60 s, from its start", 1200, 20.0, 60.0, (1200, 60.0)),
    ("1200 per 60 s, entered 10 s before its end", 1800, 30.0, 70.0, (1200, 60.0)),
    ("one per 50 ms", 1, 0.016, 0.05, (1, 0.05)),
]


@pytest.mark.parametrize(
    ("_name", "count", "began", "end", "expected"), CASES, ids=[case[0] for case in CASES]
)
def test_the_window_that_gave_way_held_the_limit(
    _name: str, count: int, began: float, end: float, expected: tuple[float, float]
) -> None:
    # The flood starts just inside the window that the candidate sees.
    found = read_episode(Episode(began, end, end), flood(count, 60.0, 1e-9))
    assert found == pytest.approx(expected, abs=1)


def test_a_rate_that_is_known_to_hold_bounds_the_reading() -> None:
    episode = Episode(0.34, 0.34, 0.34)
    assert read_episode(episode, flood(20, 60.0), at_most=20.0) == (20.0, 1.0)


def test_nothing_sent_nothing_read() -> None:
    assert read_episode(Episode(0.0, 0.0, 0.0), SentLog(3600.0)) is None


def test_no_candidate_slow_enough_takes_the_longest() -> None:
    assert read_episode(Episode(0.34, 0.34, 0.34), flood(20, 60.0), at_most=1e-9) == (20.0, 3600.0)


def test_an_exact_wait_leaves_no_blur() -> None:
    episode = Episode(1.0, 1.0, math.inf).refused_again(1.0, 0.25, 0.0).ended(1.3)
    assert (episode.gave_way, episode.blur_s) == (1.25, 0.0)


def test_a_rounded_wait_leaves_one_second() -> None:
    episode = Episode(1.0, 1.0, math.inf).refused_again(1.0, 40.0, 1.0).ended(41.1)
    assert (episode.earliest, episode.latest) == (40.0, 41.0)


def test_no_wait_leaves_from_the_last_refusal_to_the_acceptance() -> None:
    episode = Episode(1.0, 1.0, math.inf).refused_again(1.0, None, 1.0)
    episode = episode.refused_again(0.9, None, 1.0).refused_again(3.0, None, 1.0).ended(7.0)
    assert (episode.began, episode.earliest, episode.latest) == (1.0, 3.0, 7.0)


def test_what_is_stated_too_long_ends_with_the_acceptance() -> None:
    episode = Episode(1.0, 1.0, math.inf).refused_again(1.0, 100.0, 0.0).ended(2.0)
    assert (episode.earliest, episode.latest) == (2.0, 2.0)


def test_a_refusal_at_the_end_that_was_stated_leaves_it_open() -> None:
    episode = Episode(1.0, 1.0, math.inf).refused_again(1.0, 0.5, 0.0).refused_again(1.5, None, 0.0)
    assert (episode.earliest, episode.latest) == (1.5, math.inf)


def test_what_was_sent_beside_the_first_refused_may_have_come_before_it() -> None:
    first = Episode(1.0, 1.0, math.inf, mixed_until=1.005)
    assert first.refused_again(1.005, 0.5, 0.0).began == 1.005
    assert first.refused_again(1.004, None, 0.0).began == 1.004
    assert first.refused_again(1.006, 0.5, 0.0).began == 1.0
    assert first.refused_again(0.9, 0.5, 0.0).began == 1.0


def test_an_episode_is_not_of_reads_unless_it_says_so() -> None:
    assert not Episode(1.0, 1.0, 1.0).is_read
