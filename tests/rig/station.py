"""A gateway between a raw upstream and raw bots, in this process and on real sockets."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rig.backends import only, pipeline_of
from rig.bot import Bot, Reply, bot_at
from rig.upstream import Upstream
from rig.verdicts import judged
from rig.wire import PATIENCE_S, until
from sealgate.config import Config
from sealgate.machine.system import System
from sealgate.orders.outcome import Outcome
from sealgate.server.gateway import Gateway, running_gateway

if TYPE_CHECKING:  # it takes a third of the time that the rig does
    from sealgate.sandbox.server import Sandbox

SECRET = b"correct horse battery staple"
API_KEY = b"ak-public-1"
ENVIRON = {"EXCHANGE_SECRET": SECRET.decode()}
KEY = {"api_key": API_KEY.decode(), "secret": "env:EXCHANGE_SECRET"}

Settings = Mapping[str, Any]


def make_config(upstream_url: str, /, **tables: Any) -> Config:
    """Return a configuration with free ports; `tables` are merged over it, table by table."""
    tree: dict[str, Any] = {
        "base_url": upstream_url,
        "listen": {"tcp": "127.0.0.1:0"},
        "admin": {"tcp": "127.0.0.1:0"},
        "keys": {"main": KEY},
    }
    for name, settings in tables.items():
        tree[name] = {**tree[name], **settings} if isinstance(tree.get(name), dict) else settings
    return Config.model_validate(tree)


def sandbox_config(sandbox: "Sandbox") -> Config:
    """Return a configuration for a sandbox; its secret is to be in the variable EXCHANGE_SECRET."""
    return make_config(sandbox.base_url, keys={"main": {**KEY, "api_key": sandbox.api_key}})


class Outcomes:
    """A reader of the pipeline that can be waited for."""

    def __init__(self) -> None:
        self.all: list[Outcome] = []
        self._waiting: list[tuple[int, asyncio.Event]] = []

    def __call__(self, outcomes: Sequence[Outcome]) -> None:
        """Take outcomes in."""
        self.all.extend(outcomes)
        for count, event in self._waiting:
            if len(self.all) >= count:
                event.set()

    async def until(self, count: int) -> Outcome:
        """Wait for the outcome of that number, from 1."""
        event = asyncio.Event()
        self._waiting.append((count, event))
        if len(self.all) < count:
            async with asyncio.timeout(PATIENCE_S):
                await event.wait()
        return self.all[count - 1]


@dataclass(repr=False)
class Station:
    """A running gateway with its upstream and what it reported."""

    gateway: Gateway
    upstream: Upstream
    _outcomes: Outcomes

    @property
    def outcomes(self) -> Outcomes:
        """What was reported, up to this moment."""
        self.gateway.reporter.flush()
        return self._outcomes

    def bot(self) -> contextlib.AbstractAsyncContextManager[Bot]:
        """Connect a bot."""
        return bot_at(self.gateway.address.host, self.gateway.address.port)

    async def ask(self, raw: bytes) -> Reply:
        """Send one request on a connection of its own."""
        async with self.bot() as bot:
            return await bot.ask(raw)

    def disable_key(self) -> None:
        """Have the exchange call the key `main` invalid, to a bot and to the gateway's own read."""
        breaker, now = only(self.gateway.generation).exchange.live_keys["main"].breaker, System.now()
        refused = judged(401, b'{"detail":"Invalid API key"}')
        breaker.observe(401, refused, now)
        breaker.conclude(refused, now)

    def waiting(self) -> int:
        """Count the requests that wait for their turn, of any key."""
        keys = only(self.gateway.generation).exchange.live_keys.values()
        schedulers = {live_key.scheduler for live_key in keys}
        return sum(sum(scheduler.status().waiting.values()) for scheduler in schedulers)

    async def until_all_hung_up(self) -> None:
        """Wait until the gateway has noticed that no bot is connected any more."""
        await self.until(lambda: all(bot.transport is None for bot in self.gateway.server.connections))

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for a state that nobody announces, by going round the loop."""
        await until(is_so)


@contextlib.asynccontextmanager
async def running_station(
    upstream: Upstream,
    environ: Mapping[str, str] = ENVIRON,
    /,
    *,
    synced: bool = True,
    tries_keys: bool = False,
    reads_prices: bool = False,
    **tables: Any,
) -> AsyncIterator[Station]:
    """Run a gateway before an upstream; return when its clock has a first sample.

    Unless `tries_keys` and `reads_prices`, what arrives is what the test sends, on a slow machine, too.
    """
    outcomes = Outcomes()
    config = make_config(upstream.base_url, **tables)
    async with running_gateway(config, (outcomes,), environ) as gateway:
        station = Station(gateway, upstream, outcomes)
        if not tries_keys:
            gateway.services.untried.clear()
        if not reads_prices:
            work = gateway.services.work(gateway.handler.router)
            work.pop(pipeline_of(gateway), None)
            gateway.services.background.follow(work)
        if synced:
            await station.until(lambda: gateway.status().clock.offset_s is not None)
        yield station


def watch_signing(station: Station, see: Callable[[bytes], None]) -> None:
    """Call `see` with each signature as it is made: after the stamp, right before the request is sent."""
    sealer = only(station.gateway.generation).exchange.live_keys["main"].key.sealer
    encode = sealer._encode

    def watched(digest: bytes) -> bytes:
        see(digest)
        return encode(digest)

    sealer._encode = watched
