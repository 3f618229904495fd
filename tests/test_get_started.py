"""docs/get-started.md, block by block, as one session at an exchange that checks each signature.

What is shown is compared with what is printed, but for numbers and for where a line breaks.
"""

import asyncio
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from rig.fake_venues import API_KEY, SECRET, running_fake
from rig.fences import ROOT, fences
from rig.terminal import Terminal, in_a_terminal
from rig.tls import Authority

BLOCKS = list(fences(ROOT / "docs" / "get-started.md"))
SHOWN = {block.label: block.text for block in BLOCKS if block.language == "text"}
COMMANDS = [block.text for block in BLOCKS if block.language == "sh"]
ADDRESS, EXCHANGE, FOLDER = "127.0.0.1:8787", "https://api.binance.com", "/home/you/bots"
PLACES = {"SEALGATE_LISTEN__TCP": "127.0.0.1:0", "SEALGATE_ADMIN__TCP": "127.0.0.1:0", "NO_COLOR": "1"}
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def plain(text: str) -> str:
    """Return a text without what differs between two runs."""
    text = " ".join(re.sub(r"\d+", "N", text).split())
    text = text.replace(" and N from the environment", "")
    return re.sub(r"(listen|admin)\.tcp (\S+ is free|a free port is chosen at each start)", r"\1.tcp", text)


def as_shown(terminal: Terminal, base_url: str, folder: Path) -> str:
    text = terminal.output.replace(base_url, EXCHANGE).replace(str(folder), FOLDER)
    return plain(text.replace("localhost is", "api.binance.com is"))


async def sh(text: str, folder: Path, environ: Mapping[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(
        *("sh", "-ec", text),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=folder,
        env={"PATH": PATH, **environ},
    )
    async with asyncio.timeout(60):
        out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    return out.decode()


def answer(terminal: Terminal) -> None:
    for question, text in (
        *(("Exchange (", "binance"), ("Environment (", ""), ("API key: ", API_KEY)),
        *(("not shown): ", SECRET), ("bot [grid]: ", "")),
    ):
        terminal.answer(question, text)
    assert terminal.end() == 0


@pytest.mark.needs("curl")
async def test_the_page_is_one_session(tmp_path: Path) -> None:
    init, check, serve, read, stop, again, order = COMMANDS
    authority, folder = Authority(), tmp_path / "bots"
    folder.mkdir(0o700)
    async with running_fake("binance", tls=authority.server_context("localhost")) as fake:
        environ = {
            **PLACES,
            "SEALGATE_BASE_URL": fake.base_url,
            "SEALGATE_UPSTREAM__CA_FILE": authority.write(tmp_path),
            "SEALGATE_ADMIN__UNIX": str(folder / "admin.sock"),
        }

        def run(command: str, *answers: str) -> str:
            with in_a_terminal(*command.split()[1:], folder=folder, environ=environ) as terminal:
                answer(terminal) if answers else terminal.end()
            return as_shown(terminal, fake.base_url, folder)

        # 1. Set up and check, as it is shown.
        assert plain(SHOWN["init"]) in await asyncio.to_thread(run, init, "all")
        assert await asyncio.to_thread(run, check) == plain(SHOWN["check"])
        # 2. The gateway, and a signed read.
        with in_a_terminal(*serve.split()[1:], folder=folder, environ=environ) as gateway:
            await asyncio.to_thread(gateway.until, "stop with")
            [address] = re.findall(r"bots +http://(\S+)", gateway.output)
            assert plain(SHOWN["serve"]) in as_shown(gateway, fake.base_url, folder)
            await asyncio.to_thread(gateway.until, "ready     ")
            reply = (await sh(read.replace(ADDRESS, address), folder, environ)).splitlines()
            assert {plain(re.sub(r"[0-9a-f]{8}-", "", line)) for line in SHOWN["read"].splitlines()} <= {
                plain(re.sub(r"[0-9a-f]{8}-", "", line)) for line in reply
            }
            # 3. Stop, resume, a policy, and the order.
            assert "halted" in await sh(stop, folder, environ)
            file = folder / "sealgate.toml"
            [policy] = [block.text for block in BLOCKS if block.language == "toml"]
            file.write_text(f"{file.read_text()}\n{policy[policy.index('[bots.grid.policy]') :]}")
            assert "reloaded" in await sh(again, folder, environ)
            placed = await sh(order.replace(ADDRESS, address), folder, environ)
        assert "X-Gateway-Outcome: done" in placed
        assert [placed["symbol"] for placed in fake.orders] == ["BTCUSDT"]
        assert fake.refused == []
