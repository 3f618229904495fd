"""Requests and replies as Hypothesis makes them up, each with what must arrive at the other side.

Everything here is legal HTTP/1.1 and has one reading, but uses all of it: spellings, empty values, bytes
above 0x7f, padding, repeated fields, chunks of any size, escapes in any case.
"""

import gzip
import itertools
import json
import zlib
from dataclasses import dataclass
from urllib.parse import quote_from_bytes, unquote

from hypothesis import strategies as st

from rig.wire import Fields
from sealgate.venues.outward import leads_out

_TOKEN = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PLAIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,=:@"
# Escapes that a path may have: no unreserved character, no separator, no control character.
_PATH_ESCAPES = (
    *("%20", "%2B", "%2b", "%3A", "%3a", "%22", "%3C", "%7B", "%C3%A9", "%e2%9c%93", "%F0%9F%9A%80"),
)
_QUERY_ESCAPES = (*_PATH_ESCAPES, "%2F", "%5C", "%25", "%26", "%3D", "%7E", "%41", "%ff", "%0A", "%3B", "%23")

# Fields that end at the gateway, both ways.
_HOP_BY_HOP = (
    (b"Keep-Alive", b"timeout=5"),
    (b"TE", b"trailers"),
    (b"Trailer", b"X-Checksum"),
    (b"Upgrade", b"h2c"),
    (b"Proxy-Connection", b"keep-alive"),
    (b"Proxy-Authorization", b"Basic eDp5"),
)
_NOT_FORWARDED = (
    *_HOP_BY_HOP,
    (b"Authorization", b"Bearer mine"),
    (b"Cookie", b"a=1"),
    (b"Forwarded", b"for=10.0.0.1"),
    (b"X-Forwarded-For", b"10.0.0.1"),
    (b"x_forwarded_host", b"evil.example"),
    (b"X-Real-IP", b"10.0.0.1"),
    (b"X-HTTP-Method-Override", b"DELETE"),
    (b"X-Method-Override", b"DELETE"),
    (b"X-Original-URL", b"/v1/wallet"),
    (b"X-Rewrite-Url", b"/v1/wallet"),
    (b"X-SERVICE-SIGNATURE", b"00"),
    (b"x-service-timestamp", b"0"),
    (b"X_Service_ApiKey", b"mine"),
    (b"X-Service-Other", b"1"),
    (b"X-Gateway-Other", b"1"),
    (b"x_gateway_outcome", b"done"),
)
_NOT_PASSED_BACK = (
    (b"Keep-Alive", b"timeout=5"),
    (b"Proxy-Authenticate", b"Basic"),
    (b"Trailer", b"X-Checksum"),
    (b"X-Gateway-Outcome", b"done"),
    (b"X-Gateway-Error", b"draining"),
    (b"x_gateway_attempts", b"9"),
    (b"X-GATEWAY-REQUEST-ID", b"forged"),
    (b"Access-Control-Allow-Origin", b"*"),
    (b"access-control-allow-credentials", b"true"),
)

REQUEST_FIELDS = (
    *(b"Accept", b"accept-encoding", b"User-Agent", b"Content-Type", b"CONTENT-ENCODING", b"Content-MD5"),
    *(b"Cache-Control", b"If-None-Match", b"Range", b"Via", b"Date", b"Sec-Fetch-Mode", b"X-PASSKEY"),
)
REPLY_FIELDS = (
    *(b"Content-Type", b"content-encoding", b"Content-Language", b"Set-Cookie", b"Date", b"Server"),
    *(b"ETag", b"Vary", b"Location", b"Retry-After", b"X-RateLimit-Remaining"),
    *(b"Alt-Svc", b"WWW-Authenticate"),
)


_SINGLE = frozenset((b"User-Agent", b"Content-Type"))


def _fields(known: tuple[bytes, ...]) -> st.SearchStrategy[list[tuple[bytes, bytes]]]:
    # No name that ends at the gateway starts so: Hypothesis draws words of the source, too, such as "scheme".
    made_up = st.text(_TOKEN, max_size=12).map(lambda text: b"X-Own" + text.encode())
    printable = st.binary(max_size=20).map(
        lambda raw: bytes(octet for octet in raw if octet in _VALUE_OCTETS)
    )
    padding = st.sampled_from((b"", b" ", b"\t", b" \t "))
    value = st.tuples(padding, printable, padding).map(b"".join)
    return st.lists(st.tuples(st.sampled_from(known) | made_up, value), max_size=6)


_VALUE_OCTETS = frozenset((0x09, *range(0x20, 0x7F), *range(0x80, 0x100)))


def _once(fields: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Leave out the repetitions that RFC 9110 forbids a client."""
    first = {name: index for index, (name, _) in reversed(list(enumerate(fields))) if name in _SINGLE}
    return [field for index, field in enumerate(fields) if first.get(field[0], index) == index]


def _mixed(
    fields: st.SearchStrategy[list[tuple[bytes, bytes]]], dropped: tuple[tuple[bytes, bytes], ...]
) -> st.SearchStrategy[tuple[Fields, Fields]]:
    """Return (all fields, those that pass): the dropped ones stand anywhere among the others."""

    def mix(drawn: tuple[list[tuple[bytes, bytes]], list[tuple[bytes, bytes]], int]) -> tuple[Fields, Fields]:
        passing, doomed, where = drawn
        cut = where % (len(passing) + 1)
        passed = tuple((name, value.strip(b" \t")) for name, value in passing)
        return (*passing[:cut], *doomed, *passing[cut:]), passed

    some = st.lists(st.sampled_from(dropped), max_size=3, unique_by=lambda field: field[0].lower())
    return st.tuples(fields, some, st.integers(0, 6)).map(mix)


_bodies = st.one_of(
    st.just(b""),
    st.binary(max_size=300),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.floats(), max_size=3).map(
        lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    ),
    st.binary(max_size=100).map(lambda raw: gzip.compress(raw, mtime=0)),
    st.binary(max_size=100).map(zlib.compress),
    st.sampled_from((b"\0", b"\r\n\r\n", b"0\r\n\r\n", b" {} \n", b"\xef\xbb\xbf{}", b'{"a":1.10,"a":1e2}')),
)


@st.composite
def _chunks(draw: st.DrawFn, body: bytes) -> bytes:
    """Write a body in chunks of any size, sizes in any case and with zeros before them."""
    cuts = sorted({0, len(body), *draw(st.lists(st.integers(0, len(body)), max_size=4))})
    parts = [body[start:end] for start, end in itertools.pairwise(cuts)]
    forms = st.sampled_from(("%x", "%X", "%04x"))
    lines = [(draw(forms) % len(part)).encode() + b"\r\n" + part + b"\r\n" for part in parts if part]
    return b"".join(lines) + b"0\r\n\r\n"


def _segment() -> st.SearchStrategy[str]:
    pieces = st.text(_PLAIN, min_size=1, max_size=6) | st.sampled_from(_PATH_ESCAPES)
    return st.lists(pieces, min_size=1, max_size=3).map("".join).filter(lambda text: text not in (".", ".."))


def _target() -> st.SearchStrategy[bytes]:
    path = st.lists(_segment(), min_size=1, max_size=4).map("/".join)
    path = path.filter(lambda one: not leads_out(f"/{unquote(one).casefold()}"))  # that needs `keys`
    utf8 = st.text(max_size=4).map(lambda text: quote_from_bytes(text.encode("utf-8", "replace"), safe=""))
    pieces = st.text(_PLAIN + "/?[]", max_size=6) | st.sampled_from(_QUERY_ESCAPES) | utf8
    query = st.lists(pieces, min_size=1, max_size=5).map("".join)
    parameters = st.sampled_from(
        ("a=1&a=1", "a=2&a=1", "b=+%2B%20%3A", "?", "=", "&&", "a", "s=xyz%3AABC&l=50")
    )
    queries = (query | parameters).filter(lambda text: text and "%00" not in text)
    tail = st.just("") | queries.map(lambda text: "?" + text)
    return st.tuples(path, tail).map(lambda pair: f"/v1/trade/x/{pair[0]}{pair[1]}".encode())


@dataclass(frozen=True, repr=False)
class Case:
    """A request as the bot writes it, and what of it must arrive: target, fields and body."""

    raw: bytes
    method: bytes
    target: bytes
    passed: Fields
    body: bytes

    def __repr__(self) -> str:
        return repr(self.raw)


@st.composite
def requests(draw: st.DrawFn) -> Case:
    """Make up a request."""
    method = draw(st.sampled_from((b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE")))
    target = draw(_target())
    fields, passed = draw(_mixed(_fields(REQUEST_FIELDS).map(_once), _NOT_FORWARDED))
    lines = [b"%b:%b\r\n" % field for field in fields]
    body, framing = draw(_bodies), draw(st.sampled_from(("length", "padded length", "chunked", "none")))
    sent = body
    if framing == "chunked":
        lines.append(b"Transfer-Encoding: Chunked\r\n")
        sent = draw(_chunks(body))
    elif framing == "none":
        body = sent = b""
    else:
        lines.append(
            (b"content-length: %d\r\n" if framing == "length" else b"Content-Length: %05d\r\n") % len(body)
        )
    host = draw(st.sampled_from((b"127.0.0.1", b"localhost:8787", b"LocalHost")))
    lines.insert(draw(st.integers(0, len(lines))), b"Host: %b\r\n" % host)
    raw = b"%b %b HTTP/1.1\r\n%b\r\n%b" % (method, target, b"".join(lines), sent)
    return Case(raw, method, target, passed, body)


@dataclass(frozen=True, repr=False)
class Answer:
    """A reply as the upstream writes it, and what of it must pass back. `length` is what a HEAD may state."""

    method: bytes
    raw: bytes
    status: int
    phrase: bytes
    passed: Fields
    body: bytes
    length: int | None
    closes: bool

    def __repr__(self) -> str:
        return repr(self.raw)


_STATUSES = tuple(status for status in range(200, 600) if status not in (204, 304, 401, 429))


@st.composite
def replies(draw: st.DrawFn) -> Answer:
    """Make up a reply to a request of some method."""
    method = draw(st.sampled_from((b"GET", b"POST", b"HEAD", b"DELETE")))
    status = draw(st.sampled_from((*_STATUSES, 200, 204, 304, 200, 304, 401)))
    phrase = draw(
        st.sampled_from((b"OK", b"", b"Not  Found", b"f\xc3\xbcr dich", b"f\xfcr", b"I'm a teapot"))
    )
    fields, passed = draw(_mixed(_fields(REPLY_FIELDS), _NOT_PASSED_BACK))
    body, framing = draw(_bodies), draw(st.sampled_from(("length", "chunked", "close")))
    is_bodiless = method == b"HEAD" or status in (204, 304)
    lines = [b"%b:%b\r\n" % field for field in fields]
    length: int | None = len(body)
    sent = body
    if status == 204 or framing == "close":
        length = None if is_bodiless else len(body)
    elif framing == "chunked":
        lines.append(b"Transfer-Encoding: chunked\r\n")
        sent, length = draw(_chunks(body)), None if is_bodiless else len(body)
    else:
        lines.append(b"Content-Length: %d\r\n" % len(body))
    raw = b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (status, phrase, b"".join(lines), b"" if is_bodiless else sent)
    closes = framing == "close"
    return Answer(method, raw, status, phrase, passed, b"" if is_bodiless else body, length, closes)
