"""`halt`, `resume` and `reload` against a gateway that runs, as its operator meets them."""

import json
import os
import re
import signal
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from rig.command import ended_command
from rig.program import Program, running_program
from rig.upstream import Upstream, running_upstream, say
from rig.wire import reply

SECRET = "correct-horse-battery-staple"
ENVIRON = {"EXCHANGE_SECRET": SECRET, "GRID": "grid-token"}
CONFIG = """\
base_url = "{base_url}"
listen.tcp = "127.0.0.1:0"
admin.tcp = "127.0.0.1:0"
admin.unix = "{socket}"
journal.file = "{journal}"
[keys.main]
api_key = "ak-public-1"
secret = "env:EXCHANGE_SECRET"
[bots.grid]
token = "env:GRID"
"""
TWO = """\
listen.tcp = "127.0.0.1:0"
admin.tcp = "127.0.0.1:0"
admin.unix = "{socket}"
journal.file = "{journal}"
[exchanges.spot]
base_url = "{base_url}"
[exchanges.perp]
base_url = "PERP"
[keys.main]
exchanges = ["spot", "perp"]
api_key = "ak-public-1"
secret = "env:EXCHANGE_SECRET"
[bots.grid]
token = "env:GRID"
"""
WIDER = "Lift a wider halt with its own options, or all halts with `sealgate resume`."


class Desk:
    """A running gateway, its configuration file, and the commands about it."""

    def __init__(self, program: Program, file: Path) -> None:
        self.program = program
        self.file = file

    async def tell(self, *arguments: str) -> tuple[int, str]:
        """Run a command; return its exit code and all that it printed."""
        result = await ended_command(*arguments, environ={**ENVIRON, "SEALGATE_CONFIG": str(self.file)})
        told = re.sub(
            r" \(since .* by user \d+, process \d+\)$", "", result.stdout + result.stderr, flags=re.MULTILINE
        )
        return result.exit_code, told.rstrip("\n")

    async def order(self, exchange: str = "") -> tuple[int, str | None]:
        """Place an order, at one of several exchanges; return status and reason."""
        line = await self.program.line('"listening"')
        url = f"{json.loads(line)['bots']}{exchange}/v1/trade/order"
        headers = {"Authorization": "Bearer grid-token"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, json={}, headers=headers) as reply,
        ):
            return reply.status, reply.headers.get("X-Gateway-Error")


@asynccontextmanager
async def running_desk(upstream: Upstream, folder: Path, config: str = CONFIG) -> AsyncIterator[Desk]:
    file = folder / "sealgate.toml"
    values = {"base_url": upstream.base_url, "socket": folder / "a.sock", "journal": folder / "j.db"}
    file.write_text(config.format(**values))
    environ = {**ENVIRON, "SEALGATE_CONFIG": str(file)}
    async with running_program("serve", environ=environ) as program:
        await program.line('"ready"')
        yield Desk(program, file)
        program.tell(signal.SIGTERM)
        assert await program.end() == 0
    assert not (folder / "a.sock").exists()
    assert SECRET not in program.output


async def test_halt_and_resume(tmp_path: Path) -> None:
    async with running_upstream() as upstream:
        async with running_desk(upstream, tmp_path) as desk:
            assert stat.S_IMODE((tmp_path / "a.sock").stat().st_mode) == 0o600
            code, told = await desk.tell("halt", "--bot", "grid")
            assert (code, told.splitlines()[1:]) == (0, ["waiting orders refused: 0", "halted: bot grid"])
            assert await desk.order() == (503, "halted")
            code, told = await desk.tell("halt", "--bot", "grid")
            again = ["already halted; nothing has changed", "halted: bot grid"]
            assert (code, told.splitlines()[1:]) == (0, again)
        async with running_desk(upstream, tmp_path) as desk:  # after a restart
            assert await desk.order() == (503, "halted")
            code, told = await desk.tell("resume")
            assert (code, told.splitlines()[1:]) == (0, ["resumed: bot grid", "no orders are halted"])
            assert await desk.order() == (200, None)


async def test_halt_and_resume_at_one_exchange(tmp_path: Path) -> None:
    async with (
        running_upstream() as spot,
        running_upstream() as perp,
        running_desk(spot, tmp_path, TWO.replace("PERP", perp.base_url)) as desk,
    ):
        code, told = await desk.tell("halt", "--exchange", "sopt")
        assert (code, told) == (1, "sealgate: there is no exchange sopt; did you mean spot?")
        code, told = await desk.tell("halt", "--exchange", "spot")
        assert (code, told.splitlines()[-1]) == (0, "halted: all bots at spot")
        assert [await desk.order(name) for name in ("/spot", "/perp")] == [(503, "halted"), (200, None)]
        code, told = await desk.tell("resume", "--exchange", "perp")
        none = "no halt lies within this scope: all bots at perp; nothing has changed"
        assert (code, told.splitlines()[1:]) == (0, [f"{none}. {WIDER}", "halted: all bots at spot"])
        code, told = await desk.tell("resume", "--bot", "grid", "--exchange", "spot")
        none = "no halt lies within this scope: bot grid at spot; nothing has changed"
        assert (code, told.splitlines()[1:]) == (0, [f"{none}. {WIDER}", "halted: all bots at spot"])
        code, told = await desk.tell("resume")
        assert (code, told.splitlines()[1:]) == (0, ["resumed: all bots at spot", "no orders are halted"])
        assert await desk.order("/spot") == (200, None)


async def test_a_resume_says_what_it_changed(tmp_path: Path) -> None:
    async with running_upstream() as upstream, running_desk(upstream, tmp_path) as desk:
        code, told = await desk.tell("resume")
        assert (code, told.splitlines()[1:]) == (0, ["no orders are halted"])
        await desk.tell("halt")
        code, told = await desk.tell("resume", "--bot", "grid")
        none = "no halt lies within this scope: bot grid; nothing has changed"
        assert (code, told.splitlines()[1:]) == (0, [f"{none}. {WIDER}", "halted: all bots"])
        assert "orders_resumed" not in desk.program.output
        await desk.tell("resume")
        await desk.program.line('"orders_resumed"')


async def test_a_resume_names_the_key_that_it_uses_again(tmp_path: Path) -> None:
    async with running_upstream() as upstream, running_desk(upstream, tmp_path) as desk:
        invalid = say(reply(b"401 Unauthorized", b'{"detail": "Invalid API key"}'))
        upstream.answers.extend([invalid, invalid])  # the second is the gateway's own read
        assert await desk.order() == (401, None)
        await desk.program.line('"key_disabled"')
        code, told = await desk.tell("resume", "--key", "main")
        again = ["key main: used again from now on", "no orders are halted"]
        assert (code, told.splitlines()[1:]) == (0, again)


async def test_reload(tmp_path: Path) -> None:
    async with running_upstream() as upstream, running_desk(upstream, tmp_path) as desk:
        good = desk.file.read_text()
        desk.file.write_text(good + "weight = 2\nwieght = 2\n")
        socket = ("--socket", str(tmp_path / "a.sock"))
        code, told = await desk.tell("reload", *socket)
        assert code == 1
        assert "wieght" in told
        assert "weight" in told
        assert await desk.tell("reload") == (code, told)  # by admin.unix of that file: once, too
        desk.file.write_text(f'log.level = "debug"\n{good}')
        code, told = await desk.tell("reload", *socket)
        said = f"gateway to {upstream.base_url} at {tmp_path}/a.sock\nreloaded"
        assert (code, told) == (0, f"{said}\nsealgate: log.level takes effect after a restart")
        desk.program.tell(signal.SIGHUP)
        line = await desk.program.line('"asked_by": "SIGHUP"')
        assert json.loads(line)["event"] == "reloaded"
        assert await desk.order() == (200, None)


@pytest.mark.parametrize("arguments", [("--socket", "no.sock"), ()], ids=["given", "configured"])
async def test_no_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sealgate.toml").write_text(
        'base_url = "https://x.example"\n'
        'admin.unix = "no.sock"\n'
        'keys.main = { api_key = "ak-public-1", secret = "env:EXCHANGE_SECRET" }\n'
    )
    result = await ended_command("halt", *arguments, environ=ENVIRON)
    assert result.exit_code == 1
    assert result.output == (
        f"sealgate: no gateway listens at {tmp_path}/no.sock; start it with `sealgate serve`, "
        "run this in the folder in which it runs, or give the right --socket\n"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
async def test_a_folder_of_another_user_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "sealgate"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, -1)
    result = await ended_command("halt", environ={"XDG_RUNTIME_DIR": str(tmp_path)})
    assert result.exit_code == 2
    assert "belongs to user 12345" in result.output
