"""Three commands from nothing to the first signed read, as they are printed for a person to paste."""

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from rig.fake_venues import API_KEY, PASSPHRASE, SECRET, Fake, running_fake
from rig.terminal import in_a_terminal

PORTS = {"SEALGATE_LISTEN__TCP": "127.0.0.1:0", "SEALGATE_ADMIN__TCP": "127.0.0.1:0", "NO_COLOR": "1"}
CCXT = """\
import ccxt
exchange = ccxt.{name}({{"apiKey": "made-up", "secret": "bWFkZS11cA==", "password": "made-up"}})
exchange.options["fetchMarkets"] = {{"types": ["spot"]}}
{lines}
print(exchange.fetch_balance()["USDT"])
"""


def set_up(folder: Path, fake: Fake, environ: dict[str, str]) -> str:
    """Answer the questions, and return what is printed at the end."""
    with in_a_terminal("config", "init", folder=folder, environ=environ) as terminal:
        terminal.answer("Exchange (", fake.name)
        if fake.name != "kucoin":
            terminal.answer("Environment (")
        terminal.answer("API key: ", API_KEY)
        terminal.answer("not shown): ", SECRET)
        if fake.name in ("okx", "kucoin"):
            terminal.answer("not shown): ", PASSPHRASE)
        terminal.answer("bot [grid]: ")
        assert terminal.end() == 0
    return terminal.output.partition("Next:\n")[2]


def blocks(printed: str) -> list[str]:
    """Return the paragraphs that are to be pasted."""
    return [text for text in printed.split("\n\n") if text and not text.endswith(":")]


async def run(folder: Path, *program: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *program,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


@pytest.mark.needs("curl")
@pytest.mark.parametrize("name", ["binance", "okx"])
async def test_three_commands_lead_to_a_signed_read(tmp_path: Path, name: str) -> None:
    async with running_fake(name) as fake:
        environ = {**PORTS, "SEALGATE_BASE_URL": fake.base_url}
        environ["SEALGATE_ADMIN__UNIX"] = str(tmp_path / "admin.sock")
        printed = await asyncio.to_thread(set_up, tmp_path, fake, environ)

        def check() -> str:
            with in_a_terminal("check", folder=tmp_path, environ=environ) as terminal:
                assert terminal.end() == 0
            return terminal.output

        checked = await asyncio.to_thread(check)
        assert "warn" not in checked
        assert "a signed read is accepted" in " ".join(checked.split())
        assert checked.endswith("; next: sealgate serve\n")
        with in_a_terminal("serve", folder=tmp_path, environ=environ) as gateway:
            await asyncio.to_thread(gateway.until, "stop with")
            [address] = re.findall(r"bots +http://(\S+)", gateway.output)
            [shown] = re.findall(r"try +(curl .*\n.*)\n", gateway.output)
            await asyncio.to_thread(gateway.until, "ready     ")
            commands, curl, script, ccxt = blocks(printed.replace("127.0.0.1:0", address))
            assert "sealgate check " in commands
            reads = [
                await run(tmp_path, "sh", "-ec", text.replace("curl ", "curl -fsS "))
                for text in (curl, shown)
            ]
            assert reads[0] == reads[1]
            assert (await run(tmp_path, sys.executable, "-W", "error", "-c", script)).startswith("done ")
            text = CCXT.format(name=name, lines=f"{script.splitlines()[1]}\n{ccxt}")
            assert "1000.0" in await run(tmp_path, sys.executable, "-c", text)
    assert [why for why in fake.refused if why != "another key"] == []
    assert SECRET not in printed + checked + gateway.output


@pytest.mark.needs("curl")
async def test_an_exchange_is_added_while_the_gateway_runs(tmp_path: Path) -> None:
    environ = {**PORTS, "SEALGATE_ADMIN__UNIX": str(tmp_path / "admin.sock")}

    async def sealgate(*arguments: str, secret: str = "") -> str:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "sealgate", *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], **environ},
        )
        async with asyncio.timeout(60):
            out, err = await process.communicate(secret.encode())
        assert process.returncode == 0, err.decode()
        return out.decode()

    def key(fake: Fake) -> tuple[str, ...]:
        options = ("--venue", fake.name, "--base-url", fake.base_url, "--api-key", API_KEY)
        return ("config", "init", *options, "--secret-file", "-", "--bot", "grid")

    (tmp_path / "mine.passphrase").write_text(PASSPHRASE)
    (tmp_path / "mine.passphrase").chmod(0o600)
    async with running_fake("binance") as binance, running_fake("okx") as okx:
        await sealgate(*key(binance), secret=SECRET)
        with in_a_terminal("serve", folder=tmp_path, environ=environ) as gateway:
            await asyncio.to_thread(gateway.until, "ready     ")
            [address] = re.findall(r"bots +(http://\S+)", gateway.output)
            printed = await sealgate(*key(okx), "--passphrase-file", "mine.passphrase", secret=SECRET)
            assert "so is [keys.okx]" in printed
            assert "restart" not in await sealgate("reload")
            token = (tmp_path / "grid.token").read_text().strip()
            for path in ("binance/api/v3/account", "okx/api/v5/account/config"):
                header = f"Authorization: Bearer {token}"
                await run(tmp_path, "curl", "-fsS", f"{address}/{path}", "-H", header)
    assert (binance.refused, okx.refused) == ([], [])
