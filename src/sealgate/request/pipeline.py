"""The pipeline: the path of one request, from top to bottom, in `Pipeline.carry` and `deliver`."""

import asyncio
from typing import Final

from sealgate.errors import Refusal
from sealgate.exchange.answer import Answer
from sealgate.exchange.connection import UpstreamConnection
from sealgate.exchange.exchange import Line
from sealgate.exchange.failure import Failure
from sealgate.http.head_memory import HeadMemory
from sealgate.http.headers import Head
from sealgate.http.parser import RequestHead
from sealgate.http.server import Incoming
from sealgate.keys.bot import Bot
from sealgate.limits.scheduler import Permit, Shared
from sealgate.machine.system import System
from sealgate.orders.resends import TIMESTAMP, Again, GiveUp, after_failure, after_reply
from sealgate.request.admission import Admission, Ticket, check_body
from sealgate.request.bookkeeping import Bookkeeping
from sealgate.request.bots import read_body, whole_body
from sealgate.request.checks import OrderChecks, learn_prices
from sealgate.request.context import BOT, OWN, QUEUE, UPSTREAM, RequestContext
from sealgate.request.generation import Backend
from sealgate.request.halting import Halting
from sealgate.request.learning import Learner
from sealgate.request.replies import Reply, passed_on, without_location
from sealgate.request.sender import Sender
from sealgate.request.shared_reads import SharedReads
from sealgate.request.standing import Standing
from sealgate.request.stream_addresses import StreamAddresses, own_address
from sealgate.venues.routes import Auth

_SESSION: Final = Auth.SESSION  # looked up once, as in context.py


class Pipeline:
    """Carries the requests to one exchange, with the settings of one configuration."""

    def __init__(
        self,
        backend: Backend,
        books: Bookkeeping,
        halting: Halting,
        system: System,
        heads: HeadMemory[RequestHead] | None = None,
    ) -> None:
        self.backend = backend
        self._exchange = backend.exchange
        # Looked up once: pydantic's models define `__getattr__`, which makes each look-up expensive.
        self.max_wait_s = backend.config.limits.max_wait
        self.total_timeout_s = backend.config.upstream.total_timeout
        self._replay = backend.config.limits.replay_429
        self._books = books
        self._halting = halting
        self._system = system
        self._name = backend.config.name
        self._is_one_of_several = bool(backend.config.at)
        self._admission = Admission(backend.rules, heads)
        self.standing = Standing(backend, halting)
        self.learner = Learner(backend)
        self.order_checks = OrderChecks(backend, system)
        self._shared_reads = SharedReads()
        self._stream_addresses = StreamAddresses(backend.config)
        self._sender = Sender(backend, books, self.standing, self._shared_reads, system)

    @property
    def is_draining(self) -> bool:
        """Whether the gateway is shutting down and accepts no new orders."""
        return self._halting.is_draining

    def retire(self) -> None:
        """Forget tickets and shared reads, which hold tokens: a reload has replaced this pipeline."""
        self._admission.forget()
        self._shared_reads.clear()

    def identify(self, request: Incoming, context: RequestContext) -> Bot:
        """Return the bot of a request that names no exchange. Raises Refusal."""
        return self.identify_with_fields(request.head, request, context)[0]

    def identify_with_fields(
        self, head: RequestHead, request: Incoming, context: RequestContext
    ) -> tuple[Bot, Head]:
        """Return the bot of a head sent with a request, and the sorted head. Raises Refusal."""
        bot = request.connection
        return self._admission.identify(head, bot.peer, bot.own_url, context)

    async def carry(self, request: Incoming, target: str, context: RequestContext) -> Reply:
        """Admit, read, recall, check, deliver (wait, connect, stamp, record, sign, send, learn), reply.

        `target` is the exchange's: the head's target without the exchange's name.

        The timestamp is chosen after every wait, including the wait for a connection. Only the journal is
        waited for afterwards, because it records the fence; if that takes long, the request is stamped and
        recorded again.
        """
        # 1. Admit: which bot sends the request, and may it?
        context.exchange, context.carrier = self._name, self._exchange.upstream
        bot = request.connection
        ticket = self._admission.admit(request.head, target, bot.peer, bot.own_url, context)
        live_key = self._exchange.live_keys[ticket.key]
        if ticket.route.auth is _SESSION and live_key.key.session is None:
            raise Refusal("bot_forbidden", f"The key has no session token: set keys.{ticket.key}.session.")
        context.breaker = live_key.breaker
        context.admitted(ticket, self.max_wait_s, self.total_timeout_s)
        # 2. The body.
        if request.body.is_whole:
            body = whole_body(request, self.backend.rules.max_body)
        else:
            body = await self._read(ticket, request, context)
        if body and ticket.route.is_bodiless:
            raise Refusal("bad_request", "Requests to this path must not have a body.")
        if (checks := ticket.checks) is not None and checks.trade_if is not None:
            check_body(ticket, checks.trade_if, body)
        # 3. Recall: was it answered before? If not, may it begin?
        if (known := self._books.begin(ticket, body, live_key.key.sealer, context)) is not None:
            return known
        self.standing.check_new(ticket)
        if checks is not None and (checks.valid_ms or checks.guard is not None):
            since = request.read_at or context.started
            await self.order_checks.check(ticket, checks, body, since, context)
        # 4. Send it, with resends if necessary.
        answer = await self.deliver(ticket, body, context)
        if checks is not None and checks.prices is not None:
            learn_prices(checks.prices, ticket, body, answer, context)
        # 5. Pass the reply on.
        reply = passed_on(answer)
        if (streams_at := ticket.route.streams_at) is not None:
            before = request.head.target.removesuffix(target)
            own = own_address(bot.own_url(), ticket.head.text(b"host"), before)
            reply = self._stream_addresses.replaced(reply, answer, streams_at, own)
        return without_location(reply) if self._is_one_of_several else reply

    async def _read(self, ticket: Ticket, request: Incoming, context: RequestContext) -> bytes:
        context.enter(BOT, self._system.now())
        body = await read_body(
            request,
            self.backend.rules.max_body,
            self.backend.rules.body_timeout_s,
            expects_continue=b"expect" in ticket.head.kept,
        )
        context.enter(OWN, self._system.now())
        return body

    async def deliver(self, ticket: Ticket, body: bytes, context: RequestContext) -> Answer:
        """Do everything from the wait on, with resends; the gateway's own requests enter here.

        Each round has one of three ends: a reply to pass on; nothing was sent, or a resend is due, and the
        next round begins; or a Refusal.
        """
        line = self._exchange.line_of(ticket.key, ticket.route.auth)
        while True:
            permit = await self.take_turn(ticket, body, line, context)
            if isinstance(permit, Shared):
                answer = await self._go_along(permit, ticket, context)
            else:
                with permit:
                    answer = await self._try(ticket, body, permit, context)
            if answer is not None:
                return answer

    async def take_turn(
        self, ticket: Ticket, body: bytes, line: Line, context: RequestContext
    ) -> Permit | Shared:
        """Wait until a request may be sent, or return an identical read to share. Raises Refusal."""
        now = self._system.now()
        self.standing.check(ticket, context, now)
        return (
            self._recent_read(ticket, body, context, now)
            or self._pass_at_once(ticket, body, line, context, now)
            or await self._wait(ticket, body, line, context)
        )

    def _recent_read(self, ticket: Ticket, body: bytes, context: RequestContext, now: float) -> Shared | None:
        """Return a recent identical read whose reply can be shared, None if there is none."""
        if not ticket.route.share_s or not context.may_share:
            return None
        return self._shared_reads.find(ticket, body, now)

    def _pass_at_once(
        self, ticket: Ticket, body: bytes, line: Line, context: RequestContext, now: float
    ) -> Permit | None:
        """Return a permit if the request can be sent without waiting, else None."""
        if context.resends:
            return None
        if line.window_ms is not None and not self._exchange.clock.is_good_for(line.window_ms, now):
            return None
        return line.scheduler.pass_at_once(context.claim(ticket, body, line), now)

    async def _wait(
        self, ticket: Ticket, body: bytes, line: Line, context: RequestContext
    ) -> Permit | Shared:
        """Wait for the backoff of a resend, for the clock, and in the queue, where identical reads merge."""
        context.enter(QUEUE, self._system.now())
        clock = self._exchange.clock
        # 1. A resend waits for its backoff, or for a new sample of the clock.
        if context.resends and context.resends[-1] == TIMESTAMP:
            await clock.wait_for_resync(context.give_up_at)
            context.has_resynced(clock.step_since(context.sent_at))
        elif context.resends and (left_s := context.not_before - self._system.now()) > 0:
            await self._system.sleep(left_s)
        # 2. A timestamp needs the clock, which is not read before the end of a pause either.
        is_shared = ticket.route.share_s is not None and context.may_share
        alike = self._shared_reads.alike(ticket, body) if is_shared else None
        claim = context.claim(ticket, body, line, alike)
        if line.window_ms is not None:
            line.scheduler.check_pause(claim)
            await clock.wait_until_good(context.give_up_at, line.window_ms)
        # 3. The queue.
        permit: Permit | Shared | None = line.scheduler.pass_at_once(claim, self._system.now())
        if isinstance(permit, Permit):
            permit.has_waited = True  # not in the queue, but here
        else:
            permit = await line.scheduler.pass_through(claim)
        context.enter(OWN, self._system.now())
        return permit

    async def _go_along(self, shared: Shared, ticket: Ticket, context: RequestContext) -> Answer | None:
        """Wait for the identical read and use its reply; return None if this read must be sent itself."""
        context.enter(UPSTREAM, now := self._system.now())
        try:
            async with asyncio.timeout(max(0.0, context.ends_at - now)):
                attempt = await shared.wait()
        except TimeoutError:
            detail = "This read waited to share the reply to an identical read, which did not arrive in time."
            raise Refusal("upstream_timeout", detail) from None
        context.enter(OWN, now := self._system.now())
        context.has_shared, context.may_share = True, not shared.is_too_large
        if not isinstance(attempt, Answer | Failure):
            return None
        context.shared = shared.request_id
        answer = self._judge(ticket, attempt, context, now)
        if answer is None:
            context.shared = None
        return answer

    async def _try(
        self, ticket: Ticket, body: bytes, permit: Permit, context: RequestContext
    ) -> Answer | None:
        """Make one attempt; return the reply to pass on, or None for another round."""
        connection: UpstreamConnection | Failure | None = None
        if not context.needs_new_connection:
            upstream = self._exchange.upstream
            connection = upstream.take(ticket.route.lane, may_be_lost=context.may_be_lost)
        if connection is None:
            connection = await self._connect(ticket, permit, context)
        attempt: Answer | Failure | None
        if isinstance(connection, UpstreamConnection):
            attempt = await self._sender.send(ticket, body, connection, permit, context)
        else:
            attempt = connection
        if attempt is None:  # nothing was sent: a pause began, or the connection is too old
            return None
        if permit.shared is not None:
            self._shared_reads.hand_round(permit.shared, attempt, ticket, body, context.request_id)
        now = self._system.now()
        self.learner.learn(ticket, attempt, permit, context, now)
        context.came_back(now)
        return self._judge(ticket, attempt, context, now)

    async def _connect(
        self, ticket: Ticket, permit: Permit, context: RequestContext
    ) -> UpstreamConnection | Failure | None:
        """Wait for a connection; return None if a pause began before there was one."""
        context.enter(UPSTREAM, now := self._system.now())
        permit.has_waited = True
        connection = await self._exchange.upstream.connect(
            ticket.route.lane,
            self._sender.time_left_s(context, now),
            context.give_up_at - now,
            is_new=context.needs_new_connection,
        )
        context.enter(OWN, now := self._system.now())
        if not permit.is_paused(now):
            return connection
        if isinstance(connection, UpstreamConnection):
            connection.release()
        return None

    def _judge(
        self, ticket: Ticket, attempt: Answer | Failure, context: RequestContext, now: float
    ) -> Answer | None:
        """Decide by orders/resends.py; return the reply to pass on, None for a resend.

        Raises Refusal to give up.
        """
        resends = context.resends
        if isinstance(attempt, Failure):
            follows = after_failure(
                attempt,
                is_read=ticket.is_read,
                resends=resends.count(attempt.kind.value),
                time_left_s=context.give_up_at - now,
            )
            context.concludes(follows.conclusion)
            if isinstance(follows, GiveUp):
                raise Refusal(follows.slug, follows.detail)
            return self._again(follows, context, now)
        replied = after_reply(
            attempt.verdict,
            is_read=ticket.is_read,
            replay=self._replay,
            resends=(*resends, TIMESTAMP) if context.is_late else resends,
        )
        context.concludes(replied.conclusion)
        if not isinstance(replied, Again):
            return attempt
        if attempt.remainder is not None:
            attempt.remainder.abandon()
        return self._again(replied, context, now)

    @staticmethod
    def _again(again: Again, context: RequestContext, now: float) -> None:
        """Prepare the next attempt, unless the bot has disconnected."""
        if context.has_hung_up:
            raise asyncio.CancelledError
        context.resends += (again.reason,)
        context.not_before = now + again.after_s
