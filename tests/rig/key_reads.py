"""The care of a key in no real time, and a key whose requests wait."""

import asyncio
import math
from collections.abc import Callable
from functools import partial

import pytest

from rig.backends import only, pipeline_of, the_exchange
from rig.station import Station
from sealgate.limits.claims import Claim, Fate, LimitReply
from sealgate.machine.system import System
from sealgate.request.key_care import KeyCare
from sealgate.venues.routes import Lane


class Leaping(System):
    """It sleeps no time at all, so often, and its clock goes on by that much."""

    def __init__(self, sleeps: int) -> None:
        super().__init__()
        self._left = sleeps
        self._slept_s = 0.0

    def now(self) -> float:
        return System.now() + self._slept_s

    async def sleep(self, seconds: float) -> None:
        if self._left == 0:
            raise asyncio.CancelledError
        self._left -= 1
        self._slept_s += seconds


async def look_after(station: Station, seconds: int, alias: str = "main") -> None:
    """Look after a key for so long, as the gateway does itself in real time."""
    gateway = station.gateway
    gateway.services.background.follow(gateway.services.upkeep(gateway.generation))  # its own care ends
    care = KeyCare(
        pipeline_of(gateway),
        (the_exchange(gateway.config).name, alias),
        gateway.services.untried,
        Leaping(seconds),
    )
    with pytest.raises(asyncio.CancelledError):
        await care.run()


def hold(station: Station, *keys: str) -> Callable[[], None]:
    """Hold back all that comes for these keys, "" for requests that need none; return what lets them go on.

    As after a pause: one goes alone, and the others wait until it is answered.
    """
    ends = []
    for key in keys or ("main",):
        exchange = only(station.gateway.generation).exchange
        line = exchange.live_keys[key] if key else exchange.open_line
        scheduler, pools = line.scheduler, line.membership.always
        for reply in (LimitReply(Fate.LIMITED, 0.0, 0.0), LimitReply(Fate.ACCEPTED)):
            now = max(System.now(), scheduler.paused_until(pools))
            claim = Claim(f"earlier {key}", "earlier", Lane.READ, math.inf, pools=pools)
            permit = scheduler.pass_at_once(claim, now)
            assert permit is not None
            permit.goes(now)
            if reply.fate is Fate.LIMITED:
                permit.answered(reply, now)
            else:
                ends.append(partial(permit.answered, reply, now))

    def let_go() -> None:
        for end in ends:
            end()

    return let_go
