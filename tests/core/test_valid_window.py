"""X-Gateway-Valid-Ms in virtual time: when the window of a timestamp that was dated back really ends.

The exchange's clock drifts and is off by anything; samples of it take any way there and back. An order is
stamped some time after its head was read, and reaches the exchange whenever the test wants.
"""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealgate.core.clock import Sample, ServerClock
from sealgate.errors import Refusal

WINDOW_MS = 5000
ROUNDING_MS = 3
delays = st.floats(0.0, 0.08)


def server_at(now: float, offset: float, ppm: float) -> float:
    return now * (1 + ppm * 1e-6) + offset


def is_accepted(timestamp_ms: int, server: float) -> bool:
    return abs(math.floor(server * 1000) - timestamp_ms) <= WINDOW_MS


@settings(max_examples=400)
@given(
    st.floats(-1e6, 2e9),
    st.floats(-90.0, 90.0),
    st.lists(st.tuples(st.floats(0.0, 40.0), delays, delays), min_size=1, max_size=6),
    st.integers(50, WINDOW_MS),
    st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.5)),
)
def test_the_window_ends_as_promised(
    offset: float,
    ppm: float,
    ways: list[tuple[float, float, float]],
    valid_ms: int,
    course: tuple[float, float],
) -> None:
    """`course`: when it is stamped, and when it arrives, both in parts of what it is valid."""
    clock, now, (waited, arrives) = ServerClock(), 1000.0, course
    for gap, there, back in ways:
        sent = now + gap
        now = sent + there + back
        server = math.floor(server_at(sent + there, offset, ppm) * 1000) / 1000
        clock = clock.observe(Sample(sent, now, server))
    read_at = now
    stamped_at = read_at + waited * valid_ms / 1000
    bound_ms = clock.error(stamped_at) * 1000
    left_s = read_at + valid_ms / 1000 - stamped_at
    if valid_ms < 2 * math.ceil(bound_ms):
        with pytest.raises(Refusal, match="too short"):
            clock.end_ms(valid_ms, left_s, stamped_at)
        return
    timestamp_ms = clock.end_ms(valid_ms, left_s, stamped_at) - WINDOW_MS
    arrives_at = max(stamped_at, read_at + arrives * valid_ms / 1000)
    elapsed_ms = (arrives_at - read_at) * 1000
    if is_accepted(timestamp_ms, server_at(arrives_at, offset, ppm)):
        assert elapsed_ms <= valid_ms + bound_ms + ROUNDING_MS
    else:
        assert elapsed_ms >= valid_ms - 2 * bound_ms - ROUNDING_MS
