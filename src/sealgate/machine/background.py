"""What goes on beside the requests: each part's work in a task of its own, and the failures nobody awaits.

asyncio's own logger stays silent (observe/log.py), as it prints the arguments of the callback that failed,
and those are bytes from a peer. So the loop reports to `Background`.
"""

import asyncio
import errno
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import structlog

from sealgate.machine.system import System

Work = Callable[[], Coroutine[Any, Any, None]]

_PAUSE_S = 5.0  # before work that failed is begun anew

# Errors of accept that mean that something ran out here, and the fix. Any other concerns only the one
# connection that it would have been: accept(2) says to take it "like EAGAIN".
_ACCEPT_FIXES = {
    errno.EMFILE: "raise the limit of open files (ulimit -n, LimitNOFILE=)",
    errno.ENFILE: "raise the system's limit of open files",
    errno.ENOBUFS: "free memory",
    errno.ENOMEM: "free memory",
}

log = structlog.get_logger("sealgate.background")


class Background:
    """The tasks, by the part that each works for. Make it in a running loop.

    `callback_errors` counts the exceptions that reached the loop: those of callbacks, of protocols, and of
    tasks that nobody awaits.
    """

    def __init__(self, system: System) -> None:
        self._system = system
        self._tasks: dict[object, asyncio.Task[None]] = {}
        self._ends: set[asyncio.Task[None]] = set()
        self.callback_errors = 0
        self._loop = asyncio.get_running_loop()
        self._previous_handler = self._loop.get_exception_handler()
        self._loop.set_exception_handler(self._note_callback_error)

    def _note_callback_error(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and "accept" in context["message"] and warn_of_accept(error):
            return
        self.callback_errors += 1
        what = context["message"].partition("(")[0]  # behind it stand the callback's arguments
        log.error("callback_failed", what=what, exc_info=error)

    def follow(self, work: Mapping[object, Work]) -> None:
        """Begin the work of parts that are new, end that of parts that are gone; the others go on."""
        for part in self._tasks.keys() - work.keys():
            self._ends.add(task := self._tasks.pop(part))
            task.add_done_callback(self._ends.discard)
            task.cancel()
        for part in work.keys() - self._tasks.keys():
            self._tasks[part] = asyncio.create_task(self.keep_up(part, work[part]))

    async def keep_up(self, part: object, work: Work) -> None:
        """Do a part's work in the current task; after a failure begin it anew, unless it was cancelled."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in one
        while True:
            try:
                return await work()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is logged
                _log_error(part, error)
            if task.cancelling():  # its end is what failed
                return None
            await self._system.sleep(_PAUSE_S)

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
        self._loop.set_exception_handler(self._previous_handler)


def _log_error(part: object, error: Exception) -> None:
    log.error("work_failed", part=type(part).__name__, cause=repr(error), again_in_s=_PAUSE_S)


def warn_of_accept(error: OSError) -> bool:
    """Log that no connection can be accepted, if that is what an error of accept means; return whether."""
    fix = _ACCEPT_FIXES.get(error.errno or 0)
    if fix is not None:
        log.warning("cannot_accept", cause=error.strerror, fix=fix)
    return fix is not None
