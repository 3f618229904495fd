"""What goes on beside the requests: begun, ended, left alone, begun anew where it fails, and never silent."""

import asyncio
import errno
import gc
import os
import socket
from collections.abc import Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from rig.hand_host import HandHost
from rig.wire import PATIENCE_S, let_pass
from sealgate.machine.background import Background


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


def fail(_: object) -> None:
    raise LookupError("no such order")


async def fail_in_a_callback() -> None:
    asyncio.get_running_loop().call_soon(fail, b"Authorization: Bearer a-bots-token")


async def fail_in_a_task() -> None:
    async def work() -> None:
        fail(b"")

    asyncio.create_task(work()).add_done_callback(lambda _: gc.collect())


async def fail_in_a_protocol() -> None:
    class Failing(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            fail(data)

    ours, theirs = socket.socketpair()
    with theirs:
        await asyncio.get_running_loop().create_connection(Failing, sock=ours)
        theirs.send(b"Authorization: Bearer a-bots-token")


@pytest.mark.parametrize("act", [fail_in_a_callback, fail_in_a_task, fail_in_a_protocol])
async def test_an_exception_that_nobody_awaits_is_logged_and_counted(
    act: Callable[[], Awaitable[None]],
) -> None:
    """Its line has a traceback, but nothing that was handed to the callback: that may be what a bot sent."""
    background = Background(HandHost())
    with capture_logs() as logs:
        await act()
        async with asyncio.timeout(PATIENCE_S):
            while not logs:
                await let_pass(0.001)
    (line,) = logs
    assert (line["event"], line["log_level"], background.callback_errors) == ("callback_failed", "error", 1)
    assert isinstance(line["exc_info"], LookupError)
    assert "Bearer" not in line["what"]
    await background.stop()
    assert asyncio.get_running_loop().get_exception_handler() is None


async def test_an_accept_without_descriptors_is_a_warning_with_its_fix() -> None:
    background = Background(HandHost())
    error = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    said = {"message": "socket.accept() out of system resource", "exception": error}
    with capture_logs() as logs:
        asyncio.get_running_loop().call_exception_handler(said)
    (line,) = logs
    assert (line["event"], line["log_level"], background.callback_errors) == ("cannot_accept", "warning", 0)
    assert "ulimit -n" in line["fix"]
    await background.stop()
