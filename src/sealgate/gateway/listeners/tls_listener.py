"""The bots' address by TLS.

Connections are accepted by hand, so that a peer that has not finished the handshake counts as a connection,
too, and is given up after a while.
"""

import asyncio
import contextlib
import socket
from collections.abc import Coroutine
from typing import Any

from sealgate.gateway.bots.server import BotServer
from sealgate.gateway.listeners.server_tls import ServerTls
from sealgate.gateway.platform.background import warn_of_accept
from sealgate.gateway.platform.system import System

_GOODBYE_S = 2.0  # for the peer's half of the end, before the connection is just closed
_PAUSE_S = 1.0  # where the next accept would fail, too


class TlsListener:
    """Accepts, shakes hands within `handshake_s`, and hands over to the server."""

    def __init__(self, server: BotServer, tls: ServerTls, handshake_s: float, system: System) -> None:
        self._tls = tls
        self._server = server
        self._handshake_s = handshake_s
        self._system = system
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self, listener: socket.socket) -> None:
        """Begin to accept. The listener is closed by the end of that, when the loop has let go of it."""
        self._start(self._accept(listener)).add_done_callback(lambda _: listener.close())

    def close(self) -> None:
        """Accept no more, and give up the handshakes under way."""
        for task in self._tasks:
            task.cancel()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(listener)
            except OSError as error:
                if warn_of_accept(error):
                    await self._system.sleep(_PAUSE_S)
                continue
            if self._server.is_full:
                sock.close()  # there is nobody yet to whom a reply could be written
            else:
                self._start(self._shake_hands(sock))

    async def _shake_hands(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._server.handshakes += 1
        try:
            with contextlib.suppress(OSError):  # it failed, or took too long: the peer knows
                await loop.connect_accepted_socket(
                    self._server.admit,
                    sock,
                    ssl=self._tls.context(),
                    ssl_handshake_timeout=self._handshake_s,
                    ssl_shutdown_timeout=_GOODBYE_S,
                )
        finally:
            self._server.handshakes -= 1
