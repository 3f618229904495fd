"""What is known of limits, kept over a restart."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.core.limits import ALL, READS, Limit, LimitEstimator, Weights
from sealgate.core.limits.claims import Claim
from sealgate.core.limits.memory import Snapshot, is_limit, kept_in_words, restore, snapshot
from sealgate.core.routes import Lane


def kept(n: float = 20.0, window: float = 1.0, weights: Weights = ALL, age_s: float = 180.0) -> Snapshot:
    """Return what the journal keeps of a limit that was learned from 14 refusals."""
    rate = n / window
    return snapshot([Limit(n, window, rate, rate, weights, seen=14, last_seen=-age_s)], 0.0)


def restored(plain: Any, now: float = 0.0) -> LimitEstimator:
    estimator = LimitEstimator()
    restore(estimator, plain, now)
    return estimator


@given(
    st.floats(0.5, 1e6),
    st.floats(0.01, 3600),
    st.none() | st.floats(1, 1.5),
    st.integers(0, 10**6),
    st.floats(0, 1e7),
)
def test_what_was_learned_is_believed_as_it_held(
    n: float, window: float, up: float | None, seen: int, age: float
) -> None:
    rate = n / window
    high = math.inf if up is None else up * rate
    limit = Limit(n, window, rate, high, seen=seen, last_seen=1e7 - age if seen else -math.inf)
    (back,) = restored(json.loads(json.dumps(snapshot([limit], 1e7))), 50.0).limits
    assert (back.n, back.window, back.low, back.high, back.seen) == (n, window, rate, high, seen)
    assert 50.0 - back.last_seen == pytest.approx(age if seen else math.inf, abs=1e-6)
    assert back.next_at > 50.0, "nothing more is tried before it was seen to hold"


@pytest.mark.parametrize("weights", [ALL, READS, (2.0, 4.0)])
def test_a_restart_starts_slow_until_a_window_has_passed(weights: Weights) -> None:
    estimator = restored(kept(20.0, 10.0, weights), 100.0)
    reads = [Claim(str(number), "a", Lane.READ, 1e9, is_read=True) for number in range(40)]
    went = []
    for now in (100.0, 111.0):
        before = len(reads)
        while estimator.ready_at(reads[-1], now, is_paced=False) <= now:
            estimator.took(reads.pop(), now, is_paced=False)
        went.append(before - len(reads))
    assert went == [16 / weights[0], 20 / weights[0]]


def test_a_limit_that_is_known_is_kept_to_at_once() -> None:
    estimator = restored(kept(1.0, 10.0), 0.0)
    read = Claim("1", "a", Lane.READ, 1e9, is_read=True)
    estimator.took(read, 1.0, is_paced=False)
    assert estimator.ready_at(read, 1.0, is_paced=False) > 10.0


def test_published_limits_are_not_kept() -> None:
    assert snapshot([Limit(20.0, 1.0, 20.0, 20.0, most=20.0)], 0.0) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"n": 0.0},
        {"window": 0.0},
        {"window": -1.0},
        {"low": 0.0},
        {"high": math.inf},
        {"n": math.nan},
        {"seen": -1},
        {"step": 1.0},
        {"reads": 0.0, "others": 0.0},
        {"age": math.inf},
        {"n": "20"},
        {"n": None},
        {"n": True},
    ],
)
def test_what_is_no_limit_is_left_out(wrong: dict[str, Any]) -> None:
    (sound,) = kept()
    assert is_limit(sound)
    assert not is_limit(sound | wrong)
    assert len(restored([sound | wrong, sound]).limits) == 1


def test_what_an_older_version_kept_is_left_out() -> None:
    assert restored([{"n": 20.0, "window": 1.0, "scope": 0, "seen": 3, "age": 5.0}]).limits == []


def test_a_list_without_end_is_cut() -> None:
    assert len(restored(kept() * 99).limits) == 10


def test_what_was_kept_in_words() -> None:
    words = "20 per 1 s, from 14 refusals; last 3 min ago"
    assert kept_in_words([*kept(), {"n": -1.0}], 0.0) == [words]
