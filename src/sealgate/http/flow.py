"""Flow control on a connection: when to read, when to write; and a body that arrives in parts."""

import asyncio
import contextlib
import select
import socket
from typing import Final, cast

BODY_BYTES: Final = 64 * 1024  # of a body that may wait to be read before its connection is held
# POLLHUP means the same where it is all there is. XNU's poll ignores an empty mask, so it is asked for.
_KEEP_ALIVE: Final = (
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 30),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 10),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),
)
_CLOSED: Final = getattr(select, "POLLRDHUP", select.POLLHUP)


class Flow(asyncio.Protocol):
    """A connection. `transport` is None before it is made and after it is lost.

    `source` is another one whose bytes are written here: it is held while the other end does not read.
    """

    source: "Flow | None" = None

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.transport: asyncio.Transport | None = None
        self._holders: set[object] = set()  # nothing is read as long as there are any
        self._writable: asyncio.Future[None] | None = None  # done once the other end reads on, or is gone
        self._poll: select.poll | None = None  # kept, as making one costs twice what asking does

    @property
    def is_reading(self) -> bool:
        """Whether nobody holds the connection."""
        return not self._holders

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, and let it send small packets at once."""
        self.transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family != socket.AF_UNIX:
            with contextlib.suppress(OSError):  # macOS sets no option once the other end has closed it
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Drop the transport, and end the wait of a task that cannot write."""
        del exc
        self.transport = self._poll = None
        self._holders.clear()  # a body among them refers back: only the collector would free both
        if self._writable is not None:
            self._writable.set_result(None)
        if self.source is not None:
            self.source.let_go(self)
            self.source = None

    def keep_alive(self) -> None:
        """Let the system find out within a minute that the other end has vanished without a word."""
        sock = None if self.transport is None else self.transport.get_extra_info("socket")
        if sock is not None and sock.family != socket.AF_UNIX:
            for level, name, value in _KEEP_ALIVE:
                if hasattr(socket, name):
                    with contextlib.suppress(OSError):
                        sock.setsockopt(level, getattr(socket, name), value)

    def has_left(self, *, or_sent: bool = False) -> bool:
        """Ask the system whether the other end has closed, behind bytes that were not read yet.

        With `or_sent`, unread bytes count as well.
        """
        transport = self.transport
        if transport is None or transport.is_closing():
            return False
        if self._poll is None:
            sock = transport.get_extra_info("socket")
            if sock is None:
                return False
            self._poll = select.poll()
            self._poll.register(sock, _CLOSED | select.POLLIN)
        states = self._poll.poll(0)
        return bool(states) and (or_sent or states[0][1] != select.POLLIN)

    def eof_received(self) -> None:
        """Let the transport close: a peer that half-closes looks the same as one that was killed."""

    def hold(self, holder: object) -> None:
        """Stop reading until this holder and all others have let go."""
        self._holders.add(holder)
        if self.transport is not None:
            with contextlib.suppress(RuntimeError):  # it is closing already
                self.transport.pause_reading()

    def let_go(self, holder: object) -> None:
        """Read on, unless another holder is left."""
        if holder in self._holders:
            self._holders.remove(holder)
            if not self._holders and self.transport is not None:
                with contextlib.suppress(RuntimeError):  # the same
                    self.transport.resume_reading()

    def pause_writing(self) -> None:
        """Note that the other end does not read."""
        self._writable = self._loop.create_future()
        if self.source is not None:
            self.source.hold(self)

    def resume_writing(self) -> None:
        """Note that the other end reads again."""
        if self._writable is not None:
            self._writable.set_result(None)
            self._writable = None
        if self.source is not None:
            self.source.let_go(self)

    async def drain(self) -> None:
        """Return when more may be written. Raises ConnectionResetError if the connection is lost."""
        if self._writable is None:
            return
        await asyncio.shield(self._writable)  # a cancelled task must not end the wait of another
        if self.transport is None:
            raise ConnectionResetError("the connection is lost")


class Body:
    """A message's body, part by part. It holds its connection while many bytes wait to be read.

    `is_whole`: all of it has arrived. `error` is why it never will.
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
        """Whether all of it has arrived and was taken."""
        return self.is_whole and not self._parts

    def feed(self, part: bytes) -> None:
        """Add a part."""
        self._parts.append(part)
        self._size += len(part)
        if self._size > BODY_BYTES:
            self._connection.hold(self)
        self._wake()

    def end(self) -> None:
        """Note that all of it has arrived."""
        self.is_whole = True
        self._wake()

    def fail(self, error: Exception) -> None:
        """Let `read` raise the error once it has returned what arrived; does nothing to a whole body."""
        if not self.is_whole and self.error is None:
            self.error = error
            self._wake()

    def take(self) -> bytes:
        """Return everything that has arrived since the last call."""
        if not self._parts:
            return b""
        parts, self._parts = self._parts, []
        if self._size:
            self._size = 0
            self._connection.let_go(self)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def read(self) -> bytes:
        """Wait for the next part and return it with what else has arrived; b"" at the end. Raises `error`."""
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
