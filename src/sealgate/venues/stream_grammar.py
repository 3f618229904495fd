"""What the `[[streams]]` tables of a venue's file may say, read once into `Stream`s."""

import json
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from sealgate.venues.conditions import Value, read_condition, read_conditions
from sealgate.venues.document import FIELD_NAME, POINTER, Table
from sealgate.venues.encodings import ENCODERS, STAMPS
from sealgate.venues.filters import FILTERS
from sealgate.venues.json_texts import JsonText, read_text
from sealgate.venues.key_kinds import Kind
from sealgate.venues.order_terms import OrderShape, Path, steps
from sealgate.venues.replies import MOMENTS
from sealgate.venues.routes import Auth, Lane, Permission, Route
from sealgate.venues.scheme import ANY, CONTROL, SIGNATURE, read_part
from sealgate.venues.streams import Challenge, MessageRule, MessageSigning, ReplyRule, Stream, plain_host
from sealgate.venues.templates import Template, names_in

STREAM_KEYS = ("host", "paths", "name", "needs", "messages", "reply", "challenge", "handshake")
STREAM_NAMES = (
    *("timestamp", "nonce", "expires", "path", "challenge", "host"),
    *("api_key", "passphrase", "uid", "recv_window", SIGNATURE),
)
_SIGNING_KEYS = ("signs", "timestamp", "expires_s", "encoding", "parts")
REPLY_KEYS = ("id", "at", "when", "done", "refused", "limited", "unknown", "status", "wait")
HANDSHAKE_KEYS = (*_SIGNING_KEYS, "headers", "query", "path")
MESSAGE_KEYS = (
    *("when", "kinds", "needs", "lane", "refuses", "login", "drops", "puts"),
    *("order", "pools", "per", "reply", "message", *_SIGNING_KEYS),
)
_HOST = re.compile(r"[a-z0-9.\-]+(:\d+)?", re.ASCII)
_PATH = re.compile(r"/|(/(\*\*|[\w.\-:=,]+|\{\w+\}))+/?", re.ASCII)
_PER = re.compile(rf"{POINTER.pattern}|[A-Z]+ /\S+")
_SENT_PATH = re.compile(r"/[\w.\-:=,/{}|]*", re.ASCII)
_LABEL = re.compile(r"[!-~]+")
_IN_TEMPLATE = re.compile(r"\{(/[^{}|]*)")

ANY_PATH = "/**"  # of a stream whose paths are not said
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
    paths = table.texts("paths") or (ANY_PATH,)
    for path in paths:
        if not _PATH.fullmatch(path):
            raise table.error("paths", f"{path!r} is not a path such as /v1/{{name}}/private or /v1/**")
    label = table.checked("name", _LABEL, "a name without blanks", f"{hosts[0]}{paths[0]}")
    reply = _reply(table) if "reply" in table.data else None
    rows = table.tables("messages", MESSAGE_KEYS)
    stream = Stream(
        label=label,
        hosts=hosts,
        paths=tuple(_pattern(path) for path in paths),
        needs=Permission(table.text("needs", "read", list(Permission))),
        messages=tuple(_message(row, label, reply, read_order, pools) for row in rows),
        challenge=_challenge(table),
        handshake=_handshake(table),
        templates=paths,
    )
    asks = any(rule.signing is not None and "challenge" in rule.signing.names() for rule in stream.messages)
    if asks and stream.challenge is None:
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
    # What needs more than read is an order, but for a login; and what has a lane needs trade.
    is_login, has_lane = row.flag("login"), row.data.get("lane", Lane.READ) != Lane.READ
    needs = Permission(row.text("needs", Permission.TRADE if has_lane else Permission.READ, list(Permission)))
    is_plain = is_login or needs is Permission.READ
    lane = Lane(row.text("lane", Lane.READ if is_plain else Lane.ORDER, list(Lane)))
    if lane is not Lane.READ and needs is Permission.READ:
        raise row.error("needs", f"a message in the lane {lane} needs trade or keys")
    for kind in row.texts("kinds"):
        if kind not in tuple(Kind):
            raise row.error("kinds", f"{kind!r} in kinds is not a kind of key ({', '.join(Kind)})")
    for pointer in row.texts("drops"):
        if not POINTER.fullmatch(pointer):
            raise row.error("drops", f"{pointer!r} in drops is not a JSON pointer such as /url")
    order = read_order(row)
    if order is not None and not order.is_json:
        raise row.error("order", "the orders of a message are in its JSON: order takes no other in")
    signing = _signing(row, STREAM_NAMES, has_message=True)
    signing = _checked(row, replace(signing, puts=tuple(_puts(row.table("puts"), signing))))
    if lane is not Lane.READ and "nonce" in signing.names():
        raise row.error("puts", "an order may not have {nonce}: those of several streams would overtake it")
    reply = _reply(row) if "reply" in row.data else shared if lane is not Lane.READ else None
    return MessageRule(
        when=when,
        kinds=frozenset(map(Kind, row.texts("kinds"))),
        routes=tuple(
            Route(
                f"{label} {_word(value)}",
                needs,
                Auth.SIGNED,
                lane,
                order=order,
                # A halt lets cancels pass, and the login without which there are none.
                is_cancel=(lane is Lane.CANCEL or is_login) and needs is Permission.TRADE,
                is_named=True,
                pools=_pools(row, pools),
                per=_per(row),
            )
            for value in when[0].values
        ),
        is_login=is_login,
        refuses=row.text("refuses", ""),
        drops=tuple(map(steps, row.texts("drops"))),
        signing=signing if signing.puts else None,
        reply=reply,
        message=_example(row),
    )


def _example(table: Table) -> str:
    """Read `message`, one JSON value."""
    text = table.text("message", "")
    try:
        document = json.loads(text or "{}")
    except ValueError:
        document = None
    if not isinstance(document, dict | list):
        raise table.error("message", 'message is not a JSON text such as \'{"op":"login"}\'')
    return text


def _pools(row: Table, known: list[str]) -> tuple[str, ...]:
    for pool in row.texts("pools"):
        if pool not in known:
            raise row.error("pools", f"{pool!r} in pools is none of [[limits.pools]]")
    return row.texts("pools")


def _per(row: Table) -> str:
    per = row.checked("per", _PER, "a JSON pointer such as /symbol, or a request such as POST /order", "")
    if per and not row.texts("pools"):
        raise row.error("per", "per is for pools: name them")
    return per


def _word(value: Value) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _signing(table: Table, values: Collection[str], *, has_message: bool) -> MessageSigning:
    """Read what is signed, and its parts. Its texts may name `values`, and places in the message."""
    part_table = table.table("parts")
    names, late, parts = list(values), {SIGNATURE}, []
    for name in part_table.data:
        part = read_part(part_table, name, (*names, *_places(part_table.data[name], has_message=has_message)))
        if part.is_each or {*part.text, *(part.then or ())} - {ANY}:
            raise part_table.error(name, f"{name}: a part of a stream is a text, or has of or json")
        if any(names_in(text) & late for text in part.texts()):
            late.add(name)
        parts.append(part)
        names.append(name)
    signs = table.text("signs", "")
    encoding = table.text("encoding", "")
    first, *filters = encoding.split("|")
    if encoding and (first not in ENCODERS or not set(filters) <= FILTERS.keys() - {"hmac"}):
        raise table.error("encoding", f"encoding = {encoding!r} is not an encoding such as base64")
    return MessageSigning(
        signs=table.template("signs", signs, (*names, *_places(signs, has_message=has_message))),
        timestamp=table.text("timestamp", "", ("", *STAMPS)),
        expires_s=table.integer("expires_s") if "expires_s" in table.data else None,
        encoding=encoding,
        parts=tuple(parts),
        late=frozenset(late),
    )


def _places(value: object, *, has_message: bool) -> list[str]:
    """Return the pointers into the message that texts of a file have as names."""
    return _IN_TEMPLATE.findall(str(value)) if has_message else []


def _checked(table: Table, signing: MessageSigning) -> MessageSigning:
    """Return it; a signature is made before it is put somewhere, and of something."""
    puts_signature = bool(signing.names_sent() & signing.late)
    if names_in(signing.signs) & signing.late:
        raise table.error("signs", "signs cannot have {signature}, which is made of it")
    if puts_signature != bool(signing.signs):
        raise table.error("signs", "signs and {signature} go together: what is signed, and where that is put")
    return signing


def _puts(table: Table, signing: MessageSigning) -> Iterable[tuple[Path, JsonText]]:
    for pointer in table.data:
        if not POINTER.fullmatch(pointer):
            raise table.error(pointer, f"{pointer!r} is not a JSON pointer such as /args/0")
        text = table.text(pointer)
        names = (*STREAM_NAMES, *(part.name for part in signing.parts), *_places(text, has_message=True))
        yield steps(pointer), read_text(table, pointer, text, names)


def _handshake(table: Table) -> MessageSigning | None:
    if "handshake" not in table.data:
        return None
    inner = table.table("handshake", HANDSHAKE_KEYS)
    values = [name for name in STREAM_NAMES if name != "challenge"]
    signing = _signing(inner, values, has_message=False)
    names = (*values, *(part.name for part in signing.parts))
    signing = replace(
        signing,
        headers=_named_texts(inner.table("headers"), names),
        query=_named_texts(inner.table("query"), names),
        path=inner.template("path", inner.checked("path", _SENT_PATH, "a path such as /v1/{uid}", ""), names),
    )
    if not (signing.headers or signing.query or signing.path):
        raise inner.error(None, "a handshake needs headers, query or path")
    return _checked(inner, signing)


def _named_texts(table: Table, names: Collection[str]) -> tuple[tuple[str, Template], ...]:
    found = []
    for name in table.data:
        if not FIELD_NAME.fullmatch(name):
            raise table.error(name, f"{name!r} is not a name of letters, digits, - and _")
        text = table.text(name)
        if CONTROL.search(text):
            raise table.error(name, f"{name} has a control character")
        found.append((name, table.template(name, text, names)))
    return tuple(found)


def _challenge(table: Table) -> Challenge | None:
    if "challenge" not in table.data:
        return None
    inner = table.table("challenge", ("when", "at", "message"))
    at = inner.checked("at", POINTER, "a JSON pointer such as /message")
    return Challenge(read_condition(inner.table("when")), at, _example(inner))


def _reply(table: Table) -> ReplyRule:
    inner = table.table("reply", REPLY_KEYS)
    own = inner.checked("id", POINTER, "a JSON pointer such as /id", "")
    written = inner.text("wait", "")
    wait, _, moment = written.partition(" as ")
    if written and not (POINTER.fullmatch(wait) and moment in MOMENTS):
        raise inner.error("wait", f"{written!r} is not a place and how it is meant, as /retry as in_s is")
    rule = ReplyRule(
        id=own,
        at=inner.checked("at", POINTER, "a JSON pointer such as /id", own),
        when=read_condition(inner.table("when")),
        **{name: read_conditions(inner, name) for name in ("done", "refused", "limited", "unknown")},
        status=inner.checked("status", POINTER, "a JSON pointer such as /status", ""),
        wait=wait,
        moment=moment,
    )
    if not (rule.id or rule.when):
        raise inner.error(None, "a reply needs an id, or a when by which it is known")
    if not rule.done:
        raise inner.error(None, "done is missing")
    return rule
