"""The care of a key in no real time, and a key that pauses."""

import asyncio
import math

import pytest

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
    care = KeyCare(gateway.pipeline, alias, gateway.services.untried, Leaping(seconds))
    with pytest.raises(asyncio.CancelledError):
        await care.run()


PAUSE_S = 1.0


def pause(station: Station, *keys: str) -> None:
    """Let the exchange refuse something of these keys for its limit, so that what comes now has to wait."""
    for key in keys or ("main",):
        permit = station.gateway.generation.exchange.live_keys[key].scheduler.pass_at_once(
            Claim("earlier", "earlier", Lane.READ, math.inf), System.now()
        )
        assert permit is not None
        permit.answered(LimitReply(Fate.LIMITED, PAUSE_S, 0.0), System.now())
