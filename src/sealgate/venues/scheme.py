"""How a venue is signed: what the `[signing]` tables of its file say.

A `Scheme` is what holds for one kind of keys; sealer.py signs by it with one key. What signs a message is the
key's (keys/signer.py); what is signed is said here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sealgate.venues.document import FIELD_NAME, POINTER, Table
from sealgate.venues.encodings import (
    APPENDED,
    DIGESTS,
    ENCODERS,
    KEY_TEXTS,
    NONCE_ORDERS,
    NONCES,
    PADDINGS,
    PER_S,
    SECRETS,
    STAMPS,
)
from sealgate.venues.filters import FILTERS
from sealgate.venues.json_texts import JsonObject, names_in_json, read_object, templates_in
from sealgate.venues.key_kinds import Kind
from sealgate.venues.order_terms import steps
from sealgate.venues.routes import METHODS
from sealgate.venues.templates import Ref, Template, names_in

# What each request brings, in the order of its values.
SLOTS = ("timestamp", "nonce", "path", "query", "target", "body", "expires", "by_route")
KEY_NAMES = ("api_key", "passphrase", "uid", "recv_window", "secret", "host")
NAMES = (*SLOTS, "method", "url", *KEY_NAMES)
SIGNATURE, ITEM = "signature", "item"
ANY, EMPTY, FORM, JSON, BODY = "*", "empty", "form", "json", "body"
_CASES = (*METHODS, EMPTY, FORM, JSON, BODY, ANY)

_CHOICES = ("message", "query", "query_end", "form", "form_end")
_OF_A_KIND = (
    *_CHOICES,
    *("advice", "digest", "encoding", "key_prefix", "key_text", "padding", "recv_window", "secret"),
    *("timestamp", "expires_s", "nonce", "nonce_order", "recv_window_per_key", "static"),
    *("by_route", "drops", "headers", "json", "json_empty", "parts", "sorts_query", "strips"),
)
SIGNING_KEYS = (*_OF_A_KIND, "kinds")
_PART_KEYS = ("of", "each", "finds", "then", "at", "json")

# What a header may end a filtered text with: a bot's bytes must not begin a line of their own there.
_SAFE_IN_HEADERS = frozenset({"base64", "base64url", "base58", "pct", "sha512", "sha256", "md5"})
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PARAMETER = re.compile(r"[\w.\-]+", re.ASCII)
_ADDED = re.compile(rb"(?:^|&)([^&=]+)=")
_DROPPED = re.compile(r"[A-Za-z0-9_\-]+\*?")
_DIGITS = re.compile(r"[1-9]\d*", re.ASCII)
_ROUTE = re.compile(rf"({'|'.join(METHODS)}) (/\S*)", re.ASCII)
_VALUE = re.compile(r"[!-~]+")

Choice = Mapping[str, Template]  # by method, kind of body, "body" (any), or "*"


@dataclass(frozen=True, slots=True)
class Part:
    """A text with a name of its own, made in one of six ways.

    `text` alone; what the group of `finds` finds in it; `then` if it is not empty, or if `is_each` for each
    member of the list that it is; what stands `at` a place of it, which is JSON; or `json`, without `text`.
    """

    name: str
    text: Choice
    finds: "re.Pattern[bytes] | None" = None
    then: Choice | None = None
    is_each: bool = False
    at: tuple[str, ...] = ()
    json: JsonObject | None = None

    def texts(self) -> Iterator[Template]:
        """Yield all templates."""
        yield from self.text.values()
        yield from (self.then or {}).values()
        yield from () if self.json is None else templates_in(self.json)


@dataclass(frozen=True, slots=True)
class Scheme:
    """How one kind of keys signs. `headers` are in the file's order.

    `strips` are parameters that a bot which signs itself adds. `drops` are headers, beside those of
    `headers`, that no bot may send; one with a `*` at its end stands for all that begin so. `json` are the
    members of a JSON body, `json_empty` the methods whose absent body becomes an object. `by_route` has names
    by method and path.
    """

    kind: Kind
    advice: str
    digest: str
    padding: str
    secret: str
    key_text: str
    key_prefix: str
    is_static: bool
    encoding: str
    timestamp: str
    expires_s: int
    nonce: str
    nonce_order: str
    recv_window: str
    recv_window_per_key: bool
    message: Choice
    query: Choice
    query_end: Choice
    form: Choice
    form_end: Choice
    json: JsonObject | None
    json_empty: tuple[str, ...]
    sorts_query: bool
    strips: frozenset[bytes]
    drops: tuple[str, ...]
    headers: tuple[tuple[str, Template], ...]
    parts: tuple[Part, ...]
    by_route: Mapping[tuple[str, str], bytes]

    @property
    def nonces_rise(self) -> bool:
        """Whether a request is refused that arrives behind another with a higher nonce."""
        return self.nonce in PER_S and self.nonce_order == "rising"

    @property
    def name(self) -> str:
        """The kind of key, or "static" where the secret itself is sent."""
        return "static" if self.is_static else self.kind.value

    @property
    def signature(self) -> str:
        """How the signature is made and written, in a few words."""
        if self.is_static:
            return "none: the secret itself is sent"
        of_kind = {Kind.HMAC: (self.digest,), Kind.RSA: (self.digest, self.padding)}
        return " ".join((*of_kind.get(self.kind, ()), self.encoding.replace("|", " ")))

    @property
    def is_dated(self) -> bool:
        """Whether its requests carry a time."""
        return self.needs("timestamp") or self.needs("expires")

    @property
    def keeps_secret(self) -> bool:
        """Whether the secret itself stays in memory: it is sent, or hashed behind each message."""
        return self.is_static or (self.kind is Kind.HMAC and self.secret == APPENDED)

    def needs(self, name: str) -> bool:
        """Ask whether a text of the file has a value of this name: then a key, or a request, must have it."""
        return any(name in names_in(text) for text in self._texts())

    def names_with(self, *names: str) -> set[str]:
        """Return names of values, and those of the parts that have one of these in them."""
        found = set(names)
        for part in self.parts:  # each is made of those that stand before it
            if any(names_in(text) & found for text in part.texts()):
                found.add(part.name)
        return found

    @property
    def signs_method(self) -> bool:
        """Whether what is signed differs by method."""
        texts = [*self.message.values(), *(text for part in self.parts for text in part.texts())]
        return any({"method", "by_route"} & names_in(text) for text in texts)

    def own_parameters(self) -> set[bytes]:
        """Return the names of the parameters that are the gateway's alone: those it cuts out, and adds."""
        texts = [
            text
            for choice in (self.query, self.query_end, self.form, self.form_end)
            for text in choice.values()
        ]
        pieces = [piece for text in texts for piece in text if isinstance(piece, bytes)]
        members = set() if self.json is None else self.json.names
        return {*self.strips, *members, *(name for piece in pieces for name in _ADDED.findall(piece))}

    def _texts(self) -> Iterator[Template]:
        for choice in (self.message, self.query, self.query_end, self.form, self.form_end):
            yield from choice.values()
        for part in self.parts:
            yield from part.texts()
        yield from () if self.json is None else templates_in(self.json)
        for _, text in self.headers:
            yield text


def read_schemes(table: Table) -> dict[Kind, Scheme]:
    """Read `[signing]`: the scheme of each kind of keys that the venue takes, the first its own.

    The table of a kind replaces keys of `[signing]`. Raises VenueError.
    """
    kinds = table.table("kinds", tuple(Kind))
    shared = {key: value for key, value in table.data.items() if key != "kinds"}
    schemes = {}
    for name in kinds.data or (Kind.HMAC,):
        own = kinds.table(name, _OF_A_KIND)
        origins = {(*table.path, key): (table.document, (*own.path, key)) for key in own.data}
        document = table.document.with_data({}, {(): (table.document, ()), **origins})
        merged = Table(document, table.path, {**shared, **own.data}, _OF_A_KIND)
        schemes[Kind(name)] = _read_scheme(merged, Kind(name))
    return schemes


def _read_scheme(table: Table, kind: Kind) -> Scheme:
    part_table = table.table("parts")
    written = tuple(part_table.data)  # each may be made of those before it
    parts = tuple(
        read_part(part_table, name, (*NAMES, SIGNATURE, *written[:at])) for at, name in enumerate(written)
    )
    names = (*NAMES, SIGNATURE, *written)
    headers = _headers(table.table("headers"), names, parts)
    texts = {key: _choice(table, key, names) for key in _CHOICES}
    for key in ("query", "form"):
        _check_addition(table, key, texts[key], BODY if key == FORM else "query")
    for name in table.texts("strips"):
        if not _PARAMETER.fullmatch(name):
            raise table.error("strips", f"{name!r} in strips is not a parameter name")
    for name in table.texts("drops"):
        if not _DROPPED.fullmatch(name):
            raise table.error(
                "drops", f"{name!r} in drops is not a header name, or a prefix such as X-MINE-*"
            )
    for method in table.texts("json_empty"):
        if method not in METHODS:
            raise table.error("json_empty", f"{method!r} in json_empty is not a method")
    scheme = Scheme(
        kind=kind,
        advice=table.text("advice", ""),
        digest=table.text("digest", "sha256", DIGESTS),
        padding=table.text("padding", "pkcs1v15", PADDINGS),
        secret=table.text("secret", "utf8", SECRETS),
        key_text=table.text("key_text", "pem", KEY_TEXTS),
        key_prefix=table.checked("key_prefix", _VALUE, "a text that stands before keys", ""),
        is_static=table.flag("static"),
        encoding=_encoding(table),
        timestamp=table.text("timestamp", "ms", STAMPS),
        expires_s=table.integer("expires_s"),
        nonce=table.text("nonce", "none", NONCES),
        nonce_order=table.text("nonce_order", "rising", NONCE_ORDERS),
        recv_window=table.checked("recv_window", _DIGITS, "a number of milliseconds", ""),
        recv_window_per_key=table.flag("recv_window_per_key"),
        json=_members(table, names),
        json_empty=table.texts("json_empty"),
        sorts_query=table.flag("sorts_query"),
        strips=frozenset(name.encode("ascii") for name in table.texts("strips")),
        drops=table.texts("drops"),
        headers=headers,
        parts=parts,
        by_route=_by_route(table.table("by_route")),
        **texts,
    )
    if not scheme.message and not scheme.is_static:
        raise table.error(None, "message is missing")
    _check_secret(table, scheme)
    return scheme


def _check_secret(table: Table, scheme: Scheme) -> None:
    """See that the secret itself stands in headers alone, as commands show what stands elsewhere."""
    if scheme.needs("secret") and not scheme.is_static:
        raise table.error("headers", "{secret} needs static = true: the secret itself is sent")
    members = () if scheme.json is None else tuple(templates_in(scheme.json))
    added = {key: tuple(getattr(scheme, key).values()) for key in _CHOICES if key != "message"}
    for key, texts in {**added, "json": members}.items():
        if any(scheme.names_with("secret") & names_in(text) for text in texts):
            raise table.error(key, f"{key} may not have {{secret}}: a secret is sent in headers alone")


def _encoding(table: Table) -> str:
    """Read how the signature is written: an encoder, and filters behind it."""
    text = table.text("encoding", "hex")
    first, *filters = text.split("|")
    if not filters:
        return table.text("encoding", "hex", ENCODERS)
    if first not in ENCODERS or any(one not in FILTERS or one == "hmac" for one in filters):
        raise table.error("encoding", f"encoding = {text!r} is not an encoding and filters, as base64|pct is")
    return text


def _headers(
    table: Table, names: tuple[str, ...], parts: tuple[Part, ...]
) -> tuple[tuple[str, Template], ...]:
    free = {BODY, *(part.name for part in parts)} - _safe_parts(parts)
    headers = []
    for name in table.data:
        if not FIELD_NAME.fullmatch(name):
            raise table.error(name, f"{name!r} is not a header name")
        text = table.template(name, table.text(name), names)
        if any(isinstance(piece, bytes) and CONTROL.search(piece.decode("utf-8")) for piece in text):
            raise table.error(name, f"{name} has a control character")
        for ref in (piece for piece in text if isinstance(piece, Ref)):
            if not _is_safe(ref, free):
                last = ", ".join(sorted(_SAFE_IN_HEADERS))
                raise table.error(
                    name, f"{name}: in a header, {{{ref.name}}} must end with one of the filters {last}"
                )
        headers.append((name, text))
    return tuple(headers)


def _is_safe(ref: Ref, free: Iterable[str]) -> bool:
    """Ask whether nothing that a bot sends can end a header there; `free` may have any bytes."""
    is_free = ref.name in free or "unquote" in ref.filters
    return not is_free or bool(_SAFE_IN_HEADERS.intersection(ref.filters[-1:]))


def _safe_parts(parts: tuple[Part, ...]) -> set[str]:
    """Return the parts that are made of nothing but safe texts."""
    free = {BODY, *(part.name for part in parts)}
    safe: set[str] = set()
    for part in parts:  # each is made of those that stand before it
        refs = [piece for text in part.texts() for piece in text if isinstance(piece, Ref)]
        is_plain = part.json is None and not part.at and part.then is None
        if is_plain and all(_is_safe(ref, free - safe) for ref in refs):
            safe.add(part.name)
    return safe


def _members(table: Table, names: tuple[str, ...]) -> JsonObject | None:
    """Read what is put into a JSON body, behind the bot's own members where the file does not say."""
    if "json" not in table.data:
        return None

    members = read_object(table.table("json"), names)
    written = names_in_json(members)
    if SIGNATURE not in written and written - {*NAMES}:
        raise table.error(
            "json",
            "json has a part, but no {signature}: it is then put in before parts are made",
        )
    own = (Ref(BODY),)
    if members.own is None:
        return JsonObject((), own, members.before)
    if members.own != own:
        raise table.error("json", 'json: "*" must be "{body}"')
    return members


def _by_route(table: Table) -> dict[tuple[str, str], bytes]:
    found = {}
    for route in table.data:
        match = _ROUTE.fullmatch(route)
        if match is None:
            raise table.error(route, f"{route!r} is not a method and a path such as POST /v1/order")
        found[match[1], match[2]] = table.checked(route, _VALUE, "a name without blanks").encode("ascii")
    return found


def read_part(table: Table, name: str, names: tuple[str, ...]) -> Part:
    """Read a part, which may be made of values of these names. Raises VenueError."""
    written = table.data[name]
    if not (isinstance(written, dict) and {"of", "each", "json"} & written.keys()):
        return Part(name, _choice(table, name, names))
    inner = table.table(name, _PART_KEYS)
    if "json" in written:
        if len(written) > 1:
            raise table.error(name, f"{name}: json takes no other key beside it")
        return Part(name, {}, json=read_object(inner.table("json"), names))
    if "each" in written:
        if set(written) != {"each", "then"}:
            raise table.error(name, f"{name}: each takes then beside it, and no other key")
        then = _choice(inner, "then", (*names, ITEM))
        return Part(name, _choice(inner, "each", names), then=then, is_each=True)
    if len(written) != 2:  # noqa: PLR2004 - `of`, and what is made of it
        raise table.error(name, f"{name}: of takes one of finds, then and at beside it")
    text = _choice(inner, "of", names)
    if "then" in written:
        return Part(name, text, then=_choice(inner, "then", names))
    if "at" in written:
        return Part(name, text, at=steps(inner.checked("at", POINTER, "a JSON pointer such as /params")))
    finds = inner.pattern("finds").pattern.encode("utf-8")
    return Part(name, text, re.compile(finds))


def _choice(table: Table, key: str, names: tuple[str, ...]) -> Choice:
    if isinstance(table.data.get(key), dict):
        inner = table.table(key, _CASES)
        return {case: inner.template(case, inner.text(case), names) for case in inner.data}
    text = table.text(key, "")
    return {ANY: table.template(key, text, names)} if text else {}


def _check_addition(table: Table, key: str, choice: Choice, own: str) -> None:
    """See that the bot's own bytes stand in it once and unaltered, with additions at the ends alone."""
    for text in choice.values():
        places = [piece for piece in text if isinstance(piece, Ref) and piece.name == own]
        if len(places) > 1 or any(set(place.filters) - {"amp", "lamp"} for place in places):
            raise table.error(key, f"{key} may have {{{own}}}, {{{own}|amp}} or {{{own}|lamp}} once")
