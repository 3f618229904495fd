"""What an upstream on bare sockets does with one connection: answer, whole or not, and end it."""

import asyncio
import contextlib
import itertools
import socket
import struct
from collections.abc import Awaitable, Callable

_PIECE = 1 << 16
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 seconds: close() sends RST


def reset_when_closed(sock: socket.socket) -> None:
    """Let the end of a socket be RST."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


class Wire:
    """The upstream's end of a connection, as acts use it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        self.reader = reader
        self.writer = writer
        self.number = number
        self.is_open = True

    async def write(self, raw: bytes) -> None:
        """Write and hand over to the kernel."""
        with contextlib.suppress(ConnectionError):
            self.writer.write(raw)
            await self.writer.drain()

    async def close(self) -> None:
        """Close as one should: with close_notify under TLS, then FIN."""
        self.is_open = False
        self.writer.close()

    def abort(self) -> None:
        """FIN without more ado: under TLS there is no close_notify."""
        self.is_open = False
        self.writer.transport.abort()

    def reset(self) -> None:
        """Send RST."""
        sock = self.writer.get_extra_info("socket")
        with contextlib.suppress(OSError):  # it is closed already
            if sock is not None:
                reset_when_closed(sock)
        self.abort()

    async def peer_gone(self) -> None:
        """Return when the gateway has given the connection up."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(1 << 16):
                pass
        self.abort()


Act = Callable[[Wire], Awaitable[None]]


def say(raw: bytes) -> Act:
    """Answer, and keep the connection."""

    async def act(wire: Wire) -> None:
        await wire.write(raw)

    return act


def say_and_close(raw: bytes = b"") -> Act:
    """Answer with these bytes, whole or not, then close as one should."""

    async def act(wire: Wire) -> None:
        await wire.write(raw)
        await wire.close()

    return act


def say_and_abort(raw: bytes = b"") -> Act:
    """Answer with these bytes, then FIN without close_notify."""

    async def act(wire: Wire) -> None:
        await wire.write(raw)
        wire.abort()

    return act


def say_and_reset(raw: bytes = b"") -> Act:
    """Answer with these bytes, then RST."""

    async def act(wire: Wire) -> None:
        await wire.write(raw)
        wire.reset()

    return act


def say_and_stall(raw: bytes = b"") -> Act:
    """Answer with these bytes and then nothing more, until the gateway gives up."""

    async def act(wire: Wire) -> None:
        await wire.write(raw)
        await wire.peer_gone()

    return act


def drip(raw: bytes, gap_s: float = 0.01) -> Act:
    """Answer byte by byte, and begin again at the end, until the gateway gives up."""

    async def act(wire: Wire) -> None:
        gone = asyncio.ensure_future(wire.peer_gone())
        for octet in itertools.cycle(raw):
            await wire.write(bytes((octet,)))
            await asyncio.wait((gone,), timeout=gap_s)
            if gone.done():
                return

    return act


def pour(size: int) -> Act:
    """Answer with a body of so many bytes, made as it is read."""

    async def act(wire: Wire) -> None:
        await wire.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for left in range(size, 0, -_PIECE):
            await wire.write(b"x" * min(left, _PIECE))
            if wire.writer.is_closing():
                return

    return act


def hold_until(event: asyncio.Event, then: Act) -> Act:
    """Wait for the test's sign before acting."""

    async def act(wire: Wire) -> None:
        await event.wait()
        await then(wire)

    return act


def after_bytes(size: int, then: Act) -> Act:
    """Read at most so much more of the request before acting."""

    async def act(wire: Wire) -> None:
        with contextlib.suppress(ConnectionError):
            await wire.reader.read(size)
        await then(wire)

    return act
