import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sealgate import venues
from sealgate.cli import main
from sealgate.config.venues import parse_venue

FILES = sorted((Path(venues.__file__).parent / "files").glob("*.toml"))
NAMES = [file.stem for file in FILES]


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["venues", *arguments], env={"COLUMNS": "80"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def shown(name: str) -> dict[str, Any]:
    document = json.loads(run("show", name, "--json").stdout)
    assert isinstance(document, dict)
    return document


@pytest.mark.parametrize("arguments", [(), ("list",)])
def test_the_list_has_every_venue_and_what_it_was_verified_against(arguments: tuple[str, ...]) -> None:
    lines = run(*arguments).stdout.splitlines()
    rows = {line.split()[0]: line for line in lines if line and not line.startswith(" ")}
    assert set(NAMES) <= rows.keys()
    assert lines[2].startswith("service")
    assert "demo" in rows["okx"]
    assert "ccxt 4.5.90" in rows["okx"]
    assert any(line.split()[0] == "fapi.binance.com" for line in lines if line.strip())
    assert max(map(len, lines)) <= 80


def test_the_list_is_there_for_programs_too() -> None:
    rows = {row["name"]: row for row in json.loads(run("list", "--json").stdout)["venues"]}
    assert set(rows) == set(NAMES)
    assert rows["kucoin"]["key_needs"] == ["api_key", "secret", "passphrase"]
    assert rows["bitmart"]["key_needs"] == ["api_key", "secret", "uid"]
    assert json.loads(run("--json").stdout)["venues"] == list(rows.values())


def test_what_rests_on_an_older_version_is_said() -> None:
    assert "\nccxt 4.5.0: newer versions lack this exchange\n" in run("list").stdout
    shown_text = run("show", "bitmex", "--summary").stdout
    assert "verified    against ccxt 4.5.0, 2026-11; newer versions lack this exchange\n" in shown_text


def test_the_exchanges_that_are_not_served_are_listed_with_the_reason() -> None:
    text = run("list", "--not-served").stdout
    [part] = [part for part in text.split("\n\n") if "hyperliquid" in part]
    assert "dydx" in part
    assert "\n  it signs with a wallet, and the gateway holds API keys only; let the bot" in part
    assert max(map(len, text.splitlines())) <= 80
    rows = json.loads(run("list", "--not-served", "--json").stdout)["not_served"]
    [row] = [row for row in rows if row["name"] == "hyperliquid"]
    assert row["why"].startswith("it signs with a wallet")
    assert row["fix"] == "let the bot connect to it directly"


def test_an_exchange_that_is_not_served_is_explained() -> None:
    result = run("show", "Hyper-Liquid")
    assert result.exit_code == 1
    assert result.stdout.startswith("Hyper-Liquid: not served\n\nwhy         it signs with a wallet,")
    assert "instead     let the bot connect to it directly\nalso for    aster, " in result.stdout
    result = run("show", "hyperliquid", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["is_served"] is False


def test_the_kinds_of_keys_are_shown() -> None:
    text = " ".join(run("show", "binance", "--summary").stdout.split())
    assert "signature hmac: sha256 hex; an HMAC, keyed with the secret as utf8 ed25519: base64 pct;" in text
    assert "rsa: sha256 pkcs1v15 base64 pct; the secret is the private key, as PEM or DER" in text
    assert "The numbers of the private key" in text
    assert list(shown("binance")["kinds"]) == ["hmac", "ed25519", "rsa"]
    assert shown("backpack")["kinds"] == {"ed25519": {"signature": "base64", "advice": ""}}
    lines = run("list").stdout.splitlines()
    assert "ed25519" in lines[[line.split()[:1] for line in lines].index(["binance"]) + 1]


def test_what_a_file_advises_about_a_kind_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "mine"\nlike = "bybit"\n["signing+"."kinds+"."hmac+"]\nadvice = "make an rsa key"\n'
    )
    assert "advice      hmac: make an rsa key\n" in run("show", str(file), "--summary").stdout


def test_a_call_by_whose_name_the_text_is_made_is_the_example() -> None:
    read, order = shown("backpack")["examples"]
    assert read["signed"].startswith("instruction=accountQuery&limit=5&symbol=BTC&timestamp=")
    [order] = shown("pacifica")["examples"]
    assert order["signed"].endswith('"type":"update_leverage"}')
    assert '"account":"UID","agent_wallet":"API_KEY","signature":"SIGNATURE"' in order["body"]


def test_limits_are_shown_by_pool() -> None:
    text = run("show", "binance", "--summary").stdout
    assert "limits      weight, of each address: 6000/60s\n" in text
    assert "sapi-account, of each account, per route: 180000/60s\n" in text
    assert shown("binance")["limits"]["weight"] == {
        "scope": "address",
        "known": ["6000/60s"],
        "counters": ["X-MBX-USED-WEIGHT-1M"],
    }
    kraken = " ".join(run("show", "kraken", "--summary").stdout.split())
    assert "engine, of each account, per pair: not published" in kraken


def test_a_summary_fits_the_terminal_and_names_what_a_key_needs() -> None:
    for name in NAMES:
        lines = run("show", name, "--summary").stdout.splitlines()
        assert max(map(len, lines)) <= 80, name
        labels = {line.split("  ")[0] for line in lines}
        assert {"address", "key needs", "signature", "in memory", "dummy key", "verified"} <= labels, name
        is_static = any(line.startswith("signature   none: ") for line in lines)
        said = "nothing is signed" if is_static else "the text that is signed"
        assert any(line.endswith(said) for line in lines), name


def test_a_bot_that_sets_authorization_itself_is_told_where_its_token_goes() -> None:
    told = "sends the gateway's token as X-Gateway-Token."
    for name, is_told in (("upbit", True), ("okx", False)):
        assert (told in " ".join(run("show", name, "--summary").stdout.split())) is is_told


def test_that_the_secret_itself_is_sent_is_said() -> None:
    text = " ".join(run("show", "luno", "--summary").stdout.split())
    assert "signature none: the secret itself is sent with each request, in Authorization in memory" in text
    alpaca, mudrex = shown("alpaca"), shown("mudrex")
    assert (alpaca["signature"], mudrex["key_needs"]) == ("none: the secret itself is sent", ["secret"])
    assert alpaca["examples"][0]["headers"] == [
        "APCA-API-KEY-ID: API_KEY",
        "APCA-API-SECRET-KEY: SECRET",
    ]


def test_what_is_shown_can_be_saved_and_used_as_a_file(tmp_path: Path) -> None:
    for file in FILES:
        text = run("show", file.stem).stdout
        assert text.startswith(f"# {file.stem}: ")
        assert text.endswith(file.read_text("utf-8"))
        (tmp_path / "mine.toml").write_text(text)
        assert parse_venue(str(tmp_path / "mine.toml")).name == file.stem


def test_hosts_and_environments_are_shown() -> None:
    text = run("show", "binanceusdm", "--summary").stdout
    assert "address     https://fapi.binance.com\n" in text
    assert "environment test: https://testnet.binancefuture.com\n" in text
    assert "            demo: https://demo-fapi.binance.com\n" in text
    assert "like        binance: settings that are not in this file are in that one\n" in text
    okx = run("show", "okx", "--summary").stdout
    assert "environment demo: the same address\n              x-simulated-trading: 1\n" in okx
    document = shown("okx")
    assert (document["like"], document["base_url"]) == ("", "https://www.okx.com")
    assert document["environments"]["demo"]["headers"] == {"x-simulated-trading": "1"}


def test_streams_are_shown_by_host_with_what_they_have() -> None:
    text = run("show", "okx", "--summary").stdout
    assert "streams     opened as ws://127.0.0.1:8787/HOST/PATH" in text
    assert "\n            ws.okx.com, ws.okx.com:8443," in text
    assert "\n              /ws/v5/private, /ws/v5/business: a login, orders\n" in text
    assert "\n              /ws/v5/public: passed on unread\n" in text
    assert "\n            new streams from one IP address: at most 3/1s\n" in text
    private = shown("okx")["streams"][0]
    assert (private["hosts"][0], private["paths"]) == ("ws.okx.com", ["/ws/v5/private", "/ws/v5/business"])
    assert (private["needs"], private["is_read"]) == ("read", True)
    assert (private["has_login"], private["has_orders"]) == (True, True)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("bybit", "/v5/trade: needs trade, a login, orders"),
        ("upbit", "/websocket/v1/private: a signed handshake"),
        ("backpack", "/: signed messages"),
        ("kraken", "/v2: orders"),
        ("lbank", "/ws/V2/: no login"),
    ],
)
def test_what_a_stream_has_is_told_in_a_few_words(name: str, line: str) -> None:
    assert f"\n              {line}\n" in run("show", name, "--summary").stdout


def test_a_stream_of_any_path_and_no_stream_at_all() -> None:
    assert "\n            dstream.binance.com:\n              any path: passed on unread\n" in (
        run("show", "binancecoinm", "--summary").stdout
    )
    assert "\nstreams     none\n" in run("show", "luno", "--summary").stdout
    assert shown("luno")["streams"] == []


def test_the_signed_text_is_shown_as_a_request_would_have_it() -> None:
    read, order = shown("binance")["examples"]
    assert read["request"] == "GET /path?symbol=BTC&limit=5"
    assert read["signed"] == "timestamp=1790000000000&symbol=BTC&limit=5&recvWindow=10000"
    assert read["target"] == f"/path?{read['signed']}&signature=SIGNATURE"
    assert order["body"] == "timestamp=1790000000000&symbol=BTC&side=buy&recvWindow=10000&signature=SIGNATURE"
    [okx, _] = shown("okx")["examples"]
    assert okx["signed"] == "2026-09-21T14:13:20.000ZGET/path?symbol=BTC&limit=5"
    assert "OK-ACCESS-SIGN: SIGNATURE" in okx["headers"]


def test_what_a_file_lacks_and_what_that_means_is_said() -> None:
    text = " ".join(run("show", "phemex", "--summary").stdout.split())
    assert "the Date header of replies" in text
    assert "an error in an HTTP 200 looks like a success" in text


@pytest.mark.parametrize(("name", "meant"), [("binanse", "binance"), ("krakn", "kraken")])
def test_an_unknown_name_is_answered_with_the_nearest(name: str, meant: str) -> None:
    result = run("show", name)
    assert result.exit_code == 2
    assert result.stderr == f"sealgate: error: {name!r} is not a venue; did you mean {meant}?\n"


def test_a_name_like_no_other_is_answered_with_where_they_are_listed() -> None:
    assert "`sealgate venues` lists them" in run("show", "zzzzzz").stderr


def test_a_file_of_ones_own_is_checked_and_shown(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(run("show", "okx").stdout.replace("iso_ms", "ms"))
    assert "1790000000000GET/path" in run("show", str(file), "--summary").stdout
    file.write_text(file.read_text().replace('timestamp = "ms"', 'timestamp = "msec"'))
    result = run("show", str(file))
    assert result.exit_code == 2
    [line] = result.stderr.splitlines()
    assert line.startswith(f"sealgate: error: {file}:")
    assert "did you mean" in line


def test_a_file_that_is_not_there_is_said_in_one_line(tmp_path: Path) -> None:
    result = run("show", str(tmp_path / "none.toml"))
    assert result.exit_code == 2
    [line] = result.stderr.splitlines()
    assert line.startswith(f"sealgate: error: {tmp_path / 'none.toml'} cannot be read: No such file")
