"""What an attempt teaches: the pacer and the clock take it in, and the table says what follows."""

from typing import Protocol

from sealgate.core.admission import Ticket
from sealgate.core.attempts import (
    TIMESTAMP,
    Again,
    Deliver,
    Failure,
    GiveUp,
    Replay,
    after_failure,
    after_reply,
    is_timestamp_refusal,
)
from sealgate.core.catalogue import UpstreamError, find_kind
from sealgate.core.limit_reply import limit_reply
from sealgate.core.pacing.claims import LimitReply
from sealgate.core.routes import Auth
from sealgate.core.statuses import BAD_REQUEST, TOO_MANY_REQUESTS
from sealgate.gateway.clock.kept import KeptClock
from sealgate.gateway.request.context import RequestContext
from sealgate.gateway.upstream.answer import Answer

_SIGNED = Auth.SIGNED


class Learner(Protocol):
    """What learns how a turn ended: the turn itself, for its pacer."""

    def answered(self, reply: LimitReply) -> None:
        """Take it in."""


def observe(answer: Answer, turn: Learner, ticket: Ticket, context: RequestContext, clock: KeptClock) -> None:
    """Let the pacer and the clock learn from a reply."""
    taught = limit_reply(answer.status, answer.head.limit_fields, clock.server_now)
    turn.answered(taught)
    if answer.status >= BAD_REQUEST:
        kind = find_kind(answer.status, answer.body)
        error = UpstreamError(kind, context.sent_at, taught.retry_after_s, clock.error_s())
        context.upstream_errors += (error,)
    if answer.status == TOO_MANY_REQUESTS:
        context.upstream_429s += 1
    elif is_timestamp_refusal(answer.status, answer.body):
        clock.refused(answer.body, context.sent_at, is_second=TIMESTAMP in context.resends)
    elif answer.status < BAD_REQUEST and ticket.route.auth is _SIGNED:
        clock.was_accepted()


def judge_reply(answer: Answer, ticket: Ticket, context: RequestContext, replay: Replay) -> Deliver | Again:
    """Say what follows from a whole reply."""
    return after_reply(
        answer.status,
        answer.body,
        is_read=ticket.is_read,
        replay=replay,
        has_resynced=TIMESTAMP in context.resends,
    )


def observe_failure(failure: Failure, turn: Learner, clock: KeptClock) -> None:
    """Let the pacer learn from a 429 whose body was cut, and the clock whether the exchange is away."""
    if not failure.is_own:
        clock.due.set()
    if failure.limit_fields is not None:
        turn.answered(limit_reply(TOO_MANY_REQUESTS, failure.limit_fields, clock.server_now))


def judge_failure(failure: Failure, ticket: Ticket, context: RequestContext, now: float) -> Again | GiveUp:
    """Say what follows from an attempt without one."""
    if not failure.is_own:
        context.upstream_errors += (UpstreamError(failure.kind.value, now),)
        context.attempts += failure.is_unsent  # one that was sent is counted since then
    resends = context.resends.count(failure.kind.value)
    time_left_s = context.give_up_at - now
    return after_failure(failure, is_read=ticket.is_read, resends=resends, time_left_s=time_left_s)
