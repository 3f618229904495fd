"""The streams of an exchange: what the `[[streams]]` tables of its file say.

A stream with `[[streams.messages]]` is read: each of its messages is one of these, or what nobody named. A
stream without any is passed on unread.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sealgate.venues.conditions import Condition, any_holds, holds, read_condition, read_conditions
from sealgate.venues.document import FIELD_NAME, POINTER, Table, pick
from sealgate.venues.encodings import ENCODERS, STAMPS
from sealgate.venues.filters import FILTERS
from sealgate.venues.key_kinds import Kind
from sealgate.venues.order_terms import OrderShape, Path, UnreadableError, clear_decoder, steps
from sealgate.venues.outward import leads_out
from sealgate.venues.routes import OTHER, Auth, Lane, Permission, Route
from sealgate.venues.scheme import ANY, CONTROL, SIGNATURE, Part, read_part
from sealgate.venues.templates import Ref, Template, names_in

STREAM_KEYS = ("host", "paths", "name", "needs", "messages", "reply", "challenge", "handshake")
STREAM_NAMES = (
    *("timestamp", "nonce", "expires", "path", "challenge", "host"),
    *("api_key", "passphrase", "uid", "recv_window", SIGNATURE),
)
MOST_LETTERS = 64 * 1024  # of a message that is read
_SIGNING_KEYS = ("signs", "timestamp", "expires_s", "encoding", "parts")
_REPLY_KEYS = ("id", "at", "when", "done", "refused", "limited", "unknown")
_HANDSHAKE_KEYS = (*_SIGNING_KEYS, "headers", "query", "path")
_MESSAGE_KEYS = (
    *("when", "kinds", "needs", "lane", "refuses", "login", "drops", "puts"),
    *("order", "pools", "reply", *_SIGNING_KEYS),
)
_HOST = re.compile(r"[a-z0-9.\-]+(:\d+)?", re.ASCII)
_PATH = re.compile(r"/|(/(\*\*|[\w.\-:=,]+|\{\w+\}))+/?", re.ASCII)
_LABEL = re.compile(r"[!-~]+")
_IN_TEMPLATE = re.compile(r"\{(/[^{}|]*)")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"(\s*:)?', re.DOTALL)
_DEFAULT_PORT = ":443"


@dataclass(frozen=True, slots=True)
class MessageSigning:
    """What is put into a message or a handshake, and what of it is signed.

    `signs` is empty where nothing is. `puts` are the place, the text, and whether that is JSON itself.
    """

    signs: Template = ()
    timestamp: str = ""  # "": as the requests of this kind of key have it
    expires_s: int | None = None
    encoding: str = ""
    parts: tuple[Part, ...] = ()
    puts: tuple[tuple[Path, Template, bool], ...] = ()
    headers: tuple[tuple[str, Template], ...] = ()
    query: tuple[tuple[str, Template], ...] = ()
    path: Template = ()

    def names(self) -> set[str]:
        """Return the names of all values that its texts have."""
        texts = [self.signs, self.path, *(text for _, text, _ in self.puts)]
        texts += [text for _, text in (*self.headers, *self.query)]
        texts += [text for part in self.parts for text in part.texts()]
        return set[str]().union(*map(names_in, texts))

    @property
    def is_dated(self) -> bool:
        """Whether it carries a time."""
        return not self.names().isdisjoint(("timestamp", "expires"))


@dataclass(frozen=True, slots=True)
class ReplyRule:
    """Which message answers another, and what it means.

    With an `id`, it has at `at` what the message has at `id`; `when` is what it must have besides.
    """

    id: str
    at: str
    when: Condition
    done: tuple[Condition, ...]
    refused: tuple[Condition, ...]
    limited: tuple[Condition, ...]
    unknown: tuple[Condition, ...]

    def answers(self, id_text: str | None, document: object) -> bool:
        """Ask whether a message of the exchange is about the one with this id, None for one without."""
        if not holds(self.when, document):
            return False
        return not self.id or (id_text is not None and id_of(document, self.at) == id_text)

    def meaning(self, document: object) -> str:
        """Return limited, unknown, done or refused; "" for a message that settles nothing."""
        for name in ("limited", "unknown", "done", "refused"):
            if any_holds(getattr(self, name), document):
                return name
        return ""


def id_of(document: object, pointer: str) -> str | None:
    """Return an id as text, None where there is none: some exchanges make a text of a number."""
    found = pick(document, pointer)
    if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
        return None
    return str(found)


@dataclass(frozen=True, slots=True, eq=False)
class MessageRule:
    """What a kind of message needs, and how it is signed and settled.

    `routes` are by the values that `when` names first: each is a call of its own.
    """

    when: Condition
    kinds: frozenset[Kind]
    routes: tuple[Route, ...]
    is_login: bool = False
    refuses: str = ""
    drops: tuple[Path, ...] = ()
    signing: MessageSigning | None = None
    reply: ReplyRule | None = None

    def route(self, document: object) -> Route | None:
        """Return the route of a message for which this rule holds, else None."""
        if not holds(self.when, document):
            return None
        return self.routes[self.when[0].fits(document) or 0]


@dataclass(frozen=True, slots=True)
class Challenge:
    """Where a message of the exchange has what is to be signed."""

    when: Condition
    at: str


class UnclearError(ValueError):
    """A message that can be read in more than one way, or not at all; the words say why."""


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """One stream. `label` names it in metrics."""

    label: str
    hosts: tuple[str, ...]
    paths: tuple[re.Pattern[str], ...]
    needs: Permission
    messages: tuple[MessageRule, ...] = ()
    challenge: Challenge | None = None
    handshake: MessageSigning | None = None
    decode: Callable[[str], Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        places = {steps(expected.pointer) for rule in self.messages for expected in rule.when}
        names = {step for path in places for step in path if not step.isdecimal()}
        object.__setattr__(self, "decode", clear_decoder(names))

    @property
    def is_read(self) -> bool:
        """Whether the messages of a bot are read."""
        return bool(self.messages)

    @property
    def has_login(self) -> bool:
        """Whether a message, or the handshake, logs in."""
        return self.handshake is not None or any(rule.is_login for rule in self.messages)

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
        """Yield, as paths, the names of calls in a message: where the rules look, else all texts."""
        pointers = {expected.pointer for rule in self.messages for expected in rule.when if expected.pointer}
        named = [found for pointer in pointers if isinstance(found := pick(document, pointer), str)]
        return [f"/{text.casefold()}" for text in named or _texts(document)]

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


def plain_host(host: str) -> str:
    """Return a host as files write it: in small letters, with its port unless that is 443."""
    return host.lower().removesuffix(_DEFAULT_PORT)


OrderReader = Callable[[Table], OrderShape | None]


def read_streams(
    tables: Iterable[Table], read_order: OrderReader, pools: Iterable[str]
) -> tuple[Stream, ...]:
    """Read `[[streams]]`. `read_order` reads the `order` of a row; `pools` are those of the file.

    Raises VenueError.
    """
    known = list(pools)
    return tuple(_stream(table, read_order, known) for table in tables)


def _stream(table: Table, read_order: OrderReader, pools: list[str]) -> Stream:
    hosts = table.texts("host")
    if not hosts:
        raise table.error(None, "host is missing")
    for host in hosts:
        if not _HOST.fullmatch(host) or host != plain_host(host):
            raise table.error("host", f"{host!r} is not a host such as stream.example.com:9443, without :443")
    paths = table.texts("paths") or ("/**",)
    for path in paths:
        if not _PATH.fullmatch(path):
            raise table.error("paths", f"{path!r} is not a path such as /v1/{{name}}/private or /v1/**")
    label = table.checked("name", _LABEL, "a name without blanks", f"{hosts[0]}{paths[0]}")
    reply = _reply(table) if "reply" in table.data else None
    rows = table.tables("messages", _MESSAGE_KEYS)
    stream = Stream(
        label=label,
        hosts=hosts,
        paths=tuple(_pattern(path) for path in paths),
        needs=Permission(table.text("needs", "read", list(Permission))),
        messages=tuple(_message(row, label, reply, read_order, pools) for row in rows),
        challenge=_challenge(table),
        handshake=_handshake(table),
    )
    if "{challenge}" in str(table.data) and stream.challenge is None:
        raise table.error(None, "{challenge} needs [streams.challenge]: where the exchange's message has it")
    return stream


def _pattern(path: str) -> re.Pattern[str]:
    pieces = [re.escape(piece) for piece in re.split(r"\{\w+\}|\*\*", path)]
    marks = ["[^/]+" if mark != "**" else ".*" for mark in re.findall(r"\{\w+\}|\*\*", path)]
    joined = "".join(piece + mark for piece, mark in zip(pieces, [*marks, ""], strict=True))
    return re.compile(joined, re.DOTALL)


def _message(
    row: Table, label: str, shared: ReplyRule | None, read_order: OrderReader, pools: list[str]
) -> MessageRule:
    when = read_condition(row.table("when"))
    if not when:
        raise row.error(None, "when is missing")
    lane = Lane(row.text("lane", Lane.READ, [Lane.ORDER, Lane.CANCEL, Lane.READ]))
    default = Permission.READ if lane is Lane.READ else Permission.TRADE
    needs = Permission(row.text("needs", default, list(Permission)))
    for pool in row.texts("pools"):
        if pool not in pools:
            raise row.error("pools", f"{pool!r} in pools is none of [[limits.pools]]")
    for kind in row.texts("kinds"):
        if kind not in tuple(Kind):
            raise row.error("kinds", f"{kind!r} in kinds is not a kind of key ({', '.join(Kind)})")
    drops = tuple(map(steps, _pointers(row, "drops")))
    signing = _signing(row)
    signing = replace(signing, puts=tuple(_put(row.table("puts"), signing.parts)))
    reply = _reply(row) if "reply" in row.data else shared if lane is not Lane.READ else None
    first = when[0].values
    return MessageRule(
        when=when,
        kinds=frozenset(map(Kind, row.texts("kinds"))),
        routes=tuple(
            Route(
                f"{label} {value}",
                needs,
                Auth.SIGNED,
                lane,
                order=read_order(row),
                is_cancel=lane is Lane.CANCEL and needs is Permission.TRADE,
                is_named=True,
                pools=row.texts("pools"),
            )
            for value in first
        ),
        is_login=row.flag("login"),
        refuses=row.text("refuses", ""),
        drops=drops,
        signing=signing if signing.puts else None,
        reply=reply,
    )


def _pointers(table: Table, key: str) -> tuple[str, ...]:
    for pointer in table.texts(key):
        if not POINTER.fullmatch(pointer):
            raise table.error(key, f"{pointer!r} in {key} is not a JSON pointer such as /url")
    return table.texts(key)


def _signing(table: Table) -> MessageSigning:
    part_table = table.table("parts")
    names = list(STREAM_NAMES)
    parts = []
    for name in part_table.data:
        part = read_part(part_table, name, (*names, *_pointers_in(part_table.data[name])))
        if part.is_each or set(part.text) - {ANY}:
            raise part_table.error(name, f"{name}: a part of a stream is a text, or has of or json")
        parts.append(part)
        names.append(name)
    signs = table.text("signs", "")
    encoding = table.text("encoding", "")
    first, *filters = encoding.split("|")
    if encoding and (first not in ENCODERS or not set(filters) <= FILTERS.keys() - {"hmac"}):
        raise table.error("encoding", f"encoding = {encoding!r} is not an encoding such as base64")
    return MessageSigning(
        signs=table.template("signs", signs, (*names, *_pointers_in(signs))),
        timestamp=table.text("timestamp", "", ("", *STAMPS)),
        expires_s=table.integer("expires_s") if "expires_s" in table.data else None,
        encoding=encoding,
        parts=tuple(parts),
    )


def _pointers_in(value: object) -> list[str]:
    """Return the pointers into the message that texts of a file have as names."""
    return _IN_TEMPLATE.findall(str(value))


def _names(parts: tuple[Part, ...], text: str) -> tuple[str, ...]:
    return (*STREAM_NAMES, *(part.name for part in parts), *_pointers_in(text))


def _put(table: Table, parts: tuple[Part, ...]) -> Iterable[tuple[Path, Template, bool]]:
    for pointer in table.data:
        if not POINTER.fullmatch(pointer):
            raise table.error(pointer, f"{pointer!r} is not a JSON pointer such as /args/0")
        text = table.text(pointer)
        template = table.template(pointer, text, _names(parts, text))
        is_bare = len(template) == 1 and isinstance(template[0], Ref) and "bare" in template[0].filters
        yield steps(pointer), template, is_bare


def _texts_of(table: Table, key: str, parts: tuple[Part, ...]) -> tuple[tuple[str, Template], ...]:
    inner = table.table(key)
    found = []
    for name in inner.data:
        if not FIELD_NAME.fullmatch(name):
            raise inner.error(name, f"{name!r} is not a name of letters, digits, - and _")
        text = inner.text(name)
        if CONTROL.search(text):
            raise inner.error(name, f"{name} has a control character")
        found.append((name, inner.template(name, text, _names(parts, text))))
    return tuple(found)


def _handshake(table: Table) -> MessageSigning | None:
    if "handshake" not in table.data:
        return None
    inner = table.table("handshake", _HANDSHAKE_KEYS)
    signing = _signing(inner)
    path = inner.text("path", "")
    return replace(
        signing,
        headers=_texts_of(inner, "headers", signing.parts),
        query=_texts_of(inner, "query", signing.parts),
        path=inner.template("path", path, _names(signing.parts, path)),
    )


def _challenge(table: Table) -> Challenge | None:
    if "challenge" not in table.data:
        return None
    inner = table.table("challenge", ("when", "at"))
    at = inner.checked("at", POINTER, "a JSON pointer such as /message")
    return Challenge(read_condition(inner.table("when")), at)


def _reply(table: Table) -> ReplyRule:
    inner = table.table("reply", _REPLY_KEYS)
    own = inner.checked("id", POINTER, "a JSON pointer such as /id", "")
    rule = ReplyRule(
        id=own,
        at=inner.checked("at", POINTER, "a JSON pointer such as /id", own),
        when=read_condition(inner.table("when")),
        **{name: read_conditions(inner, name) for name in ("done", "refused", "limited", "unknown")},
    )
    if not (rule.id or rule.when):
        raise inner.error(None, "a reply needs an id, or a when by which it is known")
    if not rule.done:
        raise inner.error(None, "done is missing")
    return rule


def headers_of(streams: Iterable[Stream]) -> Mapping[str, None]:
    """Return the names, in small letters, of headers that handshakes set."""
    found = (name for stream in streams if stream.handshake for name, _ in stream.handshake.headers)
    return dict.fromkeys(map(str.lower, found))
