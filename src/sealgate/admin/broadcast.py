"""One sender, many viewers. Each has a bounded queue; who does not read loses the oldest."""

import asyncio
import contextlib
from collections.abc import Iterator

_MOST_VIEWERS = 50
_QUEUE = 4

Event = tuple[str, str]  # name and data


class TooManyViewersError(Exception):
    """No more are let in."""


class Broadcast:
    """Hands every event to every viewer. `None` in a queue is the end."""

    def __init__(self) -> None:
        self._queues: set[asyncio.Queue[Event | None]] = set()

    @property
    def viewers(self) -> int:
        """How many look on."""
        return len(self._queues)

    @contextlib.contextmanager
    def viewing(self) -> Iterator[asyncio.Queue[Event | None]]:
        """Yield a viewer's queue as long as the block lasts. Raises TooManyViewersError."""
        if len(self._queues) >= _MOST_VIEWERS:
            raise TooManyViewersError
        queue: asyncio.Queue[Event | None] = asyncio.Queue(_QUEUE)
        self._queues.add(queue)
        try:
            yield queue
        finally:
            self._queues.discard(queue)

    def publish(self, event: Event | None) -> None:
        """Give it to everybody, waiting for nobody."""
        for queue in self._queues:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(event)
