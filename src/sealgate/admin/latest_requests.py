"""The latest requests, for people who look for one: what became of each, without bodies and tokens."""

from collections import deque
from typing import TYPE_CHECKING, Any

from sealgate.core.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST = 200


class LatestRequests:
    """A reader of outcomes that only keeps them: nothing is made of one until somebody asks.

    Call `take` with each batch of them.
    """

    def __init__(self) -> None:
        self._latest: deque[Outcome] = deque(maxlen=MOST)
        self.take: Callable[[Sequence[Outcome]], None] = self._latest.extend  # 0.1 us, whatever the batch

    def rows(self, epoch_s: float) -> list[dict[str, Any]]:
        """Return them as plain values, the latest first. `epoch_s` plus `now` are epoch seconds."""
        return [_row(outcome, epoch_s) for outcome in reversed(self._latest)]


def _row(outcome: Outcome, epoch_s: float) -> dict[str, Any]:
    return {
        "id": outcome.request_id,
        "at_ms": round((outcome.started + outcome.total_s + epoch_s) * 1000),
        "bot": outcome.bot or "unknown",
        "key": outcome.key,
        "method": outcome.method,
        "route": outcome.route,
        "status": outcome.status,
        "outcome": outcome.conclusion.value,
        "reason": outcome.reason,
        "attempts": outcome.attempts,
        "wait_ms": round(outcome.queue_s * 1000, 1),
        "took_ms": round(outcome.total_s * 1000, 1),
    }
