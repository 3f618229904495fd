import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.core.pacing.limit import Limit
from sealgate.core.pacing.memory import kept_in_words, restore, snapshot
from sealgate.core.pacing.sent_log import LimitScope

KEPT = {"n": 20.0, "window": 1.0, "scope": 0, "seen": 3, "age": 5.0}


@given(st.floats(0.5, 1e6), st.floats(0.01, 3600), st.integers(1, 10**6), st.floats(0, 1e7))
def test_what_was_learned_comes_back_with_less_trust(n: float, window: float, seen: int, age: float) -> None:
    limit = Limit(n, window, seen=seen, last_seen=1e7 - age)
    (back,) = restore(json.loads(json.dumps(snapshot([limit], 1e7))), 50.0)
    assert (back.window, back.seen) == (window, seen)
    assert back.n == pytest.approx(0.8 * n)
    assert 50.0 - back.last_seen == pytest.approx(age, abs=1e-6)


def test_the_first_step_after_a_restart_ends_where_it_held() -> None:
    (limit,) = restore([KEPT], 0.0)
    assert limit.probe_at == 10.0
    limit.probe(limit.probe_at, limit.n)
    assert limit.allowed(is_read=True) == pytest.approx(20.0)


def test_a_limit_on_reads_comes_back_as_one() -> None:
    (back,) = restore(
        json.loads(json.dumps(snapshot([Limit(20.0, 1.0, scope=LimitScope.READS, last_seen=0.0)], 0.0))), 0.0
    )
    assert back.scope is LimitScope.READS


def test_published_limits_are_not_kept() -> None:
    assert snapshot([Limit(20.0, 1.0, most=20.0)], 0.0) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"n": 0.0},
        {"window": 0.0},
        {"window": -1.0},
        {"n": math.nan},
        {"seen": -1},
        {"scope": 3},
        {"scope": 0.5},
        {"age": math.inf},
        {"n": "20"},
        {"n": None},
    ],
)
def test_what_is_not_plausible_is_left_out(wrong: dict[str, float]) -> None:
    assert restore([KEPT | wrong, KEPT], 0.0) == restore([KEPT], 0.0)
    assert restore([{"n": 1.0}], 0.0) == []


def test_a_list_without_end_is_cut() -> None:
    assert len(restore([KEPT] * 99, 0.0)) == 10


def test_what_was_kept_in_words() -> None:
    kept = [{"n": 20.0, "window": 1.0, "scope": 0, "seen": 14.0, "age": 180.0}, {"n": -1.0}]
    assert kept_in_words(kept, 0.0) == ["about 20 per 1 s, seen 14 times, last 429 3 min ago"]
