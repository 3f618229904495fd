"""What was learned of limits, on its way into the file and out of it; bad rows are in test_journal.py."""

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from exchange.test_kept_clock import EPOCH, HandHost
from limits.test_status import kept as kept_limit
from sealgate.limits.memory import Snapshot
from sealgate.limits.pacer import Pacer, PacerSettings
from sealgate.limits.scheduler import RateScheduler
from sealgate.orders.journal import LimitsKeeper, LimitsTable
from sealgate.orders.journal.file import connect, prepare
from sealgate.orders.journal.learned import read_learned

LEARNED = kept_limit(20.0, 1.0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "journal.db"
    prepare(path)
    return path


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


def schedulers(host: HandHost, *subjects: str) -> Mapping[str, RateScheduler]:
    made = {subject: RateScheduler(Pacer(PacerSettings(), lambda: 0.0), host) for subject in subjects}
    for scheduler in made.values():
        scheduler.restore(LEARNED)
    return made


def kept(file: Path) -> dict[str, Snapshot]:
    with closing(connect(file)) as database:
        subjects = [subject for (subject,) in database.execute("SELECT subject FROM learned")]
        return {subject: read_learned(database, subject, EPOCH) for subject in subjects}


async def test_it_is_written_once_a_minute_as_it_is_then(file: Path) -> None:
    host = Rounds(1)
    keeper = LimitsKeeper(LimitsTable(file), host)
    keeper.follow(schedulers(host, "one", "other"))
    with pytest.raises(asyncio.CancelledError):
        await keeper.run()
    assert host.slept == [60.0, 60.0]
    assert {subject: [limit["window"] for limit in limits] for subject, limits in kept(file).items()} == {
        "one": [1.0],
        "other": [1.0],
    }


async def test_what_is_followed_no_more_stays_as_it_was_last(file: Path) -> None:
    """A key that comes back after a reload begins with what was learned of it."""
    host = HandHost()
    keeper = LimitsKeeper(LimitsTable(file), host)
    keeper.follow(schedulers(host, "old"))
    await keeper.keep()
    keeper.follow(schedulers(host, "new"))
    await keeper.keep()
    assert set(kept(file)) == {"old", "new"}
    assert list(keeper.recall(["old", "new"])) == ["old"], "what is followed knows better"


def test_what_was_never_learned_is_nothing(file: Path) -> None:
    assert LimitsKeeper(LimitsTable(file), HandHost()).recall(["new"]) == {"new": []}


def spoil_by_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def spoil_by_text(file: Path) -> None:
    file.write_text("no database, " * 100)


SPOILT: dict[str, tuple[Callable[[Path], None], str]] = {
    "gone": (Path.unlink, "unable to open database file"),
    "a folder": (spoil_by_folder, "unable to open database file"),
    "no database": (spoil_by_text, "file is not a database"),
}


@pytest.mark.parametrize(("spoil", "cause"), SPOILT.values(), ids=SPOILT)
async def test_a_file_that_cannot_be_used_costs_the_memory_alone(
    file: Path, spoil: Callable[[Path], None], cause: str
) -> None:
    host = HandHost()
    keeper = LimitsKeeper(LimitsTable(file), host)
    spoil(file)
    logs: list[MutableMapping[str, Any]]
    with capture_logs() as logs:
        assert keeper.recall(["main"]) == {}
        keeper.follow(schedulers(host, "main"))
        await keeper.keep()
    assert [(one["event"], one["cause"]) for one in logs] == [
        ("journal_not_read", cause),
        ("journal_not_written", cause),
    ]


async def test_a_disk_that_is_full_keeps_what_was_written_before(file: Path) -> None:
    host = HandHost()
    keeper = LimitsKeeper(LimitsTable(file), host)
    keeper.follow(schedulers(host, "one"))
    await keeper.keep()
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(
            "CREATE TRIGGER full BEFORE INSERT ON learned WHEN NEW.subject = 'two'"
            " BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
        )
    keeper.follow(schedulers(host, "one", "two"))
    with capture_logs() as logs:
        await keeper.keep()
    assert [one["cause"] for one in logs] == ["disk is full"]
    assert set(kept(file)) == {"one"}
