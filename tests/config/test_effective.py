from pathlib import Path

import pytest

from sealgate.config.effective import Effective, effective
from sealgate.config.listing import all_settings
from sealgate.config.load import load_with_sources

TOML = """\
base_url = "https://a.example"
listen.max_body = 1500
limits.known = ["20/s"]
limits.redis = "cmd:get-url --pass hunter2"
upstream.proxy = "http://customer-hunter2@127.0.0.1:3128"
upstream.headers = { x-simulated-trading = "1" }
[keys.main]
api_key = "sk-live-0123456789"
secret = "cmd:pass show --token hunter2"
[bots.grid]
token = "file:grid.token"
[[routes]]
match = "POST /v1/trade/query"
lane = "read"
"""


def shown(tmp_path: Path, **environ: str) -> dict[str, Effective]:
    file = tmp_path / "sealgate.toml"
    file.write_text(TOML)
    loaded = load_with_sources(file, {"log.level": "debug"}, environ)
    return {one.name: one for one in effective(loaded)}


@pytest.mark.parametrize(
    ("name", "value", "source"),
    [
        ("base_url", "https://a.example", "sealgate.toml"),
        ("listen.tcp", "127.0.0.1:8787", "default"),
        ("listen.max_body", 1500, "sealgate.toml"),
        ("listen.unix", "", "default"),
        ("limits.known", ["20/1s"], "sealgate.toml"),
        ("limits.redis", "cmd:get-url …", "sealgate.toml"),
        ("upstream.proxy", "http://…@127.0.0.1:3128", "sealgate.toml"),
        ("upstream.headers", {"x-simulated-trading": "1"}, "sealgate.toml"),
        ("limits.max_wait", 5.0, "SEALGATE_LIMITS__MAX_WAIT"),
        ("log.level", "debug", "command line"),
        ("journal.max_size", "64 MiB", "default"),
        ("keys.main.api_key", "sk-l…", "sealgate.toml"),
        ("keys.main.secret", "cmd:pass …", "sealgate.toml"),
        ("keys.main.session", "", "default"),
        ("bots.grid.may", ["read", "trade"], "default"),
        ("routes[0].lane", "read", "sealgate.toml"),
    ],
)
def test_value_and_source(tmp_path: Path, name: str, value: object, source: str) -> None:
    found = shown(tmp_path, SEALGATE_LIMITS__MAX_WAIT="5")[name]
    assert found.value == value
    assert found.source.rpartition("/")[2] == source


def test_what_may_hold_a_secret_is_masked(tmp_path: Path) -> None:
    text = str(shown(tmp_path))
    assert "0123456789" not in text
    assert "hunter2" not in text


def test_a_table_in_one_variable_is_its_source(tmp_path: Path) -> None:
    routes = '[{"match": "POST /v1/trade/a", "lane": "read"}]'
    found = shown(tmp_path, SEALGATE_ROUTES=routes)
    assert found["routes[0].match"].source == "SEALGATE_ROUTES: [0].match"


SEVERAL = """\
limits.queue = 50
[exchanges.spot]
venue = "binance"
[exchanges.mine]
base_url = "http://127.0.0.1:9"
limits.queue = 60
[keys.main]
api_key = "ak-0"
secret = "env:S"
exchanges = ["spot", "mine"]
[keys.alt]
api_key = "ak-1"
secret = "env:S"
exchange = "spot"
[keys.own]
api_key = "ak-2"
secret = "env:S"
exchange = "spot"
recv_window_ms = 900
[bots.grid]
token = "env:T"
key = "main"
"""


@pytest.mark.parametrize(
    ("name", "value", "source"),
    [
        ("limits.queue", 50, "sealgate.toml"),
        ("exchanges.spot.venue", "binance", "sealgate.toml"),
        ("exchanges.spot.base_url", "https://api.binance.com", "venue binance"),
        ("exchanges.spot.clock.path", "/api/v3/time", "venue binance"),
        ("exchanges.spot.limits.queue", 50, "common table"),
        ("exchanges.spot.limits.max_wait", 30.0, "default"),
        ("exchanges.mine.venue", "service", "default"),
        ("exchanges.mine.clock.path", "/v1/trade/time", "default"),
        ("exchanges.mine.limits.queue", 60, "sealgate.toml"),
        ("exchanges.mine.limits.redis", "redis://localhost", "SEALGATE_EXCHANGES__MINE__LIMITS__REDIS"),
        ("keys.main.recv_window_ms", {"spot": 10_000, "mine": 5000}, "venue binance, default"),
        ("keys.alt.recv_window_ms", 10_000, "venue binance"),
        ("keys.own.recv_window_ms", 900, "sealgate.toml"),
    ],
)
def test_each_of_several_exchanges_has_its_own(tmp_path: Path, name: str, value: object, source: str) -> None:
    file = tmp_path / "sealgate.toml"
    file.write_text(SEVERAL)
    environ = {"SEALGATE_EXCHANGES__MINE__LIMITS__REDIS": "redis://localhost"}
    found = effective(load_with_sources(file, environ=environ))
    [one] = [one for one in found if one.name == name]
    assert (one.value, one.source.rpartition("/")[2]) == (value, source)


def test_routes_that_an_exchange_takes_over_are_those_of_the_common_table(tmp_path: Path) -> None:
    file = tmp_path / "sealgate.toml"
    own = '[[exchanges.mine.routes]]\nmatch = "GET /v1/trade/y"\nlane = "order"\n'
    file.write_text(f'[[routes]]\nmatch = "GET /api/x"\ncost = 3\n{SEVERAL.partition(chr(10))[2]}{own}')
    found = {one.name: one for one in effective(load_with_sources(file, environ={}))}
    assert found["exchanges.spot.routes[0].cost"] == Effective(
        "exchanges.spot.routes[0].cost", 3, "common table"
    )
    assert found["exchanges.mine.routes[0].match"].value == "GET /v1/trade/y"
    assert found["exchanges.mine.routes[0].match"].source == str(file)
    assert found["exchanges.mine.routes[0].cost"].source == str(file)


def test_of_the_common_tables_only_what_is_set_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "sealgate.toml"
    file.write_text(SEVERAL)
    names = [one.name for one in effective(load_with_sources(file, environ={}))]
    common = ("venue", "base_url", "upstream.", "signing.", "clock.", "limits.", "routes")
    assert [name for name in names if name.startswith(common)] == ["limits.queue"]
    assert len(names) == len(set(names))


def test_every_setting_says_what_it_is_for() -> None:
    assert [setting.name for setting in all_settings() if not setting.description.endswith(".")] == []
