"""Room in the connection pool: slow reads leave a place for orders, and neither takes one from cancels."""

import asyncio
from collections import Counter
from collections.abc import Callable

from sealgate.core.routes import Lane


class Room:
    """Places by lane. Reads and orders share `size`, of which reads get three quarters; cancels have more."""

    def __init__(self, size: int) -> None:
        self.size = size + max(1, size // 8)
        others = asyncio.Semaphore(size)
        reads = asyncio.Semaphore(max(1, size * 3 // 4))
        self._doors: dict[Lane, tuple[asyncio.Semaphore, ...]] = {
            Lane.CANCEL: (),
            Lane.ORDER: (others,),
            Lane.READ: (reads, others),
        }
        self.waiting: Counter[Lane] = Counter()

    async def enter(self, lane: Lane, timeout_s: float) -> Callable[[], None]:
        """Take a place, and return how to leave it. Raises TimeoutError where none is free in time."""
        held: list[asyncio.Semaphore] = []

        def leave() -> None:
            for door in held:
                door.release()

        try:
            for door in self._doors[lane]:
                if door.locked():
                    await self._wait_at(door, lane, timeout_s)
                else:
                    await door.acquire()  # at once: no task switch between the look and the step
                held.append(door)
        except BaseException:
            leave()
            raise
        return leave

    async def _wait_at(self, door: asyncio.Semaphore, lane: Lane, timeout_s: float) -> None:
        self.waiting[lane] += 1
        try:
            async with asyncio.timeout(timeout_s):
                await door.acquire()
        finally:
            self.waiting[lane] -= 1
