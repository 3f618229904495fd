"""What an attempt teaches the pacer and the clock, and what follows from it."""

import pytest

from gateway.clock.test_kept import OUTSIDE, HandHost, synced
from rig.admitted import answer, ticket
from rig.verdicts import upstream_error
from sealgate.core.admission import Ticket
from sealgate.core.attempts import Again, Deliver, Failure, FailureKind, GiveUp, Replay
from sealgate.core.limits.claims import Fate, LimitReply
from sealgate.core.outcome import Conclusion, UpstreamError
from sealgate.gateway.request.context import RequestContext
from sealgate.gateway.request.learning import judge_failure, judge_reply, observe, observe_failure
from sealgate.gateway.upstream.answer import Answer

READ, ORDER, OPEN = ticket("GET /symbols/list"), ticket("POST /order"), ticket("GET /time")
LOST = Failure(FailureKind.LOST, "the reply was cut short")


class Heard:
    """In place of a permit: it keeps what it was told."""

    def __init__(self) -> None:
        self.replies: list[LimitReply] = []

    def answered(self, reply: LimitReply, now: float) -> None:
        del now
        self.replies.append(reply)


def sent() -> RequestContext:
    context = RequestContext("r-1", 0.0, "POST")
    context.sends(99.95, may_be_stopped=False)
    return context


LEARNED = {
    "a good reply": (200, b"{}", (), LimitReply(Fate.ACCEPTED), ()),
    "an error": (400, b"no", (), LimitReply(Fate.ACCEPTED), (upstream_error("other_4xx", 99.95),)),
    "a 429": (
        429,
        b"",
        ((b"Retry-After", b"2"),),
        LimitReply(Fate.LIMITED, 2.0, 1.0),
        (upstream_error("rate_limited", 99.95, 2.0),),
    ),
    "a 5xx": (503, b"", (), LimitReply(Fate.ACCEPTED), (upstream_error("other_5xx", 99.95),)),
}


@pytest.mark.parametrize(("status", "body", "fields", "taught", "errors"), LEARNED.values(), ids=LEARNED)
def test_what_a_reply_teaches(
    status: int,
    body: bytes,
    fields: tuple[tuple[bytes, bytes], ...],
    taught: LimitReply,
    errors: tuple[UpstreamError, ...],
) -> None:
    permit, context, clock = Heard(), sent(), synced(HandHost())
    observe(answer(status, body, *fields), permit, ORDER, context, clock, 100.0)
    assert permit.replies == [taught]
    known = clock.error_s()
    assert context.upstream_errors == tuple(error._replace(clock_error_s=known) for error in errors)
    assert context.is_limited is (status == 429)


def test_errors_of_several_attempts_are_kept_in_their_order() -> None:
    context, clock = sent(), synced(HandHost())
    observe(answer(429), Heard(), ORDER, context, clock, 100.0)
    observe(answer(422), Heard(), ORDER, context, clock, 100.0)
    assert [error.kind for error in context.upstream_errors] == ["rate_limited", "validation"]


def test_a_refused_timestamp_is_the_clocks_lesson() -> None:
    host = HandHost()
    clock = synced(host)
    observe(answer(401, OUTSIDE), Heard(), ORDER, sent(), clock, 100.0)
    assert clock.due.is_set()
    assert clock.status().trouble is None


def test_one_after_a_resync_is_a_fault_until_a_timestamp_is_taken() -> None:
    clock, context = synced(HandHost()), sent()
    context.resends = ("timestamp",)
    observe(answer(401, OUTSIDE), Heard(), ORDER, context, clock, 100.0)
    assert clock.status().trouble == "a timestamp was refused right after a resync"
    observe(answer(404), Heard(), ORDER, context, clock, 100.0)
    assert clock.status().trouble is not None, "an error shows nothing of the timestamp"
    observe(answer(200), Heard(), OPEN, context, clock, 100.0)
    assert clock.status().trouble is not None, "nor does a reply to what has none"
    observe(answer(200), Heard(), ORDER, context, clock, 100.0)
    assert clock.status().trouble is None


FOLLOWS: dict[str, tuple[Ticket, Answer, Replay, tuple[str, ...], Deliver | Again]] = {
    "a good reply": (ORDER, answer(200), Replay.ALL, (), Deliver(Conclusion.DONE)),
    "a 5xx to an order": (ORDER, answer(500), Replay.ALL, (), Deliver(Conclusion.UNKNOWN)),
    "a 5xx to a read": (READ, answer(500), Replay.ALL, (), Deliver(Conclusion.REFUSED)),
    "a 429 to an order": (ORDER, answer(429), Replay.ALL, (), Again("rate_limited", Conclusion.REFUSED)),
    "a 429 where reads alone go again": (ORDER, answer(429), Replay.READS, (), Deliver(Conclusion.REFUSED)),
    "a timestamp": (ORDER, answer(401, OUTSIDE), Replay.NONE, (), Again("timestamp", Conclusion.REFUSED)),
    "a timestamp once more": (
        ORDER,
        answer(401, OUTSIDE),
        Replay.NONE,
        ("timestamp",),
        Deliver(Conclusion.REFUSED),
    ),
}


@pytest.mark.parametrize(("one", "reply", "replay", "resends", "verdict"), FOLLOWS.values(), ids=FOLLOWS)
def test_what_follows_from_a_reply(
    one: Ticket, reply: Answer, replay: Replay, resends: tuple[str, ...], verdict: Deliver | Again
) -> None:
    context = sent()
    context.resends = resends
    assert judge_reply(reply, one, context, replay) == verdict


def test_the_head_of_a_429_teaches_although_its_body_was_cut() -> None:
    permit = Heard()
    cut = Failure(FailureKind.LOST, "the reply was cut short", {"retry-after": "0.5"})
    observe_failure(cut, permit, sent(), synced(HandHost()), 0.0)
    assert permit.replies == [LimitReply(Fate.LIMITED, 0.5, 0.0)]


def test_nothing_else_that_was_lost_teaches() -> None:
    permit = Heard()
    observe_failure(LOST, permit, sent(), synced(HandHost()), 0.0)
    assert permit.replies == []


def test_after_a_failure_of_the_exchange_the_clock_finds_out_whether_it_is_away() -> None:
    away, own = synced(HandHost()), synced(HandHost())
    away.due.clear()
    own.due.clear()
    observe_failure(LOST, Heard(), sent(), away, 0.0)
    observe_failure(Failure(FailureKind.FULL, "all connections are in use"), Heard(), sent(), own, 0.0)
    assert (away.due.is_set(), own.due.is_set()) == (True, False)


UNREACHED = Failure(FailureKind.UNREACHABLE, "nobody there")
FAILED: dict[str, tuple[Failure, Ticket, tuple[str, ...], float, Again | GiveUp]] = {
    "no connection": (UNREACHED, ORDER, (), 5.0, Again("unreachable", Conclusion.NOT_SENT, 0.1)),
    "no connection, again": (
        UNREACHED,
        ORDER,
        ("rate_limited", "unreachable"),
        5.0,
        Again("unreachable", Conclusion.NOT_SENT, 0.2),
    ),
    "no time for another": (
        UNREACHED,
        ORDER,
        (),
        0.05,
        GiveUp("upstream_unreachable", "The exchange gave no answer: nobody there.", Conclusion.NOT_SENT),
    ),
    "a read that was lost": (LOST, READ, (), 5.0, Again("lost", Conclusion.UNKNOWN, 0.1)),
    "an order that was lost": (
        LOST,
        ORDER,
        (),
        5.0,
        GiveUp(
            "upstream_broken", "The exchange gave no answer: the reply was cut short.", Conclusion.UNKNOWN
        ),
    ),
}


@pytest.mark.parametrize(("failure", "one", "resends", "left_s", "verdict"), FAILED.values(), ids=FAILED)
def test_what_follows_without_a_reply(
    failure: Failure, one: Ticket, resends: tuple[str, ...], left_s: float, verdict: Again | GiveUp
) -> None:
    context = sent()
    context.resends, context.give_up_at = resends, 100.0 + left_s
    assert judge_failure(failure, one, context, now=100.0) == verdict


def test_a_failure_of_the_exchange_is_an_error_of_the_request() -> None:
    context = sent()
    context.came_back(99.97)
    observe_failure(UNREACHED, Heard(), context, synced(HandHost()), 100.0)
    assert context.upstream_errors == (upstream_error("unreachable", 100.0),)
    assert context.attempts == 2


def test_an_attempt_whose_first_write_failed_counts_once() -> None:
    context = sent()
    observe_failure(UNREACHED, Heard(), context, synced(HandHost()), 100.0)
    assert context.attempts == 1


def test_a_full_pool_is_no_error_of_the_exchange() -> None:
    full, context = Failure(FailureKind.FULL, "no connection became free"), sent()
    observe_failure(full, Heard(), context, synced(HandHost()), 100.0)
    verdict = judge_failure(full, ORDER, context, now=100.0)
    assert verdict == GiveUp("queue_full", "No connection became free.", Conclusion.NOT_SENT)
    assert context.upstream_errors == ()
