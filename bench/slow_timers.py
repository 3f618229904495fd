"""Sealgate on a loop whose timers go off fifty times later: so much longer all takes under callgrind."""

import runpy
from asyncio import TimerHandle
from typing import Any

import uvloop

_SLOWER = 50.0


class Loop(uvloop.Loop):
    def call_later(self, delay: float, *arguments: Any, **context: Any) -> TimerHandle:  # type: ignore[override] # passed on
        return super().call_later(delay * _SLOWER, *arguments, **context)


if __name__ == "__main__":
    uvloop.new_event_loop = Loop
    runpy.run_module("sealgate", run_name="__main__", alter_sys=True)
