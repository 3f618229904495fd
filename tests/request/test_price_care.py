"""Prices that policies need are read by the gateway itself, and outlive a restart."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from rig.admitted import answer
from rig.backends import only
from rig.bot import Reply, request
from rig.generation import Scripted, backend_of
from rig.hand_host import Leaping
from rig.station import ENVIRON, Station, make_config, running_station
from rig.upstream import Act, Received, Upstream, say
from rig.wire import OK, reply
from sealgate.errors import Refusal
from sealgate.exchange.answer import Answer
from sealgate.keys.key_health import BreakerState, KeyFault
from sealgate.machine.system import System
from sealgate.request.price_care import PriceCare

SELL = b"symbol=BTCUSDT&side=SELL&type=LIMIT&quantity=0.1&price=50000"
FORM = b"Content-Type: application/x-www-form-urlencoded"
GRID = b"Authorization: Bearer grid-token"
ALL, ONE = "/api/v3/ticker/price", "/api/v3/ticker/price?symbol=BTCUSDT"
PRICES = b'[{"symbol":"BTCUSDT","price":"60000"}]'
ENVIRONMENT = {**ENVIRON, "GRID": "grid-token"}


def tables(**policy: Any) -> dict[str, Any]:
    bots = {"grid": {"token": "env:GRID", "policy": {"max_notional": "10000", **policy}}}
    clock = {"path": "/v1/trade/time", "field": "/serverTime"}
    return {"venue": "binance", "upstream": {"prefix": "/"}, "clock": clock, "bots": bots}


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealgate.request.price_care._LOOK_S", 0.01)


def exchange(upstream: Upstream, prices: bytes = PRICES) -> None:
    def script(received: Received) -> Act:
        if received.target.startswith(ONE.encode()):
            return say(reply(b"200 OK", b'{"symbol":"BTCUSDT","price":"60000"}'))
        return say(reply(b"200 OK", prices) if received.target == ALL.encode() else OK)

    upstream.script = script


async def sell(station: Station) -> Reply:
    return await station.ask(request(b"POST", b"/api/v3/order", FORM, GRID, body=SELL))


async def until_read(station: Station, target: str) -> None:
    """Wait until a reply to this read was taken in."""
    prices = only(station.gateway.generation).rules.prices
    assert prices is not None
    await station.until(lambda: station.upstream.receipts(target.encode()) > 0)
    await station.until(lambda: prices.is_fresh("BTCUSDT", System.now()))


async def test_a_limit_sell_passes_after_a_start_though_no_bot_reads_prices(upstream: Upstream) -> None:
    exchange(upstream)
    async with running_station(upstream, ENVIRONMENT, reads_prices=True, **tables()) as station:
        await until_read(station, ALL)
        assert (await sell(station)).outcome == "done"
        assert b"signature" not in upstream.received[0].target  # it is an open route
        big = SELL.replace(b"0.1", b"0.2")  # worth 12,000 at the market
        refused = await station.ask(request(b"POST", b"/api/v3/order", FORM, GRID, body=big))
        assert refused.reason == "policy_refused"
    assert upstream.receipts(ALL.encode()) == 1


async def test_where_all_prices_are_too_many_those_of_the_policys_symbols_are_read(
    upstream: Upstream,
) -> None:
    exchange(
        upstream, json.dumps([{"symbol": f"S{number}", "price": "1"} for number in range(10_000)]).encode()
    )
    with capture_logs() as logs:
        async with running_station(
            upstream, ENVIRONMENT, reads_prices=True, **tables(symbols=["BTCUSDT"])
        ) as station:
            await until_read(station, ONE)
            assert (await sell(station)).outcome == "done"
    assert [line["path"] for line in logs if line["event"] == "prices_not_read"] == [ALL]
    assert [one.target.decode() for one in upstream.received[:2]] == [ALL, ONE]


async def test_prices_outlive_a_restart(upstream: Upstream, tmp_path: Path) -> None:
    exchange(upstream)
    settings = tables() | {"journal": {"file": str(tmp_path / "journal.db")}}
    async with running_station(upstream, ENVIRONMENT, reads_prices=True, **settings) as station:
        await until_read(station, ALL)
        assert (await sell(station)).outcome == "done"
    upstream.received.clear()
    async with running_station(upstream, ENVIRONMENT, **settings) as station:
        assert (await sell(station)).outcome == "done"
    assert [received.target for received in upstream.received] == [b"/api/v3/order"]


async def test_they_are_not_read_into_a_pause(upstream: Upstream) -> None:
    limited = reply(b"429 Too Many Requests", b"{}", b"Retry-After: 60")
    upstream.script = lambda received: say(OK if received.target == ALL.encode() else limited)
    with capture_logs() as logs:
        async with running_station(upstream, ENVIRONMENT, **tables()) as station:
            hasty = (GRID, b"X-Gateway-Deadline-Ms: 5000")
            assert (await station.ask(request(b"GET", b"/api/v3/time", *hasty))).reason == "rate_limited"
            assert upstream.receipts(b"/api/v3/time") == 1, (
                "the exchange said so, and not the gateway's queue"
            )
            gateway = station.gateway
            gateway.services.background.follow(gateway.services.work(gateway.handler.router))
            await station.until(lambda: any(line["event"] == "prices_not_asked" for line in logs))
    assert upstream.receipts(ALL.encode()) == 0


class Scene:
    """The care for prices at an exchange that answers from a script."""

    def __init__(self, pipeline: Scripted, host: Leaping) -> None:
        prices = pipeline.backend.rules.prices
        assert prices is not None
        self.pipeline = pipeline
        self.host = host
        self._care = PriceCare(pipeline, prices, host)

    async def look(self, times: int) -> list[tuple[str, str]]:
        """Look so often; return what was logged, and why."""
        self.host.left = times
        with capture_logs() as logs, pytest.raises(asyncio.CancelledError):
            await self._care.run()
        return [(line["event"], line["cause"]) for line in logs]


@contextlib.asynccontextmanager
async def scene(*answers: Answer | Exception) -> AsyncIterator[Scene]:
    host = Leaping()
    async with backend_of(make_config("http://127.0.0.1:9", **tables()), host, ENVIRONMENT) as tree:
        yield Scene(Scripted(tree, answers), host)


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        (
            Refusal("upstream_broken", "The exchange gave no answer: cut."),
            "The exchange gave no answer: cut.",
        ),
        (answer(503), "the answer was 503"),
    ],
)
async def test_a_read_that_fails_is_told_and_repeated_after_a_minute(
    given: Answer | Exception, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealgate.request.price_care._LOOK_S", 1.0)
    async with scene(given, answer(200, PRICES)) as one:
        assert await one.look(60) == [("prices_not_asked", cause)]
        assert one.pipeline.asked == [("main", ALL)]
        assert await one.look(2) == []
        assert len(one.pipeline.asked) == 2


async def test_nothing_is_read_with_a_key_that_is_disabled() -> None:
    async with scene(answer(200, PRICES)) as one:
        breaker = one.pipeline.backend.exchange.live_keys["main"].breaker
        breaker.state = BreakerState(KeyFault.INVALID)
        assert await one.look(5) == []
        assert one.pipeline.asked == []
        breaker.state = BreakerState()
        await one.look(5)
        assert one.pipeline.asked == [("main", ALL)]


async def test_nothing_is_read_while_the_gateway_ends() -> None:
    async with scene() as one:
        one.pipeline.is_draining = True
        assert await one.look(100) == []
    assert one.pipeline.asked == []
