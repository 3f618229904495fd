"""The way out: the connections to the one upstream.

The border that matters is the one between two functions: what fails in `Upstream.connect` was not sent, what
fails in `UpstreamConnection.exchange` may have been.

aiohttp's connector makes connections, and this keeps the idle ones. (aiohttp documents neither its connector
nor its parsers for this use; its version is pinned, and tests on raw sockets hold the behaviour.)
"""

import asyncio
import contextlib
import math

import aiohttp
from aiohttp.client_reqrep import ClientRequest
from yarl import URL

from sealgate.core.attempts import Failure, FailureKind
from sealgate.core.routes import Lane
from sealgate.gateway.upstream.connection import UpstreamConnection
from sealgate.gateway.upstream.destination import Destination
from sealgate.gateway.upstream.slots import ConnectionSlots
from sealgate.gateway.upstream.tls import client_context
from sealgate.gateway.upstream.troubles import TRANSPORT_ERRORS, describe

_RENEW_AT = 0.8  # of that time: a new one is opened before the last one goes
_SHORT_S = 2.0  # a connection that is closed unused before that is no use
_GAP_S = 0.1  # from such a one to the next, at first
_FULL = "no connection to the exchange became free in time (upstream.max_connections)"
_UNTIMED = aiohttp.ClientTimeout()  # its own are rounded up, and none at all where no time is left


class Upstream:
    """The connections to one upstream. Make it and close it inside a running loop."""

    def __init__(self, destination: Destination) -> None:
        self.destination = destination
        url = URL(destination.base_url)
        self._before_target = url.raw_path.rstrip("/").encode("ascii")
        self._after_target = f" HTTP/1.1\r\nHost: {url.raw_authority}\r\n".encode("ascii")
        self._slots = ConnectionSlots(destination.max_connections)
        self._idle: list[UpstreamConnection] = []
        self._lanes: dict[UpstreamConnection, Lane] = {}
        self._loop = asyncio.get_running_loop()
        self._used_at = -math.inf
        self._served_at = self._gone_at = -math.inf
        self._has_gone = asyncio.Event()
        self._tls = client_context(destination.ca_file) if url.scheme == "https" else None
        self._connector = aiohttp.TCPConnector(limit=0, ssl=self._tls or True)
        # Only says where to connect; it is never sent.
        self._where = ClientRequest("GET", url, loop=self._loop, session=None)

    async def close(self) -> None:
        """Close all connections."""
        for connection in (*self._idle, *self._lanes):
            connection.close()
        await self._connector.close()

    @property
    def most_connections(self) -> int:
        """How many there can be, those that cancels have to themselves included."""
        return self._slots.all

    def waiting(self, lane: Lane) -> int:
        """Return how many wait for a connection in a lane."""
        return self._slots.waiting[lane]

    def head(self, method: str, target: str) -> bytes:
        """Return the request line and the Host line. `target` goes out as it is, behind base_url's path."""
        return b"%b %b%b%b" % (
            method.encode("ascii"),
            self._before_target,
            target.encode("ascii"),
            self._after_target,
        )

    def take(self, lane: Lane) -> UpstreamConnection | None:
        """Return an idle connection, None where there is none or no place for it at once."""
        if not self._idle or not self._slots.enter_at_once(lane):
            return None
        connection = self._take_idle()
        if connection is None:
            self._slots.leave(lane)
        else:
            self._lanes[connection] = lane
        return connection

    async def connect(
        self, lane: Lane, timeout_s: float, wait_s: float = math.inf, *, is_new: bool = False
    ) -> UpstreamConnection | Failure:
        """Return a connection that is ready. Nothing is sent yet.

        It may wait `wait_s` at most for a place; all of it takes `timeout_s` at most. `is_new`: it is none
        that was idle.
        """
        ends_at = self._loop.time() + timeout_s
        try:
            await self._slots.enter(lane, min(timeout_s, wait_s))
        except TimeoutError:
            return Failure(FailureKind.FULL, _FULL)
        connection: UpstreamConnection | Failure | None = None
        try:
            connection = (None if is_new else self._take_idle()) or await self._open(ends_at)
        finally:
            if isinstance(connection, UpstreamConnection):
                self._lanes[connection] = lane
            else:
                self._slots.leave(lane)
        return connection

    def _take_idle(self) -> UpstreamConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_alive():
                connection.rouse()
                return connection
            connection.close()
        return None

    async def _open(self, ends_at: float = math.inf) -> UpstreamConnection | Failure:
        ends_at = min(ends_at, self._loop.time() + self.destination.connect_timeout_s)
        try:
            async with asyncio.timeout_at(ends_at):
                way = await self._connector.connect(self._where, [], _UNTIMED)
            connection = UpstreamConnection(way, self._take_back, self._is_wanted)
        except TimeoutError:
            return Failure(FailureKind.CONNECT_TIMEOUT, "no connection in time")
        except TRANSPORT_ERRORS as error:
            return Failure(FailureKind.UNREACHABLE, describe(error))
        if connection.is_usable:
            return connection
        connection.close()
        return Failure(FailureKind.UNREACHABLE, "the connection was closed at once")

    def _take_back(self, connection: UpstreamConnection) -> None:
        """Keep a connection that is free again for the next request, if it can serve one."""
        lane = self._lanes.pop(connection, None)
        if lane is not None:
            self._served_at = self._loop.time()
        if connection.is_usable:
            connection.has_rested = True
            self._idle.append(connection)
            self._used_at = self._loop.time()
            connection.rest(self.destination.keep_alive_s)
        else:
            self._forget(connection)
        if lane is not None:
            self._slots.leave(lane)

    def _is_wanted(self) -> bool:
        return any(self._slots.waiting.values())

    def _forget(self, connection: UpstreamConnection) -> None:
        if connection in self._idle:
            self._idle.remove(connection)
        if self._tls is not None and connection.tls is not None:
            self._tls.remember(connection.tls)
        self._gone_at = self._loop.time()
        self._has_gone.set()

    async def keep_warm(self) -> None:
        """Open a connection before the last one goes, for ever: who comes after a rest pays no handshake.

        An upstream that closes them unused is asked more and more rarely.
        """
        renew_s = self.destination.keep_alive_s * _RENEW_AT
        opened_at, gap_s = -math.inf, _GAP_S
        while True:
            now = self._loop.time()
            left_s = self._used_at + renew_s - now
            was_short = self._served_at < opened_at <= self._gone_at < opened_at + _SHORT_S
            if left_s > 0 and (self._idle or self._lanes):
                await self._one_goes(left_s)
            elif was_short and now < opened_at + gap_s:
                await self._one_goes(opened_at + gap_s - now)
            else:
                opened_at, gap_s = now, min(2 * gap_s, renew_s) if was_short else _GAP_S
                # Where it cannot be had, whoever sends a request is told; here it is only tried again.
                if not await self._open_idle():
                    await self._one_goes(renew_s)

    async def _open_idle(self) -> bool:
        """Open a connection for whoever comes; say whether there was room for it, and it could be made."""
        is_full = len(self._idle) + self._slots.taken >= self.destination.max_connections
        if is_full or not self._slots.enter_at_once(Lane.ORDER):
            return False
        try:
            connection = await self._open()
            if isinstance(connection, Failure):
                return False
            self._take_back(connection)
            return True
        finally:
            self._slots.leave(Lane.ORDER)

    async def _one_goes(self, at_most_s: float) -> None:
        """Return when a connection was closed, or the time is over."""
        self._has_gone.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                await self._has_gone.wait()
