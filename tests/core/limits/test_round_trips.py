import pytest

from sealgate.core.limits.round_trips import RoundTrips


def test_the_spread_leaves_out_the_slowest() -> None:
    trips = RoundTrips()
    assert trips.spread_s == 0.005
    for index in range(20):
        trips.add(5.0 if index == 7 else 0.040 + 0.001 * (index % 10))
    assert trips.spread_s == pytest.approx(0.009)


def test_the_spread_follows_a_change() -> None:
    trips = RoundTrips()
    for seconds in [0.1, 0.2] * 30 + [0.04] * 60:
        trips.add(seconds)
    assert trips.spread_s == 0.0


def test_of_sixty_the_two_slowest_are_left_out() -> None:
    trips = RoundTrips()
    for index in range(61):
        trips.add({0: 9.0, 5: 0.3, 6: 0.4, 7: 0.5, 19: 0.05}.get(index, 0.1))
    assert trips.spread_s == pytest.approx(0.35), "of the first sixty: it is worked out once per twenty"
    for _ in range(19):
        trips.add(0.1)
    assert trips.spread_s == pytest.approx(0.0), "the latest sixty count"


def test_the_spread_is_known_after_twenty() -> None:
    trips = RoundTrips()
    known = []
    for _ in range(20):
        known.append(trips.is_known)
        trips.add(0.1)
    assert [*known, trips.is_known] == [False] * 20 + [True]
