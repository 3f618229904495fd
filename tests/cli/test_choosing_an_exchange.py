"""Which exchange `sign`, `discover` and `keys` are about, where there are several."""

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rig.command import ended_command
from sealgate.cli import main
from sealgate.sandbox.server import running_sandbox

TABLES = """
[exchanges.spot]
venue = "binance"
[exchanges.perp]
venue = "bybit"
[exchanges.mine]
base_url = "{mine}"
[keys.main]
api_key = "ak-public-1"
secret = "env:EXCHANGE_SECRET"
exchanges = ["spot", "perp"]
[keys.alt]
api_key = "ak-public-2"
secret = "env:EXCHANGE_SECRET"
exchange = "spot"
[keys.own]
api_key = "{api_key}"
secret = "env:EXCHANGE_SECRET"
session = "env:EXCHANGE_SESSION"
exchange = "mine"
[bots.grid]
token = "env:GRID"
keys = ["main", "alt", "own"]
"""
ENVIRON = {"EXCHANGE_SECRET": "correct-horse-battery-staple", "EXCHANGE_SESSION": "session-of-somebody"}


def write(folder: Path, mine: str = "http://127.0.0.1:9", api_key: str = "ak-public-3") -> str:
    file = folder / "sealgate.toml"
    file.write_text(TABLES.format(mine=mine, api_key=api_key))
    return str(file)


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--config", write(folder)], env=ENVIRON)


# The arguments of `sign`, and the host that the request would go to.
CHOSEN = {
    "by name": (["--exchange", "perp", "--key", "main"], "https://api.bybit.com/x"),
    "by name, with its only key": (["--exchange", "perp"], "https://api.bybit.com/x"),
    "by a key that is valid at one": (["--key", "alt"], "https://api.binance.com/x"),
}


@pytest.mark.parametrize(("arguments", "url"), CHOSEN.values(), ids=CHOSEN)
def test_the_exchange_that_is_meant(tmp_path: Path, arguments: list[str], url: str) -> None:
    result = run(tmp_path, "sign", "GET", "/x", "--curl", *arguments)
    assert result.exit_code == 0, result.output
    assert shlex.split(result.stdout)[-1].startswith(url)


@pytest.mark.parametrize(("target", "is_told"), [("/perp/v5/order", True), ("/v5/perp/order", False)])
def test_a_target_with_the_exchange_s_name_is_signed_as_it_is_and_doubted(
    tmp_path: Path, target: str, *, is_told: bool
) -> None:
    result = run(tmp_path, "sign", "GET", target, "--exchange", "perp", "--curl")
    assert shlex.split(result.stdout)[-1] == f"https://api.bybit.com{target}"
    assert ("TARGET begins with the exchange's name" in result.stderr) == is_told


REFUSED = {
    "nothing is said": ([], "there are several exchanges; choose one with --exchange: spot, perp, mine"),
    "a key of several": (
        ["--key", "main"],
        "main is valid at several exchanges; choose one with --exchange: spot, perp",
    ),
    "an exchange with several keys": (
        ["--exchange", "spot"],
        "there are several keys; choose one with --key: main, alt",
    ),
    "an unknown exchange": (
        ["--exchange", "prep"],
        "--exchange: there is no exchange 'prep'; did you mean perp?",
    ),
    "an exchange like no other": (
        ["--exchange", "xyz"],
        "--exchange: there is no exchange 'xyz'; choose one of spot, perp, mine",
    ),
    "an unknown key": (["--key", "mian"], "--key: there is no key 'mian'; choose one of main, alt, own"),
    "a key of another exchange": (
        ["--exchange", "perp", "--key", "alt"],
        "--key: 'alt' is not a key of perp; choose one of main",
    ),
}


@pytest.mark.parametrize(("arguments", "told"), REFUSED.values(), ids=REFUSED)
def test_what_leaves_it_open_is_asked_for(tmp_path: Path, arguments: list[str], told: str) -> None:
    result = run(tmp_path, "sign", "GET", "/x", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"sealgate: error: {told}\n"


async def test_keys_and_discover_are_about_the_only_exchange_that_has_it(tmp_path: Path) -> None:
    async with running_sandbox() as sandbox:
        file = write(tmp_path, sandbox.base_url, sandbox.api_key)
        environ = {"EXCHANGE_SECRET": sandbox.api_secret, "EXCHANGE_SESSION": sandbox.session_token}
        listed = await ended_command("keys", "list", "--config", file, "--json", environ=environ)
        found = await ended_command("discover", "--yes", "--every", "0.1", "--config", file, environ=environ)
    assert '"exchange": "mine"' in listed.stdout
    assert '"alias": "own"' in listed.stdout
    assert found.exit_code == 0, found.output
    assert found.stdout.startswith("[exchanges.mine.signing]\n")


def test_discover_has_nothing_to_find_out_at_another(tmp_path: Path) -> None:
    result = run(tmp_path, "discover", "--exchange", "perp")
    assert result.exit_code == 2
    assert "the file of bybit states how requests are signed" in result.stderr
