"""Since when the exchange gives no answer, or only 5xx: ready means that the gateway may serve, not that.

One lost reply is no outage; some failures in a row, with no answer among them, are.
"""

from dataclasses import dataclass, replace

from sealgate.core.outcome import Batch, Outcome
from sealgate.core.status import ClockStatus
from sealgate.core.venues.replies import Means, Verdict

_IN_A_ROW = 3
_NO_CONNECTION = frozenset({"unreachable", "connect_timeout"})


@dataclass(frozen=True, slots=True)
class Failing:
    """What failed since the last answer. Times are by the clock of `now`; `verdict` is the latest one's.

    `cause` has more words where there are any.
    """

    verdict: Verdict
    since: float
    last_at: float
    attempts: int
    cause: str | None


class Answering:
    """A reader of outcomes."""

    def __init__(self) -> None:
        self._failing: Failing | None = None

    def __call__(self, batch: Batch) -> None:
        """Take a batch in."""
        for outcome in batch.outcomes if self._failing is not None or batch.rare else ():
            if outcome.attempts and outcome.broken is None:
                self._failing = self._after(outcome)

    def _after(self, outcome: Outcome) -> Failing | None:
        """Return what fails after an outcome: nothing, where its last attempt was answered."""
        errors = outcome.upstream_errors
        if len(errors) < outcome.attempts or errors[-1].verdict.means is not Means.UNKNOWN:
            return None
        failed = [error for error in errors if error.verdict.means is Means.UNKNOWN]
        last = failed[-1]
        before = self._failing or Failing(last.verdict, failed[0].at, last.at, 0, None)
        cause = outcome.detail if outcome.reason else None
        attempts = before.attempts + len(failed)
        return replace(before, verdict=last.verdict, last_at=last.at, attempts=attempts, cause=cause)

    def look(self, clock: ClockStatus, now: float) -> Failing | None:
        """Return what fails at `now`, None where it answers, or too little was asked to tell."""
        failing = self._failing
        if failing is None or failing.attempts < _IN_A_ROW or _was_reached_since(failing, clock, now):
            return None
        return failing


def _was_reached_since(failing: Failing, clock: ClockStatus, now: float) -> bool:
    """Whether the exchange's time was read since: then it can be reached, if nobody asks for more."""
    sampled_at = None if clock.age_s is None else now - clock.age_s
    return failing.verdict.kind in _NO_CONNECTION and sampled_at is not None and sampled_at > failing.last_at
