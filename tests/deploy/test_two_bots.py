"""examples/two-bots: the files fit each other, and the bots do what the example says of them."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from rig.schemas import compose_problems, documents
from sealgate.config import load_config
from sealgate.sandbox.server import running_sandbox
from sealgate.sandbox.settings import SandboxSettings
from sealgate.server.gateway import running_gateway

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDER = EXAMPLES / "two-bots"
[STACK] = documents((FOLDER / "compose.yaml").read_text())
SERVICES: dict[str, Any] = STACK["services"]
TOKENS = {"trader": "example-token-of-the-trader-0123", "watcher": "example-token-of-the-watcher-012"}


def test_the_stack_is_as_the_compose_specification_says() -> None:
    assert compose_problems(STACK) == []


def test_bots_reach_the_gateway_alone() -> None:
    assert STACK["networks"]["bots"] == {"internal": True}
    for name in TOKENS:
        assert SERVICES[name]["networks"] == ["bots"]
        assert "ports" not in SERVICES[name]
    for service in SERVICES.values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_no_bot_holds_the_secret_of_the_exchange() -> None:
    assert {name: SERVICES[name]["secrets"] for name in TOKENS} == {name: [name] for name in TOKENS}
    assert set(SERVICES["gateway"]["secrets"]) == set(STACK["secrets"])


def test_what_is_mounted_is_there() -> None:
    for name in TOKENS:
        sources = [volume.split(":") for volume in SERVICES[name]["volumes"]]
        assert all((FOLDER / source).is_file() for source, *_ in sources)
        assert SERVICES[name]["command"][1] == sources[0][1]


async def test_the_trader_trades_and_the_watcher_can_only_read(tmp_path: Path) -> None:
    async with running_sandbox(SandboxSettings(limit_kind="none")) as sandbox:
        text = (FOLDER / "sealgate.toml").read_text()
        for old, new in {
            "https://api.example.com": sandbox.base_url,
            "0.0.0.0:8787": "127.0.0.1:0",
            "0.0.0.0:8788": "127.0.0.1:0",
            '["gateway"]': '["gateway", "127.0.0.1"]',
            "/var/lib/sealgate": str(tmp_path),
            "/run/secrets": str(tmp_path),
        }.items():
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "sealgate.toml").write_text(text)
        for name, secret in {**TOKENS, "main": sandbox.api_secret}.items():
            (tmp_path / name).write_text(secret)
            (tmp_path / name).chmod(0o600)
        config = load_config(
            tmp_path / "sealgate.toml",
            environ={
                "SEALGATE_KEYS__MAIN__API_KEY": sandbox.api_key,
                "SEALGATE_ADMIN__UNIX": "off",
            },
        )
        async with running_gateway(config) as gateway:
            url = f"http://{gateway.address}"
            assert await said(tmp_path, "trader", EXAMPLES / "careful_bot.py", url) == "done"
            assert await said(tmp_path, "watcher", FOLDER / "watcher.py", url, "1") == "200"
            assert await said(tmp_path, "watcher", EXAMPLES / "careful_bot.py", url) == "not_sent"


async def test_the_watcher_goes_on_while_the_gateway_restarts(tmp_path: Path) -> None:
    (tmp_path / "watcher").write_text(TOKENS["watcher"])
    assert await said(tmp_path, "watcher", FOLDER / "watcher.py", "http://127.0.0.1:9", "1") == "0"


async def said(folder: Path, bot: str, program: Path, *arguments: str) -> str:
    """Run a bot's program as a bot, and return the first word that it prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(program),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "TOKEN_FILE": str(folder / bot)},
    )
    async with asyncio.timeout(60):
        out, _ = await process.communicate()
    return out.decode().split()[0]
