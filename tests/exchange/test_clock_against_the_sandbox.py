"""Orders flow while a clock goes wrong: nothing is refused but what reveals it."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from rig.served import environ, running_served
from rig.station import sandbox_config
from sealgate.machine.system import System
from sealgate.sandbox.server import Sandbox, running_sandbox
from sealgate.sandbox.settings import SandboxSettings
from sealgate.server.gateway import Gateway, running_gateway

ORDER = {"symbol": "BTC", "side": "buy", "size": "0.001", "price": "65000.0"}
HOURS_MS = 5 * 3600 * 1000


class SkewedHost(System):
    """This machine with a wall clock that is hours off."""

    def wall(self) -> float:
        return super().wall() - 7 * 3600


@asynccontextmanager
async def exchange(skew_ms: int = 0) -> AsyncIterator[Sandbox]:
    settings = SandboxSettings(limit_kind="none", skew_ms=skew_ms)
    async with running_sandbox(settings) as sandbox:
        yield sandbox


async def place(session: aiohttp.ClientSession, gateway: Gateway) -> tuple[int, str]:
    async with session.post(f"http://{gateway.address}/v1/trade/order", json=ORDER) as reply:
        return reply.status, reply.headers["X-Gateway-Attempts"]


async def outside_the_window(session: aiohttp.ClientSession, sandbox: Sandbox) -> int:
    async with session.get(f"{sandbox.base_url}/_sandbox/journal") as reply:
        entries = (await reply.json())["entries"]
    assert len(entries) >= 6
    return sum(entry["verdict"] == "timestamp_outside" for entry in entries)


async def test_a_host_skewed_by_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealgate.server.gateway.System", SkewedHost)
    async with (
        exchange(HOURS_MS) as sandbox,
        running_gateway(sandbox_config(sandbox), environ={"EXCHANGE_SECRET": sandbox.api_secret}) as gateway,
        aiohttp.ClientSession() as session,
    ):
        assert [await place(session, gateway) for _ in range(10)] == [(200, "1")] * 10
        assert await outside_the_window(session, sandbox) == 0
        offset_s = gateway.status().clock.offset_s
        assert offset_s == pytest.approx(HOURS_MS / 1000 + 7 * 3600, abs=1)


async def test_a_stopped_process(tmp_path: Path) -> None:
    """Requests that arrive while it stands still are stamped when it goes on, not before."""
    async with exchange() as sandbox, aiohttp.ClientSession() as session:
        window = {"recv_window_ms": 1000}
        url = f"{sandbox.base_url}/_sandbox/keys/{sandbox.api_key}"
        async with session.patch(url, json=window) as reply:
            assert reply.status == 200
        settings = environ(sandbox.base_url, KEYS__MAIN__API_KEY=sandbox.api_key)
        async with running_served({**settings, "EXCHANGE_SECRET": sandbox.api_secret}, tmp_path) as served:
            url = f"{served.bots}/v1/trade/order"
            async with session.post(url, json=ORDER) as reply:
                assert reply.status == 200
            served.program.tell(signal.SIGSTOP)
            waiting = [asyncio.create_task(status_of(session, url)) for _ in range(5)]
            # Stand still for longer than the window, by the exchange's own clock.
            started = await server_time(session, sandbox)
            while await server_time(session, sandbox) < started + 1.5 * window["recv_window_ms"]:
                pass
            served.program.tell(signal.SIGCONT)
            assert await asyncio.gather(*waiting) == [200] * 5
        assert await outside_the_window(session, sandbox) == 0


async def status_of(session: aiohttp.ClientSession, url: str) -> int:
    async with session.post(url, json=ORDER) as reply:
        return reply.status


async def server_time(session: aiohttp.ClientSession, sandbox: Sandbox) -> int:
    async with session.get(f"{sandbox.base_url}/v1/trade/time") as reply:
        return int((await reply.json())["server_time"])
