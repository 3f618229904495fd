"""What the gateway refuses: reason, problem document, no byte upstream, and the next one is served."""

import base64
import json
from http import HTTPStatus
from typing import Any

import pytest

from rig.bot import check_problem, request
from rig.station import ENVIRON, KEY, Station, running_station
from rig.upstream import Upstream

GET, POST = b"GET", b"POST"
ORDER = b"/v1/trade/order"


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


async def test_head_is_refused_without_a_body(station: Station) -> None:
    async with station.bot() as bot:
        answer = await bot.ask(request(b"HEAD", b"/v1/wallet"))
        assert (answer.status, answer.reason, answer.ends_by) == (404, "outside_prefix", "none")
        assert (await bot.ask(request())).status == 200


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


# What refusals call for.

BOTS: dict[str, Any] = {
    "bots": {
        "reader": {"token": "env:READER", "may": ["read"]},
        "trader": {"token": "env:TRADER", "may": ["trade"], "keys": ["main", "other"]},
    },
    "keys": {"main": KEY, "other": {**KEY, "api_key": "ak-public-2"}},
}
BOTS["bots"]["reader"]["key"] = "main"
TOKENS = {**ENVIRON, "READER": "token-of-reader", "TRADER": "token-of-trader"}


def basic(name: str, token: str) -> bytes:
    return b"Authorization: Basic " + base64.b64encode(f"{name}:{token}".encode())


READER, TRADER = b"Authorization: Bearer token-of-reader", b"authorization: bearer token-of-trader"
KNOWN = [  # the others in tests/request/test_admission.py
    (request(GET, b"/v1/trade/x", basic("reader", "token-of-reader")), "reader", "main"),
    (request(POST, ORDER, TRADER, b"X-Gateway-Key: other", body=b"{}"), "trader", "other"),
]


async def test_a_known_bot_is_served_and_held_to_what_it_may(upstream: Upstream) -> None:
    async with running_station(upstream, TOKENS, **BOTS) as station:
        for number, (raw, bot, key) in enumerate(KNOWN, 1):
            assert (await station.ask(raw)).status == 200
            outcome = await station.outcomes.until(number)
            assert (outcome.bot, outcome.key) == (bot, key)
            expected = {"main": b"ak-public-1", "other": b"ak-public-2"}[key]
            assert upstream.received[-1].head.value(b"X-SERVICE-APIKEY") == expected
            assert b"token-of" not in upstream.received[-1].raw
        check_problem(await station.ask(request(POST, ORDER, READER, body=b"{}")), 403, "bot_forbidden")
    assert len(upstream.received) == len(KNOWN)


# The trace of which a request is a part.

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACES = {
    "one": ([f"00-{TRACE}-00f067aa0ba902b7-01"], TRACE),
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

IDS = {"taken over": ("grid.7_A-9", True), "other characters": ('"><script>', False)}


@pytest.mark.parametrize(("name", "is_taken"), IDS.values(), ids=IDS)
async def test_a_bots_own_request_id(station: Station, name: str, *, is_taken: bool) -> None:
    field = f"X-Gateway-Request-Id: {name}".encode()
    for target in (b"/v1/trade/x", b"/v1/wallet"):
        answer = await station.ask(request(GET, target, field))
        assert (answer.text("X-Gateway-Request-Id") == name) == is_taken
        assert answer.text("X-Gateway-Request-Id")
    assert json.loads(answer.body)["request_id"] == answer.text("X-Gateway-Request-Id")
    assert [(outcome.request_id == name) for outcome in station.outcomes.all] == [is_taken, is_taken]
