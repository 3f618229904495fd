"""How a venue is signed: the `[signing]` tables of its file, and the signer that one key makes of them.

A `Scheme` is what the file says. A `Sealer` is a scheme bound to one key: it keeps one plan of ready-made
functions per method and kind of body. What signs a message is the key's (keys/signer.py); what is signed is
said here.

The bot's own bytes stay as they came. Additions stand at the ends of query or form; what a bot added that
signs with dummy keys is cut out first.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sealgate.http.target import Target
from sealgate.venues.document import FIELD_NAME, Table
from sealgate.venues.own_parameters import (
    BodyType,
    OwnParameters,
    cut_parameters,
    looks_like_json,
)
from sealgate.venues.routes import METHODS
from sealgate.venues.templates import (
    Mac,
    Ref,
    Render,
    Template,
    TemplateError,
    UnsignableError,
    Values,
    bind,
    names_in,
    parse_template,
    sort_parameters,
)

PER_MS = {"ms": 1, "us": 1000, "ns": 1_000_000}  # of nonces that are numbers, by their kind


# No message that is ever signed: those begin with a timestamp, a key or a method.
_FINGERPRINT = b"sealgate: fingerprint of a secret"

DIGESTS = ("sha256", "sha384", "sha512")
NONCES = ("none", "ms", "us", "ns", "uuid")
# What the exchange takes: "rising" ones alone, or each that it has not seen yet.
NONCE_ORDERS = ("rising", "any")

_ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "hex": binascii.hexlify,
    "HEX": lambda digest: binascii.hexlify(digest).upper(),
    "base64": lambda digest: binascii.b2a_base64(digest, newline=False),
    "base64url": lambda digest: base64.urlsafe_b64encode(digest).rstrip(b"="),
    "base64hex": lambda digest: base64.b64encode(binascii.hexlify(digest)),
}

# What the stored secret is to the HMAC: the key itself, or what its key is made of. With "appended" there is
# no HMAC, but a hash of the message with the secret after it.
APPENDED = "appended"
SECRETS = ("utf8", "hex", "base64", "as_base64", "sha256hex", "md5hex", APPENDED)


def _iso(timestamp_ms: int, timespec: str) -> bytes:
    moment = datetime.fromtimestamp(timestamp_ms // 1000, UTC).replace(microsecond=timestamp_ms % 1000 * 1000)
    return moment.replace(tzinfo=None).isoformat(timespec=timespec).encode("ascii")


_STAMPS: dict[str, Callable[[int], bytes]] = {
    "ms": b"%d".__mod__,
    "s": lambda now_ms: b"%d" % (now_ms // 1000),
    "us": lambda now_ms: b"%d" % (now_ms * 1000),
    "ns": lambda now_ms: b"%d" % (now_ms * 1_000_000),
    "iso_ms": lambda now_ms: _iso(now_ms, "milliseconds") + b"Z",
    "iso_s": lambda now_ms: _iso(now_ms, "seconds"),
}

# What each request brings, in the order of its values.
_SLOTS = ("timestamp", "nonce", "path", "query", "target", "body")
_QUERY, _BODY_SLOT = 3, 5
_KEY_NAMES = ("api_key", "passphrase", "uid", "recv_window", "host")
_NAMES = (*_SLOTS, "method", "url", *_KEY_NAMES)
_SIGNATURE = "signature"
_ANY, _EMPTY, _FORM, _JSON, _BODY = "*", "empty", "form", "json", "body"
_KINDS = (_EMPTY, _FORM, _JSON)
_CASES = (*METHODS, *_KINDS, _BODY, _ANY)

_TEXTS = ("message", "query", "query_end", "form", "form_end")
_KEYS = (
    "digest",
    "secret",
    "encoding",
    "timestamp",
    "expires_s",
    "nonce",
    "nonce_order",
    "recv_window",
    "recv_window_per_key",
    *_TEXTS,
)
_TABLES = ("sorts_query", "strips", "drops", "headers", "parts")

# What a header may end a filtered text with: a bot's bytes must not begin a line of their own there.
_SAFE_IN_HEADERS = frozenset({"base64", "pct", "sha512"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PARAMETER = re.compile(r"[\w.\-]+", re.ASCII)
_ADDED = re.compile(rb"(?:^|&)([^&=]+)=")
_DROPPED = re.compile(r"[A-Za-z0-9_\-]+\*?")
_DIGITS = re.compile(r"[1-9]\d*", re.ASCII)

Choice = Mapping[str, Template]  # by method, kind of body, "body" (any), or "*"


@dataclass(frozen=True, slots=True)
class Part:
    """A text with a name of its own; with `finds`, what its group finds in it, else nothing."""

    name: str
    text: Choice
    finds: "re.Pattern[bytes] | None" = None


@dataclass(frozen=True, slots=True)
class Scheme:
    """The signing settings of a venue. `headers` are in the file's order.

    `strips` are parameters that a bot which signs itself adds. `drops` are headers, beside those of
    `headers`, that no bot may send; one with a `*` at its end stands for all that begin so.
    """

    digest: str
    secret: str
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
    sorts_query: bool
    strips: frozenset[bytes]
    drops: tuple[str, ...]
    headers: tuple[tuple[str, Template], ...]
    parts: tuple[Part, ...]

    @property
    def nonces_rise(self) -> bool:
        """Whether a request is refused that arrives behind another with a higher nonce."""
        return self.nonce in PER_MS and self.nonce_order == "rising"

    @property
    def keeps_secret(self) -> bool:
        """Whether the secret itself stays in memory: it is hashed behind each message."""
        return self.secret == APPENDED

    def needs(self, name: str) -> bool:
        """Ask whether a text of the file has a value of this name: then a key, or a request, must have it."""
        return any(name in names_in(text) for text in self._texts())

    @property
    def signs_method(self) -> bool:
        """Whether what is signed differs by method."""
        choices = (self.message, *(part.text for part in self.parts))
        return any("method" in names_in(text) for choice in choices for text in choice.values())

    def own_parameters(self) -> set[bytes]:
        """Return the names of the parameters that are the gateway's alone: those it cuts out, and adds."""
        texts = [
            text
            for choice in (self.query, self.query_end, self.form, self.form_end)
            for text in choice.values()
        ]
        pieces = [piece for text in texts for piece in text if isinstance(piece, bytes)]
        return {*self.strips, *(name for piece in pieces for name in _ADDED.findall(piece))}

    def _texts(self) -> list[Template]:
        choices = [self.message, self.query, self.query_end, self.form, self.form_end]
        choices += [part.text for part in self.parts]
        return [text for choice in choices for text in choice.values()] + [text for _, text in self.headers]


def read_scheme(table: Table) -> Scheme:
    """Read `[signing]`. Raises VenueError."""
    part_table = table.table("parts")
    names = (*_NAMES, _SIGNATURE, *part_table.data)
    header_table = table.table("headers")
    headers = []
    for name in header_table.data:
        if not FIELD_NAME.fullmatch(name):
            raise header_table.error(name, f"{name!r} is not a header name")
        text = _template(header_table, name, header_table.text(name), names)
        _check_header(header_table, name, text, {_BODY, *part_table.data})
        headers.append((name, text))
    texts = {key: _choice(table, key, names) for key in _TEXTS}
    if not texts["message"]:
        raise table.error(None, "message is missing")
    for key in ("query", "form"):
        _check_addition(table, key, texts[key], _BODY if key == "form" else "query")
    for name in table.texts("strips"):
        if not _PARAMETER.fullmatch(name):
            raise table.error("strips", f"{name!r} in strips is not a parameter name")
    for name in table.texts("drops"):
        if not _DROPPED.fullmatch(name):
            raise table.error(
                "drops", f"{name!r} in drops is not a header name, or a prefix such as X-MINE-*"
            )
    return Scheme(
        digest=table.text("digest", "sha256", DIGESTS),
        secret=table.text("secret", "utf8", SECRETS),
        encoding=table.text("encoding", "hex", _ENCODERS),
        timestamp=table.text("timestamp", "ms", _STAMPS),
        expires_s=table.integer("expires_s"),
        nonce=table.text("nonce", "none", NONCES),
        nonce_order=table.text("nonce_order", "rising", NONCE_ORDERS),
        recv_window=table.checked("recv_window", _DIGITS, "a number of milliseconds", ""),
        recv_window_per_key=table.flag("recv_window_per_key"),
        sorts_query=table.flag("sorts_query"),
        strips=frozenset(name.encode("ascii") for name in table.texts("strips")),
        drops=table.texts("drops"),
        headers=tuple(headers),
        parts=tuple(_part(part_table, name, names) for name in part_table.data),
        **texts,
    )


SIGNING_KEYS = (*_KEYS, *_TABLES)


def _part(table: Table, name: str, names: tuple[str, ...]) -> Part:
    if not (isinstance(table.data[name], dict) and "finds" in table.data[name]):
        return Part(name, _choice(table, name, names))
    inner = table.table(name, ("of", "finds"))
    finds = inner.pattern("finds").pattern.encode("utf-8")
    return Part(name, {_ANY: _template(inner, "of", inner.text("of"), names)}, re.compile(finds))


def _choice(table: Table, key: str, names: tuple[str, ...]) -> Choice:
    if isinstance(table.data.get(key), dict):
        inner = table.table(key, _CASES)
        return {case: _template(inner, case, inner.text(case), names) for case in inner.data}
    text = table.text(key, "")
    return {_ANY: _template(table, key, text, names)} if text else {}


def _template(table: Table, key: str, text: str, names: tuple[str, ...]) -> Template:
    try:
        return parse_template(text, names)
    except TemplateError as error:
        raise table.template_error(key, error) from None


def _check_header(table: Table, key: str, text: Template, free: set[str]) -> None:
    """See that nothing a bot sends can end a header; `free` are the names of what may have any bytes."""
    if any(isinstance(piece, bytes) and _CONTROL.search(piece.decode("utf-8")) for piece in text):
        raise table.error(key, f"{key} has a control character")
    for ref in (piece for piece in text if isinstance(piece, Ref)):
        is_free = ref.name in free or "unquote" in ref.filters
        if is_free and not _SAFE_IN_HEADERS.intersection(ref.filters[-1:]):
            raise table.error(key, f"{key}: a header may have {{{ref.name}}} as base64, pct or sha512 alone")


def _check_addition(table: Table, key: str, choice: Choice, own: str) -> None:
    """See that the bot's own bytes stand in it once and unaltered, with additions at the ends alone."""
    for text in choice.values():
        places = [piece for piece in text if isinstance(piece, Ref) and piece.name == own]
        if len(places) > 1 or any(set(place.filters) - {"amp", "lamp"} for place in places):
            raise table.error(key, f"{key} may have {{{own}}}, {{{own}|amp}} or {{{own}|lamp}} once")


def _pick(choice: Choice, method: str, kind: str) -> Template | None:
    cases = (method, kind, *((_BODY,) if kind != _EMPTY else ()), _ANY)
    return next((choice[case] for case in cases if case in choice), None) or None


@dataclass(frozen=True, slots=True)
class KeyTexts:
    """What one key brings beside what it signs with."""

    api_key: str
    passphrase: str = field(default="", repr=False)
    uid: str = ""
    recv_window: str = ""  # "": the file's


# What one attempt sends: header lines, each with its CRLF, the target, the body, and whether the body is a
# form that the gateway began, which wants a Content-Type. No NamedTuple: making one costs a tenth of signing.
Signed = tuple[bytes, str, bytes, bool]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The functions of one method and kind of body, in the order in which they are called."""

    is_signable: bool
    is_plain: bool  # nothing but a message and headers
    takes_path: bool
    takes_query: bool
    takes_target: bool
    query: Render | None
    form: Render | None
    early: tuple[Render, ...]
    message: Render
    late: tuple[Render, ...]
    query_end: Render | None
    form_end: Render | None
    lines: Render


class Sealer:
    """Signs with one key, by one scheme.

    `mac` returns the raw signature of a message. `authority` is what stands between "https://" and the bot's
    path; `prefix` is sent and not signed. Raises ValueError where a text of the key cannot stand in a header.
    """

    def __init__(self, scheme: Scheme, key: KeyTexts, mac: Mac, authority: str, prefix: str) -> None:
        self.scheme = scheme
        self._mac = mac
        self._encode = _ENCODERS[scheme.encoding]
        self._stamp = _stamp(scheme.timestamp, scheme.expires_s * 1000)
        self._cut = len(prefix)
        self._own = OwnParameters(scheme.own_parameters())
        texts = (key.api_key, key.passphrase, key.uid, key.recv_window or scheme.recv_window)
        for name, text in zip(_KEY_NAMES, texts, strict=False):
            if _CONTROL.search(text):
                raise ValueError(f"{name} has a control character, such as the end of a line")
        constants = dict(zip(_KEY_NAMES, (text.encode("utf-8") for text in texts), strict=False))
        constants["host"] = authority.partition("/")[0].encode("ascii")
        constants["root"] = f"{authority}{prefix}".encode("ascii")
        self._constants = constants
        self._plans: dict[str, tuple[_Plan, ...]] = {}  # by method, made at its first request

    def sign(self, timestamp_ms: int, nonce: bytes, method: str, target: Target, body: bytes) -> Signed:
        """Sign one attempt. Raises UnsignableError if the scheme has no way to sign such a request."""
        plan = self._plan_of(method, body)
        if plan.is_plain:  # a quarter less instructions than by the way below, which would do, too
            values = [
                self._stamp(timestamp_ms),
                nonce,
                target.path[self._cut :].encode("ascii") if plan.takes_path else b"",
                (target.query or "").encode("ascii") if plan.takes_query else b"",
                target.raw[self._cut :].encode("ascii") if plan.takes_target else b"",
                body,
            ]
            values.append(self._encode(self._mac(plan.message(values))))
            return plan.lines(values), target.raw, body, False
        values = self._prepared(plan, (timestamp_ms, nonce), target, body)
        values.append(self._encode(self._mac(plan.message(values))))
        values.extend(render(values) for render in plan.late)
        query, sent = values[_QUERY], values[_BODY_SLOT]
        query += plan.query_end(values) if plan.query_end else b""
        sent += plan.form_end(values) if plan.form_end else b""
        raw = f"{target.path}?{query.decode('ascii')}" if query else target.path
        return plan.lines(values), raw, sent, bool(sent) and not body

    def check_declared(self, body: bytes, declared: BodyType) -> None:
        """Raise UnsignableError if a body of this type could hide parameters of the gateway."""
        self._own.check_declared(body, declared)

    def bare(self, method: str, target: Target, body: bytes) -> tuple[str, bytes]:
        """Return target and body without the dummy parameters that `sign` cuts out of them.

        A bot that signs by itself writes new ones with each try; what is left is what it asks for.
        """
        strips = self.scheme.strips
        if not strips:
            return target.raw, body
        query = cut_parameters((target.query or "").encode("ascii"), strips)
        raw = f"{target.path}?{query.decode('ascii')}" if query else target.path
        plan = self._plan_of(method, body)
        return raw, cut_parameters(body, strips) if plan.form or plan.form_end else body

    def content(self, method: str, target: Target, body: bytes) -> int:
        """Return a hash of all that is signed besides stamps: two requests of one stamp must differ in it."""
        if not self.scheme.strips:
            return hash((method, target.raw, body))
        return hash((method, self.bare(method, target, body)))

    def key_lines(self) -> bytes:
        """Return the header lines that need no signature, for requests that name the key and no more."""
        fixed = [
            (name, text) for name, text in self.scheme.headers if names_in(text) <= self._constants.keys()
        ]
        return bind(_lines(fixed), self._constants, {}, self._mac)([])

    def message(self, timestamp_ms: int, nonce: bytes, method: str, target: Target, body: bytes) -> bytes:
        """Return the bytes that `sign` signs, for people to look at."""
        plan = self._plan_of(method, body)
        return plan.message(self._prepared(plan, (timestamp_ms, nonce), target, body))

    def signature(self, message: bytes) -> bytes:
        """Return the signature of a message, as it is sent."""
        return self._encode(self._mac(message))

    def fingerprint(self) -> str:
        """Return 8 hex digits that tell secrets apart, and show no more of one than a signature does."""
        return self._mac(_FINGERPRINT).hex()[:8]

    def _plan_of(self, method: str, body: bytes) -> _Plan:
        plans = self._plans.get(method)
        if plans is None:
            plans = tuple(self._plan(self._constants, method, kind) for kind in _KINDS)
            self._plans[method] = plans
        return plans[0 if not body else 2 if looks_like_json(body) else 1]

    def _prepared(self, plan: _Plan, stamp: tuple[int, bytes], target: Target, body: bytes) -> Values:
        """Return all values but the signature and what follows from it.

        What a bot added that signs itself is cut out, and what stands before the signature is added.
        """
        path = target.path[self._cut :].encode("ascii")
        query = cut_parameters((target.query or "").encode("ascii"), self.scheme.strips)
        self._own.check(query)
        if not plan.is_signable:
            raise UnsignableError(
                "this venue signs no such body: the parameters that it requires go into a form"
            )
        if plan.form or plan.form_end:
            body = cut_parameters(body, self.scheme.strips)
        if body:
            self._own.check_body(body)
        values = [self._stamp(stamp[0]), stamp[1], path, query, b"", body]
        query = plan.query(values) if plan.query else query
        if self.scheme.sorts_query:
            query = sort_parameters(query)
        whole = b"%b?%b" % (path, query) if query else path
        body = plan.form(values) if plan.form else body
        values[_QUERY:] = query, whole, body
        for render in plan.early:
            values.append(render(values))
        return values

    def _plan(self, constants: Mapping[str, bytes], method: str, kind: str) -> _Plan:
        slots = {name: place for place, name in enumerate(_SLOTS)}
        constants = {**constants, "method": method.encode("ascii")}
        early, late = [], []

        def made(choice: Choice) -> Render | None:
            text = _pick(choice, method, kind)
            return bind(text, constants, slots, self._mac) if text else None

        scheme = self.scheme
        after = _after_signature(scheme, method, kind)
        for part in scheme.parts:
            if part.name not in after:
                early.append(_found(part, made(part.text)))
                slots[part.name] = len(slots)
        query = _appending(_pick(scheme.query, method, kind), "query")
        form = _appending(_pick(scheme.form, method, kind), _BODY)
        message = made(scheme.message)
        slots[_SIGNATURE] = len(slots)
        for part in scheme.parts:
            if part.name in after:
                late.append(_found(part, made(part.text)))
                slots[part.name] = len(slots)
        lines = _lines(scheme.headers)
        edits = bool(query or form or scheme.strips or scheme.sorts_query or scheme.query_end)
        carriers = [
            lines,
            *(_pick(choice, method, kind) or () for choice in (scheme.query_end, scheme.form_end)),
        ]
        is_carried = any(names_in(text) & {_SIGNATURE, *after} for text in carriers)
        has_form = bool(form or _pick(scheme.form_end, method, kind))
        taken = names_in((*(_pick(scheme.message, method, kind) or ()), *lines))
        return _Plan(
            is_signable=is_carried and not (has_form and kind == _JSON),
            is_plain=is_carried and not (edits or has_form or early or late),
            takes_path="path" in taken,
            takes_query="query" in taken,
            takes_target="target" in taken,
            query=bind(query, constants, slots, self._mac) if query else None,
            form=bind(form, constants, slots, self._mac) if form else None,
            early=tuple(early),
            message=message or _nothing,
            late=tuple(late),
            query_end=made(scheme.query_end),
            form_end=made(scheme.form_end),
            lines=bind(lines, constants, slots, self._mac),
        )


def _lines(headers: Iterable[tuple[str, Template]]) -> Template:
    """Return the template of all lines; a header with an empty text is a bot's that is dropped."""
    return tuple(
        piece for name, text in headers if text for piece in (f"{name}: ".encode("ascii"), *text, b"\r\n")
    )


def _stamp(form: str, later_ms: int) -> Callable[[int], bytes]:
    write = _STAMPS[form]
    return (lambda now_ms: write(now_ms + later_ms)) if later_ms else write


def _nothing(_values: Values) -> bytes:
    return b""


def _after_signature(scheme: Scheme, method: str, kind: str) -> set[str]:
    """Return the parts that mention the signature, or a part that does."""
    after: set[str] = set()
    for part in scheme.parts:
        if names_in(_pick(part.text, method, kind) or ()) & {_SIGNATURE, *after}:
            after.add(part.name)
    return after


def _found(part: Part, render: Render | None) -> Render:
    finds = part.finds
    if render is None or finds is None:
        return render or _nothing
    whole: Render = render

    def find(values: Values) -> bytes:
        found = finds.search(whole(values))
        return (found[1] or b"") if found else b""

    return find


def _appending(text: Template | None, own: str) -> Template | None:
    """Put the bot's own before what a file adds, where the file does not say where it stands."""
    return text if text is None or own in names_in(text) else (Ref(own, ("amp",)), *text)
