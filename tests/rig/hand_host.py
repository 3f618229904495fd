"""A host whose clocks a test moves by hand."""

import asyncio

from sealgate.machine.clocks import SystemClocks
from sealgate.machine.system import System

EPOCH = 1_790_000_000.0


OUTSIDE = b'{"detail": "Timestamp outside recv_window (5000ms). Server time: %d"}' % (EPOCH * 1000 + 60_000)


class HandHost(System):
    """Time stands still until it is moved."""

    boot = 100.0
    mono = 100.0
    epoch = EPOCH

    def now(self) -> float:
        return self.boot

    def wall(self) -> float:
        return self.epoch

    def clocks(self) -> SystemClocks:
        return SystemClocks(self.boot, self.mono, self.epoch)

    def move(self, boot: float, mono: float, wall: float) -> None:
        self.boot, self.mono, self.epoch = self.boot + boot, self.mono + mono, self.epoch + wall


class Leaping(HandHost):
    """It sleeps no time at all, so often; its clocks go on by that much."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 0

    async def sleep(self, seconds: float) -> None:
        if self.left == 0:
            raise asyncio.CancelledError
        self.left -= 1
        self.move(seconds, seconds, seconds)
