"""What there is one of: what goes on in the background, and what a start that fails leaves behind."""

import contextlib
from pathlib import Path
from typing import Any

import pytest

from gateway.clock.test_kept import HandHost
from rig.station import ENVIRON, KEY, make_config
from sealgate.gateway.journal import JournalError
from sealgate.gateway.journal.file import is_in_use
from sealgate.gateway.keys.sources import SecretError
from sealgate.gateway.runtime.services import build_services

URL = "http://127.0.0.1:9"
TWO = {"main": KEY, "alt": {**KEY, "api_key": "ak-2"}}

WORK: dict[str, tuple[dict[str, Any], int, int]] = {
    "one key": ({}, 2, 1),
    "cold connections": ({"upstream": {"warm": False}}, 1, 1),
    "two keys": ({"keys": TWO}, 2, 2),
    "a journal": ({"journal": {}}, 3, 1),
}


def config_of(folder: Path, tables: dict[str, Any]) -> Any:
    journal = {"journal": {"file": str(folder / "journal.db")}} if "journal" in tables else {}
    return make_config(URL, **tables | journal)


@pytest.mark.parametrize(("tables", "upkeep", "care"), WORK.values(), ids=WORK)
async def test_what_goes_on_beside_the_requests(
    tmp_path: Path, tables: dict[str, Any], upkeep: int, care: int
) -> None:
    async with contextlib.AsyncExitStack() as ends:
        site, pipeline = build_services(config_of(tmp_path, tables), ENVIRON, HandHost(), ends)
        ends.push_async_callback(pipeline.generation.clock_keeper._upstream.close)
        assert len(site.upkeep(pipeline.generation)) == upkeep
        assert len(site.work(pipeline)) == upkeep + care
        assert site.untried == set(pipeline.generation.live_keys)
        assert site.work(pipeline).keys() == site.work(site.pipeline(pipeline.generation)).keys(), (
            "a tree that stays is not begun anew"
        )


async def test_at_its_end_another_may_have_the_journal(tmp_path: Path) -> None:
    config = config_of(tmp_path, {"journal": {}})
    file = tmp_path / "journal.db"
    async with contextlib.AsyncExitStack() as ends:
        _, pipeline = build_services(config, ENVIRON, HandHost(), ends)
        ends.push_async_callback(pipeline.generation.clock_keeper._upstream.close)
        assert is_in_use(file)
    assert not is_in_use(file)


async def test_no_traceback_prints_the_environment() -> None:
    async with contextlib.AsyncExitStack() as ends:
        site, pipeline = build_services(make_config(URL), ENVIRON, HandHost(), ends)
        ends.push_async_callback(pipeline.generation.clock_keeper._upstream.close)
        assert ENVIRON["EXCHANGE_SECRET"] not in repr(site)


async def test_a_secret_that_cannot_be_read_comes_before_the_journal_is_made(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as ends:
        with pytest.raises(SecretError, match="env:EXCHANGE_SECRET: the variable is not set"):
            build_services(config_of(tmp_path, {"journal": {}}), {}, HandHost(), ends)
    with pytest.raises(FileNotFoundError):
        (tmp_path / "journal.db").stat()


async def test_a_journal_that_cannot_be_used_is_not_left_locked(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    file.write_text("no journal, " * 100)
    async with contextlib.AsyncExitStack() as ends:
        with pytest.raises(JournalError, match="file is not a database"):
            build_services(config_of(tmp_path, {"journal": {}}), ENVIRON, HandHost(), ends)
    assert not is_in_use(file)
