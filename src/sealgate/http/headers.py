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

from sealgate.errors import Refusal

_ACCEPTED = re.compile(rb"^accept-encoding[ \t]*:[^\r\n]*\r\n", re.IGNORECASE | re.MULTILINE)
_TIMEOUT = re.compile(rb"(?:^|[,;\s])timeout\s*=\s*\"?(\d{1,9})(?!\d)", re.IGNORECASE)


MOST_BYTES = 64 * 1024  # of all names and values together
# The window bits with which zlib undoes a content coding; 0: there is nothing to undo. (HTTP's deflate has
# zlib's header: RFC 9110 section 8.4.1.2.)
CODINGS = {b"identity": 0, b"gzip": 31, b"x-gzip": 31, b"deflate": 15}
_MOST_NAMES = 1024  # whose treatment is remembered: the first that arrived
_LONGEST_NAME = 64  # that is remembered: longer ones are an attack, and would stay in memory


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
        b"x-gateway-token",
        b"x-gateway-valid-ms",
    }
)
# Passed on, and read as well. Each may occur once: two servers would read two of them differently.
_READ = frozenset(
    {
        b"content-encoding",
        b"content-location",
        b"content-range",
        b"content-type",
        b"max-forwards",
        b"referer",  # some programs state their name in it, and some exchanges count by that
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
# Several lines are one list (RFC 9110 section 5.3). Several traceparents are invalid, yet not refused.
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
# Some servers and frameworks believe these rather than the request line and the connection.
_DROPPED = _HOP_BY_HOP | {
    b"cf-connecting-ip",
    b"client-ip",
    b"cookie",
    b"cookie2",
    b"fastly-client-ip",
    b"forwarded",
    b"front-end-https",
    b"http2-settings",
    b"proxy",  # CGI turns it into HTTP_PROXY, and programs connect to what that names
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
# What belongs to a message or to a bot, so that no setting may say it.
_UNSETTABLE = (
    _HOP_BY_HOP
    | FRAMING
    | {
        b"accept-encoding",
        b"authorization",
        b"content-encoding",
        b"content-type",
        b"expect",
        b"host",
        b"idempotency-key",
    }
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
    """Sorts the fields of requests. `own` has names that only the gateway may send; `x-foo-*` is a prefix.

    With `reads_replies`, the gateway reads replies' bodies: only codings that it can undo may be asked for.
    """

    def __init__(self, own: Iterable[str], *, reads_replies: bool = False) -> None:
        self._kept = _KEPT | {_ACCEPT_ENCODING} if reads_replies else _KEPT
        names = [name.encode("ascii") for name in own]
        prefixes = [plain_name(name[:-1]) for name in names if name.endswith(b"*")]
        self._prefixes = (*_DROPPED_PREFIXES, *prefixes)
        self._own = frozenset(plain_name(name) for name in names)
        self._known: dict[bytes, tuple[bool, bytes | None]] = {}

    def _judge(self, name: bytes) -> tuple[bool, bytes | None]:
        """Return whether a field is passed on, and the name by which the gateway reads it, or None.

        Raises Refusal for a misspelled name that some servers take for the body's framing.
        """
        canonical = plain_name(name)
        if canonical in FRAMING and canonical != name.lower():
            raise Refusal(
                "bad_request",
                f"The header {canonical.decode('ascii')} must be written with hyphens.",
            )
        if canonical in self._kept:
            judged: tuple[bool, bytes | None] = False, canonical
        elif canonical in _READ and canonical not in self._own:
            judged = True, canonical
        else:
            is_dropped = canonical in self._own or canonical in _DROPPED
            judged = not (is_dropped or canonical.startswith(self._prefixes)), None
        if len(name) <= _LONGEST_NAME and len(self._known) < _MOST_NAMES:
            self._known[name] = judged
        return judged

    def sort(self, fields: Collection[tuple[bytes, bytes]]) -> Head:
        """Sort a request's raw fields.

        Raises Refusal `bad_request` if a kept field occurs twice or a framing field is misspelled,
        `headers_too_large` if they are too large together.
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
    """Return the codings of an Accept-Encoding that the gateway can undo."""
    wanted = [one.strip() for one in accepted.lower().split(b",")]
    return b", ".join(one for one in wanted if one.partition(b";")[0].rstrip() in CODINGS) or b"identity"


def without_coding(lines: bytes) -> bytes:
    """Return header lines that ask for a reply without a content coding, whatever they asked for before."""
    return _ACCEPTED.sub(b"", lines) + b"Accept-Encoding: identity\r\n"


def header_lines(fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return fields as they are sent, each with its CRLF."""
    return b"".join([b"%b: %b\r\n" % field for field in fields])


@lru_cache(maxsize=1024)
def content_length(size: int) -> bytes:
    """Return the line that states a body's size."""
    return b"Content-Length: %d\r\n" % size


@dataclass(slots=True)
class ReplyHead:
    """A reply's fields, sorted: `passed` in their order and spelling, and those that the gateway reads.

    `lines` is `passed` as it is sent. `limit_fields` are those about the rate limit, by lower-case name;
    several lines of one field are several lines there. `length`, `coding` (in lower case) and
    `content_coding` are the values of Content-Length, Transfer-Encoding and Content-Encoding. `keep_alive_s`:
    the exchange closes the connection after so many seconds without a request.
    """

    passed: list[tuple[bytes, bytes]]
    limit_fields: dict[str, str]
    length: bytes | None
    coding: bytes | None = None
    keep_alive_s: float | None = None
    lines: bytes | None = None
    content_coding: bytes | None = None


def sort_reply(fields: Iterable[tuple[bytes, bytes]]) -> ReplyHead:
    """Sort the raw fields of the exchange's reply."""
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
    """Return whether a field is passed back, whether it is about the limit, and its name in lower case."""
    # Space before the colon is removed (RFC 9112 section 5.1); the parser leaves it in the name.
    lower = name.rstrip().lower()
    canonical = plain_name(lower)
    passes = canonical not in _REPLY_DROPPED and not canonical.startswith(_REPLY_DROPPED_PREFIXES)
    return passes, lower.startswith(_TELLING), lower


def _merged(name: bytes, earlier: bytes, value: bytes) -> bytes:
    if name in _LISTS:
        return earlier + b", " + value
    raise Refusal("bad_request", f"The header {name.decode('latin-1')} occurs twice.")


def _without(fields: list[tuple[bytes, bytes]], connection: bytes) -> list[tuple[bytes, bytes]]:
    """Leave out the fields that a Connection header names (RFC 9110 section 7.6.1)."""
    named = {option.strip().lower() for option in connection.split(b",")}
    return [(name, value) for name, value in fields if name.lower() not in named]


def is_settable(name: str) -> bool:
    """Return whether a setting may have a header of this name sent with every request."""
    canonical = plain_name(name.encode("ascii"))
    return canonical not in _UNSETTABLE and not canonical.startswith((b"x-gateway-", b"proxy-"))


def plain_name(name: bytes) -> bytes:
    """Return the name that servers may read a field by: in lower case, `-` for what is no letter or digit."""
    return name.translate(_PLAIN)


def announced_timeout_s(keep_alive: bytes) -> float | None:
    """Return the seconds that a `Keep-Alive` field states, the shortest of several, None without any."""
    return min(map(float, _TIMEOUT.findall(keep_alive)), default=None)
