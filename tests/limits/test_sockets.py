"""Pacing on real sockets: the gateway before the sandbox's limiters, and before a hostile upstream.

What is asserted are counts and orders of arrival, by the journal of whoever received.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import formatdate
from itertools import cycle
from typing import Any

import pytest

from rig.bot import Reply, bot_at, met, request
from rig.herd import (
    ORDER,
    WEIGHTS,
    Address,
    Entry,
    Herd,
    bots_table,
    by,
    journal_at,
    order_by,
    put,
    read_by,
    running_herd,
    shares,
    tokens,
)
from rig.station import ENVIRON, KEY, Station, make_config, running_station
from rig.upstream import Act, Received, Upstream, hold_until, say
from rig.wire import OK, PATIENCE_S, let_pass, reply
from sealgate.limits import scheduler as scheduler_module
from sealgate.machine.system import System
from sealgate.sandbox.server import Sandbox, running_sandbox
from sealgate.sandbox.settings import LimitKind, SandboxSettings
from sealgate.server.gateway import Gateway, running_gateway

READ = request()
TRADE = request(b"POST", b"/v1/trade/order", b"Content-Type: application/json", body=ORDER)


@pytest.fixture
def _one_time_per_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the time stand still within a turn of the loop: X-Gateway-Queue-Ms 0 then means "did not wait"."""

    class SteppingHost(System):
        _now: float | None = None

        def now(self) -> float:
            if self._now is None:
                self._now = super().now()
                asyncio.get_running_loop().call_soon(self._forget)
            return self._now

        def _forget(self) -> None:
            self._now = None

    monkeypatch.setattr("sealgate.server.gateway.System", SteppingHost)


@dataclass
class Scene:
    """A gateway before a sandbox."""

    gateway: Gateway
    sandbox: Sandbox

    @property
    def bots_address(self) -> Address:
        return self.gateway.address.host, self.gateway.address.port

    @property
    def sandbox_address(self) -> Address:
        system, _, port = self.sandbox.base_url.removeprefix("http://").rpartition(":")
        return system, int(port)

    async def journal(self) -> list[Entry]:
        return await journal_at(self.sandbox_address)


@asynccontextmanager
async def before_sandbox(settings: SandboxSettings, **limits: Any) -> AsyncIterator[Scene]:
    async with running_sandbox(settings) as sandbox:
        key = {"api_key": sandbox.api_key, "secret": "env:SANDBOX_SECRET"}
        config = make_config(sandbox.base_url, keys={"main": key}, bots=bots_table(), limits=limits)
        environ = {**tokens(), "SANDBOX_SECRET": sandbox.api_secret}
        async with running_gateway(config, (), environ) as gateway:
            await gateway.wait_until_ready(PATIENCE_S)
            yield Scene(gateway, sandbox)


async def ask_at(address: Address, message: bytes) -> Reply:
    async with bot_at(*address) as bot:
        return await bot.ask(message)


# Saturation ------------------------------------------------------------------------------------------------

LEARNED = 30  # accepted before anything is counted
COUNTED = 40
IN_FLIGHT = 24  # of each bot: some still wait after a late burst of 20, so that each can have its share
LIMITERS: dict[LimitKind, dict[str, Any]] = {  # the others in virtual time: tests/simulations
    "fixed": {},
    "gcra": {"limit_burst": 5},
    "concurrency": {"limit_requests": 4, "limit_window_s": 0.1},
}
SLOW = {"faults": [{"kind": "delay", "delay_s": 0.02}]}  # what is under way is under way for a while


@dataclass
class Pauses:
    """What 429s stated, as (heard, over) in epoch seconds."""

    stated: list[tuple[float, float]]

    def strike(self, entry: Entry) -> bool:
        """Ask whether a request was stamped after such a 429 was heard, and received before its end."""
        return any(
            entry.stamped_ms / 1000 > heard + CLOCK_ERROR_S
            and entry.received_ms / 1000 + CLOCK_ERROR_S < over
            for heard, over in self.stated
        )


CLOCK_ERROR_S = 0.01  # between the stamps, which are by the gateway's estimate, and this machine's clock


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    """Listen to what the gateway hears: it is to log each pause as a long one."""
    heard = Pauses([])
    system = System()

    class Log:
        def warning(self, _: str, *, stated_s: float, **_others: object) -> None:
            heard.stated.append((now := system.wall(), now + stated_s))

    monkeypatch.setattr(scheduler_module, "_REMARKABLE_S", 0.0)
    monkeypatch.setattr(scheduler_module, "log", Log())
    return heard


def accepted(entries: list[Entry]) -> int:
    return sum(entry.is_accepted for entry in entries)


async def journal_with(count: int, scene: Scene, herd: Herd) -> list[Entry]:
    """Wait until that many were accepted; the herd itself counts a read that shared a reply as well."""
    while accepted(journal := await scene.journal()) < count:
        await herd.until_accepted(herd.accepted + 1)
    return journal


@pytest.mark.parametrize(("kind", "change"), LIMITERS.items(), ids=LIMITERS)
async def test_bots_of_unequal_weight_share_each_kind_of_limit(
    kind: LimitKind, change: dict[str, Any], pauses: Pauses
) -> None:
    settings = {"limit_kind": kind, "limit_requests": 20, "limit_window_s": 0.5, "retry_after": "exact"}
    async with before_sandbox(SandboxSettings(**{**settings, **change})) as scene:
        if kind == "concurrency":
            await put(scene.sandbox_address, b"/_sandbox/faults", SLOW)
        async with running_herd(scene.bots_address, IN_FLIGHT) as herd:
            learned = await journal_with(LEARNED, scene, herd)
            received = await journal_with(accepted(learned) + COUNTED, scene, herd)
    later = received[len(learned) :]
    assert shares(later) == pytest.approx(dict.fromkeys(WEIGHTS, 1.0), rel=0.25)
    # A burst of 20 that a busy machine sends late; unlearned, each 20 that pass cost more than 40.
    assert sum(entry.is_refused for entry in later) <= COUNTED / 2
    assert pauses.stated
    assert [entry for entry in received if pauses.strike(entry)] == []


# Order -----------------------------------------------------------------------------------------------------


async def test_a_cancel_overtakes_orders_and_reads(upstream: Upstream) -> None:
    """All wait behind the one resend after a pause, which is still unanswered."""
    go = asyncio.Event()
    upstream.answers.extend([limited("0.05"), hold_until(go, say(OK))])
    async with three_bots(upstream) as station, asyncio.TaskGroup() as group:
        scheduler = station.gateway.generation.exchange.live_keys["main"].scheduler
        group.create_task(station.ask(order_by("one")))
        await upstream.until_received(2)
        for message in [order_by("two")] * 8 + [read_by("two")] * 8:
            group.create_task(station.ask(message))
        await station.until(lambda: sum(scheduler.status().waiting.values()) == 16)
        cancel = group.create_task(station.ask(by("one", b"DELETE", b"/v1/trade/order/1")))
        await station.until(lambda: sum(scheduler.status().waiting.values()) == 17)
        go.set()
        assert met(await cancel) == (200, "done", None, 1)
    assert upstream.received[2].target == b"/v1/trade/order/1"


@pytest.mark.usefixtures("_one_time_per_turn")
@pytest.mark.parametrize("kind", ["fixed", "token_bucket"])
async def test_demand_under_a_known_limit_never_waits(kind: LimitKind) -> None:
    window_s, most = 0.2, 20
    settings = SandboxSettings(limit_kind=kind, limit_requests=most, limit_window_s=window_s)
    async with before_sandbox(settings, known=[f"{most}/{window_s}s"]) as scene:
        for size in (most, most // 2, most):
            makers = (order_by, read_by) * (size // 2)
            messages = [make(name) for make, name in zip(makers, cycle(WEIGHTS), strict=False)]
            replies = await asyncio.gather(*(ask_at(scene.bots_address, message) for message in messages))
            assert [reply.status for reply in replies] == [200] * size
            assert {reply.text("X-Gateway-Queue-Ms") for reply in replies} == {"0"}
            await let_pass(1.5 * window_s)  # a burst that comes sooner would not be under the limit
        assert [entry for entry in await scene.journal() if entry.is_refused] == []


# Retry-After that no exchange should send ------------------------------------------------------------------

BOTS = {
    "one": {"token": "env:TOKEN_ONE", "key": "main"},
    "two": {"token": "env:TOKEN_TWO", "key": "main"},
    "three": {"token": "env:TOKEN_THREE", "key": "other"},
}
KEYS = {"main": KEY, "other": {**KEY, "api_key": "ak-public-2"}}
A_YEAR_S = 365 * 86_400
LEAST_BACKOFF_S = 0.25  # half of the first one is certain, the other half is jitter

UNUSABLE = {  # what is a wait is decided in tests/limits/test_limit_reply.py
    "negative": "-5",
    "ten years": "315360000",
    "a date in the past": "Thu, 01 Jan 1998 00:00:00 GMT",
}


def limited(retry_after: str) -> Act:
    field = f"Retry-After: {retry_after}".encode()
    return say(reply(b"429 Too Many Requests", b'{"detail":"Rate limit exceeded"}', field))


def hurried(message: bytes, deadline_ms: int) -> bytes:
    return message.replace(b"Host:", b"X-Gateway-Deadline-Ms: %d\r\nHost:" % deadline_ms, 1)


def of_key(upstream: Upstream, api_key: bytes) -> list[Received]:
    return [item for item in upstream.received if item.head.value(b"X-SERVICE-APIKEY") == api_key]


@asynccontextmanager
async def three_bots(upstream: Upstream) -> AsyncIterator[Station]:
    async with running_station(upstream, {**ENVIRON, **tokens()}, keys=KEYS, bots=BOTS) as station:
        yield station


@pytest.mark.parametrize("retry_after", UNUSABLE.values(), ids=UNUSABLE)
async def test_an_unusable_retry_after_is_a_backoff(upstream: Upstream, retry_after: str) -> None:
    upstream.answers.append(limited(retry_after))
    async with three_bots(upstream) as station:
        first = asyncio.ensure_future(station.ask(order_by("one")))
        scheduler = station.gateway.generation.exchange.live_keys["main"].scheduler
        # On a busy machine the pause can be over before anybody looks.
        await station.until(lambda: scheduler.status().pause_s > 0 or len(upstream.received) > 1)
        patient, elsewhere = (
            asyncio.ensure_future(station.ask(message)) for message in (read_by("two"), order_by("three"))
        )
        assert met(await elsewhere) == (200, "done", None, 1)
        assert met(await first) == (200, "done", None, 2)
        assert met(await patient) == (200, "done", None, 1)
    refused, *later = of_key(upstream, b"ak-public-1")
    assert len(later) == 2
    assert all(item.at >= refused.at + LEAST_BACKOFF_S for item in later)


async def test_a_pause_of_a_year_is_told_to_those_who_wait_and_holds(upstream: Upstream) -> None:
    upstream.answers.append(limited(formatdate(System().wall() + A_YEAR_S, usegmt=True)))
    async with three_bots(upstream) as station:
        told = await station.ask(order_by("one"))
        assert met(told) == (429, "refused", "rate_limited", 1)
        for message in (
            read_by("two"),
            hurried(order_by("two"), 50),
            by("one", b"DELETE", b"/v1/trade/order/1"),
        ):
            answer = await station.ask(message)
            assert met(answer) == (429, "not_sent", "rate_limited", 0)
            assert int(answer.text("Retry-After") or 0) >= A_YEAR_S - 60
        assert met(await station.ask(order_by("three"))) == (200, "done", None, 1)
    assert len(of_key(upstream, b"ak-public-1")) == 1


async def test_a_pause_of_a_year_reaches_those_in_line(upstream: Upstream) -> None:
    """They wait out a short pause; the first after it brings the long one."""
    go = asyncio.Event()
    upstream.answers.extend([limited("0.05"), hold_until(go, limited(str(A_YEAR_S)))])
    async with running_station(upstream) as station:
        scheduler = station.gateway.generation.exchange.live_keys["main"].scheduler
        first = asyncio.ensure_future(station.ask(TRADE))
        await upstream.until_received(2)
        waiting = [asyncio.ensure_future(station.ask(message)) for message in (TRADE, READ)]
        await station.until(lambda: sum(scheduler.status().waiting.values()) == 2)
        go.set()
        assert met(await first) == (429, "refused", "rate_limited", 2)
        for answer in await asyncio.gather(*waiting):
            assert met(answer) == (429, "not_sent", "rate_limited", 0)
    assert len(upstream.received) == 2


# Refusals --------------------------------------------------------------------------------------------------


async def test_a_line_that_is_full(upstream: Upstream) -> None:
    """The one resend after the pause is still unanswered, and until then nobody else goes."""
    go = asyncio.Event()
    upstream.answers.extend([limited("0.05"), hold_until(go, say(OK))])
    async with running_station(upstream, limits={"queue": 2}) as station:
        scheduler = station.gateway.generation.exchange.live_keys["main"].scheduler
        first = asyncio.ensure_future(station.ask(TRADE))
        await upstream.until_received(2)
        second = [asyncio.ensure_future(station.ask(message)) for message in (TRADE, READ)]
        await station.until(lambda: sum(scheduler.status().waiting.values()) == 2)
        for message in (TRADE, READ, request(b"DELETE", b"/v1/trade/order/1")):
            assert met(await station.ask(message)) == (503, "not_sent", "queue_full", 0)
        go.set()
        assert met(await first) == (200, "done", None, 2)
        assert [met(await waited) for waited in second] == [(200, "done", None, 1)] * 2
        assert met(await station.ask(READ)) == (200, "done", None, 1)
    assert len(upstream.received) == 5


@pytest.mark.usefixtures("_one_time_per_turn")
async def test_a_line_longer_than_the_deadline_is_told_at_once(upstream: Upstream) -> None:
    async with running_station(upstream, limits={"known": ["4/1s"]}) as station:
        scheduler = station.gateway.generation.exchange.live_keys["main"].scheduler
        waiting = [asyncio.ensure_future(station.ask(TRADE)) for _ in range(12)]
        await station.until(lambda: sum(scheduler.status().waiting.values()) == 8)
        late = request(b"POST", b"/v1/trade/spot/order", b"X-Gateway-Deadline-Ms: 500", body=ORDER)
        answer = await station.ask(late)
        assert met(answer) == (504, "not_sent", "deadline_exceeded", 0)
        assert answer.text("X-Gateway-Queue-Ms") == "0"
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
    assert upstream.receipts(b"/v1/trade/spot/order") == 0


async def test_a_request_that_waited_and_expired_says_how_long_it_waited(upstream: Upstream) -> None:
    """The one resend after the pause is still unanswered, and until then nobody else goes."""
    go = asyncio.Event()
    upstream.answers.extend([limited("0.05"), hold_until(go, say(OK))])
    async with running_station(upstream) as station:
        first = asyncio.ensure_future(station.ask(TRADE))
        await upstream.until_received(2)
        expired = await station.ask(hurried(READ, 150))
        go.set()
        assert met(expired) == (504, "not_sent", "deadline_exceeded", 0)
        assert 50 <= int(expired.text("X-Gateway-Queue-Ms") or 0) <= 20_000
        assert met(await first) == (200, "done", None, 2)


async def test_a_pause_longer_than_the_deadline_is_told_with_what_is_left_of_it(upstream: Upstream) -> None:
    pause_s = 3.2
    upstream.answers.append(limited(str(pause_s)))
    async with running_station(upstream) as station:
        told = [await station.ask(hurried(message, 300)) for message in (TRADE, TRADE, READ)]
        left_s = upstream.received[0].at + pause_s - asyncio.get_running_loop().time()
        assert [met(answer)[1:] for answer in told] == [
            ("refused", "rate_limited", 1),
            ("not_sent", "rate_limited", 0),
            ("not_sent", "rate_limited", 0),
        ]
        assert all(left_s <= int(answer.text("Retry-After") or 0) <= 4 for answer in told)
    assert len(upstream.received) == 1


# Leaving ---------------------------------------------------------------------------------------------------


async def test_who_hangs_up_in_line_leaves_it(upstream: Upstream) -> None:
    """They stand behind the one resend after a pause, which is still unanswered."""
    go = asyncio.Event()
    upstream.answers.extend([limited("0.05"), hold_until(go, say(OK))])
    targets = [b"/v1/trade/user/0x%d/positions" % number for number in range(4)]
    async with running_station(upstream) as station:
        scheduler = station.gateway.generation.exchange.live_keys["main"].scheduler

        async def stand_in_line(target: bytes, length: int) -> asyncio.Task[Reply]:
            task = asyncio.create_task(station.ask(request(target=target)))
            await station.until(lambda: sum(scheduler.status().waiting.values()) == length)
            return task

        first = asyncio.create_task(station.ask(request(target=targets[0])))
        await upstream.until_received(2)
        second, gone, last = [
            await stand_in_line(target, length) for length, target in enumerate(targets[1:], start=1)
        ]
        gone.cancel()
        await station.until(lambda: sum(scheduler.status().waiting.values()) == 2)
        go.set()
        assert met(await first) == (200, "done", None, 2)
        for task in (second, last):
            assert met(await task) == (200, "done", None, 1)
    assert [item.target for item in upstream.received] == [targets[turn] for turn in (0, 0, 1, 3)]


@pytest.mark.usefixtures("_one_time_per_turn")
async def test_a_429_on_the_time_does_not_pause_the_orders(upstream: Upstream) -> None:
    async with running_station(upstream) as station:
        upstream.time = limited("3600")
        told = await station.ask(request(target=b"/v1/trade/time"))
        assert met(told) == (429, "refused", "rate_limited", 1)
        for message in (TRADE, READ, request(b"DELETE", b"/v1/trade/order/1")):
            answer = await station.ask(message)
            assert met(answer) == (200, "done", None, 1)
            assert answer.text("X-Gateway-Queue-Ms") == "0"
        assert met(await station.ask(request(target=b"/v1/trade/time")))[2:] == ("rate_limited", 0)
