"""Which settings a reload takes up, and which wait for a restart: every one of their tables."""

from typing import Any

import pytest

from rig.station import make_config
from sealgate.config import Config
from sealgate.server.reload import waiting_for_restart, with_fixed

URL = "https://api.example.com"
RUNNING = make_config(URL)

FREE: dict[str, dict[str, Any]] = {
    "listen": {"hosts": ["gateway.local"], "max_body": 5, "body_timeout": 5.0, "drain": 5.0},
    "limits": {
        "known": ["5/1s"],
        "pools": {"orders": {"scope": "key", "lanes": ["order"]}},
        "headers": False,
        "replay_429": "none",
        "max_wait": 5.0,
        "queue": 5,
    },
    "upstream": {"total_timeout": 5.0, "max_connections": 5, "warm": False},
    "signing": {"encoding": "HEX"},
    "clock": {"interval": 5.0},
    "keys": {"alt": {"api_key": "ak-2", "secret": "env:S"}},
}
FIXED: dict[str, dict[str, Any]] = {
    "listen": {
        "tcp": "127.0.0.1:5",
        "unix": "/run/s/bots.sock",
        "unix_mode": "0660",
        "head_timeout": 5.0,
        "max_connections": 5,
    },
    "admin": {"tcp": "127.0.0.1:5", "hosts": ["gateway.local"], "unix": "off"},
    "journal": {"file": "/journal.db", "keep": 5.0, "max_size": 500_000, "on_failure": "continue"},
    "log": {"level": "debug", "format": "json"},
    "limits": {"redis": "redis://localhost/0"},
}


def rows(tables: dict[str, dict[str, Any]]) -> list[Any]:
    return [
        pytest.param(table, name, value, id=f"{table}.{name}")
        for table, settings in tables.items()
        for name, value in settings.items()
    ]


def changed(table: str, name: str, value: object) -> Config:
    return make_config(URL, **{table: {name: value}})


@pytest.mark.parametrize(("table", "name", "value"), rows(FREE))
def test_what_a_reload_takes_up(table: str, name: str, value: object) -> None:
    new = changed(table, name, value)
    assert new != RUNNING
    assert with_fixed(new, RUNNING) == new
    assert waiting_for_restart(new, RUNNING) == ()


@pytest.mark.parametrize(("table", "name", "value"), rows(FIXED))
def test_what_stays_as_it_runs_and_is_named(table: str, name: str, value: object) -> None:
    new = changed(table, name, value)
    assert new != RUNNING
    assert with_fixed(new, RUNNING) == RUNNING
    assert waiting_for_restart(new, RUNNING) == (f"{table}.{name}",)


def test_both_in_one_table() -> None:
    new = make_config(URL, limits={"redis": "redis://localhost/0", "queue": 5}, log={"level": "debug"})
    used = with_fixed(new, RUNNING)
    assert (used.limits.queue, used.limits.redis, used.log.level) == (5, "", "info")
    assert waiting_for_restart(new, RUNNING) == ("log.level", "limits.redis")


def test_what_waits_is_told_again_until_the_restart() -> None:
    new = changed("log", "level", "debug")
    assert waiting_for_restart(new, with_fixed(new, RUNNING)) == ("log.level",)
