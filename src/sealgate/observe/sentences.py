"""The picture of a moment as people read it, made once for the live page and for `sealgate top`.

Where there are several exchanges, each sentence names its own. Everything here follows from the figures of
the same picture. Times of day are UTC, as in the log. What stands in backquotes is to be typed.
"""

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sealgate.config.names import STRANGER
from sealgate.machine.findings import sentence, span
from sealgate.observe.key_sentences import (
    closed_pools,
    fullest_of,
    is_banned,
    key_words,
    label_of,
    most_urgent,
    pool_words,
)
from sealgate.observe.status import State
from sealgate.observe.troubles import client_words
from sealgate.observe.units import (
    ALMOST_FULL,
    BAD,
    CALM,
    GOOD,
    WARN,
    counted,
    ms,
    number,
    percent,
    signed_ms,
    window,
)

Figures = Mapping[str, Any]
Notice = tuple[str, str]  # mood and text

_MOODS = {
    State.READY: GOOD,
    State.PAUSED: WARN,
    State.A_POOL_CLOSED: WARN,
    State.CLOCK_NOT_READ: WARN,
    State.REFUSING: WARN,
    State.SHUTTING_DOWN: WARN,
}
_MOST_LINES = 16
_LONG_S = 10.0  # a shorter pause is over before somebody has read of it
_SOON_S = 7 * 86_400
_A_DAY_MS = 86_400_000
_TIMES, _DASH = "\u00d7", "\u2013"
_JOURNAL = "the journal cannot be written"


def words(now: Figures) -> dict[str, Any]:
    """Return all texts of a picture; those of `exchanges` and `keys` are in the order of the figures."""
    exchanges = now["exchanges"]
    count = now["journal"]["in_doubt"]
    wrong = sorted([*_errors(now), *_refusals(now)], key=lambda line: -line["last_ms"])[:_MOST_LINES]
    policies = [policy["by_rule"] for policy in now["policies"] if policy["by_rule"]]
    return {
        "mood": _MOODS.get(now["state"], BAD),
        "notices": [{"mood": mood, "text": text} for mood, text in _notices(now)],
        "where": now["base_url"] if len(exchanges) == 1 else counted(len(exchanges), "exchange"),
        "tiles": [tile._asdict() for tile in (*_limit_tiles(now), *_other_tiles(now))],
        "exchanges": [_exchange(now, one) for one in exchanges],
        "keys": [key_words(f"Key {_alias(now, key)}", key) for key in now["keys"]],
        "streams": [_stream(now, stream) for stream in now["streams"]],
        "wrong": wrong,
        "policies": policies,
        "nothing_wrong": "" if wrong or policies else "No bot has met an error or a refusal since the start.",
        "doubts": _doubts(count) if count else "",
        "own_addresses": _own_addresses(now["bot_urls"]),
        "foot": f"Sealgate {now['version']}, up {span(now['uptime_s'])}, "
        f"{counted(now['connections'], 'bot connection')}. {_own_addresses(now['bot_urls'])}".strip(),
    }


def _own_addresses(urls: Mapping[str, str]) -> str:
    """Say which bots have an address of their own, "" where none has."""
    return f"Without a token: {', '.join(f'{bot} at {url}' for bot, url in urls.items())}." if urls else ""


# Notices: what people must know or do.


def _notices(now: Figures) -> Iterator[Notice]:
    """Yield the notices, the gravest first."""
    yield from _why_not_served(now)
    yield from _what_is_stopped(now)
    yield from _what_is_closed(now)
    yield from _what_the_journal_says(now["journal"])
    if now["requests"] == 0 and not now["not_ready"]:
        instead = "the gateway's address instead of the exchange's"
        if len(now["exchanges"]) > 1 and (urls := now["exchanges"][0]["urls"]):
            instead = f"the address of its exchange here, such as {urls[0]}"
        yield CALM, f"No bot has sent a request yet. Point a bot at {instead}, and leave out the signing."


def _why_not_served(now: Figures) -> Iterator[Notice]:
    if now["is_draining"]:
        yield BAD, "Not ready: shutting down"
    for one in now["exchanges"]:
        is_alone = len(now["exchanges"]) == 1
        # 1. What makes it not ready, except a key, which has a notice of its own.
        for reason in one["not_ready"]:
            if not reason.startswith("the key "):
                yield BAD, f"Not ready: {reason}" if is_alone else f"{one['name']} is not ready: {reason}"
        # 2. An exchange that fails. The gateway keeps trying, unless something of its own stops it.
        if failing := one["failing"]:
            since = _moment(now, failing["since_ms"])
            attempts = f"{counted(failing['attempts'], 'attempt')}, the last with {failing['kind']}"
            is_stopped = one["not_ready"] or now["not_ready"] or now["halts"]
            goes_on = "" if is_stopped else "Requests are still accepted, and sent."
            text = " ".join(filter(None, (failing["cause"], failing["advice"], goes_on)))
            who = "The exchange" if is_alone else f"The exchange {one['name']}"
            yield BAD, f"{who} has been failing since {since}: {attempts}. {text}"
        # 3. A clock that cannot be read, if that is all.
        elif (trouble := one["clock"]["trouble"]) and not any(
            reason.startswith("clock ") for reason in one["not_ready"]
        ):
            age_s = one["clock"]["age_s"]
            signed = f" Requests are signed by the last reading, which is {span(age_s)} old." if age_s else ""
            whose = "The exchange's time" if is_alone else f"The time of {one['name']}"
            yield WARN, f"{whose} cannot be read: {trouble}.{signed}"


def _what_is_stopped(now: Figures) -> Iterator[Notice]:
    for halt in now["halts"]:
        # The reason stands last, so that a backquote in it changes nothing else.
        reason = f". Reason: {halt['reason']}" if halt["reason"] else ""
        since = f"since {_moment(now, halt['since_ms'])}, by {halt['who']}"
        resume = f"Reads and cancels pass. Resume with: `{halt['resume']}`"
        yield BAD, f"Orders are halted for {halt['words']} {since}. {resume}{reason}"
    for key in now["keys"]:
        alias, sharing = _alias(now, key), key["sharing"]
        name = f"Key {alias}"
        if key["disabled"]:
            yield BAD, f"{name} is disabled: {key['disabled']}. The gateway tries it again by itself."
        if key["trouble"]:
            yield BAD, f"{name}: {key['trouble']}. {key['trouble_advice']}"
        if sharing and sharing["degraded"]:
            share = f"a cautious share of it (1 of {counted(sharing['replicas'], 'gateway')})"
            use = f"Until it is again, this gateway uses {share}."
            yield BAD, f"The limit of key {alias} is not shared: {sharing['degraded']}. {use}"
        left_s = math.inf if key["expires_at"] is None else key["expires_at"] - now["at_ms"] / 1000
        if left_s < _SOON_S:
            end = f"expires in {span(left_s)}" if left_s > 0 else "has expired"
            yield BAD, f"{name} {end}: make a new one in the app."
    for one in now["refusals"]:
        if one["is_grave"]:
            what = f"{_prefix(now, one['exchange'])}{one['words']}"
            yield WARN, f"{what}, since {_moment(now, one['first_ms'])}. {one['advice']}"


def _what_is_closed(now: Figures) -> Iterator[Notice]:
    """Yield the bans, and the pools that stay closed for long; once for all keys that share them."""
    aliases: dict[tuple[str, str], list[str]] = {}
    for key in now["keys"]:
        if any(pool["pause_s"] > _LONG_S for pool in key["pools"]):
            left = span(math.ceil(key["pause_s"]))
            text = f"banned by the exchange: nothing is sent for {left}" if is_banned(key) else key["closed"]
            aliases.setdefault((key["exchange"], text), []).append(key["alias"])
    for (exchange, text), those in aliases.items():
        which = f"Key {those[0]}" if len(those) == 1 else counted(len(those), "key")
        if text:
            yield WARN, f"{which}{_at(now, exchange)}, {text}."
    for one in now["exchanges"]:
        for pool in one["open_pools"]:
            if pool["pause_s"] > _LONG_S:
                who = f"Requests without a key{_at(now, one['name'])}"
                yield WARN, f"{who}, {label_of(pool)}: {pool['closed']}."


def _what_the_journal_says(journal: Figures) -> Iterator[Notice]:
    if journal["trouble"]:
        refusing = "Orders are refused until it can; reads and cancels pass."
        effect = refusing if journal["is_refusing"] else "Orders are sent without a record."
        yield BAD, f"{_JOURNAL.capitalize()}: {journal['trouble']}. {effect}"
    if journal["lost"]:
        do = "If you did not remove it, stop the gateway, put the file back, and find out who did."
        yield BAD, f"{journal['lost']}. {do}"


# Tiles: the figures at a glance.


class Tile(NamedTuple):
    """A figure with its name, and with what explains it."""

    name: str
    value: str
    unit: str
    more: str
    mood: str = ""


def _limit_tiles(now: Figures) -> Iterator[Tile]:
    """Yield the fullest limit of the keys, and when to expect the next 429."""
    keys = now["keys"]
    fullest = max(keys, key=lambda key: -1.0 if (limit := fullest_of(key)) is None else limit["used_ratio"])
    limit, is_one_of_many = fullest_of(fullest), len(keys) > 1
    # 1. The fullest limit; while none is known, what is sent.
    if limit is None:
        name = f"Sent with {_alias(now, fullest)}" if is_one_of_many else "Sent"
        yield Tile(name, number(fullest["sent_per_s"], 1), "/s", "to the exchange")
    else:
        name = f"Limit of {_alias(now, fullest)}" if is_one_of_many else "Limit used"
        which = f"{label_of(limit)}: " if fullest["has_pools"] else ""
        height = f"{number(limit['n'])} per {window(limit['window_s'])}"
        more = f"{which}{number(fullest['used'])} of {height}"
        mood = WARN if limit["used_ratio"] >= ALMOST_FULL else ""
        yield Tile(name, percent(limit["used_ratio"]), "", more, mood)
    # 2. The next 429; after one, what is left of the pause, or of that of a pool.
    coming = fullest["next_429"]
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
    elif coming["in_s"] is not None:
        yield Tile("Next 429", coming["short"], "", "at this pace", WARN)
    else:
        yield Tile("Next 429", coming["short"], "", coming["words"].removeprefix(f"{coming['short']}: "))


def _other_tiles(now: Figures) -> Iterator[Tile]:
    """Yield the figures of the whole gateway; of several exchanges, how many are ready, and no clock."""
    exchanges, in_doubt = now["exchanges"], now["journal"]["in_doubt"]
    waiting = sum(sum(key["waiting"].values()) for key in now["keys"])
    under_way = f"of {counted(now['inflight'], 'request')} under way"
    yield Tile("Waiting", number(waiting), "", under_way, WARN if waiting else "")
    yield _requests(now, now["uptime_s"])
    if len(exchanges) == 1:
        yield _clock(now["clock"])
    else:
        ready = sum(not one["not_ready"] for one in exchanges)
        mood = BAD if ready < len(exchanges) else ""
        yield Tile("Exchanges", number(ready), "", f"of {number(len(exchanges))} ready", mood)
    yield _in_doubt(in_doubt)


def _requests(of: Figures, uptime_s: float) -> Tile:
    so_far = f"{number(of['requests'])} in {span(uptime_s)}"
    return Tile("Requests", number(of["requests_per_s"], 1), "/s", so_far)


def _clock(clock: Figures) -> Tile:
    if clock["offset_s"] is None:
        return Tile("Clock", _DASH, "", "not synced yet", BAD)
    more = f"± {ms(clock['error_s'] * 1000)}, {span(clock['age_s'])} old"
    return Tile("Clock", signed_ms(clock["offset_s"] * 1000), "", more, WARN if clock["trouble"] else "")


def _in_doubt(count: int) -> Tile:
    return Tile("In doubt", number(count), "", *(("look them up", BAD) if count else ("no order",)))


# Exchanges.


def _exchange(now: Figures, one: Figures) -> dict[str, Any]:
    """Return an exchange at a glance, in words, and the tiles that show it in full."""
    keys = [key for key in now["keys"] if key["exchange"] == one["name"]]
    clock, ratio, limited = one["clock"], one["used_ratio"], one["limited"]
    waiting = Tile("Waiting", number(one["waiting"]), "", "for their turn", WARN if one["waiting"] else "")
    tiles = (
        *_limit_tiles({"exchanges": [one], "keys": keys}),
        waiting,
        _requests(one, now["uptime_s"]),
        _clock(clock),
        _in_doubt(now["journal"]["by_exchange"].get(one["name"], 0)),
    )
    is_known = clock["offset_s"] is not None
    pause = f"paused, {span(math.ceil(one['pause_s']))} left" if one["pause_s"] else ""
    if not pause and (count := sum(map(closed_pools, keys))):
        pause = f"{counted(count, 'pool')} closed"
    return {
        "mood": _MOODS.get(one["state"], BAD),
        "used": _DASH if ratio is None else percent(ratio),
        "used_mood": WARN if pause or (ratio or 0.0) >= ALMOST_FULL else "",
        "pause": pause,
        "waiting": number(one["waiting"]),
        "sent": f"{number(one['sent_per_s'], 1)} /s",
        "limited": f"{number(limited)}, last {_ago(now, one['limited_ms'])}" if limited else "none",
        "clock": f"{signed_ms(clock['offset_s'] * 1000)} ± {ms(clock['error_s'] * 1000)}"
        if is_known
        else _DASH,
        "tiles": [tile._asdict() for tile in tiles],
        "open_name": f"Requests without a key{_at(now, one['name'])}",
        "open_pools": [pool_words(pool, is_of_key=False) for pool in most_urgent(one["open_pools"])],
    }


# Streams.

_LOGINS = {True: "logged in", False: "not logged in", None: "no login"}


def _stream(now: Figures, one: Figures) -> dict[str, str]:
    """Return an open stream in words."""
    return {
        "since": _moment(now, one["since_ms"]),
        "age": span((now["at_ms"] - one["since_ms"]) / 1000),
        "rate": f"{number(one['messages_per_s'], 1)} /s",
        "login": _LOGINS[one["is_logged_in"]],
    }


# What went wrong.


def _errors(now: Figures) -> Iterator[dict[str, Any]]:
    for error in now["errors"]:
        key = f"key {error['key']}" if error["key"] else ""
        last_by = f"last by {error['bot']}" if error["bot"] else ""
        who = ", ".join(filter(None, (f"{key}{_at(now, error['exchange'])}".strip(), last_by)))
        yield _line(now, error, who, f"{number(error['count'])}{_TIMES}")


def _refusals(now: Figures) -> Iterator[dict[str, Any]]:
    for one in now["refusals"]:
        is_stranger, refused = one["bot"] == STRANGER, number(one["refused"])
        times = f"{refused}{_TIMES}" if is_stranger else f"{refused} of {number(one['asked'])}"
        what = f"{one['lane']}s" if one["lane"] else "any request"
        who = f"refused by the gateway: {one['bot']}{_at(now, one['exchange'])}, {what}"
        client = client_words(one["client"], one["user_agent"])
        yield _line(now, one, f"{who}; the last: {client}" if client else who, times)


def _line(now: Figures, one: Figures, who: str, times: str) -> dict[str, Any]:
    """Return a line; `text` is what to do, or since when it is over. `kind` is null for a refusal."""
    over_ms, evidence, kind = one["over_since_ms"], one.get("evidence"), one.get("kind")
    return {
        "kind": kind,
        "anchor": f"{one['exchange']}/{kind}" if kind and _at(now, one["exchange"]) else kind,
        "what": kind or one["reason"],
        "who": who,
        "times": times,
        "last_ms": one["last_ms"],
        "last": _ago(now, one["last_ms"]),
        "cause": sentence(evidence) if evidence else "",
        "text": one["advice"] if over_ms is None else f"Resolved at {_time(now, over_ms)}.",
        "is_over": over_ms is not None,
    }


def _doubts(count: int) -> str:
    """Return what to do about the orders in doubt."""
    known = f"{counted(count, 'order')} {'has' if count == 1 else 'have'} no known result."
    look = "Look up each at the exchange, then run: `sealgate orders --settle REQUEST`."
    return f"{known} {look} The fence is the exchange's time after which it no longer admits the order."


# Names and times.


def _alias(now: Figures, key: Figures) -> str:
    """Return a key's name; of several exchanges, with that where it is valid."""
    return f"{key['alias']}{_at(now, key['exchange'])}"


def _at(now: Figures, exchange: str) -> str:
    """Return " at perp" where there are several exchanges, else ""."""
    return f" at {exchange}" if exchange and len(now["exchanges"]) > 1 else ""


def _prefix(now: Figures, exchange: str) -> str:
    return f"{exchange}: " if _at(now, exchange) else ""


def _ago(now: Figures, at_ms: int) -> str:
    return f"{span((now['at_ms'] - at_ms) / 1000)} ago"


def _moment(now: Figures, at_ms: int) -> str:
    """Return "12:00:05 UTC, 3 min ago"."""
    return f"{_time(now, at_ms)}, {_ago(now, at_ms)}"


def _time(now: Figures, at_ms: int) -> str:
    """Return "12:00:05 UTC", with the date if that was more than a day ago."""
    date = "%Y-%m-%d " if now["at_ms"] - at_ms > _A_DAY_MS else ""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):{date}%H:%M:%S} UTC"
