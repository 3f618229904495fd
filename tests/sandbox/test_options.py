"""The options that no statement of spec.md covers, and the page of assumptions about all of them."""

import re
import shlex
from dataclasses import fields
from typing import Any

import pytest

from sandbox.client import BUY, Bot, bot_at_sandbox
from sandbox.document import DOCUMENT, document, options
from sealgate.cli.sandbox import command
from sealgate.sandbox.settings import SandboxSettings


async def _first(bot: Bot) -> dict[str, Any]:
    return (await bot.records())[bot.key.api_key]


NO_EXPIRY = [("null", None), ("empty", ""), ("far", "9999-12-31T23:59:59.999Z")]


@pytest.mark.parametrize(("choice", "shown"), NO_EXPIRY, ids=[row[0] for row in NO_EXPIRY])
async def test_no_expiry(choice: str, shown: str | None) -> None:
    async with bot_at_sandbox(no_expiry=choice) as bot:
        assert ((await _first(bot))["expires_at"], (await bot.create())["expires_at"]) == (shown, shown)


@pytest.mark.parametrize("expired_is_active", [False, True])
async def test_expired_is_active(*, expired_is_active: bool) -> None:
    async with bot_at_sandbox(expired_is_active=expired_is_active, session_ttl_s=10**6) as bot:
        created = await bot.create(expires_days=1)
        bot.system.advance(86_400)
        assert (await bot.records())[created["api_key"]]["is_active"] == expired_is_active
        assert (await bot.using(created).get("/symbols/list")).detail == "Invalid API key"


async def test_list_revoked() -> None:
    async with bot_at_sandbox(list_revoked=False) as bot:
        await bot.app("DELETE", "/api-keys/all")
        assert await bot.records() == {}


async def test_unknown_key_status() -> None:
    async with bot_at_sandbox(unknown_key_status=400) as bot:
        bot.check(await bot.app("DELETE", "/api-keys/nobody"), 400, "API key not found")


async def test_audit_names() -> None:
    async with bot_at_sandbox(audit_updated="changed", audit_revoked="ended", audit_order="oldest") as bot:
        await bot.app("PATCH", f"/api-keys/{bot.key.api_key}", {"label": "x"})
        await bot.app("DELETE", f"/api-keys/{bot.key.api_key}")
        actions = [entry["action"] for entry in (await bot.audit(bot.key.api_key))["audit"]]
        assert actions == ["key_created", "changed", "ended"]


async def test_label_max() -> None:
    async with bot_at_sandbox(label_max=3) as bot:
        answers = [await bot.app("POST", "/api-keys", {"label": label}) for label in ("abc", "abcd")]
        assert [answer.status for answer in answers] == [200, 422]


async def test_key_lengths() -> None:
    async with bot_at_sandbox(api_key_bytes=8, api_secret_bytes=64) as bot:
        assert (len(bot.key.api_key), len(bot.key.secret)) == (16, 128)


async def test_recv_window_of_new_keys() -> None:
    async with bot_at_sandbox(recv_window_ms=50) as bot:
        at_ms = bot.system.wall_ms()
        answers = [await bot.get("/symbols/list", at_ms=at_ms - off_ms) for off_ms in (50, 51)]
        assert [answer.status for answer in answers] == [200, 401]
        assert "recv_window (50ms)" in answers[1].detail


async def test_public_symbols() -> None:
    async with bot_at_sandbox(public_symbols=True) as bot:
        for path in ("/symbols/list", "/spot/symbols/list", "/spot/symbols"):
            assert (await bot.send("GET", f"/v1/trade{path}")).status == 200


async def test_handshake_method() -> None:
    async with bot_at_sandbox(handshake_method="PUT") as bot:
        body = f'{{"user_address": "{bot.address}"}}'.encode()
        answers = [await bot.send(method, "/v1/trade/user/handshake", body) for method in ("PUT", "POST")]
        assert [answer.status for answer in answers] == [200, 405]


async def test_error_timestamp() -> None:
    async with bot_at_sandbox(error_timestamp="ms", skew_ms=5) as bot:
        assert (await bot.send("GET", "/")).body["timestamp"] == bot.system.wall_ms() + 5


async def test_usdc() -> None:
    async with bot_at_sandbox(usdc=6) as bot:
        assert (await bot.get(f"/spot/balance/{bot.address}")).body["balances"]["USDC"] == "6"
        assert (await bot.order()).detail == "Insufficient margin to place order"


async def test_signature_choices() -> None:
    """Another encoding and another reading of the secret refuse what the defaults take."""
    choices: list[dict[str, Any]] = [
        {"signature_encoding": "base64"},
        {"secret_is": "hex"},
        {"secret_is": "sha256hex"},
    ]
    for choice in choices:
        async with bot_at_sandbox(**choice) as bot:
            bot.check(await bot.post("/order", BUY), 401, "Invalid HMAC signature")


async def test_drift_from_the_start() -> None:
    async with bot_at_sandbox(drift_ppm=100.0) as bot:
        bot.system.advance(1000)
        answer = await bot.send("GET", "/v1/trade/time")
        assert answer.body["server_time"] - bot.system.wall_ms() == 100


async def test_limit_options_are_the_first_limit() -> None:
    async with bot_at_sandbox(
        limit_kind="gcra",
        limit_requests=7,
        limit_window_s=3.0,
        limit_burst=2,
        limit_rejects_count=True,
        limit_costs=(("GET /v1/trade/symbols/list", 2),),
        retry_after="date",
        ban_after=9,
        ban_s=30.0,
    ) as bot:
        assert (await bot.control("DELETE", "limit")).body == {
            "kind": "gcra",
            "requests": 7,
            "window_s": 3.0,
            "burst": 2,
            "rejects_count": True,
            "retry_after": "date",
            "costs": {"GET /v1/trade/symbols/list": 2},
            "ban_after": 9,
            "ban_s": 30.0,
        }


GUIDE = DOCUMENT.parents[1] / "sandbox.md"
FENCED = re.findall(r"```(\w+)\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_commands_in_the_document_are_understood() -> None:
    lines = [line for kind, block in FENCED if kind == "sh" for line in block.splitlines()]
    calls = [shlex.split(line)[1:] for line in lines if line.startswith("sealgate sandbox")]
    read = [command.make_context(name, arguments).params for name, *arguments in calls]
    assert [one["limit_kind"] for one in read] == ["sliding_log", "fixed"]


async def test_the_python_in_the_document_runs() -> None:
    (block,) = [block for kind, block in FENCED if kind == "python"]
    names: dict[str, Any] = {}
    exec(compile(block, GUIDE, "exec"), names)  # noqa: S102 - our own document
    await names["test_my_bot"]()


def test_the_document_lists_every_option_with_its_default() -> None:
    names = {row.name for row in options()}
    assert names == {field.name for field in fields(SandboxSettings)}
    assert DOCUMENT.read_text(encoding="utf-8") == document(DOCUMENT.read_text(encoding="utf-8"))
