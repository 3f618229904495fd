"""A gateway before two exchanges, `spot` and `perp`, each a raw upstream."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rig.bot import Reply, bot_at
from rig.station import ENVIRON, KEY, Outcomes
from rig.upstream import Upstream, running_upstream
from rig.wire import PATIENCE_S, let_pass
from sealgate.config import Config
from sealgate.server.gateway import Gateway, running_gateway

TOKENS = {
    **ENVIRON,
    "OTHER_SECRET": "another secret",
    "GRID": "token-of-grid-0123456789",
    "SPOT_ONLY": "token-of-spot-0123456789",
}
GRID = b"Authorization: Bearer " + TOKENS["GRID"].encode()
SPOT_ONLY = b"Authorization: Bearer " + TOKENS["SPOT_ONLY"].encode()


def config_of(spot: str, perp: str, /, **tables: Any) -> Config:
    """Return a configuration of two exchanges; `tables` replace its own."""
    tree: dict[str, Any] = {
        "listen": {"tcp": "127.0.0.1:0"},
        "admin": {"tcp": "127.0.0.1:0"},
        "exchanges": {"spot": {"base_url": spot}, "perp": {"base_url": perp}},
        "keys": {
            "main": {**KEY, "exchange": "spot"},
            "swap": {"api_key": "ak-swap", "secret": "env:OTHER_SECRET", "exchange": "perp"},
        },
        "bots": {
            "grid": {"token": "env:GRID", "keys": ["main", "swap"]},
            "cash": {"token": "env:SPOT_ONLY", "key": "main"},
        },
    }
    return Config.model_validate({**tree, **tables})


@dataclass(repr=False)
class Two:
    """The running gateway, its exchanges and what it reported."""

    gateway: Gateway
    spot: Upstream
    perp: Upstream
    outcomes: Outcomes

    async def ask(self, raw: bytes, port: int | None = None) -> Reply:
        """Send one request on a connection of its own, to the common address or to a port."""
        address = self.gateway.address
        async with bot_at(address.host, address.port if port is None else port) as bot:
            return await bot.ask(raw)

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for a state that nobody announces, by going round the loop."""
        async with asyncio.timeout(PATIENCE_S):
            while not is_so():
                await let_pass(0.002)


@contextlib.asynccontextmanager
async def two_exchanges(
    environ: Mapping[str, str] = TOKENS, load: Callable[[], Config] | None = None, **tables: Any
) -> AsyncIterator[Two]:
    """Run them; return when both clocks have a first sample. What arrives is what the test sends."""
    outcomes = Outcomes()
    async with running_upstream() as spot, running_upstream() as perp:
        made = {
            name: table(spot.base_url, perp.base_url) if callable(table) else table
            for name, table in tables.items()
        }
        config = config_of(spot.base_url, perp.base_url, **made)
        async with running_gateway(config, (outcomes,), environ, load) as gateway:
            gateway.services.untried.clear()
            two = Two(gateway, spot, perp, outcomes)
            backends = gateway.generation.backends.values()
            await two.until(lambda: all(backend.exchange.clock.not_ready is None for backend in backends))
            yield two
