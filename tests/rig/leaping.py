"""An event loop whose time leaps to the next timer: real sockets, and no real waiting."""

import asyncio
import contextlib
import selectors
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar
from unittest.mock import patch

from sealgate.machine.clocks import SystemClocks
from sealgate.machine.system import System

EPOCH = 1_790_000_000.0  # what the clocks of this host and of the exchange show at time 0
START = 1000.0  # on the loop's clock
Result = TypeVar("Result")
_TURN_S = 1e-6  # that each turn of the loop takes: else whoever waits for less than a tick would never end
_THREAD_S = 0.001  # of real time, for which threads that work are waited for


class _Leaping(selectors.DefaultSelector):
    """A selector that does not sleep: it moves the time on by as much instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.threads = 0  # that work: their time is real

    def select(self, timeout: float | None = None) -> Any:
        self.now += _TURN_S
        events = super().select(0)
        if events or timeout == 0:
            return events
        if timeout is None or self.threads:
            return super().select(timeout if timeout is None else _THREAD_S)
        self.now += timeout
        return super().select(0)


class LeapingLoop(asyncio.SelectorEventLoop):
    """Its time stands still while something happens, and leaps when nothing does."""

    def __init__(self) -> None:
        self._leaping = _Leaping()
        super().__init__(self._leaping)

    def time(self) -> float:
        """Return the virtual time."""
        return self._leaping.now

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override] # narrower
        """Run in a thread, and let no time pass meanwhile."""
        self._leaping.threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._ended)
        return future

    def _ended(self, _: object) -> None:
        self._leaping.threads -= 1


class LeapingSystem(System):
    """The clocks of a host on such a loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop

    def wall(self) -> float:
        """Return the epoch seconds."""
        return EPOCH + self._loop.time()

    def clocks(self) -> SystemClocks:
        """Return a reading of all three clocks."""
        return SystemClocks(self._loop.time(), self._loop.time(), self.wall())


@contextlib.contextmanager
def _clock_of(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Let all that asks the system for the time go by a loop's."""
    with patch.object(System, "now", staticmethod(loop.time)):
        yield


def run_leaping(make: Callable[[System], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine in virtual time; it is handed the system that a gateway is to go by."""
    with asyncio.Runner(loop_factory=LeapingLoop) as runner:
        loop = runner.get_loop()
        with _clock_of(loop):
            return runner.run(make(LeapingSystem(loop)))
