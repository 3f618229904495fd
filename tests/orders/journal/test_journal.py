"""What outlives the process, and what a disk that refuses costs."""

import asyncio
import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from limits.test_status import kept
from rig.bot import request
from rig.station import Station, running_station
from rig.upstream import Upstream, say
from rig.wire import OK, PATIENCE_S, reply
from sealgate.machine.system import System
from sealgate.orders.journal import JournalError, LimitsKeeper, LimitsTable, orders
from sealgate.orders.journal.file import as_journal_error, connect, prepare
from sealgate.orders.journal.learned import Insight, look_into

LEARNED = kept(20.0, 1.0)
SUBJECT = "https://api.example.com ak-1"
LIMITED = reply(b"429 Too Many Requests", b"{}", b"Retry-After: 0.2")


def made(file: Path) -> LimitsTable:
    prepare(file)
    return LimitsTable(file)


def test_what_was_learned_comes_back_older(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    made(file).keep({SUBJECT: LEARNED}, wall=1000.0)
    assert LimitsTable(file).learned(SUBJECT, wall=1060.0) == [{**LEARNED[0], "age": 240.0}]


def test_a_wall_clock_set_back_makes_nothing_younger(tmp_path: Path) -> None:
    journal = made(tmp_path / "journal.db")
    journal.keep({SUBJECT: LEARNED}, wall=1000.0)
    assert journal.learned(SUBJECT, wall=10.0) == LEARNED


def test_another_key_has_learned_nothing(tmp_path: Path) -> None:
    journal = made(tmp_path / "journal.db")
    journal.keep({SUBJECT: LEARNED}, wall=1000.0)
    assert journal.learned("https://api.example.com ak-2", wall=1000.0) == []


def put(file: Path, subject: str, limits: str) -> None:
    """Write a row as no gateway does; `limits` is an SQL expression."""
    with closing(connect(file)) as database, database:
        database.execute(f"INSERT INTO learned VALUES (?, {limits}, 1000.0)", (subject,))  # noqa: S608 - a test's


BAD_ROWS = {
    "no fields": "'[{}]'",
    "no limits": "'[1]'",
    "no list": "'{}'",
    "a good one and a bad one": f"'{json.dumps([*LEARNED, {}])}'",
    "a number beyond floats": f"'{json.dumps([{**LEARNED[0], 'n': 10**400}])}'",
    "too deep": f"'{'[' * 100_000}'",
    "no JSON": "'limits'",
    "no text": "CAST(x'ff' AS TEXT)",
}


def test_what_an_older_version_learned_is_dropped_with_one_line(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    journal = made(file)
    old = {"n": 20.0, "window": 1.0, "scope": 0, "seen": 14.0, "age": 180.0}
    put(file, "old", f"'{json.dumps([old])}'")
    with capture_logs() as logs:
        assert LimitsKeeper(journal, System()).recall(["old"]) == {}
    (line,) = logs
    assert line["cause"] == "what was learned is damaged, or of another version"


@pytest.mark.parametrize("bad", BAD_ROWS.values(), ids=BAD_ROWS)
def test_a_bad_row_is_left_out_and_told_where_it_is_asked_for(tmp_path: Path, bad: str) -> None:
    file = tmp_path / "journal.db"
    journal = made(file)
    journal.keep({SUBJECT: LEARNED}, wall=1000.0)
    put(file, "bad", bad)
    assert journal.learned(SUBJECT, wall=1000.0) == LEARNED, "the other row is not read"
    with capture_logs() as logs:
        kept = LimitsKeeper(journal, System()).recall(["bad", SUBJECT])
    assert [(subject, len(limits)) for subject, limits in kept.items()] == [(SUBJECT, 1)]
    (told,) = logs
    assert (told["event"], told["log_level"], told["limits"]) == ("journal_not_read", "warning", 1)
    assert told["fix"] == "nothing after an update, else check journal.file; the gateway learns them anew"


@pytest.mark.parametrize("bad", BAD_ROWS.values(), ids=BAD_ROWS)
def test_a_look_says_which_rows_are_bad(tmp_path: Path, bad: str) -> None:
    file = tmp_path / "journal.db"
    made(file).keep({SUBJECT: LEARNED}, wall=1000.0)
    put(file, "bad", bad)
    found = look_into(file, ["bad", SUBJECT, "new"], wall=1000.0)
    assert found == Insight(0, is_in_use=False, limits={SUBJECT: LEARNED, "new": []}, unread=("bad",))


def test_many_bad_rows_are_one_line(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    journal = made(file)
    subjects = [f"bad-{number}" for number in range(3)]
    for subject in subjects:
        put(file, subject, "'limits'")
    with capture_logs() as logs:
        assert LimitsKeeper(journal, System()).recall(subjects) == {}
    assert [(line["event"], line["limits"]) for line in logs] == [("journal_not_read", 3)]


def test_a_file_that_is_no_journal(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database, " * 100)
    with pytest.raises(JournalError, match=r"notes\.txt: file is not a database; name another"):
        prepare(file)
    assert file.read_text().startswith("not a database")


def test_a_full_disk_under_a_journal_that_is_there_asks_for_space_and_not_for_another_file(
    tmp_path: Path,
) -> None:
    """SQLite says only `disk I/O error` of it."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    with (
        pytest.raises(JournalError, match=r"journal\.db: disk I/O error; free space on that disk, or look"),
        as_journal_error(tmp_path / "journal.db"),
    ):
        raise error


def test_a_journal_of_another_version_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    prepare(file)
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE news (of TEXT)")
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(JournalError, match=r"made by another version \(99\); start the newer Sealgate that"):
        prepare(file)
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (99,)
        assert "CREATE TABLE news (of TEXT);" in database.iterdump()


async def learn_a_limit(station: Station) -> None:
    """Let three pass and refuse the fourth, until a limit is known."""
    upstream = station.upstream
    while not station.gateway.status().keys[0].limits:
        upstream.answers.extend([say(OK), say(OK), say(OK), say(LIMITED)])
        async with asyncio.timeout(30):
            for _ in range(4):
                await station.ask(request())


def put_a_folder_in_the_place_of(file: Path) -> None:
    for part in file.parent.iterdir():
        part.unlink()
    file.mkdir()


async def test_a_restart_remembers(upstream: Upstream, tmp_path: Path) -> None:
    journal = {"file": str(tmp_path / "journal.db")}
    async with running_station(upstream, journal=journal) as station:
        await learn_a_limit(station)
        (known,) = station.gateway.status().keys[0].limits
    async with running_station(upstream, journal=journal) as station:
        (remembered,) = station.gateway.status().keys[0].limits
    assert remembered.window_s == known.window_s
    assert remembered.seen == known.seen
    assert (remembered.n, remembered.low) == (known.n, known.low)


async def test_a_disk_that_refuses_costs_no_request(upstream: Upstream, tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    with capture_logs() as logs:
        async with running_station(upstream, journal={"file": str(file)}) as station:
            put_a_folder_in_the_place_of(file)
            assert (await station.ask(request())).status == 200
    (told,) = [line for line in logs if line["event"] == "journal_not_written"]
    assert "check journal.file" in told["fix"]


ORDER = request(b"POST", b"/v1/trade/order", body=b"{}")
CANCEL = request(b"DELETE", b"/v1/trade/order/1")


async def test_a_disk_that_hangs_holds_neither_cancel_nor_read_and_orders_not_for_long(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More orders than there are connections wait for it: the others go at once, the orders are refused."""
    answers, write = threading.Event(), orders.write

    def hang(*arguments: Any) -> None:
        answers.wait(PATIENCE_S)
        write(*arguments)

    monkeypatch.setattr(orders, "write", hang)
    journal = {"file": str(tmp_path / "journal.db")}
    async with running_station(upstream, journal=journal, upstream={"max_connections": 4}) as station:
        begun = [asyncio.ensure_future(station.ask(ORDER)) for _ in range(8)]
        await station.until(lambda: station.gateway.handler.inflight == len(begun))
        for message in (CANCEL, request()):
            assert (await station.ask(message)).outcome == "done"
        assert not any(order.done() for order in begun)
        for answer in await asyncio.gather(*begun):
            assert (answer.status, answer.reason, answer.outcome) == (503, "halted", "not_sent")
        assert station.gateway.status().not_ready == (
            "the journal cannot be written: the disk does not respond",
        )
        for message in (CANCEL, request()):
            assert (await station.ask(message)).outcome == "done"
        answers.set()
        await station.until(lambda: not station.gateway.status().not_ready)
        assert (await station.ask(ORDER)).outcome == "done"
    assert upstream.receipts(b"/v1/trade/order") == 1
