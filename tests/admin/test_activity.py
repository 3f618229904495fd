"""The last ten seconds: what counts as sent, as fast, as limited, and when it is forgotten."""

import pytest

from rig.outcome import ANSWERED, changed
from rig.verdicts import upstream_error
from sealgate.admin.activity import SPAN, Activity, Latency
from sealgate.config.venues import default_venue
from sealgate.core.outcome import Batch, Conclusion, Outcome

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


def test_what_still_runs_is_not_shown_yet() -> None:
    activity = after(SENT, ticks=0)
    assert (activity.sent(), activity.requests(), activity.ticks) == ({}, 0, 0)
    assert activity.latency() == Latency(None, None, None)
    assert activity.total == 1


def test_what_is_older_is_forgotten_but_for_the_total_and_who_worked() -> None:
    activity = after(SENT, ticks=SPAN)
    assert (activity.sent(), activity.requests(), activity.ticks) == ({}, 0, SPAN - 1)
    assert (activity.total, activity.has_worked) == (1, {"main"})


def test_half_and_99_of_100_stay_under() -> None:
    activity = after(*(changed(SENT, upstream_s=ms / 1000, total_s=ms / 1000 + 0.001) for ms in range(100)))
    latency = activity.latency()
    assert (latency.upstream_p50_ms, latency.upstream_p99_ms) == (50.0, 98.0)


def test_of_a_flood_the_latest_are_timed() -> None:
    activity = after(*[changed(SENT, upstream_s=9.0)] * 50, *[SENT] * 100)
    assert activity.latency().upstream_p99_ms == 20.0
    assert activity.requests() == 150


def test_the_latest_ticks_alone() -> None:
    activity = after(changed(SENT, upstream_s=9.0))
    activity(Batch([SENT]))
    activity.turn()
    assert activity.latency(1).upstream_p99_ms == 20.0
    assert activity.latency(2).upstream_p99_ms == 9000.0


def test_each_429_is_a_point_of_its_tick() -> None:
    errors = (
        upstream_error("rate_limited", 5.0),
        upstream_error("lost", 6.0),
        upstream_error("rate_limited", 7.0),
    )
    activity = Activity()
    activity(Batch([changed(SENT, upstream_errors=errors)]))
    assert activity.turn().limited == [("main", 5.0), ("main", 7.0)]
    assert activity.turn().limited == []


WORKED = {
    "a signed request": (SENT, {"main"}),
    "one that was refused": (changed(SENT, conclusion=Conclusion.REFUSED), set()),
    "the time, which nobody signs": (changed(SENT, route="/time"), set()),
    "the list of keys, which goes by session": (changed(SENT, route="/api-keys"), set()),
}


@pytest.mark.parametrize(("outcome", "keys"), WORKED.values(), ids=WORKED)
def test_which_keys_were_ever_accepted(outcome: Outcome, keys: set[str]) -> None:
    assert after(outcome).has_worked == keys
