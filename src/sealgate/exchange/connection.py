"""One connection to the upstream: one request at a time, its reply read by http/parser.py.

aiohttp's connector makes the connection (DNS, happy eyeballs, TLS); then it belongs to this protocol. There
is no `ClientSession`, on purpose: it sends a request again by itself when a connection breaks, follows
redirects with our headers on, unpacks bodies, keeps cookies and listens to proxy variables.
"""

import asyncio
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

from aiohttp.connector import Connection

from sealgate.exchange.answer import Answer, Remainder, read_held
from sealgate.exchange.destination import TRANSPORT_ERRORS, ReplyError, describe, has_said_goodbye
from sealgate.exchange.failure import Failure, FailureKind
from sealgate.exchange.idle_connections import IdleCloses, IdleLife
from sealgate.http.flow import Body, Flow
from sealgate.http.headers import ReplyHead, sort_reply
from sealgate.http.memory import HeadMemory
from sealgate.http.parser import PIECE_BYTES, Malformed, RawReplyHead, ReplyEvent, ReplyParser
from sealgate.machine.alarm import Alarm
from sealgate.machine.system import System
from sealgate.venues.replies import Judge

if TYPE_CHECKING:
    import ssl

CLOSED_UNUSED = "the connection was closed at once"
_CLOSED_WITHOUT_REPLY = "the connection was closed without a reply"
_CUT_SHORT = "the reply was cut short"
_PLAIN_DIGITS = 18  # of a length: one of more digits has zeros in front

# How far the one request is that a connection carries at a time. A state only gives way to a later one, but
# for _WHOLE: then `release` makes the connection _IDLE for the next request.
_IDLE: Final = 0  # nothing is asked, and something may be
_ASKED: Final = 1  # nothing of the reply has come
_BODY: Final = 2  # the reply's head has come, and its body still comes
_WHOLE: Final = 3  # the reply has come
_BROKEN: Final = 4  # nothing more is asked or accepted; a reply that was whole may be read
_CLOSED: Final = 5


class Owner(Protocol):
    """The pool of connections to one upstream. `closes` learns when idle ones are closed.

    `judge` says what a reply means.
    """

    closes: IdleCloses
    heads: HeadMemory[RawReplyHead]
    judge: Judge

    def take_back(self, connection: "UpstreamConnection") -> None:
        """Keep a connection for the next request."""

    def forget(self, connection: "UpstreamConnection") -> None:
        """Drop a closed connection."""

    def is_wanted(self) -> bool:
        """Whether somebody waits for a connection."""


class UpstreamConnection(Flow):
    """A connection in its owner's hands or a request's. `opened_in_s` is what it took to make it.

    `tls` is the session below, None without one. `life` says for how long it may be idle. Whoever has it
    calls `exchange` once, or `release` to give it back unused.
    """

    def __init__(self, connection: Connection, owner: "Owner", opened_in_s: float) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(loop)
        self._connection = connection
        self._owner = owner
        self.life = IdleLife(owner.closes, opened_in_s, System.now())
        self._head: asyncio.Future[RawReplyHead] | None = None  # None where nothing is asked
        self._parser = ReplyParser(owner.heads)
        self._rest = b""  # what has come and waits to be parsed
        self._content = Body(self)
        self._message: RawReplyHead | None = None
        self._may_stay = True  # whether the other end leaves it open behind the reply
        self._sent_at = -math.inf
        self._rested_s: float | None = None  # how long it was idle in the pool before the latest request
        self._heard_at: float | None = None  # the latest bytes since then
        self._alarm = Alarm(loop, self._time_is_over)
        # Taken over unless something came on it unasked: that must not pass for a reply.
        transport, maker = connection.transport, connection.protocol
        is_sound = transport is not None and maker is not None and not maker.should_close
        self._state = _IDLE if is_sound else _BROKEN
        self.transport = transport
        self.tls: ssl.SSLObject | None = None
        if transport is not None:
            self.tls = transport.get_extra_info("ssl_object")
            transport.set_protocol(self)

    @property
    def is_usable(self) -> bool:
        """Whether a request may be sent."""
        return self._state == _IDLE

    def is_alive(self) -> bool:
        """Ask the system, before the first byte of a request, whether the other end has closed meanwhile.

        The loop may not know yet. What it has sent unasked ends the connection, too, but for the session
        tickets of TLS: they come before the first reply.
        """
        if self._state != _IDLE or self.transport is None:
            return False
        if self.has_left(or_sent=self.tls is None or self.life.is_used):
            self._note_close()
            self._fail(ReplyError(_CLOSED_WITHOUT_REPLY))
            return False
        return True

    def _note_close(self) -> None:
        now = System.now()
        self.life.closed(self.life.idle_s(now), now)

    async def exchange(
        self, data: bytes, timeout_s: float, *, is_head: bool, is_order: bool = False
    ) -> Answer | Failure:
        """Send a request, once, and return its reply; a failure that is unsent, where nothing of it left.

        All of it, the remainder of a large reply included, takes at most `timeout_s`.
        """
        ends_at = self._loop.time() + timeout_s
        head = self._send(data, ends_at, is_head=is_head)
        if head is None:
            self.close()
            return Failure(FailureKind.UNREACHABLE, CLOSED_UNUSED)
        try:
            message = await head
            content = self._content
            fields = _sorted(message)
            body = content.take() if content.is_whole else await read_held(content)
            verdict = self._owner.judge.judge(
                message.status, body, fields.content_coding, is_order=is_order, is_head=is_head
            )
            answer = Answer(message.status, message.phrase, fields, body, verdict)
            self.life.answered(self._rested_s, fields.keep_alive_s, self._heard_at or self._sent_at)
        except TimeoutError as error:
            failure = Failure(FailureKind.LATE, "no whole reply in time", self._limit_fields())
            error.__traceback__ = None
        except TRANSPORT_ERRORS as error:
            failure = Failure(FailureKind.LOST, describe(error), self._limit_fields())
            error.__traceback__ = None  # else its frames hold it, and the request, until the collector runs
            if self._rested_s is not None and self._heard_at is None:
                self.life.closed(self._rested_s, System.now())
        except BaseException:  # such as that the bot hung up
            self.close()
            raise
        else:
            if content.is_read:
                self.release()
            else:
                answer.remainder = Remainder(
                    content, ends_at, self.release, self.close, self._owner.is_wanted
                )
            return answer
        self.close()
        return failure

    def _limit_fields(self) -> Mapping[str, str] | None:
        """Return what the head of a refusal for the limit said of it: the pause holds without a body, too."""
        if self._message is None or not self._owner.judge.judge(self._message.status, b"").is_limited:
            return None
        return sort_reply(self._message.fields).limit_fields

    def release(self) -> None:
        """Leave the connection to the next: the reply was read whole, or nothing was sent."""
        self._head = self._message = None
        if self._state == _WHOLE:
            # Answered before it was sent, the next would wait behind the rest.
            is_sent = self.transport is None or not self.transport.get_write_buffer_size()
            self._state = _IDLE if self._may_stay and is_sent else _BROKEN
            self.life.ended_request(self._heard_at or self._sent_at)
        if self._state == _IDLE:
            self._owner.take_back(self)
        else:
            self.close()

    def set_idle_timeout(self, keep_alive_s: float, now: float) -> None:
        """Let it be idle: it is closed after so long, or earlier as announced."""
        self._alarm.set(self._loop.time() + self.life.rest(keep_alive_s, now))

    def clear_idle_timeout(self) -> None:
        """Keep it open for the request that has it, which may wait for long before its first byte."""
        self._alarm.set(math.inf)

    def close(self) -> None:
        """Cut the connection."""
        self._state = _CLOSED
        self._rest = b""
        self._parser.close()
        self._alarm.stop()
        if self.transport is not None:
            self.transport.abort()
        self._connection.close()
        self._owner.forget(self)

    def _send(self, data: bytes, ends_at: float, *, is_head: bool) -> "asyncio.Future[RawReplyHead] | None":
        """Write a request, and return where the head of its reply comes; None where nothing could be written.

        Both loops write at once, and close a transport whose first write fails. (That of TLS does not say so:
        there it counts as written.)
        """
        if self._state != _IDLE or self.transport is None:
            return None
        self._state = _ASKED
        self._sent_at, self._heard_at = System.now(), None
        self._rested_s = self.life.idle_s(self._sent_at) if self.life.has_rested else None
        self._alarm.set(ends_at)
        self._parser.expect(is_head=is_head)
        self.transport.write(data)
        if self.transport.is_closing():
            self._note_close()
            return None
        self._head = self._loop.create_future()
        return self._head

    def data_received(self, data: bytes) -> None:
        """Parse a reply; what nobody asked for ends the connection."""
        now = System.now()
        if self._heard_at is None and self._state == _ASKED and now - self._sent_at < self.life.round_trip_s:
            self.life.round_trip_s = now - self._sent_at
        self._heard_at = now
        if self._rest:
            self._rest += data
            return
        known = self._parser.find(data)
        if known is not None:
            self._take_head(*known)
        else:
            self._parse(data)

    def _parse(self, data: bytes) -> None:
        """Parse what has come; behind a piece of many small chunks, others have their turn first.

        Behind the end of a reply nothing waits: the connection could have another request by then.
        """
        for end in range(PIECE_BYTES, len(data) + PIECE_BYTES, PIECE_BYTES):
            for event in self._parser.feed(data[end - PIECE_BYTES : end]):
                self._take(event)
            if end < len(data) and self._state == _BODY and self._parser.is_crumbled:
                self._rest = data[end:]
                self.hold(self)
                self._loop.call_soon(self._parse_rest)
                return
        self.let_go(self)

    def _parse_rest(self) -> None:
        rest, self._rest = self._rest, b""
        if rest:
            self._parse(rest)

    def _take(self, event: ReplyEvent) -> None:
        if isinstance(event, Malformed):
            self._fail(ReplyError(event.detail))
        elif isinstance(event, RawReplyHead):
            self._take_head(event)
        elif event:
            self._content.feed(event)
        elif self._state == _BODY:
            self._state = _WHOLE
            self._content.end()

    def _take_head(self, message: RawReplyHead, body: bytes | None = None) -> None:
        """Take the reply's head, and its body where that is here already."""
        if self._state != _ASKED or self._head is None:
            return
        self._message = message
        self._may_stay = self._may_stay and message.keep_alive
        self._content = Body(self, body)
        self._state = _BODY if body is None else _WHOLE
        if not self._head.done():  # else whoever waited has just gone
            self._head.set_result(message)

    def eof_received(self) -> None:
        """Use it no more: the upstream sends nothing further."""
        if self._state == _IDLE:
            self._note_close()
            self._state = _BROKEN
        elif self._state == _WHOLE and self._may_stay:
            self.life.is_used = True
            self.life.closed(0.0, System.now())  # right behind the reply, which did not say so
        self._may_stay = False

    def connection_lost(self, exc: BaseException | None) -> None:
        """End the request that waits for a reply."""
        super().connection_lost(exc)
        while self._rest:
            self._parse_rest()
        if self._state == _IDLE:
            self._note_close()
        if self._head is None and self._state != _CLOSED:
            self.close()
            return
        # RFC 9112 section 6.3: such a reply ends where the connection is closed in order.
        is_in_order = exc is None and (self.tls is None or has_said_goodbye(self.tls))
        if self._state == _BODY and is_in_order and self._parser.ends_with_connection:
            self._take(b"")
        words = _CUT_SHORT if self._state == _BODY else _CLOSED_WITHOUT_REPLY
        self._fail(exc if isinstance(exc, Exception) else ReplyError(words))

    def _time_is_over(self) -> None:
        if self._head is None:
            self.close()
        else:
            self._fail(TimeoutError())

    def _fail(self, error: Exception) -> None:
        """Use the connection no more; nothing that came of a request under way may pass for a whole reply."""
        self._state = max(self._state, _BROKEN)
        if self.transport is not None:
            self.transport.abort()
        if self._head is not None and not self._head.done():
            self._head.set_exception(error)
        else:
            self._content.fail(error)


def _sorted(message: RawReplyHead) -> ReplyHead:
    """Return the head. Raises ReplyError where more was done to the body than cut it into chunks.

    We asked for nothing else (RFC 9112 section 6.1), and would pass on what nobody can read.
    """
    if isinstance(message.memo, ReplyHead):
        return message.memo
    head = sort_reply(message.fields)
    if head.coding is not None and head.coding != b"chunked":
        raise ReplyError("the reply has a transfer coding other than chunked")
    if head.length is not None and len(head.length) > _PLAIN_DIGITS:
        head = head._replace(length=b"%d" % (message.length or 0))  # without the zeros in front
    message.memo = head
    return head
