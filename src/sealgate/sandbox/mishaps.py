"""What a fault does to a request: late arrival, delay, reset, cut, stall, silence, false status."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from sealgate.sandbox.catalogue import ApiError
from sealgate.sandbox.journal import Receipt
from sealgate.sandbox.lines import Line
from sealgate.sandbox.message import Reply
from sealgate.sandbox.models.control import Fault
from sealgate.sandbox.protocol import Refuse

# The rows that some statuses come with; any other is an "Injected fault".
ROWS: Mapping[int, str] = {429: "rate_limited", 500: "internal"}

Sent = TypeVar("Sent")


@dataclass(frozen=True, slots=True)
class Struck(Generic[Sent]):
    """A request that a fault has struck. `answer` executes it, notes that, and gives the true reply."""

    line: Line[Sent]
    receipt: Receipt
    fault: Fault
    answer: Callable[[], Reply]


class Mishaps:
    """Makes faults happen. `refuse` makes a false reply, `sleep` waits."""

    def __init__(self, refuse: Refuse, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._refuse = refuse
        self._sleep = sleep

    async def happen(self, struck: Struck[Sent]) -> Sent:
        """Let it happen; what is returned has been sent already where the connection has ended."""
        kinds: Mapping[str, Callable[[Struck[Sent]], Awaitable[Sent]]] = {
            "late": self._late,
            "delay": self._delay,
            "status": self._status,
            "reset_before": self._reset_before,
            "reset_after": self._reset_after,
            "cut": self._cut,
            "stall": self._stall,
            "silence": self._silence,
        }
        return await kinds[struck.fault.kind](struck)

    async def _late(self, struck: Struck[Sent]) -> Sent:
        await self._sleep(struck.fault.delay_s)
        return await struck.line.whole(struck.answer())

    async def _delay(self, struck: Struck[Sent]) -> Sent:
        reply = struck.answer()
        await self._sleep(struck.fault.delay_s)
        return await struck.line.whole(reply)

    async def _status(self, struck: Struck[Sent]) -> Sent:
        if struck.fault.executed:
            struck.answer()
        status = struck.fault.status
        reply = self._refuse(ApiError(ROWS.get(status, "fault"), status=status))
        struck.receipt.replace_reply(reply)
        return await struck.line.whole(reply)

    async def _reset_before(self, struck: Struck[Sent]) -> Sent:
        struck.receipt.verdict = "fault"
        return struck.line.reset()

    async def _reset_after(self, struck: Struck[Sent]) -> Sent:
        struck.answer()
        return struck.line.reset()

    async def _cut(self, struck: Struck[Sent]) -> Sent:
        await struck.line.half(struck.answer())
        return struck.line.end()

    async def _stall(self, struck: Struck[Sent]) -> Sent:
        await struck.line.half(struck.answer())
        await self._sleep(struck.fault.delay_s)
        return struck.line.end()

    async def _silence(self, struck: Struck[Sent]) -> Sent:
        if struck.fault.executed:
            struck.answer()
        else:
            struck.receipt.verdict = "fault"
        await self._sleep(struck.fault.delay_s)
        return struck.line.withhold()
