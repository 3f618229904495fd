"""The way of a request where the time goes on in the middle of it: a pause, a slow journal, a lost bot."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from rig.admitted import answer, remainder, ticket
from rig.compiled import needs_sources
from rig.generation import backend_of
from rig.hand_host import EPOCH, HandHost
from rig.station import make_config
from rig.verdicts import judged
from sealgate.errors import Refusal
from sealgate.exchange.answer import Answer
from sealgate.exchange.clock import Sample
from sealgate.exchange.connection import UpstreamConnection
from sealgate.exchange.failure import Failure, FailureKind
from sealgate.exchange.idle_connections import IdleCloses, IdleLife
from sealgate.exchange.kept_clock import KeptClock
from sealgate.limits.scheduler import Permit
from sealgate.orders.halts import Scope
from sealgate.orders.idempotency import IdempotencyKeys, ReplayBounds
from sealgate.orders.journal import Order
from sealgate.request.admission import Ticket
from sealgate.request.bookkeeping import Bookkeeping
from sealgate.request.context import InFlightRequests, RequestContext
from sealgate.request.halting import Halting
from sealgate.request.pipeline import Pipeline
from sealgate.venues.routes import Auth

pytestmark = needs_sources

ORDER = ticket("POST /order")
OK = answer(201, b"{}")
UNREACHED = Failure(FailureKind.UNREACHABLE, "nobody there")


class Hasty(HandHost):
    """Who would sleep goes on at once; the clocks go on by that much."""

    async def sleep(self, seconds: float) -> None:
        self.move(seconds, seconds, seconds)


class Connection(UpstreamConnection):
    """A connection that gives one answer; `ends` says how it was given back."""

    def __init__(self, reply: Answer, *, is_alive: bool = True) -> None:
        self._reply = reply
        self._is_alive, self.life = is_alive, IdleLife(IdleCloses(), 0.0, 0.0)
        self.ends: list[str] = []

    def is_alive(self) -> bool:
        return self._is_alive

    async def exchange(
        self,
        data: bytes,
        timeout_s: float,
        *,
        is_head: bool,
        is_order: bool = False,
        may_switch: bool = False,
    ) -> Answer:
        del timeout_s, is_head, is_order, may_switch
        self.ends.append(data.split(b" ", 1)[0].decode())
        return self._reply

    def release(self) -> None:
        self.ends.append("released")


class Exchange:
    """Connections in their order."""

    def __init__(self, connections: Sequence[Connection | Failure]) -> None:
        self._connections = [*connections]

    def take(self, *_: object, **__: object) -> None:
        return None

    async def connect(self, *_: object, **__: object) -> Connection | Failure:
        return self._connections.pop(0)

    def head(self, method: str, target: str) -> bytes:
        return f"{method} {target} HTTP/1.1\r\n".encode()

    async def close(self) -> None:
        """End nothing."""


class Slow:
    """A journal that does not answer."""

    async def intent(self, _: Order, **_more: bool) -> None:
        await asyncio.Event().wait()


class Meanwhile:
    """A journal that writes at once, and lets something happen before it says so."""

    def __init__(self) -> None:
        self.happens: Callable[[], Awaitable[None]] | None = None

    async def intent(self, _: Order, **_more: bool) -> bool:
        assert self.happens is not None
        await self.happens()
        return True


class Ageing:
    """A journal whose writes take so many seconds each."""

    def __init__(self, host: HandHost, takes_s: Sequence[float]) -> None:
        self._host = host
        self._takes_s = [*takes_s]
        self.stamps: list[int] = []

    async def intent(self, order: Order, **_more: bool) -> bool:
        self.stamps.append(order.timestamp_ms)
        takes_s = self._takes_s.pop(0)
        self._host.move(takes_s, takes_s, takes_s)
        return True


@contextlib.asynccontextmanager
async def pipeline_to(
    *connections: Connection | Failure,
    book: Any = None,
    host: HandHost | None = None,
    halting: Halting | None = None,
) -> AsyncIterator[Pipeline]:
    host = host or Hasty()
    async with backend_of(make_config("http://127.0.0.1:9"), host) as tree:
        tree.exchange.clock.observe(Sample(host.boot - 0.01, host.boot, EPOCH, 0.001))
        upstream: Any = Exchange(connections)
        books = Bookkeeping(IdempotencyKeys(ReplayBounds(1, 1, 1.0)), book, host)
        exchange = dataclasses.replace(tree.exchange, upstream=upstream)
        reached = dataclasses.replace(tree, exchange=exchange)
        halting = halting or Halting(InFlightRequests(), None, host)
        yield Pipeline(reached, books, halting, host)


def admitted(one: Any = ORDER) -> RequestContext:
    context = RequestContext("r-1", 100.0, one.method)
    context.admitted(one, 30.0, 10.0)
    return context


async def test_a_connection_that_was_closed_meanwhile_is_an_attempt_that_sent_nothing() -> None:
    closed = Connection(OK, is_alive=False)
    async with pipeline_to(closed, Connection(OK)) as pipeline:
        context = admitted()
        assert await pipeline.deliver(ORDER, b"{}", context) is OK
    assert (context.attempts, context.resends, closed.ends) == (2, ("unreachable",), ["released"])


@pytest.fixture
def _paused_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a pause begin while the first connection is made."""
    looks = iter([True])
    monkeypatch.setattr(Permit, "is_paused", lambda *_: next(looks, False))


@pytest.mark.usefixtures("_paused_once")
@pytest.mark.parametrize("is_reached", [True, False])
async def test_where_a_pause_began_meanwhile_nothing_is_sent_and_it_waits_once_more(
    *, is_reached: bool
) -> None:
    first = Connection(answer(500)) if is_reached else UNREACHED
    async with pipeline_to(first, Connection(OK)) as pipeline:
        context = admitted()
        assert await pipeline.deliver(ORDER, b"{}", context) is OK
    assert (context.attempts, context.resends) == (1, ())
    if isinstance(first, Connection):
        assert first.ends == ["released"]


async def test_a_timestamp_that_got_old_in_the_journal_is_made_anew() -> None:
    """A third of `recv_window` it may age, which is 5 s here."""
    host = Hasty()
    journal, connection = Ageing(host, (1.7, 1.6)), Connection(OK)
    async with pipeline_to(connection, book=journal, host=host) as pipeline:
        context = admitted()
        assert await pipeline.deliver(ORDER, b"{}", context) is OK
    first, second = journal.stamps
    assert second - first == pytest.approx(1700, abs=1)
    assert (context.timestamp_ms, context.attempts, connection.ends) == (second, 1, ["POST"])


async def test_a_journal_in_which_every_timestamp_gets_too_old() -> None:
    host = Hasty()
    connection = Connection(OK)
    async with pipeline_to(connection, book=Ageing(host, (1.7, 1.7)), host=host) as pipeline:
        context = admitted()
        with pytest.raises(Refusal, match=r"halted: The journal took 1\.7 s to record the order"):
            await pipeline.deliver(ORDER, b"{}", context)
    assert (context.attempts, connection.ends) == (0, ["released"])


async def test_an_order_that_was_recorded_when_a_halt_came_is_not_sent() -> None:
    journal, connection = Meanwhile(), Connection(OK)
    halting = Halting(InFlightRequests(), None, Hasty())
    async with pipeline_to(connection, book=journal, halting=halting) as pipeline:

        async def halt() -> None:
            await halting.halt(Scope())

        journal.happens, context = halt, admitted()
        with pytest.raises(Refusal, match="halted: Orders are halted"):
            await pipeline.deliver(ORDER, b"{}", context)
    assert (context.attempts, connection.ends) == (0, ["released"])


async def test_an_order_that_was_recorded_when_its_key_was_disabled_is_not_sent() -> None:
    journal, connection = Meanwhile(), Connection(OK)
    async with pipeline_to(connection, book=journal) as pipeline:
        breaker = pipeline.backend.exchange.live_keys["main"].breaker

        async def disable() -> None:
            breaker.conclude(judged(401, b'{"detail":"Invalid API key"}'), 0.0)

        journal.happens, context = disable, admitted()
        context.breaker = breaker
        with pytest.raises(Refusal, match="key_disabled: The key main is disabled"):
            await pipeline.deliver(ORDER, b"{}", context)
    assert (context.attempts, connection.ends) == (0, ["released"])


async def test_a_journal_that_takes_longer_than_the_request_may() -> None:
    one = ticket("POST /order", (b"X-Gateway-Deadline-Ms", b"5"))
    connection = Connection(OK)
    async with pipeline_to(connection, book=Slow()) as pipeline:
        with pytest.raises(
            Refusal, match="deadline_exceeded: The journal could not record the order in time"
        ):
            await pipeline.deliver(one, b"{}", admitted(one))
    assert connection.ends == ["released"], "it serves the next"


async def test_what_cannot_be_learned_from_a_reply_does_not_lose_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(KeptClock, "taught_by", fail)
    with capture_logs() as logs:
        async with pipeline_to(Connection(OK)) as pipeline:
            assert await pipeline.deliver(ORDER, b"{}", admitted()) is OK
    assert [line["event"] for line in logs] == ["reply_not_learned_from"]


OPEN_READ = ticket("GET /symbols/list")
OPEN_READ = dataclasses.replace(OPEN_READ, route=dataclasses.replace(OPEN_READ.route, auth=Auth.OPEN))


@pytest.mark.parametrize("one", [ORDER, OPEN_READ], ids=["with a key", "without"])
async def test_after_a_refusal_for_the_limit_that_cannot_be_learned_from_nothing_goes_for_a_while(
    monkeypatch: pytest.MonkeyPatch, one: Ticket
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(KeptClock, "taught_by", fail)
    context = admitted(one)
    with capture_logs():
        async with pipeline_to(Connection(answer(429))) as pipeline:
            with pytest.raises(Refusal, match="rate_limited"):
                await pipeline.deliver(one, b"{}", context)
    assert context.attempts == 1


async def test_for_a_bot_that_is_gone_nothing_is_sent_again() -> None:
    """The rest of the refusal is not read either."""
    ends: list[str] = []
    limited = answer(429, b"{}", remainder=remainder(ends))
    async with pipeline_to(Connection(limited)) as pipeline:
        context = admitted()
        context.has_hung_up = True
        with pytest.raises(asyncio.CancelledError):
            await pipeline.deliver(ORDER, b"{}", context)
    assert (ends, context.attempts, context.conclusion) == (["closed"], 1, "refused")
