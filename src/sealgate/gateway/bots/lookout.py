"""Seeing a bot hang up while nothing is read from it.

The end of a connection comes behind all that was sent before it. So a bot that asked for more than is read
yet could be gone for long, and its orders would still be sent. The kernel knows better, as far as the bot's
bytes fit into it, and is asked: from time to time while reading is paused, before the next request is served,
and at the end of its body. Where reading was never paused, which is the usual case, the loop sees the end by
itself and nothing is asked.
"""

import asyncio

from sealgate.gateway.host.flow import Flow, has_left

_GAP_S = 0.1


class Lookout:
    """Over one connection. `begin` is called whenever reading is paused."""

    def __init__(self, loop: asyncio.AbstractEventLoop, connection: Flow) -> None:
        self._loop = loop
        self._connection = connection
        self._has_cause = False
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Look from now on, and cut the connection once nobody is there; this ends when reading goes on."""
        self._has_cause = True
        if self._timer is None:
            self._timer = self._loop.call_later(_GAP_S, self._look)

    def cut_if_gone(self) -> bool:
        """Cut the connection if the bot is gone unseen, and return whether it is."""
        if not self._has_cause:
            return False
        self._has_cause = not self._connection.is_read
        transport = self._connection.transport
        if transport is None or not has_left(transport):
            return False
        transport.abort()
        return True

    def _look(self) -> None:
        self._timer = None
        if self._connection.is_read or self._connection.transport is None:
            return
        if not self.cut_if_gone():
            self.begin()
