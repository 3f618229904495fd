"""A bot that hangs up: what waits is never sent, what was sent is finished, and nothing is sent again."""

import asyncio

import pytest

from rig.bot import request
from rig.station import Station, running_station
from rig.upstream import Upstream, Wire, hold_until, say
from rig.wire import OK, PATIENCE_S, reply

READ = request()
ORDERS = {
    "POST": request(b"POST", b"/v1/trade/order", body=b'{"id":"1"}'),
    "DELETE": request(b"DELETE", b"/v1/trade/order/1"),
}
PAUSE = reply(b"429 Too Many Requests", b"{}", b"Retry-After: 0.3")


@pytest.mark.parametrize("message", [READ, *ORDERS.values()], ids=["GET", *ORDERS])
async def test_a_bot_that_is_gone_while_waiting_is_never_sent_for(station: Station, message: bytes) -> None:
    upstream = station.upstream
    upstream.answers.append(say(PAUSE))
    first = asyncio.ensure_future(station.ask(request(target=b"/v1/trade/first")))
    turnstile = station.gateway.tree.desks["main"].turnstile
    await station.until(lambda: sum(turnstile.status().waiting.values()) == 1)
    async with station.bot() as bot:
        await bot.send(message)
        await station.until(lambda: sum(turnstile.status().waiting.values()) == 2)
        bot.hang_up()
    outcome = await station.outcomes.until(1)
    assert (outcome.has_hung_up, outcome.conclusion, outcome.attempts) == (True, "not_sent", 0)
    assert sum(turnstile.status().waiting.values()) == 1

    assert (await first).status == 200
    assert (await station.ask(request(target=b"/v1/trade/last"))).status == 200
    assert [item.target for item in upstream.received] == [
        b"/v1/trade/first",
        b"/v1/trade/first",
        b"/v1/trade/last",
    ]


@pytest.mark.parametrize("message", ORDERS.values(), ids=ORDERS)
async def test_an_order_that_was_sent_is_finished(station: Station, message: bytes) -> None:
    upstream, go = station.upstream, asyncio.Event()
    upstream.answers.append(hold_until(go, say(OK)))
    async with station.bot() as bot:
        await bot.send(message)
        await upstream.until_received(1)
        bot.hang_up()
    await station.until_all_hung_up()
    go.set()
    outcome = await station.outcomes.until(1)
    assert (outcome.has_hung_up, outcome.conclusion, outcome.status) == (True, "done", 200)
    assert len(upstream.received) == 1
    assert station.gateway.handler.inflight == 0


@pytest.mark.parametrize("message", ORDERS.values(), ids=ORDERS)
async def test_an_order_is_not_sent_again_for_a_bot_that_is_gone(station: Station, message: bytes) -> None:
    upstream, go = station.upstream, asyncio.Event()
    upstream.answers.append(hold_until(go, say(PAUSE)))
    async with station.bot() as bot:
        await bot.send(message)
        await upstream.until_received(1)
        bot.hang_up()
    await station.until_all_hung_up()
    go.set()
    outcome = await station.outcomes.until(1)
    assert (outcome.has_hung_up, outcome.conclusion, outcome.upstream_429s) == (True, "refused", 1)
    assert (await station.ask(READ)).status == 200  # waits for the end of the pause
    assert len(upstream.received) == 2


async def test_a_read_that_was_sent_is_dropped(upstream: Upstream) -> None:
    """At once: the time for it is longer than any test's patience."""
    gave_up = asyncio.Event()

    async def watch(wire: Wire) -> None:
        await wire.peer_gone()
        gave_up.set()

    upstream.answers.append(watch)
    async with running_station(upstream, upstream={"total_timeout": 600}) as station:
        async with station.bot() as bot:
            await bot.send(READ)
            await upstream.until_received(1)
            bot.hang_up()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await gave_up.wait()
        finally:
            upstream.cut_all()
        outcome = await station.outcomes.until(1)
        assert (outcome.has_hung_up, outcome.conclusion, outcome.attempts) == (True, "unknown", 1)
    assert len(upstream.received) == 1


async def test_a_bot_that_is_gone_in_the_middle_of_its_body(station: Station) -> None:
    async with station.bot() as bot:
        await bot.send(b"POST /v1/trade/order HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
        await station.until(lambda: station.gateway.handler.inflight == 1)
        bot.hang_up()
    outcome = await station.outcomes.until(1)
    assert (outcome.has_hung_up, outcome.conclusion, outcome.reason) == (True, "not_sent", None)
    assert station.upstream.received == []


async def test_a_bot_that_is_gone_while_a_large_reply_is_streamed(station: Station) -> None:
    large = reply(b"200 OK", b"x" * 5_000_000)
    station.upstream.answers.append(say(large))
    async with station.bot() as bot:
        await bot.send(READ)
        await bot.line()
        bot.hang_up()
    outcome = await station.outcomes.until(1)
    assert outcome.has_hung_up
    assert (await station.ask(READ)).status == 200
