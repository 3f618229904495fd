"""A gateway whose configuration and secret a test changes and reloads."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from rig.station import Outcomes, Station
from rig.upstream import Upstream
from sealgate.config import Config
from sealgate.server.gateway import Gateway, running_gateway

LISTEN = {"tcp": "127.0.0.1:0"}


class Site:
    """A gateway whose configuration and secret a test changes."""

    station: Station

    def __init__(self, upstream: Upstream, folder: Path, tables: dict[str, Any]) -> None:
        self.upstream = upstream
        self.base_url = upstream.base_url
        self.secret = folder / "secret"
        self.tables = tables
        self.error: Exception | None = None

    @property
    def gateway(self) -> Gateway:
        return self.station.gateway

    def load(self) -> Config:
        if self.error is not None:
            raise self.error
        key = {"api_key": "ak-1", "secret": f"file:{self.secret}"}
        tree = {"base_url": self.base_url, "listen": LISTEN, "keys": {"main": key}, **self.tables}
        return Config.model_validate(tree)

    async def reload(self) -> tuple[str, ...]:
        return await self.gateway.reloader.reload("the test")


@asynccontextmanager
async def running_site(upstream: Upstream, folder: Path, /, **tables: Any) -> AsyncIterator[Site]:
    write(folder / "secret", "first")
    site, outcomes = Site(upstream, folder, tables), Outcomes()
    async with running_gateway(site.load(), (outcomes,), {}, site.load) as gateway:
        site.station = Station(gateway, upstream, outcomes)
        await site.station.until(lambda: gateway.status().clock.offset_s is not None)
        yield site


def write(file: Path, secret: str) -> None:
    file.unlink(missing_ok=True)
    file.touch(0o600)
    file.write_text(secret)
