"""The picture of a moment as people read it, made once for the live page and for `sealgate top`.

Where there are several exchanges, each sentence names its own. Everything here follows from the figures of
the same picture. Times of day are UTC, as in the log. What stands in backquotes is to be typed.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sealgate.config.names import STRANGER
from sealgate.machine.findings import sentence, span
from sealgate.observe.glance import exchange_words, mood_of, tiles
from sealgate.observe.key_sentences import is_banned, key_words, label_of
from sealgate.observe.order_sentences import doubt_words, doubts_words, last_order_words, stream_words
from sealgate.observe.troubles import client_words
from sealgate.observe.units import (
    BAD,
    CALM,
    WARN,
    ago,
    alias_of,
    counted,
    moment,
    number,
    place,
    time_of_day,
)

Figures = Mapping[str, Any]
Notice = tuple[str, str]  # mood and text

_MOST_LINES = 16
_LONG_S = 10.0  # a shorter pause is over before somebody has read of it
_SOON_S = 7 * 86_400
_TIMES = "\u00d7"
_JOURNAL = "the journal cannot be written"


def words(now: Figures) -> dict[str, Any]:
    """Return all texts of a picture; those of `exchanges` and `keys` are in the order of the figures."""
    exchanges = now["exchanges"]
    wrong = sorted([*_errors(now), *_refusals(now)], key=lambda line: -line["last_ms"])[:_MOST_LINES]
    policies = [policy["by_rule"] for policy in now["policies"] if policy["by_rule"]]
    return {
        "mood": mood_of(now["state"]),
        "notices": [{"mood": mood, "text": text} for mood, text in _notices(now)],
        "where": _where(exchanges),
        "tiles": tiles(now),
        "exchanges": [exchange_words(now, one) for one in exchanges],
        "keys": [key_words(f"Key {alias_of(now, key)}", key) for key in now["keys"]],
        "streams": [stream_words(now, stream) for stream in now["streams"]],
        "last_orders": [last_order_words(now, order) for order in now["last_orders"]],
        "wrong": wrong,
        "policies": policies,
        "nothing_wrong": "" if wrong or policies else "No bot has met an error or a refusal since the start.",
        "doubts": doubts_words(now["journal"]["in_doubt"], len(now["journal"]["doubts"])),
        "orders": [doubt_words(now, doubt) for doubt in now["journal"]["doubts"]],
        "own_addresses": _own_addresses(now["bot_urls"]),
        "foot": f"Sealgate {now['version']}, up {span(now['uptime_s'])}, "
        f"{counted(now['connections'], 'bot connection')}. {_own_addresses(now['bot_urls'])}".strip(),
    }


def _where(exchanges: Sequence[Figures]) -> str:
    """Say which exchange it is, of several how many."""
    if len(exchanges) > 1:
        return counted(len(exchanges), "exchange")
    return f"{exchanges[0]['name']}, {exchanges[0]['base_url']}"


def _own_addresses(urls: Mapping[str, str]) -> str:
    """Say which bots have an address of their own, "" where none has."""
    return f"Without a token: {', '.join(f'{bot} at {url}' for bot, url in urls.items())}." if urls else ""


def _prefix(now: Figures, exchange: str) -> str:
    return f"{exchange}: " if place(now, exchange) else ""


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
            since = moment(now, failing["since_ms"])
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
        since = f"since {moment(now, halt['since_ms'])}, by {halt['who']}"
        resume = f"Reads and cancels pass. Resume with: `{halt['resume']}`"
        yield BAD, f"Orders are halted for {halt['words']} {since}. {resume}{reason}"
    for key in now["keys"]:
        alias, sharing = alias_of(now, key), key["sharing"]
        name = f"Key {alias}"
        if key["disabled"]:
            yield BAD, f"{name} is disabled: {key['disabled']}. The gateway tries it again automatically."
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
            yield WARN, f"{what}, since {moment(now, one['first_ms'])}. {one['advice']}"


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
            yield WARN, f"{which}{place(now, exchange)}, {text}."
    for one in now["exchanges"]:
        for pool in one["open_pools"]:
            if pool["pause_s"] > _LONG_S:
                who = f"Requests without a key{place(now, one['name'])}"
                yield WARN, f"{who}, {label_of(pool)}: {pool['closed']}."


def _what_the_journal_says(journal: Figures) -> Iterator[Notice]:
    if journal["trouble"]:
        refusing = "Orders are refused until it can; reads and cancels pass."
        effect = refusing if journal["is_refusing"] else "Orders are sent without a record."
        yield BAD, f"{_JOURNAL.capitalize()}: {journal['trouble']}. {effect}"
    if journal["lost"]:
        do = "If you did not remove it, stop the gateway, put the file back, and find out who did."
        yield BAD, f"{journal['lost']}. {do}"


# What went wrong.


def _errors(now: Figures) -> Iterator[dict[str, Any]]:
    for error in now["errors"]:
        key = f"key {error['key']}" if error["key"] else ""
        last_by = f"last by {error['bot']}" if error["bot"] else ""
        who = ", ".join(filter(None, (f"{key}{place(now, error['exchange'])}".strip(), last_by)))
        yield _line(now, error, who, f"{number(error['count'])}{_TIMES}")


def _refusals(now: Figures) -> Iterator[dict[str, Any]]:
    for one in now["refusals"]:
        is_stranger, refused = one["bot"] == STRANGER, number(one["refused"])
        times = f"{refused}{_TIMES}" if is_stranger else f"{refused} of {number(one['asked'])}"
        what = f"{one['lane']}s" if one["lane"] else "any request"
        who = f"refused by the gateway: {one['bot']}{place(now, one['exchange'])}, {what}"
        client = client_words(one["client"], one["user_agent"])
        yield _line(now, one, f"{who}; the last: {client}" if client else who, times)


def _line(now: Figures, one: Figures, who: str, times: str) -> dict[str, Any]:
    """Return a line; `text` is what to do, or since when it is over. `kind` is null for a refusal."""
    over_ms, evidence, kind = one["over_since_ms"], one.get("evidence"), one.get("kind")
    return {
        "kind": kind,
        "anchor": f"{one['exchange']}/{kind}" if kind and place(now, one["exchange"]) else kind,
        "what": kind or one["reason"],
        "who": who,
        "times": times,
        "last_ms": one["last_ms"],
        "last": ago(now, one["last_ms"]),
        "cause": sentence(evidence) if evidence else "",
        "text": one["advice"] if over_ms is None else f"Resolved at {time_of_day(now, over_ms)}.",
        "is_over": over_ms is not None,
    }
