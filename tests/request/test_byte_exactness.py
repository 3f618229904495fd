"""What a bot sends is what is signed and what arrives, byte for byte, and so is the reply on its way back.

Checked against a raw upstream that keeps every byte, by a signature oracle of the tests' own.
"""

import asyncio
import base64
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rig import generated, oracle
from rig.bot import Reply, request
from rig.history import check_seal
from rig.station import API_KEY, ENVIRON, KEY, SECRET, Station, running_station
from rig.upstream import Received, Upstream, Wire, say, say_and_close
from rig.wire import chunked, reply

SEAL = (b"X-SERVICE-APIKEY", b"X-SERVICE-TIMESTAMP", b"X-SERVICE-SIGNATURE")
STATES_LENGTH = (b"POST", b"PUT", b"PATCH")
FENCE = b"X-Gateway-Fence-Ms"
NOTES = (b"X-Gateway-Request-Id", b"X-Gateway-Attempts", b"X-Gateway-Queue-Ms", b"X-Gateway-Outcome")

many = settings(
    max_examples=25,
    deadline=None,
    # To shrink a case over sockets takes minutes; a failing one shows its raw bytes as it is.
    phases=(Phase.reuse, Phase.generate),
    # One gateway serves all examples, on purpose.
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)


def check_received(received: Received, case: generated.Case, authority: bytes) -> None:
    """Check that a request arrived as the bot sent it, with what the gateway adds and nothing else."""
    assert (received.method, received.target, received.body) == (case.method, case.target, case.body)
    length = ((b"Content-Length", b"%d" % len(case.body)),)
    stated = length if case.body or case.method in STATES_LENGTH else ()
    assert received.fields[:-3] == ((b"Host", authority), *case.passed, *stated)
    assert tuple(name for name, _ in received.fields[-3:]) == SEAL
    head = received.raw[: received.raw.index(b"\r\n\r\n") + 4]
    assert received.raw == head + case.body
    check_seal(received, SECRET, API_KEY)


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@many
@given(st.lists(generated.requests(), min_size=6, max_size=6), st.integers(0, 400))
async def test_any_request_arrives_as_it_was_sent(
    station: Station,
    cases: list[generated.Case],
    piece: int,
) -> None:
    """25 times six requests on one connection: one by one in pieces of any size, or (0) all at once."""
    upstream = station.upstream
    before = len(upstream.received)
    async with station.bot() as bot:
        if piece == 0:
            await bot.send(b"".join(case.raw for case in cases))
        for case in cases:
            if piece:
                await bot.send_in_pieces(case.raw, piece)
            answer = await bot.reply(case.method)
            assert (answer.status, answer.outcome) == (200, "done"), answer.raw
    received = upstream.received[before:]
    authority = f"127.0.0.1:{upstream.port}".encode()
    for arrived, case in zip(received, cases, strict=True):
        check_received(arrived, case, authority)


def check_passed_back(answer: Reply, expected: generated.Answer) -> None:
    """Check that a reply came back as the upstream wrote it, with the gateway's notes and nothing else."""
    assert answer.is_whole
    assert (answer.status, answer.phrase, answer.body) == (expected.status, expected.phrase, expected.body)
    count = len(expected.passed)
    assert answer.fields[:count] == expected.passed
    names = [name for name, _ in answer.fields[count:] if name != FENCE]
    assert (answer.head.value(FENCE) is not None) == (answer.outcome == "unknown")
    assert names == [*NOTES, *([b"Content-Length"] if expected.length is not None else [])]
    length = answer.head.value(b"Content-Length")
    assert length == (None if expected.length is None else b"%d" % expected.length)


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@many
@given(st.lists(generated.replies(), min_size=6, max_size=6))
async def test_any_reply_passes_back_as_it_was_written(
    station: Station, answers: list[generated.Answer]
) -> None:
    upstream = station.upstream
    before = len(upstream.received)
    async with station.bot() as bot:
        for expected in answers:
            upstream.answers.append((say_and_close if expected.closes else say)(expected.raw))
            check_passed_back(await bot.ask(request(expected.method)), expected)
    assert len(upstream.received) == before + len(answers)


JSON = '{"note":"Größe ✓ 🚀","size":1.10,"size":1e2}'.encode()
BODIES: dict[str, tuple[bytes, tuple[bytes, ...]]] = {
    "JSON in UTF-8": (JSON, (b"Content-Type: application/json",)),
    "all bytes": (bytes(range(256)) * 16, (b"Content-Type: application/octet-stream",)),
    "brotli in name only": (b"not brotli", (b"Content-Encoding: br",)),
    "as large as is allowed": (b"x" * 1024**2, ()),
}


@pytest.mark.parametrize("is_chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize(("body", "fields"), BODIES.values(), ids=BODIES)
async def test_a_body_is_not_touched(
    station: Station, body: bytes, fields: tuple[bytes, ...], *, is_chunked: bool
) -> None:
    if is_chunked:
        head = request(b"POST", b"/v1/trade/order", *fields, b"Transfer-Encoding: chunked")
        raw = head + chunked(body[:1], body[1:])
    else:
        raw = request(b"POST", b"/v1/trade/order", *fields, body=body)
    assert (await station.ask(raw)).status == 200
    (received,) = station.upstream.received
    assert received.body == body
    assert received.head.value(b"Content-Encoding") == (
        fields[0][18:] if b"Encoding" in b"".join(fields) else None
    )
    check_seal(received, SECRET, API_KEY)


async def test_five_megabytes_pass_where_that_is_allowed(upstream: Upstream) -> None:
    body = bytes(range(256)) * 20_000
    async with running_station(upstream, listen={"max_body": "8 MiB", "tcp": "127.0.0.1:0"}) as station:
        upstream.answers.append(say(reply(b"200 OK", body)))
        answer = await station.ask(request(b"POST", b"/v1/trade/order", body=body))
    assert answer.body == body
    assert upstream.received[0].body == body
    check_seal(upstream.received[0], SECRET, API_KEY)


# Bodies that are not sent at once, or not at all.

EXPECT = b"Expect: 100-continue"


async def test_five_megabytes_in_chunks_are_refused_while_they_are_read(station: Station) -> None:
    part = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    async with station.bot() as bot:
        await bot.send(request(b"POST", b"/v1/trade/order", b"Transfer-Encoding: chunked"))
        sending = asyncio.ensure_future(bot.send(part * 80 + b"0\r\n\r\n"))
        answer = await bot.reply(b"POST")
        assert (answer.status, answer.reason, answer.outcome) == (413, "body_too_large", "not_sent")
        await sending
    assert station.upstream.received == []
    assert (await station.ask(request())).status == 200


async def test_a_body_that_waits_for_the_100(station: Station) -> None:
    async with station.bot() as bot:
        await bot.send(request(b"POST", b"/v1/trade/order", b"Content-Length: 2", EXPECT))
        assert await bot.line() == b"HTTP/1.1 100 Continue"
        assert await bot.line() == b""
        assert (await bot.ask(b"{}")).status == 200
        assert (await bot.ask(request())).status == 200
    received = station.upstream.received[0]
    assert received.body == b"{}"
    assert received.head.value(b"Expect") is None


async def test_a_body_that_does_not_wait_for_the_100(station: Station) -> None:
    """RFC 9110 section 10.1.1: who sees the body already may leave the 100 out; a 100 is no final reply."""
    async with station.bot() as bot:
        await bot.send(request(b"POST", b"/v1/trade/order", EXPECT, body=b"{}"))
        first = await bot.line()
        if first == b"HTTP/1.1 100 Continue":
            assert await bot.line() == b""
            first = await bot.line()
        assert first == b"HTTP/1.1 200 OK"


async def test_an_old_bot_gets_no_100(station: Station) -> None:
    """RFC 9110 section 10.1.1: an HTTP/1.0 client would take it for the reply."""
    async with station.bot() as bot:
        await bot.send(
            b"POST /v1/trade/order HTTP/1.0\r\nHost: localhost\r\n"
            b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        )
        await station.until(lambda: station.gateway.handler.inflight == 1)
        await bot.send(b"{}")
        assert (await bot.reply(b"POST")).status == 200


REFUSED_WITHOUT_100 = {
    "too large": (request(b"POST", b"/v1/trade/order", b"Content-Length: 5000000"), 413),
    "another Host": (
        request(b"POST", b"/v1/trade/order", b"Content-Length: 2").replace(b"127.0.0.1", b"evil.com"),
        421,
    ),
    "outside the prefix": (request(b"POST", b"/v1/wallet/withdraw", b"Content-Length: 2"), 404),
    "from a browser": (
        request(b"POST", b"/v1/trade/order", b"Content-Length: 2", b"Origin: https://a.example"),
        403,
    ),
}


@pytest.mark.parametrize(("raw", "status"), REFUSED_WITHOUT_100.values(), ids=REFUSED_WITHOUT_100)
async def test_what_is_refused_is_not_asked_to_continue(station: Station, raw: bytes, status: int) -> None:
    assert (await station.ask(raw.replace(b"Host:", EXPECT + b"\r\nHost:"))).status == status


# Connections.


async def test_an_old_bot_is_answered_and_its_connection_closed(station: Station) -> None:
    async with station.bot() as bot:
        answer = await bot.ask(b"GET /v1/trade/x HTTP/1.0\r\nHost: localhost\r\n\r\n")
        assert (answer.status, answer.body, answer.ends_by) == (200, b'{"ok":true}', "length")
        assert await bot.rest() == b""


# Fields with a rule of their own.


# Large replies are passed on while they come.

LARGE_REPLIES = {
    "300 KB": (300_000, "length"),
    "300 KB in chunks": (300_000, "chunked"),
    "5 MB": (5_000_000, "length"),
    "5 MB in chunks": (5_000_000, "chunked"),
    "5 MB until the connection closes": (5_000_000, "close"),
    "as much as is held": (256 * 1024, "length"),
    "one byte more": (256 * 1024 + 1, "length"),
}


@pytest.mark.parametrize(("size", "framing"), LARGE_REPLIES.values(), ids=LARGE_REPLIES)
async def test_a_large_reply_comes_whole(station: Station, size: int, framing: str) -> None:
    body = (bytes(range(256)) * (size // 256 + 1))[:size]
    head = b'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nETag: "1"\r\n'
    acts = {
        "length": say(head + b"Content-Length: %d\r\n\r\n" % size + body),
        "chunked": say(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(body[:70_000], body[70_000:])),
        "close": say_and_close(head + b"\r\n" + body),
    }
    station.upstream.answers.append(acts[framing])
    async with station.bot() as bot:
        answer = await bot.ask(request())
        assert (answer.status, answer.is_whole, answer.body == body) == (200, True, True)
        assert (answer.text("Content-Encoding"), answer.text("ETag")) == ("gzip", '"1"')
        assert (await bot.ask(request())).status == 200


async def test_a_large_reply_is_passed_on_while_it_comes(station: Station) -> None:
    """The second half is written only when the bot has the first line."""
    has_begun = asyncio.Event()
    half = b"x" * 300_000

    async def halve(wire: Wire) -> None:
        await wire.write(b"HTTP/1.1 200 OK\r\nContent-Length: 600000\r\n\r\n" + half)
        await has_begun.wait()
        await wire.write(half)

    station.upstream.answers.append(halve)
    async with station.bot() as bot:
        await bot.send(request())
        first = await bot.line()
        has_begun.set()
        answer = await bot.reply(first=first)
    assert (answer.is_whole, answer.body) == (True, half + half)


# What goes unsigned, or is signed otherwise.


async def test_the_time_goes_unsigned(station: Station) -> None:
    upstream = station.upstream
    await station.until(lambda: len(upstream.asked_time) >= 5)
    answer = await station.ask(
        request(b"GET", b"/v1/trade/time?x=1", b"X-Mine: 1", b"Authorization: Bearer t")
    )
    assert answer.status == 200
    (received,) = upstream.received
    assert [name for name, _ in received.fields] == [b"Host", b"X-Mine"]


SESSION: Mapping[str, Any] = {
    "keys": {"main": {**KEY, "session": "env:SESSION"}},
    "bots": {"keeper": {"token": "env:TOKEN", "may": ["keys"]}},
}


@pytest.mark.parametrize("target", [b"/v1/trade/api-keys", b"/v1/trade/api-keys/ak-1/audit?limit=5"])
async def test_a_session_route_goes_with_the_session_token(upstream: Upstream, target: bytes) -> None:
    environ = {**ENVIRON, "SESSION": "session-token-1", "TOKEN": "bot-token-1"}
    async with running_station(upstream, environ, **SESSION) as station:
        answer = await station.ask(request(b"GET", target, b"Authorization: Bearer bot-token-1"))
        assert answer.status == 200
    (received,) = upstream.received
    assert received.target == target
    assert received.fields[1:] == ((b"Authorization", b"Bearer session-token-1"),)


async def test_a_base_url_with_a_path_of_its_own(upstream: Upstream) -> None:
    """It is put before the target and not signed (docs/configuration.md, `base_url`)."""

    class Below(Upstream):
        @property
        def base_url(self) -> str:
            return super().base_url + "/sub/exchange/"

    below = Below(port=upstream.port)
    async with running_station(below, clock={"required": False, "grace": 0}, synced=False) as station:
        assert (await station.ask(request(b"GET", b"/v1/trade/x?a=%2B"))).status == 200
    received = next(item for item in upstream.received if b"/time" not in item.target)
    assert received.target == b"/sub/exchange/v1/trade/x?a=%2B"
    stamp = received.head.value(b"X-SERVICE-TIMESTAMP") or b""
    expected = oracle.signature(SECRET, stamp, b"GET", b"/v1/trade/x?a=%2B", b"")
    assert received.head.value(b"X-SERVICE-SIGNATURE") == expected.encode()


async def test_all_signing_settings_reach_the_wire(upstream: Upstream) -> None:
    signing = {
        "header_prefix": "X-MINE-",
        "encoding": "base64",
        "target": "path_and_query",
        "secret_is": "hex",
    }
    async with running_station(upstream, {"EXCHANGE_SECRET": "00ff10"}, signing=signing) as station:
        raw = request(b"POST", b"/v1/trade/order?a=%2B", b"X-Mine-Signature: forged", body=b"{}")
        assert (await station.ask(raw)).status == 200
    (received,) = upstream.received
    stamp = received.head.value(b"X-MINE-TIMESTAMP") or b""
    digest = oracle.hmac_sha256(b"\x00\xff\x10", stamp + b"POST/order?a=%2B{}")
    assert received.head.value(b"X-MINE-SIGNATURE") == base64.b64encode(bytes.fromhex(digest))
    assert not [name for name, _ in received.fields if name.startswith(b"X-SERVICE")]


def test_the_oracle_agrees_with_a_published_vector() -> None:
    """RFC 4231, test cases 2 and 6 (a key longer than a block)."""
    assert oracle.hmac_sha256(b"Jefe", b"what do ya want for nothing?").startswith(
        "5bdcc146bf60754e6a042426089575c7"
    )
    long_key = oracle.hmac_sha256(b"\xaa" * 131, b"Test Using Larger Than Block-Size Key - Hash Key First")
    assert long_key.startswith("60e431591ee0b67f0d8a26aacbf5b77f")
