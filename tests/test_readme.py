"""The fenced blocks of the README, and the recipes: they run with only the address changed."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import requests

from rig.fences import ROOT, Fence, fences
from sealgate.config import Config, load_config
from sealgate.sandbox.server import Sandbox, running_sandbox
from sealgate.sandbox.settings import SandboxSettings
from sealgate.server.gateway import running_gateway

PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
BLOCKS = [(block.language, block.text) for block in fences(ROOT / "README.md")]
RECIPES = ROOT / "docs" / "recipes.md"
EXAMPLES = (ROOT / "README.md", ROOT / "docs" / "replies.md")  # pages with requests to the gateway
ADDRESS = "http://127.0.0.1:8787"
TOKEN = "example-token-of-a-bot-0123456789"
# The README trades on Bybit; here the sandbox stands in, which has paths of its own.
PATHS = {"/v5/account/info": "/v1/trade/symbols/list", "/v5/order/create": "/v1/trade/order"}


def blocks_of(*pages: Path) -> list[Fence]:
    """Return the blocks, but for those that need a venue of the list: tests/venues runs them."""
    return [
        block
        for block in fences(*pages)
        if not block.label.startswith("venue") and (block.language != "toml" or pages != (RECIPES,))
    ]


def recipes(*pages: Path) -> Iterator[object]:
    """Yield each block that sends requests to the gateway, as the program that runs it and its text."""
    programs = {"python": [sys.executable, "-W", "error", "-"], "js": ["node", "--input-type=module", "-"]}
    for block in blocks_of(*pages):
        name = f"{block.name}-{block.label or block.language}"
        if block.label == "place":  # a function alone: it has a test of its own
            continue
        if block.language in programs:
            marks = (pytest.mark.needs("node"),) if block.language == "js" else ()
            yield pytest.param(programs[block.language], block.text, id=name, marks=marks)
        elif block.language == "sh" and block.text.startswith("curl"):
            text = block.text.replace("curl ", "curl -fsS ")
            yield pytest.param(["sh", "-e"], text, id=name, marks=pytest.mark.needs("curl"))


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


@pytest.mark.parametrize(("program", "text"), list(recipes(*EXAMPLES)))
async def test_example_runs_with_a_changed_address_only(program: list[str], text: str) -> None:
    """An example with a token runs where tokens are needed."""
    settings = {"bots": {"grid": {"token": "env:TOKEN"}}} if "TOKEN" in text else {}
    async with sandbox_and_gateway(**settings) as (_, url):
        await run_program(program, at_sandbox(text, url))


def at_sandbox(text: str, url: str) -> str:
    """Return an example with the sandbox's paths, a gateway's address and a token."""
    for path, own in PATHS.items():
        text = text.replace(path, own)
    return text.replace(ADDRESS, url).replace("TOKEN", TOKEN)


@pytest.mark.parametrize(("program", "text"), list(recipes(RECIPES)))
async def test_a_recipe_that_is_run_again_places_no_second_order(program: list[str], text: str) -> None:
    async with sandbox_and_gateway(bots={"grid": {"token": "env:TOKEN"}}) as (sandbox, url):
        text = text.replace(ADDRESS, url).replace("TOKEN", TOKEN)
        await run_program(program, text)
        assert await orders_at(sandbox) == 1
        if "import ccxt" in text:
            text += "assert exchange.last_response_headers['X-Gateway-Replayed'] == 'true'\n"
        await run_program(program, text)
        assert await orders_at(sandbox) == 1


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


async def run_program(program: list[str], text: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *program,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"]},
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate(text.encode())
    assert process.returncode == 0, err.decode()
    assert b"order_id" in out or b"symbols" in out


def test_there_is_a_recipe_for_each_client() -> None:
    text = "".join(block.text for block in fences(RECIPES))
    for client in ("curl ", "import requests", "import httpx", "import aiohttp", "fetch("):
        assert client in text


def test_each_recipe_of_the_page_places_an_order_that_is_never_doubled() -> None:
    blocks = blocks_of(RECIPES)
    assert len(blocks) == 6
    for block in blocks:
        assert "Idempotency-Key" in block.text
        assert "TOKEN" in block.text


def test_toml_is_a_valid_configuration(tmp_path: Path) -> None:
    file = tmp_path / "sealgate.toml"
    [text] = [block.text for block in fences(ROOT / "README.md") if block.language == "toml"]
    file.write_text(text)
    config = load_config(file, environ={})
    assert config.keys_of("grid") == ("main",)
    assert config.bots["grid"].weight == 2


def place_block() -> str:
    """Return the README's function that places an order."""
    [text] = [block.text for block in fences(ROOT / "README.md") if block.label == "place"]
    return text


def test_the_readme_is_one_session() -> None:
    """The bot of its configuration sends its token to paths of its exchange."""
    text = (ROOT / "README.md").read_text()
    assert 'venue = "bybit"' in text
    assert "--venue bybit" in text
    sent = [
        block.text for block in fences(ROOT / "README.md") if ADDRESS in block.text and "TOKEN" in block.text
    ]
    assert len(sent) == text.count(f"{ADDRESS}/v5/") == 2
    assert "/v1/trade" not in text


def gateway_that_says(monkeypatch: pytest.MonkeyPatch, replies: list[tuple[str, int] | None]) -> list[str]:
    """Let `requests` get these outcomes and statuses, None for a lost reply; return the keys sent."""
    keys: list[str] = []

    def post(*_: object, headers: dict[str, str], **__: object) -> requests.Response:
        keys.append(headers["Idempotency-Key"])
        said = replies.pop(0)
        if said is None:
            raise requests.ConnectionError
        reply = requests.Response()
        reply.headers["X-Gateway-Outcome"], reply.status_code = said
        reply.headers["Retry-After"] = "0"
        return reply

    monkeypatch.setattr(requests, "post", post)
    monkeypatch.setattr("time.sleep", lambda _: None)
    return keys


@pytest.mark.parametrize(
    ("replies", "outcome", "keys"),
    [
        ([None, ("not_sent", 503), ("not_sent", 401)], "unknown", 1),
        ([None, ("not_sent", 503), ("done", 200)], "done", 1),
        ([None, ("refused", 429), ("not_sent", 401)], "not_sent", 2),
        ([("not_sent", 503), ("not_sent", 401)], "not_sent", 1),
    ],
)
def test_the_function_of_the_readme_believes_no_not_sent_after_a_lost_reply(
    monkeypatch: pytest.MonkeyPatch, replies: list[tuple[str, int] | None], outcome: str, keys: int
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


async def test_the_function_of_the_readme_places_an_order_at_most_once() -> None:
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
