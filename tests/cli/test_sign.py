import asyncio
import hashlib
import itertools
import json
import re
import shlex
import subprocess
from base64 import b64decode, b64encode
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rig import oracle
from rig.command import ended_command, environ_of
from rig.private_keys import PRIVATE, new_key, private, public_der
from rig.private_keys import VENUE as MINE
from rig.upstream import running_upstream
from sealgate.cli import main
from sealgate.machine.system import System
from sealgate.orders.journal.file import connect, prepare
from sealgate.orders.journal.lock import Lock
from sealgate.orders.journal.nonces import raise_mark
from sealgate.sandbox.server import running_sandbox
from sealgate.sandbox.settings import SandboxSettings
from sealgate.venues.key_kinds import Kind

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "signatures.json").read_text())["vectors"]
SECRET = "correct-horse-battery-staple"
FINGERPRINT = oracle.hmac_sha256(SECRET.encode(), b"sealgate: fingerprint of a secret")[:8]
TARGET = "/v1/trade/symbols/list"
ENVIRON = {
    "SEALGATE_BASE_URL": "https://exchange.example/api/",
    "SEALGATE_KEYS__MAIN__API_KEY": "ak-public-1",
    "SEALGATE_KEYS__MAIN__SECRET": "env:EXCHANGE_SECRET",
    "EXCHANGE_SECRET": SECRET,
}
TWO_KEYS = {
    "SEALGATE_KEYS__ALT__API_KEY": "ak-public-2",
    "SEALGATE_KEYS__ALT__SECRET": "env:EXCHANGE_SECRET",
    "SEALGATE_BOTS__GRID__TOKEN": "env:NOWHERE",
    "SEALGATE_BOTS__GRID__KEY": "main",
}


def sign(*arguments: str, **environ: str) -> Result:
    result = CliRunner().invoke(main, ["sign", *arguments], env=ENVIRON | environ)
    secret = environ.get("EXCHANGE_SECRET", SECRET)
    assert secret not in result.output
    assert b64encode(f"ak-public-1:{secret}".encode()).decode() not in result.output
    return result


def signed(*arguments: str, **environ: str) -> dict[str, Any]:
    result = sign(*arguments, "--json", **environ)
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert isinstance(document, dict)
    return document


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_the_shared_vectors(tmp_path: Path, vector: dict[str, str]) -> None:
    body = tmp_path / "body"
    body.write_bytes(b64decode(vector["body_base64"]))
    document = signed(
        *(vector["method"], vector["target"], "--body", str(body), "--timestamp", vector["timestamp"]),
        EXCHANGE_SECRET=vector["secret"],
        SEALGATE_SIGNING__ENCODING=vector["encoding"],
        SEALGATE_SIGNING__SECRET_IS=vector["secret_is"],
        SEALGATE_SIGNING__TARGET=vector["target_mode"],
    )
    assert document["headers"] == {
        "X-SERVICE-APIKEY": "ak-public-1",
        "X-SERVICE-TIMESTAMP": vector["timestamp"],
        "X-SERVICE-SIGNATURE": vector["signature"],
    }
    assert bytes.fromhex(document["string_to_sign_hex"]) == b64decode(vector["message_base64"])


def test_what_people_read(tmp_path: Path) -> None:
    """A binary body stays on one line, and every byte of it can be told."""
    body = tmp_path / "body"
    body.write_bytes(b"\x00\n\xff'")
    result = sign("put", "/v1/trade/blob", "--body", str(body), "--timestamp", "1790000000000")
    message = b"1790000000000PUT/blob\x00\n\xff'"
    signature = oracle.hmac_sha256(SECRET.encode(), message)
    assert result.stdout.splitlines() == [
        "X-SERVICE-APIKEY: ak-public-1",
        "X-SERVICE-TIMESTAMP: 1790000000000",
        f"X-SERVICE-SIGNATURE: {signature}",
        "",
        f"signed, 25 bytes:     {message!r}",
        "sent, but not signed: /v1/trade",
        f"secret:               main, fingerprint {FINGERPRINT}, used as utf8",
        "signature:            HMAC-SHA256 in hex",
    ]
    assert (
        result.stderr == "sealgate: nothing was sent; the timestamp is from --timestamp and valid for 5 s\n"
    )


def test_what_is_left_out_is_told() -> None:
    left_out = ["/v1/trade", "?a=%2C"]
    assert f"sent, but not signed: {' '.join(left_out)}\n" in sign("GET", f"{TARGET}?a=%2C").stdout
    document = signed("GET", f"{TARGET}?a=%2C")
    assert document["not_signed"] == left_out
    assert (document["key"], document["secret_fingerprint"]) == ("main", FINGERPRINT)
    assert document["signing"] == {
        "kind": "hmac",
        "encoding": "hex",
        "secret_is": "utf8",
        "target": "path",
    }
    bare = sign("GET", "/x", SEALGATE_UPSTREAM__PREFIX="/")
    assert "sent, but not signed: nothing\n" in bare.stdout


BINANCE = {"SEALGATE_VENUE": "binance"}
OKX = {"SEALGATE_VENUE": "okx", "SEALGATE_KEYS__MAIN__PASSPHRASE": "env:EXCHANGE_SECRET"}


def test_what_a_venue_adds_to_the_query_is_shown() -> None:
    message = b"timestamp=1790000000000&symbol=BTCUSDT&recvWindow=10000"
    signature = oracle.hmac_sha256(SECRET.encode(), message)
    url = "https://exchange.example/api/api/v3/account"
    result = sign("GET", "/api/v3/account?symbol=BTCUSDT", "--timestamp", "1790000000000", **BINANCE)
    assert result.stdout.splitlines() == [
        "X-MBX-APIKEY: ak-public-1",
        "",
        f"signed, {len(message)} bytes:     {message!r}",
        f"sent to:              {url}?{message.decode()}&signature={signature}",
        f"secret:               main, fingerprint {FINGERPRINT}, used as utf8",
        "signature:            HMAC-SHA256 in hex",
    ]


def test_what_a_venue_adds_to_a_form_is_shown_and_sent_by_the_curl_command(tmp_path: Path) -> None:
    body = tmp_path / "order"
    body.write_text("symbol=BTCUSDT&side=BUY")
    message = b"timestamp=1790000000000&symbol=BTCUSDT&side=BUY&recvWindow=10000"
    sent = f"{message.decode()}&signature={oracle.hmac_sha256(SECRET.encode(), message)}"
    asked = ("POST", "/api/v3/order", "--body", str(body), "--timestamp", "1790000000000")
    result = sign(*asked, **BINANCE)
    assert f"sent body:            {sent.encode()!r}" in result.stdout.splitlines()
    document = signed(*asked, **BINANCE)
    assert (document["venue"], document["body"]) == ("binance", sent)
    words = shlex.split(sign(*asked, "--curl", **BINANCE).stdout)
    assert words[words.index("--data-raw") + 1] == sent
    assert "Content-Type: application/x-www-form-urlencoded" in words


def test_the_curl_command_says_that_a_body_with_added_members_is_json() -> None:
    asked = ("POST", "/api/v4/trade-account/balance", "--curl")
    words = shlex.split(sign(*asked, SEALGATE_VENUE="whitebit").stdout)
    assert json.loads(words[words.index("--data-raw") + 1])["request"] == "/api/v4/trade-account/balance"
    assert "Content-Type: application/json" in words


def test_a_venue_that_signs_into_headers_leaves_target_and_body_alone(tmp_path: Path) -> None:
    body = tmp_path / "order.json"
    body.write_text('{"instId":"BTC-USDT"}')
    asked = ("POST", "/api/v5/trade/order", "--body", str(body), "--timestamp", "1790000000000")
    result = sign(*asked, **OKX)
    assert "2026-09-21T14:13:20.000ZPOST/api/v5/trade/order{" in result.stdout
    assert "sent to" not in result.stdout
    assert "sent body" not in result.stdout


def test_the_passphrase_is_shown_no_more_than_the_secret() -> None:
    result = sign("GET", "/api/v5/account/balance", **OKX)
    assert "OK-ACCESS-PASSPHRASE: (hidden)" in result.stdout.splitlines()
    assert signed("GET", "/api/v5/account/balance", **OKX)["headers"]["OK-ACCESS-PASSPHRASE"] == "(hidden)"
    refused = sign("GET", "/api/v5/account/balance", "--curl", **OKX)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "would show the key's secret or passphrase" in refused.stderr


ALGORITHMS = {
    Kind.ED25519: ("an Ed25519 private key", "Ed25519 in base64"),
    Kind.RSA: ("an RSA private key", "RSA PSS with SHA256 in base64"),
    Kind.ES256: ("an EC private key", "ES256 in base64"),
}


@pytest.mark.parametrize("kind", PRIVATE)
def test_a_private_key_is_shown_by_its_kind_and_the_fingerprint_of_its_public_key(
    tmp_path: Path, kind: Kind
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(MINE)
    key = new_key(kind)
    environ = {"SEALGATE_VENUE": str(file), "EXCHANGE_SECRET": private(key).decode()}
    lines = sign("GET", "/x", "--timestamp", "1", **environ).stdout.splitlines()
    words, algorithm = ALGORITHMS[kind]
    fingerprint = hashlib.sha256(public_der(key)).hexdigest()[:8]
    assert lines[-4:] == [
        "signed, 6 bytes:      b'1GET/x'",
        f"secret:               main, {words}",
        f"public key:           fingerprint {fingerprint}",
        f"signature:            {algorithm}",
    ]
    document = signed("GET", "/x", **environ)
    assert document["secret_fingerprint"] == fingerprint
    assert (document["signing"]["kind"], document["signing"]["secret_is"]) == (kind, None)


def test_a_secret_that_is_sent_itself_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "mine"\ntitle = "Mine"\n[signing]\nstatic = true\n[signing.headers]\n'
        'X-BASIC = "{basic|base64}"\nX-TOKEN = "t{secret}"\nX-KEY = "{api_key}"\n'
        '[signing.parts]\npair = "{api_key}:{secret}"\nbasic = "{pair}"\n'
    )
    lines = sign("GET", "/x", SEALGATE_VENUE=str(file)).stdout.splitlines()
    assert lines[:3] == ["X-BASIC: (hidden)", "X-TOKEN: (hidden)", "X-KEY: ak-public-1"]
    assert lines[-1] == "signature:            none: the secret itself is sent"
    file.write_text(
        'name = "mine"\ntitle = "Mine"\n[signing]\nstatic = true\nmessage = "{target}{secret}"\n'
        '[signing.headers]\nX-SIGN = "{signature}"\n'
    )
    assert "signed, 8 bytes:      b'(hidden)'" in sign("GET", "/x", SEALGATE_VENUE=str(file)).stdout


@pytest.mark.parametrize(
    ("venue", "header"),
    [("alpaca", "APCA-API-SECRET-KEY"), ("luno", "Authorization"), ("mudrex", "X-Authentication")],
)
def test_a_secret_that_requests_of_a_venue_carry_is_not_shown(venue: str, header: str) -> None:
    result = sign("GET", "/v2/account", SEALGATE_VENUE=venue)
    assert f"{header}: (hidden)" in result.stdout.splitlines()
    assert result.stderr == "sealgate: nothing was sent\n"
    assert sign("GET", "/v2/account", "--curl", SEALGATE_VENUE=venue).exit_code == 2


def test_a_body_that_the_venue_cannot_sign_is_refused_in_one_line(tmp_path: Path) -> None:
    body = tmp_path / "order.json"
    body.write_text('{"pair":"XBTUSD"}')
    kraken = {"SEALGATE_VENUE": "kraken", "EXCHANGE_SECRET": b64encode(b"0123456789").decode()}
    refused = sign("POST", "/0/private/AddOrderBatch", "--body", str(body), **kraken)
    assert (refused.exit_code, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert refused.stderr.startswith(
        "sealgate: error: bad_request: the request cannot be signed: this venue signs no"
    )


def test_the_url_has_the_path_of_the_base_url_in_front() -> None:
    assert signed("GET", f"{TARGET}?a=%2C")["url"] == f"https://exchange.example/api{TARGET}?a=%2C"


def test_it_says_that_the_clock_is_the_hosts() -> None:
    assert "this machine's clock" in sign("GET", TARGET).stderr


def test_a_key_is_chosen_by_its_alias() -> None:
    assert signed("GET", TARGET, "--key", "alt", **TWO_KEYS)["headers"]["X-SERVICE-APIKEY"] == "ak-public-2"


def test_the_curl_command_goes_the_way_that_the_gateway_does() -> None:
    way = {
        "SEALGATE_UPSTREAM__PROXY": "socks5://grid@127.0.0.1:1080",
        "SEALGATE_UPSTREAM__SOURCE": "127.0.0.1",
        "SEALGATE_UPSTREAM__HEADERS": '{"x-simulated-trading": "1"}',
    }
    words = shlex.split(sign("GET", TARGET, "--curl", **way).stdout)
    options = set(itertools.pairwise(words))
    assert ("--proxy", "socks5h://grid@127.0.0.1:1080") in options
    assert ("--interface", "127.0.0.1") in options
    assert ("--header", "x-simulated-trading: 1") in options


@pytest.mark.needs("curl")
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
async def test_the_curl_command_sends_what_was_signed(tmp_path: Path, method: str) -> None:
    body = tmp_path / "bo dy's"
    body.write_bytes(b'{"symbol":\x00}\n')
    with_body = ("--body", str(body)) if method == "POST" else ()
    target = "/v1/trade/orders?ids[]=1&at=%2C~"
    async with running_upstream() as upstream:
        result = sign(method, target, *with_body, "--curl", SEALGATE_BASE_URL=upstream.base_url)
        curl = await asyncio.create_subprocess_exec("sh", "-c", result.stdout, stdout=subprocess.DEVNULL)
        assert await curl.wait() == 0
    (received,) = upstream.received
    assert (received.method, received.target) == (method.encode(), target.encode())
    assert received.body == (body.read_bytes() if with_body else b"")
    stamp = received.head.value(b"X-SERVICE-TIMESTAMP") or b""
    expected = oracle.signature(SECRET.encode(), stamp, received.method, received.target, received.body)
    assert received.head.value(b"X-SERVICE-SIGNATURE") == expected.encode()


@pytest.mark.needs("curl")
async def test_the_sandbox_takes_the_curl_command(tmp_path: Path) -> None:
    body = tmp_path / "order.json"
    body.write_text('{"symbol": "BTC", "side": "buy", "size": "0.001", "price": "65000.0"}\n')
    settings = SandboxSettings(signature_encoding="base64", signed_target="path_and_query")
    async with running_sandbox(settings) as sandbox:
        environ = environ_of(sandbox, SIGNING__ENCODING="base64", SIGNING__TARGET="path_and_query")
        asked = ("POST", "/v1/trade/order", "--body", str(body))
        result = await ended_command("sign", *asked, "--curl", environ=environ)
        line = result.stdout.replace("curl ", "curl -fsS ", 1)
        curl = await asyncio.create_subprocess_exec("sh", "-c", line, stdout=subprocess.PIPE)
        out, _ = await curl.communicate()
    assert curl.returncode == 0
    assert b"order_id" in out


WRONG = {
    "outside the prefix": (["GET", "/other"], {}, "outside_prefix: "),
    "unknown key": (["GET", TARGET, "--key", "b"], {}, "--key: there is no key 'b'; choose one of main"),
    "no key chosen": (
        ["GET", TARGET],
        TWO_KEYS,
        "there are several keys; choose one with --key: ",
    ),
    "no configuration": (["GET", TARGET], {"SEALGATE_BASE_URL": "ftp://x"}, "SEALGATE_BASE_URL: "),
    "no secret": (["GET", TARGET], {"SEALGATE_KEYS__MAIN__SECRET": "env:NOWHERE"}, "env:NOWHERE: "),
}


@pytest.mark.parametrize(("arguments", "environ", "told"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_in_one_line(arguments: list[str], environ: dict[str, str], told: str) -> None:
    result = sign(*arguments, **environ)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"sealgate: error: {told}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["FETCH", TARGET],
        ["GET", TARGET, "--body", "nowhere"],
        ["GET", TARGET, "--curl", "--json"],
    ],
)
def test_wrong_usage(arguments: list[str]) -> None:
    result = sign(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: " in result.stderr


def test_a_nonce_is_above_those_of_the_gateway_unless_that_runs(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    prepare(file)
    ahead = int((System().wall() + 5) * 1000)
    environ = {
        "SEALGATE_VENUE": "kraken",
        "SEALGATE_BASE_URL": "https://exchange.example",
        "SEALGATE_JOURNAL__FILE": str(file),
        "EXCHANGE_SECRET": "c2VjcmV0IG9mIGEga2V5",
    }
    place = "https://exchange.example ak-public-1 ms"
    with closing(connect(file)) as database:
        raise_mark(database, place, ahead)
    asked = ("POST", "/0/private/Balance")

    def nonce(result: Result) -> int:
        found = re.search(r"nonce=(\d+)", result.stdout)
        assert found, result.output
        return int(found[1])

    assert nonce(sign(*asked, **environ)) == ahead + 1
    lock = Lock(file)
    beside = sign(*asked, **environ)
    lock.release()
    assert nonce(beside) < ahead
    assert "a gateway is using the journal, so this nonce is the time" in beside.stderr
    file.write_bytes(b"no journal")
    damaged = sign(*asked, **environ)
    assert nonce(damaged) < ahead
    assert "the nonce is the time: " in damaged.stderr
