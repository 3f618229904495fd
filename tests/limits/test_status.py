import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig.kept_limit import kept
from sealgate.limits import ALL, OTHERS, READS, Limit, LimitEstimator, Weights
from sealgate.limits.claims import Claim
from sealgate.limits.quotas import Quota
from sealgate.limits.snapshots import aged, kept_in_words, pause_s, paused, restore, snapshot
from sealgate.limits.status import LimitStatus, in_words, limit_statuses
from sealgate.venues.routes import Lane

LEARNED = Limit(60.0, 3.0, 20.0, 20.34, seen=7, last_seen=880.0)


@pytest.mark.parametrize(
    ("limit", "calm", "words"),
    [
        (LEARNED, 1200, "60 to 61 per 3 s, from 7 refusals; last 2 min ago; refused at most one in 1,200"),
        (replace(LEARNED, high=20.0), 0, "60 per 3 s, from 7 refusals; last 2 min ago"),
        (replace(LEARNED, high=math.inf, seen=1), 0, "at least 60 per 3 s, from 1 refusal; last 2 min ago"),
        (
            Limit(12.0, 60.0, 0.2, 0.2, seen=3, last_seen=880.0, rest_s=100.0),
            0,
            "12 per 60 s, from 3 refusals; last 2 min ago; too old to hold requests back",
        ),
        (Limit(48.2, 2.412, 20.0, 20.0), 0, "48.2 per 2.41 s, never refused yet"),
        (Limit(1200.0, 60.0, 20.0, 20.0, most=20.0), 0, "1,200 per 60 s, published, never refused yet"),
        (
            replace(LEARNED, refutes=Quota(120, 3.0)),
            0,
            "60 to 61 per 3 s, from 7 refusals, which refute the published 120/3s; last 2 min ago",
        ),
        (
            Limit(1500.0, 60.0, 25.0, 25.0, most=25.0, refutes=Quota(1200, 60.0)),
            0,
            "1,500 per 60 s, stated by the exchange, which refutes the published 1200/60s, never refused yet",
        ),
        (Limit(1.0, 0.05, 20.0, 20.0), 0, "1 per 0.05 s, never refused yet"),
        (Limit(1.0, 3600.0, 1 / 3600, 1 / 3600), 0, "1 per 3,600 s, never refused yet"),
        (Limit(5e6, 1.0, 5e6, 5e6), 0, "5,000,000 per 1 s, never refused yet"),
        (Limit(10.0, 1.0, 10.0, 10.0, READS), 0, "10 per 1 s, reads only, never refused yet"),
        (Limit(10.0, 1.0, 10.0, 10.0, OTHERS), 0, "10 per 1 s, all but reads, never refused yet"),
        (
            Limit(10.0, 1.0, 10.0, 10.0, (1.0, 4.0)),
            0,
            "10 per 1 s, an order costs as much as 4 reads, never refused yet",
        ),
        (
            Limit(40.0, 4.0, 10.0, 10.0, is_bucket=True),
            0,
            "40 per 4 s, a token bucket of 40, never refused yet",
        ),
    ],
)
def test_a_limit_in_words(limit: Limit, calm: int, words: str) -> None:
    assert in_words(limit, 1000.0, calm) == words


def status_of(limit: Limit, now: float = 1000.0) -> LimitStatus:
    estimator = LimitEstimator()
    estimator.believe([limit])
    (status,) = limit_statuses(estimator, now)
    return status


def test_the_belief_is_an_interval_per_window() -> None:
    status = status_of(LEARNED)
    assert status.low == pytest.approx(60.0)
    assert status.high == pytest.approx(61.02)
    assert status_of(replace(LEARNED, high=math.inf)).high is None


def test_a_recent_fall_is_shown_as_foreign_use() -> None:
    limit = replace(LEARNED, fell_at=900.0)
    assert status_of(limit).is_foreign_use
    assert not status_of(limit, 1600.0).is_foreign_use


def test_what_would_be_tried_next_is_said_and_why_not_yet() -> None:
    assert (
        status_of(replace(LEARNED, next_at=1040.0)).next_step
        == "next: 60.5 per 3 s, in 40 s, if requests wait"
    )
    assert status_of(LEARNED).next_step == "next: 60.5 per 3 s, as soon as requests wait"
    trying = replace(LEARNED, tried=21.0, next_at=1005.0)
    assert status_of(trying).next_step == "trying 63 per 3 s, for 5 s more"


def test_a_step_that_cannot_be_paid_for_says_after_how_many_requests_it_can() -> None:
    estimator = LimitEstimator()
    estimator.believe([replace(LEARNED, high=math.inf)])
    for number in range(3):
        claim = Claim(str(number), "a", Lane.READ, 1e9, is_read=True)
        estimator.took(claim, 990.0 + number, is_paced=False)
        estimator.throttled(claim, 990.0 + number, 991.0 + number, 1.0, 0.0)
        claim = replace(claim, id=f"scout{number}")
        estimator.took(claim, 990.5 + number, is_paced=False)
        estimator.accepted(claim, 990.5 + number, 990.6 + number, is_scout=True)
    for status in limit_statuses(estimator, 1000.0):
        assert "more accepted requests, to keep refusals rare" in status.next_step


def test_of_a_published_limit_nothing_more_is_tried() -> None:
    (status,) = limit_statuses(LimitEstimator((Quota(10, 1.0),)), 0.0)
    assert status.next_step == ""


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


def test_what_refutes_a_published_limit_is_kept_and_takes_its_place() -> None:
    learned = Limit(60.0, 3.0, 20.0, 20.0, refutes=Quota(120, 3.0), seen=3, last_seen=0.0)
    row = json.loads(json.dumps(snapshot([learned, replace(learned, refutes=None)], 0.0)))
    estimator = LimitEstimator((Quota(120, 3.0), Quota(1000, 60.0)))
    restore(estimator, row, 0.0)
    assert [(one.n, one.most, one.refutes) for one in estimator.limits] == [
        (60.0, math.inf, Quota(120, 3.0)),
        (1000, 1000 / 60, None),
    ]


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
        {"reads": 0.0, "others": 5.0},
        {"n": 1e-12},
        {"refuted": 1.0, "refuted_window": 0.0},
        {"age": math.inf},
        {"n": "20"},
        {"n": None},
        {"n": True},
    ],
)
def test_what_is_no_limit_is_left_out(wrong: dict[str, Any]) -> None:
    (sound,) = kept()
    assert aged(sound, 5.0) == sound | {"age": sound["age"] + 5.0}
    with pytest.raises(ValueError, match="no limit"):
        aged(sound | wrong, 5.0)
    assert len(restored([sound | wrong, sound]).limits) == 1


def test_what_an_older_version_kept_is_left_out() -> None:
    assert restored([{"n": 20.0, "window": 1.0, "scope": 0, "seen": 3, "age": 5.0}]).limits == []


def test_a_pause_is_kept_beside_the_limits_and_gets_shorter_with_time() -> None:
    row = json.loads(json.dumps([*kept(), *paused(900.0)]))
    assert pause_s(row) == 900.0
    older = [aged(one, 880.0) for one in row]
    assert (pause_s(older), pause_s([aged(one, 100.0) for one in older])) == (20.0, 0.0)
    assert len(restored(older).limits) == 1
    assert (paused(0.2), pause_s(kept())) == ([], 0.0), "nobody starts again so soon"
    assert pause_s(paused(2.0)) == 2.0, "who is killed and starts at once keeps it"
    with pytest.raises(ValueError, match="no number"):
        aged({"pause": -1.0}, 0.0)


def test_a_list_without_end_is_cut() -> None:
    assert len(restored(kept() * 99).limits) == 10


def test_what_was_kept_in_words() -> None:
    words = "20 per 1 s, from 14 refusals; last 3 min ago"
    assert kept_in_words([*kept(), {"n": -1.0}], 0.0) == [words]
