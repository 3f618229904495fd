"""What the gateway refuses: reason, problem document, no byte upstream, and the next one is served."""

import base64
import json
from datetime import datetime
from http import HTTPStatus
from typing import Any

import pytest

from rig.bot import Reply, request
from rig.station import ENVIRON, KEY, Station, running_station
from rig.upstream import Upstream

GET, POST = b"GET", b"POST"
ORDER = b"/v1/trade/order"
MEMBERS = {"type", "title", "status", "detail", "timestamp", "reason", "request_id"}


def line(first: bytes, *fields: bytes, body: bytes = b"") -> bytes:
    """Write a request whose first line is exactly this."""
    return b"\r\n".join((first, b"Host: localhost", *fields)) + b"\r\n\r\n" + body


def check_problem(answer: Reply, status: int, reason: str) -> None:
    """Check all that docs/replies.md says of a reply that the gateway makes itself."""
    assert answer.is_whole
    assert (answer.status, answer.reason, answer.outcome) == (status, reason, "not_sent"), answer.raw
    assert (answer.attempts, answer.text("X-Gateway-Queue-Ms")) == (0, "0")
    assert answer.text("X-Gateway-Request-Id")
    assert answer.text("Content-Type") == "application/problem+json"
    names = [name.lower() for name, _ in answer.fields]
    assert len(names) == len(set(names))
    assert not any(name.startswith(b"access-control-") for name in names)
    document = answer.document()
    assert set(document) == MEMBERS
    assert (document["status"], document["reason"]) == (status, reason)
    assert document["request_id"] == answer.text("X-Gateway-Request-Id")
    assert document["title"]
    assert document["detail"]
    assert datetime.fromisoformat(document["timestamp"]).tzinfo is not None


FRAMED_WRONGLY = b"POST /v1/trade/order HTTP/1.1\r\nHost: localhost\r\n%b\r\n\r\n%b"

# name -> raw request, status, reason
REFUSED: dict[str, tuple[bytes, int, str]] = {
    # Who asks, and by which name.
    "no Host": (b"GET /v1/trade/x HTTP/1.1\r\n\r\n", 400, "bad_request"),
    "no Host, HTTP/1.0": (b"GET /v1/trade/x HTTP/1.0\r\n\r\n", 400, "bad_request"),
    "two Hosts": (line(b"GET /v1/trade/x HTTP/1.1", b"Host: localhost"), 400, "bad_request"),
    "another Host": (b"GET /v1/trade/x HTTP/1.1\r\nHost: evil.com\r\n\r\n", 421, "host_refused"),
    "a Host that begins alike": (
        b"GET /v1/trade/x HTTP/1.1\r\nHost: localhost.evil.com\r\n\r\n",
        421,
        "host_refused",
    ),
    "a Host with a user part": (
        b"GET /v1/trade/x HTTP/1.1\r\nHost: localhost:80@evil.com\r\n\r\n",
        421,
        "host_refused",
    ),
    "an empty Host": (b"GET /v1/trade/x HTTP/1.1\r\nHost:\r\n\r\n", 421, "host_refused"),
    "Origin": (request(POST, ORDER, b"Origin: http://localhost:8787"), 403, "browser_refused"),
    "Origin null": (request(POST, ORDER, b"Origin: null"), 403, "browser_refused"),
    "Referer": (request(GET, b"/v1/trade/x", b"referer: https://a.example/"), 403, "browser_refused"),
    "Sec-Fetch-Site": (request(GET, b"/v1/trade/x", b"Sec-Fetch-Site: none"), 403, "browser_refused"),
    "a preflight": (
        request(b"OPTIONS", ORDER, b"Origin: https://a.example", b"Access-Control-Request-Method: POST"),
        403,
        "browser_refused",
    ),
    # Methods.
    "OPTIONS": (request(b"OPTIONS", b"/v1/trade/x"), 405, "method_refused"),
    "OPTIONS *": (request(b"OPTIONS", b"*"), 405, "method_refused"),
    "TRACE": (request(b"TRACE", b"/v1/trade/x"), 405, "method_refused"),
    "PROPFIND": (request(b"PROPFIND", b"/v1/trade/x"), 405, "method_refused"),
    # Upgrades and expectations.
    "a web socket": (
        request(GET, b"/v1/trade/x", b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Key: x"),
        501,
        "upgrade_refused",
    ),
    "a web socket among others": (
        request(GET, b"/v1/trade/x", b"Connection: Upgrade", b"Upgrade: h2c, WebSocket/13"),
        501,
        "upgrade_refused",
    ),
    "an unknown expectation": (
        request(POST, ORDER, b"Expect: the-best", body=b"{}"),
        417,
        "expectation_refused",
    ),
    # Targets.
    "two slashes": (request(GET, b"//evil.com/v1/trade/x"), 400, "ambiguous_target"),
    "an empty segment": (request(GET, b"/v1//trade/x"), 400, "ambiguous_target"),
    "dots": (request(GET, b"/v1/trade/../wallet"), 400, "ambiguous_target"),
    "escaped dots": (request(GET, b"/v1/trade/%2e%2e/wallet"), 400, "ambiguous_target"),
    "dots and an escaped slash": (request(GET, b"/v1/trade/..%2fwallet"), 400, "ambiguous_target"),
    "dots and parameters": (request(GET, b"/v1/trade/..;/wallet"), 400, "ambiguous_target"),
    "an escaped slash": (request(GET, b"/v1%2Ftrade/x"), 400, "ambiguous_target"),
    "an escaped NUL": (request(GET, b"/v1/trade/x%00"), 400, "ambiguous_target"),
    "an escaped NUL in the query": (request(GET, b"/v1/trade/x?a=%00"), 400, "ambiguous_target"),
    "an escaped letter": (request(GET, b"/v1/trade/%6Frder"), 400, "ambiguous_target"),
    "an escape of an escape": (request(GET, b"/v1/trade/x%252F"), 400, "ambiguous_target"),
    "half an escape": (request(GET, b"/v1/trade/x%2"), 400, "ambiguous_target"),
    "half an escape in the query": (request(GET, b"/v1/trade/x?a=%"), 400, "ambiguous_target"),
    "no escape": (request(GET, b"/v1/trade/x%zz"), 400, "ambiguous_target"),
    "overlong UTF-8": (request(GET, b"/v1/trade/%C0%AF"), 400, "ambiguous_target"),
    "an escape of 16 bits": (request(GET, b"/v1/trade/%u002F"), 400, "ambiguous_target"),
    "a backslash": (request(GET, b"/v1/trade\\x"), 400, "ambiguous_target"),
    "a bare question mark": (request(GET, b"/v1/trade/x?"), 400, "ambiguous_target"),
    "braces": (request(GET, b"/v1/trade/{id}"), 400, "ambiguous_target"),
    "quotes in the query": (request(GET, b'/v1/trade/x?q="a"'), 400, "ambiguous_target"),
    "an absolute target": (request(GET, b"http://evil.com/v1/trade/x"), 400, "ambiguous_target"),
    "an absolute target of ours": (request(GET, b"http://localhost/v1/trade/x"), 400, "ambiguous_target"),
    "outside": (request(GET, b"/v1/wallet"), 404, "outside_prefix"),
    "outside, upper case": (request(GET, b"/V1/TRADE/x"), 404, "outside_prefix"),
    "outside, longer": (request(GET, b"/v1/traders/x"), 404, "outside_prefix"),
    "the prefix without a slash": (request(GET, b"/v1/trade"), 404, "outside_prefix"),
    "the root": (request(GET, b"/"), 404, "outside_prefix"),
    # What the exchange or the configuration does not allow.
    "create a key": (request(POST, b"/v1/trade/api-keys", body=b"{}"), 403, "app_only"),
    "revoke all keys": (request(b"DELETE", b"/v1/trade/api-keys/all"), 403, "app_only"),
    "the handshake": (request(POST, b"/v1/trade/user/handshake", body=b"{}"), 403, "app_only"),
    "list the keys": (request(GET, b"/v1/trade/api-keys"), 403, "bot_forbidden"),
    "another key": (request(GET, b"/v1/trade/x", b"X-Gateway-Key: other"), 403, "bot_forbidden"),
    "a deadline that is no number": (
        request(GET, b"/v1/trade/x", b"X-Gateway-Deadline-Ms: soon"),
        400,
        "bad_request",
    ),
    "two deadlines": (
        request(GET, b"/v1/trade/x", b"X-Gateway-Deadline-Ms: 5", b"x-gateway-deadline-ms: 9"),
        400,
        "bad_request",
    ),
    # Sizes.
    "a body of 5 MB": (request(POST, ORDER, b"Content-Length: 5000000"), 413, "body_too_large"),
    "a field of 20 kB": (
        request(GET, b"/v1/trade/x", b"X-Long: " + b"x" * 20_000),
        431,
        "headers_too_large",
    ),
    "a name of 20 kB": (request(GET, b"/v1/trade/x", b"X" * 20_000 + b": 1"), 431, "headers_too_large"),
    "a target of 20 kB": (request(GET, b"/v1/trade/" + b"x" * 20_000), 431, "headers_too_large"),
    "200 fields": (request(GET, b"/v1/trade/x", *[b"X-A: 1"] * 200), 431, "headers_too_large"),
    # Framing.
    "length and chunked": (
        FRAMED_WRONGLY % (b"Content-Length: 2\r\nTransfer-Encoding: chunked", b"2\r\n{}\r\n0\r\n\r\n"),
        400,
        "bad_request",
    ),
    "chunked and length": (
        FRAMED_WRONGLY % (b"Transfer-Encoding: chunked\r\nContent-Length: 2", b"2\r\n{}\r\n0\r\n\r\n"),
        400,
        "bad_request",
    ),
    "two lengths": (FRAMED_WRONGLY % (b"Content-Length: 2\r\nContent-Length: 2", b"{}"), 400, "bad_request"),
    "a list of lengths": (FRAMED_WRONGLY % (b"Content-Length: 2, 2", b"{}"), 400, "bad_request"),
    "a signed length": (FRAMED_WRONGLY % (b"Content-Length: +2", b"{}"), 400, "bad_request"),
    "a negative length": (FRAMED_WRONGLY % (b"Content-Length: -2", b"{}"), 400, "bad_request"),
    "a hexadecimal length": (FRAMED_WRONGLY % (b"Content-Length: 0x2", b"{}"), 400, "bad_request"),
    "an empty length": (FRAMED_WRONGLY % (b"Content-Length:", b""), 400, "bad_request"),
    "a length with an underscore": (FRAMED_WRONGLY % (b"Content-Length: 1_0", b"{}" * 5), 400, "bad_request"),
    "gzip, chunked": (
        FRAMED_WRONGLY % (b"Transfer-Encoding: gzip, chunked", b"0\r\n\r\n"),
        501,
        "coding_refused",
    ),
    "identity, chunked": (
        FRAMED_WRONGLY % (b"Transfer-Encoding: identity, chunked", b"0\r\n\r\n"),
        501,
        "coding_refused",
    ),
    "identity": (FRAMED_WRONGLY % (b"Transfer-Encoding: identity", b""), 400, "bad_request"),
    "chunked twice": (
        FRAMED_WRONGLY % (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"0\r\n\r\n"),
        400,
        "bad_request",
    ),
    "a chunk size that is none": (
        FRAMED_WRONGLY % (b"Transfer-Encoding: chunked", b"zz\r\n{}\r\n0\r\n\r\n"),
        400,
        "bad_request",
    ),
    "a chunk longer than its size": (
        FRAMED_WRONGLY % (b"Transfer-Encoding: chunked", b"1\r\n{}\r\n0\r\n\r\n"),
        400,
        "bad_request",
    ),
    # What is not HTTP/1.1.
    "HTTP/0.9": (line(b"GET /v1/trade/x HTTP/0.9"), 400, "bad_request"),
    "HTTP/2.0": (line(b"GET /v1/trade/x HTTP/2.0"), 400, "bad_request"),
    "the HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "bad_request"),
    "no version": (b"GET /v1/trade/x\r\n\r\n", 400, "bad_request"),
    "lower-case version": (line(b"GET /v1/trade/x http/1.1"), 400, "bad_request"),
    "a tab": (line(b"GET\t/v1/trade/x HTTP/1.1"), 400, "bad_request"),
    "a space in the target": (line(b"GET /v1/trade/x y HTTP/1.1"), 400, "bad_request"),
    "a lower-case method": (line(b"get /v1/trade/x HTTP/1.1"), 400, "bad_request"),
    "a space before the colon": (line(b"GET /v1/trade/x HTTP/1.1", b"X-A : 1"), 400, "bad_request"),
    "a folded field": (line(b"GET /v1/trade/x HTTP/1.1", b"X-A: 1", b" 2"), 400, "bad_request"),
    "a field without a name": (line(b"GET /v1/trade/x HTTP/1.1", b": 1"), 400, "bad_request"),
    "a field without a colon": (line(b"GET /v1/trade/x HTTP/1.1", b"X-A"), 400, "bad_request"),
    "a NUL in a value": (line(b"GET /v1/trade/x HTTP/1.1", b"X-A: 1\0"), 400, "bad_request"),
    "a bare CR in a value": (line(b"GET /v1/trade/x HTTP/1.1", b"X-A: 1\rX-B: 2"), 400, "bad_request"),
    "line ends without CR": (b"GET /v1/trade/x HTTP/1.1\nHost: localhost\n\n", 400, "bad_request"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 32 + b"\r\n\r\n", 400, "bad_request"),
    "a mail greeting": (b"EHLO localhost\r\n\r\n", 400, "bad_request"),
}


@pytest.mark.parametrize(("raw", "status", "reason"), REFUSED.values(), ids=REFUSED)
async def test_a_request_is_refused(station: Station, raw: bytes, status: int, reason: str) -> None:
    async with station.bot() as bot:
        answer = await bot.ask(raw)
        check_problem(answer, status, reason)
        outcome = await station.outcomes.until(1)
        assert (outcome.status, outcome.reason, outcome.attempts) == (status, reason, 0)
        assert outcome.request_id == answer.text("X-Gateway-Request-Id")
        if answer.closes:
            assert await bot.rest() == b""
        else:
            assert (await bot.ask(request())).status == 200
    assert (await station.ask(request())).status == 200
    assert {received.target for received in station.upstream.received} == {b"/v1/trade/user/0xabc/positions"}


RAW_TARGETS = {
    "control character": b"/v1/trade/\x01",
    "DEL": b"/v1/trade/\x7f",
    "UTF-8": "/v1/trade/é".encode(),
    "Latin-1": b"/v1/trade/\xe9",
    "a fragment": b"/v1/trade/x#y",
    "no slash": b"v1/trade/x",
    "authority": b"127.0.0.1:80",
    "a star": b"*",
}


@pytest.mark.parametrize("target", RAW_TARGETS.values(), ids=RAW_TARGETS)
async def test_a_target_that_is_none_is_refused_by_parser_or_rule(station: Station, target: bytes) -> None:
    answer = await station.ask(request(GET, target))
    assert answer.reason in ("bad_request", "ambiguous_target")
    check_problem(answer, 400, answer.reason or "")
    assert station.upstream.received == []


@pytest.mark.parametrize("target", [b"127.0.0.1:80", b"/v1/trade/x"], ids=bytes.decode)
async def test_a_tunnel_is_refused(station: Station, target: bytes) -> None:
    answer = await station.ask(request(b"CONNECT", target))
    assert answer.reason in ("bad_request", "method_refused")
    check_problem(answer, answer.status, answer.reason or "")
    assert station.upstream.received == []


async def test_900_kilobytes_of_headers(station: Station) -> None:
    async with station.bot() as bot:
        await bot.send(request(GET, b"/v1/trade/x", *[b"X-A: " + b"x" * 1000] * 900))
        answer = await bot.reply()
        check_problem(answer, 431, "headers_too_large")
    assert station.upstream.received == []


_TOO_MUCH = b"".join(b"X-%d: " % number + b"x" * 1000 + b"\r\n" for number in range(66))
WITHOUT_END = {
    "fields": (request(GET, b"/v1/trade/x")[:-2], GET, True),
    "fields behind a request": (request() + request(GET, b"/v1/trade/x")[:-2], GET, True),
    "trailers": (request(POST, ORDER, b"Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n", POST, True),
    "empty lines": (b"", GET, False),
}


@pytest.mark.parametrize("size", [1 << 20, 1000], ids=["at once", "in pieces"])
@pytest.mark.parametrize(("start", "method", "has_fields"), WITHOUT_END.values(), ids=WITHOUT_END)
async def test_a_head_without_end_is_refused_as_soon_as_it_is_too_large(
    station: Station, start: bytes, method: bytes, size: int, *, has_fields: bool
) -> None:
    """Its sender is not known before its end, and may be one of many."""
    async with station.bot() as bot:
        await bot.send(start)
        if start.startswith(request()):
            assert (await bot.reply()).status == 200
        elif method == POST:
            await station.until(lambda: station.gateway.handler.inflight == 1)
        await bot.send_in_pieces(_TOO_MUCH if has_fields else b"\r\n" * 33_000, size)
        check_problem(await bot.reply(method), 431, "headers_too_large")
    assert {received.target for received in station.upstream.received} <= {b"/v1/trade/user/0xabc/positions"}


async def test_large_requests_in_a_row_are_all_answered(station: Station) -> None:
    """Though no more is read while so much waits."""
    mark = b"X-Mark: " + b"x" * 7000
    raw = [request(POST, b"/v1/trade/%d" % number, mark, body=b"x" * 9000) for number in range(12)]
    async with station.bot() as bot:
        await bot.send(b"".join(raw))
        for _ in raw:
            assert (await bot.reply(POST)).status == 200
    targets = [received.target for received in station.upstream.received]
    assert targets == [b"/v1/trade/%d" % number for number in range(12)]


async def test_a_strangers_request_is_the_last_of_its_connection(upstream: Upstream) -> None:
    """What comes behind it is not even read: it need not be kept until the reply may be given."""
    token = b"Authorization: Bearer token-of-grid"
    environ = {**ENVIRON, "TOKEN": "token-of-grid"}
    async with (
        running_station(upstream, environ, bots={"grid": {"token": "env:TOKEN"}}) as station,
        station.bot() as bot,
    ):
        assert (await bot.ask(request(GET, b"/v1/trade/x", token))).status == 200
        await bot.send(request(POST, ORDER, body=b"{}") + request(POST, ORDER, token, body=b"{}"))
        answer = await bot.reply(POST)
        check_problem(answer, 401, "bot_unauthenticated")
        assert answer.closes
        assert await bot.rest() == b""
        assert [received.target for received in upstream.received] == [b"/v1/trade/x"]


async def test_long_chunk_extensions_do_not_pass(station: Station) -> None:
    raw = request(POST, ORDER, b"Transfer-Encoding: chunked") + b"2;" + b"x" * 20_000 + b"\r\n{}\r\n0\r\n\r\n"
    answer = await station.ask(raw)
    for received in station.upstream.received:
        assert received.body == b"{}"
        assert len(received.raw) < 1000
    assert answer.status in (200, 400, 431)


async def test_head_is_refused_without_a_body(station: Station) -> None:
    async with station.bot() as bot:
        answer = await bot.ask(request(b"HEAD", b"/v1/wallet"))
        assert (answer.status, answer.reason, answer.ends_by) == (404, "outside_prefix", "none")
        assert (await bot.ask(request())).status == 200


async def test_two_spaces_are_read_as_one(station: Station) -> None:
    assert (await station.ask(line(b"GET  /v1/trade/x HTTP/1.1"))).status == 200
    assert station.upstream.received[0].raw.startswith(b"GET /v1/trade/x HTTP/1.1\r\n")


BAD_ENDS = {
    "a chunk size that is none": (b"zz\r\n", 400, "bad_request"),
    "a chunk without its end": (b"2\r\n{}}\r\n0\r\n\r\n", 400, "bad_request"),
    "a trailer that is no field": (b"2\r\n{}\r\n0\r\nbad trailer\r\n\r\n", 400, "bad_request"),
    "a long trailer": (b"0\r\nX-A: " + b"x" * 20_000 + b"\r\n\r\n", 431, "headers_too_large"),
}


@pytest.mark.parametrize(("end", "status", "reason"), BAD_ENDS.values(), ids=BAD_ENDS)
async def test_a_bad_chunk_that_comes_later(station: Station, end: bytes, status: int, reason: str) -> None:
    """It is answered when it comes, once, and not when the time for the body is over."""
    async with station.bot() as bot:
        await bot.send(request(POST, ORDER, b"Transfer-Encoding: chunked"))
        await station.until(lambda: station.gateway.handler.inflight == 1)
        await bot.send(end)
        check_problem(await bot.reply(POST), status, reason)
        assert await bot.rest() == b""
    assert station.upstream.received == []


@pytest.mark.parametrize(("offer", "status"), [(b"h2c", 200), (b"websocket", 501)])
async def test_what_follows_an_offer_is_answered(station: Station, offer: bytes, status: int) -> None:
    """A request in one piece with the end of a body whose head offered another protocol."""
    async with station.bot() as bot:
        head = request(POST, ORDER, b"Connection: Upgrade", b"Upgrade: " + offer, b"Content-Length: 2")
        await bot.send(head)
        await station.until(lambda: bool(station.gateway.server.connections))
        await station.until(lambda: station.gateway.handler.inflight == 1 or bool(station.outcomes.all))
        await bot.send(b"{}" + request())
        assert (await bot.reply(POST)).status == status
        if status == HTTPStatus.OK:
            assert (await bot.reply()).status == status


async def test_a_body_that_ends_too_soon(station: Station) -> None:
    async with station.bot() as bot:
        await bot.send(request(POST, ORDER, b"Content-Length: 10") + b"{")
        await station.until(lambda: station.gateway.handler.inflight == 1)
        bot.half_close()
        await bot.rest()
    outcome = await station.outcomes.until(1)
    assert outcome.conclusion == "not_sent"
    assert station.upstream.received == []


async def test_garbage_behind_a_good_request_is_no_part_of_it(station: Station) -> None:
    async with station.bot() as bot:
        assert (await bot.ask(request())).status == 200
        check_problem(await bot.ask(b"garbage\r\n\r\n"), 400, "bad_request")
        assert await bot.rest() == b""
    assert len(station.upstream.received) == 1


# What refusals call for.

CALLED_FOR = {
    "bot_unauthenticated": (request(), "WWW-Authenticate", 'Basic realm="sealgate"'),
    "method_refused": (request(b"TRACE", b"/v1/trade/x"), "Allow", "GET, HEAD, POST, PUT, PATCH, DELETE"),
}
BOTS: dict[str, Any] = {
    "bots": {
        "reader": {"token": "env:READER", "may": ["read"]},
        "trader": {"token": "env:TRADER", "may": ["trade"], "keys": ["main", "other"]},
    },
    "keys": {"main": KEY, "other": {**KEY, "api_key": "ak-public-2"}},
}
BOTS["bots"]["reader"]["key"] = "main"
TOKENS = {**ENVIRON, "READER": "token-of-reader", "TRADER": "token-of-trader"}


@pytest.mark.parametrize(("raw", "name", "value"), CALLED_FOR.values(), ids=CALLED_FOR)
async def test_a_refusal_brings_what_it_calls_for(
    upstream: Upstream, raw: bytes, name: str, value: str
) -> None:
    async with running_station(upstream, TOKENS, **BOTS) as station:
        assert (await station.ask(raw)).text(name) == value


def basic(name: str, token: str) -> bytes:
    return b"Authorization: Basic " + base64.b64encode(f"{name}:{token}".encode())


STRANGERS = {
    "nothing": (),
    "a token nobody has": (b"Authorization: Bearer token-of-nobody",),
    "an empty token": (b"Authorization: Bearer ",),
    "a token in another case": (b"Authorization: Bearer TOKEN-OF-READER",),
    "the secret itself": (b"Authorization: Bearer correct horse battery staple",),
    "the token of another name": (basic("trader", "token-of-reader"),),
    "no base64": (b"Authorization: Basic !!",),
    "another scheme": (b"Authorization: Digest token-of-reader",),
}


@pytest.mark.parametrize("fields", STRANGERS.values(), ids=STRANGERS)
async def test_a_stranger_is_refused(upstream: Upstream, fields: tuple[bytes, ...]) -> None:
    async with running_station(upstream, TOKENS, **BOTS) as station:
        check_problem(await station.ask(request(GET, b"/v1/trade/x", *fields)), 401, "bot_unauthenticated")
        assert (await station.outcomes.until(1)).bot is None
    assert upstream.received == []


READER, TRADER = b"Authorization: Bearer token-of-reader", b"authorization: bearer token-of-trader"
KNOWN = {
    "by token": (request(GET, b"/v1/trade/x", READER), "reader", "main"),
    "by name and token": (request(GET, b"/v1/trade/x", basic("reader", "token-of-reader")), "reader", "main"),
    "a trader": (request(POST, ORDER, TRADER, body=b"{}"), "trader", "main"),
    "with another key": (
        request(POST, ORDER, TRADER, b"X-Gateway-Key: other", body=b"{}"),
        "trader",
        "other",
    ),
}


@pytest.mark.parametrize(("raw", "bot", "key"), KNOWN.values(), ids=KNOWN)
async def test_a_known_bot_is_served(upstream: Upstream, raw: bytes, bot: str, key: str) -> None:
    async with running_station(upstream, TOKENS, **BOTS) as station:
        assert (await station.ask(raw)).status == 200
        outcome = await station.outcomes.until(1)
    assert (outcome.bot, outcome.key) == (bot, key)
    expected = {"main": b"ak-public-1", "other": b"ak-public-2"}[key]
    assert upstream.received[0].head.value(b"X-SERVICE-APIKEY") == expected
    assert b"token-of" not in upstream.received[0].raw


FORBIDDEN = {
    "a reader that trades": request(POST, ORDER, READER, body=b"{}"),
    "a trader that reads": request(GET, b"/v1/trade/x", TRADER),
    "a reader with another key": request(GET, b"/v1/trade/x", READER, b"X-Gateway-Key: other"),
    "a reader of keys": request(GET, b"/v1/trade/api-keys", READER),
}


@pytest.mark.parametrize("raw", FORBIDDEN.values(), ids=FORBIDDEN)
async def test_a_known_bot_is_held_to_what_it_may(upstream: Upstream, raw: bytes) -> None:
    async with running_station(upstream, TOKENS, **BOTS) as station:
        check_problem(await station.ask(raw), 403, "bot_forbidden")
    assert upstream.received == []


# The trace of which a request is a part.

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACES = {
    "of today": ([f"00-{TRACE}-00f067aa0ba902b7-01"], TRACE),
    "of a later version": ([f"cc-{TRACE}-00f067aa0ba902b7-01-more"], TRACE),
    "of a version that never comes": ([f"ff-{TRACE}-00f067aa0ba902b7-01"], None),
    "all zeros": ([f"00-{'0' * 32}-00f067aa0ba902b7-01"], None),
    "something else": (['"><script>'], None),
    "two of them": ([f"00-{TRACE}-00f067aa0ba902b7-01"] * 2, None),
}


@pytest.mark.parametrize(("fields", "trace_id"), TRACES.values(), ids=TRACES)
async def test_a_trace_passes_on_and_is_known_by_its_id(
    station: Station, fields: list[str], trace_id: str | None
) -> None:
    lines = [f"traceparent: {field}".encode() for field in fields]
    assert (await station.ask(request(GET, b"/v1/trade/x", *lines))).status == 200
    received = await station.upstream.until_received(1)
    sent = [value.decode() for name, value in received.fields if name.lower() == b"traceparent"]
    assert sent == fields
    assert (await station.outcomes.until(1)).trace_id == trace_id


async def test_each_request_has_its_own_trace(station: Station) -> None:
    """Also one that is like an earlier one in all else."""
    ids = [f"{number:032x}" for number in (1, 2, 1)]
    async with station.bot() as bot:
        for number in ids:
            await bot.ask(
                request(GET, b"/v1/trade/x", f"traceparent: 00-{number}-00f067aa0ba902b7-01".encode())
            )
        await bot.ask(request(GET, b"/v1/trade/x"))
    assert (await station.outcomes.until(4)).trace_id is None
    assert [outcome.trace_id for outcome in station.outcomes.all[:3]] == ids


# The bot's own id for a request.

IDS = {
    "taken over": ("grid.7_A-9", True),
    "as long as allowed": ("x" * 64, True),
    "too long": ("x" * 65, False),
    "empty": ("", False),
    "other characters": ('"><script>', False),
}


@pytest.mark.parametrize(("name", "is_taken"), IDS.values(), ids=IDS)
async def test_a_bots_own_request_id(station: Station, name: str, *, is_taken: bool) -> None:
    field = f"X-Gateway-Request-Id: {name}".encode()
    for target in (b"/v1/trade/x", b"/v1/wallet"):
        answer = await station.ask(request(GET, target, field))
        assert (answer.text("X-Gateway-Request-Id") == name) == is_taken
        assert answer.text("X-Gateway-Request-Id")
    assert json.loads(answer.body)["request_id"] == answer.text("X-Gateway-Request-Id")
    assert [(outcome.request_id == name) for outcome in station.outcomes.all] == [is_taken, is_taken]
