"""What a bot and an exchange say to each other over a stream: what each message is, and what answers it.

A message is judged by the rules of the venue's file, and signed where they say so. What the exchange sends is
read only while something is waited for: a challenge, the reply to a login, or to an order.
"""

import json
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from sealgate.errors import Refusal
from sealgate.exchange.exchange import LiveKey
from sealgate.http.target import Target
from sealgate.http.websocket import TEXT, BotMessage
from sealgate.keys.bot import Bot
from sealgate.request.context import RequestContext
from sealgate.request.pipeline import Pipeline
from sealgate.streams.access import Judged, judge
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
from sealgate.streams.tally import FAILED, OK
from sealgate.venues.conditions import holds
from sealgate.venues.document import pick
from sealgate.venues.stream_sealer import Moment
from sealgate.venues.streams import MessageRule, MessageSigning, Stream, id_of

if TYPE_CHECKING:
    import asyncio

_UNSIGNED: Final = Moment(0, b"")

log = structlog.get_logger("sealgate.streams")


class Relay(Protocol):
    """The connections of a stream. `task` is the one in which the bot's messages are sent."""

    @property
    def task(self) -> "asyncio.Task[None] | None": ...  # noqa: D102

    def send(self, message: BotMessage) -> None:
        """Send a message to the exchange."""

    def check_exchange(self) -> None:
        """Raise Refusal, with its cause, where nothing can be sent to the exchange any more."""


class Conversation:
    """What is said over one stream. `pipeline` and `bot` are those of the configuration in use.

    The key stays the same. `waiting` is the record of the message that waits to be sent, `pending` are the
    orders that were sent. `request_id` is that of the request that opened the stream.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - who talks, by which rules
        self,
        relay: Relay,
        desk: Desk,
        request_id: str,
        rules: Stream,
        bot: Bot,
        signer: StreamSigner,
        token: OwnToken,
    ) -> None:
        self.relay = relay
        self.desk = desk
        self.request_id = request_id
        self.rules = rules
        self.bot = bot
        self.shown = Target(f"/{rules.label}", f"/{rules.label}", None)
        self.waiting: RequestContext | None = None
        self.pending: list[StreamOrder] = []
        self.is_logged_in = rules.signs_handshake
        self._signer = signer
        self._token = token
        self._challenge = ""
        self._has_sent_login = False
        self._login: Login | None = None  # that was sent, and not answered yet
        self._latest: tuple[BotMessage, Judged] | None = None  # a message may be asked about twice

    @property
    def pipeline(self) -> Pipeline:
        """What carries the orders to the exchange."""
        return self._signer.pipeline

    @property
    def live_key(self) -> LiveKey:
        """The key with which it logs in."""
        return self._signer.live_key

    @property
    def exchange(self) -> str:
        """The name of the exchange."""
        return self.pipeline.backend.config.name

    @property
    def names(self) -> dict[str, str]:
        """What each line of the log about the stream has."""
        return {
            "request_id": self.request_id,
            "exchange": self.exchange,
            "bot": self.bot.name,
            "key": self.live_key.key.alias,
            "stream": self.rules.label,
        }

    @property
    def task(self) -> "asyncio.Task[None] | None":
        """The task in which the bot's messages are sent."""
        return self.relay.task

    @property
    def lacks_login(self) -> bool:
        """Whether the exchange expects a login on the stream, and the bot has sent none."""
        return self.rules.has_login and not (self.is_logged_in or self._has_sent_login)

    def adopt(self, pipeline: Pipeline, bot: Bot) -> None:
        """Put another configuration in force."""
        self._signer.pipeline, self.bot, self._latest = pipeline, bot, None

    # What the bot says.

    def say_at_once(self, message: BotMessage) -> bool:
        """Send a message that waits for nothing, and return whether it was sent; `say` takes all others."""
        try:
            return self._send_plain(message) is None
        except Refusal:  # `say` raises it again
            return False

    async def say(self, message: BotMessage) -> None:
        """Send a message of the bot. Raises Refusal where it may not go."""
        try:
            judged = self._send_plain(message)
        except Refusal as refusal:
            raise refused(self, new_context(self), refusal) from None
        if judged is None:
            return
        if judged.rule is not None and is_order(judged):
            await send_order(self, judged.rule, judged, message.data.decode())
        else:
            await self._pass_read(judged, message.data.decode())

    def _send_plain(self, message: BotMessage) -> Judged | None:
        """Send a message that waits for nothing, or return what it is. Raises Refusal."""
        judged = self._judged(message)
        if judged is not None and not _is_plain(judged):
            return judged
        self._check_token(message.data)
        self.relay.send(message)
        return None

    def _judged(self, message: BotMessage) -> Judged | None:
        """Return what a message is by the rules, None on a stream that is not read. Raises Refusal."""
        if not self.rules.is_read:
            return None
        if self._latest is None or self._latest[0] is not message:
            kind = self.live_key.key.sealer.signer.kind
            judged = judge(self.rules, self.bot, kind, message.data, is_text=message.opcode is TEXT)
            self._latest = message, judged
        return self._latest[1]

    async def _pass_read(self, judged: Judged, text: str) -> None:
        """Sign and send a login or a subscription, or send a message that no rule names."""
        rule, ticket, context = judged.rule, ticket_of(self, judged), new_context(self)
        context.admitted(ticket, self.pipeline.max_wait_s, self.pipeline.total_timeout_s)
        self.waiting = context
        try:
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
        if rule is not None and rule.is_login:
            self._has_sent_login = True
        if rule is not None and rule.is_login and rule.reply is not None:
            own_id = id_of(judged.document, rule.reply.id) if rule.reply.id else None
            self._login = Login(rule.reply, own_id, self.desk.system.now())
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

    def send_text(self, text: str) -> None:
        """Send a text message."""
        self.relay.send(BotMessage(TEXT, text.encode()))

    def check_exchange(self) -> None:
        """Raise Refusal, with its cause, where nothing can be sent to the exchange any more."""
        self.relay.check_exchange()

    def expect(self, order: StreamOrder) -> None:
        """Listen for what settles an order."""
        self.pending.append(order)

    def refuse(self, why: Refusal) -> None:
        """Refuse the message that waits: the stream carries no more."""
        if self.waiting is not None:
            self.waiting.stop(why)

    def hang_up(self) -> None:
        """Take the message that waits back: the bot is gone."""
        if self.waiting is not None:
            self.waiting.hang_up()

    def end(self) -> None:
        """End what was sent and not settled as unknown: the stream is over."""
        for order in tuple(self.pending):
            order.lose("The stream ended before the reply arrived.")

    def _check_token(self, data: bytes) -> None:
        """Raise Refusal for a message that would tell the exchange the bot's token."""
        if self._token.is_in(data):
            detail = "The message contains the bot's gateway token, so it was not sent."
            raise Refusal("bot_forbidden", detail)

    # What the exchange says.

    @property
    def listens(self) -> bool:
        """Whether something is waited for in what the exchange sends."""
        return bool(self.pending or self._login or self.rules.challenge)

    def hear(self, text: str) -> None:
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
        self.desk.tally.logins[self.exchange, self.live_key.key.alias, result] += 1
        (log.info if result == OK else log.warning)("stream_login", **self.names, result=result)


def _is_plain(judged: Judged) -> bool:
    """Whether a message is sent as it came, and waits for nothing: the file names it, and signs nothing."""
    rule = judged.rule
    if rule is None or rule.is_login or is_order(judged):
        return False
    return rule.signing is None and not rule.drops
