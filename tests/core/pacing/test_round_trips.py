import pytest

from sealgate.core.pacing.round_trips import FIRST_S, RoundTrips


def test_the_spread_leaves_out_the_slowest_tenth() -> None:
    trips = RoundTrips()
    assert trips.spread_s == FIRST_S
    for index in range(20):
        trips.add(5.0 if index == 7 else 0.040 + 0.001 * (index % 10))
    assert trips.spread_s == pytest.approx(0.009)


def test_the_spread_follows_a_change() -> None:
    trips = RoundTrips()
    for seconds in [0.1, 0.2] * 30 + [0.04] * 60:
        trips.add(seconds)
    assert trips.spread_s == 0.0
