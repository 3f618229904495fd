"""One connection of a bot: bytes come in, requests go to the handler one after the other.

aiohttp's C parser reads the requests. Its server takes no part: it makes a task, a request and a response
object for each of them, which took longer than all of the gateway's own work; it repeats the header that it
could not parse in its error page; and it leaves an idle connection open for an hour.

What is under way is one state (states.py), whose table everything here obeys.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from sealgate.core.headers import MOST_BYTES
from sealgate.errors import Refusal
from sealgate.gateway.bots.incoming import Incoming
from sealgate.gateway.bots.line import BotLine
from sealgate.gateway.bots.parser import PARSER_ERRORS, Messages, new_parser, refusal_of
from sealgate.gateway.bots.seams import (
    are_as_written,
    before_next,
    behind_body,
    behind_chunks,
    behind_request,
)
from sealgate.gateway.bots.states import (
    ANSWERED,
    BODY,
    CLOSING,
    CUT,
    DEAF,
    DONE,
    END,
    HEAD,
    IDLE,
    LOST,
    NEW,
    OPENED,
    PART,
    REQUEST,
    SERVING,
    TURNED_AWAY,
    Event,
    after,
)
from sealgate.gateway.host.alarm import Alarm

_PIPELINED = 8  # requests that may have come before the first is answered
_PIPELINED_BYTES = 16 * 1024  # of them; a piece that goes beyond is taken whole
_LINGER_S = 2.0
_AT_SEAM = frozenset({NEW, IDLE, SERVING})  # where the next byte is the first of a head

log = structlog.get_logger("sealgate.bot_connection")


@dataclass(frozen=True, slots=True)
class Service:
    """What serves the connections of a listener. Durations are seconds.

    `handle` writes the reply to a request and says whether the connection may stay; `malformed` returns the
    reply to what is no request.
    """

    handle: Callable[[Incoming], Awaitable[bool]]
    malformed: Callable[[Refusal], bytes]
    head_timeout_s: float
    idle_s: float = 75.0  # longer than the usual client keeps an idle connection


class BotConnection(BotLine):
    """Parses, queues and serves.

    `refusal` returns why it is one too many, None if it is not. It is called when the connection is made: the
    loop accepts many at once, and makes the protocols of all before the first of them is counted.
    """

    def __init__(
        self,
        service: Service,
        connections: "set[BotConnection]",
        refusal: Callable[[], Refusal | None],
    ) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(loop)
        # One more than we hold it at: what is taken before its body is whole stays counted there.
        self._parser = new_parser(self, loop, _PIPELINED + 1)
        self._service = service
        self._connections = connections
        self._refusal = refusal
        self._state = NEW
        self._queue: deque[Incoming | Refusal] = deque()
        self._latest: Incoming | None = None
        self._before = b""  # the last bytes that came
        self._unfinished = 0  # bytes that came since the parser last gave out anything
        self._pipelined = 0  # bytes of the pieces that brought the queue
        self._behind_head = 0  # how many bytes came behind the latest head, as long as its body comes
        self._body_bytes = 0  # how many of them were the body's
        self._arrival: asyncio.Future[None] | None = None
        self._alarm = Alarm(loop, self._time_is_over)
        self._is_leaving = False  # whether the gateway stops

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve."""
        super().connection_made(transport)
        if (refusal := self._refusal()) is not None:
            self._state = TURNED_AWAY
            self._queue.append(refusal)
        self._connections.add(self)
        self.task = self._loop.create_task(self._serve())

    def data_received(self, data: bytes) -> None:
        """Parse, and wake up who serves."""
        if self._state in DEAF or self._parser is None:
            return
        try:
            messages, is_upgraded, following = self._parser.feed_data(data)
        except PARSER_ERRORS as error:
            self._refuse_the_rest(error)
            return
        if is_upgraded:  # it is refused, so what follows is HTTP still
            self._parser.set_upgraded(False)
        self._unfinished += len(data)
        if messages:
            self._unfinished = 0
            self._line_up(messages, data, loses=not is_upgraded)
            self._wake()
            self._pipelined += len(data)
            is_enough = len(self._queue) >= _PIPELINED or self._pipelined > _PIPELINED_BYTES
            if is_enough and not self._is_full:
                self.hold()
        elif self._state is BODY:
            self._go_on_with_body(data, loses=not is_upgraded)
        elif data and self._state in _AT_SEAM:
            self._begin_head()
        if self._unfinished > MOST_BYTES and self._state not in DEAF:
            self._refuse_the_rest(Refusal("headers_too_large", f"The head has more than {MOST_BYTES} bytes."))
            return
        if following and self._state not in DEAF:
            self._note(CUT)
        self._before = before_next(self._before, data)

    def _begin_head(self) -> None:
        self._state = after(self._state, PART)
        if self._arrival is not None:
            self._alarm.set(self._loop.time() + self._service.head_timeout_s)

    def _line_up(self, messages: Messages, data: bytes, *, loses: bool) -> None:
        """Queue requests, but none that may have got a trailer of the body before it."""
        piece = data if self._state in _AT_SEAM else self._before + data
        is_behind_body = self._state is BODY
        is_continued = is_behind_body or not data  # without new bytes, by what was held back
        may_trail = is_continued and self._latest is not None and self._latest.is_chunked
        for index, (message, content) in enumerate(messages):
            if may_trail and (self._was_paused or not _is_as_written(messages, index, data)):
                self._note(CUT)
                return
            latest = self._latest = Incoming(message, content, self)
            self._queue.append(latest)
            may_trail = latest.is_chunked
        if is_behind_body:
            self._state = after(self._state, END)
        if not latest.content.is_eof():
            self._state = after(self._state, OPENED)
            self._behind_head = self._body_bytes = latest.content.total_bytes
            return
        self._state = after(self._state, REQUEST)
        if latest.method == "CONNECT":  # what follows was written for the other end of the tunnel
            self._note(CUT)
            return
        may_lose = loses and latest.is_offer
        if latest.is_chunked:
            behind = self._behind_chunks(latest, piece, may_lose=may_lose)
        elif may_lose and (is_behind_body or len(messages) > 1 or self._was_paused or self._is_full):
            behind = CUT  # the piece does not begin with it
        else:
            behind = behind_request(piece, latest.content.total_bytes, may_lose=may_lose)
        if behind is not None:
            self._note(behind)

    def _go_on_with_body(self, data: bytes, *, loses: bool) -> None:
        latest = self._latest
        self._behind_head += len(data)
        if latest is None:
            return
        if latest.content.total_bytes > self._body_bytes:
            self._body_bytes = latest.content.total_bytes
            self._unfinished = 0
        if not latest.content.is_eof():
            return
        self._state = after(self._state, END)
        may_lose = loses and latest.is_offer
        if latest.is_chunked:
            behind = self._behind_chunks(latest, self._before + data, may_lose=may_lose)
        else:
            behind = behind_body(self._behind_head, latest.content.total_bytes, may_lose=may_lose)
        if behind is not None:
            self._note(behind)

    def _behind_chunks(self, latest: Incoming, piece: bytes, *, may_lose: bool) -> Event | None:
        """Look behind a chunked body.

        Of one that was held back, no piece has the end; where something may be lost, nothing tells the end.
        """
        if self._was_paused or may_lose or latest.is_misframed:
            return CUT
        return behind_chunks(piece)

    def _note(self, behind: Event) -> None:
        """Go by what is behind a request; the reply to one that nothing may follow says so."""
        if behind is CUT and self._latest is not None:
            self._latest.may_stay = False
        self._state = after(self._state, behind)

    def _refuse_the_rest(self, error: Exception) -> None:
        """Give up on what is no HTTP, once: its place is the body under way, or that of a next request.

        Good requests in the same piece are lost with it: the parser does not give them out.
        """
        if self._latest is None or self._latest.content.is_eof():
            self._queue.append(refusal_of(error, "This is not HTTP/1.1."))
            self._wake()
        else:
            # Later, as a reader that was just woken by the end of a chunk waits again, and looks no more.
            refusal = refusal_of(error, "The body is framed wrongly.")
            self._loop.call_soon(self._latest.content.set_exception, refusal)
        self._state = after(self._state, CUT)
        self._parser = None  # with all that it holds

    def take_no_more(self) -> None:
        """Let the request under way be the last; what comes behind it is read and thrown away."""
        super().take_no_more()
        self._queue.clear()
        if self._state not in DEAF:
            self._state = after(self._state, CUT)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End what is served."""
        self._state = after(self._state, LOST)
        self._connections.discard(self)
        self._alarm.stop()
        self._parser = self._latest = None
        super().connection_lost(exc)
        self._wake()

    def leave(self) -> None:
        """Close after the request that is under way, if there is one."""
        self._is_leaving = True
        self._wake()

    async def _serve(self) -> None:
        try:
            while (item := await self._next()) is not None:
                if isinstance(item, Refusal):
                    self.write(self._service.malformed(item))
                    break
                if not await self._service.handle(item):
                    break
                if not self._queue:
                    self._state = after(self._state, ANSWERED)
        except ConnectionResetError:
            pass
        except Exception:
            # What was sent by then is not known here, so nothing is claimed: the connection is cut.
            self.reset()
            log.exception("connection_failed")
        finally:
            self._end()

    async def _next(self) -> Incoming | Refusal | None:
        """Return what is to be answered next, None at the end.

        A bot that asks on and does not read gets no more to read; what one asked that is gone is not served.
        """
        if self._writable is not None:
            self._alarm.set(self._loop.time() + self._service.head_timeout_s)
            await self.drain()
        if not self._queue:
            await self._wait()
        # It may have been cut in this turn of the loop, of which the state does not know yet.
        if self.transport is None or self.transport.is_closing():
            return None
        if not self._queue or self._lookout.cut_if_gone():
            return None
        item = self._queue.popleft()
        if not self._queue:
            self._pipelined = 0
        self._alarm.set(float("inf"))
        if isinstance(item, Incoming) and self._parser is not None:
            self._parser.message_consumed()
            if self._is_full and not self._queue:
                self.let_go()
                self.data_received(b"")
        return item

    async def _wait(self) -> None:
        if self._state in DEAF or self._is_leaving:
            return
        patience_s = self._service.idle_s if self._state is IDLE else self._service.head_timeout_s
        self._alarm.set(self._loop.time() + patience_s)
        self._arrival = self._loop.create_future()
        try:
            await self._arrival
        finally:
            self._arrival = None

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _time_is_over(self) -> None:
        if self._state is HEAD and self._arrival is not None:
            timeout_s = self._service.head_timeout_s
            self._queue.append(Refusal("body_timeout", f"The head did not arrive within {timeout_s:g} s."))
            self._state = after(self._state, CUT)
            self._wake()
        elif self.transport is not None:
            self.transport.abort()

    def _end(self) -> None:
        """Close; a bot that still sends may read its reply first (RFC 9112 section 9.6)."""
        if self._queue and self._state not in DEAF:
            self._state = after(self._state, CUT)
        self._state = after(self._state, DONE)
        self._parser = None
        self._queue.clear()
        if self.transport is None:
            return
        if self._state is CLOSING:
            self._alarm.set(self._loop.time() + self._service.head_timeout_s)
            self.transport.close()
            return
        self._alarm.set(self._loop.time() + _LINGER_S)
        self._go_on_reading()
        if self.transport.can_write_eof():
            with contextlib.suppress(OSError):  # the bot is gone, which was not read yet
                self.transport.write_eof()


def _is_as_written(messages: Messages, index: int, data: bytes) -> bool:
    return are_as_written([message for message, _ in messages], data)[index]
