"""The latest requests, for people who look for one: what became of each, without bodies and tokens."""

from typing import Any

from sealgate.core.outcome import Outcome

MOST = 200


def row(outcome: Outcome, epoch_s: float) -> dict[str, Any]:
    """Return a request as plain values. `epoch_s` plus `now` are epoch seconds."""
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
