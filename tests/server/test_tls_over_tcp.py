"""The door of TLS: who is let in, what a failed accept and a failed handshake cost, and how it closes."""

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from rig.hand_host import HandHost
from rig.listeners import Certificates
from rig.wire import PATIENCE_S, until
from sealgate.config import Listen
from sealgate.errors import Refusal
from sealgate.http.places import Guest, Places
from sealgate.server.tls import ServerTls, TlsListener


class Server:
    """What the door asks of the bots' server; `until` waits for a number of handshakes under way."""

    def __init__(self) -> None:
        self.places = Places(2, Refusal("queue_full", ""))
        self.admitted: list[asyncio.Protocol] = []

    def admit(self, handshake: Guest) -> asyncio.Protocol:
        del handshake
        self.admitted.append(asyncio.Protocol())
        return self.admitted[-1]

    async def until(self, count: int) -> None:
        await until(lambda: len(self.places) == count)


class Known:
    """A guest that stays."""

    def turn_out(self) -> None:
        raise AssertionError


class Pausing(HandHost):
    """Notes each pause, and goes on at once."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


class Scene:
    """A door that is open, and its listener."""

    def __init__(self, tls: ServerTls) -> None:
        server: Any = Server()
        self.server: Server = server
        self.host = Pausing()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.door = TlsListener(server, tls, 3600.0, self.host)

    def knock(self) -> socket.socket:
        return socket.create_connection(self.listener.getsockname(), PATIENCE_S)

    async def until_closed(self) -> None:
        """Wait until the door has ended all that it began."""
        self.door.close()
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*self.door._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # noqa: TID251 - let the callbacks run


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    listen = Listen.model_validate(Certificates(tmp_path).settings)
    made = Scene(ServerTls(listen))
    yield made
    await made.until_closed()
    made.listener.close()


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        pytest.param(errno.EMFILE, "raise the limit of open files (ulimit -n, LimitNOFILE=)", id="process"),
        pytest.param(errno.ENFILE, "raise the system's limit of open files", id="system"),
        pytest.param(errno.ENOBUFS, "free memory", id="buffers"),
        pytest.param(errno.ENOMEM, "free memory", id="memory"),
        pytest.param(errno.ECONNABORTED, None, id="a bot that is gone"),
        pytest.param(errno.EHOSTUNREACH, None, id="the network"),
        pytest.param(errno.EPERM, None, id="a firewall"),
    ],
)
async def test_a_failed_accept_is_a_pause_where_something_has_run_out(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, code: int, fix: str | None
) -> None:
    loop = asyncio.get_running_loop()
    sock_accept, errors = loop.sock_accept, [OSError(code, os.strerror(code))]

    async def failing(sock: socket.socket) -> Any:
        if errors:
            raise errors.pop()
        return await sock_accept(sock)

    monkeypatch.setattr(loop, "sock_accept", failing)
    with capture_logs() as logs, scene.knock():
        scene.door.open(scene.listener)
        await scene.server.until(1)
    assert scene.host.pauses == ([1.0] if fix else [])
    told = [(one["event"], one["cause"], one["fix"]) for one in logs]
    assert told == ([("cannot_accept", os.strerror(code), fix)] if fix else [])


async def test_a_connection_beyond_the_bound_is_closed_before_its_handshake(scene: Scene) -> None:
    for guest in (Known(), Known()):
        scene.server.places.enter(guest)
        scene.server.places.keep(guest)
    scene.door.open(scene.listener)
    reader, writer = await asyncio.open_connection(sock=scene.knock())
    async with asyncio.timeout(PATIENCE_S):
        assert await reader.read() == b""
    writer.close()
    assert len(scene.server.places) == 2


async def test_who_shakes_hands_for_the_longest_makes_room_for_who_comes(scene: Scene) -> None:
    scene.door.open(scene.listener)
    with scene.knock() as first, scene.knock(), scene.knock():
        first.setblocking(False)
        async with asyncio.timeout(PATIENCE_S):
            assert await asyncio.get_running_loop().sock_recv(first, 1) == b""
        assert len(scene.server.places) == 2


async def test_a_handshake_that_fails_gives_its_place_back(scene: Scene) -> None:
    scene.door.open(scene.listener)
    with scene.knock() as bot:
        await scene.server.until(1)
        bot.sendall(b"GET / HTTP/1.1\r\n\r\n")
        await scene.server.until(0)
    with scene.knock():
        await scene.server.until(1)
