"""The way out: the connections to the one upstream.

The border that matters is the one between two functions: what fails in `Upstream.connect` was not sent, what
fails in `UpstreamConnection.exchange` may have been.

aiohttp's connector makes connections, and this keeps the idle ones. (aiohttp does not document its connector
for use without its client; tests on raw sockets hold the behaviour.)
"""

import asyncio
import contextlib
import math
from collections import Counter, deque
from typing import TYPE_CHECKING

import aiohttp
from aiohttp.client_reqrep import ClientRequest
from yarl import URL

from sealgate.exchange.connection import CLOSED_UNUSED, UpstreamConnection
from sealgate.exchange.destination import TRANSPORT_ERRORS, Destination, client_context, describe
from sealgate.exchange.failure import Failure, FailureKind
from sealgate.exchange.idle_connections import IdleCloses
from sealgate.http.memory import HeadMemory
from sealgate.machine.system import System
from sealgate.venues.routes import Lane

if TYPE_CHECKING:
    from sealgate.http.parser import RawReplyHead


_CANCEL, _ORDER, _READ = Lane  # names that cost no look-up
_RENEW_AT = 0.8  # of the time that a connection is kept: another is opened before the last one goes
_SHORT_S = 2.0  # a connection that nobody could use for that long is no use
_GAP_S = 0.1  # from such a one to the next, at first
_REMEMBERED_BYTES = 512 * 1024  # of replies' heads: most have a date in them, and come for a second
_FULL = "no connection to the exchange became free in time (upstream.max_connections)"
_UNTIMED = aiohttp.ClientTimeout()  # its own are rounded up, and none at all where no time is left


class ConnectionSlots:
    """The places. `enter` one, and `leave` it with the same lane.

    Slow reads leave a place for orders, and neither takes one from cancels: reads get three quarters of
    `size`, reads and orders together all of it, and cancels some more. Orders that hang, at the exchange or
    because the journal's disk does not answer, leave an eighth for reads.
    """

    def __init__(self, size: int) -> None:
        eighth = max(1, size // 8)
        self._reads, self._orders = max(1, size * 3 // 4), max(1, size - eighth)
        self._size, self.all = size, size + eighth
        self._taken = dict.fromkeys(Lane, 0)
        self._queues: dict[Lane, deque[asyncio.Future[None]]] = {
            lane: deque() for lane in (_CANCEL, _ORDER, _READ)
        }
        self.waiting: Counter[Lane] = Counter()
        self.waits = 0  # in all lanes together

    @property
    def taken(self) -> int:
        """How many places are in use."""
        return sum(self._taken.values())

    def enter_at_once(self, lane: Lane) -> bool:
        """Take a place if one is free and nobody waits for it."""
        if self._queues[lane] or not self._has_place(lane):
            return False
        self._taken[lane] += 1
        return True

    async def enter(self, lane: Lane, timeout_s: float) -> None:
        """Take a place. Raises TimeoutError where none is free in time."""
        if self.enter_at_once(lane):
            return
        place = asyncio.get_running_loop().create_future()
        self._queues[lane].append(place)
        self.waiting[lane] += 1
        self.waits += 1
        try:
            async with asyncio.timeout(timeout_s):
                await place
        except BaseException:
            if place.done() and not place.cancelled():  # it was given in the same turn of the loop
                self.leave(lane)
            elif place in self._queues[lane]:
                self._queues[lane].remove(place)
            raise
        finally:
            self.waiting[lane] -= 1
            self.waits -= 1

    def leave(self, lane: Lane) -> None:
        """Give a place back, and to the first who waits for it."""
        self._taken[lane] -= 1
        if not self.waits:
            return
        for waiting, queue in self._queues.items():
            while queue and self._has_place(waiting):
                place = queue.popleft()
                if not place.done():  # else whoever waited has just gone
                    self._taken[waiting] += 1
                    place.set_result(None)

    def _has_place(self, lane: Lane) -> bool:
        cancels, orders, reads = self._taken.values()
        if lane is _CANCEL:
            return reads + orders + cancels < self.all
        is_full = reads + orders >= self._size or reads + orders + cancels >= self.all
        return not is_full and (orders < self._orders if lane is _ORDER else reads < self._reads)


class Upstream:
    """The connections to one upstream. Make it and close it inside a running loop.

    `closes` is what another `Upstream` has learned of the same exchange, and goes on to learn.
    """

    def __init__(self, destination: Destination, closes: IdleCloses | None = None) -> None:
        self.destination = destination
        url = URL(destination.base_url)
        self._before_target = url.raw_path.rstrip("/")
        self._after_target = f" HTTP/1.1\r\nHost: {url.raw_authority}\r\n"
        self.heads: HeadMemory[RawReplyHead] = HeadMemory(_REMEMBERED_BYTES)
        self._slots = ConnectionSlots(destination.max_connections)
        self._idle: list[UpstreamConnection] = []
        self._lanes: dict[UpstreamConnection, Lane] = {}
        self._loop = asyncio.get_running_loop()
        self._used_at = -math.inf
        self._renew_s = destination.keep_alive_s * _RENEW_AT
        self._has_changed = asyncio.Event()  # one is closed, or too old for an order
        self.closes = closes or IdleCloses()
        self.judge = destination.replies
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
        return f"{method} {self._before_target}{target}{self._after_target}".encode("ascii")

    def take(self, lane: Lane, *, may_be_lost: bool = False) -> UpstreamConnection | None:
        """Return an idle connection, None where there is none or no place for it at once.

        What may be lost goes on one that is too old for an order, if there is one, and shows whether it is.
        """
        if not self._idle or not self._slots.enter_at_once(lane):
            return None
        connection = self._take_idle(may_be_lost=may_be_lost)
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

    def _take_idle(self, *, may_be_lost: bool = False) -> UpstreamConnection | None:
        """Return the one that was used last, or the oldest, where that is too old for an order."""
        now = System.now()
        while self._idle:
            at = len(self._idle) - 1
            if may_be_lost and not self._idle[0].life.carries_order(now):
                at = 0
            elif not may_be_lost:
                while at >= 0 and not self._idle[at].life.carries_order(now):
                    at -= 1
                if at < 0:
                    return None
            connection = self._idle.pop(at)
            if connection.is_usable:  # whether it is alive, the system is asked right before the first byte
                connection.clear_idle_timeout()
                return connection
            connection.close()
        return None

    async def _open(self, ends_at: float = math.inf) -> UpstreamConnection | Failure:
        began = self._loop.time()
        ends_at = min(ends_at, began + self.destination.connect_timeout_s)
        if self._idle and len(self._idle) + self._slots.taken > self.destination.max_connections:
            self._idle[0].close()  # those that are left are too old for whoever asks
        try:
            async with asyncio.timeout_at(ends_at):
                way = await self._connector.connect(self._where, [], _UNTIMED)
            opened_in_s = self._loop.time() - began
            connection = UpstreamConnection(way, self, opened_in_s)
        except TimeoutError:
            return Failure(FailureKind.CONNECT_TIMEOUT, "no connection in time")
        except TRANSPORT_ERRORS as error:
            return Failure(FailureKind.UNREACHABLE, describe(error))
        if connection.is_usable:
            return connection
        connection.close()
        return Failure(FailureKind.UNREACHABLE, CLOSED_UNUSED)

    def take_back(self, connection: UpstreamConnection) -> None:
        """Keep a connection that is free again for the next request."""
        self._idle.append(connection)
        self._used_at = now = System.now()
        connection.set_idle_timeout(self.destination.keep_alive_s, now)
        if self.closes.has_any and connection.life.lasts_s(now) <= 0:  # else its timeout says it
            self._has_changed.set()
        if (lane := self._lanes.pop(connection, None)) is not None:
            self._slots.leave(lane)

    def is_wanted(self) -> bool:
        """Whether somebody waits for a connection."""
        return self._slots.waits > 0

    def forget(self, connection: UpstreamConnection) -> None:
        """Let a connection go that is closed."""
        if connection in self._idle:
            self._idle.remove(connection)
        if self._tls is not None and connection.tls is not None:
            self._tls.remember(connection.tls)
        self._has_changed.set()
        if (lane := self._lanes.pop(connection, None)) is not None:
            self._slots.leave(lane)

    async def keep_warm(self) -> None:
        """Keep one that an order may go on, for ever: what is sent after a pause waits for no handshake.

        An upstream that closes them unused is asked more and more rarely.
        """
        gap_s = _GAP_S
        while True:
            await self._until_none_is_ready()
            opened_at = self._loop.time()
            opened = await self._open_idle()
            if opened is None:  # whoever sends a request gets the reason; here it is only tried again
                await self._one_changes(self._renew_s)
                continue
            await self._until_none_is_ready()
            if opened.life.is_used or self._loop.time() >= opened_at + _SHORT_S:
                gap_s = _GAP_S
                continue
            while (left_s := opened_at + gap_s - self._loop.time()) > 0 >= self._ready_for_s():
                await self._one_changes(left_s)
            gap_s = min(2 * gap_s, self._renew_s)

    async def _until_none_is_ready(self) -> None:
        while (left_s := self._ready_for_s()) > 0:
            await self._one_changes(left_s)

    def _ready_for_s(self) -> float:
        """Return for how long the next order needs no other connection: one is idle, or comes back."""
        now = System.now()
        left_s = max((one.life.lasts_s(now, _RENEW_AT) for one in self._idle), default=-math.inf)
        if self._lanes and self.closes.safe_s(now, is_used=True) > 0:
            return max(left_s, self._used_at + self._renew_s - now)
        return left_s

    async def _open_idle(self) -> UpstreamConnection | None:
        """Open a connection for the next order, if there is room for it, and it can be made."""
        now = System.now()
        ready = sum(one.life.carries_order(now) for one in self._idle)
        is_full = ready + self._slots.taken >= self.destination.max_connections
        if is_full or not self._slots.enter_at_once(Lane.ORDER):
            return None
        try:
            connection = await self._open()
            if isinstance(connection, Failure):
                return None
            self.take_back(connection)
            return connection
        finally:
            self._slots.leave(Lane.ORDER)

    async def _one_changes(self, at_most_s: float) -> None:
        """Return when a connection is closed or too old for an order, or the time is over."""
        self._has_changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                await self._has_changed.wait()
