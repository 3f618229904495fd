"""The thread of the journal over a ledger that refuses by hand: what is written, owed, told and answered."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.clock.test_kept import EPOCH, HandHost
from gateway.journal.test_orders import CARELESS, DONE, KEEPING, UNKNOWN, order
from sealgate.core.doubts import JournalStatus
from sealgate.gateway.journal import writer as writer_module
from sealgate.gateway.journal.file import JournalMovedError
from sealgate.gateway.journal.ledger import Keeping
from sealgate.gateway.journal.orders import Row, sent_row, settled_row
from sealgate.gateway.journal.writer import HANGS_AFTER_S, Ages, Item, Writer

FULL = OSError("the disk is full")
DONE_ROW, UNKNOWN_ROW = settled_row(order(1), DONE, 0), settled_row(order(2), UNKNOWN, 0)
SENT_ROW = sent_row(order(3))


class Paper:
    """A ledger in memory. `troubles` are what the next calls meet."""

    in_doubt = 0
    doubts = ()

    def __init__(self, *troubles: Exception | None) -> None:
        self._troubles = [*troubles]
        self.written: list[list[Row]] = []
        self.looks: list[float] = []
        self.closed = 0

    def write(self, rows: Sequence[Row]) -> None:
        if self._troubles and (trouble := self._troubles.pop(0)) is not None:
            raise trouble
        if rows:
            self.written.append([*rows])

    def look_after(self, wall: float) -> None:
        self.looks.append(wall)

    def close(self) -> None:
        self.closed += 1


def writer_over(paper: Paper, keeping: Keeping = KEEPING, host: HandHost | None = None) -> Writer:
    ledger: Any = paper
    host = host or HandHost()
    return Writer(ledger, keeping, host, Ages(EPOCH, host.boot, None))


def items(*rows: Row) -> list[tuple[Item, asyncio.Future[str | None]]]:
    loop = asyncio.get_running_loop()
    made = [(row, loop.create_future()) for row in rows]
    return [(Item(row, waiting), waiting) for row, waiting in made]


async def run(writer: Writer, *rows: Row) -> list[str | None]:
    """Let these rows be written by one that then ends; return what those were told who waited."""
    waiting = items(*rows)
    for item, _ in waiting:
        writer.put(item)
    writer._queue.put(None)  # before the start, so that all is there at once
    writer.start()
    assert await asyncio.to_thread(writer.stop)
    return [await told for _, told in waiting]


async def test_what_waits_is_one_transaction_and_the_file_is_looked_after_at_the_end() -> None:
    paper = Paper()
    assert await run(writer_over(paper), DONE_ROW, SENT_ROW) == [None, None]
    assert (paper.written, paper.looks, paper.closed) == ([[DONE_ROW, SENT_ROW]], [EPOCH], 1)


async def test_no_transaction_grows_beyond_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_MOST_AT_ONCE", 2)
    paper = Paper()
    assert await run(writer_over(paper), DONE_ROW, SENT_ROW, UNKNOWN_ROW) == [None] * 3
    assert paper.written == [[DONE_ROW, SENT_ROW], [UNKNOWN_ROW]]


async def test_what_a_disk_refuses_is_told_and_endings_alone_are_written_later() -> None:
    paper = Paper(FULL)
    with capture_logs() as logs:
        assert await run(writer_over(paper), SENT_ROW, DONE_ROW) == ["the disk is full"] * 2
    assert paper.written == [[DONE_ROW]]
    assert paper.closed == 2, "it is opened anew after each failure"
    assert [(one["event"], one.get("orders"), one.get("written_late")) for one in logs] == [
        ("journal_failed", "refused", None),
        ("journal_recovered", None, 1),
    ]


async def test_what_is_owed_at_the_end_is_told() -> None:
    writer = writer_over(Paper(FULL, FULL))
    with capture_logs() as logs:
        await run(writer, DONE_ROW, UNKNOWN_ROW)
    assert [(one["event"], one.get("orders")) for one in logs] == [
        ("journal_failed", "refused"),
        ("journal_incomplete", 2),
    ]
    assert writer.status == JournalStatus(1, (), "the disk is full", is_refusing=True)


async def test_what_is_owed_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest stays as sent, and so is in doubt after the next start."""
    paper = Paper(FULL)
    writer = writer_over(paper)
    monkeypatch.setattr(writer_module, "_MOST_OWED", 2)
    for row in (DONE_ROW, UNKNOWN_ROW):
        writer.put(Item(row))
    monkeypatch.setattr(writer_module, "_MOST_OWED", 1)
    await run(writer)
    assert paper.written == [[DONE_ROW]]


async def test_where_records_are_no_condition_a_trouble_refuses_nothing() -> None:
    writer = writer_over(Paper(FULL, FULL), CARELESS)
    with capture_logs() as logs:
        await run(writer, DONE_ROW)
    assert writer.status.is_refusing is False
    assert logs[0]["orders"] == "sent without a record"


TROUBLES = {
    "moved": (
        JournalMovedError("the file was moved away"),
        "the file was moved away",
        "put the same file back;",
    ),
    "without a word": (KeyError(), "KeyError", "free space, or check journal.file;"),
}


@pytest.mark.parametrize(("trouble", "cause", "fix"), TROUBLES.values(), ids=TROUBLES)
async def test_each_trouble_has_cause_and_fix(trouble: Exception, cause: str, fix: str) -> None:
    with capture_logs() as logs:
        await run(writer_over(Paper(trouble)), DONE_ROW)
    assert logs[0]["cause"] == cause
    assert logs[0]["fix"].startswith(fix)


class Hanging(Paper):
    """A disk on which time passes while it writes."""

    def __init__(self, host: HandHost) -> None:
        super().__init__()
        self._host = host
        self.seen: list[JournalStatus] = []
        self.writer: Writer | None = None

    def write(self, rows: Sequence[Row]) -> None:
        super().write(rows)
        assert self.writer is not None
        if not rows:
            return
        for step in (0.0, HANGS_AFTER_S, 1.0):
            self._host.move(step, step, step)
            self.writer.tell_hang()
            self.seen.append(self.writer.status)


async def test_a_write_that_takes_too_long_is_seen_by_the_clock_and_told_once() -> None:
    host = HandHost()
    paper = Hanging(host)
    writer = paper.writer = writer_over(paper, host=host)
    with capture_logs() as logs:
        assert await run(writer, DONE_ROW) == [None]
    hangs = "the disk does not answer"
    assert [(one.trouble, one.is_refusing) for one in paper.seen] == [
        (None, False),
        (hangs, True),
        (hangs, True),
    ]
    assert [(one["event"], one.get("cause")) for one in logs] == [
        ("journal_failed", hangs),
        ("journal_recovered", None),
    ]
    assert not writer.is_hanging


async def test_who_waited_in_a_loop_that_is_closed_keeps_nobody_from_the_end() -> None:
    """The gateway's loop is gone: the thread ends all the same, and has written."""
    paper = Paper()
    loop = asyncio.new_event_loop()

    async def make() -> Writer:
        writer = writer_over(paper)
        writer.put(Item(DONE_ROW, loop.create_future()))
        return writer

    writer = await asyncio.to_thread(loop.run_until_complete, make())
    loop.close()
    writer.start()
    assert await asyncio.to_thread(writer.stop)
    assert paper.written == [[DONE_ROW]]
