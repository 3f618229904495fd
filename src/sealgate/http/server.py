"""The bots' side of HTTP/1.1: a connection whose requests are answered one after the other.

The parser knows how far a request has arrived. The rest of what matters is the connection's `State`.
"""

import asyncio
import contextlib
import enum
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
from sealgate.http.head_memory import HeadMemory
from sealgate.http.parser import PIECE_BYTES, Malformed, RequestEvent, RequestHead, RequestParser
from sealgate.http.places import Guest, Places
from sealgate.machine.alarm import Alarm

# What may wait unparsed behind a request before reading stops. The piece that exceeds it is kept whole.
_UNPARSED_PIECES: Final = 8
_UNPARSED_BYTES: Final = 16 * 1024
_LINGER_S: Final = 2.0
_HANG_UP_CHECK_S: Final = 0.1
_HTTP_11: Final = (1, 1)
_LINGER_0_S: Final = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 s: closing sends a reset

log = structlog.get_logger("sealgate.server_connection")


class State(enum.IntEnum):
    """What the connection may still do. It only moves down this list."""

    NEW = 0  # nothing has arrived: the client has head_timeout to send its first head
    OPEN = 1  # requests are accepted, and answered one after the other
    LAST = 2  # accepted requests are answered; whatever else arrives is discarded
    CLOSED = 3  # everything is written; the client may still be reading it


# Names that cost no look-up.
NEW: Final = State.NEW
OPEN: Final = State.OPEN
LAST: Final = State.LAST
CLOSED: Final = State.CLOSED


class Incoming:
    """A request whose body may still be arriving. `may_stay`: the connection may outlive it.

    `read_at` is when the head arrived, by `Service.now`, if it then had to wait behind another request; else
    0.0.
    """

    __slots__ = ("body", "connection", "head", "may_stay", "read_at")

    def __init__(self, head: RequestHead, body: Body, connection: "ServerConnection") -> None:
        self.head = head
        self.body = body
        self.connection = connection
        self.may_stay = head.keep_alive
        self.read_at = 0.0

    def release(self) -> None:
        """Drop fields, target and body, which may be large; a reply needs only what is left."""
        self.head = RequestHead(self.head.method, "", self.head.version, ())
        self.body.take()


@dataclass(frozen=True, slots=True)
class Service:
    """What the connections of a listener serve. Durations are seconds.

    `handle` writes the reply to a request and returns whether the connection may stay open. `malformed`
    returns the reply to something that is not a request. `memory` returns the heads that were admitted
    before. `identify` returns who the client is, `now` the time for `Incoming.read_at`.
    """

    handle: Callable[[Incoming], Awaitable[bool]]
    malformed: Callable[[Refusal], bytes]
    head_timeout_s: float
    memory: Callable[[], HeadMemory[RequestHead]] = field(default=HeadMemory)
    identify: Callable[[asyncio.BaseTransport], Any] = lambda _: None
    now: Callable[[], float] = lambda: 0.0
    idle_s: float = 75.0  # longer than most clients keep an idle connection


class ServerConnection(Flow):
    """A bot's connection: parses requests, and answers them one at a time in its `task`.

    It takes one of the `places` when the connection is made, because the loop accepts many connections, and
    makes their protocols, before it counts the first. Until then `handshake` has that place. `on_hang_up` is
    called if the client hangs up while a request is being served. `peer` is the client.
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
        self._service = service
        self._connections = connections
        self._places = places
        self._handshake = handshake
        self._state = NEW
        self._parser = RequestParser()
        self._unparsed: deque[tuple[bytes, float]] = deque()  # with the time at which it arrived, or 0.0
        self._will_parse = False  # the rest of a body, once others had their turn
        self._unfinished: Incoming | None = None  # its body is still arriving
        self._parsed: deque[Incoming | Refusal] = deque()  # to be answered; a refusal is the last
        self._bytes_after_last_are_unsafe = False  # CONNECT, or HTTP/1.0 with chunks (RFC 9112 section 6.1)
        self._arrival: asyncio.Future[None] | None = None  # the task waits here for the next request
        self._alarm = Alarm(loop, self._time_is_over)
        self._receive: Callable[[bytes], None] | None = None  # gets all bytes: they are no longer HTTP
        self._hang_up_timer: asyncio.TimerHandle | None = None
        self._may_have_missed_hang_up = False  # reading was held
        self._finished: asyncio.Future[None] | None = None  # once the gateway stops; ends with the connection

    # The loop calls these.

    def own_url(self) -> str:
        """Return the server's own address as the client reached it."""
        address = self.transport.get_extra_info("sockname") if self.transport is not None else None
        if self.transport is None or not isinstance(address, tuple):
            return "the gateway's own address"
        scheme = "http" if self.transport.get_extra_info("ssl_object") is None else "https"
        host, port = address[:2]
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a place and begin to serve."""
        super().connection_made(transport)
        self.peer = self._service.identify(transport)
        if self._handshake is not None:
            self._places.leave(self._handshake)
            self._handshake = None
        if (refusal := self._places.enter(self)) is not None:
            self._parsed.append(refusal)
        self._connections.add(self)
        self.task = self._loop.create_task(self._serve())

    def data_received(self, data: bytes) -> None:
        """Parse a request that the task is waiting for; keep anything else for later."""
        if self._receive is not None:
            self._receive(data)
            return
        arrival = None if self._parsed else self._arrival
        if arrival is not None:
            known = self._parser.find(self._service.memory(), data)
            if known is not None:
                head, body = known
                if self._state is NEW:
                    self._open()
                self._parsed.append(Incoming(head, Body(self, body), self))
                if not arrival.done():
                    arrival.set_result(None)
                return
        self._unparsed.append((data, 0.0 if arrival is not None else self._service.now()))
        if self._will_parse:
            return
        self._parse()
        if self._parsed:
            self._wake()

    def connection_lost(self, exc: BaseException | None) -> None:
        """End the request that is being served.

        asyncio calls this as soon as the client half-closes: a killed client looks the same, so we treat it
        as gone.
        """
        self._state = CLOSED
        self._connections.discard(self)
        self._places.leave(self)
        self._parser.close()
        self._alarm.stop()
        super().connection_lost(exc)
        if self._unfinished is not None:
            self._unfinished.body.fail(ConnectionResetError("the client is gone"))
            self._unfinished = (
                None  # it refers to this connection, a cycle that only the collector would free
            )
        if self.on_hang_up is not None:
            self.on_hang_up()
        self._wake()
        if self._finished is not None and not self._finished.done():
            self._finished.set_result(None)

    # Parsing.

    def _parse(self) -> None:
        """Parse the next request if the task waits for it, or the body of the unfinished one.

        Anything behind that stays unparsed, and reading stops if it is much. Behind a piece that is dear to
        parse, other tasks have their turn first.
        """
        while self._unparsed and self._state < LAST and not self._parsed:
            if self._arrival is None and self._unfinished is None:
                break
            data, arrived_at = self._unparsed.popleft()
            if len(data) > PIECE_BYTES:
                self._unparsed.appendleft((data[PIECE_BYTES:], arrived_at or self._service.now()))
            was_in_head = self._parser.is_in_head
            for event in self._parser.feed(data[:PIECE_BYTES]):
                self._take(event, arrived_at)
            if self._parser.is_in_head and not was_in_head and self._arrival is not None:
                self._alarm.set(self._loop.time() + self._service.head_timeout_s)
            if self._unparsed and self._parser.is_crumbled:
                self._will_parse = True
                self.hold(self._parser)
                self._loop.call_soon(self._parse_rest)
                return
        if self._state >= LAST:
            self._unparsed.clear()
        if not self._unparsed:
            self.let_go(self)
        elif (
            len(self._unparsed) > _UNPARSED_PIECES
            or sum(len(data) for data, _ in self._unparsed) > _UNPARSED_BYTES
        ):
            self.hold(self)

    def _parse_rest(self) -> None:
        self._will_parse = False
        self.let_go(self._parser)
        self._parse()
        if self._parsed:
            self._wake()

    def _take(self, event: RequestEvent, arrived_at: float) -> None:
        if isinstance(event, RequestHead):
            if self._state is NEW:
                self._open()
            request = self._unfinished = Incoming(event, Body(self), self)
            request.read_at = arrived_at or (self._service.now() if self._parsed else 0.0)
            self._parsed.append(request)
            # The bytes that follow were meant for the other end of a tunnel, or written by HTTP/1.0, which
            # does not know chunks: the client may take them for a request.
            self._bytes_after_last_are_unsafe = event.method == "CONNECT" or (
                event.length is None and event.version < _HTTP_11
            )
        elif isinstance(event, Malformed):
            slug = "headers_too_large" if event.is_too_large else "bad_request"
            self._refuse_the_rest(Refusal(slug, event.detail))
        elif self._unfinished is not None:
            if event:
                self._unfinished.body.feed(event)
            else:
                self._unfinished.body.end()
                self._unfinished = None

    def _open(self) -> None:
        self._state = OPEN
        self._places.keep(self)

    def _refuse_the_rest(self, refusal: Refusal) -> None:
        """Accept nothing more: the refusal ends the unfinished body, or is the last reply."""
        self._state = LAST
        if self._unfinished is None:
            self._parsed.append(refusal)
        else:
            self._unfinished.may_stay = False
            self._unfinished.body.fail(refusal)
            self._unfinished = None

    # The task that serves.

    async def _serve(self) -> None:
        try:
            while (item := await self._next()) is not None:
                if isinstance(item, Refusal):
                    self.write(self._service.malformed(item))
                    break
                if not await self._service.handle(item):
                    break
                item.body.take()  # what nobody read would hold the connection
                if (
                    self._parsed or self._unparsed
                ):  # a client that sends many requests lets others have a turn
                    await asyncio.sleep(0)  # noqa: TID251 - takes no time
        except ConnectionResetError:
            pass
        except Exception:
            # Unknown what was sent so far: cut the connection, so that the client takes none of it for whole.
            self.reset()
            log.exception("connection_failed")
        finally:
            self._end()

    async def _next(self) -> Incoming | Refusal | None:
        """Return the next request or refusal; None at the end."""
        # 1. A client that does not read its replies gets no further ones.
        if self._writable is not None:
            self._alarm.set(self._loop.time() + self._service.head_timeout_s)
            await self.drain()
        # 2. Wait for a request, unless the last one was answered.
        if not self._parsed:
            self._arrival = self._loop.create_future()
            try:
                if self._unparsed:
                    self._parse()
                is_last = self._state >= LAST or self._parser.is_over or self._finished is not None
                if not self._parsed and not is_last:
                    is_idle = self._state is OPEN and not self._parser.is_in_head
                    patience_s = self._service.idle_s if is_idle else self._service.head_timeout_s
                    self._alarm.set(self._loop.time() + patience_s)
                    await self._arrival
            finally:
                self._arrival = None
        # 3. Serve nobody who is gone: the transport may be cut since this turn of the loop, unknown to the
        #    state, and a hang-up may be hidden behind bytes that were not read.
        if self.transport is None or self.transport.is_closing() or not self._parsed:
            return None
        if self._may_have_missed_hang_up and self.cut_if_gone():
            return None
        item = self._parsed.popleft()
        self._alarm.at = math.inf
        if self._unparsed:
            self._parse()
        return item

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _time_is_over(self) -> None:
        """Refuse half a head; cut a client that is silent, or does not read its reply."""
        if self._arrival is not None and self._parser.is_in_head and self._state < LAST:
            timeout_s = self._service.head_timeout_s
            self._refuse_the_rest(Refusal("body_timeout", f"The head did not arrive within {timeout_s:g} s."))
            self._wake()
        elif self.transport is not None:
            self.transport.abort()

    def _end(self) -> None:
        """Close the connection, but not before the client could read the last reply."""
        # There are two cases (RFC 9112 section 9.6):
        # 1. The client sends nothing more: close as soon as the reply has left.
        # 2. It may still be sending. Closing would reset the connection, and the client could lose the reply:
        #    close our side only, and wait a moment for the client to close its own.
        is_last = self._state is LAST or self._bytes_after_last_are_unsafe
        is_other = self._receive is not None  # a stream that was cut off in the midst of what the bot sends
        may_send = is_last or is_other or self._unfinished is not None or bool(self._parsed or self._unparsed)
        self._parsed.clear()
        self._unparsed.clear()
        if self.transport is None:
            return
        self._state = CLOSED
        self.let_go(self)
        if not may_send:
            self._alarm.set(self._loop.time() + self._service.head_timeout_s)
            self.transport.close()
            return
        self._alarm.set(self._loop.time() + _LINGER_S)
        if self.transport.can_write_eof():
            with contextlib.suppress(OSError):  # the client is gone, which the loop does not know yet
                self.transport.write_eof()

    # Whoever serves a request calls these.

    def write(self, data: bytes) -> None:
        """Send bytes. Raises ConnectionResetError if the client is gone."""
        if self.transport is None or self.transport.is_closing():
            raise ConnectionResetError("the client is gone")
        self.transport.write(data)

    @property
    def has_surplus(self) -> bool:
        """Whether more came behind the request that is being served."""
        return bool(self._parsed or self._unparsed)

    def take_over(self, receive: Callable[[bytes], None]) -> None:
        """From now on, hand all bytes to `receive`: they are of another protocol, until the connection ends.

        The request that is being served is the last.
        """
        self._receive = receive
        self._may_have_missed_hang_up = False
        for data, _ in self._unparsed:
            receive(data)
        self._unparsed.clear()
        self.let_go(self)

    def take_no_more(self) -> None:
        """Make the request that is being served the last, as its client is a stranger; discard the rest."""
        self._state = LAST
        self._places.doubt(self)
        self._parsed.clear()
        self._unparsed.clear()
        for holder in tuple(self._holders):
            self.let_go(holder)  # the loop sees a hang-up only while it reads

    @property
    def can_be_reset(self) -> bool:
        """Whether the client can tell a `reset` from an orderly end; on a Unix socket it cannot."""
        sock = self.transport.get_extra_info("socket") if self.transport is not None else None
        return sock is None or sock.family != socket.AF_UNIX

    def reset(self) -> None:
        """Cut the connection so that the client cannot take a part of a reply for all of it.

        An orderly end is how HTTP/1.0 marks the end of a body.
        """
        if self.transport is None:
            return
        sock = self.transport.get_extra_info("socket")
        if sock is not None:
            with contextlib.suppress(OSError):  # macOS sets no option once the other end has closed it
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_0_S)
        self.transport.abort()

    async def check_presence(self) -> None:
        """Return if the client is still there; else wait for its hang-up, which cancels this task."""
        if self.cut_if_gone():
            await self._loop.create_future()

    # Whoever runs the listener calls these.

    def finish(self) -> "asyncio.Future[None]":
        """Close after the request that is being served, if there is one.

        The future is done once the connection has ended and everything written to it has left.
        """
        if self._finished is None:
            self._finished = self._loop.create_future()
            self._wake()
        return self._finished

    def turn_out(self) -> None:
        """Cut the connection: another client gets its place."""
        if self.transport is not None:
            self.transport.abort()

    # A hang-up that the loop cannot see.

    def hold(self, holder: object) -> None:
        """Stop reading. Until reading resumes, ask the system whether the client has hung up.

        A hang-up arrives behind everything that was sent before it. A client that sent more than we read
        could be long gone, and its orders would still be sent.
        """
        super().hold(holder)
        self._may_have_missed_hang_up = True
        if self._hang_up_timer is None:
            self._hang_up_timer = self._loop.call_later(_HANG_UP_CHECK_S, self._check_for_hang_up)

    def _check_for_hang_up(self) -> None:
        self._hang_up_timer = None
        if not self.is_reading and self.transport is not None and not self.cut_if_gone():
            self._hang_up_timer = self._loop.call_later(_HANG_UP_CHECK_S, self._check_for_hang_up)

    def cut_if_gone(self) -> bool:
        """Cut the connection if the client has hung up unseen, and return whether it has."""
        if not self._may_have_missed_hang_up:
            return False
        self._may_have_missed_hang_up = not self.is_reading
        if self.transport is None or not self.has_left():
            return False
        self.transport.abort()
        return True
