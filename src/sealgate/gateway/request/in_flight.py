"""The requests in flight, so that they can be counted, waited for, and stopped while they wait."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable

from sealgate.errors import Refusal
from sealgate.gateway.request.context import RequestContext


class InFlightRequests:
    """Which requests are in flight, and what carries each: the connections that it may use."""

    def __init__(self) -> None:
        self._carriers: dict[RequestContext, object] = {}
        self._idle: list[tuple[object, asyncio.Event]] = []

    def __len__(self) -> int:
        return len(self._carriers)

    def begin(self, context: RequestContext, carrier: object) -> None:
        """Take a request in; `carrier` is what must stay open for it."""
        self._carriers[context] = carrier

    def end(self, context: RequestContext) -> None:
        """Let it go."""
        del self._carriers[context]
        for awaited, idle in self._idle:
            if not self._is_busy(awaited):
                idle.set()

    def stop(self, why: Callable[[RequestContext], Refusal | None]) -> int:
        """End those that wait in the gateway and for which `why` has a reason; return how many."""
        reasons = [(context, why(context)) for context in self._carriers]
        return sum(context.stop(reason) for context, reason in reasons if reason is not None)

    async def wait_until_idle(self, at_most_s: float | None, carrier: object = None) -> None:
        """Return when nothing is in flight, or nothing with that carrier, or the time is over."""
        if not self._is_busy(carrier):
            return
        idle = asyncio.Event()
        self._idle.append((carrier, idle))
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(at_most_s):
                    await idle.wait()
        finally:
            self._idle.remove((carrier, idle))

    def _is_busy(self, carrier: object) -> bool:
        carriers: Iterable[object] = self._carriers.values()
        return bool(self._carriers) if carrier is None else carrier in carriers
