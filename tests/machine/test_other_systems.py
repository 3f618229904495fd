"""`serve` and `reload` where the system lacks what is Linux's own: it is taken away before they start."""

import asyncio
import json
import socket
import struct
from pathlib import Path

import aiohttp
import pytest

from rig.bot import bot_at, request
from rig.program import BASE, running_program
from rig.upstream import Upstream, say
from rig.wire import PATIENCE_S, reply

ABSENT = {
    "CLOCK_BOOTTIME": "import time; del time.CLOCK_BOOTTIME",
    "SO_PEERCRED": "import socket; del socket.SO_PEERCRED",
    "POLLRDHUP": "import select; del select.POLLRDHUP",
    "epoll": "import select, sys; del select.epoll; sys.modules['uvloop'] = None",
    "prlimit": "import resource; del resource.prlimit, resource.RLIMIT_NPROC",
}
SYSTEMS = {
    "macOS, which has uvloop": "; ".join(text for name, text in ABSENT.items() if name != "epoll"),
    "none of them": "; ".join(ABSENT.values()),
}
START = "{}; from sealgate.cli import main; main()"
ORDER = request(b"POST", b"/v1/trade/order", body=b'{"id":"1"}')
PAUSE = reply(b"429 Too Many Requests", b"{}", b"Retry-After: 3")
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: a close sends RST


async def until_waiting(admin: str, count: int) -> None:
    """Return once so many requests wait."""
    async with aiohttp.ClientSession() as session, asyncio.timeout(PATIENCE_S):
        while True:
            async with session.get(f"{admin}/status.json") as answer:
                if sum((await answer.json())["keys"][0]["waiting"].values()) == count:
                    return


@pytest.mark.parametrize("absence", SYSTEMS.values(), ids=SYSTEMS)
async def test_it_serves_reloads_and_sends_no_order_of_a_bot_that_hung_up(
    absence: str, upstream: Upstream, tmp_path: Path
) -> None:
    start = ("-c", START.format(absence))
    environ = BASE | {"SEALGATE_BASE_URL": upstream.base_url, "SEALGATE_ADMIN__UNIX": str(tmp_path / "a/s")}
    async with running_program("serve", environ=environ, folder=tmp_path, start=start) as program:
        listening = json.loads(await program.line('"listening"'))
        await program.line('"ready"')
        host, _, port = listening["bots"].split()[0].removeprefix("http://").rpartition(":")
        upstream.answers.append(say(PAUSE))
        async with bot_at(host, int(port)) as bot:
            first = asyncio.ensure_future(bot.ask(request(target=b"/v1/trade/first")))
            await until_waiting(listening["admin"], 1)
            with socket.create_connection((host, int(port))) as other:
                other.sendall(ORDER)
                await until_waiting(listening["admin"], 2)
                other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            assert (await first).status == 200
        hung_up = json.loads(await program.line('"hung_up"'))
        assert (hung_up["outcome"], hung_up["hung_up"]) == ("not_sent", True)
        assert b"/v1/trade/order" not in [one.target for one in upstream.received]
        async with running_program("reload", environ=environ, folder=tmp_path, start=start) as reload:
            await reload.line("reloaded")
            assert await reload.end() == 0
