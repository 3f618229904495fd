"""Outcomes on their way to the readers: when, how many at a time, and past a reader that fails."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from rig.wire import PATIENCE_S
from sealgate.orders.outcome import Outcome
from sealgate.request import handler as reporter_module
from sealgate.request.handler import Reporter


class Reader:
    """Keeps the batches, and can be waited for."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.has_read = asyncio.Event()

    def __call__(self, outcomes: Sequence[Outcome]) -> None:
        self.batches.append([outcome.request_id for outcome in outcomes])
        self.has_read.set()

    async def next(self) -> list[str]:
        async with asyncio.timeout(PATIENCE_S):
            await self.has_read.wait()
        self.has_read.clear()
        return self.batches.pop(0)


def report(reporter: Reporter, *names: str) -> None:
    for name in names:
        reporter.report(Outcome(name, "GET", 0.0))


async def test_nothing_is_read_while_the_request_is_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporter_module, "_DELAY_S", 3600.0)
    reader = Reader()
    reporter = Reporter([reader])
    report(reporter, "a", "b")
    assert reader.batches == []
    reporter.flush()
    assert reader.batches == [["a", "b"]]


async def test_many_are_not_kept_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporter_module, "_DELAY_S", 3600.0)
    reader = Reader()
    reporter = Reporter([reader])
    names = [str(number) for number in range(reporter_module._MOST)]
    report(reporter, *names)
    assert await reader.next() == names


async def test_what_was_read_early_is_not_read_again_by_its_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer that stayed would part a later batch, and its own timer the one after that."""
    monkeypatch.setattr(reporter_module, "_DELAY_S", 3600.0)
    loop, timers = asyncio.get_running_loop(), list[asyncio.TimerHandle]()
    call_later = loop.call_later

    def noted(*arguments: Any) -> asyncio.TimerHandle:
        timers.append(call_later(*arguments))
        return timers[-1]

    monkeypatch.setattr(loop, "call_later", noted)
    reporter = Reporter([Reader()])
    for _ in range(2):
        report(reporter, "a", "b")
        reporter.flush()
    assert [timer.cancelled() for timer in timers] == [True, True]


async def test_a_reader_that_fails_keeps_the_others_from_nothing() -> None:
    def fail(_: Sequence[Outcome]) -> None:
        raise ValueError("no reader of this")

    reader = Reader()
    reporter = Reporter([fail, reader])
    with capture_logs() as logs:
        report(reporter, "a")
        reporter.flush()
    assert reader.batches == [["a"]]
    assert [(one["event"], one["log_level"]) for one in logs] == [("reader_failed", "error")]


async def test_nor_does_a_log_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader that failed may be the log itself, on a disk that is full."""

    class FullDisk:
        def exception(self, _: str) -> None:
            raise OSError(28, "No space left on device")

    def fail(_: Sequence[Outcome]) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(reporter_module, "log", FullDisk())
    reader = Reader()
    reporter = Reporter([fail, reader])
    report(reporter, "a")
    reporter.flush()
    assert reader.batches == [["a"]]
