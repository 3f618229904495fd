"""The admin address of a gateway, as it is served, with a raw client; and its application alone."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from aiohttp import web
from aiohttp.test_utils import TestClient

from rig.bot import Reply, bot_at
from rig.station import Station
from sealgate.config.venues import default_venue
from sealgate.machine.system import System
from sealgate.observe.admin import admin_app
from sealgate.observe.live import Live
from sealgate.observe.metrics import Metrics
from sealgate.observe.serving import running_app
from sealgate.observe.status import Status

Client = TestClient[web.Request, web.Application]
HOSTS = frozenset({"127.0.0.1", "localhost"})


@dataclass
class Admin:
    """A running admin address."""

    port: int

    async def ask(self, path: str, *fields: str, method: str = "GET", host: str = "127.0.0.1") -> Reply:
        """Send one request."""
        lines = (f"{method} {path} HTTP/1.1", f"Host: {host}", *fields, "Connection: close")
        async with bot_at("127.0.0.1", self.port) as bot:
            return await bot.ask("\r\n".join(lines).encode() + b"\r\n\r\n")


@contextlib.asynccontextmanager
async def running_admin(  # noqa: PLR0913 - each test sets one or two of them
    status: Callable[[], Status],
    metrics: Metrics,
    live: Live | None = None,
    *,
    is_loopback: bool = True,
    port: int = 0,
    most: int = 64,
    head_timeout_s: float = 10.0,
) -> AsyncIterator[Admin]:
    """Run the admin address as long as the block lasts."""
    app = admin_app(status, metrics, live or _live(status), HOSTS, is_loopback=is_loopback)
    async with running_app(app, most, head_timeout_s) as protocol:
        server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", port)
        with contextlib.closing(server):
            yield Admin(server.sockets[0].getsockname()[1])


def _live(status: Callable[[], Status], weights: Callable[[], Mapping[str, float]] = dict) -> Live:
    return Live(status, System(), weights, judges=lambda: {"service": default_venue().replies})


def live_view(
    station: Station,
    status: Callable[[], Status] | None = None,
    weights: Callable[[], Mapping[str, float]] = dict,
) -> Live:
    """Return a live view that reads a station's outcomes."""
    live = _live(status or station.gateway.status, weights)
    station.gateway.reporter.add(live)
    return live


def application(status: Callable[[], Status], live: Live, metrics: Metrics | None = None) -> web.Application:
    """Return what the admin address serves, for pytest-aiohttp's client."""
    return admin_app(status, metrics or Metrics(status), live, HOSTS, is_loopback=True)
