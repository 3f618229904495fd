"""`sealgate serve` as its operator meets it: each trouble is one clear line, and none has a secret."""

import asyncio
import contextlib
import json
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from rig.command import ended_command
from rig.ports import free_port
from rig.program import BASE, Program, ended_program, running_program
from rig.upstream import Upstream, running_upstream, say
from rig.wire import reply

SECRET = "correct-horse-battery-staple"
TARGET = "/v1/trade/symbols/list"


async def refusal(folder: Path, **environ: str) -> str:
    """Return the one line that `serve` ends with, under BASE and these variables."""
    code, program = await ended_program("serve", environ=BASE | environ, folder=folder)
    assert code == 2
    assert program.out == []
    assert SECRET not in program.output
    (line,) = (line for line in program.err if not line.startswith("{"))  # the log may have begun
    return line


def event(program: Program, name: str) -> dict[str, Any]:
    """Return a log line by its event."""
    return next(line for text in program.err if (line := json.loads(text))["event"] == name)


@pytest.fixture
def occupied() -> Iterator[str]:
    """Return an address at which somebody listens already."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("setting", ["listen.tcp", "admin.tcp"])
async def test_an_occupied_port(tmp_path: Path, occupied: str, setting: str) -> None:
    line = await refusal(tmp_path, **{f"SEALGATE_{setting.replace('.', '__').upper()}": occupied})
    assert line.startswith(f"sealgate: error: cannot listen on {occupied}: another program listens there;")
    assert setting in line


async def test_an_admin_address_of_another_machine(tmp_path: Path) -> None:
    assert await refusal(tmp_path, SEALGATE_ADMIN__TCP="192.0.2.1:80") == (
        "sealgate: error: cannot listen on 192.0.2.1:80: cannot assign requested address; "
        "set admin.tcp to another address"
    )


async def test_what_is_wrong_with_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = await ended_command(
        "serve", environ=BASE | {"SEALGATE_KEYS__MAIN__API_KEY": "PASTE_THE_API_KEY"}
    )
    assert (result.exit_code, result.stdout) == (2, "")
    [line] = result.stderr.splitlines()
    assert line.startswith("sealgate: error: keys.main.api_key is still the placeholder; ")
    assert "paste your API key" in line


async def test_what_is_wrong_with_a_secret(tmp_path: Path) -> None:
    """It is told by the program's own loop."""
    line = await refusal(tmp_path, SEALGATE_KEYS__MAIN__SECRET="env:NOWHERE")
    assert line.startswith("sealgate: error: env:NOWHERE: ")
    assert "set NOWHERE" in line


@contextlib.asynccontextmanager
async def serving(upstream: Upstream, folder: Path, **environ: str) -> AsyncIterator[Program]:
    """Run `serve` before an upstream, and wait until it is ready."""
    environ = BASE | {"SEALGATE_BASE_URL": upstream.base_url} | environ
    async with running_program("serve", environ=environ, folder=folder) as program:
        await program.line('"ready"')
        yield program


async def status(url: str, deadline_ms: int = 20_000) -> tuple[int, str | None]:
    """Return the status of a reply, and the gateway's reason."""
    headers = {"X-Gateway-Deadline-Ms": str(deadline_ms)}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as reply:
        return reply.status, reply.headers.get("X-Gateway-Error")


async def test_an_upstream_that_comes_later(tmp_path: Path) -> None:
    """It starts, says why it is not ready, answers for the upstream, and needs no help once that is there."""
    port = free_port()
    environ = BASE | {
        "SEALGATE_BASE_URL": f"http://127.0.0.1:{port}",
        "SEALGATE_CLOCK__GRACE": "0.1",
    }
    async with running_program("serve", environ=environ, folder=tmp_path) as program:
        await program.line('"not_ready"')
        assert "clock not synchronized: cannot connect" in event(program, "not_ready")["reasons"]
        listening = event(program, "listening")
        bots, ready = listening["bots"], f"{listening['admin']}/-/ready"
        assert await status(f"{bots}{TARGET}", 50) == (503, "clock_unsynced")
        assert await status(f"{bots}/v1/trade/time") == (502, "upstream_unreachable")
        assert await status(ready) == (503, None)
        async with running_upstream(port=port):
            await program.line('"clock_synced"')
            assert await status(ready) == (200, None)
            assert await status(f"{bots}{TARGET}") == (200, None)
            program.tell(signal.SIGTERM)
            assert await program.end() == 0
    assert "Traceback" not in program.output
    assert SECRET not in program.output


async def test_it_names_the_addresses_of_single_bots(tmp_path: Path) -> None:
    own = {"SEALGATE_BOTS__GRID__LISTEN": "127.0.0.1:0", "SEALGATE_LISTEN__TCP": ""}
    async with running_upstream() as upstream, serving(upstream, tmp_path, **own) as program:
        told = event(program, "own_address")
        assert told["bot"] == "grid"
        assert await status(f"{told['url']}{TARGET}") == (200, None)
        assert "bots" not in event(program, "listening")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_with_success(tmp_path: Path, number: signal.Signals) -> None:
    async with running_upstream() as upstream, serving(upstream, tmp_path) as program:
        program.tell(number)
        assert await program.end() == 0
    assert [json.loads(line)["event"] for line in program.err][-2:] == ["draining", "stopped"]
    assert program.out == []


async def test_a_second_gateway_does_not_disturb_the_first(tmp_path: Path) -> None:
    async with running_upstream() as upstream, serving(upstream, tmp_path) as program:
        address = event(program, "listening")["bots"].removeprefix("http://")
        told = (
            "a Sealgate gateway runs there already; stop it, or `sealgate reload`; for a second gateway, set "
        )
        admin = event(program, "listening")["admin"].removeprefix("http://")
        others = {"SEALGATE_ADMIN__TCP": f"127.0.0.1:{free_port()}"}
        assert f"{told}listen.tcp" in await refusal(tmp_path, SEALGATE_LISTEN__TCP=address, **others)
        assert f"{told}admin.tcp" in await refusal(tmp_path, SEALGATE_ADMIN__TCP=admin)
        async with asyncio.timeout(20):
            assert await status(f"http://{address}{TARGET}") == (200, None)
        asked = json.loads(await program.line("who-listens.sealgate.invalid"))
        assert (asked["event"], asked["reason"]) == ("request", "host_refused")


WAYS = {
    "by its admin socket": {"SEALGATE_ADMIN__UNIX": "admin.sock"},
    "by the lock of the journal": {"SEALGATE_JOURNAL__FILE": "journal.db"},
    "by both": {"SEALGATE_ADMIN__UNIX": "admin.sock", "SEALGATE_JOURNAL__FILE": "journal.db"},
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_a_second_one_says_that_the_first_runs_already(tmp_path: Path, way: dict[str, str]) -> None:
    folder = Path(tempfile.mkdtemp(dir=tmp_path))  # what is in it is ours alone
    bots, admin = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    environ = {"SEALGATE_LISTEN__TCP": bots, "SEALGATE_ADMIN__TCP": admin}
    environ |= {name: str(folder / file) for name, file in way.items()}
    async with running_upstream() as upstream:
        environ |= {"SEALGATE_BASE_URL": upstream.base_url}
        async with serving(upstream, folder, **environ) as program:
            line = await refusal(folder, **environ)
            pid = program.process.pid
            assert line == (
                f"sealgate: error: already running: pid {pid}, at {bots}; apply changes to it with "
                f"`sealgate reload`, or stop it (kill {pid}); for a second gateway, give this one "
                "its own addresses"
            )
            program.tell(signal.SIGKILL)
            await program.end()
        async with serving(upstream, folder, **environ) as program:  # what a dead one left is in nobody's way
            assert await status(f"http://{bots}{TARGET}") == (200, None)


async def test_a_start_says_for_which_exchange_and_where(tmp_path: Path) -> None:
    async with running_upstream() as upstream, serving(upstream, tmp_path) as program:
        told = event(program, "listening")
        assert (told["venue"], told["base_url"]) == ("service", upstream.base_url)
        assert await status(told["page"]) == (200, None)
        assert await status(f"{told['bots']}{TARGET}") == (200, None)


async def test_a_wrong_secret_is_told_before_an_order_meets_it(tmp_path: Path) -> None:
    async with running_upstream() as upstream:
        upstream.otherwise = say(reply(b"401 Unauthorized", b'{"detail":"Invalid HMAC signature"}'))
        async with serving(upstream, tmp_path) as program:
            told = json.loads(await program.line('"signatures_refused"'))
            assert (told["level"], told["key"]) == ("error", "main")
            assert told["fix"].startswith("Check that the secret")
            url = f"{event(program, 'listening')['admin']}/-/ready"
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                note = "note: the key main: the exchange refused its last signature"
                assert (answer.status, await answer.text()) == (200, f"ready\n{note}\n")
        assert [one.target for one in upstream.received] == [TARGET.encode()]
