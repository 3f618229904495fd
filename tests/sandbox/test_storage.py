"""What is acknowledged survives: a restart, a kill -9, a second program on the file."""

import json
import logging
import os
import sqlite3
import stat
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Bot, ManualHost, bot_at_sandbox
from sandbox.process import Process, sandbox_process
from sealgate.sandbox.keys import KeyDesk
from sealgate.sandbox.records import Key, Order, User
from sealgate.sandbox.server import running_sandbox
from sealgate.sandbox.settings import SandboxSettings
from sealgate.sandbox.store import SCHEMA, SCHEMA_VERSION, Store, StoreError


def _call(process: Process, method: str, target: str, value: Any = None, passkey: str = "") -> Any:
    headers = {"Authorization": f"Bearer {process.session_token}", "X-PASSKEY-TOKEN": passkey}
    body = None if value is None else json.dumps(value).encode()
    request = urllib.request.Request(process.base_url + target, body, headers, method=method)  # noqa: S310 - our own sandbox
    with urllib.request.urlopen(request) as response:  # noqa: S310 - our own sandbox
        return json.load(response)


def _app(process: Process, method: str, target: str, value: Any = None) -> Any:
    passkey = _call(process, "POST", "/_sandbox/passkey")["passkey_token"]
    return _call(process, method, f"/v1/trade/api-keys{target}", value, passkey)


def test_a_kill_9_loses_no_acknowledged_key_change(tmp_path: Path) -> None:
    """Every change is followed by a kill -9 as soon as its reply has arrived."""
    options = ("--db", str(tmp_path / "s.db"), "--limit-kind", "none")
    with sandbox_process(*options) as process:
        session = process.session_token
        created = _app(process, "POST", "", {"label": "kept"})
        process.popen.kill()
    path = f"/{created['api_key']}"
    seen = []
    for change in (
        lambda process: _app(process, "PATCH", path, {"label": "changed", "ip_whitelist": ["10.0.0.1"]}),
        lambda process: _app(process, "DELETE", path),
        lambda _: None,
    ):
        with sandbox_process(*options) as started:
            process = Process(**(vars(started) | {"session_token": session}))
            keys = _call(process, "GET", "/v1/trade/api-keys")["keys"]
            seen += [
                (key["label"], key["ip_whitelist"], key["is_active"])
                for key in keys
                if key["api_key"] in path
            ]
            change(process)
            process.popen.kill()
    assert seen == [("kept", [], True), ("changed", ["10.0.0.1"], True), ("changed", ["10.0.0.1"], False)]


def fail(*_: object) -> None:
    raise sqlite3.OperationalError("database or disk is full")


async def test_keys_sessions_and_audit_survive_a_restart(tmp_path: Path) -> None:
    db, host = str(tmp_path / "s.db"), ManualHost()
    async with bot_at_sandbox(db=db, system=host) as first:
        placed = await first.order()
        record = (await first.records())[first.key.api_key]
    async with bot_at_sandbox(db=db, system=host) as again:
        bot = replace(again, key=first.key, session_token=first.session_token)
        assert (await bot.records())[bot.key.api_key] == record
        assert (await bot.audit(bot.key.api_key))["count"] == 1
        assert (await bot.order()).body["order_id"] > placed.body["order_id"]


async def _holdings(bot: Bot) -> list[Any]:
    """Give all that a user has, and what the prices are."""
    paths = ("openOrders", "positions")
    shown = [(await bot.get(f"/user/{bot.address}/{path}")).body for path in paths]
    state = await bot.control("PATCH", f"users/{bot.address}", {})
    balance, symbols = await bot.get(f"/spot/balance/{bot.address}"), await bot.get("/symbols/list")
    return [*shown, state.body, balance.body, symbols.body]


async def test_orders_positions_balances_and_prices_survive_a_restart(tmp_path: Path) -> None:
    db, host = str(tmp_path / "s.db"), ManualHost()
    async with bot_at_sandbox(db=db, system=host) as bot:
        await bot.control("PATCH", f"users/{bot.address}", {"transferred": True, "usdc": 500_000})
        placed = [(await bot.order(client_order_id=str(n))).body["order_id"] for n in range(3)]
        await bot.order(price="66000", size="2")
        await bot.order(symbol="ETH", side="sell", price="3300", size="1")
        await bot.post("/leverage", {"symbol": "SOL", "leverage": 3})
        await bot.post("/spot/order", {"symbol": "SOL/USDC", "side": "buy", "size": "3"})
        await bot.signed("DELETE", f"/order/{placed[0]}")
        await bot.control("PUT", "market", {"order_id": placed[1], "fill": "0.0005"})
        await bot.control("PUT", "market", {"symbol": "BTC", "price": "65500"})
        before = await _holdings(bot)
    async with bot_at_sandbox(db=db, system=host) as again:
        assert await _holdings(again) == before
    assert [order["order_id"] for order in before[0]["orders"]] == placed[1:]


def test_a_kill_9_loses_no_acknowledged_balance(tmp_path: Path) -> None:
    options = ("--db", str(tmp_path / "s.db"), "--limit-kind", "none")

    def deposit(process: Process) -> str:
        passkey = _call(process, "POST", "/_sandbox/passkey")["passkey_token"]
        return str(_call(process, "POST", "/v1/trade/deposit", {"amount": "50"}, passkey)["usdc"])

    with sandbox_process(*options) as process:
        first = deposit(process)
        process.popen.kill()
    with sandbox_process(*options) as process:
        assert (first, deposit(process)) == ("1000050", "1000100")
        process.popen.kill()


async def test_what_a_full_disk_kept_from_the_file_comes_with_the_next_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The order was executed, so it is acknowledged; the log says that the file does not have it."""
    db, host = str(tmp_path / "s.db"), ManualHost()
    async with bot_at_sandbox(db=db, system=host) as bot:
        with monkeypatch.context() as broken:
            broken.setattr(Store, "save_account", fail)
            assert (await bot.order()).status == 200
        assert (await bot.order()).status == 200
    async with bot_at_sandbox(db=db, system=host) as again:
        orders = (await again.get(f"/user/{again.address}/openOrders")).body["orders"]
    assert [order["order_id"] for order in orders] == [1, 2]
    assert caplog.messages == ["What users have could not be saved: database or disk is full"]


def test_a_file_of_the_version_before_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    old = sqlite3.connect(path)
    old.executescript(f"{SCHEMA[0]} PRAGMA user_version = 1;")
    old.execute("INSERT INTO users VALUES ('0x1', 1, 1)")
    old.commit()
    old.close()
    store = Store(str(path))
    assert [user.address for user in store.load(User)] == ["0x1"]
    assert store.load(Order) == []
    store.close()


async def test_the_ready_made_user_and_key_are_the_same_after_a_restart(tmp_path: Path) -> None:
    db, host = str(tmp_path / "s.db"), ManualHost()
    async with bot_at_sandbox(db=db, system=host) as first:
        pass
    async with bot_at_sandbox(db=db, system=host) as again:
        assert (again.key, again.address) == (first.key, first.address)
        assert again.session_token != first.session_token
        assert list(await again.records()) == [first.key.api_key]
        assert (await again.order()).status == 200


@pytest.mark.parametrize(
    ("method", "value"), [("DELETE", None), ("PATCH", {"label": "mine"})], ids=["revoked", "renamed"]
)
async def test_a_ready_made_key_that_is_gone_is_made_anew_once(
    tmp_path: Path, method: str, value: dict[str, str] | None
) -> None:
    db, host = str(tmp_path / "s.db"), ManualHost()
    made = []
    for turn in range(3):
        async with bot_at_sandbox(db=db, system=host) as bot:
            made.append((bot.address, bot.key.api_key))
            if turn == 0:
                assert (await bot.app(method, f"/api-keys/{bot.key.api_key}", value)).status == 200
    assert made[1] == made[2]
    assert (made[1][0] == made[0][0], made[1][1] == made[0][1]) == (True, False)


def test_the_file_is_its_owners_only(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    Store(str(path)).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def _text_file(path: Path) -> None:
    path.write_text("this is no database, but it is long enough to be looked at " * 20, "utf-8")


def _future_schema(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    db.close()


def _folder(path: Path) -> None:
    path.mkdir()


BAD_FILES = [
    ("no database", _text_file, "cannot be used as a database"),
    (
        "a newer schema",
        _future_schema,
        f"has schema {SCHEMA_VERSION + 1}, this program knows {SCHEMA_VERSION}",
    ),
    ("a folder", _folder, "it is a folder; name a file in it"),
]


@pytest.mark.parametrize(("name", "make", "said"), BAD_FILES, ids=[row[0] for row in BAD_FILES])
def test_a_file_that_cannot_be_used(name: str, make: Any, said: str, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    make(path)
    with pytest.raises(StoreError, match=said):
        Store(str(path))
    assert os.path.lexists(path), name


async def test_a_file_made_with_another_kind_of_secret(tmp_path: Path) -> None:
    db = str(tmp_path / "s.db")
    store = Store(db)
    user = User("0x1", onboarded=True, traded=True)
    store.save(user, Key("k", "0x1", "no hex", "", ("read",), (), 0, None, None, 5000, is_revoked=False))
    store.close()
    with pytest.raises(StoreError, match="a secret that is not hex; start with the --secret-is"):
        async with running_sandbox(SandboxSettings(secret_is="hex"), db=db):
            pytest.fail("it started")


def test_two_programs_do_not_share_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    first = Store(path)
    first.save(User("0x1", onboarded=True, traded=True))
    with pytest.raises(StoreError, match="locked"):
        Store(path)
    first.close()


async def test_a_failing_database_is_a_503(monkeypatch: pytest.MonkeyPatch) -> None:
    """The row of the catalogue is deserved when the storage fails, and nothing is changed then."""
    async with bot_at_sandbox() as bot:
        with monkeypatch.context() as broken:
            broken.setattr(Store, "save", fail)
            answer = await bot.app("POST", "/api-keys", {})
        bot.check(answer, 503, "API key system not available")
        assert len(await bot.records()) == 1


async def test_a_last_use_that_cannot_be_saved_fails_no_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is a note for people: memory has it, the log says so, and the next write brings it."""
    db, host = str(tmp_path / "s.db"), ManualHost()
    caplog.set_level(logging.WARNING, "sealgate.sandbox")
    async with bot_at_sandbox(db=db, system=host) as bot:
        with monkeypatch.context() as broken:
            broken.setattr(Store, "save", fail)
            assert (await bot.order()).status == 200
        used = (await bot.records())[bot.key.api_key]["last_used_at"]
        assert used is not None
    async with bot_at_sandbox(db=db, system=host) as again:
        assert (await again.records())[again.key.api_key]["last_used_at"] == used
    assert caplog.messages == ["The last use of 1 keys could not be saved: database or disk is full"]


async def test_the_unexpected_is_a_500_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fault(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(KeyDesk, "list_keys", fault)
    async with bot_at_sandbox() as bot:
        bot.check(await bot.session("GET", "/api-keys"), 500, "Internal server error")
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        "GET /v1/trade/api-keys failed: RuntimeError('a bug')"
    ]
