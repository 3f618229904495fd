"""The bots' listener: which connections there are, and how they end."""

import asyncio
import contextlib

from sealgate.errors import Refusal
from sealgate.gateway.bot_connection import BotConnection, Service

_TOO_MANY = Refusal("queue_full", "The gateway has listen.max_connections open already.")


class BotServer:
    """Makes the protocol of each new connection; beyond `max_connections` it only says so."""

    def __init__(self, service: Service, max_connections: int) -> None:
        self._service = service
        self._max_connections = max_connections
        self.connections: set[BotConnection] = set()

    def __call__(self) -> BotConnection:
        """Return the protocol of a new connection."""
        is_full = len(self.connections) >= self._max_connections
        return BotConnection(self._service, self.connections, _TOO_MANY if is_full else None)

    async def wait_until_empty(self, at_most_s: float) -> None:
        """Return when all bots have left, or the time is over."""
        tasks = [connection.task for connection in self.connections if connection.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=at_most_s)

    async def close(self, within_s: float) -> None:
        """End all connections: the idle at once, the others after their reply or when the time is over."""
        tasks = [connection.task for connection in self.connections if connection.task is not None]
        for connection in set(self.connections):
            connection.leave()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            task.cancel()
        for connection in set(self.connections):
            connection.reset()
