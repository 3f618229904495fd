"""An open stream: a bot's connection, the exchange's, and what is passed on between them.

What the exchange sends is passed on as it comes. What the bot sends waits in a queue, and is sent in order by
the task of its connection, as some of it must wait: for the clock, for the limit, for the journal.
"""

import asyncio
import contextlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import structlog

from sealgate.errors import Refusal
from sealgate.exchange.connection import UpstreamConnection
from sealgate.exchange.exchange import LiveKey
from sealgate.http.frames import FrameFollower
from sealgate.http.server import ServerConnection
from sealgate.http.target import Target
from sealgate.http.websocket import (
    BINARY,
    CLOSE,
    TEXT,
    BotFrames,
    BotMessage,
    close_frame,
    code_and_reason,
    frame,
)
from sealgate.keys.bot import Bot
from sealgate.request.context import RequestContext
from sealgate.request.pipeline import Pipeline
from sealgate.streams.access import Judged, Wanted, judge
from sealgate.streams.login import Login
from sealgate.streams.orders import (
    Desk,
    StreamOrder,
    check,
    is_order,
    new_context,
    refused,
    send_order,
    ticket_of,
)
from sealgate.streams.own_token import OwnToken
from sealgate.streams.signing import StreamSigner
from sealgate.streams.tally import FAILED, OK, Rate, StreamStatus, Traffic
from sealgate.venues.conditions import holds
from sealgate.venues.document import pick
from sealgate.venues.stream_sealer import Moment
from sealgate.venues.streams import MessageRule, MessageSigning, id_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sealgate.request.admission import Peer

MOST_UNREAD_BYTES: Final = 64 * 1024  # of a bot before its connection is held
_MANY: Final = 4  # messages of a bot, after which others have their turn; a large one counts for several
_COUNTED_BYTES: Final = 4 * 1024  # each as much as a message
_CLOSING_S: Final = 5.0  # from the first close frame until both connections are cut
_GOING_AWAY: Final = 1001
_POLICY: Final = 1008
_RESTART: Final = 1012
_NO_CLOSE: Final = 1006  # there was no close frame
_CLOSED_WHILE_WAITING: Final = "The bot closed the stream while an order waited; it was not sent."
_CLOSED_BY_EXCHANGE: Final = "The exchange has closed the stream; the order was not sent."
_UNSIGNED: Final = Moment(0, b"")

log = structlog.get_logger("sealgate.streams")


class OpenStream:
    """One open stream. `pipeline` and `bot` are those of the configuration in use; the key stays the same.

    `waiting` is the record of the order that waits to be sent, `pending` are those that were sent.
    `request_id` is that of the request that opened it; `on_end` is called once it is over. `end` is who
    closed it, with which code, and the gateway's own reason: what the others write there is not kept.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - both ends, and who is at them
        self,
        desk: Desk,
        request_id: str,
        wanted: Wanted,
        bot: Bot,
        signer: StreamSigner,
        bot_end: ServerConnection,
        exchange_end: UpstreamConnection,
        token: OwnToken,
    ) -> None:
        self.desk = desk
        self.request_id = request_id
        self.bot = bot
        self.rules = wanted.stream
        self.shown = Target(f"/{self.rules.label}", f"/{self.rules.label}", None)
        self.waiting: RequestContext | None = None
        self.pending: list[StreamOrder] = []
        self.is_logged_in = self.rules.signs_handshake
        self.since = desk.system.wall()
        self.began = desk.system.now()
        self.end = ("bot", _NO_CLOSE, "")
        self.on_end: Callable[[OpenStream], None] | None = None
        self._signer = signer
        self._bot_end = bot_end
        self._exchange_end = exchange_end
        self._token = token
        self._follower = FrameFollower()
        self._frames = BotFrames(self.pipeline.backend.rules.max_body)
        self._next: BotMessage | None = None  # behind an order that waits
        self._arrival: asyncio.Future[None] | None = None  # the task waits here for the bot's next message
        self._sent = Traffic()
        self._challenge = ""
        self._login: Login | None = None  # that was sent, and not answered yet
        self._is_closed_by_us = False
        self._has_bot_closed = False  # it sent its close frame, or is gone
        self._has_exchange_closed = False  # its connection is lost
        self._carries_no_more: Refusal | None = None  # why it was closed, by the exchange or the gateway
        self._is_over = False
        self._timer: asyncio.TimerHandle | None = None
        self._read_if_asked()
        self._rate = Rate(self.began)

    @property
    def pipeline(self) -> Pipeline:
        """What carries the orders to the exchange."""
        return self._signer.pipeline

    @property
    def live_key(self) -> LiveKey:
        """The key with which it logs in."""
        return self._signer.live_key

    @property
    def has_lost_bot(self) -> bool:
        """Whether its bot is gone, so that it only takes leave of the exchange."""
        return self._bot_end.transport is None

    @property
    def own_address(self) -> tuple[str, str] | None:
        """The bot's own address at which it was opened, None for one of all bots."""
        peer: Peer = self._bot_end.peer
        return peer.own

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
        if self._frames.unread_bytes > MOST_UNREAD_BYTES:
            self._bot_end.hold(self)
        # An order that waits is not sent once its bot says goodbye right behind it.
        if self.waiting is not None and self._next is None:
            self._next = self._frames.next(in_turns=True)
            if self._next is not None and self._next.opcode is CLOSE:
                self.waiting.stop(Refusal("deadline_exceeded", _CLOSED_WHILE_WAITING))
        self._wake()

    def _from_exchange(self, data: bytes) -> None:
        """Pass on what the exchange sends, and read what somebody waits for."""
        passed = self._follower.feed(data)
        if passed and not self._is_closed_by_us and self._bot_end.transport is not None:
            self._bot_end.transport.write(passed)
        if self._follower.reads:
            for text in self._follower.take_texts():
                self._read(text)
            self._read_if_asked()
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
        if self.waiting is not None:
            self.waiting.hang_up()
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
        if self.waiting is not None:
            self.waiting.stop(why)

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
        for order in tuple(self.pending):
            order.lose("The stream ended before a reply to it came.")
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
            try:
                await self._pass_data(event)
            except Refusal as refusal:
                log.warning(
                    "stream_message_refused", **self.names, reason=refusal.slug, detail=refusal.detail
                )
                self.close(_POLICY, refusal)

    async def _pass_data(self, event: BotMessage) -> None:
        """Send one message. Raises Refusal where it may not go."""
        if event.opcode not in (TEXT, BINARY):
            self._write(frame(event.opcode, event.data, is_masked=True))
            return
        judged = None
        try:
            if self.rules.is_read:
                kind = self.live_key.key.sealer.signer.kind
                judged = judge(self.rules, self.bot, kind, event.data, is_text=event.opcode is TEXT)
            else:
                self._check_token(event.data)
        except Refusal as refusal:
            raise refused(self, new_context(self), refusal) from None
        if judged is None:
            self._sent.messages += 1
            self._write(frame(event.opcode, event.data, is_masked=True))
        elif judged.rule is not None and is_order(judged):
            await send_order(self, judged.rule, judged, event.data.decode())
        else:
            await self._pass_read(judged, event.data.decode())

    async def _pass_read(self, judged: Judged, text: str) -> None:
        """Send a message that is no order: a login, a subscription, or what nobody named."""
        rule, ticket, context = judged.rule, ticket_of(self, judged), new_context(self)
        context.admitted(ticket, self.pipeline.max_wait_s, self.pipeline.total_timeout_s)
        self.waiting = context
        try:
            if rule is None or rule.signing is not None:
                await check(self, ticket, text, context)
            if rule is None:
                self._check_token(text.encode())
            else:
                text = await self.sign(text, rule, await self.stamp(rule.signing, text, context))
        except Refusal as refusal:
            raise refused(self, context, refusal) from None
        finally:
            self.waiting = None
            self.desk.books.ended(context, None)
        if rule is not None and rule.is_login and rule.reply is not None:
            own_id = id_of(judged.document, rule.reply.id) if rule.reply.id else None
            self._login = Login(rule.reply, own_id, self.desk.system.now())
            self._read_if_asked()
        self.send_text(text)

    async def stamp(self, signing: MessageSigning | None, text: str, context: RequestContext) -> Moment:
        """Return the moment of a message, and note the fence that its time makes. Raises Refusal."""
        if signing is None:
            return _UNSIGNED
        moment = await self._signer.moment(signing, hash(text), self._challenge, context.give_up_at)
        key = self.live_key.key
        context.timestamp_ms = moment.timestamp_ms
        if signing.is_dated and key.has_fence:
            error_ms = self.pipeline.backend.exchange.clock.error_ms(self.desk.system.now())
            context.fence_ms = moment.timestamp_ms + key.recv_window_ms + error_ms
        return moment

    async def sign(self, text: str, rule: MessageRule, moment: Moment) -> str:
        """Return a message as it is sent. Raises Refusal."""
        signed = await self._signer.sign(text, rule, moment) if rule.signing or rule.drops else text
        self._check_token(signed.encode())
        return signed

    def check_exchange(self) -> None:
        """Raise Refusal, with its cause, where nothing can be sent to the exchange any more."""
        if self._carries_no_more is not None:
            raise self._carries_no_more
        if self._has_exchange_closed or self._exchange_end.has_left() or self._timer is not None:
            raise Refusal("upstream_broken", _CLOSED_BY_EXCHANGE)

    def send_text(self, text: str) -> None:
        """Send a text message."""
        self._sent.messages += 1
        self._write(frame(TEXT, text.encode(), is_masked=True))

    def expect(self, order: StreamOrder) -> None:
        """Read what follows, until something settles an order."""
        self.pending.append(order)
        self._read_if_asked()

    def _check_token(self, data: bytes) -> None:
        """Raise Refusal for a message that would tell the exchange the bot's token."""
        if self._token.is_in(data):
            detail = "The message has the bot's own token of the gateway in it, and was not sent."
            raise Refusal("bot_forbidden", detail)

    # What the exchange answers.

    def _read_if_asked(self) -> None:
        self._follower.reads = bool(self.pending or self._login or self.rules.challenge)

    def _read(self, text: str) -> None:
        """Look into a message of the exchange: a challenge, the reply to a login, or to an order."""
        # An id stands in the text as it is, unless something in the text is escaped.
        may_settle = any(order.id is None or order.id in text or "\\" in text for order in self.pending)
        login, challenge = self._login, self.rules.challenge
        if login is not None and login.note_message(self.desk.system.now(), self.pipeline.total_timeout_s):
            self._login_ended("unknown")
            login = None
        is_challenge = challenge is not None and challenge.may_be(text)
        if not (may_settle or login or is_challenge):
            return
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return
        # 1. A challenge.
        if challenge is not None and holds(challenge.when, document):
            found = pick(document, challenge.at)
            self._challenge = found if isinstance(found, str) else ""
        # 2. The reply to the latest login.
        if login is not None:
            result, status = login.result(document)
            if result == FAILED:
                alias = self.live_key.key.alias
                self.pipeline.learner.learn_of_login(alias, status, text.encode(), login.sent_at)
            if result:
                self._login_ended(result)
        # 3. The reply to an order: to one alone, the oldest that it can be about.
        for order in tuple(self.pending):
            if order.settle(document, text):
                break

    def _login_ended(self, result: str) -> None:
        """Note the result of the latest login."""
        self._login, self.is_logged_in = None, result == OK
        self.desk.tally.logins[self.pipeline.backend.config.name, self.live_key.key.alias, result] += 1
        (log.info if result == OK else log.warning)("stream_login", **self.names, result=result)

    # What the registry asks.

    @property
    def names(self) -> dict[str, str]:
        """What each line of the log about the stream has."""
        return {
            "request_id": self.request_id,
            "exchange": self.pipeline.backend.config.name,
            "bot": self.bot.name,
            "key": self.live_key.key.alias,
            "stream": self.rules.label,
        }

    def adopt(self, pipeline: Pipeline, bot: Bot) -> None:
        """Go by another configuration from now on."""
        self._signer.pipeline, self.bot = pipeline, bot

    def traffic(self) -> tuple[Traffic, Traffic]:
        """Return what went to the bot, and to the exchange."""
        return Traffic(self._follower.messages, self._follower.bytes), replace(self._sent)

    def status(self) -> StreamStatus:
        """Return the state of the stream."""
        to_bot, to_exchange = self.traffic()
        return StreamStatus(
            request_id=self.request_id,
            exchange=self.pipeline.backend.config.name,
            bot=self.bot.name,
            key=self.live_key.key.alias,
            stream=self.rules.label,
            since=self.since,
            is_logged_in=self.is_logged_in if self.rules.has_login else None,
            to_bot=to_bot,
            to_exchange=to_exchange,
            messages_per_s=self._rate.take(to_bot.messages + to_exchange.messages, self.desk.system.now()),
        )
