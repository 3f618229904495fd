"""The last seconds: what counts as sent, as fast, as limited, and when it is forgotten."""

import pytest

from rig.outcome import ANSWERED, changed
from rig.verdicts import upstream_error
from sealgate.admin.recent import SPAN, Latency, Recent
from sealgate.config.venues import default_venue
from sealgate.core.outcome import Batch, Conclusion, Outcome

SENT = changed(ANSWERED, attempts=1, upstream_s=0.020, total_s=0.021)
NEVER_SENT = changed(ANSWERED, attempts=0, conclusion=Conclusion.NOT_SENT)
STRANGER = changed(ANSWERED, attempts=0, bot=None, key=None, conclusion=Conclusion.NOT_SENT)


def after(*outcomes: Outcome, ticks: int = 1) -> Recent:
    recent = Recent(lambda: default_venue().unsigned_routes)
    recent(Batch(outcomes))
    for _ in range(ticks):
        recent.turn()
    return recent


def test_each_attempt_is_spent_by_its_bot() -> None:
    recent = after(SENT, changed(SENT, attempts=3), changed(SENT, bot="watch"), NEVER_SENT, STRANGER)
    assert recent.sent() == {("main", "grid"): 4, ("main", "watch"): 1}
    assert (recent.requests(), recent.total) == (5, 5)


def test_what_still_runs_is_not_shown_yet() -> None:
    recent = after(SENT, ticks=0)
    assert (recent.sent(), recent.requests(), recent.ticks) == ({}, 0, 0)
    assert recent.latency() == Latency(None, None, None)
    assert recent.total == 1


def test_what_is_older_is_forgotten_but_for_the_total_and_who_worked() -> None:
    recent = after(SENT, ticks=SPAN)
    assert (recent.sent(), recent.requests(), recent.ticks) == ({}, 0, SPAN - 1)
    assert (recent.total, recent.has_worked) == (1, {"main"})


def test_half_and_99_of_100_stay_under() -> None:
    recent = after(*(changed(SENT, upstream_s=ms / 1000, total_s=ms / 1000 + 0.001) for ms in range(100)))
    latency = recent.latency()
    assert (latency.upstream_p50_ms, latency.upstream_p99_ms) == (50.0, 98.0)


def test_of_a_flood_the_latest_are_timed() -> None:
    recent = after(*[changed(SENT, upstream_s=9.0)] * 50, *[SENT] * 100)
    assert recent.latency().upstream_p99_ms == 20.0
    assert recent.requests() == 150


def test_the_latest_ticks_alone() -> None:
    recent = after(changed(SENT, upstream_s=9.0))
    recent(Batch([SENT]))
    recent.turn()
    assert recent.latency(1).upstream_p99_ms == 20.0
    assert recent.latency(2).upstream_p99_ms == 9000.0


def test_each_429_is_a_point_of_its_tick() -> None:
    errors = (
        upstream_error("rate_limited", 5.0),
        upstream_error("lost", 6.0),
        upstream_error("rate_limited", 7.0),
    )
    recent = Recent()
    recent(Batch([changed(SENT, upstream_errors=errors)]))
    assert recent.turn().limited == [("main", 5.0), ("main", 7.0)]
    assert recent.turn().limited == []


WORKED = {
    "a signed request": (SENT, {"main"}),
    "one that was refused": (changed(SENT, conclusion=Conclusion.REFUSED), set()),
    "the time, which nobody signs": (changed(SENT, route="/time"), set()),
    "the list of keys, which goes by session": (changed(SENT, route="/api-keys"), set()),
}


@pytest.mark.parametrize(("outcome", "keys"), WORKED.values(), ids=WORKED)
def test_which_keys_were_ever_accepted(outcome: Outcome, keys: set[str]) -> None:
    assert after(outcome).has_worked == keys
