import pytest

from sealgate.core.pacing.patience import Patience

_PAUSE_S = 0.04


def refused(*times: float, is_burst: bool = False) -> Patience:
    patience = Patience()
    for at in times:
        patience.refused(at, at + _PAUSE_S, is_burst=is_burst)
    return patience


def apart(count: int) -> Patience:
    """Refusals of which each was sent after the pause of the one before."""
    return refused(*[1.0 + 0.1 * index for index in range(count)])


@pytest.mark.parametrize(("count", "is_thin"), [(0, False), (2, False), (3, True), (9, True)])
def test_a_few_refusals_are_what_learning_takes(count: int, is_thin: bool) -> None:
    assert apart(count).is_thin(2.0) is is_thin
    assert refused(*[1.0] * count).is_thin(2.0) is is_thin


@pytest.mark.parametrize(("count", "slowness"), [(0, 1), (4, 1), (5, 2), (6, 4), (8, 16), (80, 16)])
def test_each_one_beyond_halves_the_pace(count: int, slowness: int) -> None:
    assert apart(count).slowness(9.0) == slowness
    assert refused(*[1.0] * count).slowness(9.0) == slowness


@pytest.mark.parametrize("size", [1, 2, 9, 80])
def test_the_volley_of_a_burst_does_not_slow_down_however_large(size: int) -> None:
    assert refused(*[1.0] * size, is_burst=True).slowness(2.0) == 1


def test_the_volley_lasts_as_long_as_somebody_may_not_have_heard_of_its_pause() -> None:
    patience = Patience()
    for at in (1.0, 1.0, 1.02, 1.04, 1.06, 1.08):
        patience.refused(at, 1.1, is_burst=True)
    assert patience.slowness(2.0) == 1


def test_what_was_sent_just_as_the_pause_ended_is_of_the_volley() -> None:
    patience = Patience()
    for at in (1.0, 1.0, 1.5, 1.5):
        patience.refused(at, 1.5, is_burst=True)
    patience.refused(2.0, 2.0, is_burst=False)
    assert patience.slowness(3.0) == 1


def test_several_volleys_do() -> None:
    twice = [1.0] * 9 + [2.0] * 9
    assert refused(*twice, is_burst=True).slowness(4.0) == 1
    assert refused(*twice, *[3.0] * 9, is_burst=True).slowness(4.0) == 4


def test_what_is_refused_after_the_volley_tells_as_ever() -> None:
    patience = refused(*[1.0] * 9, is_burst=True)
    for at in (2.0, 2.1, 2.2):
        patience.refused(at, at + _PAUSE_S, is_burst=False)
    assert patience.slowness(3.0) == 2


def test_what_is_ten_seconds_old_is_forgiven() -> None:
    patience = refused(0.0, 1.0, 2.0, 3.0, 4.0)
    assert patience.slowness(9.9) == 2
    assert patience.slowness(10.0) == 1
    assert not patience.is_thin(12.0)


def test_the_oldest_is_forgiven_first() -> None:
    patience = refused(0.0, 9.0, 9.1, 9.2)
    assert patience.is_thin(10.5)
    assert not patience.is_thin(19.05)
