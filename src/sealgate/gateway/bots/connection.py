"""One connection of a bot: bytes come in, requests go to the handler one after the other.

aiohttp's C parser reads the requests. Its server takes no part: it makes a task, a request and a response
object for each of them, which took longer than all of the gateway's own work; it repeats the header that it
could not parse in its error page; and it leaves an idle connection open for an hour.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog
from aiohttp.http_exceptions import HttpProcessingError

from sealgate.errors import Refusal
from sealgate.gateway.bots.incoming import Incoming
from sealgate.gateway.bots.line import BotLine
from sealgate.gateway.bots.parser import Messages, new_parser, refusal_of
from sealgate.gateway.bots.trailers import LAST_CHUNK, are_as_written
from sealgate.gateway.host.alarm import Alarm

_PIPELINED = 8  # requests that may have come before the first is answered
_LINGER_S = 2.0

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
    """Parses, queues and serves."""

    def __init__(
        self, service: Service, connections: "set[BotConnection]", turned_away: Refusal | None
    ) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(loop)
        # One more than we hold it at: what is taken before its body is whole stays counted there.
        self._parser = new_parser(self, loop, _PIPELINED + 1)
        self._service = service
        self._connections = connections
        self._queue: deque[Incoming | Refusal] = deque([turned_away] if turned_away else ())
        self._latest: Incoming | None = None
        self._may_trail = False  # whether its body is chunked, and not seen to end without trailers
        self._end = b""  # of such a body, as far as it came
        self._is_offer = False  # whether that request offers another protocol
        self._arrival: asyncio.Future[None] | None = None
        self._alarm = Alarm(loop, self._time_is_over)
        self._patience_s = service.head_timeout_s  # for the next request to begin
        self._has_head_begun = False
        self._is_deaf = turned_away is not None  # what still comes is thrown away
        self._is_turned_away = turned_away is not None
        self._is_leaving = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve."""
        super().connection_made(transport)
        self._connections.add(self)
        self.task = self._loop.create_task(self._serve())

    def data_received(self, data: bytes) -> None:
        """Parse, and wake up who serves."""
        if self._is_deaf or self._parser is None:
            return
        try:
            messages, is_upgraded, following = self._parser.feed_data(data)
        except HttpProcessingError as error:
            self._refuse_the_rest(error)
            return
        if is_upgraded:  # it is refused, so what follows is HTTP still
            self._parser.set_upgraded(False)
            self._is_deaf = bool(following)
        taken = 0
        if messages:
            taken = self._line_up(messages, data, is_upgraded=is_upgraded)
            self._wake()
            if len(self._queue) >= _PIPELINED and not self._is_full:
                self.hold()
        elif (self._arrival is not None or self._latest is None) and not self._has_head_begun:
            self._has_head_begun = True
            self._alarm.set(self._loop.time() + self._service.head_timeout_s)
        if self._may_trail:
            self._watch_for_trailers(data, is_followed=taken < len(messages))
        # The parser loses what follows the end of an offer to upgrade in the same piece.
        if self._is_offer and data.count(b" HTTP/1.") > len(messages):
            self._is_deaf = True

    def _line_up(self, messages: Messages, data: bytes, *, is_upgraded: bool) -> int:
        """Queue requests, and return how many: none that may have got a trailer of the body before it."""
        for taken, (message, content) in enumerate(messages):
            if self._may_trail and (self._was_paused or not are_as_written(messages[taken:], data)):
                return taken
            self._latest = Incoming(message, content, self)
            self._queue.append(self._latest)
            self._may_trail, self._end = message.chunked, b""
            self._is_offer = message.upgrade and not is_upgraded
        return len(messages)

    def _watch_for_trailers(self, data: bytes, *, is_followed: bool) -> None:
        """Let nothing follow a body with trailers: aiohttp's parser puts the last one into the next head.

        Nor a body that was held back: its end comes out of the parser, and not with `data`.
        """
        self._end = (self._end + data[-len(LAST_CHUNK) :])[-len(LAST_CHUNK) :]
        if self._latest is None or not self._latest.content.is_eof():
            return
        self._may_trail = False
        is_plain = not self._was_paused and (LAST_CHUNK.endswith(self._end) or LAST_CHUNK in data)
        if is_followed or not is_plain:
            self._latest.may_stay = False
            self._is_deaf = True

    def _refuse_the_rest(self, error: HttpProcessingError) -> None:
        """Give up on what is no HTTP, once: its place is the body under way, or that of a next request.

        Good requests in the same piece are lost with it: the parser does not give them out.
        """
        self._is_deaf = True
        if self._latest is None or self._latest.content.is_eof():
            self._queue.append(refusal_of(error, "This is not HTTP/1.1."))
            self._wake()
        else:
            self._latest.content.set_exception(refusal_of(error, "The body is framed wrongly."))

    def connection_lost(self, exc: BaseException | None) -> None:
        """End what is served."""
        self._connections.discard(self)
        self._alarm.stop()
        self._parser = None
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
                    self._is_deaf = True
                    break
                if not await self._service.handle(item) or self._is_deaf:
                    self._is_deaf = self._is_deaf or not item.content.is_eof()
                    break
            self._close()
        except ConnectionResetError:
            pass
        except Exception:
            # What was sent by then is not known here, so nothing is claimed: the connection is cut.
            self.reset()
            log.exception("connection_failed")
        finally:
            if self.transport is not None and not self._alarm.is_set:
                self._is_deaf = True  # what is not read by then never will be
                self._alarm.set(self._loop.time() + self._service.head_timeout_s)

    async def _next(self) -> Incoming | Refusal | None:
        """Return what is to be answered next, None at the end.

        A bot that asks on and does not read gets no more to read; what one asked that is gone is not served.
        """
        if not self._is_writable:
            self._alarm.set(self._loop.time() + self._service.head_timeout_s)
            await self.drain()
        if not self._queue:
            await self._wait()
        if not self._queue or self.transport is None or self._lookout.cut_if_gone():
            return None
        item = self._queue.popleft()
        self._patience_s = self._service.idle_s
        self._has_head_begun = False
        self._alarm.set(float("inf"))
        if isinstance(item, Incoming) and self._parser is not None:
            self._parser.message_consumed()
            if self._is_full and not self._queue:
                self.let_go()
                self.data_received(b"")
        return item

    async def _wait(self) -> None:
        if self.transport is None or self._is_leaving:
            return
        self._alarm.set(self._loop.time() + self._patience_s)
        self._arrival = self._loop.create_future()
        try:
            await self._arrival
        finally:
            self._arrival = None

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _time_is_over(self) -> None:
        if self.transport is None:
            return
        if self._has_head_begun and not self._is_deaf:
            timeout_s = self._service.head_timeout_s
            self._queue.append(Refusal("body_timeout", f"The head did not arrive within {timeout_s:g} s."))
            self._wake()
        else:
            self.transport.abort()

    def _close(self) -> None:
        """Close; a bot that still sends may read its reply first (RFC 9112 section 9.6)."""
        if self.transport is None:
            return
        if self._is_turned_away or not (self._is_deaf or self._queue):
            self.transport.close()
            return
        self._is_deaf = True
        self._go_on_reading()
        if self.transport.can_write_eof():
            with contextlib.suppress(OSError):  # the bot is gone, which was not read yet
                self.transport.write_eof()
        self._alarm.set(self._loop.time() + _LINGER_S)
