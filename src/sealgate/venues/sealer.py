"""Signs with one key, by one scheme.

The bot's own bytes stay as they came. Additions stand at the ends of query or form, or between the members of
a JSON object; what a bot added that signs with dummy keys is cut out first.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sealgate.http.target import Target
from sealgate.venues.encodings import ENCODERS, STAMPS
from sealgate.venues.filters import FILTERS, sort_parameters
from sealgate.venues.json_bytes import cut_members, items_of, member_at
from sealgate.venues.json_texts import bind_json, names_in_json, templates_in
from sealgate.venues.key_kinds import Signer
from sealgate.venues.own_parameters import (
    BodyType,
    OwnParameters,
    cut_parameters,
    looks_like_json,
)
from sealgate.venues.scheme import (
    ANY,
    BODY,
    CONTROL,
    EMPTY,
    FORM,
    ITEM,
    JSON,
    KEY_NAMES,
    SIGNATURE,
    SLOTS,
    Choice,
    Part,
    Scheme,
)
from sealgate.venues.templates import Ref, Render, Template, Values, bind, names_in
from sealgate.venues.unsignable import UnsignableError

_KINDS = (EMPTY, FORM, JSON)
_QUERY, _TARGET, _BODY = SLOTS.index("query"), SLOTS.index("target"), SLOTS.index("body")
# The lines of bodies that are the gateway's own.
FORM_LINE = b"Content-Type: application/x-www-form-urlencoded\r\n"
JSON_LINE = b"Content-Type: application/json\r\n"


@dataclass(frozen=True, slots=True)
class KeyTexts:
    """What one key brings beside what it signs with. `secret` is of static schemes alone."""

    api_key: str
    passphrase: str = field(default="", repr=False)
    uid: str = ""
    recv_window: str = ""  # "": the file's
    secret: str = field(default="", repr=False)


# What one attempt sends: header lines, each with its CRLF, the target, the body, and the line for the type of
# a body that the gateway began. No NamedTuple: making one costs a tenth of signing.
Signed = tuple[bytes, str, bytes, bytes]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The functions of one method and kind of body, in the order in which they are called."""

    fault: str  # why no such request is signed, "" where it is
    is_plain: bool  # nothing but a message and headers
    takes_path: bool
    takes_query: bool
    takes_target: bool
    takes_expires: bool
    takes_route: bool
    cuts: Callable[[bytes, frozenset[bytes]], bytes] | None  # parameters out of the body
    absent: bytes  # what stands for the body of a request that has none
    query: Render | None
    form: Render | None
    early: tuple[Render, ...]
    message: Render
    late: tuple[Render, ...]
    query_end: Render | None
    form_end: Render | None
    json_late: Render | None
    lines: Render
    type_line: bytes


class Sealer:
    """Signs with one key, by one scheme.

    `authority` is what stands between "https://" and the bot's path; `prefix` is sent and not signed. Raises
    ValueError where a text of the key cannot stand in a header.
    """

    def __init__(self, scheme: Scheme, key: KeyTexts, signer: Signer, authority: str, prefix: str) -> None:
        self.scheme = scheme
        self.signer = signer
        self._raw = signer.sign
        first, *rest = scheme.encoding.split("|")
        self._encode = _chained([ENCODERS[first], *(FILTERS[name] for name in rest)])
        self._stamp = STAMPS[scheme.timestamp]
        self._later_ms = scheme.expires_s * 1000
        self._cut = len(prefix)
        self._own = OwnParameters(scheme.own_parameters())
        texts = (key.api_key, key.passphrase, key.uid, key.recv_window or scheme.recv_window, key.secret)
        for name, text in zip(KEY_NAMES, texts, strict=False):
            if CONTROL.search(text):
                raise ValueError(f"{name} has a control character, such as the end of a line")
        constants = dict(zip(KEY_NAMES, (text.encode("utf-8") for text in texts), strict=False))
        constants["host"] = authority.partition("/")[0].encode("ascii")
        constants["root"] = f"{authority}{prefix}".encode("ascii")
        self.constants = constants
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
                self._stamp(timestamp_ms + self._later_ms) if plan.takes_expires else b"",
                b"",
            ]
            values.append(self._encode(self._raw(plan.message(values))))
            return plan.lines(values), target.raw, body, b""
        values = self._prepared(plan, (timestamp_ms, nonce), method, target, body)
        values.append(self._encode(self._raw(plan.message(values))))
        values.extend(render(values) for render in plan.late)
        query, sent = values[_QUERY], values[_BODY]
        query += plan.query_end(values) if plan.query_end else b""
        sent += plan.form_end(values) if plan.form_end else b""
        sent = plan.json_late(values) if plan.json_late else sent
        raw = f"{target.path}?{query.decode('ascii')}" if query else target.path
        return plan.lines(values), raw, sent, plan.type_line if sent and not body else b""

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
        cuts = self._plan_of(method, body).cuts
        return raw, cuts(body, strips) if cuts else body

    def content(self, method: str, target: Target, body: bytes) -> int:
        """Return a hash of all that is signed besides stamps: two requests of one stamp must differ in it."""
        if not self.scheme.strips:
            return hash((method, target.raw, body))
        return hash((method, self.bare(method, target, body)))

    def key_lines(self) -> bytes:
        """Return the header lines that need no signature, for requests that name the key and no more."""
        known = self.constants.keys() - {"secret"}
        fixed = [(name, text) for name, text in self.scheme.headers if names_in(text) <= known]
        return bind(_lines(fixed), self.constants, {}, self._raw)([])

    @property
    def proof(self) -> Hashable:
        """What tells one key, secret and way to sign from another."""
        scheme, signer = self.scheme, self.signer
        texts = (scheme.encoding, scheme.secret, repr(scheme.message), repr(scheme.headers))
        return (signer.kind, signer.identity, *self.constants.items(), *texts)

    def message(self, timestamp_ms: int, nonce: bytes, method: str, target: Target, body: bytes) -> bytes:
        """Return the bytes that `sign` signs, for people to look at."""
        plan = self._plan_of(method, body)
        return plan.message(self._prepared(plan, (timestamp_ms, nonce), method, target, body))

    def signature(self, message: bytes) -> bytes:
        """Return the signature of a message, as it is sent."""
        return self._encode(self._raw(message))

    def fingerprint(self) -> str:
        """Return 8 hex digits that tell keys apart, and show no more of one than a signature does."""
        return self.signer.identity.hex()[:8]

    def _plan_of(self, method: str, body: bytes) -> _Plan:
        plans = self._plans.get(method)
        if plans is None:
            plans = tuple(self._plan(self.constants, method, kind) for kind in _KINDS)
            self._plans[method] = plans
        return plans[0 if not body else 2 if looks_like_json(body) else 1]

    def _prepared(
        self, plan: _Plan, stamp: tuple[int, bytes], method: str, target: Target, body: bytes
    ) -> Values:
        """Return all values but the signature and what follows from it.

        What a bot added that signs itself is cut out, and what stands before the signature is added.
        """
        path = target.path[self._cut :].encode("ascii")
        query = cut_parameters((target.query or "").encode("ascii"), self.scheme.strips)
        self._own.check(query)
        if plan.fault:
            raise UnsignableError(plan.fault)
        body = plan.cuts(body, self.scheme.strips) if plan.cuts else body or plan.absent
        if body:
            self._own.check_body(body)
        expires = self._stamp(stamp[0] + self._later_ms)
        values = [self._stamp(stamp[0]), stamp[1], path, query, b"", body, expires, b""]
        if plan.takes_route:
            name = self.scheme.by_route.get((method, target.path[self._cut :]))
            if name is None:
                raise UnsignableError(
                    "this venue signs the name of each call, and its file has no name for this one"
                )
            values[-1] = name
        values[_QUERY] = plan.query(values) if plan.query else query
        if self.scheme.sorts_query:
            values[_QUERY] = sort_parameters(values[_QUERY])
        values[_TARGET] = b"%b?%b" % (path, values[_QUERY]) if values[_QUERY] else path
        values[_BODY] = plan.form(values) if plan.form else body
        for render in plan.early:
            values.append(render(values))
        return values

    def _plan(self, constants: Mapping[str, bytes], method: str, kind: str) -> _Plan:
        scheme = self.scheme
        slots = {name: place for place, name in enumerate(SLOTS)}
        constants = {**constants, "method": method.encode("ascii")}

        def bound(text: Template) -> Render:
            return bind(text, constants, slots, self._raw)

        def picked(choice: Choice) -> Template:
            cases = (method, kind, *((BODY,) if kind != EMPTY else ()), ANY)
            return next((choice[case] for case in cases if case in choice), ())

        def made(choice: Choice) -> Render | None:
            text = picked(choice)
            return bound(text) if text else None

        # 1. What is added: to the body members of an object or parameters of a form, and to the query.
        is_object = kind == JSON or (kind == EMPTY and method in scheme.json_empty)
        members = scheme.json if is_object else None
        written = set[str]() if members is None else names_in_json(members)
        form = _appending(picked(scheme.form), BODY)
        has_form = bool(form or picked(scheme.form_end))
        query = _appending(picked(scheme.query), "query")
        # 2. Parts that are made of the signature are made after it. While a part is made of the members of a
        #    list, each of those stands where the part itself will.
        after = _after_signature(scheme.parts, picked)

        def renders(parts: Iterable[Part]) -> Iterator[Render]:
            for part in parts:
                slots[ITEM] = len(slots)
                yield bind_part(part, made, bound)
                slots[part.name] = slots.pop(ITEM)

        early = tuple(renders(part for part in scheme.parts if part.name not in after))
        message = made(scheme.message)
        slots[SIGNATURE] = len(slots)
        late = tuple(renders(part for part in scheme.parts if part.name in after))
        lines = _lines(scheme.headers)
        put = None if members is None else bind_json(members, bound)
        signed = {SIGNATURE, *after}
        is_late = bool(written & signed)
        # 3. What has no place for the signature, or for what must be signed, is not signed.
        carriers = (lines, picked(scheme.query_end), picked(scheme.form_end))
        is_carried = scheme.is_static or is_late or any(names_in(text) & signed for text in carriers)
        takes_route = scheme.needs("by_route")
        is_in_query = bool(query or picked(scheme.query_end)) and kind != FORM
        if members is None and scheme.json is not None and not is_in_query:
            fault = "this venue signs such a request only with a JSON object as its body"
        elif not is_carried or (has_form and kind == JSON):
            fault = "this venue signs no such body: the parameters that it requires belong in a form"
        else:
            fault = ""
        # 4. A request to which nothing is added, and of which no part is made, is signed by a shorter way.
        taken = names_in((*picked(scheme.message), *lines))
        edits = bool(query or form or members or scheme.strips or scheme.sorts_query or scheme.query_end)
        return _Plan(
            fault=fault,
            is_plain=not (fault or edits or has_form or early or late or takes_route),
            takes_path="path" in taken,
            takes_query="query" in taken,
            takes_target="target" in taken,
            takes_expires="expires" in taken,
            takes_route=takes_route,
            absent=b"{}" if members and kind == EMPTY else b"",
            cuts=cut_members if members and kind == JSON else cut_parameters if has_form else None,
            query=bound(query) if query else None,
            form=put if put and not is_late else bound(form) if form else None,
            early=early,
            message=message or _nothing,
            late=late,
            query_end=made(scheme.query_end),
            form_end=made(scheme.form_end),
            json_late=put if is_late else None,
            lines=bound(lines),
            type_line=JSON_LINE if members else FORM_LINE,
        )


def _chained(functions: list[Callable[[bytes], bytes]]) -> Callable[[bytes], bytes]:
    first, *rest = functions
    if not rest:
        return first

    def encode(signature: bytes) -> bytes:
        text = first(signature)
        for function in rest:
            text = function(text)
        return text

    return encode


def _lines(headers: Iterable[tuple[str, Template]]) -> Template:
    """Return the template of all lines; a header with an empty text is a bot's that is dropped."""
    return tuple(
        piece for name, text in headers if text for piece in (f"{name}: ".encode("ascii"), *text, b"\r\n")
    )


def _nothing(_values: Values) -> bytes:
    return b""


def _after_signature(parts: tuple[Part, ...], picked: Callable[[Choice], Template]) -> set[str]:
    """Return the parts that mention the signature, or a part that does."""
    after: set[str] = set()
    for part in parts:
        members = () if part.json is None else templates_in(part.json)
        texts = (picked(part.text), picked(part.then or {}), *members)
        if any(names_in(text) & {SIGNATURE, *after} for text in texts):
            after.add(part.name)
    return after


def bind_part(
    part: Part, made: Callable[[Choice], Render | None], bound: Callable[[Template], Render]
) -> Render:
    """Make a function of a part."""
    if part.json is not None:
        return bind_json(part.json, bound)
    whole = made(part.text) or _nothing
    finds, at = part.finds, part.at
    if finds is not None:

        def find(values: Values) -> bytes:
            found = finds.search(whole(values))
            return (found[1] or b"") if found else b""

        return find
    if at:
        return lambda values: member_at(text, at) if (text := whole(values)) else b""
    if part.then is not None:
        then = made(part.then) or _nothing
        if part.is_each:
            return lambda values: b"".join([then([*values, item]) for item in items_of(whole(values))])
        return lambda values: then(values) if whole(values) else b""
    return whole


def _appending(text: Template, own: str) -> Template:
    """Put the bot's own before what a file adds, where the file does not say where it stands."""
    return text if not text or own in names_in(text) else (Ref(own, ("amp",)), *text)
