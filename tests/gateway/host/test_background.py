"""What goes on beside the requests: begun, ended, left alone, and begun anew where it fails."""

import asyncio

from structlog.testing import capture_logs

from gateway.clock.test_kept import HandHost
from rig.wire import PATIENCE_S
from sealgate.gateway.host.background import Background


class Recorded:
    """Work without an end, which notes what happens to it."""

    def __init__(self, name: str, seen: list[str]) -> None:
        self.name = name
        self._seen = seen

    async def run(self) -> None:
        self._seen.append(f"{self.name} begins")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._seen.append(f"{self.name} ends")


async def test_work_is_begun_ended_and_left_alone() -> None:
    seen: list[str] = []
    background = Background(HandHost())
    a, b, c = (Recorded(name, seen) for name in "abc")
    background.follow({a: a.run, b: b.run})
    await asyncio.sleep(0)  # noqa: TID251 - let them begin
    background.follow({b: b.run, c: c.run})
    await asyncio.sleep(0)  # noqa: TID251 - let them begin
    assert sorted(seen) == ["a begins", "a ends", "b begins", "c begins"]
    await background.stop()
    assert sorted(seen[4:]) == ["b ends", "c ends"]


class Pausing(HandHost):
    """Says that there is a pause, and goes on once it is over."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self.pausing, self.over = asyncio.Event(), asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.pausing.set()
        await self.over.wait()


class Failing:
    """Work that fails at first, and at its end, too."""

    def __init__(self) -> None:
        self.begun = 0
        self.again = asyncio.Event()

    async def run(self) -> None:
        self.begun += 1
        if self.begun == 1:
            raise ValueError("no JSON")
        self.again.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            raise ConnectionError("gone")


async def test_work_that_fails_is_told_and_begun_anew_after_a_pause() -> None:
    host, part = Pausing(), Failing()
    background = Background(host)
    async with asyncio.timeout(PATIENCE_S):
        with capture_logs() as logs:
            background.follow({part: part.run})
            await host.pausing.wait()
            background.follow({part: part.run})  # it rests, and is not begun twice
        assert part.begun == 1
        told = {"event": "work_failed", "log_level": "error", "part": "Failing", "again_in_s": 5.0}
        assert logs == [told | {"cause": "ValueError('no JSON')"}]
        host.over.set()
        await part.again.wait()
        with capture_logs() as logs:
            await background.stop()
    assert (part.begun, host.pauses) == (2, [5.0])
    assert [one["cause"] for one in logs] == ["ConnectionError('gone')"]
