"""What the gateway refuses: reason, problem document, no byte upstream, and the next one is served."""

import base64
from typing import Any

import pytest

from rig.bot import check_problem, request
from rig.station import ENVIRON, KEY, Station, running_station
from rig.upstream import Upstream

GET, POST = b"GET", b"POST"
ORDER = b"/v1/trade/order"


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


async def test_each_request_has_its_own_trace(station: Station) -> None:
    """Also one that is like an earlier one in all else; the field passes on as it came."""
    ids = [f"{number:032x}" for number in (1, 2, 1)]
    async with station.bot() as bot:
        for number in ids:
            await bot.ask(
                request(GET, b"/v1/trade/x", f"traceparent: 00-{number}-00f067aa0ba902b7-01".encode())
            )
        await bot.ask(request(GET, b"/v1/trade/x"))
    assert (await station.outcomes.until(4)).trace_id is None
    assert [one.head.value(b"traceparent") is None for one in station.upstream.received] == [False] * 3 + [
        True
    ]
    assert [outcome.trace_id for outcome in station.outcomes.all[:3]] == ids


# The bot's own id for a request.
