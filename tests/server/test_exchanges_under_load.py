"""Exchanges come, change and go while bots trade at others: these lose no request and no connection."""

import asyncio
import contextlib
import resource
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from rig.bot import Reply, bot_at, request
from rig.station import ENVIRON, KEY
from rig.upstream import Upstream, hold_until, running_upstream, say
from rig.wire import OK, PATIENCE_S, until
from sealgate.config import Config
from sealgate.server.gateway import Gateway, running_gateway

ROUNDS = 2
BETWEEN = 50  # answers of each of the two exchanges between two reloads
BOTS = 4  # at each
STAY = ("spot", "perp")


class Settings:
    """The configuration as an operator edits it: two exchanges that stay, and `third` as it is then."""

    def __init__(self, *urls: str) -> None:
        self._urls = dict(zip(STAY, urls, strict=True))
        self.routes: dict[str, list[dict[str, Any]]] = {}
        self.third: dict[str, Any] | None = None

    def load(self) -> Config:
        exchanges: dict[str, Any] = {
            name: {"base_url": url, "routes": self.routes.get(name, [])} for name, url in self._urls.items()
        }
        if self.third is not None:
            exchanges["third"] = self.third
        tree = {
            "listen": {"tcp": "127.0.0.1:0"},
            "admin": {"tcp": "127.0.0.1:0"},
            "upstream": {"keep_alive": 600},  # so that no connection is renewed meanwhile
            "exchanges": exchanges,
            "keys": {"main": {**KEY, "exchanges": list(exchanges)}},
        }
        return Config.model_validate(tree)


class Load:
    """Bots that send orders one after another, each over one connection, and what they were told."""

    def __init__(self, gateway: Gateway) -> None:
        self._address = gateway.address
        self._is_over = False
        self.told: dict[str, Counter[tuple[int, str | None, int, bool]]] = {name: Counter() for name in STAY}

    async def trade(self, exchange: str) -> None:
        raw = request(b"POST", b"/%b/v1/trade/order" % exchange.encode(), body=b"{}")
        async with bot_at(self._address.host, self._address.port) as bot:
            while not self._is_over:
                reply = await bot.ask(raw)
                self.told[exchange][reply.status, reply.outcome, reply.attempts, reply.closes] += 1

    async def answers(self) -> None:
        """Wait for more of both exchanges."""
        wanted = {name: told.total() + BETWEEN for name, told in self.told.items()}
        await until(lambda: all(told.total() >= wanted[name] for name, told in self.told.items()))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            for name in STAY * BOTS:
                group.create_task(self.trade(name))
            await self.answers()
            yield
            self._is_over = True


async def ask_third(gateway: Gateway) -> Reply:
    async with bot_at(gateway.address.host, gateway.address.port) as bot:
        return await bot.ask(request(b"POST", b"/third/v1/trade/order", body=b"{}"))


def learned(gateway: Gateway) -> list[object]:
    """Return what a reload must leave as it is at the exchanges that stay."""
    exchanges = [gateway.generation.backends[name].exchange for name in STAY]
    return [
        part
        for one in exchanges
        for part in (one.upstream, one.clock, one.clock_keeper, one.live_keys["main"].scheduler)
    ]


async def test_the_other_exchanges_lose_nothing() -> None:
    async with (
        running_upstream() as spot,
        running_upstream() as perp,
        running_upstream() as first,
        running_upstream() as second,
    ):
        settings = Settings(spot.base_url, perp.base_url)
        async with running_gateway(settings.load(), environ=ENVIRON, load=settings.load) as gateway:
            gateway.services.untried.clear()
            await gateway.wait_until_ready(PATIENCE_S)
            load, before = Load(gateway), learned(gateway)
            async with load.running():
                for _ in range(ROUNDS):
                    # Added, changed in a setting, then in its address, and removed.
                    for third in (
                        {"base_url": first.base_url},
                        {"base_url": first.base_url, "limits": {"max_wait": 7}},
                        {"base_url": second.base_url},
                        None,
                    ):
                        settings.third = third
                        warnings = await gateway.reloader.reload("the test")
                        assert all("third.base_url has changed" in warning for warning in warnings)
                        told = await ask_third(gateway)
                        assert (told.status, told.reason) == (
                            (404, "unknown_exchange") if third is None else (200, None)
                        )
                        await load.answers()
                assert [len(upstream.broken) + upstream.closed for upstream in (spot, perp)] == [0, 0]
            assert all(old is new for old, new in zip(before, learned(gateway), strict=True))
    assert {name: set(told) for name, told in load.told.items()} == {
        name: {(200, "done", 1, False)} for name in STAY
    }


async def test_an_order_that_is_under_way_at_a_removed_exchange_gets_its_reply() -> None:
    answers = asyncio.Event()
    async with running_upstream() as spot, running_upstream() as perp, running_upstream() as third:
        settings = Settings(spot.base_url, perp.base_url)
        settings.third = {"base_url": third.base_url}
        third.otherwise = hold_until(answers, say(OK))
        async with running_gateway(settings.load(), environ=ENVIRON, load=settings.load) as gateway:
            gateway.services.untried.clear()
            await gateway.wait_until_ready(PATIENCE_S)
            order = asyncio.create_task(ask_third(gateway))
            await third.until_received(1)
            settings.third = None
            await gateway.reloader.reload("the test")
            assert (await ask_third(gateway)).reason == "unknown_exchange"
            answers.set()
            assert (await order).outcome == "done"
            await until(lambda: _has_no_connection(third))


async def test_routes_are_put_together_anew_only_where_they_changed() -> None:
    async with running_upstream() as spot, running_upstream() as perp:
        settings = Settings(spot.base_url, perp.base_url)
        async with running_gateway(settings.load(), environ=ENVIRON, load=settings.load) as gateway:
            before = {name: backend.rules.routes for name, backend in gateway.generation.backends.items()}
            settings.routes["perp"] = [{"match": "GET /v1/trade/x", "cost": 7}]
            await gateway.reloader.reload("the test")
            after = {name: backend.rules.routes for name, backend in gateway.generation.backends.items()}
    assert after["spot"] is before["spot"]
    assert (before["perp"].find("GET", "/x").cost, after["perp"].find("GET", "/x").cost) == (1, 7)


async def test_an_exchange_that_is_added_has_descriptors_of_its_own() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with running_upstream() as spot, running_upstream() as perp, running_upstream() as third:
        settings = Settings(spot.base_url, perp.base_url)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
        try:
            async with running_gateway(settings.load(), environ=ENVIRON, load=settings.load) as gateway:
                before, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
                settings.third = {"base_url": third.base_url, "upstream": {"max_connections": 50}}
                await gateway.reloader.reload("the test")
                after, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
                assert (
                    after - before == gateway.generation.backends["third"].exchange.upstream.most_connections
                )
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _has_no_connection(upstream: Upstream) -> bool:
    return upstream.closed == upstream.connections
