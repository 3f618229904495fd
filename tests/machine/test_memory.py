"""Memory is given back once a crowd has left, and only then."""

import asyncio
from collections.abc import Iterable

import pytest

from rig.hand_host import HandHost
from sealgate.machine import process as machine
from sealgate.machine.process import Memory


class Turns(HandHost):
    """Sleeps as often as there are numbers of connections, and then for ever."""

    def __init__(self, counts: Iterable[int]) -> None:
        super().__init__()
        self._counts = iter(counts)
        self.count = 0
        self.over = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        del seconds
        try:
            self.count = next(self._counts)
        except StopIteration:
            self.over.set()
            await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize(
    ("counts", "times"),
    [
        pytest.param([0, 10, 0, 40, 0], 0, id="a few come and go"),
        pytest.param([0, 500, 1000, 1000], 0, id="a crowd stays"),
        pytest.param([1000, 0, 0, 0], 1, id="a crowd leaves"),
        pytest.param([100, 80, 60, 40, 40], 1, id="one by one"),
        pytest.param([1000, 10, 1000, 10], 2, id="twice"),
    ],
)
async def test_memory_is_given_back_when_a_crowd_has_left(
    counts: list[int], times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []
    monkeypatch.setattr(machine, "_trim", given.append)
    host = Turns(counts)
    task = asyncio.ensure_future(Memory(lambda: host.count, host).keep_small())
    await asyncio.wait_for(host.over.wait(), 20)
    task.cancel()
    assert given == [0] * times


async def test_a_system_without_it_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_trim", None)
    await asyncio.wait_for(Memory(lambda: 0, HandHost()).keep_small(), 20)
