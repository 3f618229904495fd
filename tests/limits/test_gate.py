import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.limits.gate import Gate, usable

WAITS = st.none() | st.floats(0, 1e9)


@pytest.mark.parametrize(
    ("stated_s", "expected"),
    [(0.0, 0.0), (1.5, 1.5), (3.2e8, 3.2e8), (None, None), (-1.0, None), (math.nan, None), (math.inf, None)],
)
def test_what_no_pause_can_mean_counts_as_absent(stated_s: float | None, expected: float | None) -> None:
    assert usable(stated_s) == expected


@given(st.floats(0, 1e9), st.floats(0, 1, exclude_max=True))
def test_a_stated_wait_is_never_shortened(stated_s: float, chance: float) -> None:
    gate = Gate().throttled(100.0, stated_s, chance, is_scout=False)
    assert gate.until >= 100.0 + stated_s
    assert gate.until <= 100.0 + stated_s + 0.0051


@given(st.lists(st.tuples(st.floats(0, 10), WAITS, st.floats(0, 0.99), st.booleans())))
def test_no_429_brings_the_end_of_a_pause_nearer(
    refusals: list[tuple[float, float | None, float, bool]],
) -> None:
    gate, now = Gate(), 0.0
    for later_s, stated_s, chance, is_scout in refusals:
        now += later_s
        following = gate.throttled(now, stated_s, chance, is_scout=is_scout)
        assert following.until >= gate.until
        gate = following


def test_backoff_doubles_with_each_refused_scout_up_to_a_bound() -> None:
    gate = Gate().throttled(0.0, None, 0.0, is_scout=False)
    lengths = [gate.length_s]
    for _ in range(8):
        gate = gate.throttled(gate.until, None, 0.0, is_scout=True)
        lengths.append(gate.length_s)
    assert lengths == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]


def test_the_upper_half_of_the_backoff_is_random() -> None:
    ends = [Gate().throttled(0.0, None, chance, is_scout=False).until for chance in (0.0, 0.5, 0.99)]
    assert ends == pytest.approx([0.25, 0.375, 0.4975])


def test_a_scout_refused_doubles_what_is_stated() -> None:
    gate = Gate().throttled(0.0, 1.0, 0.0, is_scout=False)
    assert gate.throttled(1.0, 0.2, 0.0, is_scout=True).left_s(1.0) == 2.0


def test_the_burst_that_began_a_pause_says_nothing_new() -> None:
    gate = Gate().throttled(0.0, None, 0.5, is_scout=False)
    assert gate.throttled(0.01, None, 0.9, is_scout=False) is gate
    assert gate.throttled(0.01, 3.0, 0.0, is_scout=False).until == 3.01


def test_at_the_end_of_a_pause_a_refusal_begins_another() -> None:
    assert Gate(10.0, 1.0).throttled(10.0, None, 0.0, is_scout=False) == Gate(10.25, 0.5, in_a_row=1)


def test_what_is_stated_is_spread_by_five_milliseconds() -> None:
    assert Gate().throttled(0.0, 1.0, 0.5, is_scout=False) == Gate(1.0025, 1.0, is_stated=True, in_a_row=1)


@pytest.mark.parametrize(("until", "expected"), [(7.0, Gate(7.0, 1.0)), (3.0, Gate(5.0, 1.0))])
def test_what_another_gateway_was_told_only_lengthens_a_pause(until: float, expected: Gate) -> None:
    assert Gate(5.0, 1.0).held(until) == expected


def test_a_gate_that_never_closed_is_open() -> None:
    assert Gate() == Gate(-math.inf, 0.0)
    assert Gate().left_s(0.0) == 0.0


def test_a_stated_wait_of_nothing_is_not_believed_twice() -> None:
    """An upstream that says 0 and refuses again would be hammered by those who wait."""
    gate, now = Gate(), 0.0
    waits: list[float] = []
    for _ in range(5):
        gate = gate.throttled(now, 0.0, 0.0, is_scout=bool(waits))
        waits.append(gate.left_s(now))
        now = gate.until
    assert waits == pytest.approx([0.0, 0.05, 0.1, 0.2, 0.4])
