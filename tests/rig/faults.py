"""What can go wrong at an upstream, by name. Each fault is made from the body of the reply that it spoils.

The tables are by what follows: a whole reply, the same again after a while, no whole reply, no reply in time.
`UNREAD` are done before the request is read, `WELCOMES` before there is a connection to speak of.
"""

import gzip
from collections.abc import Callable, Mapping
from types import MappingProxyType

from rig.acts import Act, after_bytes, drip, say, say_and_abort, say_and_close, say_and_reset, say_and_stall
from rig.door import Welcome, blurt, ignore, slam, slam_with_reset
from rig.wire import chunked, reply

Fault = Callable[[bytes], Act]
Faults = Mapping[str, Fault]

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
TO_THE_END = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
PAUSE = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0.02\r\n"
GARBAGE = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
_LARGE = 400_000  # more than the gateway holds: it is passed on as it comes


def whole(body: bytes) -> bytes:
    """Return a reply that says it was done."""
    return reply(b"200 OK", body, b"Content-Type: application/json")


def in_chunks(body: bytes) -> bytes:
    """Return the same in two chunks."""
    return CHUNKED + chunked(body[:2], body[2:])


def _large(body: bytes) -> bytes:
    return whole(body.ljust(_LARGE))


def _coded(coding: bytes) -> Fault:
    return lambda body: say_and_close(in_chunks(body).replace(b"chunked", coding, 1))


DONE: Faults = MappingProxyType(
    {
        "whole": lambda body: say(whole(body)),
        "whole, then closed": lambda body: say_and_close(whole(body)),
        "whole, then reset": lambda body: say_and_reset(whole(body)),
        "chunked": lambda body: say(in_chunks(body)),
        "chunked, then reset": lambda body: say_and_reset(in_chunks(body)),
        "close-delimited": lambda body: say_and_close(TO_THE_END + body),
        "after an interim reply": lambda body: say(INTERIM + whole(body)),
        "two replies to one request": lambda body: say(whole(body) + whole(b"of another")),
    }
)
REFUSED: Faults = MappingProxyType(
    {
        "bad request": lambda body: say(reply(b"400 Bad Request", body)),
        "conflict, then closed": lambda body: say_and_close(reply(b"409 Conflict", body)),
    }
)
SERVER_ERROR: Faults = MappingProxyType(
    {
        "server error": lambda body: say(reply(b"500 Internal Server Error", body)),
        "unavailable, then closed": lambda body: say_and_close(reply(b"503 Service Unavailable", body)),
    }
)
LOST: Faults = MappingProxyType(
    {
        "closed": lambda _: say_and_close(),
        "reset": lambda _: say_and_reset(),
        "half a status line": lambda body: say_and_close(whole(body)[:11]),
        "half a status line, reset": lambda body: say_and_reset(whole(body)[:11]),
        "half a header": lambda body: say_and_close(whole(body)[:28]),
        "no end of the header": lambda _: say_and_close(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"),
        "body short by a byte": lambda body: say_and_close(whole(body)[:-1]),
        "body short by a byte, reset": lambda body: say_and_reset(whole(body)[:-1]),
        "cut in a chunk": lambda body: say_and_close(in_chunks(body)[:-8]),
        "cut before the last chunk": lambda body: say_and_close(in_chunks(body)[:-5]),
        "cut in a chunk's size": lambda _: say_and_close(CHUNKED + b"5"),
        "cut between chunks, reset": lambda _: say_and_reset(CHUNKED + b"2\r\nab\r\n"),
        "cut in the last chunk": lambda body: say_and_reset(in_chunks(body)[:-2]),
        "close-delimited and reset": lambda body: say_and_reset(TO_THE_END + body[:-1]),
        "a refusal short by a byte": lambda body: say_and_close(reply(b"400 Bad Request", body)[:-1]),
        "a pause short by a byte": lambda body: say_and_close(
            PAUSE + b"Content-Length: 9\r\n\r\n" + body[:1]
        ),
        "a server error short by a byte": lambda body: say_and_reset(reply(b"502 Bad Gateway", body)[:-1]),
        "an interim reply only": lambda _: say_and_close(INTERIM),
        "an interim reply only, reset": lambda _: say_and_reset(INTERIM),
        "two lengths": lambda body: say(
            whole(body).replace(b"\r\n\r\n", b"\r\nContent-Length: 1\r\n\r\n", 1)
        ),
        "two lengths in a line": lambda _: say_and_close(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nab"
        ),
        "a blank before the colon of a length": lambda _: say_and_close(
            b"HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\nab"
        ),
        "gzip alone": _coded(b"gzip"),
        "gzip beside chunks": _coded(b"gzip, chunked"),
        "chunks that are not the last coding": _coded(b"chunked, identity"),
        "no number for a length": lambda _: say(b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}"),
        "no number for a chunk's size": lambda _: say(CHUNKED + b"zz\r\n{}\r\n0\r\n\r\n"),
        # RFC 9112 section 6.1: nobody knows what the sender means by it, however sound it looks.
        "chunks in HTTP/1.0": lambda body: say(in_chunks(body).replace(b"HTTP/1.1", b"HTTP/1.0", 1)),
        "a head without end": lambda _: say(b"HTTP/1.1 200 OK\r\n" + b"X-One-More: x\r\n" * 1000),
        "a line of 70 kB": lambda _: say(reply(b"200 OK", b"x", b"X-Long: " + b"x" * 70_000)),
        "garbage": lambda _: say(GARBAGE),
        "another protocol, closed": lambda _: say_and_close(b"SSH-2.0-OpenSSH_9.6\r\n"),
        "interim replies without end": lambda _: say(INTERIM * 200),
        "switched protocols": lambda _: say(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
    }
)
# Plain TCP has no such thing: there the same bytes are a whole reply (RFC 9112 section 6.3).
LOST_IN_TLS: Faults = MappingProxyType(
    {"close-delimited without close_notify": lambda body: say_and_abort(TO_THE_END + body[:-1])}
)
LATE: Faults = MappingProxyType(
    {
        "stalled": lambda _: say_and_stall(),
        "half a header, stalled": lambda body: say_and_stall(whole(body)[:28]),
        "half a body, stalled": lambda body: say_and_stall(whole(body)[:-1]),
        "close-delimited and left open": lambda body: say_and_stall(TO_THE_END + body),
        "a header that drips": lambda _: drip(b"HTTP/1.1 200 OK\r\n" + b"X-Slow: x\r\n" * 1000),
        "a body that drips": lambda _: drip(whole(b"x" * 90_000)),
        "interim replies that drip": lambda _: drip(INTERIM),
    }
)
# Their heads have been passed on when they break: the bot must see that they are cut.
CUT_WHILE_PASSED_ON: Faults = MappingProxyType(
    {
        "large, closed": lambda body: say_and_close(_large(body)[:-1]),
        "large, reset": lambda body: say_and_reset(_large(body)[:-1]),
        "large, stalled": lambda body: say_and_stall(_large(body)[:-1]),
        "large and close-delimited, reset": lambda body: say_and_reset(TO_THE_END + body.ljust(_LARGE)),
        "large in chunks, closed": lambda body: say_and_close(CHUNKED + chunked(body.ljust(_LARGE))[:-5]),
    }
)
UNREAD: Mapping[str, Act] = MappingProxyType(
    {
        "closed as the request comes": say_and_close(),
        "reset as the request comes": say_and_reset(),
        "closed in the middle of the request": after_bytes(40, say_and_close()),
        "reset in the middle of the request": after_bytes(40, say_and_reset()),
        "answered garbage too early": after_bytes(1, say_and_close(GARBAGE)),
    }
)
WELCOMES: Mapping[str, Welcome] = MappingProxyType(
    {"closed": slam, "reset": slam_with_reset, "garbage": blurt, "ignored": ignore}
)


def coded(code: bytes, body: bytes) -> bytes:
    """Return a whole reply whose body alone says what it means."""
    return whole(_with_code(code, body))


def coded_and_packed(code: bytes, body: bytes) -> bytes:
    """Return the same, compressed."""
    return reply(b"200 OK", gzip.compress(_with_code(code, body), mtime=0), b"Content-Encoding: gzip")


def bodies_with_codes(body: bytes) -> list[bytes]:
    """Return all that the tables below make of a body."""
    plain = [_with_code(code, body) for code in (b"0", b"51000", b"50004", b"999")]
    return plain + [gzip.compress(one, mtime=0) for one in plain]


def _with_code(code: bytes, body: bytes) -> bytes:
    return b'{"code":"%b",%b' % (code, body.removeprefix(b"{"))


# What an exchange that says everything in an HTTP 200 means by its codes: CODES is its venue's file.
CODED_DONE: Faults = MappingProxyType(
    {
        "code of success": lambda body: say(coded(b"0", body)),
        "code of success, compressed": lambda body: say(coded_and_packed(b"0", body)),
    }
)
CODED_REFUSED: Faults = MappingProxyType(
    {
        "code of a refusal": lambda body: say(coded(b"51000", body)),
        "code of a refusal, compressed, then closed": lambda body: say_and_close(
            coded_and_packed(b"51000", body)
        ),
        "a refusal in a server error": lambda body: say(
            reply(b"500 Internal Server Error", _with_code(b"51000", body))
        ),
    }
)
CODED_UNKNOWN: Faults = MappingProxyType(
    {
        "code of a timeout": lambda body: say(coded(b"50004", body)),
        "code that no rule has": lambda body: say(coded(b"999", body)),
        "code of a timeout, compressed": lambda body: say(coded_and_packed(b"50004", body)),
    }
)
CODED_LOST: Faults = MappingProxyType(
    {
        "code of a pause, short by a byte": lambda body: say_and_close(coded(b"50011", body)[:-1]),
        "code of a timestamp, short by a byte, reset": lambda body: say_and_reset(coded(b"50102", body)[:-1]),
        "code of success, compressed and cut": lambda body: say_and_close(coded_and_packed(b"0", body)[:-1]),
    }
)
CODES = """
name = "coded"
title = "An exchange that says everything in an HTTP 200"
prefix = "/v1/trade"
words = "/msg"

[signing]
recv_window = "5000"
message = "{timestamp}{method}{path}{body}"

[signing.headers]
X-SERVICE-APIKEY = "{api_key}"
X-SERVICE-TIMESTAMP = "{timestamp}"
X-SERVICE-SIGNATURE = "{signature}"

[reads]
signed = "/v1/trade/symbols/list"

[clock]
path = "/v1/trade/time"

[[replies]]
at = "/code"
is = ["0"]
means = "done"

[[replies]]
at = "/msg"
contains = ["banned until"]
finds = { until = 'banned until (\\d{13})' }
means = "banned"
kind = "banned"

[[replies]]
at = "/code"
is = ["50111"]
means = "key"
kind = "key_invalid"

[[replies]]
at = "/code"
is = ["50011"]
means = "limited"
kind = "rate_limited"

[[replies]]
at = "/code"
is = ["50013"]
means = "banned"
kind = "banned"

[[replies]]
at = "/code"
is = ["50102"]
means = "timestamp"
kind = "timestamp_outside"

[[replies]]
at = "/code"
begins = ["51"]
means = "refused"
kind = "order_refused"

[[replies]]
at = "/code"
not = ["0"]
means = "unknown"
kind = "maybe_executed"
"""


def pause_by_code(code: bytes) -> Act:
    """Refuse for the moment, in an HTTP 200."""
    return say(coded(code, b'{"msg":"Too Many Requests"}'))


def timestamp_refusal_by_code() -> Act:
    """Refuse for the timestamp, in an HTTP 200."""
    return say(coded(b"50102", b'{"msg":"Timestamp request expired"}'))


def is_refusal_for_now(status: int, body: bytes) -> bool:
    """Ask whether a reply is one of those that refuse for the moment, or for the timestamp."""
    return status in (401, 429) or body.startswith(
        (b'{"code":"50011"', b'{"code":"50013"', b'{"code":"50102"')
    )


def pause(retry_after: bytes = b"0.02") -> Act:
    """Refuse for the moment."""
    return say(reply(b"429 Too Many Requests", b"{}", b"Retry-After: " + retry_after))


def timestamp_refusal(now_ms: int) -> Act:
    """Refuse for the timestamp (spec.md, Authentication)."""
    detail = b'{"detail":"Timestamp outside recv_window (5000ms). Server time: %d"}' % now_ms
    return say(reply(b"401 Unauthorized", detail, b"Content-Type: application/json"))
