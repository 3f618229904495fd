"""What each message of each stream needs of a bot, what a policy reads of orders, and what replies mean.

streams.txt says it by what the exchanges document, never by the venues' files.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache

import pytest

from sealgate.http.headers import Head
from sealgate.venues.key_kinds import Kind
from sealgate.venues.order_terms import OrderShape, UnreadableError, read_orders
from sealgate.venues.routes import Permission
from sealgate.venues.streams import MessageRule, Stream, UnclearError, find_stream, id_of
from venues.through import FILES, HERE, family, named, venue_of

_HEADER = re.compile(
    r"\[(?P<venue>[\w-]+)(:(?P<kind>\w+))? (?P<host>[^/]+)(?P<path>/\S*)\] (?P<needs>\w+)( unread)?"
)
_MESSAGE = re.compile(r"(?P<text>.+) -> (?P<needs>\w+) (?P<lane>\w+)(?P<words>( \w+)*)( = (?P<terms>.+))?")
_REPLY = re.compile(r"  <- (?P<text>.+) = (?P<meaning>\w+)")


@dataclass
class Message:
    """A message, what it needs, and the replies to it. `terms` are what a policy reads of its orders."""

    text: str
    needs: str
    lane: str
    words: set[str]
    terms: str
    replies: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Listed:
    """A stream of a venue, for keys of one kind."""

    venue: str
    kind: Kind | None
    host: str
    path: str
    needs: str
    is_unread: bool
    messages: list[Message] = field(default_factory=list)

    @property
    def stream(self) -> Stream:
        """What the venue's file says of it."""
        stream = find_stream(named(self.venue).streams, self.host, self.path)
        assert stream is not None, f"{self.venue}.toml has no [[streams]] for {self.host}{self.path}"
        return stream

    def find(self, message: Message) -> tuple[MessageRule | None, str]:
        """Return the rule of a message, and what it needs, as a line says it."""
        stream, kind = self.stream, self.kind or named(self.venue).signing.kind
        rule, route = stream.find(stream.clear(message.text), kind)
        words = {
            *(["login"] if rule is not None and rule.is_login else []),
            *(["refused"] if rule is not None and rule.refuses else []),
            *([] if rule is not None else ["unlisted"]),
        }
        return rule, " ".join([f"{route.needs} {route.lane}", *sorted(words)])


@cache
def listed() -> list[Listed]:
    """Return what streams.txt lists."""
    return list(_read())


def _read() -> Iterator[Listed]:
    for line in (HERE / "streams.txt").read_text("utf-8").splitlines():
        if header := _HEADER.fullmatch(line):
            venue, kind, host, path, needs = header.group("venue", "kind", "host", "path", "needs")
            found = Listed(venue, Kind(kind) if kind else None, host, path, needs, line.endswith("unread"))
            yield found
        elif reply := _REPLY.fullmatch(line):
            found.messages[-1].replies.append((reply["text"], reply["meaning"]))
        elif message := _MESSAGE.fullmatch(line):
            text, needs, lane, words, terms = message.group("text", "needs", "lane", "words", "terms")
            found.messages.append(Message(text, needs, lane, set(words.split()), terms or ""))
        else:
            assert line.startswith("#") or not line, line


def name_of(one: Listed) -> str:
    return f"{one.venue}{f':{one.kind}' if one.kind else ''} {one.host}{one.path}"


STREAMS = pytest.mark.parametrize("one", listed(), ids=name_of)


@STREAMS
def test_a_stream_needs_what_the_list_says(one: Listed) -> None:
    assert one.stream.needs == one.needs
    assert one.stream.is_read is not one.is_unread


@STREAMS
def test_so_does_each_of_its_messages(one: Listed) -> None:
    said = {
        message.text: " ".join([f"{message.needs} {message.lane}", *sorted(message.words)])
        for message in one.messages
    }
    assert {text: one.find(message)[1] for text, message in zip(said, one.messages, strict=True)} == said


@STREAMS
def test_a_policy_reads_of_its_orders_what_is_in_them(one: Listed) -> None:
    def terms_of(message: Message) -> str:
        stream, kind = one.stream, one.kind or named(one.venue).signing.kind
        shape = stream.find(stream.clear(message.text), kind)[1].order
        return "" if shape is None else read(shape, message.text)

    said = {message.text: message.terms for message in one.messages}
    assert {message.text: terms_of(message) for message in one.messages} == said


def read(shape: OrderShape, text: str) -> str:
    """Return what a policy reads of the orders in a message, as a line says it."""
    try:
        orders = read_orders(shape, None, text.encode(), Head({}, b""))
    except UnreadableError:
        return "unreadable"
    return ", ".join(
        " ".join(
            [
                *(str("-" if value is None else value) for value in (order.symbol, order.size, order.price)),
                *(["capped"] if order.is_capped else []),
                *(["reduces"] if order.reduces else []),
            ]
        )
        for order in orders
    )


@STREAMS
def test_replies_mean_what_the_exchange_says(one: Listed) -> None:
    def meaning_of(message: Message, reply: str) -> str:
        rule = one.find(message)[0]
        assert rule is not None, message.text
        assert rule.reply is not None, message.text
        own = id_of(one.stream.clear(message.text), rule.reply.id) if rule.reply.id else None
        document = json.loads(reply)
        return (rule.reply.meaning(document) or "nothing") if rule.reply.answers(own, document) else "other"

    for message in one.messages:
        for reply, meaning in message.replies:
            assert (reply, meaning_of(message, reply)) == (reply, meaning)


def spellings(text: str) -> Iterator[str]:
    """Yield a message written in other ways, which some server might take for it."""
    yield from (
        f"\ufeff{text}",
        f"\0{text}",
        f"{text}{text}",
        f"[{text}]",
        json.dumps(text),
        f" \t{text}\r\n",
    )
    document = json.loads(text)
    if not isinstance(document, dict):
        return
    for name, value in document.items():
        rest = {**document}
        del rest[name]
        for other in (name.upper(), name.title(), f"{name} ", f"_{name}", f"{name}\0", f"{name}\u200b"):
            yield json.dumps({**rest, other: value})
            for read in ("ping", "subscribe", "public/test"):
                yield json.dumps({**rest, name: read, other: value})
        for read in ("ping", "subscribe", "public/test"):
            yield f'{{"{name}":"{read}",{text[1:]}'
            yield f'{text[:-1]},"{name}":"{read}"}}'
            yield f'{text[:-1]},"\\u{ord(name[0]):04x}{name[1:]}":"{read}"}}'
        if isinstance(value, str) and value:
            for other in (
                value.upper(),
                value.title(),
                f" {value}",
                f"{value}\n",
                f"{value}\0",
                f"./{value}",
            ):
                yield json.dumps({**document, name: other})


@STREAMS
def test_no_spelling_of_what_trades_is_for_bots_that_only_read(one: Listed) -> None:
    stream, kind = one.stream, one.kind or named(one.venue).signing.kind
    let = []
    for message in one.messages:
        if message.needs == "read" or "unlisted" in message.words:
            continue
        for text in spellings(message.text):
            with suppress(UnclearError):
                rule, route = stream.find(stream.clear(text), kind)
                if route.needs is Permission.READ and not (rule and rule.refuses):
                    let.append((message.text, text))
    assert let == []


def test_of_each_stream_whose_messages_are_read_some_are_listed_that_nobody_names() -> None:
    lacking = {
        name_of(one)
        for one in listed()
        if not one.is_unread and sum("unlisted" in message.words for message in one.messages) < 3
    }
    assert lacking == set()


def test_each_rule_of_these_streams_is_met_by_a_message() -> None:
    def name(one: Listed, rule: MessageRule) -> tuple[str, str, str]:
        return (
            family(one.venue),
            one.stream.label,
            str([(expected.pointer, expected.values) for expected in rule.when]),
        )

    met = {
        name(one, rule)
        for one in listed()
        for message in one.messages
        if (rule := one.find(message)[0]) is not None
    }
    assert {name(one, rule) for one in listed() for rule in one.stream.messages} - met == set()


def test_a_message_that_shares_a_limit_with_requests_names_such_as_are_counted_by_themselves() -> None:
    wrong = []
    for venue in map(venue_of, FILES):
        requests = {f"{row.method} {row.template}" for row in venue.routes}
        pools = {pool.name: pool for pool in venue.limits.pools}
        for route in (route for one in venue.streams for rule in one.messages for route in rule.routes):
            ways = {
                (bool(pool.per), bool(pool.per_parameter)) for pool in map(pools.__getitem__, route.pools)
            }
            is_known = route.per in requests and (True, False) in ways
            if route.per and not (is_known or (route.per.startswith("/") and (False, True) in ways)):
                wrong.append((venue.name, route.template, route.per))
    assert wrong == []
