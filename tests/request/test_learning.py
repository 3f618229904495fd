"""What an attempt teaches the pacer and the clock, and what follows from it."""

from exchange.test_kept_clock import OUTSIDE, HandHost, synced
from rig.admitted import answer, ticket
from sealgate.exchange.failure import Failure, FailureKind
from sealgate.limits.claims import Fate, LimitReply
from sealgate.request.context import RequestContext
from sealgate.request.learning import observe, observe_failure

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


def test_the_head_of_a_429_teaches_although_its_body_was_cut() -> None:
    permit = Heard()
    cut = Failure(FailureKind.LOST, "the reply was cut short", {"retry-after": "0.5"})
    observe_failure(cut, permit, sent(), synced(HandHost()), 0.0)
    assert permit.replies == [LimitReply(Fate.LIMITED, 0.5, 0.0)]


def test_after_a_failure_of_the_exchange_the_clock_finds_out_whether_it_is_away() -> None:
    away, own = synced(HandHost()), synced(HandHost())
    away.due.clear()
    own.due.clear()
    observe_failure(LOST, Heard(), sent(), away, 0.0)
    observe_failure(Failure(FailureKind.FULL, "all connections are in use"), Heard(), sent(), own, 0.0)
    assert (away.due.is_set(), own.due.is_set()) == (True, False)


UNREACHED = Failure(FailureKind.UNREACHABLE, "nobody there")


def test_an_attempt_whose_first_write_failed_counts_once() -> None:
    context = sent()
    observe_failure(UNREACHED, Heard(), context, synced(HandHost()), 100.0)
    assert context.attempts == 1
