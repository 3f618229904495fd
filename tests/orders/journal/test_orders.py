"""The journal of orders in one process: what it promises, in which order, and within which bounds."""

import asyncio
import dataclasses
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rig.damage import damage, empty_index
from rig.journals import DONE, KEEPING, ORDER, UNKNOWN, leave_behind, order, running_journal
from rig.wire import PATIENCE_S, let_pass, until
from sealgate.machine.system import System
from sealgate.orders.doubts import Doubt
from sealgate.orders.idempotency import Kept, Name
from sealgate.orders.journal import Journal, JournalError, Order, orders, thread
from sealgate.orders.journal import journal as journal_module
from sealgate.orders.journal.file import connect, prepare
from sealgate.orders.journal.journal import orders_in_doubt
from sealgate.orders.journal.rows import Row, is_sent, sent_row, settled_row
from sealgate.orders.journal.thread import DatabaseThread
from sealgate.orders.outcome import Conclusion, Ending
from sealgate.venues.routes import Lane

CARELESS = dataclasses.replace(KEEPING, must_be_written=False)
DOUBT = Doubt(
    "a1-1",
    "mine",
    "grid",
    "spot",
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


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread, "_LOOK_S", 0.005)


def read(file: Path, columns: str) -> list[tuple[object, ...]]:
    with closing(connect(file)) as database:
        return list(database.execute(f"SELECT {columns} FROM orders ORDER BY rowid"))  # noqa: S608 - a test's


async def test_an_intent_is_in_the_file_when_it_returns(file: Path) -> None:
    async with running_journal(file) as journal:
        assert await journal.intent(ORDER)
        assert read(file, ", ".join(Order._fields)) == [tuple(ORDER)]
        assert read(file, "state, status, settled_ms") == [("sent", None, None)]
        assert journal.status.in_doubt == 0, "it is under way"


async def test_an_order_sent_again_keeps_its_row(file: Path) -> None:
    again = ORDER._replace(attempts=2, timestamp_ms=ORDER.timestamp_ms + 700, fence_ms=ORDER.fence_ms + 700)
    async with running_journal(file) as journal:
        await journal.intent(ORDER)
        await journal.intent(again)
        assert read(file, "timestamp_ms, fence_ms, attempts") == [(again.timestamp_ms, again.fence_ms, 2)]


async def test_all_that_waits_is_one_transaction_in_its_order(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[list[object]] = []
    write = orders.write

    def noting(database: sqlite3.Connection, rows: Sequence[Row]) -> None:
        written.append([(row[0], is_sent(row)) for row in rows])
        write(database, rows)

    monkeypatch.setattr(orders, "write", noting)
    monkeypatch.setattr(thread, "_LOOK_S", 3600.0)
    async with running_journal(file) as journal:
        await journal.intent(order(0))
        with closing(connect(file)) as other:
            other.execute("BEGIN IMMEDIATE")  # a slow disk: the writer stands in its transaction
            first = asyncio.ensure_future(journal.intent(order(1)))
            await until(lambda: [("a1-1", True)] in written)
            rest = [asyncio.ensure_future(journal.intent(order(number))) for number in (2, 3)]
            await let_pass(0)
            journal.ended(order(2), DONE)
            assert not first.done()
            other.rollback()
        assert await asyncio.gather(first, *rest) == [True, True, True]
    assert written[-1] == [], "what is owed at the end"
    assert written[-2] == [("a1-2", True), ("a1-3", True), ("a1-2", False)]


async def test_who_stops_waiting_leaves_the_others_unharmed(file: Path) -> None:
    async with running_journal(file) as journal:
        with closing(connect(file)) as other:
            other.execute("BEGIN IMMEDIATE")
            gone, stays = (asyncio.ensure_future(journal.intent(order(number))) for number in (1, 2))
            await let_pass(0)
            gone.cancel()
            other.rollback()
        assert await stays
        journal.ended(order(1), Ending(Conclusion.NOT_SENT))
    assert read(file, "id, state") == [("a1-1", "not_sent"), ("a1-2", "sent")]


async def test_an_unknown_outcome_is_in_doubt_at_once(file: Path) -> None:
    async with running_journal(file) as journal:
        await journal.intent(ORDER)
        journal.ended(ORDER, UNKNOWN)
        await journal.intent(order(2))
        assert (journal.status.in_doubt, journal.status.doubts) == (1, (DOUBT,))


async def test_what_was_under_way_is_in_doubt_after_a_crash(file: Path) -> None:
    leave_behind(file, sent_row(ORDER), settled_row(order(2), DONE, ORDER.sent_ms))
    with capture_logs() as logs:
        async with running_journal(file) as journal:
            assert (journal.status.in_doubt, journal.status.doubts) == (1, (DOUBT,))
    told = [line for line in logs if line["log_level"] == "warning"]
    assert [line["event"] for line in told] == ["orders_in_doubt", "order_in_doubt"]
    assert "--settle" in told[0]["fix"]
    assert (told[1]["request_id"], told[1]["fence_ms"]) == ("mine", ORDER.fence_ms)
    assert told[1]["exchange"] == "spot"


def now_ms() -> int:
    return int(System().wall() * 1000)


async def test_replies_come_back_after_a_restart(file: Path) -> None:
    async with running_journal(file) as journal:
        assert journal.recall() == []
        await journal.intent(ORDER)
        journal.ended(ORDER, DONE)
    async with running_journal(file) as journal:
        (kept,) = journal.recall()
    assert kept == Kept(Name("grid", "spot", "k-1"), "d" * 64, DONE, kept.age_s)
    assert 0 <= kept.age_s < PATIENCE_S


RECENT = ORDER._replace(sent_ms=now_ms())
BACK: dict[str, tuple[Row, Ending | None]] = {
    "under way": (sent_row(RECENT), UNKNOWN),
    "not sent": (settled_row(RECENT, Ending(Conclusion.NOT_SENT), now_ms()), None),
    "too old": (settled_row(ORDER, DONE, now_ms() - 3_601_000), None),
    "without a key": (settled_row(order(1), DONE, now_ms()), None),
}


@pytest.mark.parametrize(("row", "ending"), BACK.values(), ids=BACK)
async def test_what_comes_back_of(file: Path, row: Row, ending: Ending | None) -> None:
    leave_behind(file, row, settled_row(order(9), DONE, now_ms()))  # a newer one shows what time it was
    async with running_journal(file) as journal:
        assert [kept.ending for kept in journal.recall()] == ([] if ending is None else [ending])


async def test_of_each_bot_the_latest_at_each_exchange_come_back(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "MOST_REPLAYS", 2)
    names = [
        Name("calm", "spot", "k-0"),
        Name("busy", "perp", "k-0"),
        *(Name("busy", "spot", f"k-{number}") for number in range(5)),
    ]
    recent = [
        RECENT._replace(id=f"a1-{number}", bot=name.bot, exchange=name.exchange, idempotency_key=name.key)
        for number, name in enumerate(names)
    ]
    leave_behind(file, *(settled_row(one, DONE, now_ms()) for one in recent))
    async with running_journal(file) as journal:
        assert [kept.name for kept in journal.recall()] == [
            Name("busy", "spot", "k-4"),
            Name("busy", "spot", "k-3"),
            Name("busy", "perp", "k-0"),
            Name("calm", "spot", "k-0"),
        ]


async def test_a_settled_doubt_still_has_its_key(file: Path) -> None:
    leave_behind(file, sent_row(RECENT))
    with orders_in_doubt(file) as in_doubt:
        in_doubt.settle(in_doubt.doubts, now_ms())
    async with running_journal(file) as journal:
        assert [kept.ending for kept in journal.recall()] == [UNKNOWN]
        assert journal.status.in_doubt == 0


async def test_a_running_gateway_notices_what_is_settled_by_hand(file: Path) -> None:
    async with running_journal(file) as journal:
        await journal.intent(order(2))
        journal.ended(ORDER, UNKNOWN)
        await journal.intent(order(3))
        with orders_in_doubt(file) as in_doubt:
            assert in_doubt.doubts == (DOUBT,), "not those under way"
            in_doubt.settle(in_doubt.doubts, now_ms())
        await until(lambda: journal.status.in_doubt == 0)
        assert journal.status.doubts == ()


async def test_two_gateways_cannot_share_a_file(file: Path) -> None:
    async with running_journal(file):
        with pytest.raises(JournalError, match="another gateway uses it"):
            Journal(file, KEEPING, System())
    async with running_journal(file):
        pass


def write_something_else(file: Path) -> None:
    file.write_text("no journal, " * 100)


async def test_a_file_that_cannot_be_used_is_not_left_locked(file: Path) -> None:
    write_something_else(file)
    for _ in range(2):
        with pytest.raises(JournalError, match="file is not a database"):
            Journal(file, KEEPING, System())


async def test_orders_in_doubt_that_damage_hides_are_noticed_at_the_start(file: Path) -> None:
    leave_behind(file, settled_row(ORDER, UNKNOWN, 0))
    empty_index(file, "orders_in_doubt")
    with pytest.raises(JournalError, match="damaged; move it away"):
        Journal(file, KEEPING, System())


class Disk:
    """A disk that refuses, or does not answer, when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.trouble: Exception | None = None
        self.answers = threading.Event()
        self.answers.set()
        self._write = orders.write
        self._patch = monkeypatch
        monkeypatch.setattr(orders, "write", self.write)

    def hang(self) -> None:
        """Answer nothing; that is noticed sooner than it would be."""
        for module in (thread, journal_module):
            self._patch.setattr(module, "HANGS_AFTER_S", 0.5)
        self.answers.clear()

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
        async with running_journal(file) as journal:
            assert await journal.intent(order(1))
            disk.trouble = FULL
            assert not await journal.intent(order(2))
            assert not await journal.intent(order(3)._replace(lane=Lane.CANCEL)), "a lane makes no cancel"
            assert await journal.intent(order(4), is_cancel=True), "a cancel goes on"
            assert (journal.status.trouble, journal.status.is_refusing) == (str(FULL), True)
            disk.trouble = None
            await until(lambda: journal.status.trouble is None)
            assert await journal.intent(order(5))
            assert not journal.status.is_refusing
    failed, recovered = logs
    assert (failed["event"], failed["log_level"], failed["orders"]) == ("journal_failed", "error", "refused")
    assert failed["fix"].startswith("free space, or check journal.file;")
    assert recovered["event"] == "journal_recovered"
    # The cancel's record is written where the thread comes to it only when the disk is well again.
    assert [row[0] for row in read(file, "id") if row[0] != "a1-4"] == ["a1-1", "a1-5"]


async def test_or_they_go_on_without_a_record(file: Path, disk: Disk) -> None:
    with capture_logs() as logs:
        async with running_journal(file, CARELESS) as journal:
            disk.trouble = FULL
            assert await journal.intent(order(1))
            await until(lambda: journal.status.trouble is not None)  # the order did not wait for it
            assert (journal.status.trouble, journal.status.is_refusing) == (str(FULL), False)
            disk.trouble = None
    assert logs[0]["orders"] == "sent without a record"


async def test_endings_are_written_when_the_disk_is_back(file: Path, disk: Disk) -> None:
    with capture_logs() as logs:
        async with running_journal(file) as journal:
            await journal.intent(order(1))
            await journal.intent(order(2))
            disk.trouble = FULL
            journal.ended(order(1), DONE)
            journal.ended(order(2), UNKNOWN)
            await until(lambda: journal.status.trouble is not None)
            await journal.intent(order(3), is_cancel=True)
            journal.ended(order(3), UNKNOWN)
            await until(lambda: journal.status.in_doubt == 2)  # also while they are not written
            assert journal.status.by_exchange == {"spot": 2}
            disk.trouble = None
            await until(lambda: journal.status.trouble is None)
            assert journal.status.in_doubt == 2
    assert logs[-1] == {"event": "journal_recovered", "log_level": "warning", "written_late": 3}
    assert read(file, "id, state") == [("a1-1", "done"), ("a1-2", "unknown"), ("a1-3", "unknown")]


async def test_what_is_refused_while_the_disk_refuses_leaves_nothing_to_write(file: Path, disk: Disk) -> None:
    """A bot that tries on must not use up the space that is freed."""
    again, later = order(1)._replace(attempts=2), order(50)
    async with running_journal(file) as journal:
        await journal.intent(order(1))
        await journal.intent(later)
        disk.trouble = FULL
        assert not await journal.intent(order(2))
        journal.ended(order(2), Ending(Conclusion.NOT_SENT))
        await until(lambda: journal.status.trouble is not None)
        for number in range(3, 50):
            assert not await journal.intent(order(number))
            journal.ended(order(number), Ending(Conclusion.NOT_SENT))
        assert not await journal.intent(again), "its first attempt is in the file"
        journal.ended(again, Ending(Conclusion.NOT_SENT))
        assert not await journal.intent(later), (
            "it was recorded, a pause came before it was sent, and now this"
        )
        journal.ended(later, Ending(Conclusion.NOT_SENT))
        disk.trouble = None
        await until(lambda: journal.status.trouble is None)
    found = [("a1-1", "not_sent"), ("a1-50", "not_sent"), ("a1-2", "not_sent")]
    assert read(file, "id, state") == found


async def test_endings_that_were_never_written_are_told(file: Path, disk: Disk) -> None:
    with capture_logs() as logs:
        async with running_journal(file) as journal:
            await journal.intent(order(1))
            disk.trouble = FULL
            journal.ended(order(1), DONE)
    assert [line["event"] for line in logs] == ["journal_failed", "journal_incomplete"]
    async with running_journal(file) as journal:
        disk.trouble = None
        assert journal.status.in_doubt == 1


async def test_a_fault_of_the_program_does_not_end_the_thread(file: Path, disk: Disk) -> None:
    async with running_journal(file) as journal:
        disk.trouble = ZeroDivisionError()
        assert not await journal.intent(order(1))
        assert journal.status.trouble == "ZeroDivisionError"
        disk.trouble = None
        await until(lambda: journal.status.trouble is None)
        assert await journal.intent(order(2))


LONG_S = PATIENCE_S / 4  # much longer than any bound on waiting


async def test_a_disk_that_hangs_is_a_disk_that_refuses_until_it_answers(file: Path, disk: Disk) -> None:
    with capture_logs() as logs:
        async with running_journal(file) as journal:
            assert await journal.intent(order(1))
            disk.hang()
            async with asyncio.timeout(LONG_S):
                assert not await journal.intent(order(2)), "waits, but not for ever"
                await until(lambda: journal.status.is_refusing)
                queued = journal._thread._queue.qsize()
                assert not await journal.intent(order(3)), "does not wait at all"
                assert await journal.intent(order(4), is_cancel=True), "a cancel goes on"
            assert journal._thread._queue.qsize() == queued
            for number in (2, 3):
                journal.ended(order(number), Ending(Conclusion.NOT_SENT))
            disk.answers.set()
            await until(lambda: journal.status.trouble is None)
            assert await journal.intent(order(5))
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
        async with running_journal(file, CARELESS) as journal:
            disk.hang()
            async with asyncio.timeout(LONG_S):
                assert await journal.intent(order(1))
                await until(lambda: journal.status.trouble is not None)
                assert await journal.intent(order(2))
            assert not journal.status.is_refusing
            disk.answers.set()
    assert (logs[0]["event"], logs[0]["orders"]) == ("journal_failed", "sent without a record")


async def test_a_loop_that_was_held_is_no_disk_that_hangs(
    file: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait is over before the disk had its time: it gets a moment more."""
    monkeypatch.setattr(journal_module, "HANGS_AFTER_S", 0.0)
    monkeypatch.setattr(journal_module, "_PATIENCE_S", LONG_S)
    with capture_logs() as logs:
        async with running_journal(file) as journal:
            disk.answers.clear()
            asyncio.get_running_loop().call_later(0.01, disk.answers.set)
            assert await journal.intent(order(1))
    assert logs == []


async def test_a_full_queue_is_no_disk_that_hangs_and_is_not_waited_for(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread, "_MOST_OWED", 0)
    monkeypatch.setattr(journal_module, "HANGS_AFTER_S", PATIENCE_S)
    with capture_logs() as logs:
        async with running_journal(file) as journal, asyncio.timeout(LONG_S):
            assert not await journal.intent(order(1)), "nothing has it"
            assert await journal.intent(order(2), is_cancel=True), "a cancel goes on"
    assert logs == []


async def test_a_disk_that_hangs_and_then_refuses(file: Path, disk: Disk) -> None:
    with capture_logs() as logs:
        async with running_journal(file) as journal:
            disk.hang()
            assert not await journal.intent(order(1))
            await until(lambda: journal.status.trouble is not None)
            disk.trouble = FULL
            disk.answers.set()
            await until(lambda: journal.status.trouble == str(FULL))
            disk.trouble = None
            await until(lambda: journal.status.trouble is None)
    assert [line["event"] for line in logs] == ["journal_failed", "journal_failed", "journal_recovered"]


async def test_what_waits_for_a_disk_that_hangs_has_a_bound(
    file: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread, "_MOST_OWED", 3)
    async with running_journal(file) as journal:
        disk.hang()
        assert not await journal.intent(order(1))
        for number in range(10):
            journal.ended(order(number), DONE)
        assert journal._thread._queue.qsize() <= 3
        disk.answers.set()


async def test_a_writer_that_hangs_keeps_the_file_from_another_gateway(
    file: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may write yet. Here the disk answers in the end; else the lock goes with the process."""
    monkeypatch.setattr(thread, "_STOP_S", 0.05)
    journal = Journal(file, KEEPING, System())
    await journal.intent(order(1))
    disk.answers.clear()
    journal.ended(order(1), DONE)
    with capture_logs() as logs:
        await journal.close()
    assert [line["event"] for line in logs] == ["journal_hangs"]
    with pytest.raises(JournalError, match="another gateway uses it"):
        Journal(file, KEEPING, System())
    disk.answers.set()
    await until(lambda: not journal._thread._thread.is_alive())
    await journal.close()
    assert read(file, "id, state") == [("a1-1", "done")]
    async with running_journal(file):
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
    monkeypatch.setattr(thread, "_LOOK_S", 3600.0)
    with capture_logs() as logs:
        async with running_journal(file) as journal:
            assert await journal.intent(order(1))
            remove(file)
            assert not await journal.intent(order(2)), "noticed before the order, not by and by"
            assert journal.status.trouble == "the file was moved away or deleted"
    assert logs[0]["event"] == "journal_failed"
    assert "put the same file back; or look up" in logs[0]["fix"]
    assert names_in(file.parent) == {"journal.db-lock"}
    async with running_journal(file) as journal:
        assert await journal.intent(order(3))


async def test_one_that_is_replaced_too(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread, "_LOOK_S", 3600.0)  # else it might look while there is no file
    with capture_logs() as logs:
        async with running_journal(file) as journal:
            assert await journal.intent(order(1))
            replace(file)
            assert not await journal.intent(order(2))
    assert logs[0]["cause"] == "another file is in its place"
    assert read(file, "id") == []


async def test_one_that_is_moved_away_and_back_has_lost_nothing(file: Path) -> None:
    elsewhere = file.with_name("elsewhere")
    async with running_journal(file) as journal:
        assert await journal.intent(ORDER)
        move(file, elsewhere)
        journal.ended(ORDER, DONE)
        await until(lambda: journal.status.is_refusing)
        move(elsewhere, file)
        await until(lambda: journal.status.trouble is None)
        assert await journal.intent(order(2))
    assert read(file, "id, state") == [("a1-1", "done"), ("a1-2", "sent")]


async def test_one_that_is_moved_away_takes_the_latest_orders_along(file: Path) -> None:
    async with running_journal(file) as journal:
        assert await journal.intent(order(1))
        elsewhere = file.with_name("elsewhere")
        move(file, elsewhere)
        assert not await journal.intent(order(2))
        assert read(elsewhere, "id") == [("a1-1",)]


async def test_a_file_that_was_damaged_meanwhile_is_not_used_again(file: Path, disk: Disk) -> None:
    async with running_journal(file) as journal:
        disk.trouble = FULL
        assert not await journal.intent(order(1))
        damage(file)
        disk.trouble = None
        await until(lambda: journal.status.trouble not in {None, str(FULL)})
        assert journal.status.trouble in {"damaged", "database disk image is malformed"}


def test_a_loop_that_is_closed_keeps_no_record_from_the_file(file: Path) -> None:
    """Whoever waited for it is gone; the thread writes, and ends."""
    loop, is_closed = asyncio.new_event_loop(), threading.Event()

    async def make() -> DatabaseThread:
        made = DatabaseThread(file, connect(file), lambda _: None, System(), must_be_written=True)
        made.run(lambda _: is_closed.wait(PATIENCE_S))
        made.put(sent_row(ORDER), loop.create_future())
        return made

    prepare(file)
    made = loop.run_until_complete(make())
    loop.close()
    is_closed.set()
    assert made.stop()
    assert read(file, "id") == [("a1-1",)]


async def test_what_else_is_done_on_the_database_follows_the_orders_that_wait(file: Path, disk: Disk) -> None:
    async with running_journal(file) as journal:
        disk.answers.clear()
        intent = asyncio.ensure_future(journal.intent(ORDER))
        await let_pass(0)
        count = asyncio.ensure_future(journal.run(orders_written))
        await let_pass(0)
        disk.answers.set()
        assert await intent
        assert await count == 1


def orders_written(database: sqlite3.Connection) -> object:
    return database.execute("SELECT count(*) FROM orders").fetchone()[0]


def refuse(_: sqlite3.Connection) -> None:
    raise FULL


async def test_what_else_fails_is_told_to_its_caller_and_costs_no_order(file: Path) -> None:
    with capture_logs() as logs:
        async with running_journal(file) as journal:
            with pytest.raises(JournalError, match="disk is full; choose another writable path") as refused:
                await journal.run(refuse)
            assert refused.value.cause == str(FULL)
            assert await journal.intent(ORDER)
    assert logs == []


async def test_nothing_else_is_tried_while_the_disk_refuses(file: Path, disk: Disk) -> None:
    done: list[object] = []
    async with running_journal(file) as journal:
        disk.trouble = FULL
        assert not await journal.intent(ORDER)
        with pytest.raises(JournalError, match="database or disk is full; free space"):
            await journal.run(done.append)
        disk.trouble = None
        await until(lambda: journal.status.trouble is None)
        assert await journal.run(orders_written) == 0
    assert done == []


async def test_what_else_waits_for_a_disk_that_hangs_has_a_bound_and_is_done_later(
    file: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "HANGS_AFTER_S", 0.01)
    done: list[object] = []
    async with running_journal(file) as journal:
        disk.answers.clear()
        journal.ended(ORDER, DONE)
        with pytest.raises(JournalError, match="the disk does not respond; check the disk"):
            await journal.run(done.append)
        disk.answers.set()
    assert len(done) == 1


@pytest.mark.parametrize(("column", "value"), [("state", "'odd'"), ("head", "CAST(x'ff' AS TEXT)")])
async def test_a_row_that_is_damaged_is_told_like_any_damage(file: Path, column: str, value: str) -> None:
    leave_behind(file, settled_row(RECENT, DONE, now_ms()))
    with closing(connect(file)) as database, database:
        database.execute(f"UPDATE orders SET {column} = {value}")  # noqa: S608 - a test's
    with pytest.raises(JournalError) as refused:
        Journal(file, KEEPING, System())
    assert str(refused.value) == (
        f"journal.file {file}: damaged; move it away, and look up the latest orders at the exchange"
    )
