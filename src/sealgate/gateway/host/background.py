"""What goes on beside the requests, each part's work in a task of its own."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import structlog

from sealgate.gateway.host.host import Host

Work = Callable[[], Coroutine[Any, Any, None]]

_PAUSE_S = 5.0  # before work that failed is begun anew

log = structlog.get_logger("sealgate.background")


class Background:
    """The tasks, by the part that each works for. Make it in a running loop."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tasks: dict[object, asyncio.Task[None]] = {}
        self._ends: set[asyncio.Task[None]] = set()

    def follow(self, work: Mapping[object, Work]) -> None:
        """Begin the work of parts that are new, end that of parts that are gone; the others go on."""
        for part in self._tasks.keys() - work.keys():
            self._ends.add(task := self._tasks.pop(part))
            task.add_done_callback(self._ends.discard)
            task.cancel()
        for part in work.keys() - self._tasks.keys():
            self._tasks[part] = asyncio.create_task(self._keep_up(part, work[part]))

    async def _keep_up(self, part: object, work: Work) -> None:
        """Begin work that failed anew after a pause, unless it was to end."""
        task = self._tasks[part]
        while True:
            try:
                return await work()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told
                _tell(part, error)
            if task.cancelling():  # its end is what failed
                return None
            await self._host.sleep(_PAUSE_S)

    def finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something to its end, or until all is over."""
        task = asyncio.create_task(work)
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)

    async def stop(self) -> None:
        """End everything."""
        tasks = [*self._tasks.values(), *self._ends]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _tell(part: object, error: Exception) -> None:
    log.error("work_failed", part=type(part).__name__, cause=repr(error), again_in_s=_PAUSE_S)
