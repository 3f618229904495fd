"""Pacing on real sockets: the gateway before the sandbox's limiters, and before a hostile upstream.

What is asserted are counts and orders of arrival, by the journal of whoever received.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from rig.bot import met, request
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
from rig.key_reads import hold
from rig.station import ENVIRON, KEY, Station, make_config, running_station
from rig.upstream import Act, Upstream, say
from rig.wire import PATIENCE_S, reply
from sealgate.limits import scheduler as scheduler_module
from sealgate.machine.system import System
from sealgate.sandbox.server import Sandbox, running_sandbox
from sealgate.sandbox.settings import LimitKind, SandboxSettings
from sealgate.server.gateway import Gateway, running_gateway

READ = request()
TRADE = request(b"POST", b"/v1/trade/order", b"Content-Type: application/json", body=ORDER)


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


# Saturation ------------------------------------------------------------------------------------------------

LEARNED = 30  # accepted before anything is counted
COUNTED = 40
IN_FLIGHT = 24  # of each bot: some still wait after a late burst of 20, so that each can have its share
LIMITERS: dict[LimitKind, dict[str, Any]] = {  # the others in virtual time: tests/simulations
    "fixed": {},
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
        def info(self, event: str, **_others: object) -> None:
            assert event == "pool_closed"

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
    async with three_bots(upstream) as station, asyncio.TaskGroup() as group:
        let_go = hold(station)
        for message in [order_by("two")] * 8 + [read_by("two")] * 8:
            group.create_task(station.ask(message))
        await station.until(lambda: station.waiting() == 16)
        cancel = group.create_task(station.ask(by("one", b"DELETE", b"/v1/trade/order/1")))
        await station.until(lambda: station.waiting() == 17)
        let_go()
        assert met(await cancel) == (200, "done", None, 1)
    assert upstream.received[0].target == b"/v1/trade/order/1"


BOTS = {
    "one": {"token": "env:TOKEN_ONE", "key": "main"},
    "two": {"token": "env:TOKEN_TWO", "key": "main"},
    "three": {"token": "env:TOKEN_THREE", "key": "other"},
}
KEYS = {"main": KEY, "other": {**KEY, "api_key": "ak-public-2"}}


def limited(retry_after: str) -> Act:
    field = f"Retry-After: {retry_after}".encode()
    return say(reply(b"429 Too Many Requests", b'{"detail":"Rate limit exceeded"}', field))


def hurried(message: bytes, deadline_ms: int) -> bytes:
    return message.replace(b"Host:", b"X-Gateway-Deadline-Ms: %d\r\nHost:" % deadline_ms, 1)


@asynccontextmanager
async def three_bots(upstream: Upstream) -> AsyncIterator[Station]:
    async with running_station(upstream, {**ENVIRON, **tokens()}, keys=KEYS, bots=BOTS) as station:
        yield station


async def test_a_request_that_waited_and_expired_says_how_long_it_waited(station: Station) -> None:
    let_go = hold(station)
    expired = await station.ask(hurried(READ, 150))
    let_go()
    assert met(expired) == (504, "not_sent", "deadline_exceeded", 0)
    assert 50 <= int(expired.text("X-Gateway-Queue-Ms") or 0) <= 20_000


async def test_a_429_on_the_time_does_not_pause_the_orders(upstream: Upstream) -> None:
    async with running_station(upstream) as station:
        upstream.time = limited("3600")
        told = await station.ask(request(target=b"/v1/trade/time"))
        assert met(told) == (429, "refused", "rate_limited", 1)
        for message in (TRADE, READ, request(b"DELETE", b"/v1/trade/order/1")):
            assert met(await station.ask(message)) == (200, "done", None, 1)
        assert met(await station.ask(request(target=b"/v1/trade/time")))[2:] == ("rate_limited", 0)
