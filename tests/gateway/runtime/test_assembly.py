"""A tree after another: what stays, what starts anew, and what cannot be made."""

import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.clock.test_kept import HandHost
from rig.generation import generation_of
from rig.station import ENVIRON, KEY, make_config
from sealgate.gateway.keys.parts import read_parts
from sealgate.gateway.pacing import RateScheduler
from sealgate.gateway.platform import machine
from sealgate.gateway.platform.machine import StartError
from sealgate.gateway.request.context import InFlightRequests
from sealgate.gateway.request.generation import Generation
from sealgate.gateway.runtime.services import build_generation

URL = "http://127.0.0.1:9"
PARTS = ("upstream", "clock", "clock_keeper", "open_scheduler", "scheduler", "stamps")


@contextlib.asynccontextmanager
async def one_after_the_other(url: str, **tables: Any) -> AsyncIterator[tuple[Generation, Generation]]:
    """Make a tree of the usual settings, and one of others that follows it."""
    host = HandHost()
    async with generation_of(make_config(URL), host) as old, contextlib.AsyncExitStack() as ends:
        config = make_config(url, **tables)
        new = build_generation(config, read_parts(config, ENVIRON), host, InFlightRequests(), old)
        ends.push_async_callback(new.upstream.close)
        ends.push_async_callback(new.clock_keeper._upstream.close)
        yield old, new


def part(generation: Generation, name: str) -> object:
    return getattr(generation.live_keys["main"] if name in {"scheduler", "stamps"} else generation, name)


CHANGED: dict[str, tuple[str, dict[str, Any], set[str]]] = {
    "nothing": (URL, {}, set()),
    "what bots may": (URL, {"bots": {"grid": {"uid": 1001}}}, set()),
    "how it is paced": (URL, {"limits": {"queue": 7, "known": ["20/s"]}}, set()),
    "another key": (URL, {"keys": {"main": {**KEY, "api_key": "ak-2"}}}, {"scheduler", "stamps"}),
    "how long is waited": (
        URL,
        {"upstream": {"connect_timeout": 1.0}},
        {"upstream", "clock", "clock_keeper"},
    ),
    "how the time is asked for": (URL, {"clock": {"interval": 5.0}}, {"clock", "clock_keeper"}),
    "another exchange": ("http://localhost:9", {}, set(PARTS)),
}


@pytest.mark.parametrize(("url", "tables", "anew"), CHANGED.values(), ids=CHANGED)
async def test_what_starts_anew(url: str, tables: dict[str, Any], anew: set[str]) -> None:
    async with one_after_the_other(url, **tables) as (old, new):
        assert {name for name in PARTS if part(new, name) is not part(old, name)} == anew
        assert new.live_keys["main"].breaker is not old.live_keys["main"].breaker, (
            "a new tree begins with healthy keys"
        )


async def test_aliases_of_one_key_share_its_line() -> None:
    keys = {"alias": KEY, "other": {**KEY, "api_key": "ak-2"}}
    async with one_after_the_other(URL, keys=keys) as (_, new):
        main, alias, other = (new.live_keys[name] for name in ("main", "alias", "other"))
        assert main.scheduler is alias.scheduler is not other.scheduler
        assert main.stamps is alias.stamps is not other.stamps
        assert main.breaker is not alias.breaker


def keys_of(*accounts: str | None) -> dict[str, Any]:
    """Return a key for each account; of a bybit key that has none nobody knows whose it is."""
    keys = {f"k{at}": {**KEY, "api_key": f"ak-{at}"} for at in range(len(accounts))}
    return {
        name: {**key, "account": account} if account else key
        for (name, key), account in zip(keys.items(), accounts, strict=True)
    }


async def lines_of(venue: str, keys: dict[str, Any]) -> tuple[list[RateScheduler], RateScheduler]:
    config = make_config(URL, venue=venue, keys=keys)
    async with generation_of(config, HandHost()) as generation:
        lines = [generation.live_keys[name].scheduler for name in keys]
        nonces = {id(generation.live_keys[name].nonces) for name in keys}
        assert len(nonces) == len(keys)
        return lines, generation.open_scheduler


async def test_where_the_address_is_counted_all_share_one_limit_and_open_reads_too() -> None:
    (one, two), open_line = await lines_of("binance", keys_of(None, None))
    assert one is two is open_line


async def test_where_the_account_is_counted_its_keys_share_one_limit() -> None:
    lines, open_line = await lines_of("bybit", keys_of("mine", "mine", "hers", None, None))
    assert lines[0] is lines[1]
    assert len({*lines, open_line}) == 5


async def test_limits_cannot_be_shared_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says where it belongs, and names no package of ours, which an index may have from somebody else."""
    monkeypatch.setattr(machine, "has_redis", lambda: False)
    with pytest.raises(StartError, match=r"^limits\.redis: .+; .+, or take it out$") as told:
        async with one_after_the_other(URL, limits={"redis": "redis://localhost/0"}):
            pass
    assert sys.prefix in str(told.value)
    assert "sealgate" not in str(told.value).replace(sys.prefix, "")
