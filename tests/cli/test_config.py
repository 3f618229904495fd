import json
import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sealgate.cli import main
from sealgate.config.editor_schema import json_schema
from sealgate.config.starter import starter_text
from sealgate.config.venues import built_in_venue, venue_source

SECRET = "correct-horse-battery-staple"
ENVIRON = {
    "SEALGATE_BASE_URL": "https://exchange.example",
    "SEALGATE_KEYS__MAIN__API_KEY": "ak-public-1",
    "SEALGATE_KEYS__MAIN__SECRET": "env:EXCHANGE_SECRET",
    "EXCHANGE_SECRET": SECRET,
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def config(*arguments: str, **environ: str) -> Result:
    return CliRunner().invoke(main, ["config", *arguments], env=environ)


def test_init_writes_a_file_for_its_owner_alone(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        result = config("init")
    finally:
        os.umask(previous)
    assert result.exit_code == 0
    assert "sealgate check" in result.stdout
    file = tmp_path / "sealgate.toml"
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == (starter_text(), 0o600)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("make", [lambda file: file.write_text("mine"), lambda file: file.symlink_to("gone")])
def test_init_leaves_what_is_there(tmp_path: Path, make: object) -> None:
    assert callable(make)
    file = tmp_path / "a.toml"
    make(file)
    result = config("init", "--config", str(file))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"sealgate: error: {file} exists already and was not changed; pass")
    assert file.is_symlink() or file.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [file]


def test_init_replaces_it_when_forced(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text("mine")
    assert config("init", "--config", str(file), "--force").exit_code == 0
    assert file.read_text() == starter_text()


def test_init_for_a_venue_names_what_its_keys_need(tmp_path: Path) -> None:
    result = config("init", "--venue", "okx")
    assert result.stdout.splitlines() == [
        "wrote sealgate.toml; next:",
        "- set keys.main.api_key in it",
        "- store the secret in main.secret (chmod 600)",
        "- store the passphrase in main.passphrase (chmod 600)",
        "- see what is missing: sealgate check",
    ]
    assert (tmp_path / "sealgate.toml").read_text() == starter_text(built_in_venue("okx"))
    assert "base_url and keys.main.api_key" in config("init", "--force").stdout
    either = config("init", "--force", "--venue", "bybit").stdout
    assert "- store the secret or private key in main.secret" in either
    assert "One of hmac, rsa.\n" in (tmp_path / "sealgate.toml").read_text()
    assert "- store the private key in main.secret" in config("init", "--force", "--venue", "backpack").stdout
    config("init", "--force", "--venue", "luno")
    assert "# Each request carries the secret itself.\n" in (tmp_path / "sealgate.toml").read_text()
    assert "keys.main.api_key and keys.main.uid" in config("init", "--force", "--venue", "bitmart").stdout


def test_init_for_several_venues(tmp_path: Path) -> None:
    result = config("init", "--venue", "binance", "--venue", "okx", "--config", "both.toml")
    assert result.stdout.splitlines() == [
        "wrote both.toml; next:",
        "- set keys.binance.api_key and keys.okx.api_key in it",
        "- store the secrets or private keys in binance.secret and okx.secret (chmod 600)",
        "- store the passphrase in okx.passphrase (chmod 600)",
        "- make the bot's token: (umask 077; sealgate token new > grid.token)",
        "- see what is missing: sealgate check --config both.toml",
    ]
    shown = config("show", "--config", "both.toml", "--json")
    values = {one["name"]: one["value"] for one in json.loads(shown.stdout)["settings"]}
    assert values["exchanges.okx.base_url"] == "https://www.okx.com"
    assert values["bots.grid.keys"] == ["binance", "okx"]
    twice = config("init", "--venue", "okx", "--venue", "okx", "--config", "twice.toml")
    assert (twice.exit_code, (tmp_path / "twice.toml").exists()) == (2, False)
    assert "--venue: okx is there twice" in twice.stderr


def test_init_for_several_venues_of_which_one_has_a_long_name(tmp_path: Path) -> None:
    name = "an-exchange-with-a-very-long-name-of-its-own"
    text = venue_source(built_in_venue("okx")).replace('name = "okx"', f'name = "{name}"')
    (tmp_path / "mine.toml").write_text(text)
    assert config("init", "--venue", "./mine.toml", "--venue", "service").exit_code == 0
    shown = config("show", "--json")
    values = {one["name"]: one["value"] for one in json.loads(shown.stdout)["settings"]}
    assert values[f"exchanges.{name[:32]}.venue"].endswith("mine.toml")
    assert values[f"keys.{name[:32]}.exchange"] == name[:32]


def test_init_for_an_unknown_venue_names_the_nearest(tmp_path: Path) -> None:
    result = config("init", "--venue", "okxx")
    assert (result.exit_code, result.stderr) == (
        2,
        "sealgate: error: 'okxx' is not a venue; did you mean okx?\n",
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["sealgate.toml", "below/sealgate.toml"])
def test_init_for_a_venue_of_ones_own_finds_its_file_from_anywhere(tmp_path: Path, place: str) -> None:
    (tmp_path / "below").mkdir()
    text = venue_source(built_in_venue("okx")).replace('name = "okx"', 'name = "mine"')
    (tmp_path / "mine.toml").write_text(text)
    assert config("init", "--venue", "mine.toml", "--config", place).exit_code == 0
    shown = config("show", "--config", place, "--json")
    values = {one["name"]: one["value"] for one in json.loads(shown.stdout)["settings"]}
    assert values["venue"].endswith("mine.toml")
    assert values["base_url"] == "https://www.okx.com"


def test_init_in_a_folder_that_is_not_there() -> None:
    result = config("init", "--config", "nowhere/a.toml")
    assert result.exit_code == 2
    assert "No such file or directory" in result.stderr


def test_show_has_value_and_source_and_no_secret() -> None:
    result = config("show", **ENVIRON)
    rows = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()}
    assert rows["base_url"] == ['"https://exchange.example"', "SEALGATE_BASE_URL"]
    assert rows["limits.queue"] == ["1000", "default"]
    assert rows["keys.main.api_key"] == ['"ak-p…"', "SEALGATE_KEYS__MAIN__API_KEY"]
    assert SECRET not in result.output


def test_show_what_was_changed() -> None:
    document = json.loads(config("show", "--changed", "--json", **ENVIRON).stdout)
    assert [one["name"] for one in document["settings"]] == [
        "base_url",
        "keys.main.api_key",
        "keys.main.secret",
    ]


def test_show_tells_what_is_wrong() -> None:
    result = config("show", SEALGATE_BASEURL="x")
    assert result.exit_code == 2
    assert "did you mean SEALGATE_BASE_URL?" in result.stderr


def test_schema() -> None:
    assert json.loads(config("schema").stdout) == json_schema()


def test_an_unknown_command_of_the_group_names_the_nearest() -> None:
    result = config("int")
    assert result.exit_code == 2
    assert "Did you mean 'init'?" in result.stderr
