import math
from collections.abc import Sequence

import pytest

from sealgate.core.pacing.claims import Claim
from sealgate.core.pacing.limit import Limit
from sealgate.core.pacing.pace import Pace
from sealgate.core.pacing.round_trips import RoundTrips
from sealgate.core.pacing.sent_log import SentLog
from sealgate.core.routes import Lane

ORDER = Claim("1", "a", Lane.ORDER, math.inf)
EVENLY = [index * 0.08 for index in range(12)]  # up to 0.9


def pace_after(times: Sequence[float]) -> Pace:
    """Return the pace after requests at these times, where round trips take as long as each other."""
    log, trips = SentLog(3600.0), RoundTrips()
    for at in times:
        log.add(at, 1.0)
    trips.spread_s = 0.0
    return Pace(log, trips)


@pytest.mark.parametrize(
    ("window", "room_at"),
    [
        pytest.param(2.0, 2.16, id="a short window may run full"),
        pytest.param(2.5, 2.82, id="a long one only to four fifths"),
    ],
)
def test_a_flood_is_spread_over_a_long_window(window: float, room_at: float) -> None:
    limit = Limit(10.0, window)
    assert pace_after(EVENLY).room_at(limit, ORDER, 0.9, is_paced=False) == pytest.approx(room_at)


@pytest.mark.parametrize(
    ("count", "room_at"),
    [
        pytest.param(10, -math.inf, id="twice the pace is none"),
        pytest.param(11, 2.0, id="more is"),
    ],
)
def test_what_is_a_flood(count: int, room_at: float) -> None:
    pace = pace_after([-3.0] * (22 - count) + [0.01 + index * 0.08 for index in range(count)])
    assert pace.room_at(Limit(25.0, 5.0), ORDER, 0.9, is_paced=False) == room_at


@pytest.mark.parametrize(
    ("n", "room_at"),
    [
        pytest.param(11.995, -math.inf, id="a little less than twelve lets twelve go"),
        pytest.param(11.005, 1.0, id="a little more than eleven eleven"),
        pytest.param(11.015, -math.inf, id="and more than that one more"),
    ],
)
def test_a_limit_lets_whole_requests_go(n: float, room_at: float) -> None:
    assert pace_after([0.0] * 11).room_at(Limit(n, 1.0), ORDER, 0.9, is_paced=True) == room_at


@pytest.mark.parametrize(
    ("window", "sent_at", "spacing_s"),
    [
        pytest.param(2.0, 0.0, 0.2, id="a short window: the even pace"),
        pytest.param(2.5, 0.0, 2.1875, id="a long one: one place for nearly all of it"),
        pytest.param(2.5, -2.1, 0.3125, id="or for its first part, which is soon over"),
        pytest.param(2.5, -2.4, 0.25, id="or for so little of it that the even pace is slower"),
    ],
)
def test_the_pace_is_slower_where_a_long_window_ahead_has_less_room(
    window: float, sent_at: float, spacing_s: float
) -> None:
    assert pace_after([sent_at] * 9).spacing_s(Limit(10.0, window), 0.0) == pytest.approx(spacing_s)
