"""A corpus of raw bad requests: no byte upstream, one reply or a closed connection, the next one is served.

The cases are tables in `rig/bad_requests/`. Each is sent whole, and one of each kind behind a good one.
tests/http/test_parser.py reads them in pieces: where a piece ends must not change the answer.
"""

import contextlib
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from rig.bad_requests import framing, heads, targets
from rig.bad_requests.case import ORDER, Bad, get, in_chunks, lines, post
from rig.bot import Bot, Reply, check_problem, request
from rig.station import Station, running_station
from rig.upstream import running_upstream

CASES: dict[str, Bad] = targets.CASES | framing.CASES | heads.CASES
GOOD = request()
GOOD_TARGET = b"/v1/trade/user/0xabc/positions"
BEHIND = {(name.partition(":")[0], bad.status, bad.reason): name for name, bad in CASES.items()}
SEAL = [b"X-SERVICE-APIKEY", b"X-SERVICE-TIMESTAMP", b"X-SERVICE-SIGNATURE"]
SHORT_S = 0.1

# One gateway has to bear them all: to start one for each costs more than what is looked at.
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def one_station() -> AsyncIterator[Station]:
    async with running_upstream() as upstream, running_station(upstream) as station:
        yield station


@pytest.fixture
def station(one_station: Station) -> Station:
    one_station.upstream.received.clear()
    one_station.outcomes.all.clear()
    return one_station


def check_refused(answer: Reply, bad: Bad) -> None:
    assert (answer.status, answer.reason, answer.outcome) == (bad.status, bad.reason, "not_sent"), answer.raw
    assert answer.is_whole


def is_recorded(station: Station, answer: Reply, bad: Bad) -> bool:
    station.gateway.reporter.flush()
    found = [one for one in station.outcomes.all if one.request_id == answer.text("X-Gateway-Request-Id")]
    return [(one.status, one.reason, one.attempts) for one in found] == [(bad.status, bad.reason, 0)]


async def check_end(bot: Bot, answer: Reply) -> None:
    """Nothing more comes: the connection is closed, or serves the next request."""
    if answer.closes:
        with contextlib.suppress(ConnectionError):
            assert await bot.rest() == b""
    else:
        with contextlib.suppress(ConnectionError):
            await check_next(bot)


async def check_next(bot: Bot) -> None:
    first = await bot.ask(GOOD)
    assert first.status == 200


@pytest.mark.parametrize("bad", CASES.values(), ids=CASES)
async def test_a_bad_request_is_answered_once_and_goes_nowhere(station: Station, bad: Bad) -> None:
    async with station.bot() as bot:
        await bot.send(bad.raw)
        answer = await bot.reply(bad.method)
        check_problem(answer, bad.status, bad.reason)
        await check_end(bot, answer)
    await station.until(lambda: is_recorded(station, answer, bad))
    assert (await station.ask(GOOD)).status == 200
    assert {received.target for received in station.upstream.received} == {GOOD_TARGET}


@pytest.mark.parametrize("name", BEHIND.values())
async def test_a_bad_request_right_behind_a_good_one(station: Station, name: str) -> None:
    """In one piece: what the parser refuses takes the good one with it, unsent, and is told of it once."""
    bad = CASES[name]
    async with station.bot() as bot:
        await bot.send(GOOD + bad.raw)
        first = await bot.reply()
        if first.status == 200:
            check_refused(await bot.reply(bad.method), bad)
        else:
            check_refused(first, bad)
            assert first.closes
            with contextlib.suppress(ConnectionError):
                assert await bot.rest() == b""
    sent = [GOOD_TARGET] if first.status == 200 else []
    assert [received.target for received in station.upstream.received] == sent


UNFINISHED = {
    "half a line": b"GET /v1/tr",
    "no empty line": b"GET /v1/trade/x HTTP/1.1\r\nHost: localhost\r\n",
    "half a field": b"GET /v1/trade/x HTTP/1.1\r\nHost: loc",
    "line without version, as HTTP/0.9 had it": b"GET /v1/trade/x\r\n",
    "empty lines": b"\r\n\r\n",
    "no body": post(b"Content-Length: 2"),
    "half a body": post(b"Content-Length: 2", body=b"{"),
    "body of another length": post(b"Content-Length: 3", body=b"{}"),
    "no chunk": in_chunks(b""),
    "no last chunk": in_chunks(b"2\r\n{}\r\n"),
    "no end of the trailers": in_chunks(b"2\r\n{}\r\n0\r\n"),
    "chunk of 2^60": in_chunks(b"fffffffffffffff\r\n{}\r\n0\r\n\r\n"),
}


@pytest.mark.parametrize("raw", UNFINISHED.values(), ids=UNFINISHED)
async def test_what_does_not_end_is_given_up(station: Station, raw: bytes) -> None:
    limits = {"head_timeout": SHORT_S, "body_timeout": SHORT_S}
    async with running_station(station.upstream, listen=limits) as impatient, impatient.bot() as bot:
        check_refused(await bot.ask(raw), Bad(raw, 408, "body_timeout"))
        assert await bot.rest() == b""
        assert (await impatient.ask(GOOD)).status == 200
    assert [received.target for received in station.upstream.received] == [GOOD_TARGET]


@pytest.mark.parametrize("raw", UNFINISHED.values(), ids=UNFINISHED)
async def test_what_is_broken_off_goes_nowhere(station: Station, raw: bytes) -> None:
    async with station.bot() as bot:
        await bot.send(raw)
        bot.half_close()
        assert await bot.rest() == b""
    assert (await station.ask(GOOD)).status == 200
    assert [received.target for received in station.upstream.received] == [GOOD_TARGET]


# Odd, but with one reading: served, and nothing odd of it arrives.

_X = b"/v1/trade/x"
HARMLESS = {
    "two spaces before the target": lines(b"GET  /v1/trade/x HTTP/1.1", b"Host: localhost"),
    "two spaces before the version": lines(b"GET /v1/trade/x  HTTP/1.1", b"Host: localhost"),
    "empty lines first": b"\r\n\r\n" + get(_X),
    "RTSP for HTTP": lines(b"GET /v1/trade/x RTSP/1.0", b"Host: localhost"),
    "tab before the Host": lines(b"GET /v1/trade/x HTTP/1.1", b"Host:\tlocalhost \t"),
    "Connection names the seal": get(
        _X, b"Connection: X-SERVICE-SIGNATURE, x-service-apikey, host, content-length"
    ),
    "our headers in all spellings": get(
        _X,
        b"X-SERVICE-SIGNATURE: 00",
        b"x-service-apikey: mine",
        b"X_Service_Timestamp: 0",
        b"x-Service-New: 1",
    ),
    "our headers with other marks": get(
        _X,
        b"X.Service.ApiKey: mine",
        b"X+SERVICE+SIGNATURE: 00",
        b"x~service|timestamp: 0",
        b"X.Gateway.Outcome: done",
        b"X.HTTP.Method.Override: DELETE",
        b"x!method'override: DELETE",
        b"X*Forwarded%For: 10.0.0.1",
        b"X#Original^URL: /v1/wallet",
    ),
    "the gateway's headers": get(_X, b"X-Gateway-Outcome: done", b"x_gateway_error: draining"),
    "method overrides": get(
        _X,
        b"X-HTTP-Method-Override: DELETE",
        b"X-HTTP-Method: DELETE",
        b"X-Method-Override: DELETE",
        b"X-Original-Method: DELETE",
    ),
    "URL overrides": get(
        _X,
        b"X-Original-URL: /v1/wallet",
        b"X-Rewrite-URL: /v1/wallet",
        b"X-HTTP-Path-Override: /v1/wallet",
        b"X-Original-URI: /v1/wallet",
        b"X-Envoy-Original-Path: /v1/wallet",
        b"X-Accel-Redirect: /v1/wallet",
    ),
    "host overrides": get(
        _X, b"X-Forwarded-Host: evil.com", b"X-Host: evil.com", b"X-Original-Host: evil.com"
    ),
    "addresses": get(
        _X,
        b"Forwarded: for=10.0.0.1",
        b"X-Forwarded: 10.0.0.1",
        b"X-Forwarded-For: 10.0.0.1",
        b"Client-IP: 10.0.0.1",
        b"True-Client-IP: 10.0.0.1",
        b"X-Real-IP: 10.0.0.1",
        b"CF-Connecting-IP: 10.0.0.1",
    ),
    "credentials": get(
        _X,
        b"Authorization: Bearer a",
        b"Cookie: a=1",
        b"X-Passkey-Token: p",
        b"Proxy-Authorization: Basic eDp5",
    ),
    "an offer of h2c": get(
        _X, b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk"
    ),
}
HARMLESS_BODIES = {
    "length with zeros": post(b"Content-Length: 0002", body=b"{}"),
    "size with zeros": in_chunks(b"0" * 100 + b"2\r\n{}\r\n0\r\n\r\n"),
    "extension": in_chunks(b"2;a=b\r\n{}\r\n0;c\r\n\r\n"),
    "extension of 20 kB": in_chunks(b"2;" + b"x" * 20_000 + b"\r\n{}\r\n0\r\n\r\n"),
    "trailers with our names": in_chunks(
        b"2\r\n{}\r\n0\r\nX-SERVICE-APIKEY: mine\r\nX-Extra: 1\r\n\r\n", b"Trailer: X-SERVICE-APIKEY"
    ),
    "trailers with our names in other marks": in_chunks(
        b"2\r\n{}\r\n0\r\nX.Service.ApiKey: mine\r\nX+HTTP+Method: DELETE\r\n\r\n",
        b"Trailer: X.Service.ApiKey",
    ),
    "chunks in HTTP/1.0": in_chunks(b"2\r\n{}\r\n0\r\n\r\n").replace(b"HTTP/1.1", b"HTTP/1.0"),
}


@pytest.mark.parametrize("raw", HARMLESS.values(), ids=HARMLESS)
async def test_what_is_odd_but_plain_arrives_plain(station: Station, raw: bytes) -> None:
    assert (await station.ask(raw)).status == 200
    (received,) = station.upstream.received
    assert received.raw.startswith(b"GET /v1/trade/x HTTP/1.1\r\n")
    assert [name for name, _ in received.fields] == [b"Host", *SEAL]


@pytest.mark.parametrize("raw", HARMLESS_BODIES.values(), ids=HARMLESS_BODIES)
async def test_a_body_that_is_odd_but_plain_arrives_plain(station: Station, raw: bytes) -> None:
    async with station.bot() as bot:
        assert (await bot.ask(raw)).status == 200
    (received,) = station.upstream.received
    assert (received.method, received.target, received.body) == (b"POST", ORDER, b"{}")
    assert [name for name, _ in received.fields] == [b"Host", b"Content-Length", *SEAL]
    assert received.head.value(b"Content-Length") == b"2"


TRAILED = in_chunks(b"2\r\n{}\r\n0\r\nX-Mine: 1\r\n\r\n")


def check_no_trailer(station: Station, targets: list[bytes]) -> None:
    """Check that what was asked was sent, and no trailer in any of it."""
    received = station.upstream.received
    assert [one.target for one in received] == targets
    assert all(b"x-mine" not in one.raw.partition(b"\r\n\r\n")[0].lower() for one in received)


# What comes behind trailers. The body of one looks like its own head with the trailer in it.
BEHIND_TRAILERS = {
    "a head": GOOD,
    "a body like its head": request(
        b"POST", ORDER, body=b"\nPOST " + ORDER + b" HTTP/1.1\r\nX-Mine: 1\r\nHost: a\r\nA: 1\r\n\r\n"
    ),
    "a head with two spaces": GOOD.replace(b" ", b"  ", 1),
}


@pytest.mark.parametrize("behind", BEHIND_TRAILERS.values(), ids=BEHIND_TRAILERS)
async def test_a_trailer_gets_into_no_request_of_the_same_piece(station: Station, behind: bytes) -> None:
    async with station.bot() as bot:
        await bot.send(TRAILED + behind)
        for _ in range(2):
            assert (await bot.reply(b"POST")).status == 200
    check_no_trailer(station, [ORDER, GOOD_TARGET if behind.startswith(b"GET") else ORDER])
