"""The whole demo, as its user meets it: a real program on real ports."""

import json
import os
import re
import signal
import socket

import aiohttp
import pytest

from rig.ports import free_port
from rig.program import ended_program, running_program

CURL = re.compile(r"  curl (http://you:[\w-]+@127\.0\.0\.1:\d+/v1/trade/symbols/list)")
ENVIRON = {"SEALGATE_BASE_URL": "https://exchange.example"}  # the user's own, which is not the demo's


async def test_it_ends_by_itself_with_a_summary_for_programs() -> None:
    code, program = await ended_program("demo", "--seconds", "2.5", "--json", environ=ENVIRON)
    assert code == 0
    summary = json.loads("".join(program.out))
    assert summary["seconds"] >= 2.49
    for side in ("through_sealgate", "on_its_own"):
        assert 0 < summary[side]["accepted_per_s"] <= 20
        assert summary[side]["unknown_orders"] == 0
        assert summary[side]["waits"].keys() == {"quick", "slow", "flood", "cancel"}
    assert summary["on_its_own"]["limited"] > 0
    seconds = [line.split()[0] for line in program.err if "| on its own: accepted" in line]
    assert seconds == ["1", "2"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
async def test_the_line_to_try_works_and_a_signal_ends_it_with_the_summary(number: signal.Signals) -> None:
    port = free_port()
    async with running_program("demo", "--port", str(port), environ=ENVIRON) as program:
        found = CURL.fullmatch(await program.line("  curl "))
        assert found is not None
        assert f"127.0.0.1:{port}/" in found[1]
        async with aiohttp.ClientSession() as session, session.get(found[1]) as reply:
            assert reply.status == 200
            assert (await reply.json())["symbols"]
        await program.line("429s")
        os.killpg(program.process.pid, number)  # as a terminal does
        assert await program.end() == 0
    assert program.err == []
    assert any(line.startswith("longest wait of a cancel ") for line in program.out)


async def test_a_viewer_of_the_live_page_does_not_keep_it_from_ending() -> None:
    async with running_program("demo", environ=ENVIRON) as program:
        page = (await program.line("  live page ")).split()[-1]
        async with aiohttp.ClientSession() as session, session.get(f"{page}events") as events:
            assert await events.content.readline()
            program.tell(signal.SIGINT)
            assert await program.end() == 0


async def test_a_second_signal_ends_it_at_once() -> None:
    async with running_program("demo", environ=ENVIRON) as program:
        await program.line("429s")
        program.tell(signal.SIGINT)
        program.tell(signal.SIGTERM)
        assert await program.end() in {128 + signal.SIGINT, 128 + signal.SIGTERM}
    assert not any(line.startswith("longest wait of a cancel ") for line in program.out)


@pytest.mark.parametrize("option", ["--port", "--sandbox-port"])
async def test_a_port_that_is_taken_is_told_in_one_line(option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        code, program = await ended_program("demo", option, port, environ=ENVIRON)
    assert code == 2
    assert program.out == []
    told = f"cannot listen on 127.0.0.1:{port}: another program listens there; choose another {option}"
    assert program.err == [f"sealgate: error: {told}"]
