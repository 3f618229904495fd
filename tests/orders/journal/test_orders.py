"""The journal of orders in one process: what it promises, in which order, and within which bounds."""

import asyncio
import contextlib
import dataclasses
import json
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rig.damage import empty_index
from rig.wire import PATIENCE_S, let_pass
from sealgate.machine.system import System
from sealgate.orders.doubts import Doubt
from sealgate.orders.halts import Halts
from sealgate.orders.idempotency import Kept, Name
from sealgate.orders.journal import (
    HaltsTable,
    JournalError,
    Keeping,
    LimitsTable,
    Order,
    OrderJournal,
    orders,
    writer,
)
from sealgate.orders.journal import order_journal as book_module
from sealgate.orders.journal.file import JournalMovedError, connect, prepare
from sealgate.orders.journal.ledger import SHOWN, Ledger
from sealgate.orders.journal.order_journal import orders_in_doubt
from sealgate.orders.journal.orders import Row, is_sent, sent_row, settled_row
from sealgate.orders.journal.writer import Ages, Item, Writer
from sealgate.orders.outcome import LARGEST_BODY, BotReply, Conclusion, Ending
from sealgate.venues.routes import Lane

KEEPING = Keeping(longest_s=3600.0, most_bytes=10**8)
CARELESS = dataclasses.replace(KEEPING, must_be_written=False)
ORDER = Order(
    id="a1-1",
    request_id="mine",
    bot="grid",
    key="main",
    method="POST",
    route="/order",
    lane=Lane.ORDER,
    target="/v1/trade/order?x=1",
    idempotency_key="k-1",
    digest="d" * 64,
    timestamp_ms=1_790_000_000_000,
    fence_ms=1_790_000_005_000,
    attempts=1,
    sent_ms=1_790_000_000_012,
)
DOUBT = Doubt(
    "a1-1",
    "mine",
    "grid",
    "main",
    "POST",
    "/order",
    "/v1/trade/order?x=1",
    "k-1",
    1_790_000_000_000,
    1_790_000_005_000,
    1,
    1_790_000_000_012,
)
REPLY = BotReply(201, "Cre\udcffated", ((b"Content-Type", b"text/\xe9"),), b"\x00\xff")
DONE = Ending(Conclusion.DONE, ORDER.fence_ms, REPLY)
UNKNOWN = Ending(Conclusion.UNKNOWN, ORDER.fence_ms)


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_LOOK_S", 0.005)


def order(number: int) -> Order:
    return ORDER._replace(id=f"a1-{number}", idempotency_key=None, digest=None)


@contextlib.asynccontextmanager
async def running_book(file: Path, keeping: Keeping = KEEPING) -> AsyncIterator[OrderJournal]:
    book = OrderJournal(file, keeping, System())
    try:
        yield book
    finally:
        await book.close()


def read(file: Path, columns: str) -> list[tuple[object, ...]]:
    with closing(connect(file)) as database:
        return list(database.execute(f"SELECT {columns} FROM orders ORDER BY rowid"))  # noqa: S608 - a test's


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await let_pass(0.002)


async def test_an_intent_is_in_the_file_when_it_returns(file: Path) -> None:
    async with running_book(file) as book:
        assert await book.intent(ORDER)
        assert read(file, ", ".join(Order._fields)) == [tuple(ORDER)]
        assert read(file, "state, status, settled_ms") == [("sent", None, None)]
        assert book.status.in_doubt == 0, "it is under way"


async def test_an_order_sent_again_keeps_its_row(file: Path) -> None:
    again = ORDER._replace(attempts=2, timestamp_ms=ORDER.timestamp_ms + 700, fence_ms=ORDER.fence_ms + 700)
    async with running_book(file) as book:
        await book.intent(ORDER)
        await book.intent(again)
        assert read(file, "timestamp_ms, fence_ms, attempts") == [(again.timestamp_ms, again.fence_ms, 2)]


@pytest.mark.parametrize("conclusion", Conclusion)
async def test_an_ending_is_the_state(file: Path, conclusion: Conclusion) -> None:
    async with running_book(file) as book:
        await book.intent(ORDER)
        book.ended(ORDER, Ending(conclusion, ORDER.fence_ms, REPLY))
    assert read(file, "state, status") == [(conclusion.value, 201)]


@pytest.mark.parametrize("conclusion", Conclusion)
async def test_what_was_sent_is_kept_only_while_nobody_knows_what_became_of_it(
    file: Path, conclusion: Conclusion
) -> None:
    sent = ORDER._replace(sent_body=b'{"symbol": "BTC"}')
    async with running_book(file) as book:
        await book.intent(sent)
        assert read(file, "sent_body") == [(sent.sent_body,)]
        book.ended(sent, Ending(conclusion, ORDER.fence_ms))
    is_kept = conclusion is Conclusion.UNKNOWN
    assert read(file, "sent_body") == [(sent.sent_body if is_kept else None,)]


async def test_an_order_without_a_key_leaves_no_reply(file: Path) -> None:
    async with running_book(file) as book:
        await book.intent(order(1))
        book.ended(order(1), DONE)
    assert read(file, "status, head, body") == [(201, None, None)]


async def test_all_that_waits_is_one_transaction_in_its_order(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[list[object]] = []
    write = orders.write

    def noting(database: sqlite3.Connection, rows: Sequence[Row]) -> None:
        written.append([(row[0], is_sent(row)) for row in rows])
        write(database, rows)

    monkeypatch.setattr(orders, "write", noting)
    monkeypatch.setattr(writer, "_LOOK_S", 3600.0)
    async with running_book(file) as book:
        await book.intent(order(0))
        with closing(connect(file)) as other:
            other.execute("BEGIN IMMEDIATE")  # a slow disk: the writer stands in its transaction
            first = asyncio.ensure_future(book.intent(order(1)))
            await until(lambda: [("a1-1", True)] in written)
            rest = [asyncio.ensure_future(book.intent(order(number))) for number in (2, 3)]
            await let_pass(0)
            book.ended(order(2), DONE)
            assert not first.done()
            other.rollback()
        assert await asyncio.gather(first, *rest) == [True, True, True]
    assert written[-1] == [], "what is owed at the end"
    assert written[-2] == [("a1-2", True), ("a1-3", True), ("a1-2", False)]


async def test_who_stops_waiting_leaves_the_others_unharmed(file: Path) -> None:
    async with running_book(file) as book:
        with closing(connect(file)) as other:
            other.execute("BEGIN IMMEDIATE")
            gone, stays = (asyncio.ensure_future(book.intent(order(number))) for number in (1, 2))
            await let_pass(0)
            gone.cancel()
            other.rollback()
        assert await stays
        book.ended(order(1), Ending(Conclusion.NOT_SENT))
    assert read(file, "id, state") == [("a1-1", "not_sent"), ("a1-2", "sent")]


async def test_an_unknown_outcome_is_in_doubt_at_once(file: Path) -> None:
    async with running_book(file) as book:
        await book.intent(ORDER)
        book.ended(ORDER, UNKNOWN)
        await book.intent(order(2))
        assert (book.status.in_doubt, book.status.doubts) == (1, (DOUBT,))


async def test_what_was_under_way_is_in_doubt_after_a_crash(file: Path) -> None:
    leave_behind(file, sent_row(ORDER), settled_row(order(2), DONE, ORDER.sent_ms))
    with capture_logs() as logs:
        async with running_book(file) as book:
            assert (book.status.in_doubt, book.status.doubts) == (1, (DOUBT,))
    told = [line for line in logs if line["log_level"] == "warning"]
    assert [line["event"] for line in told] == ["orders_in_doubt", "order_in_doubt"]
    assert "--settle" in told[0]["fix"]
    assert (told[1]["request_id"], told[1]["fence_ms"]) == ("mine", ORDER.fence_ms)


def leave_behind(file: Path, *rows: Row) -> None:
    """Write rows as a gateway did that was killed."""
    prepare(file)
    with closing(connect(file)) as database:
        orders.write(database, rows)


def now_ms() -> int:
    return int(System().wall() * 1000)


async def test_replies_come_back_after_a_restart(file: Path) -> None:
    async with running_book(file) as book:
        assert book.recall() == []
        await book.intent(ORDER)
        book.ended(ORDER, DONE)
    async with running_book(file) as book:
        (kept,) = book.recall()
    assert kept == Kept(Name("grid", "k-1"), "d" * 64, DONE, kept.age_s)
    assert 0 <= kept.age_s < PATIENCE_S


LARGEST = BotReply(200, "OK", (), bytes(LARGEST_BODY))
RECENT = ORDER._replace(sent_ms=now_ms())
BACK: dict[str, tuple[Row, Ending | None]] = {
    "under way": (sent_row(RECENT), UNKNOWN),
    "unknown": (settled_row(RECENT, UNKNOWN, now_ms()), UNKNOWN),
    "not sent": (settled_row(RECENT, Ending(Conclusion.NOT_SENT), now_ms()), None),
    "refused": (
        settled_row(RECENT, Ending(Conclusion.REFUSED, ORDER.fence_ms, REPLY), now_ms()),
        Ending(Conclusion.REFUSED, ORDER.fence_ms, REPLY),
    ),
    "refused for the moment": (
        settled_row(RECENT, Ending(Conclusion.REFUSED, ORDER.fence_ms, None, is_own=True), now_ms()),
        None,
    ),
    "as large as is kept": (
        settled_row(RECENT, Ending(Conclusion.DONE, ORDER.fence_ms, LARGEST), now_ms()),
        Ending(Conclusion.DONE, ORDER.fence_ms, LARGEST),
    ),
    "too large": (
        settled_row(
            RECENT,
            Ending(Conclusion.DONE, ORDER.fence_ms, BotReply(200, "OK", (), bytes(LARGEST_BODY + 1))),
            now_ms(),
        ),
        Ending(Conclusion.DONE, ORDER.fence_ms),
    ),
    "too old": (settled_row(ORDER, DONE, now_ms() - 3_601_000), None),
    "without a key": (settled_row(order(1), DONE, now_ms()), None),
}


@pytest.mark.parametrize(("row", "ending"), BACK.values(), ids=BACK)
async def test_what_comes_back_of(file: Path, row: Row, ending: Ending | None) -> None:
    leave_behind(file, row, settled_row(order(9), DONE, now_ms()))  # a newer one shows what time it was
    async with running_book(file) as book:
        assert [kept.ending for kept in book.recall()] == ([] if ending is None else [ending])


async def test_of_each_bot_the_latest_come_back(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book_module, "MOST_REPLAYS", 2)
    names = [Name("calm", "k-0"), *(Name("busy", f"k-{number}") for number in range(5))]
    recent = [
        RECENT._replace(id=f"a1-{number}", bot=name.bot, idempotency_key=name.key)
        for number, name in enumerate(names)
    ]
    leave_behind(file, *(settled_row(one, DONE, now_ms()) for one in recent))
    async with running_book(file) as book:
        assert [kept.name for kept in book.recall()] == [
            Name("busy", "k-4"),
            Name("busy", "k-3"),
            Name("calm", "k-0"),
        ]


async def test_a_settled_doubt_still_has_its_key(file: Path) -> None:
    leave_behind(file, sent_row(RECENT))
    with orders_in_doubt(file) as in_doubt:
        in_doubt.settle(in_doubt.doubts, now_ms())
    async with running_book(file) as book:
        assert [kept.ending for kept in book.recall()] == [UNKNOWN]
        assert book.status.in_doubt == 0


async def test_a_running_gateway_notices_what_is_settled_by_hand(file: Path) -> None:
    async with running_book(file) as book:
        await book.intent(order(2))
        book.ended(ORDER, UNKNOWN)
        await book.intent(order(3))
        with orders_in_doubt(file) as in_doubt:
            assert in_doubt.doubts == (DOUBT,), "not those under way"
            in_doubt.settle(in_doubt.doubts, now_ms())
        await until(lambda: book.status.in_doubt == 0)
        assert book.status.doubts == ()


async def test_two_gateways_cannot_share_a_file(file: Path) -> None:
    async with running_book(file):
        with pytest.raises(JournalError, match="another gateway uses it"):
            OrderJournal(file, KEEPING, System())
    async with running_book(file):
        pass


def write_something_else(file: Path) -> None:
    file.write_text("no journal, " * 100)


async def test_a_file_that_cannot_be_used_is_not_left_locked(file: Path) -> None:
    write_something_else(file)
    for _ in range(2):
        with pytest.raises(JournalError, match="file is not a database"):
            OrderJournal(file, KEEPING, System())


async def test_orders_in_doubt_that_damage_hides_are_noticed_at_the_start(file: Path) -> None:
    leave_behind(file, settled_row(ORDER, UNKNOWN, 0))
    empty_index(file, "orders_in_doubt")
    with pytest.raises(JournalError, match="damaged; move it away"):
        OrderJournal(file, KEEPING, System())


class Disk:
    """A disk that refuses, or does not answer, when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.trouble: Exception | None = None
        self.answers = threading.Event()
        self.answers.set()
        self._write = orders.write
        monkeypatch.setattr(orders, "write", self.write)

    def write(self, database: sqlite3.Connection, rows: Sequence[Row]) -> None:
        self.answers.wait(PATIENCE_S)
        if self.trouble is not None:
            raise self.trouble
        self._write(database, rows)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


FULL = sqlite3.OperationalError("database or disk is full")


async def test_orders_are_refused_while_the_disk_refuses(file: Path, disk: Disk) -> None:
    with capture_logs() as logs:
        async with running_book(file) as book:
            assert await book.intent(order(1))
            disk.trouble = FULL
            assert not await book.intent(order(2))
            assert not await book.intent(order(3)._replace(lane=Lane.CANCEL)), "a lane makes no cancel"
            assert await book.intent(order(4), is_cancel=True), "a cancel goes on"
            assert (book.status.trouble, book.status.is_refusing) == (str(FULL), True)
            disk.trouble = None
            await until(lambda: book.status.trouble is None)
            assert await book.intent(order(5))
            assert not book.status.is_refusing
    failed, recovered = logs
    assert (failed["event"], failed["log_level"], failed["orders"]) == ("journal_failed", "error", "refused")
    assert failed["fix"].startswith("free space, or check journal.file;")
    assert recovered["event"] == "journal_recovered"
    # The cancel's record is written where the thread comes to it only when the disk is well again.
    assert [row[0] for row in read(file, "id") if row[0] != "a1-4"] == ["a1-1", "a1-5"]


async def test_or_they_go_on_without_a_record(file: Path, disk: Disk) -> None:
    with capture_logs() as logs:
        async with running_book(file, CARELESS) as book:
            disk.trouble = FULL
            assert await book.intent(order(1))
            await until(lambda: book.status.trouble is not None)  # the order did not wait for it
            assert (book.status.trouble, book.status.is_refusing) == (str(FULL), False)
            disk.trouble = None
    assert logs[0]["orders"] == "sent without a record"


async def test_endings_are_written_when_the_disk_is_back(file: Path, disk: Disk) -> None:
    with capture_logs() as logs:
        async with running_book(file) as book:
            await book.intent(order(1))
            await book.intent(order(2))
            disk.trouble = FULL
            book.ended(order(1), DONE)
            book.ended(order(2), UNKNOWN)
            await until(lambda: book.status.trouble is not None)
            await book.intent(order(3), is_cancel=True)
            book.ended(order(3), UNKNOWN)
            await until(lambda: book.status.in_doubt == 2)  # also while they are not written
            disk.trouble = None
            await until(lambda: book.status.trouble is None)
            assert book.status.in_doubt == 2
    assert logs[-1] == {"event": "journal_recovered", "log_level": "warning", "written_late": 3}
    assert read(file, "id, state") == [("a1-1", "done"), ("a1-2", "unknown"), ("a1-3", "unknown")]


async def test_what_is_refused_while_the_disk_refuses_leaves_nothing_to_write(file: Path, disk: Disk) -> None:
    """A bot that tries on must not use up the space that is freed."""
    again, later = order(1)._replace(attempts=2), order(50)
    async with running_book(file) as book:
        await book.intent(order(1))
        await book.intent(later)
        disk.trouble = FULL
        assert not await book.intent(order(2))
        book.ended(order(2), Ending(Conclusion.NOT_SENT))
        await until(lambda: book.status.trouble is not None)
        for number in range(3, 50):
            assert not await book.intent(order(number))
            book.ended(order(number), Ending(Conclusion.NOT_SENT))
        assert not await book.intent(again), "its first attempt is in the file"
        book.ended(again, Ending(Conclusion.NOT_SENT))
        assert not await book.intent(later), "it was recorded, a pause came before it was sent, and now this"
        book.ended(later, Ending(Conclusion.NOT_SENT))
        disk.trouble = None
        await until(lambda: book.status.trouble is None)
    found = [("a1-1", "not_sent"), ("a1-50", "not_sent"), ("a1-2", "not_sent")]
    assert read(file, "id, state") == found


async def test_endings_that_were_never_written_are_told(file: Path, disk: Disk) -> None:
    with capture_logs() as logs:
        async with running_book(file) as book:
            await book.intent(order(1))
            disk.trouble = FULL
            book.ended(order(1), DONE)
    assert [line["event"] for line in logs] == ["journal_failed", "journal_incomplete"]
    async with running_book(file) as book:
        disk.trouble = None
        assert book.status.in_doubt == 1


async def test_a_fault_of_the_program_does_not_end_the_thread(file: Path, disk: Disk) -> None:
    async with running_book(file) as book:
        disk.trouble = ZeroDivisionError()
        assert not await book.intent(order(1))
        assert book.status.trouble == "ZeroDivisionError"
        disk.trouble = None
        await until(lambda: book.status.trouble is None)
        assert await book.intent(order(2))


LONG_S = PATIENCE_S / 4  # much longer than any bound on waiting


async def test_a_disk_that_hangs_is_a_disk_that_refuses_until_it_answers(file: Path, disk: Disk) -> None:
    with capture_logs() as logs:
        async with running_book(file) as book:
            assert await book.intent(order(1))
            disk.answers.clear()
            async with asyncio.timeout(LONG_S):
                assert not await book.intent(order(2)), "waits, but not for ever"
                await until(lambda: book.status.is_refusing)
                queued = book._writer._queue.qsize()
                assert not await book.intent(order(3)), "does not wait at all"
                assert await book.intent(order(4), is_cancel=True), "a cancel goes on"
            assert book._writer._queue.qsize() == queued
            for number in (2, 3):
                book.ended(order(number), Ending(Conclusion.NOT_SENT))
            disk.answers.set()
            await until(lambda: book.status.trouble is None)
            assert await book.intent(order(5))
    failed, recovered = logs
    assert (failed["event"], failed["log_level"], failed["orders"]) == ("journal_failed", "error", "refused")
    assert failed["cause"] == "the disk does not respond"
    assert recovered["event"] == "journal_recovered"
    assert sorted(read(file, "id, state")) == [
        ("a1-1", "sent"),
        ("a1-2", "not_sent"),
        ("a1-5", "sent"),
    ]


async def test_where_orders_go_on_without_a_record_no_hang_holds_them(file: Path, disk: Disk) -> None:
    with capture_logs() as logs:
        async with running_book(file, CARELESS) as book:
            disk.answers.clear()
            async with asyncio.timeout(LONG_S):
                assert await book.intent(order(1))
                await until(lambda: book.status.trouble is not None)
                assert await book.intent(order(2))
            assert not book.status.is_refusing
            disk.answers.set()
    assert (logs[0]["event"], logs[0]["orders"]) == ("journal_failed", "sent without a record")


async def test_a_loop_that_was_held_is_no_disk_that_hangs(
    file: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait is over before the disk had its time: it gets a moment more."""
    monkeypatch.setattr(book_module, "HANGS_AFTER_S", 0.0)
    monkeypatch.setattr(book_module, "_PATIENCE_S", LONG_S)
    with capture_logs() as logs:
        async with running_book(file) as book:
            disk.answers.clear()
            asyncio.get_running_loop().call_later(0.01, disk.answers.set)
            assert await book.intent(order(1))
    assert logs == []


async def test_a_full_queue_is_no_disk_that_hangs_and_is_not_waited_for(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_MOST_OWED", 0)
    monkeypatch.setattr(book_module, "HANGS_AFTER_S", PATIENCE_S)
    with capture_logs() as logs:
        async with running_book(file) as book, asyncio.timeout(LONG_S):
            assert not await book.intent(order(1)), "nothing has it"
            assert await book.intent(order(2), is_cancel=True), "a cancel goes on"
    assert logs == []


async def test_a_disk_that_hangs_and_then_refuses(file: Path, disk: Disk) -> None:
    with capture_logs() as logs:
        async with running_book(file) as book:
            disk.answers.clear()
            assert not await book.intent(order(1))
            await until(lambda: book.status.trouble is not None)
            disk.trouble = FULL
            disk.answers.set()
            await until(lambda: book.status.trouble == str(FULL))
            disk.trouble = None
            await until(lambda: book.status.trouble is None)
    assert [line["event"] for line in logs] == ["journal_failed", "journal_failed", "journal_recovered"]


async def test_what_waits_for_a_disk_that_hangs_has_a_bound(
    file: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_MOST_OWED", 3)
    async with running_book(file) as book:
        disk.answers.clear()
        assert not await book.intent(order(1))
        for number in range(10):
            book.ended(order(number), DONE)
        assert book._writer._queue.qsize() <= 3
        disk.answers.set()


async def test_a_writer_that_hangs_keeps_the_file_from_another_gateway(
    file: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may write yet. Here the disk answers in the end; else the lock goes with the process."""
    monkeypatch.setattr(writer, "_STOP_S", 0.05)
    book = OrderJournal(file, KEEPING, System())
    await book.intent(order(1))
    disk.answers.clear()
    book.ended(order(1), DONE)
    with capture_logs() as logs:
        await book.close()
    assert [line["event"] for line in logs] == ["journal_hangs"]
    with pytest.raises(JournalError, match="another gateway uses it"):
        OrderJournal(file, KEEPING, System())
    disk.answers.set()
    await until(lambda: not book._writer._thread.is_alive())
    await book.close()
    assert read(file, "id, state") == [("a1-1", "done")]
    async with running_book(file):
        pass


def remove(file: Path) -> None:
    for part in ("", "-wal", "-shm"):
        Path(f"{file}{part}").unlink(missing_ok=True)


def names_in(folder: Path) -> set[str]:
    return {part.name for part in folder.iterdir()}


def move(file: Path, place: Path) -> None:
    file.rename(place)


def replace(file: Path) -> None:
    move(file, file.with_name("elsewhere"))
    prepare(file)


async def test_a_file_that_was_removed_is_a_failure_until_the_restart(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty one in its place would know no key: its order could be sent twice after the restart."""
    monkeypatch.setattr(writer, "_LOOK_S", 3600.0)
    with capture_logs() as logs:
        async with running_book(file) as book:
            assert await book.intent(order(1))
            remove(file)
            assert not await book.intent(order(2)), "noticed before the order, not by and by"
            assert book.status.trouble == "the file was moved away or deleted"
    assert logs[0]["event"] == "journal_failed"
    assert "put the same file back; or look up" in logs[0]["fix"]
    assert names_in(file.parent) == {"journal.db-lock"}
    async with running_book(file) as book:
        assert await book.intent(order(3))


async def test_one_that_is_replaced_too(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_LOOK_S", 3600.0)  # else it might look while there is no file
    with capture_logs() as logs:
        async with running_book(file) as book:
            assert await book.intent(order(1))
            replace(file)
            assert not await book.intent(order(2))
    assert logs[0]["cause"] == "another file is in its place"
    assert read(file, "id") == []


async def test_one_that_is_moved_away_and_back_has_lost_nothing(file: Path) -> None:
    elsewhere = file.with_name("elsewhere")
    async with running_book(file) as book:
        assert await book.intent(ORDER)
        move(file, elsewhere)
        book.ended(ORDER, DONE)
        await until(lambda: book.status.is_refusing)
        move(elsewhere, file)
        await until(lambda: book.status.trouble is None)
        assert await book.intent(order(2))
    assert read(file, "id, state") == [("a1-1", "done"), ("a1-2", "sent")]


def test_one_that_is_moved_away_takes_the_latest_orders_along(file: Path) -> None:
    ledger = ledger_with(file, KEEPING, sent_row(order(1)))
    elsewhere = file.rename(file.with_name("elsewhere"))
    with pytest.raises(JournalMovedError):
        ledger.write([sent_row(order(2))])
    ledger.close()
    assert read(elsewhere, "id") == [("a1-1",)]


def test_nothing_else_makes_a_new_one_in_its_place(file: Path) -> None:
    halts, limits = HaltsTable(file), LimitsTable(file)
    remove(file)
    with pytest.raises(JournalError, match="unable to open"):
        halts.write(Halts())
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        limits.keep({}, wall=1.0)
    assert not file.exists()


def ledger_with(file: Path, keeping: Keeping, *rows: Row) -> Ledger:
    ledger = Ledger(file, keeping)
    ledger.write(rows)
    return ledger


def test_old_orders_are_pruned_but_never_one_in_doubt(file: Path) -> None:
    rows = [settled_row(order(number), DONE, number * 1000) for number in range(10)]
    doubtful = [sent_row(order(98)), settled_row(order(99), UNKNOWN, 0)]
    ledger = ledger_with(file, Keeping(5.0, 10**8), *rows, *doubtful)
    ledger.look_after(wall=10.0)
    ledger.close()
    left = [row[0] for row in read(file, "id")]
    assert left == [*(f"a1-{number}" for number in range(5, 10)), "a1-98", "a1-99"]


def keyed(number: int, bot: str = "grid", *, is_keyed: bool = True) -> Order:
    key = {"idempotency_key": f"k-{number}"} if is_keyed else {"idempotency_key": None, "digest": None}
    return ORDER._replace(id=f"{bot}-{number}", bot=bot, **key)


def large_row(number: int) -> Row:
    ending = Ending(Conclusion.DONE, 0, BotReply(200, "OK", (), bytes(10_000)))
    return settled_row(keyed(number), ending, number)


def test_the_file_has_a_bound_for_which_the_oldest_replies_go(file: Path) -> None:
    keeping = Keeping(longest_s=10**6, most_bytes=5_000_000)
    ledger = ledger_with(file, keeping, *(large_row(number) for number in range(1000)))
    ledger.look_after(wall=10.0)
    ledger.close()
    assert keeping.most_bytes / 2 < file.stat().st_size <= keeping.most_bytes
    kept = [body is not None for (body,) in read(file, "body")]
    assert len(kept) == 1000, "no key is forgotten"
    assert kept == sorted(kept), "the oldest went"
    assert any(kept)


def shed_to(file: Path, most_bytes: int, *rows: Row) -> None:
    """Look after a file, with a bound that many bytes above an empty one's, until nothing changes."""
    ledger = Ledger(file, KEEPING)
    ledger.write([])
    with closing(connect(file)) as database:
        empty = orders.used_bytes(database)
    ledger.close()
    ledger = ledger_with(file, Keeping(10**9, empty + most_bytes), *rows)
    before = None
    while before != (before := read(file, "id, head")):
        ledger.look_after(wall=10.0)
    ledger.close()


def names(file: Path) -> list[str]:
    return [str(name) for (name,) in read(file, "id")]


def test_small_replies_give_room_too(file: Path) -> None:
    """What is in a page beside others is given back only when the page is."""
    reply = BotReply(200, "OK", (), b"x" * 900)
    rows = [
        settled_row(keyed(number, bot), Ending(Conclusion.DONE, 0, reply), number)
        for number in range(1000)
        for bot in ("one", "other")
    ]
    shed_to(file, 1_600_000, *rows)
    assert len(names(file)) == len(rows), "replies were enough"
    assert any(head is not None for (head,) in read(file, "head"))


def test_a_key_whose_reply_went_is_still_spent(file: Path) -> None:
    leave_behind(file, settled_row(keyed(1), DONE, 1))
    with closing(connect(file)) as database:
        orders.drop_replies(database, "grid", 100)
        (kept,) = orders.kept_replays(database, 0, 10, 1)
    assert kept == Kept(Name("grid", "k-1"), "d" * 64, Ending(Conclusion.DONE, ORDER.fence_ms), 0.0)


def test_an_order_whose_reply_went_counts_once_for_its_bots_policy(file: Path) -> None:
    leave_behind(file, settled_row(keyed(1)._replace(counted=1), DONE, 1))
    with closing(connect(file)) as database:
        orders.drop_replies(database, "grid", 100)
        assert [count for _, _, count in orders.passed(database)] == [1]


@pytest.mark.parametrize(
    ("states", "counts"),
    [
        (["sent"], [(10, 2)]),
        (["sent", "done"], [(10, 2)]),
        (["sent", "unknown"], [(10, 2)]),
        (["sent", "not_sent"], []),
        (["not_sent"], []),  # its intent could not be written
        (["sent", "sent later", "done later"], [(11, 2)]),
        (["sent", "sent later", "not_sent later"], []),
    ],
)
def test_only_what_was_sent_counts_for_a_bots_policy_and_once(
    file: Path, states: Sequence[str], counts: Sequence[tuple[int, int]]
) -> None:
    prepare(file)
    with closing(connect(file)) as database:
        for state, _, later in (state.partition(" ") for state in states):
            one = order(1)._replace(counted=2, sent_ms=11_000 if later else 10_999)
            row = sent_row(one) if state == "sent" else settled_row(one, Ending(Conclusion(state), 0), 1)
            orders.write(database, [row])
        assert [(at_s, count) for _, at_s, count in orders.passed(database)] == counts


def test_what_was_not_sent_leaves_the_counts_of_others(file: Path) -> None:
    prepare(file)
    with closing(connect(file)) as database:
        one, other, free = (order(n)._replace(counted=n, sent_ms=10_000) for n in (1, 2, 0))
        orders.write(database, [sent_row(one), sent_row(other), sent_row(free)])
        orders.write(database, [settled_row(one, Ending(Conclusion.NOT_SENT, 0), 1)])
        assert list(orders.passed(database)) == [("grid", 10, 2)]


def test_what_has_no_key_goes_before_what_has_one(file: Path) -> None:
    keyless = [settled_row(keyed(n, "calm", is_keyed=False), DONE, n) for n in range(2000)]
    with_key = [settled_row(keyed(n, "busy"), DONE, n) for n in range(2000, 3000)]
    shed_to(file, 450_000, *keyless, *with_key)
    left = names(file)
    assert [name for name in left if name.startswith("busy")] == [f"busy-{n}" for n in range(2000, 3000)]
    assert "calm-0" not in left


def test_no_bot_makes_anothers_keys_forgotten(file: Path) -> None:
    """The calm one's are the oldest of all, and the busy one fills the file many times over."""
    calm = [settled_row(keyed(n, "calm"), DONE, n) for n in range(50)]
    busy = [settled_row(keyed(n, "busy"), DONE, n) for n in range(50, 5000)]
    shed_to(file, 200_000, *calm, *busy)
    left = names(file)
    assert left[:50] == [f"calm-{n}" for n in range(50)]
    assert 50 < len(left) < 1000
    assert left[-1] == "busy-4999", "its oldest went"


def test_nor_by_orders_in_doubt(file: Path) -> None:
    calm = [settled_row(keyed(n, "calm"), DONE, n) for n in range(50)]
    busy = [settled_row(keyed(n, "busy"), UNKNOWN, n) for n in range(50, 5000)]
    shed_to(file, 200_000, *calm, *busy)
    assert len(names(file)) == 5000


def test_bots_that_fill_the_file_together_share_it(file: Path) -> None:
    rows = [settled_row(keyed(n, bot), DONE, n) for n in range(2000) for bot in ("one", "other")]
    shed_to(file, 400_000, *rows)
    left = names(file)
    shares = [sum(name.startswith(f"{bot}-") for name in left) for bot in ("one", "other")]
    assert min(shares) > 0.8 * max(shares) > 0


def test_orders_in_doubt_may_exceed_the_bound(file: Path) -> None:
    rows = [settled_row(order(number), UNKNOWN, 0) for number in range(SHOWN + 20)]
    ledger = ledger_with(file, Keeping(1.0, most_bytes=1), *rows)
    ledger.look_after(wall=10.0)
    ledger.close()
    assert (ledger.in_doubt, len(ledger.doubts)) == (SHOWN + 20, SHOWN)
    assert len(read(file, "id")) == SHOWN + 20


def test_the_log_before_the_file_stays_small(file: Path) -> None:
    ledger = Ledger(file, KEEPING)
    for turn in range(4):
        ledger.write([sent_row(order(turn * 1000 + number)) for number in range(1000)])
        ledger.look_after(wall=0.0)
    size = Path(f"{file}-wal").stat().st_size
    ledger.close()
    assert size < 2_000_000


def test_a_file_that_was_damaged_meanwhile_is_not_opened_again(file: Path) -> None:
    ledger = Ledger(file, KEEPING)
    content = file.read_bytes()
    with file.open("r+b") as raw:
        raw.write(content[:100] + b"\xff" * (len(content) - 100))
    with pytest.raises((JournalError, sqlite3.DatabaseError), match=r"damaged|malformed"):
        ledger.write([])


async def test_a_loop_that_is_closed_keeps_no_record_from_the_file(file: Path) -> None:
    """Whoever waited for it is gone; the thread writes, and ends."""
    loop = asyncio.new_event_loop()

    async def make() -> Writer:
        made = Writer(Ledger(file, KEEPING), KEEPING, System(), Ages(0.0, 0.0, None))
        made.put(Item(sent_row(ORDER), loop.create_future()))
        return made

    made = await asyncio.to_thread(loop.run_until_complete, make())
    loop.close()
    made.start()
    assert await asyncio.to_thread(made.stop)
    assert read(file, "id") == [("a1-1",)]


BAD: dict[str, tuple[str, object]] = {
    "no such state": ("state", "odd"),
    "no JSON": ("head", "OK"),
    "no list": ("head", "{}"),
    "too short": ("head", '["OK"]'),
    "a phrase that is none": ("head", "[5, []]"),
    "fields that are none": ("head", '["OK", [[1, 2]]]'),
    "a field alone": ("head", '["OK", [["X-A"]]]'),
    "text that is no latin-1": ("head", json.dumps(["OK", [["X-A", "€"]]])),
    "too deep": ("head", "[" * 100_000),
    "no UTF-8": ("head", b"\xff"),
    "a head without a body": ("body", None),
    "a head without a status": ("status", None),
}


@pytest.mark.parametrize(("column", "value"), BAD.values(), ids=BAD)
async def test_a_row_that_is_damaged_is_told_like_any_damage(
    tmp_path: Path, column: str, value: object
) -> None:
    """SQLite's own check sees nothing there: the bytes are only other ones."""
    file = tmp_path / "journal.db"
    leave_behind(file, settled_row(RECENT, DONE, now_ms()))
    kind = "CAST(? AS TEXT)" if value == b"\xff" else "?"
    with closing(connect(file)) as database, database:
        database.execute(f"UPDATE orders SET {column} = {kind}", (value,))  # noqa: S608 - a test's
    with pytest.raises(JournalError) as refused:
        OrderJournal(file, KEEPING, System())
    assert str(refused.value) == (
        f"journal.file {file}: damaged; move it away, and look up the latest orders at the exchange"
    )
