"""Since when the exchange gives no answer."""

from dataclasses import replace

import pytest

from rig.outcome import ANSWERED, changed
from rig.verdicts import upstream_error, verdict
from sealgate.admin.activity import Answering, Failing
from sealgate.core.outcome import Batch, Outcome
from sealgate.core.status import ClockStatus

CLOCK = ClockStatus(0.0, 0.001, None, 0, 0, None)


def failed(*errors: tuple[str, float], reason: str | None = "upstream_unreachable") -> Outcome:
    """Return what ended with these errors, one for each attempt."""
    met = tuple(upstream_error(kind, at) for kind, at in errors)
    return changed(ANSWERED, reason=reason, detail="no answer", attempts=len(met), upstream_errors=met)


DOWN = failed(("unreachable", 10.0), ("unreachable", 10.1), ("unreachable", 10.3))


def seen(*outcomes: Outcome, clock: ClockStatus = CLOCK, now: float = 60.0) -> Failing | None:
    answering = Answering()
    answering(Batch(outcomes))
    return answering.look(clock, now)


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
