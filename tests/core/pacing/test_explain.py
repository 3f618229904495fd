"""What explains episodes: plain situations of each kind, with trips that differ by 5 ms."""

import math
from collections.abc import Sequence

import pytest

from sealgate.core.pacing.episode import Episode
from sealgate.core.pacing.explain import (
    _agreed,
    _candidates,
    _fixed,
    _most_between_edges,
    _sliding,
    explain,
    explain_last,
    explain_window,
)
from sealgate.core.pacing.reading import Evidence, Kind, Reading
from sealgate.core.pacing.sent_log import SentLog, Tally

LONG = [60.0, 300.0, 600.0, 900.0, 3600.0]


def sent(*bursts: tuple[float, int, float]) -> Tally:
    """Return the log of bursts: when it begins, of how many, and how far apart."""
    log = SentLog(3600.0)
    for at, count, every in bursts:
        for index in range(count):
            log.add(at + index * every, 1.0)
    return log.all


def seen(episodes: Sequence[Episode], log: Tally, failed_rate: float = math.inf) -> Evidence:
    return Evidence(episodes, log, 0.005, failed_rate)


FIXED = sent((0.3, 20, 0.01), (5.3, 20, 0.01), (7.75, 20, 0.01), (8.0, 20, 0.01))
OF_FIXED = [Episode(0.6, 1.0, 1.0), Episode(5.6, 6.0, 6.0), Episode(8.3, 9.0, 9.0)]
SLIDING = sent((0.3, 20, 0.02), (5.0, 10, 0.05), (5.5, 10, 0.05), (20.3, 20, 0.02))
OF_SLIDING = [Episode(0.75, 1.3, 1.3), Episode(5.99, 6.0, 6.0), Episode(20.8, 21.3, 21.3)]


def test_twice_as_many_around_an_edge_are_of_a_fixed_window() -> None:
    assert explain(seen(OF_FIXED, FIXED)) == Reading(Kind.FIXED, 20.0, 1.0)


def test_the_kind_is_left_open_while_both_explain_all() -> None:
    assert explain_window(seen(OF_FIXED[:2], FIXED)) == Reading(Kind.SLIDING, 20.0, 1.0)


def test_ends_that_no_edges_repeat_are_of_a_sliding_window() -> None:
    assert explain(seen(OF_SLIDING, SLIDING)) == Reading(Kind.SLIDING, 20.0, 1.0)


@pytest.mark.parametrize(
    ("at_most", "n", "window"),
    [
        pytest.param(math.inf, 40.0, 2.0, id="the highest rate"),
        pytest.param(0.1, 80.0, 900.0, id="up to one that was refused"),
        pytest.param(0.01, 80.0, 3600.0, id="the longest window where none is slow enough"),
    ],
)
def test_what_the_last_episode_says_alone(at_most: float, n: float, window: float) -> None:
    assert explain_last(seen(OF_FIXED, FIXED), at_most) == Reading(Kind.UNKNOWN, n, window)


def test_an_episode_before_which_nothing_went_says_nothing() -> None:
    assert explain_last(seen([Episode(0.0, 1.0, 1.0)], sent())) is None


def test_a_pace_that_was_refused_bounds_the_reading() -> None:
    got = explain_window(seen(OF_FIXED[:2], FIXED, failed_rate=18.0))
    assert got is not None
    assert got.rate < 18.0


@pytest.mark.parametrize(
    ("edge", "known_s", "most"),
    [
        pytest.param(9.0, 0.005, 30.0, id="the fullest of all windows before it"),
        pytest.param(3.0, 0.005, 10.0, id="none that comes after it"),
        pytest.param(2.0, 0.005, 10.0, id="the one that ends there"),
        pytest.param(9.0, 0.2, 15.0, id="only what was surely within the edges"),
        pytest.param(0.0, 0.005, 0.0, id="none at all"),
    ],
)
def test_what_surely_went_between_two_edges(edge: float, known_s: float, most: float) -> None:
    log = sent((1.5, 10, 0.01), (4.105, 30, 0.0065), (7.4, 15, 0.001))
    assert _most_between_edges(seen(OF_FIXED, log), edge, 1.0, known_s) == most


def test_what_went_before_the_limit_was_another_is_of_no_window() -> None:
    log = sent((4.105, 30, 0.0065), (7.4, 15, 0.001))
    evidence = Evidence(OF_FIXED, log, 0.005, since=5.5)
    assert _most_between_edges(evidence, 9.0, 1.0, 0.005) == 15.0


def test_a_hundred_windows_are_looked_at() -> None:
    assert _most_between_edges(seen(OF_FIXED, sent((5.0, 20, 0.01))), 1000.0, 10.0, 0.005) == 20.0


def test_before_anything_went_nothing_went_between_edges() -> None:
    assert _most_between_edges(seen(OF_FIXED, sent()), 9.0, 1.0, 0.0) == 0.0


@pytest.mark.parametrize(
    ("blur_s", "windows"),
    [
        pytest.param(
            0.0, [0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, *LONG], id="all that are common"
        ),
        pytest.param(2.0, [2.0, 5.0, 10.0, 15.0, 30.0, *LONG], id="none that is shorter than the blur"),
        pytest.param(2.2, [2.0, 5.0, 10.0, 15.0, 30.0, *LONG], id="or hardly shorter"),
        pytest.param(2.3, [5.0, 10.0, 15.0, 30.0, *LONG], id="but one that is much shorter"),
        pytest.param(1e5, LONG, id="the longest that is common is always told"),
    ],
)
def test_which_windows_can_be_told(blur_s: float, windows: list[float]) -> None:
    assert list(_candidates(seen([Episode(0.0, 1.0, 1.0 + blur_s)], sent()))) == windows


def test_evidence_is_unbounded_unless_told() -> None:
    evidence = Evidence([], sent(), 0.005)
    assert (evidence.failed_rate, evidence.since, evidence.slow_until) == (math.inf, -math.inf, -math.inf)


BETWEEN = sent((7.5, 3, 0.01), (8.0, 1, 0.0), (9.0, 10, 0.01))


@pytest.mark.parametrize(
    ("cost", "failed_rate", "n"),
    [
        pytest.param(1.0, math.inf, 14.0, id="the most that it can have held"),
        pytest.param(3.0, math.inf, 16.0, id="a dear one did not fit though two more may have"),
        pytest.param(1.0, 7.1, 14.0, id="more was refused at a pace, which says nothing"),
        pytest.param(1.0, 7.0, 11.0, id="as much was: between what it surely held and that"),
        pytest.param(1.0, 6.2, 11.0, id="and a part of one more was, so that many may have held"),
        pytest.param(1.0, 5.6, 10.0, id="rounded down"),
        pytest.param(1.0, 5.0, None, id="less was, which nothing explains"),
    ],
)
def test_what_windows_that_ended_about_then_have_held(
    cost: float, failed_rate: float, n: float | None
) -> None:
    """Two seconds to between 9 and 10, so ten surely and fourteen maybe: one only by jitter."""
    episode = Episode(9.9, 9.0, 10.0, cost)
    found = _agreed(seen([episode], BETWEEN, failed_rate), 2.0, Kind.FIXED, 0.0, [(9.0, 10.0)])
    assert found == (n and Reading(Kind.FIXED, n, 2.0))


@pytest.mark.parametrize(
    ("earliest", "n"),
    [
        pytest.param(17.0, 20.0, id="its edges are hardly known, so none tells where thirty went"),
        pytest.param(17.04, None, id="they are, and thirty went between two of them"),
    ],
)
def test_edges_are_known_to_a_quarter_of_the_window(earliest: float, n: float | None) -> None:
    log = sent((8.4, 30, 0.001), (16.6, 20, 0.001))
    found = _fixed(seen([Episode(17.2, earliest, 18.0)], log), 2.0)
    assert found == (n and Reading(Kind.FIXED, n, 2.0))


@pytest.mark.parametrize(
    ("early", "late", "failed_rate", "n"),
    [
        pytest.param(5, 0, 2.0, 1.0, id="half of the three that were not refused, as it may have held none"),
        pytest.param(1, 1, 1.0, 1.0, id="one, as two were refused"),
    ],
)
def test_how_little_a_window_may_have_held_whose_edges_are_hardly_known(
    early: int, late: int, failed_rate: float, n: float
) -> None:
    """Two seconds to between 9 and 10, so what went early may have been in the one before."""
    log = sent((7.5, early, 0.0), (9.0, late, 0.0))
    found = _fixed(seen([Episode(9.9, 9.0, 10.0)], log, failed_rate), 2.0)
    assert found == Reading(Kind.FIXED, n, 2.0)


def test_the_edges_are_those_that_are_known_best() -> None:
    """Thirty went a tenth of a second after one of them, which an end known to a fifth does not tell."""
    log = sent((4.1, 30, 0.0), (8.3, 20, 0.0), (10.3, 20, 0.0))
    episodes = [Episode(8.6, 8.8, 9.2), Episode(10.6, 11.0, 11.0)]
    assert _fixed(seen(episodes[:1], log), 1.0) == Reading(Kind.FIXED, 20.0, 1.0)
    assert _fixed(seen(episodes, log), 1.0) is None


@pytest.mark.parametrize(
    ("end", "n"),
    [
        pytest.param(11.0, 20.0, id="two windows later"),
        pytest.param(11.01, None, id="a little more"),
    ],
)
def test_the_edges_of_a_fixed_window_repeat(end: float, n: float | None) -> None:
    log = sent((8.3, 20, 0.0), (10.3, 20, 0.0))
    found = _fixed(seen([Episode(8.6, 9.0, 9.0), Episode(10.6, end, end)], log), 1.0)
    assert (found and found.n) == n


@pytest.mark.parametrize(
    ("spread_s", "n"),
    [
        pytest.param(0.988, None, id="thirty went within a window before"),
        pytest.param(0.992, 20.0, id="or so nearly so long apart that they may have come further"),
    ],
)
def test_a_sliding_window_holds_no_less_than_it_let_go(spread_s: float, n: float | None) -> None:
    log = sent((4.0, 15, 0.0), (4.0 + spread_s, 15, 0.0), (9.0, 20, 0.001))
    found = _sliding(seen([Episode(9.5, 10.0, 10.0)], log), 1.0)
    assert (found and found.n) == n


@pytest.mark.parametrize(
    ("end", "n"),
    [
        pytest.param(10.0, 20.0, id="all of it was in the window to the last"),
        pytest.param(10.004, 20.0, id="or may have been, by jitter"),
        pytest.param(10.02, None, id="it had left for long"),
    ],
)
def test_a_sliding_window_gives_way_when_something_leaves_it(end: float, n: float | None) -> None:
    found = _sliding(seen([Episode(9.5, end, end)], sent((9.0, 20, 0.0))), 1.0)
    assert (found and found.n) == n


@pytest.mark.parametrize(
    ("gone", "still", "n"),
    [
        pytest.param(10, 10, 20.0, id="half is still in it"),
        pytest.param(11, 9, None, id="less, so it had room before"),
        pytest.param(1, 1, 2.0, id="one of two is, which is half"),
    ],
)
def test_a_sliding_window_is_still_half_full_when_it_gives_way(
    gone: int, still: int, n: float | None
) -> None:
    """A second gave way at 10, half of it after it had refused."""
    found = _sliding(seen([Episode(9.5, 10.0, 10.0)], sent((8.7, gone, 0.0), (9.0, still, 0.0))), 1.0)
    assert (found and found.n) == n


def test_one_episode_that_no_sliding_window_makes_is_enough_against_it() -> None:
    log = sent((9.0, 20, 0.0), (19.0, 20, 0.0))
    late = Episode(19.5, 20.02, 20.02)  # when all had left it for long
    assert _sliding(seen([Episode(9.5, 10.0, 10.0), late], log), 1.0) is None
