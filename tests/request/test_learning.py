"""What an attempt teaches the pacer and the clock, and what follows from it."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from rig.admitted import answer, ticket
from rig.compiled import needs_sources
from rig.generation import backend_of
from rig.hand_host import EPOCH, OUTSIDE, HandHost
from rig.station import make_config
from sealgate.exchange.answer import Answer
from sealgate.exchange.clock import Sample
from sealgate.exchange.failure import Failure, FailureKind
from sealgate.exchange.kept_clock import KeptClock
from sealgate.limits.claims import Fate, LimitReply
from sealgate.request.admission import Ticket
from sealgate.request.context import RequestContext
from sealgate.request.learning import Learner

pytestmark = needs_sources

READ, ORDER, OPEN = ticket("GET /symbols/list"), ticket("POST /order"), ticket("GET /time")
LOST = Failure(FailureKind.LOST, "the reply was cut off")


class Heard:
    """In place of a permit: it keeps what it was told."""

    paused_until = 0.0
    pools: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.replies: list[LimitReply] = []

    def answered(self, reply: LimitReply, now: float) -> None:
        del now
        self.replies.append(reply)


class Lesson:
    """A learner, and the clock of its generation."""

    def __init__(self, learner: Learner, clock: KeptClock) -> None:
        self._learner = learner
        self.clock = clock
        self.permit = Heard()

    def learn(self, one: Ticket, attempt: Answer | Failure, context: RequestContext) -> None:
        permit: Any = self.permit
        self._learner.learn(one, attempt, permit, context, 100.0)


@contextlib.asynccontextmanager
async def lesson(**tables: Any) -> AsyncIterator[Lesson]:
    host = HandHost()
    async with backend_of(make_config("http://127.0.0.1:9", **tables), host) as backend:
        backend.exchange.clock.observe(Sample(host.boot - 0.06, host.boot, EPOCH, 0.001))
        backend.exchange.clock.trouble = None
        backend.exchange.clock.due.clear()
        yield Lesson(Learner(backend), backend.exchange.clock)


def sent() -> RequestContext:
    context = RequestContext("r-1", 0.0, "POST")
    context.sends(99.95, may_be_stopped=False)
    return context


async def test_one_after_a_resync_is_a_fault_until_a_timestamp_is_taken() -> None:
    context = sent()
    context.resends = ("timestamp",)
    async with lesson() as one:
        one.learn(ORDER, answer(401, OUTSIDE), context)
        assert one.clock.status().trouble == "a timestamp was refused right after a resync"
        one.learn(ORDER, answer(404), context)
        assert one.clock.status().trouble is not None, "an error shows nothing of the timestamp"
        one.learn(OPEN, answer(200), context)
        assert one.clock.status().trouble is not None, "nor does a reply to what has none"
        one.learn(ORDER, answer(200), context)
        assert one.clock.status().trouble is None


async def test_the_head_of_a_429_teaches_although_its_body_was_cut() -> None:
    cut = Failure(FailureKind.LOST, "the reply was cut off", {"retry-after": "0.5"})
    async with lesson() as one:
        one.learn(READ, cut, sent())
        assert one.permit.replies == [LimitReply(Fate.LIMITED, 0.5, 0.0)]


async def test_a_header_that_several_pools_have_is_read_for_those_of_the_request() -> None:
    left = (b"X-Gate-RateLimit-Requests-Remain", b"7")
    async with lesson(venue="gate") as one:
        for places in (("a | spot-orders | A_B",), ("a | spot-orders | C_D",), ("a | spot-cancels",)):
            one.permit.pools = places
            one.learn(ORDER, answer(200, b"", left), sent())
        quotas = [quota for reply in one.permit.replies for quota in reply.quotas]
        assert [(quota.pool, quota.left) for quota in quotas] == [
            ("spot-orders", 7.0),
            ("spot-orders", 7.0),
            ("spot-cancels", 7.0),
        ]


async def test_after_a_failure_of_the_exchange_the_clock_finds_out_whether_it_is_away() -> None:
    async with lesson() as one:
        one.learn(READ, Failure(FailureKind.FULL, "all connections are in use"), sent())
        assert not one.clock.due.is_set()
        one.learn(READ, LOST, sent())
        assert one.clock.due.is_set()


async def test_an_attempt_whose_first_write_failed_counts_once() -> None:
    context = sent()
    async with lesson() as one:
        one.learn(READ, Failure(FailureKind.UNREACHABLE, "nobody there"), context)
    assert context.attempts == 1
