"""An order over a stream: its turn in line, its record, the send, and the reply that settles it.

It is sent once, by the steps of any request: what stops it, its turn, the stamp, the journal, the signature,
and once more whether it may go. What no reply settles ends as unknown.
"""

import asyncio
from dataclasses import dataclass
from typing import Protocol, cast

import structlog

from sealgate.errors import Refusal
from sealgate.exchange.answer import Answer
from sealgate.exchange.exchange import LiveKey
from sealgate.http.headers import Head, ReplyHead
from sealgate.http.target import Target
from sealgate.keys.bot import Bot
from sealgate.limits.claims import Fate, LimitReply
from sealgate.limits.scheduler import Permit
from sealgate.machine.system import System
from sealgate.orders.doubts import OVER_STREAM
from sealgate.orders.outcome import Conclusion
from sealgate.orders.policy import Checks, is_judged
from sealgate.request.admission import Ticket
from sealgate.request.bookkeeping import Bookkeeping
from sealgate.request.context import InFlightRequests, RequestContext
from sealgate.request.handler import Report
from sealgate.request.pipeline import Pipeline
from sealgate.streams.access import Judged
from sealgate.streams.tally import Tally
from sealgate.venues.replies import Judge, Means, Verdict
from sealgate.venues.routes import Lane
from sealgate.venues.stream_sealer import Moment
from sealgate.venues.streams import MessageRule, MessageSigning, ReplyRule, id_of

METHOD = OVER_STREAM  # of records and journal
_NO_FIELDS = Head({}, b"")
_FRESH = 1 / 3  # of the exchange's window a timestamp may age before it is sent, as in request/sender.py
# What stands for a status in the record: the exchange sends none.
_STATUSES = {"done": 200, "refused": 400, "limited": 429, "unknown": 504}
_UNSETTLED = 202
# What an exchange may say of an order on a stream on which nobody has logged in.
_OF_LOGIN = frozenset({Means.SIGNATURE, Means.KEY, Means.PERMISSION, Means.TIMESTAMP})
_GONE = 499  # as in request/handler.py


log = structlog.get_logger("sealgate.streams")


@dataclass(frozen=True, slots=True)
class Desk:
    """What all streams share; `report` gets the records of their orders."""

    in_flight: InFlightRequests
    books: Bookkeeping
    system: System
    report: Report
    tally: Tally


class Carrier(Protocol):
    """The stream of an order: `waiting` is the record of the one that waits to be sent, `pending` were."""

    bot: Bot
    desk: Desk
    shown: Target
    waiting: RequestContext | None
    pending: "list[StreamOrder]"

    @property
    def pipeline(self) -> Pipeline: ...  # noqa: D102
    @property
    def live_key(self) -> LiveKey: ...  # noqa: D102
    @property
    def task(self) -> "asyncio.Task[None] | None": ...  # noqa: D102
    @property
    def lacks_login(self) -> bool: ...  # noqa: D102

    async def stamp(self, signing: MessageSigning | None, text: str, context: RequestContext) -> Moment:
        """Return the moment of a message. Raises Refusal."""

    async def sign(self, text: str, rule: MessageRule, moment: Moment) -> str:
        """Return a message as it is sent. Raises Refusal."""

    def check_exchange(self) -> None:
        """Raise Refusal where nothing can be sent any more."""

    def send_text(self, text: str) -> None:
        """Send a text message."""

    def expect(self, order: "StreamOrder") -> None:
        """Look for what settles an order."""


def ticket_of(stream: Carrier, judged: Judged) -> Ticket:
    """Return the ticket of a message, with the checks that it needs."""
    guard = stream.pipeline.backend.rules.guards.get(stream.bot.name) if is_judged(judged.route) else None
    return Ticket(
        stream.bot,
        stream.live_key.key.alias,
        judged.route,
        METHOD,
        stream.shown,
        _NO_FIELDS,
        None,
        None if guard is None else Checks(guard),
    )


def is_order(judged: Judged) -> bool:
    """Whether a message is recorded as an order: the file names it so."""
    return judged.rule is not None and judged.route.lane is not Lane.READ


class StreamOrder:
    """An order that was sent, until it is settled. `rule` is None where no reply can settle it."""

    def __init__(
        self, stream: Carrier, ticket: Ticket, permit: Permit, context: RequestContext, judged: Judged
    ) -> None:
        rule = None if judged.rule is None else judged.rule.reply
        self.id = id_of(judged.document, rule.id) if rule is not None and rule.id else None
        self.rule: ReplyRule | None = rule if rule is None or self.id or not rule.id else None
        self.ticket = ticket
        self._is_signed = judged.rule is not None and judged.rule.signing is not None
        self._stream = stream
        self._permit = permit
        self._context = context
        self._timer: asyncio.TimerHandle | None = None

    def await_reply(self, timeout_s: float) -> None:
        """Let the order end as unknown where nothing settles it in time."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(timeout_s, self.lose, f"No reply to it arrived within {timeout_s:g} s.")

    def settle(self, document: object, text: str) -> bool:
        """End the order if a message of the exchange settles it; return whether it does."""
        if self.rule is None or not self.rule.answers(self.id, document):
            return False
        meaning = self.rule.meaning(document)
        if not meaning:
            return False
        exchange, status = self._stream.pipeline.backend.exchange, _STATUSES[meaning]
        conclusion = {"done": Conclusion.DONE, "unknown": Conclusion.UNKNOWN}.get(meaning, Conclusion.REFUSED)
        now = self._stream.desk.system.now()
        if meaning == "done":
            self._permit.answered(LimitReply(Fate.ACCEPTED), now)
        elif meaning != "unknown":
            status = self.rule.status_of(document, status)
            wait_s = self.rule.wait_s(document, exchange.clock.server_now()) if meaning == "limited" else None
            head = ReplyHead([], {} if wait_s is None else {"retry-after": f"{wait_s:.3f}"}, None)
            verdict = _verdict(exchange.upstream.judge, meaning, status, text.encode())
            if self._stream.lacks_login and not self._is_signed and verdict.means in _OF_LOGIN:
                # It says nothing of the key, with which nothing was signed.
                verdict = exchange.upstream.judge.judge(_STATUSES["refused"], b"")
                self._context.detail = "the bot has not logged in on this stream"
            answer = Answer(status, "", head, text.encode(), verdict)
            self._stream.pipeline.learner.learn(self.ticket, answer, self._permit, self._context, now)
        self._end(conclusion, status)
        return True

    def lose(self, detail: str) -> None:
        """End the order as unknown: `detail` says why nobody knows."""
        self._context.refusal = Refusal("upstream_timeout", detail)
        self._end(Conclusion.UNKNOWN, _STATUSES["unknown"])

    def end_unsettled(self) -> None:
        """End an order that no reply can settle, as unknown, once it was sent."""
        self._permit.answered(LimitReply(Fate.ACCEPTED), self._stream.desk.system.now())
        self._context.detail = "the venue's file does not say which reply settles it, or it has no id"
        self._end(Conclusion.UNKNOWN, _UNSETTLED)

    def _end(self, conclusion: Conclusion, status: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self in self._stream.pending:
            self._stream.pending.remove(self)
        self._permit.__exit__(None, None, None)
        now = self._stream.desk.system.now()
        self._context.came_back(now)
        self._context.concludes(conclusion)
        end_record(self._stream, self._context, status)


def end_record(stream: Carrier, context: RequestContext, status: int) -> None:
    """Complete and report the record of an order."""
    desk = stream.desk
    desk.books.ended(context, None)
    desk.in_flight.end(context)
    desk.tally.orders[context.exchange, stream.bot.name, context.conclusion.value] += 1
    context.end(status, desk.system.now())
    desk.report(context)


def _verdict(judge: Judge, meaning: str, status: int, body: bytes) -> Verdict:
    """Return what a refusal means by the venue's rules of replies, at least what the stream's rule says."""
    verdict = judge.judge(status, body, is_order=True)
    return verdict if verdict.is_limited == (meaning == "limited") else judge.judge(_STATUSES[meaning], b"")


async def send_order(stream: Carrier, rule: MessageRule, judged: Judged, text: str) -> None:
    """Send an order as soon as it may go. Raises Refusal where it was not sent."""
    desk, pipeline = stream.desk, stream.pipeline
    context = new_context(stream)
    desk.in_flight.begin(context)
    stream.waiting = context
    try:
        ticket = ticket_of(stream, judged)
        context.admitted(ticket, pipeline.max_wait_s, pipeline.total_timeout_s)
        await check(stream, ticket, text, context)
        while (order := await _try(stream, rule, ticket, judged, text, context)) is None:
            pass
    except asyncio.CancelledError:
        if context.refusal is None or not context.take_back_stop():
            end_record(stream, context, _GONE)
            raise
        raise _refused(stream, context, context.refusal) from None
    except Refusal as refusal:
        raise _refused(stream, context, refusal) from None
    except Exception as error:  # without an end of its record, a drain would wait for it
        log.exception("internal_error", request_id=context.request_id, exchange=context.exchange)
        fault = Refusal("internal_error", "The gateway failed while handling this order.")
        raise _refused(stream, context, fault) from error
    finally:
        stream.waiting = None
    if order.rule is None:
        order.end_unsettled()
    else:
        stream.expect(order)
        order.await_reply(pipeline.total_timeout_s)


def new_context(stream: Carrier) -> RequestContext:
    """Return the record of a message, before anything is known of it."""
    context = RequestContext(stream.desk.system.request_id(), stream.desk.system.now(), METHOD, stream.task)
    context.exchange, context.bot = stream.pipeline.backend.config.name, stream.bot.name
    context.key, context.route = stream.live_key.key.alias, stream.shown.path[1:]
    context.breaker = stream.live_key.breaker
    return context


def refused(stream: Carrier, context: RequestContext, refusal: Refusal) -> Refusal:
    """Report a message that is not recorded as an order, and was not sent; return why."""
    context.refusal = refusal
    stream.desk.books.ended(context, None)
    context.end(refusal.reason.status, stream.desk.system.now())
    stream.desk.report(context)
    return refusal


def _refused(stream: Carrier, context: RequestContext, refusal: Refusal) -> Refusal:
    """End the record of an order that was not sent, and return why."""
    context.refusal = refusal
    end_record(stream, context, refusal.reason.status)
    return refusal


async def check(stream: Carrier, ticket: Ticket, text: str, context: RequestContext) -> None:
    """Ask what stops any order, and the policies of its bot. Raises Refusal."""
    pipeline = stream.pipeline
    pipeline.standing.check_new(ticket)
    pipeline.standing.check(ticket, context, stream.desk.system.now())
    if ticket.checks is not None:
        await pipeline.order_checks.check(ticket, ticket.checks, text.encode(), context.started, context)


async def _try(  # noqa: PLR0913, PLR0917 - an order, and all that is known of it
    stream: Carrier,
    rule: MessageRule,
    ticket: Ticket,
    judged: Judged,
    text: str,
    context: RequestContext,
) -> StreamOrder | None:
    """Take a turn, and send; return None where a pause began before the first byte. Raises Refusal."""
    pipeline, system = stream.pipeline, stream.desk.system
    # 1. Its turn. No order goes along with another, so that this is a permit.
    turn = await pipeline.take_turn(ticket, text.encode(), stream.live_key.other_line, context)
    permit = cast("Permit", turn)
    permit.has_waited = True
    is_sent = False
    try:
        # 2. The stamp, the record, the signature.
        moment = await stream.stamp(rule.signing, text, context)
        if stream.desk.books.must_record(ticket):
            moment = await _record(stream, rule, ticket, text, moment, context)
        signed = await stream.sign(text, rule, moment)
        # 3. May it still go?
        now = system.now()
        pipeline.standing.check(ticket, context, now)
        if now >= context.ends_at:
            raise Refusal("deadline_exceeded", "The order could not be sent in time.")
        if permit.is_paused(now):
            return None
        stream.check_exchange()
        # 4. The send. What could fail comes before it.
        order = StreamOrder(stream, ticket, permit, context, judged)
        permit.goes(now)
        context.sends(now, may_be_stopped=False)
        is_sent = True
        stream.send_text(signed)
    finally:
        if not is_sent:
            permit.__exit__(None, None, None)
    return order


async def _record(  # noqa: PLR0913, PLR0917 - an order, and all that is known of it
    stream: Carrier,
    rule: MessageRule,
    ticket: Ticket,
    text: str,
    moment: Moment,
    context: RequestContext,
) -> Moment:
    """Write an order down; return its moment, a new one where that took long. Raises Refusal."""
    clock, system = stream.pipeline.backend.exchange.clock, stream.desk.system
    fresh_s = _FRESH * stream.live_key.key.recv_window_ms / 1000
    for is_last in (False, True):
        since = system.now()
        try:
            async with asyncio.timeout(max(0.0, context.ends_at - since)):
                server_ms = int(clock.server_now() * 1000)
                await stream.desk.books.intent(ticket, text.encode(), context, server_ms)
        except TimeoutError:
            detail = "The journal could not record the order in time."
            raise Refusal("deadline_exceeded", detail) from None
        took_s = system.now() - since
        if rule.signing is None or took_s < fresh_s:
            break
        if is_last:
            took = f"The journal took {took_s:.1f} s to record the order"
            raise Refusal("halted", f"{took}, and by then its timestamp was too old.")
        moment = await stream.stamp(rule.signing, text, context)
    return moment
