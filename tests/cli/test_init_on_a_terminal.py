"""`sealgate config init` as a person meets it, on a terminal."""

import json
import os
import stat
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from rig.terminal import Terminal, in_a_terminal
from sealgate.cli import main

SECRET = "correct-horse-battery-staple"
CTRL_C, CTRL_D = "\x03", "\x04"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pem(passphrase: str = "") -> str:
    way = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, way).decode()


def is_good_offline(folder: Path) -> bool:
    """Whether `check` has nothing against the files, apart from the ports of this machine."""
    places = {"SEALGATE_LISTEN__TCP": "127.0.0.1:0", "SEALGATE_ADMIN__TCP": "127.0.0.1:0"}
    file = str(folder / "sealgate.toml")
    result = CliRunner().invoke(main, ["check", "--offline", "--config", file], env=places)
    return result.exit_code == 0


def files_in(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in folder.iterdir()}


def answer_all(terminal: Terminal, secret: str = SECRET) -> None:
    terminal.answer("Exchange (", "bybit")
    terminal.answer("Environment (", "test")
    terminal.answer("API key: ", "ak-public-1")
    terminal.answer("not shown): ", secret)
    terminal.answer("bot [grid]: ")


def test_the_answers_become_files_for_their_owner_alone_and_the_secret_is_not_shown(folder: Path) -> None:
    previous = os.umask(0)
    try:
        with in_a_terminal("config", "init", folder=folder) as terminal:
            answer_all(terminal)
            assert terminal.end() == 0
    finally:
        os.umask(previous)
    files = files_in(folder)
    assert files.keys() == {"sealgate.toml", "main.secret", "grid.token"}
    assert {stat.S_IMODE((folder / name).stat().st_mode) for name in files} == {0o600}
    assert files["main.secret"] == f"{SECRET}\n"
    assert len(files["grid.token"].strip()) >= 32
    assert tomllib.loads(files["sealgate.toml"]) == {
        "venue": "bybit",
        "environment": "test",
        "keys": {"main": {"api_key": "ak-public-1", "secret": "file:main.secret"}},
        "bots": {"grid": {"token": "file:grid.token", "may": ["read", "trade"]}},
        "journal": {"file": "journal.db"},
    }
    assert SECRET not in terminal.output
    assert files["grid.token"].strip() not in terminal.output
    assert is_good_offline(folder)
    # What is shown fits, and ends with what to paste.
    assert max(len(line) for line in terminal.output.splitlines() if str(folder) not in line) <= 80
    for line in ("sealgate check ", "sealgate serve ", "curl http://127.0.0.1:8787/v5/user/query-api \\"):
        assert f"\n{line}" in terminal.output


def test_a_wrong_answer_is_asked_for_again(folder: Path) -> None:
    with in_a_terminal("config", "init", folder=folder) as terminal:
        terminal.answer("Exchange (", "?")
        terminal.until("bybit, bybiteu")
        terminal.answer("Exchange (", "bynance")
        terminal.until("did you mean binance?")
        terminal.answer("Exchange (", "Binance")
        terminal.answer("Environment (", "testnet")
        terminal.until("write live or test or demo")
        terminal.answer("Environment (", "demo")
        terminal.answer("API key: ", "")
        terminal.until("is empty")
        terminal.answer("API key: ", "ak public 1")
        terminal.until("without spaces")
        terminal.answer("API key: ", "ak-public-1")
        terminal.answer("not shown): ", "ak-public-1")
        terminal.until("is the API key")
        terminal.answer("not shown): ", "")
        terminal.until("is empty")
        terminal.answer("not shown): ", SECRET)
        terminal.answer("bot [grid]: ", "a b")
        terminal.until("is not a usable name")
        terminal.answer("bot [grid]: ", "unknown")
        terminal.answer("bot [grid]: ", "mine")
        assert terminal.end() == 0
    assert files_in(folder).keys() == {"sealgate.toml", "main.secret", "mine.token"}


@pytest.mark.parametrize("key", [CTRL_C, CTRL_D])
@pytest.mark.parametrize("answers", range(5))
def test_ctrl_c_or_ctrl_d_at_any_question_leaves_nothing(folder: Path, answers: int, key: str) -> None:
    talk = [
        *(("Exchange (", "bybit"), ("Environment (", ""), ("API key: ", "ak-public-1")),
        *(("not shown): ", SECRET), ("bot [grid]: ", "")),
    ]
    with in_a_terminal("config", "init", folder=folder) as terminal:
        for question, text in talk[:answers]:
            terminal.answer(question, text)
        terminal.answer(talk[answers][0], key, end="")
        assert terminal.end() == 1
    assert files_in(folder) == {}
    assert terminal.output.endswith("\nsealgate: stopped; nothing was written\n")
    assert SECRET not in terminal.output


def test_a_private_key_is_pasted_or_named(folder: Path) -> None:
    text = pem()
    with in_a_terminal("config", "init", "--venue", "binance", folder=folder) as terminal:
        terminal.answer("Environment (")
        terminal.answer("API key: ", "ak-public-1")
        terminal.answer("not shown): ", text)
        terminal.answer("bot [grid]: ")
        assert terminal.end() == 0
    assert files_in(folder)["main.secret"] == text
    assert text.splitlines()[1] not in terminal.output
    (folder / "mine.pem").write_text(text)
    (folder / "mine.pem").chmod(0o600)
    with in_a_terminal("config", "init", "--venue", "binance", "--force", folder=folder) as terminal:
        terminal.answer("Environment (")
        terminal.answer("API key: ", "ak-public-1")
        terminal.answer("not shown): ", "yours.pem")
        terminal.until("there is no file")
        terminal.answer("not shown): ", "mine.pem")
        terminal.answer("bot [grid]: ")
        assert terminal.end() == 0
    assert 'secret = "file:mine.pem"' in files_in(folder)["sealgate.toml"]
    assert is_good_offline(folder)


def test_the_file_that_an_exchange_hands_out_is_pasted_whole(folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    text = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
    handed_out = json.dumps({"name": "organizations/x/apiKeys/y", "privateKey": text}, indent=3)
    with in_a_terminal("config", "init", "--venue", "coinbase", folder=folder) as terminal:
        terminal.answer("API key: ", "organizations/x/apiKeys/y")
        terminal.answer("not shown): ", handed_out)
        terminal.answer("bot [grid]: ")
        assert terminal.end() == 0
    assert json.loads(files_in(folder)["main.secret"])["privateKey"] == text
    assert is_good_offline(folder)


def test_of_an_encrypted_private_key_the_passphrase_is_asked_for(folder: Path) -> None:
    with in_a_terminal("config", "init", "--venue", "binance", folder=folder) as terminal:
        terminal.answer("Environment (")
        terminal.answer("API key: ", "ak-public-1")
        for passphrase in ("wrong", SECRET):
            terminal.answer("its file; not shown): ", text := pem(SECRET))
            terminal.answer("private key (not shown): ", passphrase)
        terminal.answer("bot [grid]: ")
        assert terminal.end() == 0
    assert SECRET not in terminal.output
    files = files_in(folder)
    assert (files["main.secret"], files["main.secret-passphrase"]) == (text, f"{SECRET}\n")
    assert is_good_offline(folder)


def test_what_else_a_key_needs_is_asked_for(folder: Path) -> None:
    with in_a_terminal(
        "config", "init", "--venue", "okx", "--environment", "live", folder=folder
    ) as terminal:
        terminal.answer("API key: ", "ak-public-1")
        terminal.answer("Secret (not shown): ", SECRET)
        terminal.answer("Passphrase of the API key (not shown): ", "a passphrase")
        terminal.answer("bot [grid]: ")
        assert terminal.end() == 0
    assert "a passphrase" not in terminal.output
    assert files_in(folder)["main.passphrase"] == "a passphrase\n"
    with in_a_terminal("config", "init", "--venue", "bitmart", "--force", folder=folder) as terminal:
        terminal.answer("API key: ", "ak-public-1")
        terminal.answer("id or memo: ", "a memo")
        terminal.answer("Secret (not shown): ", SECRET)
        terminal.answer("bot [grid]: ")
        assert terminal.end() == 0
    assert 'uid = "a memo"' in files_in(folder)["sealgate.toml"]
    assert is_good_offline(folder)


def test_an_exchange_is_added_to_the_file_that_is_there(folder: Path) -> None:
    with in_a_terminal("config", "init", folder=folder) as terminal:
        answer_all(terminal)
        assert terminal.end() == 0
    with in_a_terminal("config", "init", folder=folder) as terminal:
        terminal.until("adds an exchange to sealgate.toml")
        terminal.answer("Exchange (", "kraken")
        terminal.answer("API key: ", "ak-public-2")
        terminal.answer("not shown): ", "not base64")
        terminal.answer("not shown): ", "c2VjcmV0")
        terminal.answer("(grid, a new name", "grid")
        assert terminal.end() == 0
    for change in (
        "Changed sealgate.toml:",
        "- venue and environment moved below [exchanges.bybit]",
        '- bots.grid may use main and kraken: keys = ["main", "kraken"]',
        "- bots now write the exchange's name before its paths: http://127.0.0.1:8787/bybit/",
    ):
        assert change in " ".join(terminal.output.split())
    assert "\nsealgate reload " in terminal.output
    assert "\ncurl http://127.0.0.1:8787/kraken/0/private/Balance" in terminal.output
    assert max(len(line) for line in terminal.output.splitlines() if str(folder) not in line) <= 80
    assert files_in(folder).keys() == {"sealgate.toml", "main.secret", "kraken.secret", "grid.token"}
    assert is_good_offline(folder)


def test_a_key_that_may_be_valid_at_another_host_of_its_exchange_is_offered(folder: Path) -> None:
    with in_a_terminal("config", "init", "--venue", "binance", folder=folder) as terminal:
        terminal.answer("Environment (")
        terminal.answer("API key: ", "ak-public-1")
        terminal.answer("not shown): ", SECRET)
        terminal.answer("bot [grid]: ")
        assert terminal.end() == 0
    with in_a_terminal("config", "init", "--venue", "binanceusdm", folder=folder) as terminal:
        terminal.answer("Environment (")
        terminal.answer("Key (main, which you have", "mine")
        terminal.until("is not a key")
        terminal.answer("Key (main, which you have", "main")
        assert terminal.end() == 0
    tree = tomllib.loads(files_in(folder)["sealgate.toml"])
    assert tree["keys"]["main"]["exchanges"] == ["binance", "binanceusdm"]
    assert is_good_offline(folder)


def test_a_file_that_somebody_changes_meanwhile_is_left_as_it_is(folder: Path) -> None:
    file = folder / "sealgate.toml"
    file.write_text('venue = "bybit"\n[keys.main]\napi_key = "x"\nsecret = "env:SECRET"\n')
    with in_a_terminal("config", "init", "--venue", "kraken", folder=folder) as terminal:
        terminal.answer("API key: ", "ak-public-2")
        terminal.answer("not shown): ", "c2VjcmV0")
        terminal.until("- for none")
        file.write_text(text := file.read_text() + "# mine\n")
        terminal.answer("): ")
        assert terminal.end() == 2
    assert files_in(folder) == {"sealgate.toml": text}
    assert "was changed by someone else meanwhile" in terminal.output


def test_with_several_exchanges_each_is_asked_for(folder: Path) -> None:
    with in_a_terminal("config", "init", "--venue", "binance", "--venue", "bybit", folder=folder) as terminal:
        for question in ("bot [grid]: ", "(grid, a new name"):
            terminal.answer("Environment (")
            terminal.answer("API key: ", f"ak-{len(question)}")
            terminal.answer("not shown): ", SECRET)
            terminal.answer(question, "grid")
        assert terminal.end() == 0
    tree = tomllib.loads(files_in(folder)["sealgate.toml"])
    assert (tree["exchanges"].keys(), tree["bots"]["grid"]["keys"]) == (
        {"binance", "bybit"},
        ["main", "bybit"],
    )
    assert is_good_offline(folder)
