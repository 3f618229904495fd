"""The streams of an exchange: what their messages are, what each needs, and what answers it.

A stream with `[[streams.messages]]` is read: each of its messages is one of these, or what nobody named. A
stream without any is passed on unread.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from sealgate.venues.conditions import ANYTHING, Condition, any_holds, any_holds_of_one, holds
from sealgate.venues.document import pick, pick_each
from sealgate.venues.json_texts import JsonText
from sealgate.venues.key_kinds import Kind
from sealgate.venues.letters import plain_letters
from sealgate.venues.order_terms import Path, UnreadableError, clear_decoder, steps
from sealgate.venues.outward import leads_out
from sealgate.venues.routes import OTHER, Auth, Lane, Permission, Route
from sealgate.venues.scheme import SIGNATURE, Part
from sealgate.venues.templates import Template, names_in

MOST_LETTERS = 64 * 1024  # of a message that is read
MOST_MEMBERS = 2000  # likewise: more would hold up other bots, and a batch of 20 orders has 300
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"(\s*:)?', re.DOTALL)
_DEFAULT_PORT = ":443"
_STATUSES = range(200, 600)


@dataclass(frozen=True, slots=True)
class MessageSigning:
    """What is put into a message or a handshake, and what of it is signed.

    `signs` is empty where nothing is. `late` are the names of what is made of the signature.
    """

    signs: Template = ()
    timestamp: str = ""  # "": as the requests of this kind of key have it
    expires_s: int | None = None
    encoding: str = ""
    parts: tuple[Part, ...] = ()
    late: frozenset[str] = frozenset({SIGNATURE})
    puts: tuple[tuple[Path, JsonText], ...] = ()
    headers: tuple[tuple[str, Template], ...] = ()
    query: tuple[tuple[str, Template], ...] = ()
    path: Template = ()

    def names_sent(self) -> set[str]:
        """Return the names of values that stand in what is put in."""
        texts = [self.path, *(text.text for _, text in self.puts)]
        texts += [text for _, text in (*self.headers, *self.query)]
        return set[str]().union(*map(names_in, texts))

    def names(self) -> set[str]:
        """Return the names of all values that its texts have."""
        signed = (self.signs, *(text for part in self.parts for text in part.texts()))
        return self.names_sent().union(*map(names_in, signed))

    @property
    def is_dated(self) -> bool:
        """Whether it carries a time."""
        return not self.names().isdisjoint(("timestamp", "expires"))


@dataclass(frozen=True, slots=True)
class ReplyRule:
    """Which message answers another, and what it means.

    With an `id`, it has at `at` what the message has at `id`; `when` is what it must have besides. `status`
    is where it has a status as HTTP knows them, `wait` where a refusal for the limit states its end, as
    `moment` says (one of MOMENTS); "" for nowhere.
    """

    id: str
    at: str
    when: Condition
    done: tuple[Condition, ...]
    refused: tuple[Condition, ...]
    limited: tuple[Condition, ...]
    unknown: tuple[Condition, ...]
    status: str = ""
    wait: str = ""
    moment: str = ""

    def status_of(self, document: object, otherwise: int) -> int:
        """Return the status that a reply states."""
        found = pick(document, self.status) if self.status else None
        return found if type(found) is int and found in _STATUSES else otherwise

    def wait_s(self, document: object, server_now: float) -> float | None:
        """Return the seconds that a reply asks to wait, None where it states nothing that can be meant."""
        found = pick(document, self.wait) if self.wait else None
        if isinstance(found, bool) or not isinstance(found, int | float):
            return None
        try:
            seconds = found / 1000 if self.moment.endswith("_ms") else float(found)
        except OverflowError:  # JSON allows integers of any length
            return None
        if self.moment.startswith("epoch"):
            seconds -= server_now
        return seconds if 0 < seconds < inf else None

    def answers(self, id_text: str | None, document: object) -> bool:
        """Ask whether a message of the exchange is about the one with this id, None for one without."""
        if not holds(self.when, document):
            return False
        return not self.id or (id_text is not None and id_of(document, self.at) == id_text)

    def meaning(self, document: object) -> str:
        """Return limited, unknown, done or refused; "" for a message that settles nothing.

        Of several orders in a list, one in doubt is enough.
        """
        for name in ("limited", "unknown", "done", "refused"):
            ask = any_holds_of_one if name == "unknown" else any_holds
            if ask(getattr(self, name), document):
                return name
        return ""


def id_of(document: object, pointer: str) -> str | None:
    """Return an id as text, None where there is none: some exchanges make a text of a number."""
    found = pick(document, pointer)
    if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
        return None
    return str(found)


@dataclass(frozen=True, slots=True)
class MessageRule:
    """What a kind of message needs, and how it is signed and settled.

    `routes` are by the values that `when` names first: each is a call of its own. `message` is one such as
    `when` does not say: see venues/stream_logins.py.
    """

    when: Condition
    kinds: frozenset[Kind]
    routes: tuple[Route, ...]
    is_login: bool = False
    refuses: str = ""
    drops: tuple[Path, ...] = ()
    signing: MessageSigning | None = None
    reply: ReplyRule | None = None
    message: str = ""

    def route(self, document: object) -> Route | None:
        """Return the route of a message for which this rule holds, else None."""
        first, *others = (expected.fits(document) for expected in self.when)
        return None if first is None or None in others else self.routes[first]


@dataclass(frozen=True, slots=True)
class Challenge:
    """Where a message of the exchange has what is to be signed. `message` asks for it, if it is not ""."""

    when: Condition
    at: str
    message: str = ""

    def may_be(self, text: str) -> bool:
        """Ask, before a message is read, whether it could be one: it has a text that is expected."""
        texts = [value for expected in self.when for value in expected.values if isinstance(value, str)]
        return not texts or any(all(piece in text for piece in value.split(ANYTHING)) for value in texts)


class UnclearError(ValueError):
    """A message that can be read in more than one way, or not at all; the words say why."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream. `label` names it in metrics, `templates` are its paths as the file has them."""

    label: str
    hosts: tuple[str, ...]
    paths: tuple[re.Pattern[str], ...]
    needs: Permission
    messages: tuple[MessageRule, ...] = ()
    challenge: Challenge | None = None
    handshake: MessageSigning | None = None
    templates: tuple[str, ...] = ()
    decode: Callable[[str], Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        places = {steps(expected.pointer) for rule in self.messages for expected in rule.when}
        names = {step for path in places for step in path if not step.isdecimal() and step != "*"}
        object.__setattr__(self, "decode", clear_decoder(names))

    @property
    def is_read(self) -> bool:
        """Whether the messages of a bot are read."""
        return bool(self.messages)

    @property
    def uses_key(self) -> bool:
        """Whether its handshake, or one of its messages, is made with the key."""
        return self.handshake is not None or any(rule.signing is not None for rule in self.messages)

    @property
    def has_login(self) -> bool:
        """Whether a message, or the handshake, logs in."""
        return self.signs_handshake or any(rule.is_login for rule in self.messages)

    @property
    def signs_handshake(self) -> bool:
        """Whether its upgrade logs in, rather than just lead to an account's own path."""
        return self.handshake is not None and bool(self.handshake.headers or self.handshake.query)

    @property
    def has_orders(self) -> bool:
        """Whether the file names messages that trade."""
        return any(
            route.lane is Lane.ORDER and route.needs is Permission.TRADE and not rule.refuses
            for rule in self.messages
            for route in rule.routes
        )

    def fits(self, host: str, path: str) -> bool:
        """Ask whether this is the stream of a host and a path."""
        return host in self.hosts and any(pattern.fullmatch(path) for pattern in self.paths)

    def find(self, document: object, kind: Kind) -> tuple[MessageRule | None, Route]:
        """Return the rule of a message and its route; no rule for one that the file does not name.

        Such a one needs `trade`, or `keys` by the words in it.
        """
        for rule in self.messages:
            if not rule.kinds or kind in rule.kinds:
                route = rule.route(document)
                if route is not None:
                    return rule, route
        needs = Permission.KEYS if any(map(leads_out, self._calls(document))) else Permission.TRADE
        return None, Route(f"{self.label} {OTHER}", needs, Auth.SIGNED, Lane.ORDER)

    def _calls(self, document: object) -> Iterable[str]:
        """Return, as paths, the names of calls in a message: where the rules look for one, else all texts."""
        pointers = {
            expected.pointer
            for rule in self.messages
            for expected in rule.when
            if expected.pointer and ANYTHING not in expected.values
        }
        stands = [found for pointer in pointers for found in pick_each(document, pointer)]
        named = [found for found in stands if isinstance(found, str)]
        return [f"/{plain_letters(text).replace('.', '/')}" for text in named or _texts(document)]

    def clear(self, text: str) -> object:
        """Return what a message says: a JSON document, or a bare text that the file names.

        Raises UnclearError for one that somebody might read in another way.
        """
        if any(
            expected.pointer == "" and text in expected.values
            for rule in self.messages
            for expected in rule.when
        ):
            return text
        if len(text) > MOST_LETTERS:
            raise UnclearError(f"it has more than {MOST_LETTERS} letters")
        if text.count(":") > MOST_MEMBERS:
            raise UnclearError(f"it has more than {MOST_MEMBERS} members, or colons")
        try:
            document: object = self.decode(text)
        except UnreadableError as error:
            raise UnclearError(str(error)) from None
        except (ValueError, RecursionError):
            raise UnclearError("it is not one JSON text") from None
        if "\\" in text and any(found[1] and "\\" in found[0] for found in _STRING.finditer(text)):
            raise UnclearError("the name of a member has an escape")
        return document


def _texts(document: object) -> list[str]:
    if isinstance(document, str):
        return [document]
    inner: Iterable[object] = ()
    if isinstance(document, list):
        inner = document
    elif isinstance(document, dict):
        inner = document.values()
    return [text for one in inner for text in _texts(one)]


def find_stream(streams: Iterable[Stream], host: str, path: str) -> Stream | None:
    """Return the first stream of a host and a path."""
    return next((stream for stream in streams if stream.fits(host, path)), None)


def use(streams: Iterable[Stream], name: str) -> bool:
    """Ask whether what is signed on streams has a value of this name."""
    signings = [signing for stream in streams for signing in (*_of_messages(stream), stream.handshake)]
    return any(signing is not None and name in signing.names() for signing in signings)


def _of_messages(stream: Stream) -> list[MessageSigning | None]:
    return [rule.signing for rule in stream.messages]


def plain_host(host: str) -> str:
    """Return a host as files write it: in small letters, with its port unless that is 443."""
    return host.lower().removesuffix(_DEFAULT_PORT)


def headers_of(streams: Iterable[Stream]) -> Mapping[str, None]:
    """Return the names, in small letters, of headers that handshakes set."""
    found = (name for stream in streams if stream.handshake for name, _ in stream.handshake.headers)
    return dict.fromkeys(map(str.lower, found))
