"""What an attempt teaches the pacer and the clock."""

from typing import Protocol

from sealgate.exchange.answer import Answer
from sealgate.exchange.failure import Failure
from sealgate.exchange.kept_clock import KeptClock
from sealgate.limits.claims import LimitReply
from sealgate.limits.limit_reply import counted, limit_reply
from sealgate.orders.attempts import TIMESTAMP
from sealgate.orders.outcome import UpstreamError
from sealgate.request.admission import Ticket
from sealgate.request.context import RequestContext
from sealgate.venues.replies import LIMITED, NO_REPLY, Means
from sealgate.venues.routes import Auth
from sealgate.venues.server_time import stated_time
from sealgate.venues.venue import Counter

_SIGNED = Auth.SIGNED
_DONE, _TIMESTAMP = Means.DONE, Means.TIMESTAMP


class Learner(Protocol):
    """What learns how a permit ended: the permit itself, for its pacer."""

    def answered(self, reply: LimitReply, now: float) -> None:
        """Take it in."""


def observe(  # noqa: PLR0913, PLR0917 - who learns, and from what
    answer: Answer,
    permit: Learner,
    ticket: Ticket,
    context: RequestContext,
    clock: KeptClock,
    now: float,
    counters: tuple[Counter, ...] = (),
) -> None:
    """Let the pacer and the clock learn from a reply; `counters` are the venue's."""
    verdict = answer.verdict
    counts = counted(counters, answer.head.passed, clock.server_now()) if counters else ()
    taught = clock.taught_by(verdict, answer.head, counts)
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


def observe_failure(
    failure: Failure, permit: Learner, context: RequestContext, clock: KeptClock, now: float
) -> None:
    """Let the clock find out whether the exchange is away; an attempt that found no connection counts, too.

    The pacer learns from a refusal for the limit whose body was cut.
    """
    if not failure.is_own:
        context.upstream_errors += (UpstreamError(NO_REPLY[failure.kind.value], now),)
        context.attempts += not context.is_sent
        clock.due.set()
    if failure.limit_fields is not None:
        permit.answered(limit_reply(LIMITED, failure.limit_fields, clock.server_now), now)
