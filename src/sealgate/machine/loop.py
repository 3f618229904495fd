"""Running a coroutine as the whole program: on uvloop where it is installed, until a signal stops it."""

import asyncio
import contextlib
import os
import signal
import warnings
from collections.abc import Coroutine
from typing import Any, TypeVar

import structlog

Result = TypeVar("Result")

log = structlog.get_logger("sealgate.loop")


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run `main` to its end."""
    # mypyc's coroutines throw so; from Python 3.12 on, requests would fail of it under `-W error`.
    warnings.filterwarnings("ignore", r"the \(type, exc, tb\) signature of throw\(\)", DeprecationWarning)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


def _loop_factory() -> Any:
    with contextlib.suppress(ImportError):
        import uvloop  # noqa: PLC0415 - there is none for some systems

        return uvloop.new_event_loop
    return None


def stop_event(*, ends_on_hangup: bool = False) -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set; a second of them ends the process at once.

    SIGHUP sets it where the end of the terminal is to end the program, and is logged elsewhere.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def ask_to_stop(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)  # the shell's way to say which signal it was
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask_to_stop, number)
    if ends_on_hangup:
        loop.add_signal_handler(signal.SIGHUP, stop.set)
    else:  # without a handler it would end the process at once, answers under way included
        loop.add_signal_handler(signal.SIGHUP, log.warning, "sighup_ignored")
    return stop
