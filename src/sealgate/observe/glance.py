"""Figures at a glance, in words: tiles for the gateway and for each exchange, and a row for each exchange."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sealgate.machine.findings import span
from sealgate.observe.key_sentences import (
    closed_pools,
    fullest_of,
    is_banned,
    label_of,
    most_urgent,
    pool_words,
)
from sealgate.observe.status import State
from sealgate.observe.units import (
    BAD,
    DASH,
    GOOD,
    WARN,
    ago,
    alias_of,
    counted,
    ms,
    number,
    percent,
    place,
    rate,
    signed_ms,
)

Figures = Mapping[str, Any]

_MOODS = {
    State.READY: GOOD,
    State.PAUSED: WARN,
    State.A_POOL_CLOSED: WARN,
    State.CLOCK_NOT_READ: WARN,
    State.REFUSING: WARN,
    State.SHUTTING_DOWN: WARN,
}


def mood_of(state: str) -> str:
    """Return the mood of a state."""
    return _MOODS.get(State(state), BAD)


class Tile(NamedTuple):
    """A figure with its name, and with what explains it."""

    name: str
    value: str
    unit: str
    more: str
    mood: str = ""


def tiles(now: Figures) -> list[dict[str, Any]]:
    """Return the figures of the whole gateway; of several exchanges, how many are ready, and no clock."""
    exchanges, in_doubt = now["exchanges"], now["journal"]["in_doubt"]
    waiting = sum(sum(key["waiting"].values()) for key in now["keys"])
    under_way = f"of {counted(now['inflight'], 'request')} under way"
    found = [*_limit_tiles(now), Tile("Waiting", number(waiting), "", under_way)]
    found.append(_requests(now, now["uptime_s"]))
    if len(exchanges) == 1:
        found.append(_clock(now["clock"]))
    else:
        ready = sum(not one["not_ready"] for one in exchanges)
        mood = BAD if ready < len(exchanges) else ""
        found.append(Tile("Exchanges", number(ready), "", f"of {number(len(exchanges))} ready", mood))
    return [tile._asdict() for tile in (*found, _in_doubt(in_doubt))]


def _limit_tiles(now: Figures) -> Iterator[Tile]:
    """Yield the fullest limit of the keys, and the 429s of today.

    A full limit is what pacing is for: it has no mood of its own.
    """
    keys, exchanges = now["keys"], now["exchanges"]
    fullest = max(keys, key=lambda key: -1.0 if (limit := fullest_of(key)) is None else limit["used_ratio"])
    limit, is_one_of_many = fullest_of(fullest), len(keys) > 1
    # 1. The fullest limit, and when it will be full; while none is known, what is sent.
    if limit is None:
        name = f"Sent with {alias_of(now, fullest)}" if is_one_of_many else "Sent"
        yield Tile(name, number(fullest["sent_per_s"], 1), "/s", "no limit known yet")
    else:
        name = f"Limit of {alias_of(now, fullest)}" if is_one_of_many else "Limit used"
        which = f" ({label_of(limit)})" if fullest["has_pools"] else ""
        in_s = fullest["next_429"]["in_s"]
        full = "" if in_s is None else f", full in {span(round(in_s))}"
        yield Tile(name, percent(limit["used_ratio"]), "", f"of {rate(limit)}{which}{full}")
    # 2. After a 429, what is left of the pause, or of that of a pool; else how often that happened.
    closed = [pool for key in keys if key["closed"] for pool in key["pools"] if pool["closed"]]
    if pause_s := max(key["pause_s"] for key in keys):
        is_ban = any(key["pause_s"] == pause_s and is_banned(key) for key in keys)
        name, more = ("Banned", "left") if is_ban else ("Paused", "left, after a 429")
        yield Tile(name, span(math.ceil(pause_s)), "", more, WARN)
    elif closed:
        longest = max(closed, key=lambda pool: float(pool["pause_s"]))
        others = f" and {counted(len(closed) - 1, 'more pool')}" if len(closed) > 1 else ""
        left = span(math.ceil(longest["pause_s"]))
        yield Tile("Closed", left, "", f"left of {label_of(longest)}{others}", WARN)
    else:
        last_ms = max((one["limited_ms"] for one in exchanges if one["limited"]), default=None)
        last = "none since the start" if last_ms is None else f"last {ago(now, last_ms)}"
        yield Tile("429s today", number(sum(one["limited_today"] for one in exchanges)), "", last)


def _requests(of: Figures, uptime_s: float) -> Tile:
    so_far = f"{number(of['requests'])} in {span(uptime_s)}"
    return Tile("Requests", number(of["requests_per_s"], 1), "/s", so_far)


def _clock(clock: Figures) -> Tile:
    if clock["offset_s"] is None:
        return Tile("Clock", DASH, "", "not synchronized yet", BAD)
    more = f"± {ms(clock['error_s'] * 1000)}, {span(clock['age_s'])} old"
    return Tile("Clock", signed_ms(clock["offset_s"] * 1000), "", more, WARN if clock["trouble"] else "")


def _in_doubt(count: int) -> Tile:
    return Tile("In doubt", number(count), "", *(("look them up", BAD) if count else ("no order",)))


def exchange_words(now: Figures, one: Figures) -> dict[str, Any]:
    """Return an exchange at a glance, the tiles that show it in full, and the title of the page then."""
    keys = [key for key in now["keys"] if key["exchange"] == one["name"]]
    clock, ratio, limited = one["clock"], one["used_ratio"], one["limited_today"]
    in_full = (
        *_limit_tiles({**now, "exchanges": [one], "keys": keys}),
        Tile("Waiting", number(one["waiting"]), "", "for their turn"),
        _requests(one, now["uptime_s"]),
        _clock(clock),
        _in_doubt(one["in_doubt"]),
    )
    pause = f"paused, {span(math.ceil(one['pause_s']))} left" if one["pause_s"] else ""
    if not pause and (count := sum(map(closed_pools, keys))):
        pause = f"{counted(count, 'pool')} closed"
    fullest = max((limit for key in keys if (limit := fullest_of(key))), key=_used, default=None)
    return {
        "title": _title(now, one),
        "mood": mood_of(one["state"]),
        "used": DASH if fullest is None else f"{percent(ratio)} of {rate(fullest)}",
        "used_mood": WARN if pause else "",
        "pause": pause,
        "waiting": number(one["waiting"]),
        "sent": number(one["sent_per_s"], 1),
        "limited": f"{number(limited)}, last {ago(now, one['limited_ms'])}" if limited else "0",
        "clock": DASH
        if clock["offset_s"] is None
        else f"{signed_ms(clock['offset_s'] * 1000)} ± {ms(clock['error_s'] * 1000)}",
        "streams": number(one["streams"]),
        "in_doubt": number(one["in_doubt"]),
        "shared": _shared(now, one),
        "tiles": [tile._asdict() for tile in in_full],
        "open_name": f"Requests without a key{place(now, one['name'])}",
        "open_pools": [pool_words(pool, is_of_key=False) for pool in most_urgent(one["open_pools"])],
    }


def _title(now: Figures, one: Figures) -> str:
    """Return "spot: paused"; of several, also how many of the others are not ready for all that bots send."""
    others = sum(other["state"] != State.READY for other in now["exchanges"] if other is not one)
    more = f" ({counted(others, 'other')} not ready)" if others else ""
    return f"{one['name']}: {one['state']}{more} · Sealgate"


def _used(limit: Figures) -> float:
    return float(limit["used_ratio"])


def _shared(now: Figures, one: Figures) -> str:
    """Explain why bots may ask for more than the limit allows, "" where no read shares a reply."""
    if not one["shared_per_s"]:
        return ""
    asked, sent, shared = (number(one[name], 1) for name in ("requests_per_s", "sent_per_s", "shared_per_s"))
    return (
        f"Bots{place(now, one['name'])} ask for {asked} requests a second, and the gateway sends {sent}: "
        f"{shared} are reads that share the reply to an identical one, and cost nothing of the limit."
    )
