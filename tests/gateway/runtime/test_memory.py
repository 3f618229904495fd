"""What outlives every tree: with a journal and without, and what a limit is remembered by."""

import contextlib
from pathlib import Path
from typing import Any

import pytest

from core.limits.test_memory import kept
from gateway.clock.test_kept import HandHost
from rig.admitted import signing_key, ticket
from rig.generation import generation_of
from rig.station import KEY, make_config
from sealgate.config import Config
from sealgate.core.halts import Scope
from sealgate.core.outcome import Conclusion
from sealgate.errors import Refusal
from sealgate.gateway.journal import JournalError, LimitsTable
from sealgate.gateway.request.context import InFlightRequests, RequestContext
from sealgate.gateway.request.replies import Reply
from sealgate.gateway.runtime.memory import build_books, build_halting, build_keeper, subject, subjects

URL = "http://127.0.0.1:9"
LEARNED = kept(20.0, 1.0)
SEALER = signing_key().sealer
KEYED = ticket("POST /order", (b"Idempotency-Key", b"k-1"))


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return make_config(URL, journal={"file": str(tmp_path / "journal.db")})


def test_a_limit_is_remembered_by_exchange_and_key() -> None:
    config = make_config(URL, keys={"main": {**KEY, "api_key": "ak-1"}})
    assert subject(config, "main") == f"{URL} ak-1"


async def test_without_a_journal_nothing_is_written_and_nothing_kept() -> None:
    config, host = make_config(URL), HandHost()
    books = build_books(config, host)
    assert not books.must_record(KEYED)
    assert await build_halting(config, InFlightRequests(), host).halt(Scope()) is not None
    async with generation_of(config, host) as tree:
        assert build_keeper(config, tree, host) is None
    assert (await build_halting(config, InFlightRequests(), host).resume(Scope())).had_been, (
        "it knows of no halt"
    )


async def test_a_reply_is_known_after_a_restart(config: Config) -> None:
    host = HandHost()
    books, context = build_books(config, host), RequestContext("r-1", host.now(), "POST")
    assert books.begin(KEYED, b"{}", SEALER, context) is None
    await books.intent(KEYED, b"{}", context)
    context.attempts, context.conclusion = 1, Conclusion.DONE
    books.ended(context, Reply(201, "Created", (), b"abc"))
    await books.close()
    again = build_books(config, host)
    known = again.begin(KEYED, b"{}", SEALER, RequestContext("r-2", host.now(), "POST"))
    await again.close()
    assert known is not None
    assert (known.status, known.body) == (201, b"abc")


async def test_a_halt_stands_after_a_restart(config: Config) -> None:
    host = HandHost()
    books = build_books(config, host)
    halted = await build_halting(config, InFlightRequests(), host).halt(Scope("grid"))
    assert halted.forgotten_because is None
    assert build_halting(config, InFlightRequests(), host).halts == halted.halts
    await books.close()


async def test_a_key_starts_from_what_was_learned_and_goes_on_to_be_kept(config: Config) -> None:
    host, file = HandHost(), config.journal.file
    assert file is not None
    books = build_books(config, host)
    LimitsTable(file).keep({subject(config, "main"): LEARNED}, host.wall())
    async with generation_of(config, host) as tree:
        keeper = build_keeper(config, tree, host)
        assert keeper is not None
        scheduler = tree.live_keys["main"].scheduler
        assert [limit["window"] for limit in scheduler.snapshot()] == [1.0]
        assert subjects(tree) == {subject(config, "main"): scheduler}
        host.move(60.0, 60.0, 60.0)
        await keeper.keep()
    (kept,) = LimitsTable(file).learned(subject(config, "main"), host.wall())
    assert kept["age"] == 240.0
    await books.close()


REFUSE = {
    "refuse": pytest.raises(Refusal, match="halted: The journal cannot be written"),
    "continue": contextlib.nullcontext(),
}


@pytest.mark.parametrize(("setting", "expected"), REFUSE.items(), ids=REFUSE)
async def test_what_a_failure_of_the_disk_means_is_a_setting(
    tmp_path: Path, setting: str, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = {"file": str(tmp_path / "journal.db"), "on_failure": setting}
    books = build_books(make_config(URL, journal=journal), HandHost())

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sealgate.gateway.journal.orders.write", fail)
    with expected:
        await books.intent(ticket("POST /order"), b"{}", RequestContext("r-1", 0.0, "POST"))
    await books.close()


@pytest.fixture
def lost(tmp_path: Path) -> Config:
    """Return a configuration whose journal was to be in a folder that is gone."""
    folder = tmp_path / "folder"
    folder.mkdir()
    config = make_config(URL, journal={"file": str(folder / "journal.db")})
    folder.rmdir()
    return config


async def test_a_journal_that_cannot_be_made(lost: Config) -> None:
    with pytest.raises(JournalError, match="no such file or directory"):
        build_books(lost, HandHost())
