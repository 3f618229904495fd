"""A key that signs slowly: others go on meanwhile, and what was said meanwhile holds."""

import asyncio
import dataclasses
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rig.bot import request
from rig.compiled import needs_sources
from rig.station import KEY, running_station
from rig.upstream import Upstream
from rig.wire import PATIENCE_S
from sealgate.keys import signer as signers
from sealgate.machine.system import System
from sealgate.orders.halts import Scope
from sealgate.venues.key_kinds import Signer
from sealgate.venues.scheme import Scheme

pytestmark = needs_sources

ENVIRON = {"FAST": "fast", "SLOW": "slow", "FAST_TOKEN": "fast-token-1", "SLOW_TOKEN": "slow-token-1"}
SETTINGS: dict[str, Any] = {
    "keys": {
        "main": {**KEY, "secret": "env:FAST"},
        "slow": {**KEY, "api_key": "ak-slow", "secret": "env:SLOW"},
    },
    "bots": {
        "fast": {"token": "env:FAST_TOKEN", "keys": ["main"]},
        "slow": {"token": "env:SLOW_TOKEN", "keys": ["slow"]},
    },
}


class Brake:
    """Keys of the secret "slow" take as long to sign as one wants."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()

    def signer(self, scheme: Scheme, secret: bytearray) -> Signer:
        made = _hmac_signer(scheme, secret)
        if secret != b"slow":
            return made

        def sign(message: bytes) -> bytes:
            self.begun.set()
            assert self.may_end.wait(PATIENCE_S)
            return made.sign(message)

        return dataclasses.replace(made, sign=sign, is_slow=True)


_hmac_signer = signers.hmac_signer


@pytest.fixture
def brake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Brake]:
    brake = Brake()
    monkeypatch.setattr(signers, "hmac_signer", brake.signer)
    yield brake
    brake.may_end.set()


def order(bot: str) -> bytes:
    token = f"Authorization: Bearer {ENVIRON[f'{bot.upper()}_TOKEN']}".encode()
    return request(b"POST", b"/v1/trade/order", token, body=b"{}")


async def test_others_are_served_while_a_key_signs(brake: Brake, upstream: Upstream) -> None:
    async with (
        running_station(upstream, ENVIRON, **SETTINGS) as station,
        station.bot() as slow,
        station.bot() as fast,
    ):
        waiting = asyncio.create_task(slow.ask(order("slow")))
        assert await asyncio.to_thread(brake.begun.wait, PATIENCE_S)
        assert (await fast.ask(order("fast"))).status == 200
        assert not waiting.done()
        brake.may_end.set()
        assert (await waiting).status == 200
        assert [one.fields for one in upstream.received if b"ak-slow" in one.raw]


async def test_an_order_that_is_halted_while_it_is_signed_is_not_sent(
    brake: Brake, upstream: Upstream
) -> None:
    async with running_station(upstream, ENVIRON, **SETTINGS) as station, station.bot() as slow:
        waiting = asyncio.create_task(slow.ask(order("slow")))
        assert await asyncio.to_thread(brake.begun.wait, PATIENCE_S)
        await station.gateway.halt(Scope())
        brake.may_end.set()
        reply = await waiting
        assert (reply.status, reply.reason) == (503, "halted")
        assert not [one for one in upstream.received if b"/order" in one.target]


async def test_an_order_whose_deadline_passes_while_it_is_signed_is_not_sent(
    brake: Brake, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_station(upstream, ENVIRON, **SETTINGS) as station, station.bot() as slow:
        raw = order("slow").replace(b"Authorization", b"X-Gateway-Deadline-Ms: 5000\r\nAuthorization", 1)
        waiting = asyncio.create_task(slow.ask(raw))
        assert await asyncio.to_thread(brake.begun.wait, PATIENCE_S)
        before = System.now
        monkeypatch.setattr(System, "now", lambda *_: before() + 6)
        brake.may_end.set()
        reply = await waiting
        assert (reply.status, reply.reason) == (504, "deadline_exceeded")
        assert not [one for one in upstream.received if b"/order" in one.target]
