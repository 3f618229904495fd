"""Orders and streams in words: orders in doubt with what to do, each bot's last order, open streams."""

from collections.abc import Mapping
from shlex import quote
from typing import Any

from sealgate.machine.findings import span
from sealgate.observe.units import BAD, WARN, ago, counted, moment, number, time_of_day

Figures = Mapping[str, Any]

_NOW_MS = 1000
_LOGINS = {True: "logged in", False: "not logged in", None: "no login"}


def doubt_words(now: Figures, doubt: Figures) -> dict[str, str]:
    """Return an order in doubt in words, and what to do about it."""
    all_ids = [one["request_id"] for one in now["journal"]["doubts"]]
    is_alone = all_ids.count(doubt["request_id"]) == 1
    request = doubt["request_id"] if is_alone else doubt["id"]
    left_s = _admitted_for_s(now, doubt)
    by = f"client order id {doubt['client_id']}" if doubt["client_id"] else "symbol and time"
    look = f"Look it up by {by}, then run: `sealgate orders --settle {quote(request)}`"
    return {
        "call": doubt["call"],
        "terms": doubt["terms"],
        "sent": time_of_day(now, doubt["sent_ms"]),
        "ago": ago(now, doubt["sent_ms"]),
        "fence": time_of_day(now, doubt["fence_ms"]) if doubt["fence_ms"] else "not known",
        "do": f"Wait {span(left_s)}: until then it may still execute. {look}" if left_s > 0 else look,
    }


def _admitted_for_s(now: Figures, doubt: Figures) -> float:
    """Return for how long the exchange still admits an order, by its own clock if that is known."""
    offsets = {one["name"]: one["clock"]["offset_s"] or 0.0 for one in now["exchanges"]}
    exchange_ms = now["at_ms"] + offsets.get(doubt["exchange"], 0.0) * 1000
    return float(doubt["fence_ms"] - exchange_ms) / 1000


def doubts_words(count: int, shown: int) -> str:
    """Return what orders in doubt are, "" without any."""
    if not count:
        return ""
    known = f"{counted(count, 'order')} {'has' if count == 1 else 'have'} no known result"
    more = f" The oldest {shown} are shown; `sealgate orders` lists all." if shown < count else ""
    return f"{known}: sent, but the reply was lost. Do not send any again before you have looked it up.{more}"


def last_order_words(now: Figures, order: Figures) -> dict[str, str]:
    """Return the last order of a bot in words."""
    outcome, status = order["outcome"], order["status"]
    why = f": {order['reason']}" if order["reason"] else ""
    how, mood = {
        "done": (f"accepted ({status})", ""),
        "refused": (f"refused by the exchange ({status})", WARN),
        "not_sent": (f"not sent{why} ({status})", WARN),
        "unknown": (f"no known result{why} ({status})", BAD),
    }[outcome]
    return {
        "ago": "now" if now["at_ms"] - order["at_ms"] < _NOW_MS else ago(now, order["at_ms"]),
        "call": f"{order['method']} {order['route']}",
        "how": how,
        "mood": mood,
    }


def stream_words(now: Figures, one: Figures) -> dict[str, str]:
    """Return an open stream in words."""
    return {
        "since": moment(now, one["since_ms"]),
        "age": span((now["at_ms"] - one["since_ms"]) / 1000),
        "rate": f"{number(one['messages_per_s'], 1)}/s",
        "login": _LOGINS[one["is_logged_in"]],
    }
