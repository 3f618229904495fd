import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp
import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpRawServer

from rig import oracle
from sealgate.config.venues import default_venue
from sealgate.demo.bots import (
    MATCHING,
    RESTING,
    STREAM,
    THROUGH_GATEWAY,
    Client,
    Over,
    Setback,
    signed_by,
    with_token,
)
from sealgate.machine.system import System
from sealgate.sandbox.server import Sandbox, running_sandbox
from sealgate.sandbox.settings import SandboxSettings
from sealgate.venues.streams import find_stream

SECRET = b"correct-horse-battery-staple"
ORDER = {"symbol": "BTC"}


class StillHost(System):
    """A host whose clocks stand still."""

    def now(self) -> float:
        return 1000.0

    def wall(self) -> float:
        return 1_790_000_000.5


@dataclass
class Exchange:
    """Answers from a queue (None: hangs up), then with 200, and keeps what it received."""

    answers: deque[web.Response | None] = field(default_factory=deque)
    received: list[web.BaseRequest] = field(default_factory=list)

    async def answer(self, request: web.BaseRequest) -> web.Response:
        self.received.append(request)
        answer = self.answers.popleft() if self.answers else web.json_response({"ok": True})
        if answer is None and request.transport is not None:
            request.transport.abort()
        return answer or web.Response()


@dataclass
class Bench:
    """A client, its exchange, and what ends the client."""

    exchange: Exchange
    client: Client
    over: asyncio.Event


@pytest.fixture
async def bench(aiohttp_raw_server: AiohttpRawServer) -> AsyncIterator[Bench]:
    exchange, over = Exchange(), asyncio.Event()
    server = await aiohttp_raw_server(exchange.answer)
    async with aiohttp.ClientSession(server.make_url("/")) as session:
        yield Bench(exchange, Client(session, with_token("t0"), StillHost(), over), over)


async def test_through_sealgate_a_bot_sends_its_token_and_plain_http(bench: Bench) -> None:
    assert await bench.client.ask("GET", "/symbols/list") == {"ok": True}
    (request,) = bench.exchange.received
    assert (request.method, request.raw_path) == ("GET", "/v1/trade/symbols/list")
    assert request.headers["Authorization"] == "Bearer t0"
    assert not any(name.startswith("X-SERVICE") for name in request.headers)


def test_on_its_own_a_bot_signs_by_the_hosts_clock() -> None:
    stamp, body = b"1790000000500", b'{"a": 1}'
    assert signed_by("ak-1", SECRET.decode(), StillHost())("POST", "/order", body) == {
        "X-SERVICE-APIKEY": "ak-1",
        "X-SERVICE-TIMESTAMP": stamp.decode(),
        "X-SERVICE-SIGNATURE": oracle.signature(SECRET, stamp, b"POST", b"/v1/trade/order", body),
    }


async def test_a_429_is_waited_out_and_sent_again(bench: Bench) -> None:
    bench.exchange.answers += [web.Response(status=429, headers={"Retry-After": "0.01"})] * 1
    assert await bench.client.ask("POST", "/order", ORDER) == {"ok": True}
    assert [request.method for request in bench.exchange.received] == ["POST", "POST"]
    tally = bench.client.tally
    assert (tally.requests, tally.limited, tally.accepted, tally.unknown_orders) == (1, 1, 1, 0)


def refused(status: int, **headers: str) -> web.Response:
    return web.json_response({"detail": "no"}, status=status, headers=headers)


SETBACKS: dict[str, tuple[str, web.Response | None, int]] = {
    "an order refused": ("POST", refused(400), 0),
    "an order that failed": ("POST", refused(500), 1),
    "an order that failed, and Sealgate knows": (
        "POST",
        refused(502, **{"X-Gateway-Outcome": "not_sent"}),
        0,
    ),
    "an order that failed, and Sealgate does not know": (
        "POST",
        refused(502, **{"X-Gateway-Outcome": "unknown"}),
        1,
    ),
    "an order without a reply": ("POST", None, 1),
    "a read that failed": ("GET", refused(500), 0),
}


@pytest.mark.parametrize(("method", "answer", "unknown"), SETBACKS.values(), ids=SETBACKS)
async def test_setbacks(bench: Bench, method: str, answer: web.Response | None, unknown: int) -> None:
    bench.exchange.answers.append(answer)
    with pytest.raises(Setback):
        await bench.client.ask(method, "/order", ORDER if method == "POST" else None)
    assert (bench.client.tally.accepted, bench.client.tally.unknown_orders) == (0, unknown)


async def test_nothing_new_is_sent_once_it_is_over(bench: Bench) -> None:
    bench.over.set()
    with pytest.raises(Over):
        await bench.client.ask("DELETE", "/order/1")
    with pytest.raises(Over):
        await bench.client.rest(3600)
    assert bench.exchange.received == []


async def test_the_end_cuts_a_wait_short(bench: Bench) -> None:
    bench.exchange.answers.append(web.Response(status=429, headers={"Retry-After": "3600"}))
    asking = asyncio.create_task(bench.client.ask("GET", "/x"))
    while not bench.client.tally.limited:
        await asyncio.wait([asking], timeout=0.01)
    bench.over.set()
    with pytest.raises(Over):
        await asking


@contextlib.asynccontextmanager
async def alone(secret: str = "") -> AsyncIterator[tuple[Sandbox, Client]]:
    """Run an exchange, and a bot that signs by itself."""
    system = System()
    async with (
        running_sandbox(SandboxSettings(limit_kind="none")) as sandbox,
        aiohttp.ClientSession(sandbox.base_url) as session,
    ):
        signed = signed_by(sandbox.api_key, secret or sandbox.api_secret, system)
        yield sandbox, Client(session, signed, system, asyncio.Event())


async def test_a_bot_learns_of_a_fill_on_the_stream() -> None:
    async with alone() as (sandbox, client), client.follow() as updates:
        resting = await client.ask("POST", "/order", RESTING)
        filled = await client.ask("POST", "/order", MATCHING)
        await updates.wait_for_fill(filled["order_id"])
        sandbox.exchange.streams.end_all()
        with pytest.raises(Setback, match="stream has ended"):
            await updates.wait_for_fill(resting["order_id"])


async def test_a_login_that_is_refused_is_a_setback() -> None:
    async with alone(secret="another") as (_, client):
        with pytest.raises(Setback, match="login was refused"):
            async with client.follow():
                pytest.fail("it follows")


async def test_a_stream_that_is_not_opened_is_a_setback(bench: Bench) -> None:
    with pytest.raises(Setback):
        async with bench.client.follow():
            pytest.fail("it follows")


def test_through_sealgate_the_stream_is_where_the_venues_file_has_it() -> None:
    assert find_stream(default_venue().streams, THROUGH_GATEWAY.removeprefix("/"), STREAM) is not None
