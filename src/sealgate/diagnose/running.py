"""What a gateway that runs already says of itself (`/status.json`), as lines of a check.

An older version has fewer members.
"""

from collections.abc import Container, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from sealgate.machine.findings import REACH, Finding, clause, fail, ok, warn
from sealgate.orders.journal.marks import LOST_FIX
from sealgate.venues.replies import Means

_STALE_FIX = "the key that is stored now is accepted: load it with `sealgate reload`"

Status = Mapping[str, Any]


def pause_s(status: Status | None) -> float:
    """Return for how many seconds the running gateway still pauses, 0 if it does not."""
    return max((key["pause_s"] for key in status["keys"]), default=0.0) if status else 0.0


def judge_pause(status: Status, left_s: float) -> Finding:
    """Say why the running gateway pauses; a ban is a failure, with the exchange's words if there are any."""
    again = f"run this again in {left_s:.0f} s"
    bans = [
        error
        for error in status.get("errors", ())
        if error.get("means", error["kind"]) == Means.BANNED and error["over_since_ms"] is None
    ]
    if not bans:
        return warn("exchange", "not contacted: the running gateway is pausing after a 429", again)
    since = datetime.fromtimestamp(bans[0]["last_ms"] / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    words = f", {bans[0]['evidence']}" if bans[0].get("evidence") else ""
    text = (
        f"not contacted: the exchange has shut out the running gateway's address or key since {since}{words}"
    )
    return fail("exchange", text, f"stop what else uses them, and {again}")


def judge_running(status: Status) -> Iterator[Finding]:
    """Yield what the running gateway says of itself, and the limits that it has learned."""
    for reason in status["not_ready"]:
        yield warn("gateway", f"running, but not ready: {reason}", "see below")
    if status["halts"]:
        yield warn("gateway", "running, with orders halted", "resume orders: sealgate resume")
    degraded = list(_degraded(status))
    yield from degraded
    if not status["not_ready"]:
        but = ", but degraded" if degraded else ""
        yield ok("gateway", f"version {status['version']} is running and ready{but}")
    for key in status["keys"]:
        area = f"keys.{key['alias']}"
        if key["disabled"]:
            yield warn(area, f"disabled in the running gateway: {key['disabled']}", "see below")
        for limit in key["limits"]:
            foreign = "; someone else seems to be using this key too" if limit["is_foreign_use"] else ""
            next_step = f"; {step}" if (step := limit.get("next_step")) else ""
            yield ok("limits", f"{area}: {limit['words']}{foreign}{next_step}")
        if not key["limits"]:
            yield ok("limits", f"{area}: no limit known yet")


def _degraded(status: Status) -> Iterator[Finding]:
    """Yield what a gateway that may serve cannot do."""
    trouble, journal = status["clock"]["trouble"], status["journal"]
    if (failing := status.get("failing")) is not None:
        text = f"{failing['attempts']} attempts failed, the last with {failing['kind']}"
        yield warn("gateway", f"the exchange is failing: {text}", clause(failing["advice"]))
    elif trouble is not None and not status["not_ready"]:
        yield warn("gateway", f"clock: {trouble}", REACH)
    if journal["trouble"] is not None and not journal["is_refusing"]:
        yield warn("gateway", f"orders are sent without a record: {journal['trouble']}", "see its log")
    if (lost := journal.get("lost")) is not None:
        yield warn("gateway", lost, LOST_FIX)
    for key in status["keys"]:
        if (sharing := key.get("sharing")) is not None and sharing["degraded"]:
            text = f"the limit of key {key['alias']} is not shared: {sharing['degraded']}"
            yield warn("gateway", text, "look at Redis (limits.redis)")
    for refused in status.get("refusals", ()):
        if refused["is_grave"]:
            yield warn("gateway", refused["words"], clause(refused["advice"]))


def judge_troubles(status: Status, accepted: Container[str]) -> Iterator[Finding]:
    """Yield the keys whose requests fail in the running gateway.

    `accepted` are those whose signed read was accepted just now: for them the gateway has an older secret,
    or older settings.
    """
    for key in status["keys"]:
        if key["trouble"]:
            fix = _STALE_FIX if key["alias"] in accepted else clause(key["trouble_advice"])
            text = f"the running gateway's requests fail: {key['trouble']}"
            yield warn(f"keys.{key['alias']}", text, fix)
