"""One connection to the upstream: one request at a time, its reply read by aiohttp's C parser.

aiohttp's connector makes the connection (DNS, happy eyeballs, TLS); then it belongs to this protocol. There
is no `ClientSession`, on purpose: it sends a request again by itself when a connection breaks, follows
redirects with our headers on, unpacks bodies, keeps cookies and listens to proxy variables.

How far its request is, is one state (states.py), whose table everything here obeys.
"""

import asyncio
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import aiohttp
from aiohttp.connector import Connection
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from sealgate.core.attempts import Failure, FailureKind
from sealgate.core.headers import ReplyHead, sort_reply
from sealgate.core.statuses import OK, SWITCHING_PROTOCOLS, TOO_MANY_REQUESTS
from sealgate.gateway.host.alarm import Alarm
from sealgate.gateway.host.flow import Flow, has_left
from sealgate.gateway.upstream.answer import Answer, Lease, Remainder, read_held
from sealgate.gateway.upstream.parser import ReplyMessage, new_parser
from sealgate.gateway.upstream.states import (
    ASKED,
    BODY,
    CLOSE,
    END,
    ENDED,
    HEAD,
    IDLE,
    RELEASE,
    REPLY,
    SEND,
    SPOIL,
    WHOLE,
    after,
)
from sealgate.gateway.upstream.tls import has_said_goodbye
from sealgate.gateway.upstream.troubles import TRANSPORT_ERRORS, UntakenReplyError, describe

if TYPE_CHECKING:
    import ssl

CLOSED_UNUSED = "the connection was closed at once"
_LENGTH_DIGITS = 18
_MOST_INTERIM = 16  # 1xx replies to one request

_UNASKED = frozenset({IDLE, ENDED})
_FREE = frozenset({IDLE, WHOLE})  # for the next request

_Head = tuple[ReplyMessage, StreamReader]


class UpstreamConnection(Flow):
    """A connection in the pool's hands or a request's. `on_free` is called when the request has done with it.

    `is_wanted` says whether others wait for one. `tls` is the session below, None without one. Whoever has
    the connection calls `exchange` once, or `release` to give it back unused.
    """

    def __init__(
        self,
        connection: Connection,
        on_free: Callable[["UpstreamConnection"], None],
        is_wanted: Callable[[], bool],
    ) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(loop)
        self._connection = connection
        self._on_free = on_free
        self.is_wanted = is_wanted
        self._head: asyncio.Future[_Head] | None = None
        self._content: StreamReader = EMPTY_PAYLOAD
        self._message: ReplyMessage | None = None
        self._interim = 0
        self.has_rested = False  # idle in the pool, since it was opened
        self._alarm = Alarm(loop, self._ring)
        self._adopt(connection)

    def _adopt(self, connection: Connection) -> None:
        """Take the transport over, unless something came on it unasked: that must not pass for a reply."""
        transport, maker = connection.transport, connection.protocol
        is_sound = transport is not None and maker is not None and not maker.should_close
        self._state = IDLE if is_sound else ENDED
        self._may_stay = True  # whether the other end leaves it open behind the reply
        self.transport = transport
        self.tls: ssl.SSLObject | None = None
        if transport is not None:
            self.tls = transport.get_extra_info("ssl_object")
            transport.set_protocol(self)

    @property
    def is_usable(self) -> bool:
        """Whether a request may be sent."""
        return self._state is IDLE

    def is_alive(self) -> bool:
        """Ask the system, before the first byte of a request, whether the other end has closed meanwhile.

        The loop may not know yet. What it has sent unasked ends the connection, too; under TLS that cannot be
        told from a session ticket.
        """
        if self._state is IDLE and self.transport is not None:
            if not has_left(self.transport, or_sent=self.tls is None):
                return True
            self._spoil()
        return False

    async def exchange(self, data: bytes, timeout_s: float, *, is_head: bool) -> Answer | Failure:
        """Send a request, once, and return its reply; a failure that is unsent, where nothing of it left.

        All of it, the remainder of a large reply included, takes at most `timeout_s`.
        """
        ends_at = self._loop.time() + timeout_s
        head = self._send(data, ends_at, is_head=is_head)
        if head is None:
            self.close()
            return Failure(FailureKind.UNREACHABLE, CLOSED_UNUSED)
        try:
            message, content = await head
            fields = _sorted(message)
            body = content.read_nowait() if content.is_eof() else await read_held(content)
        except TimeoutError:
            failure = Failure(FailureKind.LATE, "no whole reply in time", self._limit_fields())
        except TRANSPORT_ERRORS as error:
            failure = Failure(FailureKind.LOST, describe(error), self._limit_fields())
        except BaseException:  # the bot hung up
            self.close()
            raise
        else:
            answer = Answer(message.code, message.reason, fields, body)
            if content.at_eof():
                self.release()
            else:
                lease = Lease(self.release, self.close, self.is_wanted)
                answer.remainder = Remainder(lease, content, ends_at)
            return answer
        self.close()
        return failure

    def _limit_fields(self) -> Mapping[str, str] | None:
        """Return what a 429 said of the limit, if its head came: the pause holds all the same."""
        if self._message is None or self._message.code != TOO_MANY_REQUESTS:
            return None
        return sort_reply(self._message.raw_headers).limit_fields

    def release(self) -> None:
        """Leave the connection to the next: the reply was read whole, or nothing was sent."""
        self._head, self._content, self._message = None, EMPTY_PAYLOAD, None
        # What came behind a message stays in aiohttp's parser, a trailer too; it must not reach the next.
        self._parser = None
        # Answered before it was sent, the next would wait behind the rest.
        is_sent = self.transport is None or not self.transport.get_write_buffer_size()
        if self._state in _FREE and self._may_stay and is_sent:
            self._state = after(self._state, RELEASE)
            self._on_free(self)
        else:
            self.close()

    def rest(self, seconds: float) -> None:
        """Close when that many seconds have passed, unless it is roused before."""
        self._alarm.set(self._loop.time() + seconds)

    def rouse(self) -> None:
        """End the rest: a request has it, though what comes before its first byte may take long."""
        self._alarm.set(math.inf)

    def close(self) -> None:
        """Cut the connection."""
        self._state = after(self._state, CLOSE)
        self._alarm.stop()
        if self.transport is not None:
            self.transport.abort()
        self._connection.close()
        self._on_free(self)

    def _send(self, data: bytes, ends_at: float, *, is_head: bool) -> "asyncio.Future[_Head] | None":
        """Write a request, and return where the head of its reply comes; None where nothing could be written.

        Both loops write at once, and close a transport whose first write fails. (That of TLS does not say so:
        there it counts as written.)
        """
        if self._state is not IDLE or self.transport is None:
            return None
        self._state = after(self._state, SEND)
        self._interim = 0
        self._alarm.set(ends_at)
        self._parser, self._was_paused = new_parser(self, self._loop, is_head=is_head), False
        self.transport.write(data)
        if self.transport.is_closing():
            return None
        self._head = self._loop.create_future()
        return self._head

    def data_received(self, data: bytes) -> None:
        """Parse a reply; what nobody asked for spoils the connection."""
        if self._parser is None:
            if data:
                self._spoil()
            return
        try:
            messages, _, __ = self._parser.feed_data(data)
        except TRANSPORT_ERRORS as error:
            self._fail(error)
            return
        for message, content in messages:
            self._take(message, content)
        if self._state is BODY and self._content.is_eof():
            self._state = after(self._state, END)

    def _take(self, message: ReplyMessage, content: StreamReader) -> None:
        if self._state is not ASKED or self._head is None or self._head.done():
            self._spoil()
        elif message.code >= OK:
            self._content = content
            self._message = message
            self._may_stay = self._may_stay and not message.should_close
            self._state = after(self._state, REPLY if content.is_eof() else HEAD)
            self._head.set_result((message, content))
        elif message.code == SWITCHING_PROTOCOLS:
            self._fail(UntakenReplyError("it switched to another protocol (101), which nobody asked for"))
        else:  # RFC 9110 section 15.2: interim replies are skipped
            self._interim += 1
            if self._interim > _MOST_INTERIM:
                self._fail(UntakenReplyError("it sent interim replies (1xx) without end"))

    def eof_received(self) -> None:
        """Use it no more: the upstream sends nothing after this."""
        self._may_stay = False
        if self._state is IDLE:
            self._state = after(self._state, SPOIL)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Tell the request that waits for a reply how it ended."""
        super().connection_lost(exc)
        if self._state in _UNASKED:
            self.close()
            return
        if self._state is BODY and exc is None and self._is_whole_at_the_end():
            self._state = after(self._state, END)
        closed = aiohttp.ClientPayloadError() if self._state is BODY else aiohttp.ServerDisconnectedError()
        self._fail(exc if isinstance(exc, Exception) else closed)

    def _is_whole_at_the_end(self) -> bool:
        """Ask whether the reply ends where the connection was closed in order (RFC 9112 section 6.3)."""
        if self._reading_paused or self._message is None or not _is_ended_by_close(self._message):
            return False
        if self.tls is not None and not has_said_goodbye(self.tls):
            return False
        self._content.feed_eof()
        return True

    def _ring(self) -> None:
        """End what took too long: the request, or the rest."""
        if self._state in _UNASKED:
            self.close()
        else:
            self._fail(TimeoutError())

    def _fail(self, error: Exception) -> None:
        """End the request under way; nothing that came of it may pass for a whole reply."""
        self._spoil()
        if self._head is not None and not self._head.done():
            self._head.set_exception(error)
        elif not self._content.is_eof():
            self._content.set_exception(error)

    def _spoil(self) -> None:
        """Let nobody use the connection again."""
        self._state = after(self._state, SPOIL)
        if self.transport is not None:
            self.transport.abort()


def _sorted(message: ReplyMessage) -> ReplyHead:
    """Return the head. Raises UntakenReplyError where more was done to the body than cut it into chunks.

    We asked for nothing else (RFC 9112 section 6.1), and would pass on what nobody can read. Of the lengths
    that no body has, the parser takes one for none.
    """
    head = sort_reply(message.raw_headers)
    if head.length is not None and len(head.length) > _LENGTH_DIGITS:
        length = head.length.lstrip(b"0")
        if len(length) > _LENGTH_DIGITS:
            raise UntakenReplyError("the reply states a length that no body has")
        head = head._replace(length=length or b"0")
    if head.coding != (b"chunked" if message.chunked else None):
        raise UntakenReplyError("the reply has a transfer coding other than chunked")
    return head


def _is_ended_by_close(message: ReplyMessage) -> bool:
    head = sort_reply(message.raw_headers)
    return head.length is None and head.coding is None
