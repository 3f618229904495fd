"""The end: no new connections, what is under way is answered, orders that still come are refused."""

import asyncio

import pytest

from rig.backends import pipeline_of
from rig.bot import bot_at, request
from rig.station import running_station
from rig.upstream import Upstream, hold_until, say
from rig.wire import OK

READ = request()
CANCEL = request(b"DELETE", b"/v1/trade/order/1")
NO_CANCEL = request(b"POST", b"/v1/trade/cancel", body=b"{}")  # which no row names, whatever its end says
ORDER = request(b"POST", b"/v1/trade/order", body=b'{"id":"1"}')
KEYED = request(b"POST", b"/v1/trade/order", b"Idempotency-Key: k-1", body=b'{"id":"2"}')


@pytest.mark.parametrize("message", [READ, ORDER, CANCEL], ids=["read", "order", "cancel"])
async def test_what_is_under_way_is_answered(upstream: Upstream, message: bytes) -> None:
    go = asyncio.Event()
    upstream.answers.append(hold_until(go, say(OK)))
    async with running_station(upstream) as station, station.bot() as bot:
        await bot.send(message)
        await upstream.until_received(1)
        drained = asyncio.ensure_future(station.gateway.drain())
        await station.until(lambda: pipeline_of(station.gateway).is_draining)
        address = station.gateway.address
        with pytest.raises(ConnectionRefusedError):
            async with bot_at(address.host, address.port):
                pass
        assert "shutting down" in station.gateway.status().not_ready
        go.set()
        answer = await bot.reply(message.split()[0])
        assert (answer.status, answer.outcome, answer.is_whole) == (200, "done", True)
        assert answer.closes
        assert await bot.rest() == b""
        async with asyncio.timeout(20):
            await drained
    assert len(upstream.received) == 1


async def test_who_is_connected_is_served_but_for_orders(upstream: Upstream) -> None:
    go = asyncio.Event()
    async with (
        running_station(upstream) as station,
        station.bot() as busy,
        station.bot() as reader,
        station.bot() as orderer,
        station.bot() as pretender,
        station.bot() as canceller,
        station.bot() as asker,
    ):
        for bot in (reader, orderer, pretender, canceller):
            assert (await bot.ask(request(target=b"/v1/trade/time"))).status == 200
        first = await asker.ask(KEYED)
        upstream.answers.append(hold_until(go, say(OK)))
        await busy.send(ORDER)
        await upstream.until_received(2)
        drained = asyncio.ensure_future(station.gateway.drain())
        await station.until(lambda: pipeline_of(station.gateway).is_draining)

        for bot, message in ((orderer, ORDER), (pretender, NO_CANCEL)):
            refused = await bot.ask(message)
            assert (refused.status, refused.outcome, refused.reason) == (503, "not_sent", "draining")
        for bot, message in ((reader, READ), (canceller, CANCEL)):
            answer = await bot.ask(message)
            assert (answer.status, answer.outcome) == (200, "done")
            assert answer.closes
        again = await asker.ask(KEYED)  # whose reply is known
        assert (again.status, again.outcome, again.body) == (200, "done", first.body)
        go.set()
        assert (await busy.reply(b"POST")).outcome == "done"
        async with asyncio.timeout(20):
            await drained
    assert upstream.receipts(b"/v1/trade/order") == 2


async def test_an_order_whose_bot_is_gone_is_finished_first(upstream: Upstream) -> None:
    go = asyncio.Event()
    upstream.answers.append(hold_until(go, say(OK)))
    async with running_station(upstream) as station:
        async with station.bot() as bot:
            await bot.send(ORDER)
            await upstream.until_received(1)
            bot.hang_up()
        await station.until_all_hung_up()
        drained = asyncio.ensure_future(station.gateway.drain())
        await station.until(lambda: pipeline_of(station.gateway).is_draining)
        asyncio.get_running_loop().call_later(0.05, go.set)
        async with asyncio.timeout(20):
            await drained
        assert [outcome.conclusion for outcome in station.outcomes.all] == ["done"]


async def test_an_idle_connection_does_not_hold_the_end_up(upstream: Upstream) -> None:
    async with (
        running_station(upstream, listen={"drain": 0.2}) as station,
        station.bot() as bot,
        station.bot() as silent,
    ):
        assert (await bot.ask(READ)).status == 200
        async with asyncio.timeout(20):
            await station.gateway.drain()
        assert await bot.rest() == await silent.rest() == b""
