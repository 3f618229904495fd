"""Which stream a bot asks for, and what a message of a bot needs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sealgate.errors import Refusal
from sealgate.http.headers import Head
from sealgate.http.target import Target, parse_target
from sealgate.keys.bot import Bot
from sealgate.machine.findings import listed
from sealgate.venues.key_kinds import Kind
from sealgate.venues.routes import Permission, Route
from sealgate.venues.streams import MessageRule, Stream, UnclearError, find_stream, plain_host
from sealgate.venues.venue import Venue

_MOST_NAMED = 8  # hosts or paths, in a refusal


class Asker(NamedTuple):
    """Who opens a stream: the bot, the head by which it proved itself, and its token, b"" if it sent none."""

    bot: Bot
    head: Head
    token: bytes


@dataclass(frozen=True, slots=True)
class Wanted:
    """The stream that a target names. `host` is the one to dial, `target` the path and query there."""

    stream: Stream
    host: str
    target: Target


def find_wanted(raw: str, venue: Venue, hosts: Mapping[str, tuple[str, str]]) -> Wanted:
    """Return the stream of a target such as /stream.example.com/v1/private?x=1; no path means /.

    Raises Refusal `unknown_stream`, `ambiguous_target`.
    """
    before, mark, query = raw.partition("?")
    name, _, path = before[1:].partition("/")
    known = hosts.get(plain_host(name)) if before.startswith("/") else None
    if known is None:
        if not hosts:
            raise Refusal("unknown_stream", f"{venue.title} has no streams here.")
        for environment, one in venue.environments.items():
            if plain_host(name) in map(plain_host, one.streams.values()):
                told = f'This host is of the environment "{environment}", and the gateway uses another one.'
                advice = f'Set environment = "{environment}", and keep the host of the live exchange.'
                raise Refusal("unknown_stream", told, advice=advice)
        told = f"{venue.title} has no streams at this host; the path begins with one of its hosts"
        raise Refusal("unknown_stream", f"{told}: {_some(hosts)}.", advice=_advice(venue))
    host, dialed = known
    target = parse_target(f"/{path}{mark}{query}", "")
    stream = find_stream(venue.streams, host, target.path)
    if stream is None:
        paths = [path for one in venue.streams if host in one.hosts for path in one.templates]
        told = f"The host {name} has no stream with this path, but {_some(paths)}."
        raise Refusal("unknown_stream", told, advice=_advice(venue))
    return Wanted(stream, dialed, target)


def _some(names: Iterable[str]) -> str:
    return listed(sorted(set(names))[:_MOST_NAMED])


def _advice(venue: Venue) -> str:
    return f"`sealgate venues show {venue.name}` lists the hosts and paths of the exchange's streams."


def check_open(bot: Bot, stream: Stream) -> None:
    """Refuse a stream that a bot may not open."""
    if stream.needs not in bot.may:
        raise Refusal("bot_forbidden", f"The stream {stream.label} needs {stream.needs}, and {_lacks(bot)}.")


@dataclass(frozen=True, slots=True)
class Judged:
    """A message that its bot may send. Without a rule nobody named it."""

    rule: MessageRule | None
    route: Route
    document: object


def judge(stream: Stream, bot: Bot, kind: Kind, message: bytes, *, is_text: bool) -> Judged:
    """Return what a message of a stream with rules is. Raises Refusal where it may not be sent."""
    if not is_text:
        raise Refusal("bad_request", "A binary message cannot be read, so it was not sent: send text.")
    try:
        document = stream.clear(message.decode("utf-8"))
    except UnclearError as error:
        raise Refusal("bad_request", f"The message is ambiguous, so it was not sent: {error}.") from None
    rule, route = stream.find(document, kind)
    if rule is not None and rule.refuses:
        raise Refusal("bot_forbidden", f"The message was not sent: {rule.refuses}.")
    if route.needs not in bot.may:
        known = "" if rule else " because the venue's file does not name it,"
        raise Refusal(
            "bot_forbidden",
            f"The message was not sent:{known} {route.template} needs {route.needs}, and {_lacks(bot)}.",
        )
    return Judged(rule, route, document)


def _lacks(bot: Bot) -> str:
    may = " and ".join(one.value for one in Permission if one in bot.may)
    return f"the bot {bot.name} may only {may}"
