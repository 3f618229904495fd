"""A deadline that is moved for every request at no cost.

Setting and cancelling a timer of the loop for each request would cost more than reading it. This one is left
running when the deadline moves away, looks at the deadline when it goes off, and goes back to sleep.
"""

import asyncio
import math
from collections.abc import Callable


class Alarm:
    """Calls `ring` once `at` has passed. Times are the loop's."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], object]) -> None:
        self._loop = loop
        self._ring = ring
        self._at = math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf

    def set(self, at: float) -> None:
        """Move the deadline; infinity takes it away."""
        self._at = at
        if at < self._timer_at:
            self._sleep_until(at)

    def stop(self) -> None:
        """Ring no more."""
        self._at = math.inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._timer_at = None, math.inf

    def _sleep_until(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_at(at, self._wake)

    def _wake(self) -> None:
        self._timer, self._timer_at = None, math.inf
        if self._at == math.inf:
            return
        if self._loop.time() < self._at:
            self._sleep_until(self._at)
            return
        self._at = math.inf
        self._ring()
