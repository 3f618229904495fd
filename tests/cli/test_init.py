"""`sealgate config init` by options alone, as scripts call it."""

import errno
import os
import stat
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sealgate.cli import main
from sealgate.cli.answers import Answering
from sealgate.config import load_config
from sealgate.config.first_file import first_file
from sealgate.config.starter import starter_text
from sealgate.config.venues import built_in_venue, venue_names

SECRET = "correct-horse-battery-staple"
BYBIT = ("--venue", "bybit", "--api-key", "ak-public-1", "--secret-file", "-")
OLD = """\
# mine
venue = "bybit"             # since May
environment = "test"

[keys.main]
api_key = "ak-public-1"
secret = "env:SECRET"

[limits]
max_wait = 7.0

[bots.grid]
token = "env:TOKEN"
"""
KRAKEN = ("--venue", "kraken", "--api-key", "ak-public-2", "--secret-file", "-")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(*options: str, text: str = f"{SECRET}\n") -> Result:
    return CliRunner().invoke(main, ["config", "init", *options], input=text)


def old_file(folder: Path, text: str = OLD) -> Path:
    file = folder / "sealgate.toml"
    file.write_text(text)
    file.chmod(0o640)
    return file


def is_good_offline() -> bool:
    places = {"SEALGATE_LISTEN__TCP": "127.0.0.1:0", "SEALGATE_ADMIN__TCP": "127.0.0.1:0"}
    return CliRunner().invoke(main, ["check", "--offline"], env={**places, "SECRET": SECRET}).exit_code == 0


def test_options_say_it_all_and_no_option_is_a_secret(folder: Path) -> None:
    result = init(*BYBIT, "--environment", "demo", "--bot", "mine")
    assert result.exit_code == 0, result.stderr
    assert {file.name for file in folder.iterdir()} == {"sealgate.toml", "main.secret", "mine.token"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    assert (folder / "main.secret").read_text() == f"{SECRET}\n"
    assert SECRET not in result.output
    assert load_config(folder / "sealgate.toml", environ={}).environment == "demo"
    assert is_good_offline()


@pytest.mark.parametrize("venue", venue_names())
def test_the_short_file_is_valid_for_every_venue(folder: Path, venue: str) -> None:
    """Its secret may be wrong for the venue; the file cannot be."""
    known = built_in_venue(venue)
    given = {"api_key": "ak-public-1", "uid": "7", "base_url": "https://exchange.example"}
    if known.base_url:
        del given["base_url"]
    asked = Answering(folder / "sealgate.toml", given, asks=False, is_forced=False).of(known)
    needs = {name: given[name] for name in ("api_key", "uid") if known.signing.needs(name)}
    needs |= {"passphrase": "file:p"} if known.signing.needs("passphrase") else {}
    (folder / "sealgate.toml").write_text(
        first_file(replace(asked, secret="file:s", **needs), "main", "grid", "file:t")
    )
    config = load_config(folder / "sealgate.toml", environ={})
    assert (config.venue.name, config.keys_of("grid")) == (venue, ("main",))


def test_a_secret_of_a_file_stays_there(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "mine.secret").write_text(SECRET)
    (folder / "mine.secret").chmod(0o600)
    result = init(*BYBIT[:-1], "mine.secret", "--config", "deep/sealgate.toml")
    assert result.exit_code == 0, result.stderr
    assert f'secret = "file:{folder}/mine.secret"' in (folder / "deep" / "sealgate.toml").read_text()
    assert {file.name for file in (folder / "deep").iterdir()} == {"sealgate.toml", "grid.token"}
    assert "sealgate check --config deep/sealgate.toml" in result.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--api-key", "ak"), "--venue is missing"),
        (("--venue", "bybit", "--bot", "x"), "also give --api-key, --secret-file"),
        (("--venue", "okx", *BYBIT[2:]), "also give --passphrase-file"),
        ((*BYBIT, "--passphrase-file", "-"), "Only one option can be -"),
        (("--venue", "bynance", *BYBIT[2:]), "did you mean binance?"),
        (
            (*BYBIT, "--environment", "nowhere"),
            "--environment: is not one of Bybit v5's; write live or test or demo",
        ),
        (
            ("--venue", "kraken", *BYBIT[2:], "--environment", "test"),
            "--environment: is not one of Kraken spot's",
        ),
        ((*BYBIT, "--bot", "a b"), "--bot: is not a usable name"),
        ((*BYBIT, "--base-url", "http://exchange.example"), "--base-url: is plain http to another machine"),
        ((*BYBIT[:2], "--api-key", "a b", *BYBIT[4:]), "--api-key: is not an API key"),
        ((*BYBIT[:-1], "nowhere"), "--secret-file: file:nowhere: there is no file"),
        ((*BYBIT, "--key", "main"), "--key: sealgate.toml is new"),
        ((*BYBIT, "--all"), "--all is for a file to fill in"),
        ((*BYBIT, "--venue", "okx"), "Give one --venue with its key"),
        ((*BYBIT, "--config", "nowhere/a.toml"), "nowhere: No such file or directory"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(
    folder: Path, options: tuple[str, ...], said: str
) -> None:
    result = init(*options)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert "Traceback" not in result.output
    assert SECRET not in result.output
    assert [*folder.iterdir()] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "standard input is empty"),
        ("ak-public-1\n", "is the API key"),
        ("-----BEGIN PUBLIC KEY-----\nMCow\n-----END PUBLIC KEY-----\n", "is a public key"),
        ("x" * 70_000, "is larger than a secret"),
    ],
)
def test_a_secret_that_cannot_be_right_is_refused(folder: Path, text: str, said: str) -> None:
    result = init(*BYBIT, text=text)
    assert (result.exit_code, [*folder.iterdir()]) == (2, [])
    assert f"--secret-file: {said}" in result.stderr or said in result.stderr


def test_force_makes_secrets_private_whatever_was_there(folder: Path) -> None:
    (folder / "main.secret").symlink_to(folder / "elsewhere")
    (folder / "grid.token").touch(0o644)
    (folder / "sealgate.toml").touch(0o640)
    assert init(*BYBIT, "--force", "--bot", "grid").exit_code == 0
    modes = {file.name: stat.S_IMODE(file.lstat().st_mode) for file in folder.iterdir()}
    assert modes == {"main.secret": 0o600, "grid.token": 0o600, "sealgate.toml": 0o640}
    assert not (folder / "main.secret").is_symlink()


def test_a_venue_file_writes_no_line_of_its_own(folder: Path) -> None:
    (folder / "evil.toml").write_text(
        'name = "evil"\ntitle = "E\\n[bots.evil]"\nbase_url = "https://api.example.com"\n'
        '[signing]\nmessage = "{timestamp}"\n[signing.headers]\nS = "{signature}"\n'
    )
    told = init("--venue", "./evil.toml", "--api-key", "x", "--secret-file", "-", "--bot", "grid")
    assert told.exit_code != 0
    assert "title has characters that are not printable" in told.output
    assert not (folder / "sealgate.toml").exists()


@pytest.mark.parametrize("name", ["main.secret", "grid.token"])
def test_a_file_that_is_there_is_replaced_with_force_alone(folder: Path, name: str) -> None:
    (folder / name).write_text("mine")
    result = init(*BYBIT)
    assert (result.exit_code, [file.name for file in folder.iterdir()]) == (2, [name])
    assert f"{name} exists already" in result.stderr
    assert init(*BYBIT, "--force").exit_code == 0
    assert (folder / name).read_text() != "mine"
    assert init(*BYBIT, "--force").exit_code == 0


def test_no_symbolic_link_is_followed(folder: Path) -> None:
    (folder / "sealgate.toml").symlink_to("elsewhere.toml")
    assert "is a symbolic link" in init(*BYBIT).stderr
    (folder / "sealgate.toml").unlink()
    (folder / "main.secret").symlink_to("elsewhere")
    assert "exists already" in init(*BYBIT).stderr
    assert init(*BYBIT, "--force").exit_code == 0
    assert not (folder / "main.secret").is_symlink()
    assert not (folder / "elsewhere").exists()


def test_a_folder_where_others_can_write_is_refused(folder: Path) -> None:
    folder.chmod(0o777)
    result = init(*BYBIT)
    assert (result.exit_code, [*folder.iterdir()]) == (2, [])
    assert "chmod" in result.stderr


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_full_disk_leaves_what_was_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    old_file(folder)
    synced: list[int] = []

    def full(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) == number:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    result = init(*KRAKEN, "--bot", "mine", text="c2VjcmV0")
    assert result.exit_code == 2
    assert "No space left on device" in result.stderr
    assert {file.name: file.read_text() for file in folder.iterdir()} == {"sealgate.toml": OLD}


def test_an_exchange_is_added_and_all_that_was_there_stays(folder: Path) -> None:
    file = old_file(folder)
    result = init(*KRAKEN, "--bot", "grid", text="c2VjcmV0")
    assert result.exit_code == 0, result.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert (folder / "kraken.secret").read_text() == "c2VjcmV0\n"
    text = file.read_text()
    for line in (
        "# mine\n",
        'venue = "bybit"             # since May\n',
        "[exchanges.bybit.limits]\nmax_wait = 7.0\n",
    ):
        assert line in text
    config = load_config(file, environ={})
    assert [*config.served] == ["bybit", "kraken"]
    assert config.served["bybit"].environment == "test"
    assert config.served["kraken"].limits.max_wait == 30.0
    assert config.keys_of("grid") == ("main", "kraken")
    assert "moved below [exchanges.bybit]" in result.stdout


def test_a_bot_that_is_not_named_gets_nothing(folder: Path) -> None:
    file = old_file(folder)
    assert init(*KRAKEN, text="c2VjcmV0").exit_code == 0
    assert load_config(file, environ={}).keys_of("grid") == ("main",)
    assert init("--venue", "okx", *KRAKEN[2:], "--passphrase-file", "nowhere").exit_code == 2
    assert init("--venue", "bybiteu", *KRAKEN[2:], "--bot", "new").exit_code == 0
    config = load_config(file, environ={})
    assert (config.keys_of("grid"), config.keys_of("new")) == (("main",), ("bybiteu",))


def test_a_key_that_is_there_is_used_at_two_exchanges(folder: Path) -> None:
    file = old_file(folder)
    result = init("--venue", "bybit", "--environment", "live", "--key", "main")
    assert "has the exchange bybit already" in result.stderr
    result = init("--venue", "bybit", "--environment", "demo", "--key", "main")
    assert result.exit_code == 0, result.stderr
    config = load_config(file, environ={})
    assert config.exchanges_of("main") == ("bybit", "bybit-demo")
    assert config.keys_of("grid") == ("main",)
    assert "--key: is not a key of sealgate.toml; write main" in init(*KRAKEN[:2], "--key", "other").stderr
    assert "--key: is not a key" in init(*KRAKEN[:2], "--key", "").stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("venue = 7", "correct this first"),
        ("venue = ", "is not TOML"),
        (
            OLD.replace("[keys.main]", "[keys]\nmain = { api_key = 'x', secret = 'env:S' }\n[log]"),
            "is not valid",
        ),
        (
            'venue = "bybit"\nkeys.main = { api_key = "x", secret = "env:S" }\n',
            'write exchange = "bybit" in each key',
        ),
    ],
)
def test_a_file_that_cannot_be_changed_is_left_as_it_is(folder: Path, text: str, said: str) -> None:
    file = old_file(folder, text)
    result = init(*KRAKEN, text="c2VjcmV0")
    assert (result.exit_code, file.read_text(), [*folder.iterdir()]) == (2, text, [file])
    assert said in result.stderr


def test_a_variable_that_the_new_file_cannot_have_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = old_file(folder, OLD.replace('environment = "test"\n', ""))
    monkeypatch.setenv("SEALGATE_BASE_URL", "https://exchange.example")
    result = init(*KRAKEN, text="c2VjcmV0")
    assert (result.exit_code, [*folder.iterdir()]) == (2, [file])
    assert "SEALGATE_BASE_URL" in result.stderr


def test_all_writes_every_setting_and_needs_no_answer(folder: Path) -> None:
    assert init("--all", "--venue", "bybit", "--config", "all.toml").exit_code == 0
    assert (folder / "all.toml").read_text() == starter_text(built_in_venue("bybit"))


def test_the_pointer_to_every_setting_works(folder: Path) -> None:
    assert init(*BYBIT).exit_code == 0
    [line] = [line for line in (folder / "sealgate.toml").read_text().splitlines() if "--all" in line]
    options = line.partition("sealgate config init ")[2].split()
    assert init(*options).exit_code == 0
    assert tomllib.loads((folder / "all.toml").read_text())["venue"] == "bybit"
