"""The server's side of HTTP/1.1: a connection on which requests come, to be answered one after the other.

The parser knows how far a request has come; what is left to be said of the connection is one state of a few.
"""

import asyncio
import contextlib
import math
import socket
import struct
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from sealgate.errors import Refusal
from sealgate.http.flow import Body, Flow
from sealgate.http.memory import HeadMemory
from sealgate.http.parser import PIECE_BYTES, Malformed, RequestEvent, RequestHead, RequestParser
from sealgate.http.places import Guest, Places
from sealgate.machine.alarm import Alarm

_AHEAD: Final = 8  # pieces that are read while they wait for their turn,
_AHEAD_BYTES: Final = 16 * 1024  # and their bytes; the piece that goes beyond is taken whole
_LINGER_S: Final = 2.0
_CHECK_S: Final = 0.1
_HTTP_11: Final = (1, 1)
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: on, 0 s

log = structlog.get_logger("sealgate.server_connection")


# What becomes of a connection. From _LAST on nothing more is accepted.
_NEW: Final = 0  # nothing has come
_OPEN: Final = 1
_LAST: Final = 2  # what was accepted is answered
_ENDED: Final = 3  # all was answered: it closes, or is closed


class Incoming:
    """A request as it comes in. `may_stay` says whether the connection outlives it.

    `read_at` is when its head came, by `Service.now`, where it then waited behind another; else 0.0.
    """

    __slots__ = ("body", "connection", "head", "may_stay", "read_at")

    def __init__(self, head: RequestHead, body: Body, connection: "ServerConnection") -> None:
        self.head = head
        self.body = body
        self.connection = connection
        self.may_stay = head.keep_alive
        self.read_at = 0.0

    def release(self) -> None:
        """Let go of fields, target and body, which may be large; what is left is enough for a reply."""
        self.head = RequestHead(self.head.method, "", self.head.version, ())
        self.body.take()


@dataclass(frozen=True, slots=True)
class Service:
    """What serves the connections of a listener. Durations are seconds.

    `handle` writes the reply to a request and says whether the connection may stay; `malformed` returns the
    reply to what is no request. `memory` returns the heads that were admitted before. `identify` says who is
    at the other end of a new connection, `now` what time it is when a head comes that has to wait.
    """

    handle: Callable[[Incoming], Awaitable[bool]]
    malformed: Callable[[Refusal], bytes]
    head_timeout_s: float
    memory: Callable[[], HeadMemory[RequestHead]] = field(default=HeadMemory)
    identify: Callable[[asyncio.BaseTransport], Any] = lambda _: None
    now: Callable[[], float] = lambda: 0.0
    idle_s: float = 75.0  # longer than the usual client keeps an idle connection


class ServerConnection(Flow):
    """Parses requests, queues them and has them served one at a time.

    It takes one of the `places` once the connection is made: the loop accepts many at once, and makes the
    protocols of all before the first of them is counted. `handshake` is what has kept it one until then.
    `on_hang_up` is called when the client goes while a request is served, by `task`. `peer` is the client.
    """

    on_hang_up: Callable[[], None] | None = None

    def __init__(
        self,
        service: Service,
        connections: "set[ServerConnection]",
        places: Places,
        handshake: Guest | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(loop)
        self.peer: Any = None
        self.task: asyncio.Task[None] | None = None
        self._parser = RequestParser()
        self._service = service
        self._connections = connections
        self._places = places
        self._handshake = handshake
        self._state = _NEW
        self._queue: deque[Incoming | Refusal] = deque()
        self._latest: Incoming | None = None  # whose body still comes
        self._ends_oddly = False  # whether the client may take what it sends behind the last for a request
        self._ahead: deque[tuple[bytes, float]] = deque()  # what is not parsed yet, and since when it waits
        self._arrival: asyncio.Future[None] | None = None
        self._alarm = Alarm(loop, self._time_is_over)
        self._left: asyncio.Future[None] | None = None  # once the gateway stops; ends with the connection
        self._may_be_gone = False  # unseen, as reading was held
        self._hang_up_timer: asyncio.TimerHandle | None = None

    def own_url(self) -> str:
        """Return the server's own address as the client reached it."""
        address = self.transport.get_extra_info("sockname") if self.transport is not None else None
        if self.transport is None or not isinstance(address, tuple):
            return "the gateway's own address"
        scheme = "http" if self.transport.get_extra_info("ssl_object") is None else "https"
        host, port = address[:2]
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve."""
        super().connection_made(transport)
        self.peer = self._service.identify(transport)
        if self._handshake is not None:
            self._places.leave(self._handshake)
            self._handshake = None
        if (refusal := self._places.enter(self)) is not None:
            self._queue.append(refusal)
        self._connections.add(self)
        self.task = self._loop.create_task(self._serve())

    def data_received(self, data: bytes) -> None:
        """Parse, and wake up who serves."""
        is_waited_for = self._arrival is not None and not self._queue
        if is_waited_for:
            known = self._parser.find(self._service.memory(), data)
            if known is not None:
                head, body = known
                if self._state == _NEW:
                    self._has_asked()
                self._queue.append(Incoming(head, Body(self, body), self))
                self._wake()
                return
        self._ahead.append((data, 0.0 if is_waited_for else self._service.now()))
        self._parse()
        if self._queue:
            self._wake()

    def _parse(self) -> None:
        """Parse a request that is waited for, or the body of the latest; what is behind them waits."""
        while self._ahead and self._state < _LAST and not self._queue:
            if self._arrival is None and self._latest is None:
                break
            data, came_at = self._ahead.popleft()
            if len(data) > PIECE_BYTES:
                self._ahead.appendleft((data[PIECE_BYTES:], came_at or self._service.now()))
            was_in_head = self._parser.is_in_head
            for event in self._parser.feed(data[:PIECE_BYTES]):
                self._take(event, came_at)
            if self._parser.is_in_head and not was_in_head and self._arrival is not None:
                self._alarm.set(self._loop.time() + self._service.head_timeout_s)
        if self._state >= _LAST:
            self._ahead.clear()
        if not self._ahead:
            self.let_go(self)
        elif len(self._ahead) > _AHEAD or sum(len(data) for data, _ in self._ahead) > _AHEAD_BYTES:
            self.hold(self)

    def _has_asked(self) -> None:
        self._state = _OPEN
        self._places.keep(self)

    def _take(self, event: RequestEvent, came_at: float) -> None:
        latest = self._latest
        if isinstance(event, RequestHead):
            if self._state == _NEW:
                self._has_asked()
            self._latest = Incoming(event, Body(self), self)
            self._latest.read_at = came_at or (self._service.now() if self._queue else 0.0)
            self._queue.append(self._latest)
            # What follows was written for the other end of a tunnel, or by HTTP/1.0, which knows no chunks.
            self._ends_oddly = event.method == "CONNECT" or (
                event.length is None and event.version < _HTTP_11
            )
        elif isinstance(event, Malformed):
            slug = "headers_too_large" if event.is_too_large else "bad_request"
            self._refuse_the_rest(Refusal(slug, event.detail))
        elif latest is not None:
            if event:
                latest.body.feed(event)
            else:
                latest.body.end()
                self._latest = None

    def _refuse_the_rest(self, refusal: Refusal) -> None:
        """Take no more: the refusal belongs to the body under way, or is the last reply."""
        self._state = _LAST
        if self._latest is None:
            self._queue.append(refusal)
        else:
            self._latest.may_stay = False
            self._latest.body.fail(refusal)
            self._latest = None

    def connection_lost(self, exc: BaseException | None) -> None:
        """End what is served.

        It comes as soon as the client ends its sending side, for one that was killed looks the same.
        """
        self._state = _ENDED
        self._connections.discard(self)
        self._places.leave(self)
        self._parser.close()
        self._alarm.stop()
        super().connection_lost(exc)
        if self._latest is not None:
            self._latest.body.fail(ConnectionResetError("the client is gone"))
            self._latest = None  # it has this connection, which only the collector would see
        if self.on_hang_up is not None:
            self.on_hang_up()
        self._wake()
        if self._left is not None and not self._left.done():
            self._left.set_result(None)

    def leave(self) -> "asyncio.Future[None]":
        """Close after the request that is being served, if there is one.

        The future returned is done once the connection has ended and all that was written has gone out.
        """
        if self._left is None:
            self._left = self._loop.create_future()
            self._wake()
        return self._left

    async def _serve(self) -> None:
        try:
            while (item := await self._next()) is not None:
                if isinstance(item, Refusal):
                    self.write(self._service.malformed(item))
                    break
                if not await self._service.handle(item):
                    break
                if not item.body.is_read:
                    item.body.take()  # nobody wanted it, and nothing behind it is read as long as it waits
                if self._queue or self._ahead:  # many that are refused at once must not keep others waiting
                    await asyncio.sleep(0)  # noqa: TID251 - takes no time
        except ConnectionResetError:
            pass
        except Exception:
            # What was sent by then is not known here, so nothing is claimed: the connection is cut.
            self.reset()
            log.exception("connection_failed")
        finally:
            self._end()

    async def _next(self) -> Incoming | Refusal | None:
        """Return the next request or refusal, None at the end.

        Nothing more is served to a client that does not read its replies, or that is gone.
        """
        if self._writable is not None:
            self._alarm.set(self._loop.time() + self._service.head_timeout_s)
            await self.drain()
        if not self._queue:
            self._arrival = self._loop.create_future()
            try:
                if self._ahead:
                    self._parse()
                is_last = self._state >= _LAST or self._parser.is_over or self._left is not None
                if not self._queue and not is_last:
                    is_idle = self._state == _OPEN and not self._parser.is_in_head
                    patience_s = self._service.idle_s if is_idle else self._service.head_timeout_s
                    self._alarm.set(self._loop.time() + patience_s)
                    await self._arrival
            finally:
                self._arrival = None
        # It may have been cut in this turn of the loop, of which the state does not know yet.
        if self.transport is None or self.transport.is_closing() or not self._queue or self.cut_if_gone():
            return None
        item = self._queue.popleft()
        self._alarm.set(math.inf)
        if self._ahead:
            self._parse()
        return item

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _time_is_over(self) -> None:
        if self._arrival is not None and self._parser.is_in_head and self._state < _LAST:
            timeout_s = self._service.head_timeout_s
            self._refuse_the_rest(Refusal("body_timeout", f"The head did not arrive within {timeout_s:g} s."))
            self._wake()
        elif self.transport is not None:
            self.transport.abort()

    def _end(self) -> None:
        """Close; a client that still sends may read its reply first (RFC 9112 section 9.6)."""
        is_last = self._state == _LAST or self._ends_oddly
        may_send = is_last or self._latest is not None or bool(self._queue) or bool(self._ahead)
        self._queue.clear()
        self._ahead.clear()
        if self.transport is None:
            return
        self._state = _ENDED
        self.let_go(self)
        if not may_send:
            self._alarm.set(self._loop.time() + self._service.head_timeout_s)
            self.transport.close()
            return
        self._alarm.set(self._loop.time() + _LINGER_S)
        if self.transport.can_write_eof():
            with contextlib.suppress(OSError):  # the client is gone, which was not read yet
                self.transport.write_eof()

    def write(self, data: bytes) -> None:
        """Send bytes. Raises ConnectionResetError where the client is gone."""
        if self.transport is None or self.transport.is_closing():
            raise ConnectionResetError("the client is gone")
        self.transport.write(data)

    def turn_out(self) -> None:
        """Close at once, as where nothing comes in time: somebody else gets its place."""
        if self.transport is not None:
            self.transport.abort()

    def take_no_more(self) -> None:
        """Let the request that is served be the last, as it is a stranger's; the rest is read and dropped."""
        self._state = _LAST
        self._places.doubt(self)
        self._queue.clear()
        self._ahead.clear()
        for holder in tuple(self._holders):
            self.let_go(holder)  # so that the loop sees the client hang up

    @property
    def can_be_reset(self) -> bool:
        """Whether the client sees a `reset` as such; on a Unix socket it looks like an orderly end."""
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
            with contextlib.suppress(OSError):  # macOS sets no option once the other end has closed it
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.transport.abort()

    def hold(self, holder: object) -> None:
        """Stop reading; until it goes on, the loop does not see the client hang up, so the system is asked.

        The end of a connection comes behind all that was sent before it. A client that sent more than is read
        could be long gone, and its orders would still be sent.
        """
        super().hold(holder)
        self._may_be_gone = True
        if self._hang_up_timer is None:
            self._hang_up_timer = self._loop.call_later(_CHECK_S, self._check_for_hang_up)

    def _check_for_hang_up(self) -> None:
        self._hang_up_timer = None
        if not self.is_read and self.transport is not None and not self.cut_if_gone():
            self._hang_up_timer = self._loop.call_later(_CHECK_S, self._check_for_hang_up)

    def cut_if_gone(self) -> bool:
        """Cut the connection if the client is gone unseen, and return whether it is."""
        if not self._may_be_gone:
            return False
        self._may_be_gone = not self.is_read
        if self.transport is None or not self.has_left():
            return False
        self.transport.abort()
        return True

    async def check_presence(self) -> None:
        """Return if the client is still there; else wait for its hang-up, which cancels this task."""
        if self.cut_if_gone():
            await self._loop.create_future()
