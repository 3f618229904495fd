"""Headers on their way through: which the gateway keeps for itself, which it drops, which it passes on.

Hop-by-hop fields end here (RFC 9110 section 7.6.1), and so does everything that could speak in the gateway's
name or redirect the request at the upstream. Names are compared without case and with every byte that is no
letter or digit read as `-`, because servers mangle them on the way to the application: CGI maps `-` to `_`,
PHP `.` as well, lighttpd's CGI every such byte.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from sealgate.errors import Refusal

_TIMEOUT = re.compile(rb"(?:^|[,;\s])timeout\s*=\s*\"?(\d{1,9})(?!\d)", re.IGNORECASE)


MOST_BYTES = 64 * 1024  # of all names and values together
# What zlib needs to undo a content coding; 0: it is plain. (Deflate comes with zlib's header, RFC 9110.)
CODINGS = {b"identity": 0, b"gzip": 31, b"x-gzip": 31, b"deflate": 15}
_NAMES = 1024  # whose treatment is kept at hand, those that came first
_LONGEST_NAME = 64  # of them: others come from nobody who means well, and would stay


# Read by the gateway, and not passed on.
_KEPT = frozenset(
    {
        b"authorization",
        b"connection",
        b"content-length",
        b"expect",
        b"host",
        b"idempotency-key",
        b"origin",
        b"sec-fetch-site",
        b"transfer-encoding",
        b"upgrade",
        b"x-gateway-deadline-ms",
        b"x-gateway-key",
        b"x-gateway-request-id",
        b"x-gateway-valid-ms",
    }
)
# Passed on, and looked at, too: two of them would be read differently by two servers.
_READ = frozenset(
    {
        b"content-encoding",
        b"content-location",
        b"content-range",
        b"content-type",
        b"max-forwards",
        b"referer",  # of a program it is its name, by which exchanges count
        b"traceparent",
        b"user-agent",
    }
)
# What each byte of a name is read as: letters in lower case, digits, and "-" for all others.
_PLAIN = bytes(
    ord(chr(octet).lower()) if chr(octet).isascii() and chr(octet).isalnum() else ord("-")
    for octet in range(256)
)
FRAMING = frozenset({b"content-length", b"transfer-encoding"})
_ACCEPT_ENCODING = b"accept-encoding"
# RFC 9110 section 5.3: several lines are one list. Several traceparents are none, and no reason to refuse.
_LISTS = frozenset({b"connection", b"content-encoding", b"traceparent", b"upgrade", _ACCEPT_ENCODING})
_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
# What some servers and frameworks believe over the request line and the connection: method, URL, host, peer.
_DROPPED = _HOP_BY_HOP | {
    b"cf-connecting-ip",
    b"client-ip",
    b"cookie",
    b"cookie2",
    b"fastly-client-ip",
    b"forwarded",
    b"front-end-https",
    b"http2-settings",
    b"proxy",  # CGI makes HTTP_PROXY of it, by which programs choose where to connect
    b"true-client-ip",
    b"x-client-ip",
    b"x-cluster-client-ip",
    b"x-forwarded",
    b"x-host",
    b"x-method",
    b"x-method-override",
    b"x-originating-ip",
    b"x-real-ip",
    b"x-remote-addr",
    b"x-remote-ip",
    b"x-scheme",
    b"x-url-scheme",
}
_DROPPED_PREFIXES = (
    b"proxy-",
    b"x-accel-",
    b"x-envoy-",
    b"x-forwarded-",
    b"x-gateway-",
    b"x-http-",
    b"x-original-",
    b"x-rewrite-",
)
_REPLY_DROPPED = _HOP_BY_HOP | {b"content-length"}
_REPLY_READ = frozenset(
    {b"connection", b"content-encoding", b"content-length", b"keep-alive", b"transfer-encoding"}
)
_TELLING = (b"retry-after", b"ratelimit", b"x-ratelimit")
# No reply may tell a browser that another site may read it, and none may speak as the gateway.
_REPLY_DROPPED_PREFIXES = (b"x-gateway-", b"access-control-")


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """A request's fields, sorted: `kept` by lower-case name, `passed` as lines, in their order and spelling.

    `size` is that of all names and values together, in bytes.
    """

    kept: dict[bytes, bytes] = field(repr=False)  # a bot's token is one of them
    passed: bytes
    size: int = 0

    def text(self, name: bytes) -> str | None:
        """Return a kept field's value as text, None if absent."""
        value = self.kept.get(name)
        return None if value is None else value.decode("latin-1")


class HeaderRules:
    """The table for requests. `own` are names that are the gateway's, one with a `*` all that begin so.

    `reads_replies`: bodies of replies are looked into, so none may come in a coding that is not read here.
    """

    def __init__(self, own: Iterable[str], *, reads_replies: bool = False) -> None:
        self._kept = _KEPT | {_ACCEPT_ENCODING} if reads_replies else _KEPT
        names = [name.encode("ascii") for name in own]
        prefixes = [_canonical(name[:-1]) for name in names if name.endswith(b"*")]
        self._prefixes = (*_DROPPED_PREFIXES, *prefixes)
        self._own = frozenset(_canonical(name) for name in names)
        self._known: dict[bytes, tuple[bool, bytes | None]] = {}

    def _judge(self, name: bytes) -> tuple[bool, bytes | None]:
        """Say whether a field is passed on, and by which name the gateway reads it, None if it does not.

        Raises Refusal where one server takes it for the body's framing, and the next does not.
        """
        canonical = _canonical(name)
        if canonical in FRAMING and canonical != name.lower():
            raise Refusal(
                "bad_request",
                f"The header {canonical.decode('ascii')} is spelled another way: write it with -.",
            )
        if canonical in self._kept:
            judged: tuple[bool, bytes | None] = False, canonical
        elif canonical in _READ and canonical not in self._own:
            judged = True, canonical
        else:
            is_dropped = canonical in self._own or canonical in _DROPPED
            judged = not (is_dropped or canonical.startswith(self._prefixes)), None
        if len(name) <= _LONGEST_NAME and len(self._known) < _NAMES:
            self._known[name] = judged
        return judged

    def sort(self, fields: Collection[tuple[bytes, bytes]]) -> Head:
        """Sort a request's raw fields.

        Raises Refusal `bad_request` where a kept field comes twice or the framing is misspelled,
        `headers_too_large` where they are too large together.
        """
        kept: dict[bytes, bytes] = {}
        passed: list[tuple[bytes, bytes]] = []
        known = self._known
        for one in fields:
            name, value = one
            is_passed, read_as = known.get(name) or self._judge(name)
            if is_passed:
                passed.append(one)
            if read_as is not None:
                kept[read_as] = _merged(read_as, kept[read_as], value) if read_as in kept else value
        size = sum(map(len, chain.from_iterable(fields)))
        if size > MOST_BYTES:
            raise Refusal("headers_too_large", f"The header fields have more than {MOST_BYTES} bytes.")
        if _ACCEPT_ENCODING in kept:
            passed.append((b"Accept-Encoding", _readable(kept[_ACCEPT_ENCODING])))
        named = kept.get(b"connection")
        return Head(kept, header_lines(_without(passed, named) if named and passed else passed), size)


def _readable(accepted: bytes) -> bytes:
    """Return what is left of an Accept-Encoding."""
    wanted = [one.strip() for one in accepted.lower().split(b",")]
    return b", ".join(one for one in wanted if one.partition(b";")[0].rstrip() in CODINGS) or b"identity"


def header_lines(fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return fields as they go out, each with its CRLF."""
    return b"".join([b"%b: %b\r\n" % field for field in fields])


@lru_cache(maxsize=1024)
def content_length(size: int) -> bytes:
    """Return the line that states a body's size."""
    return b"Content-Length: %d\r\n" % size


class ReplyHead(NamedTuple):
    """A reply's fields, sorted: `passed` in their order and spelling, and what the gateway reads itself.

    `limit_fields` are those that speak of the rate limit, by lower-case name; several lines of one field are
    lines there, too. `length` is the stated Content-Length, `coding` what Transfer-Encoding says, in lower
    case, `keep_alive_s` after how long without a request the exchange says that it closes the connection,
    `content_coding` what Content-Encoding says. `lines` is `passed` as it goes out.
    """

    passed: list[tuple[bytes, bytes]]
    limit_fields: dict[str, str]
    length: bytes | None
    coding: bytes | None = None
    keep_alive_s: float | None = None
    lines: bytes | None = None
    content_coding: bytes | None = None


def sort_reply(fields: Iterable[tuple[bytes, bytes]]) -> ReplyHead:
    """Sort the raw fields of an upstream's reply."""
    passed: list[tuple[bytes, bytes]] = []
    limit_fields: dict[str, str] = {}
    read: dict[bytes, list[bytes]] = {}
    for name, value in fields:
        passes, is_of_limit, lower = _reply_treatment(name)
        if passes:
            passed.append((name, value))
        if is_of_limit:
            own, text = lower.decode("latin-1"), value.decode("latin-1")
            limit_fields[own] = f"{limit_fields[own]}\n{text}" if own in limit_fields else text
        elif lower in _REPLY_READ:
            read.setdefault(lower, []).append(value)
    if b"connection" in read:
        passed = _without(passed, b",".join(read[b"connection"]))
    coding = b",".join(read[b"transfer-encoding"]).lower() if b"transfer-encoding" in read else None
    keep_alive_s = announced_timeout_s(b",".join(read[b"keep-alive"])) if b"keep-alive" in read else None
    length = read[b"content-length"][0] if b"content-length" in read else None
    content_coding = b",".join(read[b"content-encoding"]) if b"content-encoding" in read else None
    return ReplyHead(passed, limit_fields, length, coding, keep_alive_s, header_lines(passed), content_coding)


@lru_cache(maxsize=1024)
def _reply_treatment(name: bytes) -> tuple[bool, bool, bytes]:
    """Return whether a field passes back, whether it speaks of the limit, and its name in lower case."""
    # RFC 9112 section 5.1: space before the colon counts for nothing, but the parser leaves it in the name.
    lower = name.rstrip().lower()
    canonical = _canonical(lower)
    passes = canonical not in _REPLY_DROPPED and not canonical.startswith(_REPLY_DROPPED_PREFIXES)
    return passes, lower.startswith(_TELLING), lower


def _merged(name: bytes, earlier: bytes, value: bytes) -> bytes:
    if name in _LISTS:
        return earlier + b", " + value
    raise Refusal("bad_request", f"The header {name.decode('latin-1')} comes twice.")


def _without(fields: list[tuple[bytes, bytes]], connection: bytes) -> list[tuple[bytes, bytes]]:
    """Leave out the fields that a Connection header names (RFC 9110 section 7.6.1)."""
    named = {option.strip().lower() for option in connection.split(b",")}
    return [(name, value) for name, value in fields if name.lower() not in named]


def _canonical(name: bytes) -> bytes:
    return name.translate(_PLAIN)


def announced_timeout_s(keep_alive: bytes) -> float | None:
    """Return the seconds that a `Keep-Alive` field states, the shortest of several, None without any."""
    return min(map(float, _TIMEOUT.findall(keep_alive)), default=None)
