import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.core.clock import Jump, SystemClocks, find_jump

BEFORE = SystemClocks(boot=1000.0, mono=900.0, wall=1_790_000_000.0)


def later(boot: float, mono: float, wall: float) -> SystemClocks:
    return SystemClocks(BEFORE.boot + boot, BEFORE.mono + mono, BEFORE.wall + wall)


def test_the_words_that_log_and_metrics_use() -> None:
    assert [*Jump] == ["suspend", "wall_step"]


@pytest.mark.parametrize(
    ("after", "jump"),
    [
        pytest.param(later(5.0, 5.0, 5.0), None, id="time passes"),
        pytest.param(later(5.0, 5.0, 5.05), None, id="read one after the other"),
        pytest.param(later(3600.0, 5.0, 3600.0), Jump.SUSPEND, id="laptop closed"),
        pytest.param(later(3600.0, 5.0, 5.0), Jump.SUSPEND, id="closed, and the wall clock not yet set"),
        pytest.param(later(5.0, 5.0, 3605.0), Jump.WALL_STEP, id="set forward"),
        pytest.param(later(5.0, 5.0, -3595.0), Jump.WALL_STEP, id="set back"),
        pytest.param(later(5.15, 5.0, 5.15), Jump.SUSPEND, id="a nap"),
        pytest.param(later(5.0, 5.0, 5.15), Jump.WALL_STEP, id="set a little forward"),
    ],
)
def test_jumps(after: SystemClocks, jump: Jump | None) -> None:
    assert find_jump(BEFORE, after) is jump


@given(st.floats(0, 1e6))
def test_a_stopped_process_is_no_jump(seconds: float) -> None:
    """All clocks go on while the process does not: what was known still holds."""
    assert find_jump(BEFORE, later(seconds, seconds, seconds)) is None


def test_a_tenth_of_a_second_is_no_jump() -> None:
    start = SystemClocks(0.0, 0.0, 0.0)
    assert find_jump(start, SystemClocks(0.1, 0.0, 0.1)) is None
    assert find_jump(start, SystemClocks(0.0, 0.0, 0.1)) is None
