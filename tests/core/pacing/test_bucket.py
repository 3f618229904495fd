"""What bucket explains episodes: plain situations, with trips that differ by 5 ms."""

import pytest

from core.pacing.test_explain import seen, sent
from sealgate.core.pacing.bucket import _agreed_rate, explain_bucket
from sealgate.core.pacing.episode import Episode
from sealgate.core.pacing.explain import explain
from sealgate.core.pacing.reading import Evidence, Kind, Reading

BUCKET = sent((0.0, 5, 0.001), (0.1, 20, 0.1), (2.1, 20, 0.1))
OF_BUCKET = [Episode(at - 0.05, at, at, resumed=at) for at in (0.1, 2.1, 4.1)]


def test_a_burst_and_an_even_rate_are_of_a_bucket() -> None:
    assert explain_bucket(seen(OF_BUCKET[:2], BUCKET), 2) == Reading(Kind.BUCKET, 6.0, 0.6)


def test_two_episodes_tell_no_bucket() -> None:
    assert explain_bucket(seen(OF_BUCKET[:2], BUCKET)) is None


@pytest.mark.parametrize(
    ("resumed", "rate"),
    [
        pytest.param(0.35, 10.0, id="soon after it gave way"),
        pytest.param(0.45, None, id="so late that it may have been full"),
    ],
)
def test_a_bucket_is_told_where_it_was_not_full_in_between(resumed: float, rate: float | None) -> None:
    first = Episode(0.05, 0.1, 0.1, resumed=resumed)
    got = explain_bucket(seen([first, OF_BUCKET[1]], BUCKET), 2)
    assert (got and got.rate) == (rate and pytest.approx(rate))


@pytest.mark.parametrize(
    ("later", "rate"),
    [
        pytest.param(200, 10.0, id="the same"),
        pytest.param(203, 10.075, id="nearly the same"),
        pytest.param(205, 0.0, id="another"),
    ],
)
def test_when_the_rates_of_a_bucket_agree(later: int, rate: float) -> None:
    episodes = [Episode(at, at, at) for at in (0.0, 20.0, 40.0)]
    log = sent((0.05, 200, 0.09), (20.05, later, 0.09))
    assert _agreed_rate(Evidence(episodes, log, 0.0), episodes) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("later", "rate"),
    [
        pytest.param(22, 10.5, id="nearly the same"),
        pytest.param(23, 0.0, id="another"),
    ],
)
def test_rates_agree_as_far_as_the_ends_are_known(later: int, rate: float) -> None:
    """The middle one of three is known to 50 ms either way, and they are two seconds apart."""
    episodes = [Episode(0.0, 0.0, 0.0), Episode(1.95, 1.95, 2.05), Episode(4.0, 4.0, 4.0)]
    log = sent((0.05, 20, 0.09), (2.01, later, 0.08))
    assert _agreed_rate(Evidence(episodes, log, 0.0), episodes) == pytest.approx(rate)


def test_refusals_at_one_moment_tell_no_rate() -> None:
    assert explain_bucket(seen([OF_BUCKET[0]] * 3, BUCKET)) is None


EVEN = sent((0.001, 60, 0.125))
OF_EVEN = [Episode(at, at, at, resumed=at) for at in (1.0, 3.0, 5.0)]


def test_a_bucket_of_an_even_pace_has_a_burst_of_one() -> None:
    assert explain_bucket(seen(OF_EVEN, EVEN)) == Reading(Kind.BUCKET, 1.0, 0.125)


@pytest.mark.parametrize(("slow_until", "is_told"), [(0.9, True), (1.0, False)])
def test_what_was_refused_before_the_pace_was_slow_tells_of_no_bucket(
    slow_until: float, *, is_told: bool
) -> None:
    evidence = Evidence(OF_EVEN, EVEN, 0.005, slow_until=slow_until)
    assert (explain_bucket(evidence) is not None) is is_told


@pytest.mark.parametrize(
    ("wait_s", "is_told"),
    [pytest.param(1.0, True, id="eight requests' time"), pytest.param(1.01, False, id="more")],
)
def test_how_long_a_bucket_may_make_wait(wait_s: float, *, is_told: bool) -> None:
    episodes = [*OF_EVEN[:2], Episode(5.0 - wait_s, 5.0, 5.0)]
    assert (explain_bucket(seen(episodes, EVEN)) is not None) is is_told


@pytest.mark.parametrize(
    ("blur_s", "is_told"),
    [pytest.param(0.09, True, id="sharply"), pytest.param(0.11, False, id="not sharply")],
)
def test_a_bucket_is_told_where_all_ends_are_known(blur_s: float, *, is_told: bool) -> None:
    first = Episode(0.89, 1.0 - blur_s, 1.0 + blur_s, resumed=1.0 + blur_s)
    assert (explain_bucket(seen([first, *OF_EVEN[1:]], EVEN)) is not None) is is_told


def test_a_bucket_that_may_have_been_full_once_is_told_by_what_came_later() -> None:
    full = Episode(0.5, 0.5, 0.5, resumed=0.9)
    assert explain_bucket(seen([full, *OF_EVEN], EVEN)) == Reading(Kind.BUCKET, 1.0, 0.125)


@pytest.mark.parametrize(("which", "is_told"), [(0, False), (1, False), (2, True)])
def test_no_bucket_is_told_that_may_have_been_full_between_any_two(which: int, *, is_told: bool) -> None:
    episodes = list(OF_EVEN)
    at = episodes[which].gave_way
    episodes[which] = Episode(at, at, at, resumed=at + 0.4)
    assert (explain_bucket(seen(episodes, EVEN)) is not None) is is_told


@pytest.mark.parametrize(
    ("at", "burst"),
    [pytest.param(11.5, 20.0, id="of late"), pytest.param(9.5, 1.0, id="longer ago: it may be another")],
)
def test_the_burst_of_a_bucket_that_changed_is_that_of_the_last_ten_seconds(at: float, burst: float) -> None:
    """The first gap had another rate, so only the last three episodes agree."""
    log = sent((at, 19, 0.0), (at + 0.001, 120, 0.125))
    episodes = [Episode(one, one, one, resumed=one) for one in (1.0, 21.0, 22.0, 23.0)]
    found = explain_bucket(seen(episodes, log))
    assert found is not None
    assert found.n == burst
    assert found.rate == pytest.approx(8.0)


def test_two_episodes_are_enough_for_a_bucket_where_no_window_explains_them() -> None:
    later = Episode(2.4, 2.45, 2.45, resumed=2.45)
    found = explain(seen([OF_BUCKET[0], later], BUCKET))
    assert found is not None
    assert (found.kind, found.n) == (Kind.BUCKET, 6.0)
