"""The flow of bytes on a connection: whether it is read and written to, and a body as it comes."""

import asyncio
import contextlib
import select
import socket
from typing import Final, cast

BODY_BYTES: Final = 64 * 1024  # of a body that are held before somebody reads them
# Where there is only POLLHUP it says the same, but XNU's poll looks at nothing for an empty mask.
_CLOSED: Final = getattr(select, "POLLRDHUP", select.POLLHUP)


class Flow(asyncio.Protocol):
    """A connection. `transport` is None before it is made and after it is lost."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.transport: asyncio.Transport | None = None
        self._holders: set[object] = set()  # nothing is read as long as there are any
        self._writable: asyncio.Future[None] | None = None  # done once the other end reads on, or is gone
        self._asking: select.poll | None = None  # kept, as making one costs twice what asking does

    @property
    def is_read(self) -> bool:
        """Whether reading is not held."""
        return not self._holders

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self.transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family != socket.AF_UNIX:
            with contextlib.suppress(OSError):  # macOS sets no option once the other end has closed it
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End the wait of a task that cannot write."""
        del exc
        self.transport = self._asking = None
        self._holders.clear()  # a body among them has this connection, which only the collector would see
        if self._writable is not None:
            self._writable.set_result(None)

    def has_left(self, *, or_sent: bool = False) -> bool:
        """Ask the system whether the other end has closed, even if what it sent before has not been read yet.

        `or_sent`: or whether it has sent anything at all that was not read.
        """
        transport = self.transport
        if transport is None or transport.is_closing():
            return False
        if self._asking is None:
            sock = transport.get_extra_info("socket")
            if sock is None:
                return False
            self._asking = select.poll()
            self._asking.register(sock, _CLOSED | select.POLLIN)
        states = self._asking.poll(0)
        return bool(states) and (or_sent or states[0][1] != select.POLLIN)

    def eof_received(self) -> None:
        """Let the transport close: one that ends its sending side looks the same as one that was killed."""

    def hold(self, holder: object) -> None:
        """Stop reading until this holder and all others have let go."""
        self._holders.add(holder)
        if self.transport is not None:
            with contextlib.suppress(RuntimeError):  # it closes already
                self.transport.pause_reading()

    def let_go(self, holder: object) -> None:
        """Read on, unless somebody else holds it."""
        if holder in self._holders:
            self._holders.remove(holder)
            if not self._holders and self.transport is not None:
                with contextlib.suppress(RuntimeError):  # the same
                    self.transport.resume_reading()

    def pause_writing(self) -> None:
        """Note that the other end does not read."""
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        """Note that it does."""
        if self._writable is not None:
            self._writable.set_result(None)
            self._writable = None

    async def drain(self) -> None:
        """Return when more may be written. Raises ConnectionResetError where the connection is lost."""
        if self._writable is None:
            return
        await asyncio.shield(self._writable)  # one that gives up takes it from no other
        if self.transport is None:
            raise ConnectionResetError("the connection is lost")


class Body:
    """A message's body as it comes. Its connection is held while much of it waits to be read.

    `is_whole` says that all of it has come; `error` is why it never will.
    """

    __slots__ = ("_connection", "_parts", "_size", "_waiter", "error", "is_whole")

    def __init__(self, connection: Flow, whole: bytes | None = None) -> None:
        self._connection = connection
        self._parts = [whole] if whole else []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self.is_whole = whole is not None
        self.error: Exception | None = None

    @property
    def is_read(self) -> bool:
        """Whether it is whole and all of it was taken."""
        return self.is_whole and not self._parts

    def feed(self, part: bytes) -> None:
        """Add what has come."""
        self._parts.append(part)
        self._size += len(part)
        if self._size > BODY_BYTES:
            self._connection.hold(self)
        self._wake()

    def end(self) -> None:
        """Note that it is whole."""
        self.is_whole = True
        self._wake()

    def fail(self, error: Exception) -> None:
        """Raise an error to whoever reads it, once what has come was read; one that is whole stays so."""
        if not self.is_whole and self.error is None:
            self.error = error
            self._wake()

    def take(self) -> bytes:
        """Return all that is there."""
        parts, self._parts = self._parts, []
        if self._size:
            self._size = 0
            self._connection.let_go(self)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def read(self) -> bytes:
        """Return what has come since the last call, waiting for it; b"" at the end. Raises `error`."""
        while not self._parts:
            if self.is_whole:
                return b""
            if self.error is not None:
                raise self.error
            self._waiter = self._connection._loop.create_future()  # noqa: SLF001 - two halves of one thing
            await self._waiter
        return self.take()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
