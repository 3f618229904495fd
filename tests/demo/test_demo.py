"""The whole demo, as its user meets it: real programs, real ports, and nothing left behind."""

import asyncio
import json
import os
import re
import signal
import socket
from pathlib import Path

import aiohttp
import pytest

from rig.ports import free_port
from rig.program import Program, ended_program, running_program
from rig.wire import PATIENCE_S, let_pass

CURL = re.compile(r"  curl (http://you:[\w-]+@127\.0\.0\.1:\d+/v1/trade/symbols/list)")


def is_group_gone(program: Program) -> bool:
    """Whether no process of the demo's group is left, itself included."""
    try:
        os.killpg(program.process.pid, 0)
    except ProcessLookupError:
        return True
    return False


def left_in(folder: Path) -> list[Path]:
    """Return the temporary files that the demo has left behind."""
    return list(folder.iterdir())


def environ(folder: Path) -> dict[str, str]:
    """Return an environment whose temporary files are under the test's eyes, with a setting to be ignored."""
    return {"TMPDIR": str(folder), "SEALGATE_BASE_URL": "https://exchange.example"}


def children(program: Program) -> list[int]:
    """Return the ids of its child processes, the oldest first."""
    pid = program.process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def test_it_ends_by_itself_with_a_summary_for_programs(tmp_path: Path) -> None:
    code, program = await ended_program("demo", "--seconds", "2.5", "--json", environ=environ(tmp_path))
    assert code == 0
    summary = json.loads("".join(program.out))
    assert summary["seconds"] >= 2.5
    for side in ("through_sealgate", "on_its_own"):
        assert summary[side]["accepted_per_s"] > 0
        assert summary[side]["unknown_orders"] == 0
        assert summary[side]["accepted_per_s"] <= 20
        assert summary[side]["waits"].keys() == {"quick", "slow", "flood", "cancel"}
    assert summary["on_its_own"]["limited"] > 0
    seconds = [line.split()[0] for line in program.err if "| on its own: accepted" in line]
    assert seconds == ["1", "2"]
    assert is_group_gone(program)
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
async def test_the_line_to_try_works_and_a_signal_ends_it_with_the_summary(
    tmp_path: Path, number: signal.Signals
) -> None:
    port = free_port()
    async with running_program("demo", "--port", str(port), environ=environ(tmp_path)) as program:
        found = CURL.fullmatch(await program.line("  curl "))
        assert found is not None
        assert f"127.0.0.1:{port}/" in found[1]
        async with aiohttp.ClientSession() as session, session.get(found[1]) as reply:
            assert reply.status == 200
            assert (await reply.json())["symbols"]
        await program.line("429s")
        os.killpg(program.process.pid, number)  # as a terminal does: to all of the group
        assert await program.end() == 0
        assert is_group_gone(program)
    assert program.err == []
    assert any(line.startswith("longest wait of a cancel ") for line in program.out)
    assert "Through Sealgate the longest wait of a cancel was" in " ".join(program.out)
    assert left_in(tmp_path) == []


@pytest.mark.parametrize(
    "option",
    ["--port", "--admin-port", "--sandbox-port"],
)
async def test_a_port_that_is_taken_is_told_in_one_line(tmp_path: Path, option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        code, program = await ended_program("demo", option, port, environ=environ(tmp_path))
    assert code == 2
    assert program.out == []
    told = f"cannot listen on 127.0.0.1:{port}: another program listens there; choose another {option}"
    assert program.err == [f"sealgate: error: {told}"]
    assert is_group_gone(program)
    assert left_in(tmp_path) == []


async def test_a_part_that_ends_by_itself_ends_the_demo(tmp_path: Path) -> None:
    async with running_program("demo", environ=environ(tmp_path)) as program:
        await program.line("429s")
        os.kill(children(program)[-1], signal.SIGKILL)
        assert await program.end() == 1
        assert is_group_gone(program)
    assert program.err == ["sealgate: error: the gateway ended by itself (exit code -9)"]


async def end_of(pid: int) -> None:
    """Wait for the end of a process that need not be a child of ours."""
    descriptor, ended = os.pidfd_open(pid), asyncio.Event()
    asyncio.get_running_loop().add_reader(descriptor, ended.set)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await ended.wait()
    finally:
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)


ENDS = {
    "SIGTERM": ([signal.SIGTERM], {0}),
    "a second one": ([signal.SIGINT, signal.SIGTERM], {128 + signal.SIGINT, 128 + signal.SIGTERM}),
    "SIGKILL": ([signal.SIGKILL], {-signal.SIGKILL}),
}


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux waits for processes of others")
@pytest.mark.parametrize(("numbers", "codes"), ENDS.values(), ids=ENDS)
async def test_its_children_end_with_it(tmp_path: Path, numbers: list[int], codes: set[int]) -> None:
    """Each signal goes to the demo alone, as a supervisor sends it."""
    async with running_program("demo", environ=environ(tmp_path)) as program:
        await program.line("429s")
        ends = [asyncio.create_task(end_of(child)) for child in children(program)]
        assert len(ends) == 3
        await let_pass(0)  # until each waits
        for number in numbers:
            program.tell(number)
        assert await program.end() in codes
        await asyncio.gather(*ends)
    assert any(line.startswith("longest wait of a cancel ") for line in program.out) is (codes == {0})
