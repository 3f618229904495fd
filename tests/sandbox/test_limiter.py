"""The kinds of rate limit, in virtual time: a transcript of when requests come and which pass."""

from dataclasses import dataclass
from typing import Any

import pytest

from sealgate.sandbox.catalogue import ApiError
from sealgate.sandbox.clock import Moment
from sealgate.sandbox.gate import Gate
from sealgate.sandbox.limiter import LIMITERS
from sealgate.sandbox.models.control import Limit

START_S = 1000.0


@dataclass(frozen=True)
class Course:
    """Requests at seconds after the start, and for each 0 (passed) or the seconds to wait."""

    name: str
    limit: dict[str, Any]
    at_s: list[float]
    waits_s: list[float]


COURSES = [
    Course(
        "fixed windows are aligned",
        {"kind": "fixed", "requests": 2, "window_s": 10},
        [9, 9.5, 9.75, 10, 10, 10, 19.5, 20],
        [0, 0, 0.25, 0, 0, 10, 0.5, 0],
    ),
    Course(
        "fixed_from_first starts with a request",
        {"kind": "fixed_from_first", "requests": 2, "window_s": 10},
        [9, 9.5, 10, 18, 19, 19, 28.5, 29],
        [0, 0, 9, 1, 0, 0, 0.5, 0],
    ),
    Course(
        "a sliding log looks back one window",
        {"kind": "sliding_log", "requests": 2, "window_s": 10},
        [9, 12, 13, 18.5, 19, 20, 22],
        [0, 0, 6, 0.5, 0, 2, 0],
    ),
    Course(
        "a token bucket refills steadily",
        {"kind": "token_bucket", "requests": 2, "window_s": 1, "burst": 3},
        [0, 0, 0, 0, 0.25, 0.5, 0.5, 10, 10, 10, 10],
        [0, 0, 0, 0.5, 0.25, 0, 0.5, 0, 0, 0, 0.5],
    ),
    Course(
        "gcra with burst 1 spaces requests",
        {"kind": "gcra", "requests": 2, "window_s": 1, "burst": 1},
        [0, 0, 0.25, 0.5, 0.75, 5, 5],
        [0, 0.5, 0.25, 0, 0.25, 0, 0.5],
    ),
    Course(
        "gcra with burst 3 lets three through at once",
        {"kind": "gcra", "requests": 2, "window_s": 1, "burst": 3},
        [0, 0, 0, 0, 0.5, 0.5],
        [0, 0, 0, 0.5, 0, 0.5],
    ),
    Course("none lets all through", {"kind": "none"}, [0] * 50, [0] * 50),
    Course(
        "refusals that count fill a sliding log",
        {"kind": "sliding_log", "requests": 1, "window_s": 10, "rejects_count": True},
        [0, 5, 10, 15, 25],
        [0, 10, 10, 10, 0],
    ),
    Course(
        "refusals that count empty a bucket further",
        {"kind": "token_bucket", "requests": 1, "window_s": 1, "burst": 1, "rejects_count": True},
        [0, 0, 1, 1.5],
        [0, 2, 2, 2],
    ),
]


@pytest.mark.parametrize("course", COURSES, ids=lambda course: course.name)
def test_course(course: Course) -> None:
    gate = Gate(Limit.model_validate({"retry_after": "exact"} | course.limit, strict=False))
    assert [_wait_s(gate, at_s) for at_s in course.at_s] == course.waits_s


def _moment(at_s: float) -> Moment:
    return Moment(round((START_S + at_s) * 1000), round((START_S + at_s) * 1000), START_S + at_s)


def _enter(gate: Gate, at_s: float, cost: int = 1) -> dict[str, str]:
    """Give the headers of the refusal; none if it passed."""
    try:
        gate.enter("caller", cost, _moment(at_s))
    except ApiError as refused:
        return dict(refused.headers)
    return {}


def _wait_s(gate: Gate, at_s: float, cost: int = 1) -> float:
    return float(_enter(gate, at_s, cost).get("Retry-After", 0))


KINDS = [kind for kind in LIMITERS if kind not in {"none", "concurrency"}]


@pytest.mark.parametrize("rejects_count", [False, True], ids=["rejects free", "rejects count"])
@pytest.mark.parametrize("retry_after", ["exact", "rounded"])
@pytest.mark.parametrize("kind", KINDS)
def test_who_waits_as_told_passes(kind: Any, retry_after: Any, *, rejects_count: bool) -> None:
    limit = Limit(
        kind=kind, requests=7, window_s=3.7, burst=2, retry_after=retry_after, rejects_count=rejects_count
    )
    gate, at_s, refusals = Gate(limit), 0.0, 0
    for _ in range(200):
        wait_s = _wait_s(gate, at_s)
        if wait_s:
            refusals += 1
            at_s += wait_s
            assert _wait_s(gate, at_s) == 0
        at_s += 0.013
    assert refusals > 10


@pytest.mark.parametrize("kind", KINDS)
def test_never_more_than_the_limit_allows(kind: Any) -> None:
    """In any stretch of ten windows at most eleven windows' worth passes, whatever the bot does."""
    gate = Gate(Limit(kind=kind, requests=5, window_s=1.0, retry_after="exact"))
    passed = [at_ms for at_ms in range(0, 20_000, 7) if not _enter(gate, at_ms / 1000)]
    for first in passed[::10]:
        assert sum(first <= at_ms < first + 10_000 for at_ms in passed) <= 55


@pytest.mark.parametrize("kind", KINDS)
def test_costs_weigh(kind: Any) -> None:
    gate = Gate(Limit(kind=kind, requests=4, window_s=10.0, retry_after="exact"))
    assert [_wait_s(gate, 1, cost=2) > 0 for _ in range(3)] == [False, False, True]


@pytest.mark.parametrize("kind", KINDS)
def test_a_cost_above_the_limit_passes_when_all_is_free(kind: Any) -> None:
    gate = Gate(Limit(kind=kind, requests=2, window_s=1.0))
    assert _enter(gate, 0, cost=100) == {}


def test_costs_are_found_by_template_and_by_path() -> None:
    costs = {"GET /v1/trade/user/{addr}/positions": 3, "DELETE /v1/trade/order/7": 0}
    gate = Gate(Limit(kind="fixed", costs=costs))
    found = [
        gate.cost("GET", "/v1/trade/user/{addr}/positions", "/v1/trade/user/0x1/positions"),
        gate.cost("DELETE", "/v1/trade/order/{order_id}", "/v1/trade/order/7"),
        gate.cost("POST", "/v1/trade/order", "/v1/trade/order"),
    ]
    assert found == [3, 0, 1]


def test_callers_do_not_share() -> None:
    gate = Gate(Limit(kind="fixed", requests=1))
    gate.enter("one", 1, _moment(0))
    gate.enter("two", 1, _moment(0))
    with pytest.raises(ApiError, match="Rate limit exceeded"):
        gate.enter("one", 1, _moment(0))


def test_concurrency_frees_a_place_at_the_end() -> None:
    gate = Gate(Limit(kind="concurrency", requests=2, window_s=0.5, retry_after="exact"))
    leave = [gate.enter("caller", 1, _moment(0)) for _ in range(2)]
    assert _wait_s(gate, 0) == 0.5
    leave[0]()
    assert [_wait_s(gate, 0), _wait_s(gate, 0)] == [0, 0.5]


@pytest.mark.parametrize(
    ("form", "header"),
    [
        ("exact", {"Retry-After": "6.500"}),
        ("rounded", {"Retry-After": "7"}),
        ("date", {"Retry-After": "Thu, 01 Jan 1970 00:16:50 GMT"}),
        ("absent", {}),
    ],
    ids=["exact", "rounded", "date", "absent"],
)
def test_retry_after(form: Any, header: dict[str, str]) -> None:
    gate = Gate(Limit(kind="fixed", requests=1, window_s=10, retry_after=form))
    gate.enter("caller", 1, _moment(3))
    with pytest.raises(ApiError) as refused:
        gate.enter("caller", 1, _moment(3.5))
    assert refused.value.headers == header


def test_bans_escalate() -> None:
    limit = Limit(kind="fixed", requests=1, window_s=1, retry_after="exact", ban_after=3, ban_s=60)
    gate = Gate(limit)
    waits = [_wait_s(gate, at_s) for at_s in (0, 0.25, 0.25, 0.5)]
    assert waits == [0, 0.75, 0.75, 60]
    assert [_wait_s(gate, 30), _wait_s(gate, 60.5)] == [30.5, 0]
    assert [_wait_s(gate, 60.5) for _ in range(3)][-1] == 120


def test_only_refusals_in_a_row_lead_to_a_ban() -> None:
    limit = Limit(kind="fixed", requests=1, window_s=1, retry_after="exact", ban_after=2, ban_s=60)
    gate = Gate(limit)
    assert [_wait_s(gate, at_s) for at_s in (0, 0.5, 1, 1.5, 2, 2.5, 2.5)] == [0, 0.5, 0, 0.5, 0, 0.5, 60]
