"""One connection to the upstream: one request at a time, its reply read by http/parser.py.

aiohttp's connector makes the connection (DNS, happy eyeballs, TLS); then it belongs to this protocol. There
is no `ClientSession`, on purpose: it sends a request again by itself when a connection breaks, follows
redirects with our headers on, unpacks bodies, keeps cookies and listens to proxy variables.

How far its request is, is one state (states.py), whose table everything here obeys.
"""

import asyncio
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import aiohttp
from aiohttp.connector import Connection

from sealgate.core.attempts import Failure, FailureKind
from sealgate.core.headers import ReplyHead, sort_reply
from sealgate.core.idle_connections import IdleCloses, announced_life_s
from sealgate.core.venues.replies import Judge
from sealgate.gateway.host.alarm import Alarm
from sealgate.gateway.host.host import Host
from sealgate.gateway.http.flow import Body, Flow
from sealgate.gateway.http.memory import HeadMemory
from sealgate.gateway.http.parser import Malformed, RawReplyHead, ReplyEvent, ReplyParser
from sealgate.gateway.upstream.answer import Answer, Lease, Remainder, read_held
from sealgate.gateway.upstream.states import (
    ASKED,
    BODY,
    CLOSE,
    END,
    ENDED,
    HEAD,
    IDLE,
    RELEASE,
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
_PLAIN_DIGITS = 18  # of a length: one of more digits has zeros in front

_UNASKED = frozenset({IDLE, ENDED})
_FREE = frozenset({IDLE, WHOLE})  # for the next request


class Owner(Protocol):
    """What has the connections to one upstream. `closes` learns when idle ones are closed.

    `judge` says what a reply means.
    """

    closes: IdleCloses
    heads: HeadMemory[RawReplyHead]
    judge: Judge

    def take_back(self, connection: "UpstreamConnection") -> None:
        """Take a connection that its request has done with."""

    def is_wanted(self) -> bool:
        """Whether somebody waits for a connection."""


class UpstreamConnection(Flow):
    """A connection in its owner's hands or a request's. `opened_in_s` is what it took to make it.

    `tls` is the session below, None without one. Whoever has it calls `exchange` once, or `release` to give
    it back unused.
    """

    def __init__(
        self,
        connection: Connection,
        owner: "Owner",
        opened_in_s: float,
    ) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(loop)
        self._connection = connection
        self._owner = owner
        self._head: asyncio.Future[RawReplyHead] | None = None
        self._parser = ReplyParser(owner.heads)
        self._content = Body(self)
        self._message: RawReplyHead | None = None
        self._closes = owner.closes
        self._keep_alive_s = math.inf
        self._announced_s: float | None = None
        self._round_trip_s = opened_in_s  # the shortest time that anything took there and back
        self._idle_since = Host.now()
        self._rested_s: float | None = None  # how long it was idle in the pool before the latest request
        self._has_heard = False  # anything since then
        self.is_used = False  # a request was sent before
        self.has_rested = False  # it was idle in the pool
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
            if not self.has_left(or_sent=self.tls is None):
                return True
            self._note_close(self._idle_s())
            self._spoil()
        return False

    def carries_order(self) -> bool:
        """Ask whether it is young enough for what must not be lost; one opened for a request always is."""
        if not self.has_rested:
            return True
        now = Host.now()
        idle_s = now - self._idle_since
        return idle_s < self._life_s() and idle_s < self._closes.safe_s(now, is_used=self.is_used)

    def lasts_s(self, share: float = 1.0) -> float:
        """Return for how long it will carry orders, were its life that share of what it is."""
        safe_s = self._closes.safe_s(Host.now(), is_used=self.is_used)
        return share * min(self._life_s(), safe_s) - self._idle_s()

    def _life_s(self) -> float:
        """Return how long it may be idle, by our setting and what the exchange announces."""
        announced_s = self._announced_s if self.is_used else self._closes.announced_s
        if announced_s is None:
            return self._keep_alive_s
        return min(self._keep_alive_s, announced_life_s(announced_s, self._round_trip_s))

    def _idle_s(self) -> float:
        """Return how long it has been idle, on a clock that counts suspend."""
        return Host.now() - self._idle_since

    def _note_close(self, idle_s: float) -> None:
        """Let all learn that the exchange closed it; one that was closed as it was opened says nothing."""
        if self.has_rested or self.is_used:
            self._closes.closed(idle_s, Host.now(), is_used=self.is_used)

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
            message = await head
            content = self._content
            fields = _sorted(message)
            body = content.take() if content.is_whole else await read_held(content)
        except TimeoutError:
            failure = Failure(FailureKind.LATE, "no whole reply in time", self._limit_fields())
        except TRANSPORT_ERRORS as error:
            failure = Failure(FailureKind.LOST, describe(error), self._limit_fields())
            if self._rested_s is not None and not self._has_heard:
                self._note_close(self._rested_s)
        except BaseException:  # the bot hung up
            self.close()
            raise
        else:
            phrase = message.phrase.decode("utf-8", "surrogateescape")
            verdict = self._owner.judge.judge(message.status, body, fields.content_coding)
            answer = Answer(message.status, phrase, fields, body, verdict)
            self._learn(fields)
            if content.is_read:
                self.release()
            else:
                lease = Lease(self.release, self.close, self._owner.is_wanted)
                answer.remainder = Remainder(lease, content, ends_at)
            return answer
        self.close()
        return failure

    def _learn(self, fields: ReplyHead) -> None:
        """Take in what a reply says of how long the connection may be idle."""
        if self._rested_s is not None:
            self._closes.survived(self._rested_s, Host.now(), is_used=self.is_used)
        self.is_used = True
        if fields.keep_alive_s is not None:
            self._announced_s = self._closes.announced_s = fields.keep_alive_s

    def _limit_fields(self) -> Mapping[str, str] | None:
        """Return what the head of a refusal for the limit said of it: the pause holds without a body, too."""
        if self._message is None or not self._owner.judge.judge(self._message.status, b"").is_limited:
            return None
        return sort_reply(self._message.fields).limit_fields

    def release(self) -> None:
        """Leave the connection to the next: the reply was read whole, or nothing was sent."""
        self._head = self._message = None
        # Answered before it was sent, the next would wait behind the rest.
        is_sent = self.transport is None or not self.transport.get_write_buffer_size()
        if self._state is WHOLE:
            self._idle_since = Host.now()
        if self._state in _FREE and self._may_stay and is_sent:
            self._state = after(self._state, RELEASE)
            self._owner.take_back(self)
        else:
            self.close()

    def rest(self, keep_alive_s: float) -> bool:
        """Let it be idle: it is closed after so long, or earlier as announced, unless it is roused.

        Return whether it still carries orders.
        """
        self.has_rested, self._keep_alive_s = True, keep_alive_s
        now, life_s = Host.now(), self._life_s()
        idle_s = now - self._idle_since
        self._alarm.set(self._loop.time() + life_s - idle_s)
        return idle_s < life_s and idle_s < self._closes.safe_s(now, is_used=self.is_used)

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
        self._owner.take_back(self)

    def _send(self, data: bytes, ends_at: float, *, is_head: bool) -> "asyncio.Future[RawReplyHead] | None":
        """Write a request, and return where the head of its reply comes; None where nothing could be written.

        Both loops write at once, and close a transport whose first write fails. (That of TLS does not say so:
        there it counts as written.)
        """
        if self._state is not IDLE or self.transport is None:
            return None
        self._state = after(self._state, SEND)
        self._sent_at, self._has_heard = Host.now(), False
        self._rested_s = self._sent_at - self._idle_since if self.has_rested else None
        self._alarm.set(ends_at)
        self._content = Body(self)
        self._parser.expect(is_head=is_head)
        self.transport.write(data)
        if self.transport.is_closing():
            self._note_close(self._idle_s())
            return None
        self._head = self._loop.create_future()
        return self._head

    def data_received(self, data: bytes) -> None:
        """Parse a reply; what nobody asked for spoils the connection."""
        if not self._has_heard and self._state is ASKED:
            self._has_heard = True
            self._round_trip_s = min(self._round_trip_s, Host.now() - self._sent_at)
        for event in self._parser.feed(data):
            self._take(event)

    def _take(self, event: ReplyEvent) -> None:
        if isinstance(event, Malformed):
            self._fail(UntakenReplyError(event.detail))
        elif isinstance(event, RawReplyHead):
            if self._state is ASKED and self._head is not None:
                self._message = event
                self._may_stay = self._may_stay and event.keep_alive
                self._state = after(self._state, HEAD)
                if not self._head.done():  # else whoever waited has just gone
                    self._head.set_result(event)
        elif event:
            self._content.feed(event)
        elif self._state is BODY:
            self._state = after(self._state, END)
            self._content.end()

    def eof_received(self) -> None:
        """Use it no more: the upstream sends nothing after this."""
        if self._state is IDLE:
            self._note_close(self._idle_s())
            self._state = after(self._state, SPOIL)
        elif self._state is WHOLE and self._may_stay:
            self.is_used = True
            self._note_close(0.0)  # right behind the reply, which did not say so
        self._may_stay = False

    def connection_lost(self, exc: BaseException | None) -> None:
        """Tell the request that waits for a reply how it ended."""
        super().connection_lost(exc)
        if self._state in _UNASKED:
            if self._state is IDLE:
                self._note_close(self._idle_s())
            self.close()
            return
        if self._state is BODY and exc is None and self._is_whole_at_the_end():
            self._state = after(self._state, END)
        closed = aiohttp.ClientPayloadError() if self._state is BODY else aiohttp.ServerDisconnectedError()
        self._fail(exc if isinstance(exc, Exception) else closed)

    def _is_whole_at_the_end(self) -> bool:
        """Ask whether the reply ends where the connection was closed in order (RFC 9112 section 6.3)."""
        if self.tls is not None and not has_said_goodbye(self.tls):
            return False
        if not self._parser.ends_with_connection:
            return False
        self._content.end()
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
        else:
            self._content.fail(error)

    def _spoil(self) -> None:
        """Let nobody use the connection again."""
        self._state = after(self._state, SPOIL)
        if self.transport is not None:
            self.transport.abort()


def _sorted(message: RawReplyHead) -> ReplyHead:
    """Return the head. Raises UntakenReplyError where more was done to the body than cut it into chunks.

    We asked for nothing else (RFC 9112 section 6.1), and would pass on what nobody can read.
    """
    if isinstance(message.memo, ReplyHead):
        return message.memo
    head = sort_reply(message.fields)
    if head.coding is not None and head.coding != b"chunked":
        raise UntakenReplyError("the reply has a transfer coding other than chunked")
    if head.length is not None and len(head.length) > _PLAIN_DIGITS:
        head = head._replace(length=b"%d" % (message.length or 0))  # without the zeros in front
    message.memo = head
    return head
