"""A deadline that moves with every request at no cost.

To set and cancel a timer of the loop for each request would cost more than to read the request. This alarm
leaves its timer running when the deadline moves away; the timer then finds the deadline in the future, and
sleeps on.
"""

import asyncio
import math
from collections.abc import Callable


class Alarm:
    """Calls `ring` once `at` has passed. Times are the loop's. Set `at` to infinity to silence it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], object]) -> None:
        self._loop = loop
        self._ring = ring
        self.at = math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf

    def set(self, at: float) -> None:
        """Move the deadline."""
        self.at = at
        if at < self._timer_at:
            self._sleep_until(at)

    def stop(self) -> None:
        """Silence the alarm for good, and cancel its timer."""
        self.at = math.inf
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
        if self.at == math.inf:
            return
        if self._loop.time() < self.at:
            self._sleep_until(self.at)
            return
        self.at = math.inf
        self._ring()
