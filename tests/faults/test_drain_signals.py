"""The end of a real `sealgate serve` by signal: what is under way is answered, nothing is doubled or lost."""

import asyncio
import signal
from pathlib import Path

import pytest

from rig.acts import hold_until, say
from rig.bot import bot_at, request
from rig.faults import pause
from rig.served import Served, environ, orders_in_doubt, running_served
from rig.slow import address_of
from rig.upstream import Upstream
from rig.wire import OK

READ = request()
CANCEL = request(b"DELETE", b"/v1/trade/order/1")
ORDER = request(b"POST", b"/v1/trade/order", b"X-Gateway-Request-Id: mine", b"Idempotency-Key: k", body=b"{}")
LONG = "600"


async def begin_to_drain(served: Served, number: signal.Signals = signal.SIGTERM) -> None:
    """Send a signal and wait until nobody is let in any more."""
    served.program.tell(number)
    await served.program.line('"draining"')
    async with asyncio.timeout(20):
        while await _is_let_in(served):
            pass


async def _is_let_in(served: Served) -> bool:
    try:
        async with bot_at(*address_of(served.bots)):
            return True
    except ConnectionError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_the_rest_be_done(
    upstream: Upstream, tmp_path: Path, number: signal.Signals
) -> None:
    """No new connection and no new order; reads, cancels and what is under way are answered; exit 0."""
    go = asyncio.Event()
    upstream.answers.append(hold_until(go, say(OK)))
    settings = environ(upstream.base_url, tmp_path / "journal.db", LISTEN__DRAIN=LONG)
    async with running_served(settings, tmp_path) as served:
        async with served.bot() as busy, served.bot() as idle:
            await busy.send(ORDER)
            await upstream.until_received(1)
            assert (await idle.ask(request(target=b"/v1/trade/time"))).status == 200
            await begin_to_drain(served, number)
            go.set()
            answer = await busy.reply(b"POST")
            assert (answer.status, answer.outcome, answer.closes) == (200, "done", True)
            answer = await idle.ask(CANCEL)
            assert (answer.status, answer.outcome) == (200, "done")
        assert await served.program.end() == 0
    assert served.events("stopped")
    assert await orders_in_doubt(settings) == []
    assert [received.method for received in upstream.received] == [b"POST", b"DELETE"]


async def test_an_order_that_comes_too_late_is_not_sent(upstream: Upstream, tmp_path: Path) -> None:
    """But one that was answered before is answered again."""
    settings = environ(upstream.base_url, LISTEN__DRAIN=LONG)
    async with running_served(settings, tmp_path) as served:
        async with served.bot() as late, served.bot() as again, served.bot() as reader:
            for bot in (late, reader):
                assert (await bot.ask(READ)).status == 200
            assert (await again.ask(ORDER)).outcome == "done"
            await begin_to_drain(served)
            answer = await late.ask(request(b"POST", b"/v1/trade/order", body=b"{}"))
            assert (answer.status, answer.reason, answer.outcome) == (503, "draining", "not_sent")
            assert (await again.ask(ORDER)).outcome == "done"
            assert (await reader.ask(READ)).outcome == "done"
        assert await served.program.end() == 0
    assert upstream.receipts(b"/v1/trade/order") == 1


@pytest.mark.parametrize("grace", ["0", "0.3"])
async def test_the_grace_has_an_end(upstream: Upstream, tmp_path: Path, grace: str) -> None:
    async with (
        running_served(environ(upstream.base_url, LISTEN__DRAIN=grace), tmp_path) as served,
        served.bot() as idle,
    ):
        assert (await idle.ask(READ)).status == 200
        served.program.tell(signal.SIGTERM)
        assert await idle.rest() == b""
        assert await served.program.end() == 0


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_ends_it_at_once(
    upstream: Upstream, tmp_path: Path, second: signal.Signals
) -> None:
    """What was under way is in doubt, as after a crash."""
    upstream.otherwise = hold_until(asyncio.Event(), say(OK))
    settings = environ(upstream.base_url, tmp_path / "journal.db", LISTEN__DRAIN=LONG)
    async with running_served(settings, tmp_path) as served, served.bot() as bot:
        await bot.send(ORDER)
        await upstream.until_received(1)
        await begin_to_drain(served)
        served.program.tell(second)
        assert await served.program.end() == 128 + second
        assert await bot.rest() == b""
    (doubt,) = await orders_in_doubt(settings)
    assert doubt["request_id"] == "mine"


async def test_an_order_in_line_is_answered_before_the_end(upstream: Upstream, tmp_path: Path) -> None:
    """It was accepted before the signal: it is sent when the pause is over."""
    upstream.answers.append(pause(b"0.5"))
    async with running_served(environ(upstream.base_url, LISTEN__DRAIN="0.1"), tmp_path) as served:
        async with served.bot() as bot:
            await bot.send(ORDER)
            await upstream.until_received(1)
            await begin_to_drain(served)
            answer = await bot.reply(b"POST")
            assert (answer.outcome, answer.attempts) == ("done", 2)
        assert await served.program.end() == 0
