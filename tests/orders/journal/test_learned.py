"""What was learned of limits, on its way into the file and out of it."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rig.hand_host import EPOCH, HandHost
from rig.journals import running_journal
from rig.kept_limit import kept as kept_limit
from sealgate.limits.pacer import Pacer
from sealgate.limits.pools import PacerSettings
from sealgate.limits.scheduler import RateScheduler
from sealgate.limits.snapshots import Snapshot
from sealgate.orders.journal import Journal, LearnedKeeper
from sealgate.orders.journal.file import connect
from sealgate.orders.journal.insight import Insight, look_into
from sealgate.orders.journal.learned import read_limits, write_limits
from sealgate.orders.prices import Prices

LEARNED = kept_limit(20.0, 1.0)
EXCHANGE = "https://api.example.com"
PLACE = f"{EXCHANGE} key 1 | all"
DAMAGED = "the learned limits are damaged, or from another version"


class Rounds(HandHost):
    """Who would sleep goes on at once, as often as that; then it is stopped."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self._rounds = rounds
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) > self._rounds:
            raise asyncio.CancelledError


def place(exchange: str) -> str:
    return f"{exchange} key 1 | all"


def keeper_of(journal: Journal, host: HandHost, *exchanges: str) -> LearnedKeeper:
    keeper = LearnedKeeper(journal, {}, host)
    keeper.follow(schedulers(host, *exchanges))
    return keeper


def schedulers(host: HandHost, *exchanges: str) -> Mapping[str, RateScheduler]:
    made = {one: RateScheduler(Pacer(PacerSettings(), lambda: 0.0), host) for one in exchanges}
    for exchange, scheduler in made.items():
        scheduler.restore({place(exchange): LEARNED})
    return made


def kept(file: Path) -> dict[str, Snapshot]:
    with closing(connect(file)) as database:
        subjects = [subject for (subject,) in database.execute("SELECT subject FROM learned")]
        exchanges = {subject.partition(" ")[0] for subject in subjects}
        return {one: read_limits(database, one, EPOCH)[0][place(one)] for one in exchanges}


def test_what_was_learned_comes_back_older(database: sqlite3.Connection) -> None:
    write_limits(database, {PLACE: LEARNED}, 1000.0)
    assert read_limits(database, EXCHANGE, 1060.0) == ({PLACE: [{**LEARNED[0], "age": 240.0}]}, {})
    back = read_limits(database, EXCHANGE, 10.0)
    assert back == ({PLACE: LEARNED}, {}), "a wall clock set back makes nothing younger"
    assert read_limits(database, "https://api.example", 1000.0) == ({}, {}), "the name of another exchange"


def test_pools_that_nothing_passes_any_more_are_forgotten_after_a_month(database: sqlite3.Connection) -> None:
    write_limits(database, {PLACE: LEARNED}, 1000.0)
    month_s = 31 * 86_400.0
    assert read_limits(database, EXCHANGE, 1000.0 + month_s) == ({}, {})
    write_limits(database, {f"{PLACE} | GET /orders": LEARNED}, 1000.0 + month_s)
    assert database.execute("SELECT subject FROM learned").fetchall() == [(f"{PLACE} | GET /orders",)]


def test_what_holds_no_more_leaves_no_row(database: sqlite3.Connection) -> None:
    write_limits(database, {PLACE: LEARNED}, 1000.0)
    write_limits(database, {PLACE: []}, 1060.0)
    assert read_limits(database, EXCHANGE, 1060.0) == ({}, {})


async def test_it_is_written_once_a_minute_as_it_is_then(file: Path) -> None:
    host = Rounds(1)
    async with running_journal(file) as journal:
        with pytest.raises(asyncio.CancelledError):
            await keeper_of(journal, host, "one", "other").run()
        assert host.slept == [60.0, 60.0]
        assert {subject: [limit["window"] for limit in limits] for subject, limits in kept(file).items()} == {
            "one": [1.0],
            "other": [1.0],
        }


async def test_what_is_followed_no_more_stays_as_it_was_last(file: Path) -> None:
    """A key that comes back after a reload begins with what was learned of it."""
    host = HandHost()
    async with running_journal(file) as journal:
        keeper = keeper_of(journal, host, "old")
        await keeper.keep()
        keeper.follow(schedulers(host, "new"))
        await keeper.keep()
        assert set(kept(file)) == {"old", "new"}
        assert list(keeper.recall(["old", "new"])) == ["old"], "what is followed knows better"
        assert keeper.recall(["other"]) == {"other": {}}


async def test_pauses_that_begin_together_are_written_together(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bot that meets one in each of many pools must not keep the disk from the orders of others."""
    host, writes = HandHost(), 0

    async def keep(self: LearnedKeeper) -> None:
        nonlocal writes
        writes += 1
        await whole(self)

    whole = LearnedKeeper.keep
    monkeypatch.setattr(LearnedKeeper, "keep", keep)
    async with running_journal(file) as journal:
        keeper, made = LearnedKeeper(journal, {}, host), schedulers(host, "one")
        keeper.follow(made)
        for _ in range(2):
            for number in range(50):
                made["one"].shut_out(f"one key {number + 50 * writes}", host.now() + 900.0)
            await journal.run(lambda _: None)
        while len(asyncio.all_tasks()) > 1:
            await journal.run(lambda _: None)
    assert writes == 2
    with closing(connect(file)) as database:
        assert len(read_limits(database, "one", EPOCH)[0]) == 101


def move_away(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))


def put_a_folder_in_its_place(file: Path) -> None:
    move_away(file)
    file.mkdir()


@pytest.mark.parametrize("spoil", [move_away, put_a_folder_in_its_place])
async def test_a_file_that_cannot_be_used_costs_the_memory_alone(
    file: Path, spoil: Callable[[Path], None]
) -> None:
    async with running_journal(file) as journal:
        keeper = LearnedKeeper(journal, {"exchange": Prices()}, HandHost())
        spoil(file)
        with capture_logs() as logs:
            assert keeper.recall(["main"]) == {}
            keeper.recall_prices()
            await keeper.keep()
    told = [line["event"] for line in logs if line["event"] != "journal_failed"]
    assert told == ["journal_not_read", "journal_not_read", "journal_not_written"]


async def test_a_disk_that_is_full_keeps_what_was_written_before(file: Path) -> None:
    host = HandHost()
    async with running_journal(file) as journal:
        keeper = keeper_of(journal, host, "one")
        await keeper.keep()
        with closing(sqlite3.connect(file)) as database, database:
            database.execute(
                "CREATE TRIGGER full BEFORE INSERT ON learned WHEN NEW.subject LIKE 'two %'"
                " BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
            )
        keeper.follow(schedulers(host, "one", "two"))
        with capture_logs() as logs:
            await keeper.keep()
        assert [one["cause"] for one in logs] == ["disk is full"]
        assert set(kept(file)) == {"one"}


def put(file: Path, subject: str, limits: str) -> None:
    """Write a row as no gateway does; `limits` is an SQL expression."""
    with closing(connect(file)) as database, database:
        database.execute(f"INSERT INTO learned VALUES (?, {limits}, {EPOCH})", (subject,))  # noqa: S608 - a test's


OLD = {"n": 20.0, "window": 1.0, "scope": 0, "seen": 14.0, "age": 180.0}
BAD_ROWS = {
    "what an older version learned": f"'{json.dumps([OLD])}'",
    "no fields": "'[{}]'",
    "no limits": "'[1]'",
    "no list": "'{}'",
    "a good one and a bad one": f"'{json.dumps([*LEARNED, {}])}'",
    "a number beyond floats": f"'{json.dumps([{**LEARNED[0], 'n': 10**400}])}'",
    "too deep": f"'{'[' * 100_000}'",
    "no JSON": "'limits'",
    "no text": "CAST(x'ff' AS TEXT)",
}


@pytest.mark.parametrize("bad", BAD_ROWS.values(), ids=BAD_ROWS)
async def test_a_bad_row_is_left_out_and_told(file: Path, bad: str) -> None:
    async with running_journal(file) as journal:
        await journal.run(lambda database: write_limits(database, {PLACE: LEARNED}, EPOCH))
        put(file, f"{EXCHANGE} bad", bad)
        with capture_logs() as logs:
            found = LearnedKeeper(journal, {}, HandHost()).recall([EXCHANGE])
    assert found == {EXCHANGE: {PLACE: LEARNED}}
    (told,) = logs
    assert (told["event"], told["log_level"], told["limits"]) == ("journal_not_read", "warning", 1)
    assert told["cause"] == DAMAGED
    assert (
        told["fix"]
        == "after an update, nothing; otherwise check journal.file. The gateway learns the limits again"
    )
    assert look_into(file, [EXCHANGE, "new"], wall=EPOCH) == Insight(
        0, is_in_use=False, limits={PLACE: LEARNED}, unread=(f"{EXCHANGE} bad",)
    )


async def test_many_bad_rows_are_one_line(file: Path) -> None:
    async with running_journal(file) as journal:
        subjects = [f"bad-{number}" for number in range(3)]
        for subject in subjects:
            put(file, f"{EXCHANGE} {subject}", "'limits'")
        with capture_logs() as logs:
            assert LearnedKeeper(journal, {}, HandHost()).recall([EXCHANGE]) == {EXCHANGE: {}}
    assert [(line["event"], line["limits"]) for line in logs] == [("journal_not_read", 3)]
