"""The bots' listener: which connections there are, and how they end."""

import asyncio

from sealgate.errors import Refusal
from sealgate.gateway.http.server import ServerConnection, Service

_TOO_MANY = Refusal("queue_full", "The gateway has listen.max_connections open already.")
_TOO_FEW_FILES = Refusal(
    "queue_full", "The gateway has as many connections as its limit of open files (ulimit -n) allows."
)


class BotServer:
    """Makes the protocol of each new connection, and refuses those beyond `max_connections` or `room`.

    `room` is how many connections the system's limit of open files allows. `handshakes` counts connections
    that are not among `connections` yet.
    """

    def __init__(self, service: Service, max_connections: int, room: int) -> None:
        self._service = service
        self._most = min(max_connections, room)
        self._too_many = _TOO_FEW_FILES if room < max_connections else _TOO_MANY
        self.connections: set[ServerConnection] = set()
        self.handshakes = 0

    def __call__(self) -> ServerConnection:
        """Return the protocol of a new connection."""
        return ServerConnection(self._service, self.connections, self._refusal)

    def _refusal(self) -> Refusal | None:
        return self._too_many if self.is_full else None

    def admit(self) -> ServerConnection:
        """Return the protocol of a connection that was counted before."""
        return ServerConnection(self._service, self.connections, lambda: None)

    @property
    def is_full(self) -> bool:
        """Whether there is no room for one more connection."""
        return len(self.connections) + self.handshakes >= self._most

    async def wait_until_empty(self, at_most_s: float) -> None:
        """Return when all bots have left, or the time is over."""
        tasks = [connection.task for connection in self.connections if connection.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=at_most_s)

    async def close(self, within_s: float) -> None:
        """End all connections: the idle at once, the others after their reply or when the time is over."""
        if ends := [connection.leave() for connection in self.connections]:
            # Waiting for their tasks is not enough: a bot may read a reply long after it was written.
            await asyncio.wait(ends, timeout=within_s)
        tasks = [connection.task for connection in self.connections if connection.task is not None]
        for task in tasks:
            task.cancel()
        for connection in set(self.connections):
            connection.reset()
