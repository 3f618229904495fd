"""The flow control of a connection: whether it is read, and whether more may be written to it.

What aiohttp's parsers and streams call of their connection, or look at, has its name for it: `connected`,
`_reading_paused`, `pause_reading`, `resume_reading`. aiohttp's own class for this cannot be compiled.
"""

import asyncio
import contextlib
import select
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from aiohttp.tcp_helpers import tcp_nodelay

if TYPE_CHECKING:
    from aiohttp.base_protocol import BaseProtocol

# Where there is only POLLHUP it says the same, but XNU's poll looks at nothing for an empty mask.
_CLOSED = getattr(select, "POLLRDHUP", select.POLLHUP)
BUFFERED_BYTES = 64 * 1024  # of a body that nobody reads yet


def has_left(transport: asyncio.BaseTransport, *, or_sent: bool = False) -> bool:
    """Ask the system whether the other end has closed, even if what it sent before has not been read yet.

    `or_sent`: or whether it has sent anything at all.
    """
    sock = transport.get_extra_info("socket")
    if sock is None or transport.is_closing():
        return False
    asking = select.poll()
    asking.register(sock, _CLOSED | select.POLLIN if or_sent else _CLOSED)
    return bool(asking.poll(0))


class Parser(Protocol):
    """What is used of aiohttp's parsers; their messages are an empty tuple where a list is stated."""

    def feed_data(self, data: bytes) -> tuple[Sequence[Any], bool, bytes]:
        """Return the messages that began, whether another protocol was asked for, and what followed that."""

    def message_consumed(self) -> None:
        """Make room for one more message."""

    def pause_reading(self) -> None:
        """Keep what was fed and is not parsed yet."""

    def set_upgraded(self, val: bool) -> None:  # noqa: FBT001 - aiohttp's interface
        """Take what follows for HTTP, or not."""


class Flow(asyncio.Protocol):
    """A connection. `transport` is None before it is made and after it is lost."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.transport: asyncio.Transport | None = None
        self._parser: Parser | None = None  # none while nothing is parsed
        self._reading_paused = False  # by the parser, for a body that nobody reads
        self._was_paused = False  # since this parser was made, so that it may hold something back
        self._is_full = False  # held by ourselves, for requests that nobody takes
        self._writable: asyncio.Future[None] | None = None  # done once the other end reads on, or is gone

    def for_aiohttp(self) -> "BaseProtocol":
        """Return this as what aiohttp's parsers state that they are given."""
        return cast("BaseProtocol", self)

    @property
    def connected(self) -> bool:
        """Whether there is a connection."""
        return self.transport is not None

    @property
    def is_read(self) -> bool:
        """Whether reading is not paused."""
        return not (self._reading_paused or self._is_full)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self.transport = cast("asyncio.Transport", transport)
        tcp_nodelay(self.transport, value=True)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Let a task that waits to write go on, and fail."""
        del exc
        self.transport = None
        if self._writable is not None:
            self._writable.set_result(None)

    def eof_received(self) -> None:
        """Let the transport close: a peer that sends no more looks the same as one that was killed."""

    def pause_reading(self) -> None:
        """Hold back what comes, as the parser asks for."""
        self._reading_paused = self._was_paused = True
        if self._parser is not None:
            self._parser.pause_reading()
        self._stop_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:  # noqa: FBT001, FBT002 - aiohttp's interface
        """Read on, if reading was paused; aiohttp calls this whenever a body was read.

        A parser that was paused may keep something back later, too, without another pause.
        """
        if not self._was_paused:
            return
        was_paused, self._reading_paused = self._reading_paused, False
        if resume_parser:
            self.data_received(b"")  # parses what was fed; that may pause again
        if was_paused and self.is_read:
            self._go_on_reading()

    def hold(self) -> None:
        """Read no more until `let_go`, whatever the parser wants."""
        self._is_full = True
        self._stop_reading()

    def let_go(self) -> None:
        """Read on, unless the parser wants it held."""
        self._is_full = False
        if not self._reading_paused:
            self._go_on_reading()

    def _stop_reading(self) -> None:
        if self.transport is not None:
            with contextlib.suppress(RuntimeError):  # it closes already
                self.transport.pause_reading()

    def _go_on_reading(self) -> None:
        if self.transport is not None:
            with contextlib.suppress(RuntimeError):  # the same
                self.transport.resume_reading()

    def pause_writing(self) -> None:
        """Hear that the other end does not read."""
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        """Hear that it does."""
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
