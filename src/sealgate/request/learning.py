"""Learn from an attempt: the pacer, the clock, the firewall's record and the key's breaker."""

from dataclasses import replace
from typing import Final

import structlog

from sealgate.exchange.answer import Answer
from sealgate.exchange.failure import Failure
from sealgate.limits.claims import LimitReply
from sealgate.limits.gate import LONGEST_BACKOFF_S
from sealgate.limits.limit_reply import counted, limit_reply
from sealgate.limits.pool import name_in
from sealgate.limits.scheduler import Permit
from sealgate.orders.outcome import UpstreamError
from sealgate.orders.resends import TIMESTAMP
from sealgate.request.admission import Ticket
from sealgate.request.context import RequestContext
from sealgate.request.generation import Backend
from sealgate.request.standing import route_name
from sealgate.venues.limit_rules import Counter
from sealgate.venues.replies import LIMITED, NO_REPLY, Means, Scope, Verdict
from sealgate.venues.routes import Auth
from sealgate.venues.server_time import stated_time

log = structlog.get_logger("sealgate.pipeline")

# Looked up once, as in context.py.
_SIGNED: Final = Auth.SIGNED
_OPEN: Final = Auth.OPEN
_DONE: Final = Means.DONE
_TIMESTAMP: Final = Means.TIMESTAMP
_FIREWALL: Final = Means.FIREWALL


class Learner:
    """Lets the parts of one exchange learn from attempts."""

    def __init__(self, backend: Backend) -> None:
        self._exchange = backend.exchange
        self._clock = backend.exchange.clock
        self._scope = backend.config.venue.limits.scope
        self._counters = backend.config.limit_rules.counters
        # By set of pools: a reply concerns the pools that its request passed.
        self._counters_of: dict[tuple[str, ...], tuple[Counter, ...]] = {}

    def learn(
        self, ticket: Ticket, attempt: Answer | Failure, permit: Permit, context: RequestContext, now: float
    ) -> None:
        """Learn from an attempt that ended at `now`. A reply is passed on in any case."""
        try:
            if isinstance(attempt, Failure):
                self._learn_from_failure(attempt, permit, context, now)
                return
            self._learn_from_reply(ticket, attempt, permit, context, now)
            if attempt.verdict.means is not _DONE or self._exchange.gates.firewall.is_alert:
                self._learn_of_firewall(ticket, attempt, context, now)
            if ticket.route.auth is _SIGNED:
                breaker = self._exchange.live_keys[ticket.key].breaker
                breaker.observe(attempt.status, attempt.verdict, context.sent_at)
        except Exception:
            told = {"request_id": context.request_id, "exchange": context.exchange}
            log.exception("reply_not_learned_from", **told)
            # A refusal without a lesson must not be followed immediately by the next try.
            if isinstance(attempt, Answer) and attempt.verdict.is_limited:
                line = self._exchange.line_of(ticket.key, ticket.route.auth)
                line.scheduler.shut_out(line.membership.subjects[0], now + LONGEST_BACKOFF_S)

    def learn_of_login(self, alias: str, status: int, body: bytes, sent_at: float) -> None:
        """Let the clock and the key's breaker learn from a refused login to a stream."""
        verdict = self._exchange.upstream.judge.judge(status, body)
        if verdict.means is _TIMESTAMP:
            server = stated_time(verdict.found.get("server_time", ""))
            self._clock.refused(server, sent_at, is_second=False)
        if alias in self._exchange.live_keys:
            self._exchange.live_keys[alias].breaker.observe(status, verdict, sent_at)

    def _learn_from_reply(
        self, ticket: Ticket, answer: Answer, permit: Permit, context: RequestContext, now: float
    ) -> None:
        """Let the pacer and the clock learn, and note an error."""
        verdict, clock = answer.verdict, self._clock
        counters = self._counters_of_pools(permit.pools) if self._counters else ()
        counts = counted(counters, answer.head.passed, clock.server_now()) if counters else ()
        taught = clock.taught_by(verdict, answer.head, counts)
        if verdict.is_limited:
            taught = self._with_shut_out(taught, ticket, verdict)
        permit.answered(taught, now)
        context.is_limited = verdict.is_limited
        if verdict.means is _DONE:
            if ticket.route.auth is _SIGNED:
                clock.was_accepted()
            return
        if verdict.means is _TIMESTAMP and context.validity is not None:
            context.is_late = context.validity.explains(now, clock.error_s() or 0.0)
            if context.is_late:
                return
        error = UpstreamError(verdict, context.sent_at, taught.retry_after_s, clock.error_s())
        context.upstream_errors += (error,)
        if verdict.means is _TIMESTAMP:
            server = stated_time(verdict.found.get("server_time", ""))
            clock.refused(server, context.sent_at, is_second=TIMESTAMP in context.resends)

    def _counters_of_pools(self, places: tuple[str, ...]) -> tuple[Counter, ...]:
        names = tuple(map(name_in, places))
        if (found := self._counters_of.get(names)) is None:
            found = tuple(counter for counter in self._counters if counter.pool in names)
            self._counters_of[names] = found
        return found

    def _learn_of_firewall(self, ticket: Ticket, answer: Answer, context: RequestContext, now: float) -> None:
        """Note whether the request passed the firewall.

        After a firewall's refusal the clock also tries: that shows whether the whole IP address is refused.
        """
        gates, verdict = self._exchange.gates, answer.verdict
        if verdict.means is _FIREWALL:
            gates.refused_by_firewall(ticket.bot.name, route_name(ticket), context.sent_at, now, verdict.wait)
            self._clock.due.set()
        elif gates.firewall.is_alert:
            gates.firewall.accepted(ticket.bot.name, route_name(ticket), context.sent_at)

    def _with_shut_out(self, taught: LimitReply, ticket: Ticket, verdict: Verdict) -> LimitReply:
        """Return the lesson of a refusal, completed by the scope of a ban.

        A ban of a request without a key can only apply to this IP address.
        """
        auth = ticket.route.auth
        scope = verdict.shuts_out(Scope.ADDRESS if auth is _OPEN else self._scope)
        if scope is None:
            return taught
        membership = self._exchange.line_of(ticket.key, auth).membership
        return replace(taught, shuts_out=membership.shut_out_by(scope))

    def _learn_from_failure(
        self, failure: Failure, permit: Permit, context: RequestContext, now: float
    ) -> None:
        """Let the clock find out whether the exchange is down; a failed connection counts as well.

        The pacer also learns from a rate-limit refusal whose body was cut off.
        """
        if not failure.is_own:
            context.upstream_errors += (UpstreamError(NO_REPLY[failure.kind.value], now),)
            context.attempts += not context.is_sent
            self._clock.due.set()
        if failure.limit_fields is not None:
            permit.answered(limit_reply(LIMITED, failure.limit_fields, self._clock.server_now), now)
