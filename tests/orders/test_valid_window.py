"""X-Gateway-Valid-Ms in virtual time: when the window of a timestamp that was dated back really ends.

The exchange's clock drifts and is off by anything; samples of it take any way there and back. An order is
stamped some time after its head was read, and reaches the exchange whenever the test wants.
"""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealgate.errors import Refusal
from sealgate.exchange.clock import Sample, ServerClock
from sealgate.exchange.stamps import Stamps
from sealgate.orders.validity import begin_validity, parse_valid_ms

WINDOW_MS = 5000
ROUNDING_MS = 3
delays = st.floats(0.0, 0.08)


def server_at(now: float, offset: float, ppm: float) -> float:
    return now * (1 + ppm * 1e-6) + offset


def is_accepted(timestamp_ms: int, server: float) -> bool:
    return abs(math.floor(server * 1000) - timestamp_ms) <= WINDOW_MS


@pytest.mark.slow
@settings(max_examples=150)
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
    validity = begin_validity(valid_ms, read_at, "main", WINDOW_MS)
    if valid_ms < 2 * math.ceil(bound_ms):
        with pytest.raises(Refusal, match="too short"):
            validity.stamp(clock, Stamps(), 7, stamped_at)
        return
    timestamp_ms = validity.stamp(clock, Stamps(), 7, stamped_at)
    arrives_at = max(stamped_at, read_at + arrives * valid_ms / 1000)
    elapsed_ms = (arrives_at - read_at) * 1000
    if is_accepted(timestamp_ms, server_at(arrives_at, offset, ppm)):
        assert elapsed_ms <= valid_ms + bound_ms + ROUNDING_MS
    else:
        assert elapsed_ms >= valid_ms - 2 * bound_ms - ROUNDING_MS


SYNCED = ServerClock().observe(Sample(99.99, 100.0, 5000.0))


@pytest.mark.parametrize("valid_ms", [30, 100, 150, 5000])
def test_equal_orders_at_once_lose_at_most_a_tenth_of_their_time(valid_ms: int) -> None:
    """Whatever equal requests without the header came before them."""
    stamps, content = Stamps(), 7
    for _ in range(200):
        stamps.take(int(SYNCED.timestamp_ms(100.0)), content)
    taken = [
        begin_validity(valid_ms, 100.0, "main", WINDOW_MS).stamp(SYNCED, stamps, content, 100.0)
        for _ in range(200)
    ]
    assert min(taken) == max(taken) - min(valid_ms // 10, 199)
    assert len(set(taken)) == min(valid_ms // 10 + 1, 200)


def test_the_end_is_one_for_all_attempts_and_then_it_is_over() -> None:
    validity, stamps = begin_validity(100, 100.0, "main", WINDOW_MS), Stamps()
    first = validity.stamp(SYNCED, stamps, 7, 100.0)
    later = SYNCED.observe(Sample(100.04, 100.05, 5000.06))
    assert first - 2 <= validity.stamp(later, stamps, 7, 100.06) <= first
    validity.check(100.099)
    with pytest.raises(Refusal) as over:
        validity.check(100.1)
    assert over.value.slug == "deadline_exceeded"
    assert [validity.explains(at, 0.01) for at in (100.05, 100.08, 100.2)] == [False, True, True]


def test_a_validity_that_cannot_be_held_is_refused() -> None:
    for text in ("", "0", "1.5", "\u0661"):
        with pytest.raises(Refusal, match="whole number"):
            parse_valid_ms(text)
    assert parse_valid_ms("0100") == 100
    with pytest.raises(Refusal, match="not known to the millisecond"):
        begin_validity(100, 0.0, "main", None)
    with pytest.raises(Refusal, match=r"above keys\.main\.recv_window_ms, 5000 ms"):
        begin_validity(5001, 0.0, "main", WINDOW_MS)
    with pytest.raises(Refusal) as unsynced:
        begin_validity(100, 0.0, "main", WINDOW_MS).stamp(ServerClock(), Stamps(), 7, 0.0)
    assert unsynced.value.slug == "clock_unsynced"
