"""`sealgate serve` under systemd: what it tells the service manager, on a socket as systemd has one."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rig.program import BASE, Program, running_program
from rig.upstream import Upstream, say
from rig.wire import PATIENCE_S, reply


class Manager:
    """The service manager's end of the socket."""

    def __init__(self, address: str) -> None:
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sock.setblocking(False)
        self._sock.bind(address)

    async def hears(self, beginning: str) -> None:
        """Wait for a line that begins so; what comes before it is dropped."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(PATIENCE_S):
            while not (await loop.sock_recv(self._sock, 4096)).decode().startswith(beginning):
                pass

    def close(self) -> None:
        self._sock.close()


@contextlib.asynccontextmanager
async def under(
    address: str, url: str, folder: Path, **environ: str
) -> AsyncIterator[tuple[Manager, Program]]:
    told = address.replace("\0", "@")
    variables = BASE | {"SEALGATE_BASE_URL": url, "NOTIFY_SOCKET": told} | environ
    with contextlib.closing(Manager(address)) as manager:
        async with running_program("serve", environ=variables, folder=folder) as program:
            yield manager, program


@pytest.mark.parametrize("is_abstract", [False, True])
async def test_it_says_that_it_is_ready_how_it_is_and_that_it_stops(
    upstream: Upstream, tmp_path: Path, *, is_abstract: bool
) -> None:
    address = f"\0sealgate-test-{os.getpid()}" if is_abstract else str(tmp_path / "notify")
    async with under(address, upstream.base_url, tmp_path) as (manager, program):
        await manager.hears("READY=1")
        await manager.hears("STATUS=ready")
        program.tell(signal.SIGTERM)
        await manager.hears("STOPPING=1")
        assert await program.end() == 0


async def test_an_exchange_that_is_away_does_not_keep_it_from_being_started(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    async with under(address, "http://127.0.0.1:9", tmp_path) as (manager, _):
        await manager.hears("READY=1")
        await manager.hears("STATUS=not ready: clock not synchronized")


async def test_refused_signatures_are_in_the_status(upstream: Upstream, tmp_path: Path) -> None:
    upstream.otherwise = say(reply(b"401 Unauthorized", b'{"detail":"Invalid HMAC signature"}'))
    async with under(str(tmp_path / "notify"), upstream.base_url, tmp_path) as (manager, _):
        await manager.hears("STATUS=ready, but the key main: the exchange refused its last signature")


async def test_the_watchdog_is_kept_quiet(upstream: Upstream, tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    async with under(address, upstream.base_url, tmp_path, WATCHDOG_USEC="40000") as (manager, _):
        for _ in range(3):
            await manager.hears("WATCHDOG=1")


async def test_a_service_manager_that_is_gone_is_no_trouble(upstream: Upstream, tmp_path: Path) -> None:
    environ = BASE | {"SEALGATE_BASE_URL": upstream.base_url, "NOTIFY_SOCKET": str(tmp_path / "nobody")}
    async with running_program("serve", environ=environ, folder=tmp_path) as program:
        await program.line("service_manager_not_notified")
        await program.line('"ready"')
