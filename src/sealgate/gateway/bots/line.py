"""What a request needs of the connection that it came on: writing to the bot, and whether it is there."""

import asyncio
import socket
import struct
from collections.abc import Callable

from sealgate.core.admission import Peer
from sealgate.gateway.bots.lookout import Lookout
from sealgate.gateway.bots.peer import peer_of
from sealgate.gateway.host.flow import Flow

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: on, 0 s


class BotLine(Flow):
    """The line to a bot. `on_hang_up` is called when the bot goes while a request is under way.

    `peer` is who is at its other end, `task` serves it.
    """

    on_hang_up: Callable[[], None] | None = None

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._lookout = Lookout(loop, self)
        self.peer = Peer()
        self.task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See who it is."""
        super().connection_made(transport)
        self.peer = peer_of(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Tell that nobody waits any more.

        It comes as soon as the bot ends its sending side, for a bot that was killed looks the same.
        """
        super().connection_lost(exc)
        if self.on_hang_up is not None:
            self.on_hang_up()

    def _stop_reading(self) -> None:
        """Stop reading; until it goes on, the loop does not see the bot hang up."""
        super()._stop_reading()
        self._lookout.begin()

    async def check_presence(self) -> None:
        """Return if the bot is there; else end as where it hangs up, which cancels who waits here."""
        if self._lookout.cut_if_gone():
            await self._loop.create_future()

    def write(self, data: bytes) -> None:
        """Send bytes. Raises ConnectionResetError where the bot is gone."""
        if self.transport is None or self.transport.is_closing():
            raise ConnectionResetError("the bot is gone")
        self.transport.write(data)

    def take_no_more(self) -> None:
        """Let the request under way be the last; what comes behind it is read and thrown away."""
        self._parser = None
        self._is_full = self._reading_paused = False
        self._go_on_reading()  # so that the loop sees it hang up

    @property
    def can_be_reset(self) -> bool:
        """Whether the bot sees a `reset` as such: a Unix socket has none, so it looks like an orderly end."""
        sock = self.transport.get_extra_info("socket") if self.transport is not None else None
        return sock is None or sock.family != socket.AF_UNIX

    def reset(self) -> None:
        """End the connection so that nobody can take what was sent for the whole.

        After an orderly end HTTP/1.0 would take a part of a body for all of it.
        """
        if self.transport is None:
            return
        sock = self.transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.transport.abort()
