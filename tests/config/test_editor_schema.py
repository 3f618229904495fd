"""The schema as an editor reads it, judged by a validator of drafts: what the program takes, it takes."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from rig.fences import fences
from sealgate.config import ConfigError
from sealgate.config.editor_schema import DRAFT, json_schema
from sealgate.config.load import load_config
from sealgate.config.starter import starter_of_several, starter_text
from sealgate.config.venues import built_in_venue

SCHEMA = json_schema()
VALIDATOR = jsonschema_rs.Draft4Validator(SCHEMA)
# What else it takes for a whole configuration, so that only what is wrong is complained about.
ENVIRON = {
    "SEALGATE_BASE_URL": "https://a.example",
    "SEALGATE_KEYS__MAIN__API_KEY": "ak",
    "SEALGATE_KEYS__MAIN__SECRET": "env:S",
}


def complaints(text: str) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(tomllib.loads(text))]


def test_the_schema_is_one_of_its_draft() -> None:
    assert SCHEMA["$schema"] == DRAFT
    jsonschema_rs.meta.validate(SCHEMA)


def nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from nodes(child)


def test_it_has_no_reference_which_some_editors_do_not_follow() -> None:
    assert not any("$ref" in node for node in nodes(SCHEMA))


SHOWN = [block.text for block in fences() if (block.language, block.label) == ("toml", "")]
RIGHT = [
    *('listen.tcp = ""', 'listen.tcp = "[::1]:8787"', "listen.max_body = 1000"),
    *("cmd_env = []", 'cmd_env = ["OP_SERVICE_ACCOUNT_TOKEN", "VAULT_*"]'),
    *('listen.max_body = "512 kib"', "listen.unix_group = 1000", 'admin.unix = "off"'),
    *('upstream.prefix = "/"', "clock.grace = 0", 'clock.field = "/data/0/time"'),
    *('upstream.source = "127.0.0.1"', "upstream.headers = { x-simulated-trading = '1' }"),
    *('upstream.proxy = "socks5://grid@[::1]:1080"', 'upstream.proxy_password = "file:p"'),
    *('limits.known = ["1200/60s", "20/s", " 5 / 100 ms "]', 'keys.a-b_1.api_key = "x"'),
    '[[routes]]\nmatch = "POST /v1/trade/{id}/query"\nlane = "read"',
    *('exchanges.spot.venue = "binance"', 'exchanges.a-1_b.listen = "127.0.0.1:8801"'),
    *('exchanges.spot.limits.known = ["5/s"]', 'keys.main.exchanges = ["spot", "perp"]'),
    '[[exchanges.spot.routes]]\nmatch = "POST /x"\nlane = "read"',
    starter_of_several({name: (built_in_venue(name), "") for name in ("okx", "bitmart")}),
]
WRONG = [
    *('bse_url = "https://a.example"', 'listen.tcp = "8787"', "listen.tcp = 8787"),
    *('listen.tpc = "127.0.0.1:1"', 'listen.unix_mode = "0644"', "listen.hosts = []"),
    *('listen.max_body = "1 XB"', "listen.head_timeout = 0", "listen.max_connections = 1.5"),
    *('upstream.prefix = "v1"', 'upstream.warm = "maybe"', 'signing.encoding = "Hex"'),
    *('upstream.source = "localhost"', 'upstream.headers = { x_y = "1" }', 'upstream.headers = { x = " 1" }'),
    *('upstream.proxy = "https://p.example:3128"', 'upstream.proxy = "http://p.example"'),
    *("clock.interval = -1", 'limits.known = ["20 per second"]', 'limits.replay_429 = "some"'),
    *("limits.queue = 0", 'keys.alt.secret = "hunter2hunter2"', 'keys.alt.api_key = "a b"'),
    *('keys."a b".api_key = "x"', 'keys.alt.secrets = "env:S"', 'bots.grid.may = ["withdraw"]'),
    *('cmd_env = ["*"]', 'cmd_env = ["A B"]', 'cmd_env = ["*_TOKEN"]', 'cmd_env = ["A=b"]'),
    *("bots.grid.weight = 0", 'bots.grid.token = "plain"'),
    *('[[routes]]\nlane = "read"', '[[routes]]\nmatch = "FETCH /v1/trade"\n'),
    *('exchanges.Spot.venue = "binance"', "exchanges.spot.venue = 1", "exchanges.spot.limts.queue = 1"),
    *("exchanges.spot.limits.queue = 0", 'exchanges.spot.listen = "8801"', "keys.main.exchanges = []"),
    *('keys.main.exchange = "a b"', 'keys.main.exchanges = ["a", "a"]', 'exchanges = "spot"'),
    '[[exchanges.spot.routes]]\nlane = "read"',
]


@pytest.mark.parametrize("text", [*SHOWN, starter_text(), *RIGHT])
def test_what_the_documents_show_and_the_program_takes_is_taken(text: str) -> None:
    assert complaints(text) == []


@pytest.mark.parametrize("text", WRONG)
def test_what_the_program_refuses_is_underlined(text: str, tmp_path: Path) -> None:
    assert complaints(text) != []
    file = tmp_path / "sealgate.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(file, environ=ENVIRON)
    assert "sealgate.toml" in str(caught.value)


def test_the_defaults_keep_to_the_schema() -> None:
    for table in nodes(SCHEMA):
        for leaf in table.get("properties", {}).values():
            if isinstance(leaf, dict) and "default" in leaf:
                jsonschema_rs.Draft4Validator(leaf).validate(leaf["default"])
