"""Runs what takes milliseconds to compute beside the event loop.

It has one thread, of a lower priority than the loop's. With several, or with an equal one, signatures of RSA
kept the loop from the processor for up to 18 ms (`scripts/bench key_kinds --pauses`).
"""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

_LOWER = 15  # nice(2)

_Result = TypeVar("_Result")


async def run_aside(compute: Callable[[], _Result]) -> _Result:
    """Call a function in the thread; return what it returns, or raise what it raises."""
    return await asyncio.get_running_loop().run_in_executor(_thread(), compute)


@cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "aside", _give_way)


def _give_way() -> None:
    """Lower the priority of this thread: on Linux each has its own."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWER)
