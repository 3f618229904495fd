"""The one place that reads this machine's clocks and draws random numbers; everything else is handed `now`.

`now` is a clock that counts suspend and that nobody sets (CLOCK_BOOTTIME): a pause or a deadline holds over a
laptop's sleep, and a step of the wall clock changes nothing. Where the system has no such clock, the
monotonic one stands in.
"""

import asyncio
import itertools
import random
import secrets
import time
import uuid
from functools import partial

from sealgate.machine.clocks import SystemClocks

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class System:
    """Clocks, sleep and chance. Tests hand in one whose time they move."""

    def __init__(self) -> None:
        self._run = secrets.token_hex(4)
        self._count = itertools.count(1)

    # Seconds on a clock that counts suspend and is never set. It is read a dozen times for each request.
    now = staticmethod(partial(time.clock_gettime, _CLOCK))

    def clocks(self) -> SystemClocks:
        """Return a reading of all three clocks, to notice jumps by."""
        return SystemClocks(self.now(), time.clock_gettime(time.CLOCK_MONOTONIC), self.wall())

    def wall(self) -> float:
        """Return this host's idea of the epoch seconds, which may be wrong by hours."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Sleep on the loop's clock, which may not count suspend: callers look at `now` again."""
        await asyncio.sleep(seconds)

    def chance(self) -> float:
        """Return a random number in [0, 1), for jitter."""
        return random.random()  # noqa: S311 - jitter is no secret

    def unique(self) -> str:
        """Return a random UUID."""
        return str(uuid.uuid4())

    def request_id(self) -> str:
        """Return an id that no other request of this or another gateway has."""
        return f"{self._run}-{next(self._count):x}"


def random_token() -> str:
    """Return a new bot token: 256 bits, safe in URLs and headers."""
    return secrets.token_urlsafe(32)
