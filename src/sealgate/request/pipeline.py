"""The pipeline: the way of one request, top to bottom, in `Pipeline.carry` and `deliver`."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from sealgate.errors import Refusal
from sealgate.exchange.answer import Answer
from sealgate.exchange.connection import CLOSED_UNUSED, UpstreamConnection
from sealgate.exchange.failure import Failure, FailureKind
from sealgate.http.memory import HeadMemory
from sealgate.http.server import Incoming
from sealgate.http.target import reached_by_proxy
from sealgate.limits.scheduler import Permit, Shared
from sealgate.machine.system import System
from sealgate.orders.attempts import TIMESTAMP, Again, GiveUp, after_failure, after_reply
from sealgate.orders.halts import is_stoppable
from sealgate.orders.policy import Prices
from sealgate.orders.validity import begin_validity
from sealgate.request import admission
from sealgate.request.admission import Peer, Ticket, TicketMemory
from sealgate.request.bookkeeping import Bookkeeping
from sealgate.request.bots import own_url, read_body, whole_body
from sealgate.request.context import BOT, OWN, QUEUE, UPSTREAM, RequestContext
from sealgate.request.generation import Generation, LiveKey
from sealgate.request.halting import Halting
from sealgate.request.learning import observe, observe_failure
from sealgate.request.replies import Reply, passed_on
from sealgate.request.sealing import check_session, sealed_request
from sealgate.request.shared_reads import SharedReads
from sealgate.venues.replies import Means
from sealgate.venues.routes import Auth

if TYPE_CHECKING:
    from sealgate.http.parser import RequestHead

log = structlog.get_logger("sealgate.pipeline")

_FIREWALL = Means.FIREWALL
_SIGNED, _OPEN = Auth.SIGNED, Auth.OPEN  # looked up once, as in context.py
_NEVER_AGAIN = frozenset({b"idempotency-key", b"traceparent"})  # a head with such a field does not come again
_FRESH = 1 / 3  # of `recv_window_ms` a timestamp may age before it goes: the clock may be off by half of it
_FEWER_PRICES = (
    "policy.max_notional no longer has the prices of this reply; let the bot read those of fewer symbols "
    "at once: a reply may have at most 256 KiB, unpacked"
)


@dataclass(frozen=True, slots=True)
class _Admitted:
    """What was made of a head: by which pipeline, for whom."""

    by: "Pipeline"
    peer: Peer
    request_id: str | None
    ticket: Ticket


class Pipeline:
    """Carries the requests of one generation."""

    def __init__(self, generation: Generation, books: Bookkeeping, halting: Halting, system: System) -> None:
        self.generation = generation
        self._books = books
        self._halting = halting
        self._system = system
        self.heads: HeadMemory[RequestHead] = HeadMemory()  # of requests that were admitted
        self._tickets = TicketMemory()
        self._shared_reads = SharedReads()

    @property
    def is_draining(self) -> bool:
        """Whether the gateway shuts down: no new order begins."""
        return self._halting.is_draining

    def retire(self) -> None:
        """Let go of the heads that are remembered, as no request comes here any more: tokens are in them."""
        self.heads.clear()
        self._tickets.clear()
        self._shared_reads.clear()

    async def carry(self, request: Incoming, context: RequestContext) -> Reply:
        """Admit, read, recall, check, wait, connect, stamp, record, sign, send, learn, reply.

        The stamp comes after every wait, the one for a connection included. Only the journal is waited for
        behind it, as it records the fence; where that takes long, the request is stamped and recorded again.
        """
        ticket = self._admit(request, context)
        if request.body.is_whole:
            body = whole_body(request, self.generation.rules.max_body)
        else:
            body = await self._read(ticket, request, context)
        if body and ticket.route.is_bodiless:
            raise Refusal("bad_request", "A request to this path has no body at this exchange.")
        checks = ticket.checks
        if checks is not None and checks.trade_if is not None:
            admission.check_body(ticket, checks.trade_if, body)
        if (known := self._recall(ticket, body, context)) is not None:
            return known
        if checks is not None and checks.valid_ms:
            self._limit_validity(ticket, checks.valid_ms, request.read_at or context.started, context)
        if checks is not None and checks.guard is not None:
            await self._date_counts(ticket, context)
            passed = checks.guard.admit(ticket.route, ticket.target, ticket.head, body, self._system.now())
            if isinstance(passed, str):
                context.detail = passed
            else:
                context.used = checks.guard.usage, passed
        answer = await self.deliver(ticket, body, context)
        if checks is not None and checks.prices is not None:
            _learn_prices(checks.prices, ticket, body, answer, context)
        return passed_on(answer)

    async def _date_counts(self, ticket: Ticket, context: RequestContext) -> None:
        """Count by the exchange's clock what an earlier run sent; wait for that clock, if need be."""
        policies = self.generation.rules.policies
        if policies.undated:
            clock, window_ms = self.generation.clock, self.generation.live_keys[ticket.key].key.recv_window_ms
            await clock.wait_until_good(context.give_up_at, window_ms)  # as the order itself needs it
            policies.date(clock.server_now(), self._system.now())

    def _limit_validity(self, ticket: Ticket, valid_ms: int, since: float, context: RequestContext) -> None:
        """Fix when X-Gateway-Valid-Ms ends, of an order whose head was read at `since`. Raises Refusal."""
        key = self.generation.live_keys[ticket.key].key
        window_ms = key.recv_window_ms if key.dates_back and ticket.route.auth is _SIGNED else None
        context.validity = begin_validity(valid_ms, since, key.alias, window_ms)
        context.give_up_at = min(context.give_up_at, context.validity.until)

    async def deliver(self, ticket: Ticket, body: bytes, context: RequestContext) -> Answer:
        """Do all from the wait on, as often as it takes; the gateway's own requests come in here."""
        while True:
            self._check_standing(ticket, context)
            shared = self._recent_read(ticket, body, context) if ticket.route.share_s else None
            permit = shared or self._pass_at_once(ticket, context) or await self._wait(ticket, body, context)
            if isinstance(permit, Shared):
                if (answer := await self._go_along(permit, ticket, context)) is not None:
                    return answer
                continue
            with permit:
                attempt: Answer | Failure | None
                connection = self._take_idle(ticket, context) or await self._connect(ticket, permit, context)
                if isinstance(connection, UpstreamConnection):
                    attempt = await self._send(ticket, body, connection, permit, context)
                else:
                    attempt = connection
                if permit.shared is not None and attempt is not None:
                    self._shared_reads.hand_round(permit.shared, attempt, ticket, body, context.request_id)
                # Without one, a pause came between: nothing was sent, and it waits once more.
                answer = None if attempt is None else self._learn(ticket, attempt, permit, context)
            if answer is not None:
                return answer

    def _admit(self, request: Incoming, context: RequestContext) -> Ticket:
        ticket = self._remembered(request, context) or self._admit_anew(request, context)
        live_key = self.generation.live_keys[ticket.key]
        check_session(ticket, live_key.key)
        context.breaker = live_key.breaker
        config = self.generation.config
        context.admitted(ticket, config.limits.max_wait, config.upstream.total_timeout)
        return ticket

    def _remembered(self, request: Incoming, context: RequestContext) -> Ticket | None:
        """Return the ticket of a head that these rules admitted before, from the same peer."""
        memo = request.head.memo
        if not isinstance(memo, _Admitted) or memo.by is not self or memo.peer != request.connection.peer:
            return None
        context.request_id = memo.request_id or context.request_id
        context.bot = memo.ticket.bot.name
        return memo.ticket

    def _admit_anew(self, request: Incoming, context: RequestContext) -> Ticket:
        """Return the ticket of a head, and remember it; a refusal is never remembered."""
        head, rules, peer = request.head, self.generation.rules, request.connection.peer
        fields = rules.headers.sort(head.fields)
        own_id = admission.request_id(fields)
        context.request_id = own_id or context.request_id
        context.trace_id = admission.trace_id(fields)
        asked = admission.asked_by(fields, head.method, head.target, head.version, peer)
        if (ticket := self._tickets.find(asked, fields)) is None:
            if (exchange := reached_by_proxy(head.method, head.target)) is not None:
                raise admission.not_a_proxy(head.method, exchange, own_url(request.connection.transport))
            bot = admission.authenticate(fields, head.method, head.version, rules, peer)
            context.bot = bot.name
            ticket = admission.authorise(bot, head.method, head.target, fields, rules)
            self._tickets.put(asked, ticket)
        context.bot = ticket.bot.name
        if fields.kept.keys().isdisjoint(_NEVER_AGAIN):
            head.memo = _Admitted(self, peer, own_id, ticket)
            self.heads.put(head)
        return ticket

    async def _read(self, ticket: Ticket, request: Incoming, context: RequestContext) -> bytes:
        context.enter(BOT, self._system.now())
        body = await read_body(
            request,
            self.generation.rules.max_body,
            self.generation.config.listen.body_timeout,
            expects_continue=b"expect" in ticket.head.kept,
        )
        context.enter(OWN, self._system.now())
        return body

    def _recall(self, ticket: Ticket, body: bytes, context: RequestContext) -> Reply | None:
        """Return what was answered before; refuse a new order while draining."""
        sealer = self.generation.live_keys[ticket.key].key.sealer
        known = self._books.begin(ticket, body, sealer, context)
        if known is None and self._halting.is_draining and is_stoppable(ticket.route):
            raise Refusal("draining", "The gateway is shutting down.")
        return known

    def _check_standing(self, ticket: Ticket, context: RequestContext) -> None:
        """Raise Refusal `halted`, `rate_limited` after a firewall's refusal, or `key_disabled`.

        The gateway's own reads have no breaker, as they try a disabled key. This is asked before each wait
        and again right before the first byte. Requests that wait in between are stopped by the halt and by
        the breaker themselves: see `InFlightRequests.stop`.
        """
        self._halting.check(ticket)
        if self.generation.gates.firewall.is_alert:
            self.generation.gates.check_firewall(ticket.bot.name, _route(ticket), self._system.now())
        if context.breaker is not None and ticket.route.auth is _SIGNED:
            self.generation.live_keys[ticket.key].breaker.check()

    def _recent_read(self, ticket: Ticket, body: bytes, context: RequestContext) -> Shared | None:
        """Return what was sent a moment ago and is alike."""
        if not context.may_share:
            return None
        return self._shared_reads.find(ticket, body, self._system.now())

    async def _go_along(self, shared: Shared, ticket: Ticket, context: RequestContext) -> Answer | None:
        """Take what another's attempt brings as one's own; return None where it is to be sent after all."""
        context.enter(UPSTREAM, now := self._system.now())
        try:
            async with asyncio.timeout(max(0.0, context.ends_at - now)):
                attempt = await shared.wait()
        except TimeoutError:
            detail = "The identical read whose reply this one was to share got none in time."
            raise Refusal("upstream_timeout", detail) from None
        context.enter(OWN, now := self._system.now())
        context.has_shared, context.may_share = True, not shared.is_too_large
        if not isinstance(attempt, Answer | Failure):
            return None
        context.shared = shared.request_id
        answer = self._judge_attempt(ticket, attempt, context, now)
        if answer is None:
            context.shared = None
        return answer

    def _pass_at_once(self, ticket: Ticket, context: RequestContext) -> Permit | None:
        """Return the permit of a request that need not wait."""
        now, scheduler, is_clock_good = self._system.now(), self.generation.open_scheduler, True
        serial = ""
        if ticket.route.auth is not _OPEN:
            live_key = self.generation.live_keys[ticket.key]
            scheduler = live_key.scheduler
            serial = live_key.serial if ticket.route.auth is _SIGNED else ""
            is_clock_good = self.generation.clock.is_good_for(live_key.key.recv_window_ms, now)
        if context.resends or not is_clock_good:
            return None
        return scheduler.pass_at_once(context.claim(ticket, serial), now)

    async def _wait(self, ticket: Ticket, body: bytes, context: RequestContext) -> Permit | Shared:
        """Wait for what a resend waits for, for the clock, and in line, where alike reads go as one."""
        context.enter(QUEUE, self._system.now())
        scheduler, serial = self.generation.open_scheduler, ""
        if context.resends:
            await self._wait_for_resend(context)
        if ticket.route.auth is not _OPEN:
            live_key = self.generation.live_keys[ticket.key]
            scheduler = live_key.scheduler
            serial = live_key.serial if ticket.route.auth is _SIGNED else ""
        is_shared = ticket.route.share_s is not None and context.may_share
        claim = context.claim(ticket, serial, self._shared_reads.alike(ticket, body) if is_shared else None)
        if ticket.route.auth is not _OPEN:
            scheduler.check_pause(claim)  # the clock is not asked before the end of a pause either
            await self.generation.clock.wait_until_good(context.give_up_at, live_key.key.recv_window_ms)
        permit = scheduler.pass_at_once(claim, self._system.now()) or await scheduler.pass_through(claim)
        context.enter(OWN, self._system.now())
        return permit

    async def _wait_for_resend(self, context: RequestContext) -> None:
        """Wait for what a resend waits for: the backoff, or a fresh sample of the clock."""
        if context.resends[-1] == TIMESTAMP:
            await self.generation.clock.wait_for_resync(context.give_up_at)
            context.has_resynced(self.generation.clock.step_since(context.sent_at))
        elif (left := context.not_before - self._system.now()) > 0:
            await self._system.sleep(left)

    def _take_idle(self, ticket: Ticket, context: RequestContext) -> UpstreamConnection | None:
        if context.needs_new_connection:
            return None
        return self.generation.upstream.take(ticket.route.lane, may_be_lost=_may_be_lost(ticket, context))

    async def _connect(
        self, ticket: Ticket, permit: Permit, context: RequestContext
    ) -> UpstreamConnection | Failure | None:
        """Wait for a connection; return None where a pause began before there was one."""
        context.enter(UPSTREAM, now := self._system.now())
        permit.has_waited = True
        connection = await self.generation.upstream.connect(
            ticket.route.lane,
            self._time_left_s(context, now),
            context.give_up_at - now,
            is_new=context.needs_new_connection,
        )
        context.enter(OWN, now := self._system.now())
        if not permit.is_paused(now):
            return connection
        if isinstance(connection, UpstreamConnection):
            connection.release()
        return None

    async def _send(
        self,
        ticket: Ticket,
        body: bytes,
        connection: UpstreamConnection,
        permit: Permit,
        context: RequestContext,
    ) -> Answer | Failure | None:
        """Stamp, sign and send, once. Return what came of it, None where it must wait once more, unsent."""
        live_key, now = self.generation.live_keys[ticket.key], self._system.now()
        try:  # what fails in here was not sent, and the connection serves the next
            if live_key.nonces.is_number and ticket.route.auth is _SIGNED:
                now = await self._reserve(live_key, ticket.key, permit, now)
            self._stamp(ticket, live_key, body, now, context)
            if self._books.must_record(ticket):
                permit.has_waited = True
                await self._record(ticket, live_key, body, context)
                now = self._system.now()
            timeout_s = self._time_left_s(context, now)
            # Nothing may be waited for between the nonce and the first byte.
            stamp_ms, nonce = context.timestamp_ms, live_key.nonces.take(context.timestamp_ms)
            data = sealed_request(
                self.generation.upstream.head, ticket, live_key.key, (stamp_ms, nonce), body
            )
            self._check_standing(ticket, context)
        except BaseException:
            connection.release()
            raise
        if permit.is_paused(now):
            connection.release()
            return None
        is_too_old = permit.has_waited and not (
            _may_be_lost(ticket, context) or connection.life.carries_order(now)
        )
        if is_too_old or not connection.is_alive():
            return _give_up(connection, context)
        if ticket.route.share_s:
            self._shared_reads.sent(permit.share(), ticket, body, now)
        permit.goes(now)
        conclusion = context.conclusion
        # What may execute, or what others wait for, is finished even if the bot hangs up.
        context.sends(now, may_be_stopped=ticket.is_read and permit.shared is None)
        attempt = await connection.exchange(
            data, timeout_s, is_head=ticket.method == "HEAD", is_order=not ticket.is_read
        )
        if isinstance(attempt, Failure) and attempt.is_unsent:  # its first write failed
            context.conclusion = conclusion
        return attempt

    async def _reserve(self, live_key: LiveKey, alias: str, permit: Permit, now: float) -> float:
        """Let the journal know of nonces that rise before they are used; return what time it is then."""
        now_ms = self.generation.clock.timestamp_ms(now)
        if not self._books.must_reserve(live_key.nonces, now_ms):
            return now
        permit.has_waited = True
        await self._books.reserve(live_key.nonces, alias, now_ms)
        return self._system.now()

    def _stamp(
        self, ticket: Ticket, live_key: LiveKey, body: bytes, now: float, context: RequestContext
    ) -> None:
        """Choose the timestamp."""
        key, clock = live_key.key, self.generation.clock
        content = key.sealer.content(ticket.method, ticket.target, body)
        now_ms = clock.timestamp_ms(now)
        if context.validity is None:
            context.timestamp_ms = live_key.stamps.take(now_ms, content)
        else:
            context.timestamp_ms = context.validity.stamp(clock.known, live_key.stamps, content, now)
        fence_ms = context.timestamp_ms + key.recv_window_ms + clock.error_ms(now)
        context.fence_ms = fence_ms if key.has_fence else 0
        self._books.signed(context)

    async def _record(self, ticket: Ticket, live_key: LiveKey, body: bytes, context: RequestContext) -> None:
        """Write an order down. A slow journal makes its timestamp old: then both are made once more.

        Raises Refusal `halted` where that does not help.
        """
        fresh_s = _FRESH * live_key.key.recv_window_ms / 1000
        if await self._record_takes_s(ticket, body, context) < fresh_s:
            return
        self._stamp(ticket, live_key, body, self._system.now(), context)
        if (took_s := await self._record_takes_s(ticket, body, context)) >= fresh_s:
            detail = (
                f"The journal took {took_s:.1f} s to record the order, and by then its timestamp was too old."
            )
            raise Refusal("halted", detail)

    async def _record_takes_s(self, ticket: Ticket, body: bytes, context: RequestContext) -> float:
        since = self._system.now()
        try:
            async with asyncio.timeout(self._time_left_s(context, since)):
                await self._books.intent(
                    ticket, body, context, int(self.generation.clock.server_now() * 1000)
                )
        except TimeoutError:
            raise Refusal("deadline_exceeded", "The journal could not record the order in time.") from None
        return self._system.now() - since

    def _time_left_s(self, context: RequestContext, now: float) -> float:
        time_left_s = context.ends_at - now
        if time_left_s <= 0:
            raise Refusal("deadline_exceeded", "The deadline of this request has passed.")
        if context.validity is not None:
            context.validity.check(now)
        return min(self.generation.config.upstream.total_timeout, time_left_s)

    def _learn(
        self, ticket: Ticket, attempt: Answer | Failure, permit: Permit, context: RequestContext
    ) -> Answer | None:
        """Take in what the attempt says; return the reply to pass on, None to go round once more.

        Raises Refusal where it is given up.
        """
        now = self._system.now()
        self._observe(ticket, attempt, permit, context, now)
        context.came_back(now)
        return self._judge_attempt(ticket, attempt, context, now)

    def _judge_attempt(
        self, ticket: Ticket, attempt: Answer | Failure, context: RequestContext, now: float
    ) -> Answer | None:
        """Ask orders/attempts.py what follows; return the reply to pass on, None to send it again."""
        resends = context.resends
        if isinstance(attempt, Failure):
            times, left_s = resends.count(attempt.kind.value), context.give_up_at - now
            failed = after_failure(attempt, is_read=ticket.is_read, resends=times, time_left_s=left_s)
            context.concludes(failed.conclusion)
            if isinstance(failed, GiveUp):
                raise Refusal(failed.slug, failed.detail)
            _prepare_resend(failed, attempt, context, now)
            return None
        reply = after_reply(
            attempt.verdict,
            is_read=ticket.is_read,
            replay=self.generation.config.limits.replay_429,
            resends=(*resends, TIMESTAMP) if context.is_late else resends,
        )
        context.concludes(reply.conclusion)
        if isinstance(reply, Again):
            _prepare_resend(reply, attempt, context, now)
            return None
        return attempt

    def _observe(
        self, ticket: Ticket, attempt: Answer | Failure, permit: Permit, context: RequestContext, now: float
    ) -> None:
        """Let pacer, clock and key learn. What cannot be learned from a reply must not lose the reply."""
        try:
            if isinstance(attempt, Failure):
                observe_failure(attempt, permit, context, self.generation.clock, now)
                return
            counters = self.generation.config.venue.limits.counters
            observe(attempt, permit, ticket, context, self.generation.clock, now, counters)
            self._note_firewall(ticket, attempt, context, now)
            if attempt.verdict.shuts_out_address(is_open=ticket.route.auth is _OPEN):
                self.generation.gates.hold(permit.paused_until)
            if ticket.route.auth is _SIGNED:
                self.generation.live_keys[ticket.key].breaker.observe(
                    attempt.status, attempt.verdict, context.sent_at
                )
        except Exception:
            log.exception("reply_not_learned_from", request_id=context.request_id)

    def _note_firewall(self, ticket: Ticket, answer: Answer, context: RequestContext, now: float) -> None:
        """Note whether a request passed the firewall; after a refusal, the clock asks as somebody else."""
        gates, bot, route = self.generation.gates, ticket.bot.name, _route(ticket)
        if answer.verdict.means is _FIREWALL:
            gates.refused_by_firewall(bot, route, context.sent_at, now, answer.verdict.wait)
            self.generation.clock.due.set()
        elif gates.firewall.is_alert:
            gates.firewall.accepted(bot, route, context.sent_at)


def _route(ticket: Ticket) -> str:
    """Return what a firewall's refusal of this request pauses: its route, or its path if no row names it."""
    return f"{ticket.method} {ticket.route.template if ticket.route.is_named else ticket.target.path}"


def _may_be_lost(ticket: Ticket, context: RequestContext) -> bool:
    """Ask whether a reply that is lost costs nothing but time: then it goes on the oldest connections."""
    return ticket.is_read and not context.resends


def _learn_prices(
    prices: Prices, ticket: Ticket, body: bytes, answer: Answer, context: RequestContext
) -> None:
    """Take in the prices of a reply of its own: those of one that was kept may have been replaced since."""
    shape = ticket.route.prices
    if shape is not None and context.shared is None and answer.is_success:
        replied = answer.body if answer.remainder is None else None
        coding = answer.head.content_coding
        prices.learn((ticket.target.raw, body), shape, replied, coding, now=context.sent_at)
    for path in prices.new_faults():
        log.warning("prices_not_read", path=path, fix=_FEWER_PRICES)


def _give_up(connection: UpstreamConnection, context: RequestContext) -> Failure | None:
    """Give up a connection that is closed or too old, unsent; only with a new one that is a failure."""
    connection.release()
    if connection.life.has_rested:
        context.needs_new_connection = True
        return None
    return Failure(FailureKind.UNREACHABLE, CLOSED_UNUSED)


def _prepare_resend(again: Again, attempt: Answer | Failure, context: RequestContext, now: float) -> None:
    if isinstance(attempt, Answer) and attempt.remainder is not None:
        attempt.remainder.abandon()
    if context.has_hung_up:
        raise asyncio.CancelledError
    context.resends += (again.reason,)
    context.not_before = now + again.after_s
