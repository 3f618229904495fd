"""A bot that hangs up: what waits is never sent, what was sent is finished, and nothing is sent again."""

import asyncio
import select
import socket
from collections.abc import Awaitable

import pytest

from rig.bot import request
from rig.key_reads import hold
from rig.station import Station, running_station
from rig.upstream import Upstream, Wire, hold_until, say
from rig.wire import OK, PATIENCE_S, reply

READ = request()
ORDERS = {
    "POST": request(b"POST", b"/v1/trade/order", body=b'{"id":"1"}'),
    "DELETE": request(b"DELETE", b"/v1/trade/order/1"),
}


@pytest.mark.parametrize("message", [READ, *ORDERS.values()], ids=["GET", *ORDERS])
async def test_a_bot_that_is_gone_while_waiting_is_never_sent_for(station: Station, message: bytes) -> None:
    let_go = hold(station)
    async with station.bot() as bot:
        await bot.send(message)
        await station.until(lambda: station.waiting() == 1)
        bot.hang_up()
    outcome = await station.outcomes.until(1)
    assert (outcome.has_hung_up, outcome.conclusion, outcome.attempts) == (True, "not_sent", 0)
    assert not station.waiting()
    let_go()
    assert (await station.ask(request(target=b"/v1/trade/last"))).status == 200
    assert [item.target for item in station.upstream.received] == [b"/v1/trade/last"]


@pytest.mark.parametrize("message", [READ, *ORDERS.values()], ids=["GET", *ORDERS])
async def test_the_end_of_its_sending_side_alone_counts_as_hanging_up(
    station: Station, message: bytes
) -> None:
    """A kernel tells it from a bot that was killed only once something is written to it."""
    let_go = hold(station)
    address = station.gateway.address
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(message)
    writer.write_eof()
    async with asyncio.timeout(PATIENCE_S):
        assert await reader.read() == b""
    writer.close()
    outcome = await station.outcomes.until(1)
    assert (outcome.has_hung_up, outcome.conclusion, outcome.attempts) == (True, "not_sent", 0)
    let_go()
    assert (await station.ask(request(target=b"/v1/trade/last"))).status == 200
    assert [item.target for item in station.upstream.received] == [b"/v1/trade/last"]


@pytest.mark.parametrize("message", ORDERS.values(), ids=ORDERS)
async def test_an_order_that_was_sent_is_finished(station: Station, message: bytes) -> None:
    go = asyncio.Event()
    station.upstream.answers.append(hold_until(go, say(OK)))
    async with station.bot() as bot:
        await bot.send(message)
        await station.upstream.until_received(1)
        bot.hang_up()
    await station.until_all_hung_up()
    go.set()
    outcome = await station.outcomes.until(1)
    assert (outcome.has_hung_up, outcome.conclusion, outcome.status) == (True, "done", 200)
    assert len(station.upstream.received) == 1
    assert station.gateway.handler.inflight == 0


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


@pytest.mark.parametrize("status", [b"200 OK", b"499 Whatever"])
async def test_a_bot_that_is_gone_while_a_large_reply_is_streamed(station: Station, status: bytes) -> None:
    large = reply(status, b"x" * 5_000_000)
    station.upstream.answers.append(say(large))
    async with station.bot() as bot:
        await bot.send(READ)
        await bot.line()
        bot.hang_up()
    outcome = await station.outcomes.until(1)
    assert outcome.has_hung_up
    assert (outcome.status, outcome.conclusion) == (int(status[:3]), "unknown")
    assert (await station.ask(READ)).status == 200


BEHIND = {
    "more orders than are read at once": ORDERS["POST"] * 20,
    "as many as are read at once": ORDERS["POST"] * 8,
    "a body that is not read yet": request(b"POST", b"/v1/trade/large", body=b"x" * 60_000),
}


async def hang_up_behind(station: Station, message: bytes, has_begun: Awaitable[object]) -> None:
    """Leave all of a message to the kernel, and be gone once its first request is under way."""
    async with station.bot() as bot:
        await bot.send(message)
        await station.until(lambda: bot.unsent == 0)
        await has_begun
        bot.hang_up()


@pytest.mark.parametrize("behind", BEHIND.values(), ids=BEHIND)
async def test_what_a_bot_that_is_gone_had_asked_before(station: Station, behind: bytes) -> None:
    """The end of its connection is behind what is not read while the first is under way."""
    upstream, go = station.upstream, asyncio.Event()
    upstream.answers.append(hold_until(go, say(OK)))
    await hang_up_behind(station, ORDERS["DELETE"] + behind, upstream.until_received(1))
    go.set()
    await station.until(lambda: not station.gateway.server.connections)
    assert (await station.outcomes.until(1)).conclusion == "done"
    assert [item.target for item in upstream.received] == [b"/v1/trade/order/1"]


@pytest.mark.parametrize("behind", BEHIND.values(), ids=BEHIND)
async def test_one_that_waits_while_nothing_is_read(station: Station, behind: bytes) -> None:
    """It leaves the line, though the end of its connection cannot be read."""
    let_go = hold(station)
    waits = station.until(lambda: station.waiting() == 1)
    await hang_up_behind(station, ORDERS["DELETE"] + behind, waits)
    outcome = await station.outcomes.until(1)
    assert (outcome.has_hung_up, outcome.conclusion, outcome.attempts) == (True, "not_sent", 0)
    let_go()
    assert (await station.ask(request(target=b"/v1/trade/last"))).status == 200
    assert [item.target for item in station.upstream.received] == [b"/v1/trade/last"]


async def test_a_bot_whose_end_came_with_the_last_of_a_body(station: Station) -> None:
    """So little of the body fits in here that the kernel knows of the end only when all of it is read."""
    upstream, go = station.upstream, asyncio.Event()
    upstream.answers.append(hold_until(go, say(OK)))
    async with station.bot() as bot:
        await station.until(lambda: bool(station.gateway.server.connections))
        (connection,) = station.gateway.server.connections
        assert connection.transport is not None
        sock = connection.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        await bot.send(ORDERS["DELETE"] + request(b"POST", b"/v1/trade/large", body=b"x" * 900_000))
        await station.until(lambda: bot.unsent == 0)
        await upstream.until_received(1)
        bot.half_close()
        go.set()
        outcome = await station.outcomes.until(2)
    assert (outcome.has_hung_up, outcome.conclusion, outcome.attempts) == (True, "not_sent", 0)
    assert len(upstream.received) == 1


async def test_the_usual_request_asks_nothing_of_the_kernel(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    poll = select.poll

    class Poll:
        def __init__(self) -> None:
            self._real = poll()

        def register(self, sock: socket.socket, mask: int) -> None:
            if sock.getsockname()[1] == station.gateway.address.port:
                asked.append(sock)
            self._real.register(sock, mask)

        def poll(self, timeout: float) -> list[tuple[int, int]]:
            return self._real.poll(timeout)

    monkeypatch.setattr(select, "poll", Poll)
    async with station.bot() as bot:
        for message in (READ, *ORDERS.values()) * 3:
            assert (await bot.ask(message)).status == 200
        await bot.send_in_pieces(ORDERS["POST"], 50)
        assert (await bot.reply()).status == 200
        assert asked == []
        large = request(b"POST", b"/v1/trade/order", body=b"x" * 10_000)
        await bot.send(large * 5)  # more than is read ahead
        for _ in range(5):
            assert (await bot.reply()).status == 200
        assert asked, "where reading was paused it does"
