"""The way out: the connections to the exchange.

One border matters: a request that fails in `Upstream.connect` was not sent, one that fails in
`UpstreamConnection.exchange` may have been.
"""

import asyncio
import contextlib
import math
from collections import Counter, deque
from typing import TYPE_CHECKING, Final

from yarl import URL

from sealgate.exchange.connection import CLOSED_UNUSED, UpstreamConnection
from sealgate.exchange.destination import ConnectError, Destination, Dialer, ProxyRefusedError, client_context
from sealgate.exchange.failure import Failure, FailureKind
from sealgate.exchange.idle_connections import IdleCloses
from sealgate.http.head_memory import HeadMemory
from sealgate.machine.system import System
from sealgate.venues.routes import Lane

if TYPE_CHECKING:
    from sealgate.http.parser import RawReplyHead


# Names that cost no look-up.
_CANCEL: Final = Lane.CANCEL
_ORDER: Final = Lane.ORDER
_READ: Final = Lane.READ
_RENEW_AT = 0.8  # of an idle connection's life: the next one is opened before the last one is too old
_SHORT_S = 2.0  # an unused connection that the exchange closes within this time was of no use
_GAP_S = 0.1  # after such a connection, before the first further attempt; doubled after each
_REMEMBERED_BYTES = 512 * 1024  # of heads of replies: most contain a date, so they recur for a second
_FULL = "no connection to the exchange became free in time (upstream.max_connections)"


class ConnectionSlots:
    """The slots for connections. `enter` one, and `leave` it with the same lane.

    Slow requests of one lane must not block the others:
    - cancels have an eighth of `size` to themselves, beside `size`;
    - reads get at most three quarters of `size`, so that orders find a slot;
    - orders leave an eighth for reads: they hang if the exchange, or the journal's disk, does not answer.
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
        self.waits = 0  # requests in all queues together

    @property
    def taken(self) -> int:
        """How many slots are in use."""
        return sum(self._taken.values())

    def enter_at_once(self, lane: Lane) -> bool:
        """Take a slot if one is free and no request of the lane is waiting for it."""
        if self._queues[lane] or not self._has_slot(lane):
            return False
        self._taken[lane] += 1
        return True

    async def enter(self, lane: Lane, timeout_s: float) -> None:
        """Take a slot. Raises TimeoutError if none is free in time."""
        if self.enter_at_once(lane):
            return
        slot = asyncio.get_running_loop().create_future()
        self._queues[lane].append(slot)
        self.waiting[lane] += 1
        self.waits += 1
        try:
            async with asyncio.timeout(timeout_s):
                await slot
        except BaseException:
            if slot.done() and not slot.cancelled():  # it was assigned in this turn of the loop
                self.leave(lane)
            elif slot in self._queues[lane]:
                self._queues[lane].remove(slot)
            raise
        finally:
            self.waiting[lane] -= 1
            self.waits -= 1

    def leave(self, lane: Lane) -> None:
        """Free a slot, and assign it to the first request in the most urgent queue that may have it."""
        self._taken[lane] -= 1
        if not self.waits:
            return
        for waiting, queue in self._queues.items():
            while queue and self._has_slot(waiting):
                slot = queue.popleft()
                if not slot.done():  # the request may have been cancelled in this turn of the loop
                    self._taken[waiting] += 1
                    slot.set_result(None)

    def _has_slot(self, lane: Lane) -> bool:
        cancels, orders, reads = self._taken.values()
        if lane is _CANCEL:
            return reads + orders + cancels < self.all
        is_full = reads + orders >= self._size or reads + orders + cancels >= self.all
        return not is_full and (orders < self._orders if lane is _ORDER else reads < self._reads)


class Upstream:
    """The connections to one exchange. Make it and close it inside a running loop.

    `closes` is shared with the other `Upstream`s of the same exchange, which learn from it and add to it.
    """

    def __init__(self, destination: Destination, closes: IdleCloses | None = None) -> None:
        self.destination = destination
        url = URL(destination.base_url)
        self._before_target = url.raw_path.rstrip("/")
        self._after_target = f" HTTP/1.1\r\nHost: {url.raw_authority}\r\n{destination.headers}"
        self.heads: HeadMemory[RawReplyHead] = HeadMemory(_REMEMBERED_BYTES)
        self._slots = ConnectionSlots(destination.max_connections)
        self._idle: list[UpstreamConnection] = []  # the one that was used last is the last
        self._lanes: dict[UpstreamConnection, Lane] = {}  # those that requests have
        self._loop = asyncio.get_running_loop()
        self._used_at = -math.inf
        self._renew_s = destination.keep_alive_s * _RENEW_AT
        self._has_changed = asyncio.Event()  # a connection was closed, or came back too old for an order
        self.closes = closes or IdleCloses()
        self.judge = destination.replies
        self._tls = client_context(destination.ca_file) if url.scheme == "https" else None
        self._dialer = Dialer(url, self._tls, destination.way)
        self.is_closed = False

    async def close(self) -> None:
        """Close all connections."""
        self.is_closed = True
        for connection in (*self._idle, *self._lanes):
            connection.close()

    @property
    def most_connections(self) -> int:
        """How many connections there can be, including those that only cancels may use."""
        return self._slots.all

    def waiting(self, lane: Lane) -> int:
        """Return how many requests of a lane are waiting for a connection."""
        return self._slots.waiting[lane]

    def head(self, method: str, target: str) -> bytes:
        """Return the first lines of a request. `target` is sent as it is, behind base_url's path."""
        return f"{method} {self._before_target}{target}{self._after_target}".encode("ascii")

    def take(self, lane: Lane, *, may_be_lost: bool = False) -> UpstreamConnection | None:
        """Return an idle connection; None if there is none, or no free slot.

        A request that may be lost gets a connection that is too old for an order, if there is one.
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
        """Return a connection to which nothing was written yet, or why there is none.

        Waiting for a slot takes at most `wait_s`, everything together at most `timeout_s`. With `is_new` it
        is not an idle one.
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
        """Return the idle connection that suits a request best.

        There are two cases:
        1. The request may be lost, and the oldest connection is too old for an order: that one. Its reply
           will show whether the exchange still had the connection.
        2. Any other request gets the connection that was used last, if that is young enough for an order.
        """
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
            if connection.is_usable:  # the system is asked whether it is alive right before the first byte
                connection.alarm.at = math.inf  # the request may wait for long before its first byte
                return connection
            connection.close()
        return None

    async def _open(self, ends_at: float = math.inf) -> UpstreamConnection | Failure:
        if self._idle and len(self._idle) + self._slots.taken > self.destination.max_connections:
            self._idle[0].close()  # all idle ones are too old for this request
        ends_at = min(ends_at, self._loop.time() + self.destination.connect_timeout_s)
        began = System.now()
        try:
            async with asyncio.timeout_at(ends_at):
                connection = await self._dialer.dial(lambda: UpstreamConnection(self, began))
        except TimeoutError:
            return Failure(FailureKind.CONNECT_TIMEOUT, self._dialer.too_late)
        except ProxyRefusedError as error:
            return Failure(FailureKind.PROXY, str(error))
        except ConnectError as error:
            return Failure(FailureKind.UNREACHABLE, str(error))
        if connection.is_usable:
            return connection
        connection.close()
        return Failure(FailureKind.UNREACHABLE, CLOSED_UNUSED)

    def take_back(self, connection: UpstreamConnection) -> None:
        """Keep a connection that is idle again for the next request."""
        self._idle.append(connection)
        self._used_at = now = System.now()
        connection.alarm.set(self._loop.time() + connection.life.rest(self.destination.keep_alive_s, now))
        if self.closes.has_any and connection.life.lasts_s(now) <= 0:  # its timeout would tell too late
            self._has_changed.set()
        if (lane := self._lanes.pop(connection, None)) is not None:
            self._slots.leave(lane)

    def is_wanted(self) -> bool:
        """Return whether a request is waiting for a connection."""
        return self._slots.waits > 0

    def forget(self, connection: UpstreamConnection) -> None:
        """Drop a closed connection, and keep its TLS session for the next one."""
        if connection in self._idle:
            self._idle.remove(connection)
        if self._tls is not None and connection.tls is not None:
            self._tls.remember(connection.tls)
        self._has_changed.set()
        if (lane := self._lanes.pop(connection, None)) is not None:
            self._slots.leave(lane)

    async def keep_warm(self) -> None:
        """Keep a connection ready until cancelled: an order after a pause waits for no handshake."""
        gap_s = _GAP_S
        while True:
            # 1. Open a connection as soon as none is ready. If that fails, the next request gets the reason.
            await self._until_none_is_ready()
            opened_at = self._loop.time()
            opened = await self._open_idle()
            if opened is None:
                await self._change(self._renew_s)
                continue
            # 2. It served, or lived for a while: keep on.
            await self._until_none_is_ready()
            if opened.life.is_used or self._loop.time() >= opened_at + _SHORT_S:
                gap_s = _GAP_S
                continue
            # 3. The exchange closed it unused: try less and less often.
            while (left_s := opened_at + gap_s - self._loop.time()) > 0 >= self._ready_for_s():
                await self._change(left_s)
            gap_s = min(2 * gap_s, self._renew_s)

    async def _until_none_is_ready(self) -> None:
        while (left_s := self._ready_for_s()) > 0:
            await self._change(left_s)

    def _ready_for_s(self) -> float:
        """Return for how long an order will find a connection: an idle one, or one that a request has now."""
        now = System.now()
        left_s = max((one.life.lasts_s(now, _RENEW_AT) for one in self._idle), default=-math.inf)
        if self._lanes and self.closes.safe_s(now, is_used=True) > 0:
            return max(left_s, self._used_at + self._renew_s - now)
        return left_s

    async def _open_idle(self) -> UpstreamConnection | None:
        """Open a connection for the next order; None if there is no slot, or no connection."""
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

    async def _change(self, at_most_s: float) -> None:
        """Return when a connection was closed or came back too old for an order, or the time is over."""
        self._has_changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                await self._has_changed.wait()
