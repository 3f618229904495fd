"""An open stream: a bot's connection, the exchange's, and what is passed on between them.

What the exchange sends is passed on as it comes. What the bot sends waits in a queue, and is sent in order by
the task of its connection, as some of it must wait: for the clock, for the limit, for the journal.
"""

import asyncio
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import structlog

from sealgate.errors import Refusal
from sealgate.exchange.connection import UpstreamConnection
from sealgate.http.frames import FrameFollower
from sealgate.http.server import ServerConnection
from sealgate.http.websocket import (
    BINARY,
    CLOSE,
    PING,
    PONG,
    TEXT,
    BotFrames,
    BotMessage,
    close_frame,
    code_and_reason,
    frame,
)
from sealgate.streams.access import Asker, Wanted
from sealgate.streams.conversation import Conversation
from sealgate.streams.orders import Desk
from sealgate.streams.own_token import OwnToken
from sealgate.streams.signing import StreamSigner
from sealgate.streams.tally import Rate, StreamStatus, Traffic

if TYPE_CHECKING:
    from collections.abc import Callable

    from sealgate.http.headers import Head
    from sealgate.request.admission import Peer

MOST_UNREAD_BYTES: Final = 64 * 1024  # of a bot before its connection is held
_MANY: Final = 4  # messages of a bot, after which others have their turn; a large one counts for several
_COUNTED_BYTES: Final = 4 * 1024  # each as much as a message
_CLOSING_S: Final = 5.0  # from the first close frame until both connections are cut
_GOING_AWAY: Final = 1001
_POLICY: Final = 1008
_RESTART: Final = 1012
_NO_CLOSE: Final = 1006  # there was no close frame
_CLOSED_WHILE_WAITING: Final = "The bot closed the stream while an order was waiting; the order was not sent."
_CLOSED_BY_EXCHANGE: Final = "The exchange has closed the stream; the order was not sent."

log = structlog.get_logger("sealgate.streams")


class OpenStream:
    """One open stream. `talk` is what is said over it; `on_end` is called once it is over.

    `request_id` is that of the request that opened it. `end` is who closed it, with which code, and the
    gateway's own reason: what the others write there is not kept.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - both ends, and who is at them
        self,
        desk: Desk,
        request_id: str,
        wanted: Wanted,
        asker: Asker,
        signer: StreamSigner,
        bot_end: ServerConnection,
        exchange_end: UpstreamConnection,
    ) -> None:
        self.talk = Conversation(
            self, desk, request_id, wanted.stream, asker.bot, signer, OwnToken(asker.token)
        )
        self.since = desk.system.wall()
        self.began = desk.system.now()
        self.end = ("bot", _NO_CLOSE, "")
        self.on_end: Callable[[OpenStream], None] | None = None
        self._head = asker.head
        self._bot_end = bot_end
        self._exchange_end = exchange_end
        self._follower = FrameFollower()
        self._frames = BotFrames(self.talk.pipeline.backend.rules.max_body)
        self._next: BotMessage | None = None  # behind an order that waits
        self._arrival: asyncio.Future[None] | None = None  # the task waits here for the bot's next message
        self._sent = Traffic()
        self._is_closed_by_us = False
        self._has_bot_closed = False  # it sent its close frame, or is gone
        self._has_exchange_closed = False  # its connection is lost
        self._carries_no_more: Refusal | None = None  # why it was closed, by the exchange or the gateway
        self._is_over = False
        self._timer: asyncio.TimerHandle | None = None
        self._follower.reads = self.talk.listens
        self._rate = Rate(self.began)

    @property
    def has_lost_bot(self) -> bool:
        """Whether its bot is gone, so that it only takes leave of the exchange."""
        return self._bot_end.transport is None

    @property
    def proof(self) -> "tuple[Head, Peer]":
        """By what its bot proved itself: the head that opened it, and the other end of its connection."""
        return self._head, self._bot_end.peer

    @property
    def task(self) -> "asyncio.Task[None] | None":
        """The task in which the bot's messages are sent."""
        return self._bot_end.task

    # The two ends.

    async def run(self) -> None:
        """Pass messages on until the stream is over, or the bot is gone."""
        self._bot_end.on_hang_up = self._bot_lost
        self._bot_end.source, self._exchange_end.source = self._exchange_end, self._bot_end
        self._exchange_end.keep_alive()
        self._exchange_end.take_over(self._from_exchange, self._exchange_lost)
        self._bot_end.take_over(self._from_bot)
        try:
            passed = 0
            while not self._is_over:
                message = self._next or self._frames.next(in_turns=True)
                self._next = None
                if self._frames.unread_bytes <= MOST_UNREAD_BYTES:
                    self._bot_end.let_go(self)
                if message is not None:
                    await self._pass(message)
                    with contextlib.suppress(ConnectionResetError):  # `_exchange_lost` says what follows
                        await self._exchange_end.drain()
                    passed += 1 + len(message.data) // _COUNTED_BYTES
                    if passed >= _MANY:
                        passed = 0
                        await asyncio.sleep(0)  # noqa: TID251 - takes no time
                    continue
                if self._frames.fault is not None:
                    code, reason = self._frames.fault
                    self.close(code, Refusal("bad_request", reason))
                elif self._frames.unread_bytes:
                    await asyncio.sleep(0)  # noqa: TID251 - takes no time
                    continue
                if not self._is_over:
                    self._arrival = asyncio.get_running_loop().create_future()
                    await self._arrival
        finally:
            self._bot_end.on_hang_up = None
            if not self._is_over:
                self._bot_lost()

    def abandon(self) -> None:
        """End a stream that was opened, and of which the bot never heard."""
        self._has_bot_closed = True
        self._exchange_end.close()
        self._finish()

    def _from_bot(self, data: bytes) -> None:
        """Take what the bot sends."""
        if self._has_bot_closed:
            return
        self._frames.add(data)
        is_idle = self._arrival is not None and not self._arrival.done()
        if is_idle and self._send_at_once():
            return
        self._look_ahead()
        if self._frames.unread_bytes > MOST_UNREAD_BYTES:
            self._bot_end.hold(self)
        self._wake()

    def _send_at_once(self) -> bool:
        """Send what waits for nothing, without a turn of the task; return whether that was all.

        The task has nothing to do, so that nothing is overtaken.
        """
        for _ in range(_MANY):
            message = self._frames.next(in_turns=True)
            if message is None:
                return not self._frames.unread_bytes and self._frames.fault is None
            if message.opcode in (PING, PONG) and not self._is_closed_by_us:
                self._write(frame(message.opcode, message.data, is_masked=True))
            elif (
                message.opcode is CLOSE
                or self._is_closed_by_us
                or len(message.data) > _COUNTED_BYTES
                or not self.talk.say_at_once(message)
            ):
                self._next = message
                return False
        return not self._frames.has_more

    def _look_ahead(self) -> None:
        """Look at what the bot sends behind a message that waits.

        Pings and pongs go past it (RFC 6455 section 5.5), and it is not sent once its bot says goodbye.
        """
        while self.talk.waiting is not None and self._next is None:
            message = self._frames.next(in_turns=True)
            if message is None:
                return
            if message.opcode in (PING, PONG) and not self._is_closed_by_us:
                self._write(frame(message.opcode, message.data, is_masked=True))
                continue
            self._next = message
            if message.opcode is CLOSE:
                self.talk.refuse(Refusal("deadline_exceeded", _CLOSED_WHILE_WAITING))

    def _from_exchange(self, data: bytes) -> None:
        """Pass on what the exchange sends, and read what somebody waits for."""
        passed = self._follower.feed(data)
        if passed and not self._is_closed_by_us and self._bot_end.transport is not None:
            self._bot_end.transport.write(passed)
        if self._follower.reads:
            for text in self._follower.take_texts():
                self.talk.hear(text)
            self._follower.reads = self.talk.listens
        if self._follower.has_closed and self._timer is None:
            self.end = "exchange", self._follower.code, ""
            self._close_in_time()
            self._refuse_orders(Refusal("upstream_broken", _CLOSED_BY_EXCHANGE))
        if self._follower.has_more:  # a flood of small frames: others have their turn first
            self._exchange_end.hold(self)
            asyncio.get_running_loop().call_soon(self._from_exchange_on)

    def _from_exchange_on(self) -> None:
        self._exchange_end.let_go(self)
        self._from_exchange(b"")
        if self._has_exchange_closed:
            self._exchange_lost()

    def _bot_lost(self) -> None:
        """Take leave of the exchange: the bot's connection is lost."""
        self._has_bot_closed = True
        self.talk.hang_up()
        if not self._has_exchange_closed and not self._is_closed_by_us and self._timer is None:
            self._write(close_frame(_GOING_AWAY, "", is_masked=True))
            self.end = "bot", _NO_CLOSE, "the bot is gone"
            self._close_in_time()
        self._end_if_closed()
        self._wake()

    def _exchange_lost(self) -> None:
        """Tell the bot that the exchange is gone, unless it knows."""
        self._has_exchange_closed = True
        if self._follower.has_more:  # its close frame, perhaps
            return
        if not (self._follower.has_closed or self._is_closed_by_us or self._has_bot_closed):
            detail = "the exchange closed the connection without a close frame"
            self.close(_RESTART, Refusal("upstream_broken", detail))
        self._end_if_closed()

    def close(self, code: int, why: Refusal) -> None:
        """Close the stream for a reason of the gateway's own: nothing more is passed on."""
        if self._is_closed_by_us or self._is_over:
            return
        self._is_closed_by_us, reason = True, f"{why.slug}: {why.detail}"
        if self._timer is None:  # else somebody has closed it before
            self.end = "gateway", code, reason
        if self._next is not None and self._next.opcode is CLOSE:
            self._has_bot_closed = True
        self._frames.clear()
        self._next = None
        self._refuse_orders(why)
        if (
            self._follower.is_between
            and not self._follower.has_closed
            and self._bot_end.transport is not None
        ):
            self._bot_end.transport.write(close_frame(code, reason, is_masked=False))
        elif self._bot_end.transport is not None and not self._follower.has_closed:
            self._bot_end.transport.abort()  # in the midst of a frame nothing can be said
        self._write(close_frame(_GOING_AWAY, "", is_masked=True))
        if self._frames.fault is not None:  # nothing that follows can be read
            self._has_bot_closed = True
        self._close_in_time()
        self._end_if_closed()
        self._wake()

    def _refuse_orders(self, why: Refusal) -> None:
        """Refuse the order that waits, at once or when it is about to be sent: the stream carries no more."""
        self._carries_no_more = why
        self.talk.refuse(why)

    def _close_in_time(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_CLOSING_S, self._finish)

    def _end_if_closed(self) -> None:
        if self._has_bot_closed and self._has_exchange_closed:
            self._finish()

    def _finish(self) -> None:
        """End the stream: whatever was sent and not settled is unknown."""
        if self._is_over:
            return
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        self.talk.end()
        self._exchange_end.close()
        self._wake()
        if self.on_end is not None:
            self.on_end(self)

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _write(self, data: bytes) -> None:
        if self._exchange_end.transport is not None:
            self._sent.bytes += len(data)
            self._exchange_end.transport.write(data)

    # What the bot sends.

    async def _pass(self, event: BotMessage) -> None:
        """Send one message or control frame of the bot, or close the stream."""
        if event.opcode is CLOSE:
            self._has_bot_closed = True
            if not self._is_closed_by_us:
                self._write(frame(CLOSE, event.data, is_masked=True))
                if not self._follower.has_closed:
                    self.end = "bot", code_and_reason(event.data)[0], ""
                self._close_in_time()
            self._end_if_closed()
        elif not (self._is_closed_by_us or self._has_bot_closed):
            if event.opcode not in (TEXT, BINARY):
                self._write(frame(event.opcode, event.data, is_masked=True))
                return
            asyncio.get_running_loop().call_soon(self._look_ahead)  # if it waits
            try:
                await self.talk.say(event)
            except Refusal as refusal:
                told = {"reason": refusal.slug, "detail": refusal.detail}
                log.warning("stream_message_refused", **self.talk.names, **told)
                self.close(_POLICY, refusal)
            self._follower.reads = self.talk.listens

    # What the conversation asks.

    def send(self, message: BotMessage) -> None:
        """Send a message to the exchange."""
        self._sent.messages += 1
        self._write(frame(message.opcode, message.data, is_masked=True))

    def check_exchange(self) -> None:
        """Raise Refusal, with its cause, where nothing can be sent to the exchange any more."""
        if self._carries_no_more is not None:
            raise self._carries_no_more
        if self._has_exchange_closed or self._exchange_end.has_left() or self._timer is not None:
            raise Refusal("upstream_broken", _CLOSED_BY_EXCHANGE)

    # What the registry asks.

    def traffic(self) -> tuple[Traffic, Traffic]:
        """Return what went to the bot, and to the exchange."""
        return Traffic(self._follower.messages, self._follower.bytes), replace(self._sent)

    def status(self) -> StreamStatus:
        """Return the state of the stream."""
        to_bot, to_exchange = self.traffic()
        talk = self.talk
        return StreamStatus(
            request_id=talk.request_id,
            exchange=talk.exchange,
            bot=talk.bot.name,
            key=talk.live_key.key.alias,
            stream=talk.rules.label,
            since=self.since,
            is_logged_in=talk.is_logged_in if talk.rules.has_login else None,
            to_bot=to_bot,
            to_exchange=to_exchange,
            messages_per_s=self._rate.take(to_bot.messages + to_exchange.messages, talk.desk.system.now()),
        )
