"""Room among the connections to the upstream, by lane.

Slow reads leave a place for orders, and neither takes one from cancels: reads get three quarters of `size`,
reads and orders together all of it, and cancels some more. Orders that hang, at the exchange or because the
journal's disk does not answer, leave an eighth for reads.
"""

import asyncio
from collections import Counter, deque

from sealgate.core.routes import Lane

_CANCEL, _ORDER, _READ = Lane  # names that cost no look-up


class ConnectionSlots:
    """The places. `enter` one, and `leave` it with the same lane."""

    def __init__(self, size: int) -> None:
        eighth = max(1, size // 8)
        self._reads, self._orders = max(1, size * 3 // 4), max(1, size - eighth)
        self._size, self.all = size, size + eighth
        self._taken = dict.fromkeys(Lane, 0)
        self._queues: dict[Lane, deque[asyncio.Future[None]]] = {
            lane: deque() for lane in (_CANCEL, _ORDER, _READ)
        }
        self.waiting: Counter[Lane] = Counter()
        self.waits = 0  # in all lanes together

    @property
    def taken(self) -> int:
        """How many places are in use."""
        return sum(self._taken.values())

    def enter_at_once(self, lane: Lane) -> bool:
        """Take a place if one is free and nobody waits for it."""
        if self._queues[lane] or not self._has_place(lane):
            return False
        self._taken[lane] += 1
        return True

    async def enter(self, lane: Lane, timeout_s: float) -> None:
        """Take a place. Raises TimeoutError where none is free in time."""
        if self.enter_at_once(lane):
            return
        place = asyncio.get_running_loop().create_future()
        self._queues[lane].append(place)
        self.waiting[lane] += 1
        self.waits += 1
        try:
            async with asyncio.timeout(timeout_s):
                await place
        except BaseException:
            if place.done() and not place.cancelled():  # it was given in the same turn of the loop
                self.leave(lane)
            elif place in self._queues[lane]:
                self._queues[lane].remove(place)
            raise
        finally:
            self.waiting[lane] -= 1
            self.waits -= 1

    def leave(self, lane: Lane) -> None:
        """Give a place back, and to the first who waits for it."""
        self._taken[lane] -= 1
        if not self.waits:
            return
        for waiting, queue in self._queues.items():
            while queue and self._has_place(waiting):
                place = queue.popleft()
                if not place.done():  # else whoever waited has just gone
                    self._taken[waiting] += 1
                    place.set_result(None)

    def _has_place(self, lane: Lane) -> bool:
        cancels, orders, reads = self._taken.values()
        if lane is _CANCEL:
            return reads + orders + cancels < self.all
        is_full = reads + orders >= self._size or reads + orders + cancels >= self.all
        return not is_full and (orders < self._orders if lane is _ORDER else reads < self._reads)
