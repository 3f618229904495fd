import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from rig.backends import the_exchange
from sealgate.config import Config, ConfigError, load_config
from sealgate.config.effective import effective
from sealgate.config.load import load_with_sources
from sealgate.config.starter import starter_text
from sealgate.config.venues import parse_venue

KEY = "[keys.main]\napi_key = 'ak'\nsecret = 'env:S'\n"
MINE = """\
name = "mine"
title = "Mine"
base_url = "https://api.mine.example"
prefix = "/v9"
[signing]
recv_window = "7000"
message = "{timestamp}{target}"
[signing.headers]
M-KEY = "{api_key}"
M-SIGN = "{signature}"
M-PASS = "{passphrase}"
[clock]
path = "/v9/now"
field = "/t"
[limits]
known = ["10/1s"]
"""


def loaded(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> Config:
    file = folder / "sealgate.toml"
    file.write_text(text)
    return load_config(file, environ=environ or {})


def problem(folder: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(folder, text)
    lines = str(caught.value).splitlines()
    assert len(lines) == 1, lines
    return lines[0].replace(str(folder), "FOLDER")


def test_without_a_venue_it_is_the_service_of_the_specification(tmp_path: Path) -> None:
    config = loaded(tmp_path, f"base_url = 'https://x.example'\n{KEY}")
    assert config.venue.name == "service"
    assert (config.upstream.prefix, config.clock.path) == ("/v1/trade", "/v1/trade/time")


def test_a_venues_file_says_where_the_exchange_is_and_how_its_time_is_read(tmp_path: Path) -> None:
    config = loaded(tmp_path, f"venue = 'bybit'\n{KEY}")
    assert str(config.base_url) == "https://api.bybit.com"
    assert config.upstream.prefix == ""
    assert (config.clock.path, config.clock.field) == (config.venue.clock_path, config.venue.clock_field)


def test_the_environment_alone_chooses_a_venue() -> None:
    environ = {
        "SEALGATE_VENUE": "okx",
        "SEALGATE_KEYS__MAIN__API_KEY": "ak",
        "SEALGATE_KEYS__MAIN__SECRET": "env:S",
        "SEALGATE_KEYS__MAIN__PASSPHRASE": "env:P",
    }
    config = load_config(None, environ=environ)
    assert (config.venue.name, config.keys["main"].passphrase) == ("okx", "env:P")


def test_a_file_of_ones_own_is_a_venue(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE)
    config = loaded(tmp_path, f"venue = '{tmp_path}/mine.toml'\n{KEY}passphrase = 'env:P'\n")
    assert (str(config.base_url), config.upstream.prefix) == ("https://api.mine.example", "/v9")
    assert (config.clock.path, config.clock.field) == ("/v9/now", "/t")
    assert [str(limit) for limit in config.limits.known] == ["10/1s"]
    assert config.keys["main"].recv_window_ms == 7000


def test_settings_go_before_the_venues_file(tmp_path: Path) -> None:
    text = (
        "venue = 'bybit'\nbase_url = 'https://api-testnet.bybit.com'\n"
        "[upstream]\nprefix = '/v5'\n[clock]\npath = ''\n"
        f"[limits]\nknown = []\n[signing]\nencoding = 'base64'\n{KEY}recv_window_ms = 900\n"
    )
    config = loaded(tmp_path, text)
    assert str(config.base_url) == "https://api-testnet.bybit.com"
    assert (the_exchange(config).venue.prefix, config.clock.path, config.limits.known) == ("/v5", "", ())
    assert the_exchange(config).venue.signing.encoding == "base64"
    assert config.keys["main"].recv_window_ms == 900


def test_what_the_venue_says_is_shown_as_its_own(tmp_path: Path) -> None:
    file = tmp_path / "sealgate.toml"
    file.write_text(f"venue = 'bybit'\n{KEY}")
    shown = {one.name: (one.value, one.source) for one in effective(load_with_sources(file, environ={}))}
    assert shown["venue"] == ("bybit", str(file))
    assert shown["base_url"] == ("https://api.bybit.com", "venue bybit")
    assert shown["keys.main.recv_window_ms"] == (5000, "venue bybit")
    assert shown["log.level"] == ("info", "default")


@pytest.mark.parametrize(
    ("venue", "told"),
    [
        ("'okxx'", "'okxx' is not a venue; did you mean okx?"),
        ("'qqqq'", "'qqqq' is not a venue; `sealgate venues` lists them"),
        ("''", 'is not a venue; write a name that `sealgate venues` lists, or "./mine.toml"'),
        ("5", 'is not a venue; write a name that `sealgate venues` lists, or "./mine.toml"'),
        (
            "'FOLDER/none.toml'",
            "FOLDER/none.toml cannot be read: No such file or directory; correct the path",
        ),
        (
            "'FOLDER/mine.toml'",
            "FOLDER/mine.toml:7: message: unknown name {tiemstamp}; did you mean timestamp?",
        ),
        ("'FOLDER/binary.toml'", "FOLDER/binary.toml is not UTF-8 text; save it as UTF-8"),
        ("'FOLDER/large.toml'", "FOLDER/large.toml is too large for a venue file; correct the path"),
        ("'other.toml'", "FOLDER/other.toml cannot be read: No such file or directory; correct the path"),
    ],
)
def test_a_venue_that_cannot_be_used_is_one_line_with_its_cause(
    tmp_path: Path, venue: str, told: str
) -> None:
    (tmp_path / "mine.toml").write_text(MINE.replace("{timestamp}", "{tiemstamp}"))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "large.toml").write_bytes(b"#" * (1024**2 + 1))
    venue = venue.replace("FOLDER", str(tmp_path))
    assert problem(tmp_path, f"venue = {venue}\n{KEY}") == f"FOLDER/sealgate.toml: venue: {told}"


def test_a_key_must_have_what_the_venue_wants(tmp_path: Path) -> None:
    text = problem(tmp_path, f"venue = 'okx'\n{KEY}")
    assert re.search(r'keys\.main\.passphrase: missing; .* okx .* passphrase = "file:/path"$', text)
    text = problem(tmp_path, f"venue = 'bitmart'\n{KEY}")
    assert "keys.main.uid: missing; keys of the venue bitmart have one" in text
    text = problem(tmp_path, "venue = 'binance'\n[keys.main]\nsecret = 'env:S'\n")
    assert text.endswith(
        'keys.main.api_key: missing; keys of the venue binance have one: write api_key = "…"'
    )


def test_a_key_without_an_api_key_where_the_venue_uses_none(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE.replace("{api_key}", "x"))
    text = f"venue = '{tmp_path}/mine.toml'\n[keys.main]\nsecret = 'env:S'\npassphrase = 'env:P'\n"
    assert loaded(tmp_path, text).keys["main"].api_key == ""


KINDS = """\
[signing.kinds]
ed25519 = { message = "{timestamp}{target}{passphrase}" }
rsa = {}
"""


def test_a_key_needs_what_the_keys_of_its_kind_need(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(MINE.replace('M-PASS = "{passphrase}"\n', "") + KINDS)
    mine = f"venue = '{file}'\n{KEY}"
    assert "keys.main.passphrase: missing; keys of the venue mine have one" in problem(tmp_path, mine)
    key = loaded(tmp_path, f"{mine}kind = 'rsa'\nsecret_passphrase = 'env:P'\n").keys["main"]
    assert (key.kind, key.secret_passphrase) == ("rsa", "env:P")
    text = problem(tmp_path, f"{mine}kind = 'rsa'\npassphrase = 'env:P'\n")
    assert text.endswith("keys.main.passphrase: has no effect: the venue mine requires none")
    text = problem(tmp_path, f"{mine}kind = 'hmac'\n")
    assert text.endswith("keys.main.kind: is not accepted by the venue mine; write ed25519 or rsa")


def test_a_starter_file_has_the_settings_of_private_keys_where_the_venue_takes_them(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE + KINDS)
    text = starter_text(parse_venue(f"{tmp_path}/mine.toml"))
    assert '\n#kind = "ed25519"\n' in text
    assert '\n#secret_passphrase = "file:main.secret-passphrase"\n' in text
    assert "secret_passphrase" not in starter_text(parse_venue("kraken"))


def test_what_the_venue_has_no_use_for_is_refused(tmp_path: Path) -> None:
    text = problem(tmp_path, f"venue = 'bybit'\n{KEY}uid = 'x'\n")
    assert text.endswith("keys.main.uid: has no effect: the venue bybit requires none")


def test_no_passphrase_pasted_in_its_reference_is_repeated(tmp_path: Path) -> None:
    assert "hunter2" not in problem(tmp_path, f"venue = 'okx'\n{KEY}passphrase = 'hunter2'\n")


def test_an_address_is_needed_where_no_venue_has_one(tmp_path: Path) -> None:
    assert problem(tmp_path, KEY).startswith("base_url: missing")


TESTS = """
[environments.test]
base_url = "https://test.mine.example"
[environments.demo]
headers = { x-demo = "1", x-desk = "all" }
"""


def in_environment(folder: Path, text: str) -> str:
    """Return the settings of somebody with an own venue's file that has two environments."""
    (folder / "mine.toml").write_text(f"{MINE.replace('M-PASS = ', 'M-NAME = ')}{TESTS}")
    return text.replace("FOLDER", str(folder))


ONE = "venue = 'FOLDER/mine.toml'\n"
PASSPHRASE = "passphrase = 'env:P'\n"


@pytest.mark.parametrize(
    ("text", "base_url", "headers"),
    [
        ("", "https://api.mine.example", {}),
        ("environment = ''\n", "https://api.mine.example", {}),
        ("environment = 'test'\n", "https://test.mine.example", {}),
        ("environment = 'test'\nbase_url = 'https://test.mine.example'\n", "https://test.mine.example", {}),
        ("environment = 'demo'\n", "https://api.mine.example", {"x-demo": "1", "x-desk": "all"}),
        (
            "environment = 'demo'\nupstream.headers = { X-Desk = '7', y = '2' }\n",
            "https://api.mine.example",
            {"x-demo": "1", "X-Desk": "7", "y": "2"},
        ),
        (
            "environment = 'demo'\nbase_url = 'https://eu.mine.example'\n",
            "https://eu.mine.example",
            {"x-demo": "1", "x-desk": "all"},
        ),
    ],
)
def test_an_environment_sets_address_and_headers(
    tmp_path: Path, text: str, base_url: str, headers: dict[str, str]
) -> None:
    config = loaded(tmp_path, in_environment(tmp_path, f"{ONE}{text}{KEY}{PASSPHRASE}"))
    (exchange,) = config.served.values()
    assert (str(exchange.base_url), exchange.upstream.headers) == (base_url, headers)


def test_headers_in_a_variable_are_added_to_those_of_an_environment(tmp_path: Path) -> None:
    text = in_environment(tmp_path, f"{ONE}environment = 'demo'\n{KEY}{PASSPHRASE}")
    config = loaded(tmp_path, text, {"SEALGATE_UPSTREAM__HEADERS": '{"y": "2"}'})
    assert config.upstream.headers == {"x-demo": "1", "x-desk": "all", "y": "2"}


def test_one_environment_holds_for_all_exchanges_that_have_no_own(tmp_path: Path) -> None:
    each = "".join(
        f"[exchanges.{name}]\n{ONE}{own}"
        for name, own in {"a": "", "b": "environment = 'demo'\n", "c": "environment = ''\n"}.items()
    )
    text = in_environment(
        tmp_path, f"environment = 'test'\n{each}{KEY}{PASSPHRASE}exchanges = ['a', 'b', 'c']\n"
    )
    served = loaded(tmp_path, text).served
    assert {name: str(one.base_url) for name, one in served.items()} == {
        "a": "https://test.mine.example",
        "b": "https://api.mine.example",
        "c": "https://api.mine.example",
    }
    assert [bool(one.upstream.headers) for one in served.values()] == [False, True, False]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            f"{ONE}environment = 'tset'\n",
            "environment: names tset, which is not an environment of the venue mine; did you mean test?",
        ),
        (
            f"{ONE}environment = 'live'\n",
            "environment: names live, which is not an environment of the venue mine; write one of test, demo",
        ),
        (
            "environment = 'test'\n",
            "environment: has no effect, because the file of the venue service has no environments",
        ),
        (
            f"{ONE}environment = 'test'\nbase_url = 'https://eu.mine.example'\n",
            "base_url: cannot be combined with environment, which leads to https://test.mine.example; ",
        ),
        (f"{ONE}environment = 'A'\n", "environment: is not the name of an environment; "),
    ],
)
def test_an_environment_that_does_not_fit(tmp_path: Path, text: str, words: str) -> None:
    own = PASSPHRASE if ONE in text else ""
    assert words in problem(tmp_path, in_environment(tmp_path, f"{text}{KEY}{own}"))


def test_a_demo_of_a_venue_that_comes_with_the_program(tmp_path: Path) -> None:
    config = loaded(tmp_path, f"venue = 'okx'\nenvironment = 'demo'\n{KEY}{PASSPHRASE}")
    assert config.upstream.headers == {"x-simulated-trading": "1"}
    assert str(config.base_url) == config.venue.base_url
