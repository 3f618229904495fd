"""The admin address of a gateway, on a real socket, and a raw client for it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from rig.bot import Reply, bot_at
from rig.station import Station
from sealgate.admin.live import Live
from sealgate.admin.metrics import Metrics
from sealgate.admin.server import admin_app
from sealgate.admin.serving import running_app
from sealgate.config.venues import default_venue
from sealgate.core.status import Status
from sealgate.gateway.platform.system import System

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
    live = live or Live(status, System(), judge=lambda: default_venue().replies)
    app = admin_app(status, metrics, live, HOSTS, is_loopback=is_loopback)
    async with running_app(app, most, head_timeout_s) as protocol:
        server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", port)
        with contextlib.closing(server):
            yield Admin(server.sockets[0].getsockname()[1])


@contextlib.asynccontextmanager
async def running_live_admin(
    station: Station,
    status: Callable[[], Status] | None = None,
    weights: Callable[[], Mapping[str, float]] = dict,
) -> AsyncIterator[Admin]:
    """Run an admin address whose live view reads a station's outcomes, unlike the usual one."""
    status = status or station.gateway.status
    live = Live(status, System(), weights)
    station.gateway.reporter.add(live)
    async with running_admin(status, Metrics(status), live) as admin:
        yield admin
