"""The last ten seconds: what counts as sent, as fast, as limited, and when it is forgotten."""

from dataclasses import replace

import pytest

from rig.outcome import ANSWERED, changed
from rig.verdicts import upstream_error, verdict
from sealgate.config.venues import default_venue
from sealgate.exchange.clock import ClockStatus
from sealgate.observe.activity import Activity, Answering, Failing
from sealgate.observe.traffic import Durations, TrafficTotals
from sealgate.orders.outcome import Batch, Conclusion, Outcome
from sealgate.venues.routes import Lane

SENT = changed(ANSWERED, attempts=1, upstream_s=0.020, total_s=0.021)
NEVER_SENT = changed(ANSWERED, attempts=0, conclusion=Conclusion.NOT_SENT)
STRANGER = changed(ANSWERED, attempts=0, bot=None, key=None, conclusion=Conclusion.NOT_SENT)


def after(*outcomes: Outcome, ticks: int = 1) -> Activity:
    activity = Activity(lambda: default_venue().unsigned_routes)
    activity(Batch(outcomes))
    for _ in range(ticks):
        activity.turn()
    return activity


def test_each_attempt_is_spent_by_its_bot() -> None:
    activity = after(SENT, changed(SENT, attempts=3), changed(SENT, bot="watch"), NEVER_SENT, STRANGER)
    assert activity.sent() == {("main", "grid"): 4, ("main", "watch"): 1}
    assert (activity.requests(), activity.total) == (5, 5)


def test_half_and_99_of_100_stay_under() -> None:
    activity = after(*(changed(SENT, upstream_s=ms / 1000, total_s=ms / 1000 + 0.001) for ms in range(100)))
    latency = activity.latency()
    assert (latency.upstream_p50_ms, latency.upstream_p99_ms) == (50.0, 98.0)


WORKED = {
    "a signed request": (SENT, {"main"}),
    "one that was refused": (changed(SENT, conclusion=Conclusion.REFUSED), set()),
    "the time, which nobody signs": (changed(SENT, route="/time"), set()),
    "the list of keys, which goes by session": (changed(SENT, route="/api-keys"), set()),
}


@pytest.mark.parametrize(("outcome", "keys"), WORKED.values(), ids=WORKED)
def test_which_keys_were_ever_accepted(outcome: Outcome, keys: set[str]) -> None:
    assert after(outcome).has_worked == keys


ORDER = changed(ANSWERED, method="POST", route="/order", lane=Lane.ORDER, attempts=1)
BOUNDS = (0.1, 1.0)


BUCKETS: dict[str, tuple[tuple[float, ...], list[float]]] = {
    "nothing": ((), [0, 0, 0]),
    "below the first bound": ((0.05,), [1, 1, 1]),
    "a bound is included": ((0.1, 1.0), [1, 2, 2]),
    "beyond the last": ((5.0,), [0, 0, 1]),
    "all of them": ((0.0, 0.5, 0.5, 5.0), [1, 3, 4]),
}


@pytest.mark.parametrize(("seconds", "counts"), BUCKETS.values(), ids=BUCKETS)
def test_durations_are_counted_at_each_bound(seconds: tuple[float, ...], counts: list[float]) -> None:
    """As Prometheus has it: a bucket counts what is at most its bound."""
    durations = Durations(BOUNDS)
    durations.add([*seconds])
    buckets, sum_s = durations.buckets()
    assert buckets == list(zip(("0.1", "1.0", "+Inf"), counts, strict=True))
    assert sum_s == pytest.approx(sum(seconds))


def taken(*outcomes: Outcome) -> TrafficTotals:
    traffic = TrafficTotals()
    traffic.take(Batch(outcomes))
    return traffic


def test_who_reads_holds_copies_of_what_grows() -> None:
    """Another thread reads while one adds."""
    traffic = taken(ORDER)
    rows, queued = traffic.rows(), traffic.queued()
    traffic.take(Batch([changed(ORDER, status=500, lane=Lane.CANCEL, key="alt")]))
    assert (len(rows), len(queued)) == (1, 1)


CLOCK = ClockStatus(0.0, 0.001, None, 0, 0, None)


def failed(*errors: tuple[str, float], reason: str | None = "upstream_unreachable") -> Outcome:
    """Return what ended with these errors, one for each attempt."""
    met = tuple(upstream_error(kind, at) for kind, at in errors)
    return changed(ANSWERED, reason=reason, detail="no answer", attempts=len(met), upstream_errors=met)


DOWN = failed(("unreachable", 10.0), ("unreachable", 10.1), ("unreachable", 10.3))


def seen(*outcomes: Outcome, clock: ClockStatus = CLOCK, now: float = 60.0) -> Failing | None:
    answering = Answering()
    answering(Batch(outcomes))
    return answering.failing(clock, now)


def test_some_failures_in_a_row() -> None:
    assert seen(DOWN) == Failing(verdict("unreachable"), 10.0, 10.3, 3, "no answer")
    late = failed(("late", 20.0), reason="upstream_timeout")
    assert seen(DOWN, late) == Failing(verdict("late"), 10.0, 20.0, 4, "no answer")


def test_replies_of_5xx_are_failures_without_more_words() -> None:
    error = failed(("other_5xx", 10.0), reason=None)
    assert seen(error, error, error) == Failing(verdict("other_5xx"), 10.0, 10.0, 3, None)


@pytest.mark.parametrize(
    "outcomes",
    [
        [failed(("lost", 1.0)), failed(("lost", 2.0))],
        [DOWN, ANSWERED],
        [DOWN, failed(("off_tick", 11.0), reason=None)],
        [DOWN, changed(failed(("unreachable", 11.0)), attempts=2)],
        [changed(DOWN, attempts=0, upstream_errors=())],
        [changed(DOWN, broken="cut short")],
    ],
    ids=["few", "an answer", "a refusal", "an answer in the end", "nothing sent", "a cut reply"],
)
def test_what_is_no_outage(outcomes: list[Outcome]) -> None:
    assert seen(*outcomes) is None


def test_what_sent_nothing_ends_none() -> None:
    assert seen(DOWN, changed(ANSWERED, attempts=0)) is not None


@pytest.mark.parametrize(
    ("kind", "is_over"), [("unreachable", True), ("connect_timeout", True), ("late", False)]
)
def test_a_time_that_was_read_since_shows_that_it_is_reached(kind: str, *, is_over: bool) -> None:
    down = failed(*((kind, 10.0 + number) for number in range(3)))
    assert (seen(down, clock=replace(CLOCK, age_s=45.0)) is None) is is_over
    assert seen(down, clock=replace(CLOCK, age_s=55.0)) is not None
