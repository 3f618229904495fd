"""Gives memory back to the system once a crowd has left.

glibc keeps what was freed between two blocks that are still in use. After a thousand connections with large
heads that is most of what these took, and where memory is bounded others then get no more.
"""

import asyncio
import ctypes
from collections.abc import Callable

from sealgate.gateway.platform.system import System

_LOOK_S = 1.0
_CROWD = 50  # connections: as many have to have left since the last time
_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's own; others do without


class Memory:
    """Looks at a number of connections from time to time."""

    def __init__(self, connections: Callable[[], int], system: System) -> None:
        self._connections = connections
        self._system = system

    async def keep_small(self) -> None:
        """Give memory back whenever many connections are gone, until cancelled."""
        most = 0
        while _trim is not None:
            await self._system.sleep(_LOOK_S)
            most = max(most, now := self._connections())
            if most - now >= _CROWD:
                most = now
                await asyncio.to_thread(_trim, 0)
