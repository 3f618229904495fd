"""The fenced blocks of the README, and a function and a class of the docs: only their address is changed."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import requests

from rig.fences import ROOT, fences
from sealgate.config import Config, load_config
from sealgate.sandbox.server import Sandbox, running_sandbox
from sealgate.sandbox.settings import SandboxSettings
from sealgate.server.gateway import running_gateway

PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
BLOCKS = [(block.language, block.text) for block in fences(ROOT / "README.md")]
ADDRESS = "http://127.0.0.1:8787"
TOKEN = "example-token-of-a-bot-0123456789"
# The docs trade on Bybit; here the sandbox stands in, which has paths of its own.
PATHS = {"/v5/account/info": "/v1/trade/symbols/list", "/v5/order/create": "/v1/trade/order"}


def shell_lines() -> list[str]:
    return [
        line for language, text in BLOCKS if language == "sh" for line in text.splitlines() if line.strip()
    ]


@asynccontextmanager
async def sandbox_and_gateway(**settings: object) -> AsyncIterator[tuple[Sandbox, str]]:
    async with running_sandbox(SandboxSettings(limit_kind="none")) as sandbox:
        config = Config.model_validate(
            {
                "base_url": sandbox.base_url,
                "listen": {"tcp": "127.0.0.1:0"},
                "keys": {"main": {"api_key": sandbox.api_key, "secret": "env:SECRET"}},
                **settings,
            }
        )
        environ = {"SECRET": sandbox.api_secret, "TOKEN": TOKEN}
        async with running_gateway(config, environ=environ) as gateway:
            yield sandbox, f"http://{gateway.address}"


def at_sandbox(text: str, url: str) -> str:
    """Return an example with the sandbox's paths, a gateway's address and a token."""
    for path, own in PATHS.items():
        text = text.replace(path, own)
    return text.replace(ADDRESS, url).replace("TOKEN", TOKEN)


async def orders_at(sandbox: Sandbox) -> int:
    async with httpx.AsyncClient(base_url=sandbox.base_url) as client:
        journal = (await client.get("/_sandbox/journal")).json()
    return sum(entry["method"] == "POST" and entry["executed"] for entry in journal["entries"])


async def output_of(text: str) -> str:
    """Run a Python program, and return what it prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", text, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


async def test_the_class_for_ccxt_places_one_order_however_often_it_runs() -> None:
    text = (ROOT / "examples" / "ccxt_own_class.py").read_text()
    async with sandbox_and_gateway(bots={"grid": {"token": "env:TOKEN"}}) as (sandbox, url):
        text = text.replace(ADDRESS, url).replace("TOKEN", TOKEN)
        assert "order_id" in await output_of(text)
        text += "assert exchange.last_response_headers['X-Gateway-Replayed'] == 'true'\n"
        await output_of(text)
        assert await orders_at(sandbox) == 1


def test_toml_is_a_valid_configuration(tmp_path: Path) -> None:
    file = tmp_path / "sealgate.toml"
    [text] = [block.text for block in fences(ROOT / "README.md") if block.language == "toml"]
    file.write_text(text)
    config = load_config(file, environ={})
    assert config.keys_of("grid") == ("main",)


def place_block() -> str:
    """Return the function of replies.md that places an order."""
    [text] = [block.text for block in fences(ROOT / "docs" / "replies.md") if block.label == "place"]
    return text


def gateway_that_says(
    monkeypatch: pytest.MonkeyPatch, replies: list[tuple[str, int, str] | None]
) -> list[str]:
    """Let `requests` get outcome, status and reason, None for a lost one; return the keys sent."""
    keys: list[str] = []

    def post(*_: object, headers: dict[str, str], **__: object) -> requests.Response:
        keys.append(headers["Idempotency-Key"])
        said = replies.pop(0)
        if said is None:
            raise requests.ConnectionError
        reply = requests.Response()
        reply.headers["X-Gateway-Outcome"], reply.status_code, reason = said
        if reason:
            reply.headers["X-Gateway-Error"] = reason
        reply.headers["Retry-After"] = "0"
        return reply

    monkeypatch.setattr(requests, "post", post)
    monkeypatch.setattr("time.sleep", lambda _: None)
    return keys


_STRANGER = ("not_sent", 401, "bot_unauthenticated")


@pytest.mark.parametrize(
    ("replies", "outcome", "keys"),
    [
        ([None, ("not_sent", 503, "queue_full"), _STRANGER], "unknown", 1),
        ([None, ("not_sent", 503, "queue_full"), ("done", 200, "")], "done", 1),
        ([None, ("refused", 429, ""), _STRANGER], "not_sent", 2),
        ([("not_sent", 200, "rate_limited"), _STRANGER], "not_sent", 1),
        ([("refused", 400, "")], "refused", 1),
        ([("not_sent", 503, "halted")], "not_sent", 1),
    ],
)
def test_the_function_that_places_an_order_believes_no_not_sent_after_a_lost_reply(
    monkeypatch: pytest.MonkeyPatch, replies: list[tuple[str, int, str] | None], outcome: str, keys: int
) -> None:
    """A full gateway, or one that does not know the token, does not look the key up."""
    sent = gateway_that_says(monkeypatch, replies)
    names: dict[str, Any] = {}
    exec(place_block(), names)  # noqa: S102 - our own page
    assert names["place"]({})[0] == outcome
    assert (replies, len(set(sent))) == ([], keys)


CALL = """
outcome, reply = place({"symbol": "BTC", "side": "buy", "size": "0.001", "price": "65000.0"})
print(outcome, reply and reply.json())
"""


async def test_the_function_that_places_an_order_does_so_once() -> None:
    """It repeats what met the limit, and does not repeat what may have executed."""
    settings = {"limits": {"replay_429": "none"}, "bots": {"grid": {"token": "env:TOKEN"}}}
    async with sandbox_and_gateway(**settings) as (sandbox, url):
        text = at_sandbox(place_block(), url) + CALL
        seen = []
        for fault in (
            {"kind": "reset_after", "next": 1, "match": "POST *"},
            {"kind": "status", "status": 429, "next": 1, "match": "POST *"},
        ):
            async with httpx.AsyncClient(base_url=sandbox.base_url) as client:
                (await client.put("/_sandbox/faults", json={"faults": [fault]})).raise_for_status()
            before = await orders_at(sandbox)
            seen.append((await output_of(text), await orders_at(sandbox) - before))
    assert [(out.split()[0], orders) for out, orders in seen] == [("unknown", 1), ("done", 1)]


@pytest.mark.parametrize("line", [line for line in shell_lines() if line.startswith("scripts/")])
def test_script_exists(line: str) -> None:
    assert os.access(ROOT / line.split(maxsplit=1)[0], os.X_OK)
