"""File descriptors run out: who is connected is served on, the log stays small, and it recovers.

The limit of the running process is lowered from outside. Both loops are tested, as who comes then waits on
asyncio and is sent away on uvloop.
"""

import asyncio
import contextlib
import itertools
import resource
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from rig.acts import hold_until, say
from rig.bot import Bot, Reply, request
from rig.served import LOOPS, Served, environ, is_served_again, running_served
from rig.slow import address_of, deaf_bot
from rig.upstream import Upstream
from rig.wire import OK, let_pass

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="prlimit is Linux's own")

READ = request()
CANCEL = request(b"DELETE", b"/v1/trade/order/1")
ORDER = request(b"POST", b"/v1/trade/order", body=b"{}")
CONNECTED, FURTHER = 5, 60
MOST_LINES = 20


@contextlib.contextmanager
def few_descriptors(served: Served, spare: int) -> Iterator[None]:
    """Let the process open but a few more files as long as the block lasts."""
    was = resource.prlimit(served.pid, resource.RLIMIT_NOFILE)
    used = served.descriptors
    free = next(number for number in itertools.count() if number not in used)
    resource.prlimit(served.pid, resource.RLIMIT_NOFILE, (free + spare, was[1]))
    try:
        yield
    finally:
        resource.prlimit(served.pid, resource.RLIMIT_NOFILE, was)


async def connect(served: Served, count: int, stack: contextlib.AsyncExitStack) -> list[Bot]:
    return [await stack.enter_async_context(served.bot()) for _ in range(count)]


async def ask_all(bots: Sequence[Bot]) -> list[Reply]:
    return [await bot.ask(message) for message in (READ, ORDER) for bot in bots]


def lines_beside_requests(served: Served) -> list[str]:
    return [line for line in served.program.err if '"event": "request"' not in line]


@pytest.mark.parametrize("start", LOOPS.values(), ids=LOOPS)
async def test_descriptors_run_out(upstream: Upstream, tmp_path: Path, start: Sequence[str]) -> None:
    async with (
        running_served(environ(upstream.base_url), tmp_path, start) as served,
        contextlib.AsyncExitStack() as stack,
    ):
        connected = await connect(served, CONNECTED, stack)
        assert {answer.status for answer in await ask_all(connected)} == {200}
        before = len(lines_beside_requests(served))
        with few_descriptors(served, spare=3):
            async with contextlib.AsyncExitStack() as others:
                await connect(served, FURTHER, others)
                for _ in range(5):
                    assert {answer.status for answer in await ask_all(connected)} == {200}
                    await let_pass(0.2)  # in which a storm would rage
            told = lines_beside_requests(served)[before:]
            assert len(told) <= MOST_LINES, told[0]
            assert "Traceback" not in "".join(told)
            await is_served_again(lambda: served.ask(READ))
        await is_served_again(lambda: served.ask(READ))
        assert {answer.status for answer in await ask_all(connected)} == {200}


async def test_none_is_left_for_the_upstream(upstream: Upstream, tmp_path: Path) -> None:
    """Nothing was sent, and that is what is said."""
    settings = environ(upstream.base_url, UPSTREAM__WARM="false", CLOCK__INTERVAL="3600")
    async with running_served(settings, tmp_path) as served, served.bot() as bot:
        assert (await bot.ask(READ)).status == 200
        before = len(served.descriptors)
        await _let_it_sync(upstream)
        upstream.cut_all()
        async with asyncio.timeout(20):
            while len(served.descriptors) >= before:
                await let_pass(0.01)
        with few_descriptors(served, spare=0):
            answer = await bot.ask(ORDER)
            assert (answer.status, answer.outcome) == (502, "not_sent")
        assert (await bot.ask(ORDER)).outcome == "done"
        assert upstream.receipts(b"/v1/trade/order") == 1


async def _let_it_sync(upstream: Upstream) -> None:
    """Wait until the clock has its first samples; after those it opens no connection for an hour."""
    async with asyncio.timeout(20):
        while len(upstream.asked_time) < 5:
            await let_pass(0.01)


LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80)); {}"


def limited(start: Sequence[str]) -> Sequence[str]:
    """Return how to start a gateway with a limit that is low from the beginning."""
    return "-c", LIMITED.format(start[1] if start[0] == "-c" else "from sealgate.cli import main; main()")


async def test_bots_leave_enough_for_the_upstream(upstream: Upstream, tmp_path: Path) -> None:
    """With a limit that is low from the start: orders that are under way together have a connection each."""
    go = asyncio.Event()
    upstream.otherwise = hold_until(go, say(OK))
    settings = environ(upstream.base_url, UPSTREAM__MAX_CONNECTIONS="8")
    async with (
        running_served(settings, tmp_path, limited(LOOPS["uvloop"])) as served,
        contextlib.AsyncExitStack() as stack,
    ):
        await connect(served, 100, stack)
        connected = await connect(served, CONNECTED, stack)
        for bot in connected:
            await bot.send(CANCEL)
        await upstream.until_received(CONNECTED)
        go.set()
        for bot in connected:
            assert (await bot.reply(b"DELETE")).outcome == "done"


@pytest.mark.parametrize("start", LOOPS.values(), ids=LOOPS)
async def test_idle_connections_to_the_admin_address_take_none_of_the_bots(
    upstream: Upstream, tmp_path: Path, start: Sequence[str]
) -> None:
    """One line of the log says so; and they are closed in time, so that its own readers come in again."""
    settings = environ(upstream.base_url, UPSTREAM__MAX_CONNECTIONS="8", LISTEN__HEAD_TIMEOUT="1")
    async with (
        running_served(settings, tmp_path, limited(start)) as served,
        contextlib.AsyncExitStack() as stack,
    ):
        with contextlib.ExitStack() as idle:
            for number in range(100):
                half = b"GET /metrics HTTP/1.1\r\n" if number % 2 else b""
                idle.enter_context(deaf_bot(address_of(served.admin), half))
            connected = await connect(served, CONNECTED, stack)
            assert {answer.status for answer in await ask_all(connected)} == {200}
            await served.program.line("admin_connections_full")
            await is_served_again(lambda: served.ask_admin("/-/healthy"))
        assert len(served.events("admin_connections_full")) == 1
        assert served.events("cannot_accept") == []
