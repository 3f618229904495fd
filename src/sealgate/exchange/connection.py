"""One connection to the exchange. It carries one request at a time, and http/parser.py reads the replies.

There is no `ClientSession` here, on purpose: when a connection breaks, it silently sends the request again;
it follows redirects with our headers, unpacks bodies, keeps cookies and obeys proxy variables.
"""

import asyncio
import enum
import math
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

from sealgate.exchange.answer import Answer, Remainder, read_held
from sealgate.exchange.destination import TRANSPORT_ERRORS, ReplyError, describe, has_said_goodbye
from sealgate.exchange.failure import Failure, FailureKind
from sealgate.exchange.idle_connections import IdleCloses, IdleLife
from sealgate.http.flow import Body, Flow
from sealgate.http.head_memory import HeadMemory
from sealgate.http.headers import ReplyHead, sort_reply
from sealgate.http.parser import PIECE_BYTES, Malformed, RawReplyHead, ReplyEvent, ReplyParser
from sealgate.machine.alarm import Alarm
from sealgate.machine.system import System
from sealgate.venues.replies import Judge

if TYPE_CHECKING:
    import ssl

CLOSED_UNUSED = "the connection was closed immediately"
_CLOSED_WITHOUT_REPLY = "the connection was closed without a reply"
_CUT_SHORT = "the reply was cut off"
_PLAIN_DIGITS: Final = 18  # a Content-Length of more digits has zeros in front


class State(enum.IntEnum):
    """How far the connection is with its one request. It only moves down, but `release` makes WHOLE IDLE."""

    IDLE = 0  # a request may be sent
    ASKED = 1  # a request was sent, and nothing of its reply has arrived
    BODY = 2  # the reply's head has arrived, and its body is arriving
    WHOLE = 3  # the whole reply has arrived
    SWITCHED = 4  # a 101 has arrived: what follows is of another protocol
    BROKEN = 5  # nothing more is sent or accepted; a reply that was whole may still be read
    CLOSED = 6  # neither the pool nor a request has the connection any more


# Names that cost no look-up.
IDLE: Final = State.IDLE
ASKED: Final = State.ASKED
BODY: Final = State.BODY
WHOLE: Final = State.WHOLE
SWITCHED: Final = State.SWITCHED
BROKEN: Final = State.BROKEN
CLOSED: Final = State.CLOSED
_READ_BYTES: Final = 32 * 1024  # of a stream
_READ: Final = memoryview(bytearray(_READ_BYTES))


class Owner(Protocol):
    """The pool that a connection belongs to.

    `closes` learns when the exchange closes idle connections, `judge` says what a reply means.
    """

    closes: IdleCloses
    heads: HeadMemory[RawReplyHead]
    judge: Judge

    def take_back(self, connection: "UpstreamConnection") -> None:
        """Keep a connection for the next request."""

    def forget(self, connection: "UpstreamConnection") -> None:
        """Drop a closed connection."""

    def is_wanted(self) -> bool:
        """Return whether a request is waiting for a connection."""


class _SmallReads(asyncio.BufferedProtocol):
    """Reads at most `_READ_BYTES` at a time: as many may have to wait until a bot reads on.

    The loops would read eight times as much. All connections share the buffer: it is empty between two reads.
    """

    def __init__(self, connection: Flow, receive: Callable[[bytes], None]) -> None:
        self._connection = connection
        self._receive = receive

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes go."""
        del sizehint
        return _READ

    def buffer_updated(self, nbytes: int) -> None:
        """Hand over what was read."""
        self._receive(bytes(_READ[:nbytes]))

    def eof_received(self) -> None:
        """Let the transport close."""

    def connection_lost(self, exc: BaseException | None) -> None:
        """Tell the connection."""
        self._connection.connection_lost(exc)

    def pause_writing(self) -> None:
        """Tell the connection."""
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        """Tell the connection."""
        self._connection.resume_writing()


class UpstreamConnection(Flow):
    """A connection that belongs to its pool while idle, and else to one request.

    The request calls `exchange` once, or `release` to give the connection back unused. `tls` is None where
    the connection is plain; `life` says for how long it may be idle, `began` when its opening began. `alarm`
    closes the connection while it is idle, and ends the request while one is under way.
    """

    def __init__(self, owner: Owner, began: float) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(loop)
        self._owner = owner
        self._began = began
        self.life = IdleLife(owner.closes, 0.0, began)  # another one from `connection_made` on
        self.tls: ssl.SSLObject | None = None
        self._state = IDLE
        self._parser = ReplyParser(owner.heads)
        self._unparsed = b""  # arrived while other tasks had their turn
        self._awaited: asyncio.Future[RawReplyHead] | None = None  # None where nothing was asked
        self._reply_head: RawReplyHead | None = None
        self._body = Body(self)
        self._stays_open = True  # whether the exchange leaves the connection open behind the reply
        self._sent_at = -math.inf
        self._latest_bytes_at: float | None = None  # since the request was sent
        self._idle_before_s: float | None = None  # before the request; None where it never was in the pool
        self._early = b""  # bytes of the other protocol that came before somebody took the connection over
        self._receive: Callable[[bytes], None] | None = None  # gets them since
        self._lost: Callable[[], None] | None = None
        self.alarm = Alarm(loop, self._time_is_over)

    @property
    def is_usable(self) -> bool:
        """Whether a request may be sent."""
        return self._state is IDLE

    @property
    def has_switched(self) -> bool:
        """Whether a 101 has come, so that somebody must `take_over`."""
        return self._state is SWITCHED

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin a life that is idle; opening it took at least a round trip."""
        super().connection_made(transport)
        self.tls = transport.get_extra_info("ssl_object")
        now = System.now()
        self.life = IdleLife(self._owner.closes, now - self._began, now)

    def is_alive(self) -> bool:
        """Ask the system, right before a request is sent, whether the exchange has closed the connection.

        The loop may not know yet. Bytes that nobody asked for end the connection as well, except that TLS
        servers send session tickets before their first reply.
        """
        if self._state is not IDLE or self.transport is None:
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
        self,
        data: bytes,
        timeout_s: float,
        *,
        is_head: bool,
        is_order: bool = False,
        may_switch: bool = False,
    ) -> Answer | Failure:
        """Send a request once, and return its reply; behind a 101, which must be asked for, see `take_over`.

        A Failure whose `is_unsent` is true means that no byte of the request left. Everything, the remainder
        of a large reply included, takes at most `timeout_s`.
        """
        ends_at = self._loop.time() + timeout_s
        awaited = self._send(data, ends_at, is_head=is_head, may_switch=may_switch)
        if awaited is None:
            self.close()
            return Failure(FailureKind.UNREACHABLE, CLOSED_UNUSED)
        try:
            reply = await awaited
            content = self._body
            head = reply.memo if isinstance(reply.memo, ReplyHead) else _sorted(reply)
            body = content.take() if content.is_whole else await read_held(content)
            verdict = self._owner.judge.judge(
                reply.status, body, head.content_coding, is_order=is_order, is_head=is_head
            )
            answer = Answer(reply.status, reply.phrase, head, body, verdict)
            self.life.answered(self._idle_before_s, head.keep_alive_s, self._latest_bytes_at or self._sent_at)
        except TimeoutError as error:
            failure = Failure(FailureKind.LATE, "no complete reply in time", self._limit_fields())
            error.__traceback__ = None
        except TRANSPORT_ERRORS as error:
            failure = Failure(FailureKind.LOST, describe(error), self._limit_fields())
            error.__traceback__ = None  # else its frames keep the error, and the request, until a collection
            if self._idle_before_s is not None and self._latest_bytes_at is None:
                self.life.closed(self._idle_before_s, System.now())
        except BaseException:  # for example, the bot hung up
            self.close()
            raise
        else:
            if reply.status == HTTPStatus.SWITCHING_PROTOCOLS:
                answer.head = ReplyHead(list(reply.fields), {}, None)  # raw: the upgrade is of this hop
                self.alarm.stop()
            elif content.is_read:
                self.release()
            else:
                answer.remainder = Remainder(
                    content, ends_at, self.release, self.close, self._owner.is_wanted
                )
            return answer
        self.close()
        return failure

    def _send(
        self, data: bytes, ends_at: float, *, is_head: bool, may_switch: bool
    ) -> "asyncio.Future[RawReplyHead] | None":
        """Write a request and return a future of its reply's head; None where no byte could be written.

        Both loops write at once, and close a transport whose first write fails. (Over TLS they do not say
        so: there the request counts as sent.)
        """
        if self._state is not IDLE or self.transport is None:
            return None
        self._state = ASKED
        self._sent_at, self._latest_bytes_at = System.now(), None
        self._idle_before_s = self.life.idle_s(self._sent_at) if self.life.has_rested else None
        self.alarm.set(ends_at)
        self._parser.expect(is_head=is_head, may_switch=may_switch)
        self.transport.write(data)
        if self.transport.is_closing():
            self._note_close()
            return None
        self._awaited = self._loop.create_future()
        return self._awaited

    def _limit_fields(self) -> Mapping[str, str] | None:
        """Return the limit fields of a refusal for the limit whose body was cut: its pause holds as well."""
        reply = self._reply_head
        if reply is None or not self._owner.judge.judge(reply.status, b"").is_limited:
            return None
        return sort_reply(reply.fields).limit_fields

    def take_over(self, receive: Callable[[bytes], None], lost: Callable[[], None]) -> None:
        """Hand all bytes behind a 101 to `receive`; call `lost` once when the connection is."""
        self._receive, self._lost = receive, lost
        if self.transport is not None:
            self.transport.set_protocol(_SmallReads(self, receive))
        if self._early:
            receive(self._early)
            self._early = b""
        if self.transport is None:
            lost()

    def release(self) -> None:
        """Give the connection back: the reply was read whole, or nothing was sent."""
        self._awaited = self._reply_head = None
        if self._state is WHOLE:
            # A reply may overtake the end of its request, behind which the next request would have to wait.
            is_sent = self.transport is None or not self.transport.get_write_buffer_size()
            self._state = IDLE if self._stays_open and is_sent else BROKEN
            self.life.ended_request(self._latest_bytes_at or self._sent_at)
        if self._state is IDLE:
            self._owner.take_back(self)
        else:
            self.close()

    def close(self) -> None:
        """Cut the connection."""
        self._state = CLOSED
        self._unparsed = b""
        self._parser.close()
        self.alarm.stop()
        if self.transport is not None:
            self.transport.abort()
        self._owner.forget(self)

    def data_received(self, data: bytes) -> None:
        """Parse a reply; bytes that nobody asked for end the connection."""
        if self._receive is not None:
            self._receive(data)
            return
        if self._state is SWITCHED:
            self._early += data
            return
        now = System.now()
        if self._latest_bytes_at is None and self._state is ASKED:
            self.life.round_trip_s = min(self.life.round_trip_s, now - self._sent_at)
        self._latest_bytes_at = now
        if self._unparsed:
            self._unparsed += data
            return
        known = self._parser.find(data)
        if known is not None:
            self._take_head(*known)
        else:
            self._parse(data)

    def _parse(self, data: bytes) -> None:
        """Parse piece by piece; behind a piece that is dear to parse, other tasks have their turn first.

        Nothing waits behind the end of a reply: the connection could carry another request by then.
        """
        for end in range(PIECE_BYTES, len(data) + PIECE_BYTES, PIECE_BYTES):
            for event in self._parser.feed(data[end - PIECE_BYTES : end]):
                self._take(event)
            if self._parser.behind_switch is not None:
                self._state = SWITCHED
                self._early = self._parser.behind_switch + data[end:]
                break
            if end < len(data) and self._state is BODY and self._parser.is_crumbled:
                self._unparsed = data[end:]
                self.hold(self)
                self._loop.call_soon(self._parse_rest)
                return
        self.let_go(self)

    def _parse_rest(self) -> None:
        rest, self._unparsed = self._unparsed, b""
        if rest:
            self._parse(rest)

    def _take(self, event: ReplyEvent) -> None:
        if isinstance(event, Malformed):
            self._fail(ReplyError(event.detail))
        elif isinstance(event, RawReplyHead):
            self._take_head(event)
        elif event:
            self._body.feed(event)
        elif self._state is BODY:
            self._state = WHOLE
            self._body.end()

    def _take_head(self, reply: RawReplyHead, body: bytes | None = None) -> None:
        """Take the reply's head, and its body where all of it has arrived."""
        if self._state is not ASKED or self._awaited is None:
            return
        self._reply_head = reply
        self._stays_open = self._stays_open and reply.keep_alive
        self._body = Body(self, body)
        self._state = BODY if body is None else WHOLE
        if not self._awaited.done():  # the request may have been cancelled in this turn of the loop
            self._awaited.set_result(reply)

    def eof_received(self) -> None:
        """Send nothing more: the exchange has ended its side."""
        if self._state is IDLE:
            self._note_close()
            self._state = BROKEN
        elif self._state is WHOLE and self._stays_open:
            self.life.is_used = True
            self.life.closed(0.0, System.now())  # right behind a reply that did not announce it
        self._stays_open = False

    def connection_lost(self, exc: BaseException | None) -> None:
        """End the request that is waiting for a reply, by how far the reply has arrived."""
        super().connection_lost(exc)
        if self._lost is not None:
            self._lost()
            return
        while self._unparsed:
            self._parse_rest()
        # 1. Nothing was asked: the connection was idle, or nobody has it any more.
        if self._state is IDLE:
            self._note_close()
        if self._awaited is None and self._state is not CLOSED:
            self.close()
            return
        # 2. A body without a length ends where the connection ends in order (RFC 9112 section 6.3).
        is_in_order = exc is None and (self.tls is None or has_said_goodbye(self.tls))
        if self._state is BODY and is_in_order and self._parser.ends_with_connection:
            self._take(b"")
        # 3. Anything else that is not whole by now is lost.
        words = _CUT_SHORT if self._state is BODY else _CLOSED_WITHOUT_REPLY
        self._fail(exc if isinstance(exc, Exception) else ReplyError(words))

    def _time_is_over(self) -> None:
        if self._awaited is None:
            self.close()
        else:
            self._fail(TimeoutError())

    def _fail(self, error: Exception) -> None:
        """Break the connection; a reply that has not arrived whole ends with the error."""
        self._state = max(self._state, BROKEN)
        if self.transport is not None:
            self.transport.abort()
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_exception(error)
        else:
            self._body.fail(error)


def _sorted(reply: RawReplyHead) -> ReplyHead:
    """Return the sorted head, and keep it as the memo of a head that is remembered. Raises ReplyError.

    A transfer coding other than chunked is refused: we did not ask for one (RFC 9112 section 6.1), and the
    bot could not read what we would pass on.
    """
    head = sort_reply(reply.fields)
    if head.coding is not None and head.coding != b"chunked":
        raise ReplyError("the reply has a transfer coding other than chunked")
    if head.length is not None and len(head.length) > _PLAIN_DIGITS:
        head.length = b"%d" % (reply.length or 0)  # without the zeros in front
    reply.memo = head
    return head
