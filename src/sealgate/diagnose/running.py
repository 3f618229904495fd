"""Lines of a check on a running gateway, from its `/status.json`."""

from collections.abc import Container, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from sealgate.machine.findings import Finding, Level, fail, ok, warn
from sealgate.observe.key_sentences import label_of
from sealgate.observe.units import CALM
from sealgate.venues.replies import Means

Status = Mapping[str, Any]


def _is_about(entry: Status, exchange: str) -> bool:
    """Whether an entry of the status concerns an exchange. With a single exchange, entries do not name it."""
    return bool(entry.get("exchange", exchange) == exchange)


def pause_s(status: Status, exchange: str) -> float:
    """Return the seconds left of the running gateway's pause at an exchange, 0 if there is none."""
    return max((float(key["pause_s"]) for key in status["keys"] if _is_about(key, exchange)), default=0.0)


def judge_pause(status: Status, exchange: str, left_s: float) -> Finding:
    """Return why the running gateway pauses; a ban is a failure, with the exchange's text if there is one."""
    again = f"run this again in {left_s:.0f} s"
    bans = [
        error
        for error in status.get("errors", ())
        if error.get("means", error["kind"]) == Means.BANNED
        and error["over_since_ms"] is None
        and _is_about(error, exchange)
    ]
    if not bans:
        return warn("exchange", "not contacted: the running gateway is pausing after a 429", again)
    since = datetime.fromtimestamp(bans[0]["last_ms"] / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    words = f", {bans[0]['evidence']}" if bans[0].get("evidence") else ""
    text = (
        "not contacted: the exchange has blocked the running gateway's IP address or API key since "
        f"{since}{words}"
    )
    return fail("exchange", text, f"stop other programs that use them, and {again}")


def judge_running(status: Status, exchanges: Container[str]) -> Iterator[Finding]:
    """Yield the notices of its live page, whether it is ready, and its learned limits.

    The limits are those of `exchanges`.
    """
    if "words" not in status:
        yield warn(
            "gateway", f"version {status['version']} is running, older than this command", "restart it"
        )
        return
    notices = [one["text"] for one in status["words"]["notices"] if one["mood"] != CALM]
    for text in notices:
        yield warn("gateway", text)
    if not status["not_ready"]:
        but = ", but degraded" if notices else ""
        yield ok("gateway", f"version {status['version']} is running and ready{but}")
    for key in status["keys"]:
        area, exchange = f"keys.{key['alias']}", key.get("exchange", "")
        if exchange and exchange not in exchanges:
            continue
        for limit in key["limits"]:
            foreign = "; another program seems to use this limit as well" if limit["is_foreign_use"] else ""
            next_step = f"; {step}" if (step := limit["next_step"]) else ""
            pool = f", {label_of(limit)}" if key.get("has_pools") else ""
            text = f"{area}{pool}: {limit['words']}{foreign}{next_step}"
            yield Finding("limits", Level.OK, text, exchange=exchange)
        if not key["limits"]:
            yield Finding("limits", Level.OK, f"{area}: no rate limit known yet", exchange=exchange)


def judge_stale(status: Status, exchange: str, accepted: Container[str]) -> Iterator[Finding]:
    """Yield the keys that the running gateway uses with an older secret or older settings at an exchange.

    Its own requests fail, but the key is among `accepted`: a signed read with the stored secret succeeded.
    """
    for key in status["keys"]:
        if key["trouble"] and key["alias"] in accepted and _is_about(key, exchange):
            text = f"the running gateway's requests fail: {key['trouble']}"
            fix = "the key as stored now is accepted: load it with `sealgate reload`"
            yield warn(f"keys.{key['alias']}", text, fix)
