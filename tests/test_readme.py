"""The README's fenced blocks: recipes run with only the address changed, the rest is parsed."""

import asyncio
import os
import re
import shlex
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import click
import pytest

from sealgate.cli import main
from sealgate.config import Config, load_config
from sealgate.gateway.gateway import running_gateway
from sealgate.sandbox.server import running_sandbox
from sealgate.sandbox.settings import SandboxSettings

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = FENCE.findall((ROOT / "README.md").read_text())
ADDRESS = "http://127.0.0.1:8787"


def recipes() -> Iterator[object]:
    """Yield each block that talks to the gateway, as the command that runs it."""
    programs = {"python": [sys.executable, "-W", "error", "-"], "js": ["node", "--input-type=module", "-"]}
    for number, (language, text) in enumerate(BLOCKS):
        if language in programs:
            yield pytest.param(programs[language], text, id=f"{language}-{number}")
        elif language == "sh" and text.startswith("curl"):
            yield pytest.param(["sh", "-e"], text.replace("curl ", "curl -fsS "), id=f"curl-{number}")


def shell_lines() -> list[str]:
    return [
        line for language, text in BLOCKS if language == "sh" for line in text.splitlines() if line.strip()
    ]


@pytest.fixture
async def gateway_url() -> AsyncIterator[str]:
    async with running_sandbox(SandboxSettings(limit_kind="none")) as sandbox:
        config = Config.model_validate(
            {
                "base_url": sandbox.base_url,
                "listen": {"tcp": "127.0.0.1:0"},
                "keys": {"main": {"api_key": sandbox.api_key, "secret": "env:SECRET"}},
            }
        )
        async with running_gateway(config, environ={"SECRET": sandbox.api_secret}) as gateway:
            yield f"http://{gateway.address}"


@pytest.mark.parametrize(("program", "text"), list(recipes()))
async def test_recipe_runs_with_a_changed_address_only(
    gateway_url: str, program: list[str], text: str
) -> None:
    process = await asyncio.create_subprocess_exec(
        *program,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"]},
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate(text.replace(ADDRESS, gateway_url).encode())
    assert process.returncode == 0, err.decode()
    assert b"order_id" in out or b"symbols" in out


def test_there_is_a_recipe_for_each_client() -> None:
    text = "".join(text for _, text in BLOCKS)
    for client in ("curl ", "import requests", "import httpx", "import aiohttp", "await fetch("):
        assert client in text


def test_toml_is_a_valid_configuration(tmp_path: Path) -> None:
    [text] = [text for language, text in BLOCKS if language == "toml"]
    assert tomllib.loads(text)["bots"].keys() == {"grid", "watcher"}
    file = tmp_path / "sealgate.toml"
    file.write_text(text)
    assert load_config(file, environ={}).keys_of("grid") == ("main",)


def test_environment_is_a_valid_configuration() -> None:
    exports = dict(
        line.removeprefix("export ").split("=", 1) for line in shell_lines() if line.startswith("export")
    )
    exports["SEALGATE_KEYS__MAIN__API_KEY"] = "k"
    assert load_config(None, environ=exports).keys["main"].secret == "file:/run/secrets/main"


@pytest.mark.parametrize("line", [line for line in shell_lines() if line.startswith("sealgate ")])
def test_command_line_parses(line: str) -> None:
    name, *arguments = shlex.split(line)[1:]
    command = main.get_command(click.Context(main), name)
    assert command is not None
    command.make_context(name, arguments)


@pytest.mark.parametrize("line", [line for line in shell_lines() if line.startswith("scripts/")])
def test_script_exists(line: str) -> None:
    assert os.access(ROOT / line.split(maxsplit=1)[0], os.X_OK)
