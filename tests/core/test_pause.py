from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.core.pause import FIRST_S, LONGEST_S, Pause

NEVER_PAUSED = Pause()


def wait_s(pause: Pause, now: float, chance: float) -> float:
    return pause.after_429(now, None, chance).left(now)


def test_nothing_is_paused_at_first() -> None:
    assert NEVER_PAUSED.left(0.0) == 0.0


def test_what_is_left_counts_down_to_zero() -> None:
    pause = Pause(until=10.0)
    assert [pause.left(now) for now in (4.0, 9.5, 10.0, 11.0)] == [6.0, 0.5, 0.0, 0.0]


@pytest.mark.parametrize(
    ("retry_after_s", "chance", "left_s"),
    [
        pytest.param(3.0, 0.0, 3.0, id="as stated"),
        pytest.param(3.0, 0.5, 3.025, id="and a little more"),
        pytest.param(0.0, 0.0, 0.0, id="stated as none"),
        pytest.param(1e9, 0.0, 1e9, id="longer than any backoff"),
    ],
)
def test_a_stated_wait_decides(retry_after_s: float, chance: float, left_s: float) -> None:
    assert NEVER_PAUSED.after_429(100.0, retry_after_s, chance).left(100.0) == pytest.approx(left_s)


@pytest.mark.parametrize(
    ("chance", "waits"),
    [
        pytest.param(0.0, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0], id="least chance"),
        pytest.param(0.5, [0.75, 1.5, 3.0, 6.0, 12.0, 24.0, 45.0, 45.0], id="middle chance"),
        pytest.param(1.0, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0], id="most chance"),
    ],
)
def test_without_a_stated_wait_each_one_doubles_up_to_a_minute(chance: float, waits: list[float]) -> None:
    pause, now = NEVER_PAUSED, 1000.0
    seen = []
    for _ in waits:
        pause = pause.after_429(now, None, chance)
        seen.append(pause.left(now))
        now = pause.until
    assert seen == pytest.approx(waits)
    assert seen[0] >= FIRST_S
    assert seen[-1] <= LONGEST_S


def test_the_doubling_ends_also_in_a_very_long_series() -> None:
    pause = Pause(until=5.0, streak=100_000)
    assert wait_s(pause, 5.0, 1.0) == LONGEST_S


@pytest.mark.parametrize(
    ("now", "streak"),
    [
        pytest.param(20.0, 4, id="at once"),
        pytest.param(29.9, 4, id="before it is calm"),
        pytest.param(30.0, 1, id="after ten calm seconds"),
    ],
)
def test_calm_begins_a_new_series(now: float, streak: int) -> None:
    assert Pause(until=20.0, streak=3).after_429(now, None, 0.0).streak == streak


@pytest.mark.parametrize(
    ("before", "streak"),
    [
        pytest.param(Pause(until=20.0, streak=3), 3, id="in a backoff"),
        pytest.param(Pause(until=20.0, streak=0), 1, id="in a stated pause"),
    ],
)
def test_the_429s_of_one_burst_count_once(before: Pause, streak: int) -> None:
    """Requests that were under way when the pause began bring no news; a hundred are not a long series."""
    pause = before
    for _ in range(100):
        pause = pause.after_429(19.0, None, 0.0)
    assert pause.streak == streak
    assert pause.left(19.0) == pytest.approx(max(1.0, FIRST_S * 2**streak / 2))


def test_a_stated_wait_ends_the_series() -> None:
    assert Pause(until=20.0, streak=3).after_429(20.0, 1.0, 0.0).streak == 0


chances = st.floats(0, 1, exclude_max=True)
events = st.tuples(st.floats(0, 30), st.none() | st.floats(0, 100), chances)


@given(st.lists(events, max_size=40))
def test_a_pause_never_gets_shorter(course: list[tuple[float, float | None, float]]) -> None:
    """Whatever comes in whichever order: the end only moves away, and by no less than was stated."""
    now, pauses = 0.0, [NEVER_PAUSED]
    for gap, stated, chance in course:
        now += gap
        pauses.append(pauses[-1].after_429(now, stated, chance))
        assert pauses[-1].left(now) >= (FIRST_S if stated is None else stated) - 1e-9
    assert all(earlier.until <= later.until for earlier, later in pairwise(pauses))


@given(st.builds(Pause, st.floats(-100, 100), st.integers(0, 2000)), st.none() | st.floats(0, 100), chances)
def test_chance_only_adds(pause: Pause, stated: float | None, chance: float) -> None:
    assert pause.after_429(0.0, stated, chance).until >= pause.after_429(0.0, stated, 0.0).until
