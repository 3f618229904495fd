"""`sealgate check` against set-ups that are broken in one way each: the line, the exit code, no secret."""

import json
import socket
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from click.testing import Result

from rig.acts import say_and_close
from rig.door import blurt
from rig.setups import JSON, SESSION, Setup, a_setup, detail, lines_of, raw_setup, sandbox_setup, to_signed
from rig.tls import Authority
from rig.upstream import Received, running_upstream, say
from rig.wire import reply
from sealgate.orders.journal.file import prepare
from sealgate.sandbox.settings import SandboxSettings

NO_LIMIT: dict[str, Any] = {"limit_kind": "none"}


@dataclass(frozen=True)
class Case:
    """What is broken, and the line that tells it: its level, its area, words of it; the exit code."""

    break_it: Callable[[Setup], None]
    line: str
    words: tuple[str, ...]
    code: int
    arguments: tuple[str, ...] = ()
    server: dict[str, Any] = field(default_factory=dict)


def fails(area: str, break_it: Callable[[Setup], None], *words: str, code: int = 1, **more: Any) -> Case:
    return Case(break_it, f"fail  {area}", words, code, **more)


def warns(area: str, break_it: Callable[[Setup], None], *words: str, code: int = 0, **more: Any) -> Case:
    return Case(break_it, f"warn  {area}", words, code, **more)


def nothing(_: Setup) -> None:
    pass


def has(**settings: str) -> Callable[[Setup], None]:
    return lambda setup: setup.has(**settings)


def writes(name: str, text: str, mode: int = 0o600) -> Callable[[Setup], None]:
    def break_it(setup: Setup) -> None:
        setup.write(name, text, mode)

    return break_it


def configures(text: str) -> Callable[[Setup], None]:
    return lambda setup: setup.configure(text)


def lacks(*names: str) -> Callable[[Setup], None]:
    def break_it(setup: Setup) -> None:
        for name in names:
            del setup.environ[f"SEALGATE_{name}"]

    return break_it


def answers(raw: bytes) -> Callable[[Setup], None]:
    return lambda setup: setup.answers(to_signed(raw))


# -- what can be seen without the exchange


def port_in_use(setup: Setup) -> None:
    holder = socket.create_server(("127.0.0.1", 0))
    setup.has(LISTEN__TCP=f"127.0.0.1:{holder.getsockname()[1]}")
    setup.kept.append(holder)


def short_token(setup: Setup) -> None:
    setup.has(BOTS__GRID__TOKEN="env:GRID_TOKEN")
    setup.environ["GRID_TOKEN"] = "guess"


def damaged_journal(setup: Setup) -> None:
    file = setup.folder / "journal.db"
    prepare(file)
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("INSERT INTO learned VALUES ('x', ?, 0)", ("y" * 20_000,))
    raw = bytearray(file.read_bytes())
    raw[4096 * 2 : 4096 * 3] = bytes(4096)
    file.write_bytes(raw)
    setup.has(JOURNAL__FILE=str(file))


def journal_in_doubt(setup: Setup) -> None:
    file = setup.folder / "journal.db"
    prepare(file)
    row = ("1", "r1", "grid", "service", "main", "POST", "/order", "order", "/order", 1, 2, 1, 3, "unknown")
    columns = (
        "id, request_id, bot, exchange, key, method, route, lane, target, timestamp_ms, fence_ms, attempts, "
        "sent_ms, state"
    )
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(f"INSERT INTO orders ({columns}) VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608 - our own names
    setup.has(JOURNAL__FILE=str(file))


def writable_configuration(setup: Setup) -> None:
    setup.configure("")
    (setup.folder / "sealgate.toml").chmod(0o666)


def expired_certificate(setup: Setup) -> None:
    issued = trustme.CA().issue_cert("a.example", not_after=datetime(2026, 1, 1, tzinfo=UTC))
    cert, key = setup.folder / "cert.pem", setup.folder / "key.pem"
    issued.cert_chain_pems[0].write_to_path(cert)
    issued.private_key_pem.write_to_path(key)
    key.chmod(0o600)
    setup.has(LISTEN__TLS_CERT=str(cert), LISTEN__TLS_KEY=str(key))


def path_of_its_own(setup: Setup) -> None:
    setup.environ["SEALGATE_BASE_URL"] += "/nowhere"


def swapped_key_and_secret(setup: Setup) -> None:
    """Paste each in the other's place: the secret goes out as a header, but must not be printed."""
    api_key = setup.environ["SEALGATE_KEYS__MAIN__API_KEY"]
    setup.has(KEYS__MAIN__API_KEY=(setup.folder / "main.secret").read_text())
    setup.write("main.secret", api_key)


OFFLINE: dict[str, Case] = {
    "not TOML": fails(
        "configuration", configures("a = 1\n[listen"), "is not TOML", "correct the syntax", code=2
    ),
    "the starter file": fails(
        "configuration", has(BASE_URL="https://api.example.com"), "base_url is still the example"
    ),
    "configuration that everybody may write": fails(
        "configuration", writable_configuration, "everyone can write to", "chmod 600"
    ),
    "quotes around the secret": warns(
        "keys.main",
        writes("main.secret", '"0123456789"'),
        "begins or ends with a quote",
        "store only the secret",
    ),
    "secret that the venue's file decodes": fails(
        "keys.main",
        has(VENUE="btcturk"),
        "not base64; copy it again, complete and as the exchange shows it: BtcTurk decodes it",
    ),
    "token that is not there": fails(
        "bots", has(BOTS__GRID__TOKEN="file:/nowhere/grid.token"), "there is no file /nowhere/"
    ),
    "token that may be guessed": warns(
        "bots.grid", short_token, "the token has 5 characters; a random one has 43", "`sealgate token new`"
    ),
    "port in use": fails("listen.tcp", port_in_use, "another program listens there", "set listen.tcp"),
    "address of another machine": fails(
        "listen.tcp",
        has(LISTEN__TCP="192.0.2.1:8787", BOTS__GRID__TOKEN="env:PATH"),
        "cannot listen on 192.0.2.1:8787",
        "set listen.tcp to another address",
    ),
    "certificate that has expired": fails("listen.tls_cert", expired_certificate, "expired on", "renew it"),
    "damaged journal": fails("journal", damaged_journal, "damaged; move it away"),
    "orders in doubt": warns("journal", journal_in_doubt, "orders in doubt: 1", "sealgate orders"),
}


def assert_told(result: Result, case: Case) -> None:
    lines = lines_of(result.output, case.line)
    assert any(all(words in line for words in case.words) for line in lines), result.output
    assert result.exit_code == case.code, result.output
    assert "Traceback" not in result.output
    assert "hunter2" not in result.output


@pytest.mark.parametrize("case", OFFLINE.values(), ids=OFFLINE)
async def test_what_this_machine_shows(tmp_path: Path, case: Case) -> None:
    setup = a_setup(tmp_path, "https://exchange.example")
    setup.has_key("main", "ak-public-1", "correct-horse-battery-staple")
    setup.has_session()
    case.break_it(setup)
    result = await setup.check("--offline", *case.arguments)
    assert_told(result, case)


# -- what the sandbox says

SANDBOX: dict[str, Case] = {
    "wrong secret": fails(
        "keys.main",
        writes("main.secret", "another-secret-another-secret-another"),
        "401 Invalid HMAC signature",
        "sealgate discover --key main",
    ),
    "mistyped API key": fails(
        "keys.main",
        has(KEYS__MAIN__API_KEY="0123456789abcdef"),
        "401 Invalid API key",
        "mistyped, or belongs to another user",
        "compare keys.main.api_key",
    ),
    "key and secret swapped": fails(
        "keys.main",
        swapped_key_and_secret,
        "401 Invalid API key",
        "API key and secret are swapped",
        "swap keys.main.api_key",
    ),
    "another server's address": fails(
        "base_url",
        path_of_its_own,
        "GET /v1/trade/time was answered 404 Not found, and GET /v1/trade/symbols/list was answered 404 Not",
        "compare base_url with the exchange's documents",
    ),
    "wrong clock.path": fails(
        "clock",
        has(CLOCK__PATH="/v1/time"),
        "GET /v1/time was answered 404 Not found, though GET /v1/trade/symbols/list was answered 401",
        "and set clock.path",
    ),
    "wrong clock.field": fails(
        "clock", has(CLOCK__FIELD="/nowhere"), "no plausible time at /nowhere", "clock.field = "
    ),
    "skew with /time": warns(
        "clock",
        nothing,
        "this machine's clock is 60.0 s behind, which the gateway corrects",
        server={"skew_ms": 60_000},
    ),
    "expired session": fails(
        "keys.main.session",
        writes("main.session", SESSION),
        "401 Invalid or expired session token",
        "the session token is wrong or has expired: store a new one",
    ),
    "path that needs no key": warns(
        "keys.main", nothing, "also answers without a key", "--path", server={"public_symbols": True}
    ),
}


@pytest.mark.parametrize("case", SANDBOX.values(), ids=SANDBOX)
async def test_what_the_exchange_says(tmp_path: Path, case: Case) -> None:
    async with sandbox_setup(tmp_path, SandboxSettings(**NO_LIMIT | case.server)) as setup:
        case.break_it(setup)
        result = await setup.check(*case.arguments)
    assert_told(result, case)


# -- what only an exchange with a script says


def listed(**record: object) -> Callable[[Setup], None]:
    """Let the list of keys show that, and the key be refused."""
    keys = {"keys": [{"api_key": "ak-public-1", "is_active": True, "expires_at": None, **record}]}
    list_reply = say(reply(b"200 OK", json.dumps(keys).encode(), JSON))
    signed = to_signed(detail("Invalid API key"))

    def break_it(setup: Setup) -> None:
        setup.has_session()
        setup.answers(lambda request: list_reply if request.target.endswith(b"api-keys") else signed(request))

    return break_it


def time_in_seconds(setup: Setup) -> None:
    assert setup.upstream is not None
    setup.upstream.time = say(reply(b"200 OK", b'{"now": %d}' % (setup.upstream.now_ms() // 1000), JSON))
    setup.has(KEYS__MAIN__RECV_WINDOW_MS="300")


RAW: dict[str, Case] = {
    "too small a window": fails(
        "clock", time_in_seconds, "not precise enough for a recv_window of 300 ms", "raise recv_window_ms"
    ),
    "revoked": fails("keys.main", listed(is_active=False), "the key was revoked", "make a new API key"),
}


@pytest.mark.parametrize("case", RAW.values(), ids=RAW)
async def test_what_a_scripted_exchange_says(tmp_path: Path, case: Case) -> None:
    async with raw_setup(tmp_path) as setup:
        case.break_it(setup)
        result = await setup.check()
    assert_told(result, case)


def three_keys(setup: Setup) -> None:
    for alias in ("alt", "spot"):
        setup.has_key(alias, f"ak-{alias}", f"the-secret-of-{alias}-0123456789")
    setup.has(BOTS__GRID__TOKEN="env:PATH", BOTS__GRID__KEY="main")


async def test_what_was_read_before_a_429_is_told(tmp_path: Path) -> None:
    accepted = to_signed(reply(b"200 OK", b'{"symbols": []}', JSON))
    limited = to_signed(detail("Rate limit exceeded", b"429 Too Many Requests", b"Retry-After: 7"))

    def script(request: Received) -> Any:
        return (limited if request.head.value(b"X-SERVICE-APIKEY") == b"ak-alt" else accepted)(request)

    async with raw_setup(tmp_path) as setup:
        three_keys(setup)
        setup.answers(script)
        result = await setup.check()
        assert setup.upstream is not None
        assert len(setup.upstream.received) == 3  # nothing was asked for the third key
    assert_told(result, Case(nothing, "ok  keys.main", ("is accepted",), 0))
    assert_told(result, warns("exchange", nothing, "wait 7 s"))
    assert "accepted" not in result.output.partition("warn  exchange")[2]
    assert lines_of(result.output, "ok  keys.alt")[1:] == []


async def test_what_was_read_before_the_exchange_went_away_is_told(tmp_path: Path) -> None:
    async with raw_setup(tmp_path) as setup:
        three_keys(setup)
        upstream = setup.upstream
        assert upstream is not None

        def script(request: Received) -> Any:
            key = request.head.value(b"X-SERVICE-APIKEY")
            if key != b"ak-public-1":
                return say(detail("Missing API key auth headers"))
            upstream.door.shut()
            return say_and_close(reply(b"200 OK", b'{"symbols": []}', JSON))

        setup.answers(script)
        result = await setup.check()
    assert_told(result, Case(nothing, "ok  keys.main", ("is accepted",), 1))
    assert_told(result, fails("exchange", three_keys, "cannot be reached"))


async def test_one_session_token_is_used_once(tmp_path: Path) -> None:
    keys = {"keys": [{"api_key": "ak-public-1", "is_active": True}]}
    async with raw_setup(tmp_path) as setup:
        three_keys(setup)
        setup.has_session()
        setup.has(KEYS__ALT__SESSION=f"file:{setup.folder / 'main.session'}")
        accepted = to_signed(reply(b"200 OK", json.dumps(keys).encode(), JSON))
        listing = say(reply(b"200 OK", json.dumps(keys).encode(), JSON))
        setup.answers(lambda request: listing if request.target.endswith(b"api-keys") else accepted(request))
        result = await setup.check()
        assert setup.upstream is not None
        lists = [one for one in setup.upstream.received if one.target.endswith(b"api-keys")]
        assert len(lists) == 1
    words = ("the token is valid, but its user has no such key",)
    assert_told(result, Case(nothing, "ok  keys.main.session", (), 0))
    assert_told(result, warns("keys.alt.session", three_keys, *words))


# -- the way to the exchange


@asynccontextmanager
async def tls_setup(folder: Path, name: str = "127.0.0.1", **validity: Any) -> AsyncIterator[Setup]:
    authority = Authority()
    async with running_upstream(authority.server_context(name, **validity)) as upstream:
        setup = a_setup(folder, upstream.base_url)
        setup.has_key("main", "ak-public-1", "correct-horse-battery-staple")
        setup.upstream = upstream
        setup.has(UPSTREAM__CA_FILE=authority.write(folder))
        upstream.script = to_signed(reply(b"200 OK", b"{}", JSON))
        yield setup


TODAY = datetime.now(UTC)  # noqa: TID251 - certificates go by the real clock
TLS: dict[str, Case] = {
    "unknown authority": fails(
        "TLS", lacks("UPSTREAM__CA_FILE"), "signed by an unknown authority", "upstream.ca_file"
    ),
    "certificate that ends soon": warns(
        "TLS", nothing, "in 3 days", "the exchange must renew it", server={"end": TODAY + timedelta(days=3)}
    ),
}


@pytest.mark.parametrize("case", TLS.values(), ids=TLS)
async def test_certificates(tmp_path: Path, case: Case) -> None:
    async with tls_setup(tmp_path, **case.server) as setup:
        case.break_it(setup)
        result = await setup.check()
    assert_told(result, case)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


WAYS: dict[str, tuple[str, Case]] = {
    "nobody there": (
        f"http://127.0.0.1:{closed_port()}",
        fails("exchange", nothing, "cannot be reached", "check base_url"),
    ),
    "a proxy that is not used": (
        f"https://127.0.0.1:{closed_port()}",
        fails(
            "TLS",
            lambda setup: setup.environ.update(HTTPS_PROXY="http://proxy.example"),
            "HTTPS_PROXY is set, but the gateway uses only upstream.proxy",
        ),
    ),
    "a proxy that nobody runs": (
        "https://nowhere.invalid",
        fails(
            "proxy",
            has(UPSTREAM__PROXY=f"socks5://127.0.0.1:{closed_port()}"),
            "cannot connect to nowhere.invalid:443: the proxy 127.0.0.1:",
            "cannot be reached: Connection refused",
            "see upstream.proxy",
        ),
    ),
    "a proxy that alone knows names": (
        "https://nowhere.invalid",
        fails(
            "DNS",
            lambda setup: setup.environ.update(HTTPS_PROXY="http://proxy.example"),
            "HTTPS_PROXY is set, but the gateway uses only upstream.proxy",
        ),
    ),
}


@pytest.mark.parametrize(("url", "case"), WAYS.values(), ids=WAYS)
async def test_the_way(tmp_path: Path, url: str, case: Case) -> None:
    setup = a_setup(tmp_path, url)
    setup.has_key("main", "ak-public-1", "correct-horse-battery-staple")
    case.break_it(setup)
    result = await setup.check()
    assert_told(result, case)


async def test_https_to_who_speaks_plain_http(tmp_path: Path) -> None:
    async with running_upstream() as upstream:
        setup = a_setup(tmp_path, upstream.base_url.replace("http:", "https:"))
        setup.has_key("main", "ak-public-1", "correct-horse-battery-staple")
        upstream.door.welcomes.append(blurt)
        result = await setup.check()
    assert_told(result, fails("TLS", nothing, "does not speak TLS"))
