"""Bots that hang up in one turn of the loop, while a slot is due: who stays is served."""

import asyncio

import pytest

from rig.pacing import settings_of
from rig.wire import let_pass
from sealgate.limits.claims import Claim
from sealgate.limits.pacer import Pacer
from sealgate.limits.quotas import Quota
from sealgate.limits.scheduler import RateScheduler
from sealgate.machine.system import System
from sealgate.venues.routes import Lane


class HandHost(System):
    time = 100.0

    def now(self) -> float:
        return self.time


def claim(name: str) -> Claim:
    return Claim(name, "bot", Lane.ORDER, give_up_at=1000.0)


async def test_those_who_hang_up_together_do_not_block_the_rest() -> None:
    system = HandHost()
    known = (Quota(1, 1.0),)
    scheduler = RateScheduler(Pacer(settings_of(*known), lambda: 0.0), system)
    assert scheduler.pass_at_once(claim("first"), system.now()) is not None
    gone, also_gone, stays = (
        asyncio.ensure_future(scheduler.pass_through(claim(name))) for name in ("gone", "also", "stays")
    )
    await let_pass(0)
    system.time += 10.0
    gone.cancel()
    also_gone.cancel()
    for task in (gone, also_gone):
        with pytest.raises(asyncio.CancelledError):
            await task
    system.time += 10.0  # the slot of who hung up is gone, the next one is not
    async with asyncio.timeout(30):
        await stays
