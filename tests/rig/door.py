"""The upstream's front door. It accepts by hand, so that a connection can go wrong before it is read from.

A welcome is what it does with a new connection instead of serving it, TLS handshake included. It can also be
shut (who comes is refused) or blocked (nobody answers, as behind a firewall that drops).
"""

import asyncio
import contextlib
import errno
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from rig.acts import reset_when_closed
from rig.wire import PATIENCE_S

Welcome = Callable[[socket.socket], Awaitable[None]]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]

_HOST = "127.0.0.1"
_BACKLOG = 1024
_BUFFERED = 1 << 20


async def slam(sock: socket.socket) -> None:
    """Accept and close."""
    sock.close()


async def slam_with_reset(sock: socket.socket) -> None:
    """Accept and reset."""
    reset_when_closed(sock)
    sock.close()


async def blurt(sock: socket.socket) -> None:
    """Say something that is neither HTTP nor TLS, and close."""
    with contextlib.suppress(ConnectionError):
        await asyncio.get_running_loop().sock_sendall(sock, b"421 Too many connections\r\n")
    sock.close()


async def ignore(sock: socket.socket) -> None:
    """Accept, and never read nor write, until the peer gives up."""
    loop = asyncio.get_running_loop()
    with sock, contextlib.suppress(ConnectionError):
        while await loop.sock_recv(sock, 1 << 16):
            pass


class Door:
    """Where an upstream listens. `welcomes` are for the next connections, then `script` is asked for each."""

    def __init__(self, serve: Serve, tls: ssl.SSLContext | None) -> None:
        self._serve = serve
        self._tls = tls
        self.port = 0
        self.welcomes: deque[Welcome] = deque()
        self.script: Callable[[], Welcome | None] | None = None
        self._listener: socket.socket | None = None
        self._fillers: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self, port: int = 0) -> None:
        """Listen, and serve who comes."""
        listener = self._listen(port, _BACKLOG)
        asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def shut(self) -> None:
        """Listen no more: who comes is refused. Those who are in may stay."""
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
        for sock in (self._listener, *self._fillers):
            if sock is not None:
                sock.close()
        self._listener, self._fillers = None, []

    def reopen(self) -> None:
        """Be as at first, at the same address."""
        self.shut()
        self.open(self.port)

    def block(self) -> None:
        """Let nobody answer who comes: a full backlog drops what comes further."""
        self.shut()
        self._listen(self.port, 0)
        for _ in range(2):
            filler = socket.socket()
            filler.setblocking(False)
            assert filler.connect_ex((_HOST, self.port)) in (0, errno.EINPROGRESS)
            self._fillers.append(filler)

    async def close(self) -> None:
        """Shut, and end what was begun with those who came."""
        self.shut()
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*tasks, return_exceptions=True)

    def _listen(self, port: int, backlog: int) -> socket.socket:
        self._listener = sock = socket.create_server((_HOST, port), backlog=backlog)
        sock.setblocking(False)
        self.port = sock.getsockname()[1]
        return sock

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            sock, _ = listener.accept()
            sock.setblocking(False)
            self._keep(self._admit(sock))

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _admit(self, sock: socket.socket) -> None:
        welcome = self.welcomes.popleft() if self.welcomes else self.script and self.script()
        if welcome is not None:
            await welcome(sock)
            return
        loop = asyncio.get_running_loop()
        protocol = asyncio.StreamReaderProtocol(
            asyncio.StreamReader(limit=_BUFFERED, loop=loop),
            lambda reader, writer: self._keep(self._serve(reader, writer)),
            loop=loop,
        )
        with contextlib.suppress(OSError):  # a handshake that fails, say
            await loop.connect_accepted_socket(lambda: protocol, sock, ssl=self._tls)
