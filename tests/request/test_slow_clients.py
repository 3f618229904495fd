"""Slow bots: the others are served while those are stuck, and what those are kept waiting for has a bound."""

import asyncio
import contextlib
import socket
from collections.abc import Mapping
from typing import Any

from rig.acts import Act, hold_until, pour, say
from rig.bot import request
from rig.faults import whole
from rig.slow import deaf_bot, slow_bots
from rig.station import Station, running_station
from rig.upstream import Received, Upstream
from rig.wire import OK

READ = request()
ORDER = request(b"POST", b"/v1/trade/order", body=b"{}")
CANCEL = request(b"DELETE", b"/v1/trade/order/1")
LARGE = request(target=b"/v1/trade/large")
HELD = say(whole(b"x" * 200_000))  # the gateway has it whole before it passes it on
MEGABYTE = 1 << 20
PATIENT: Mapping[str, Any] = {"head_timeout": 600, "body_timeout": 600}


def large_or_small(large: Act) -> Any:
    def script(received: Received) -> Act:
        return large if received.target == b"/v1/trade/large" else say(OK)

    return script


async def others_are_served(station: Station) -> None:
    for message in (READ, ORDER, CANCEL):
        answer = await station.ask(message)
        assert (answer.status, answer.outcome) == (200, "done")


async def test_three_hundred_slow_bots_hold_nobody_up(upstream: Upstream) -> None:
    upstream.script = large_or_small(HELD)
    async with running_station(upstream, listen=PATIENT) as station:
        address = station.gateway.address
        async with slow_bots((address.host, address.port), 100):
            await station.until(lambda: len(station.gateway.server.connections) >= 300)
            await station.until(lambda: upstream.receipts(b"/v1/trade/large") == 100)
            await others_are_served(station)
            assert len(station.gateway.server.connections) >= 300
        await station.until_all_hung_up()
        await others_are_served(station)
    assert upstream.receipts(b"/v1/trade/order") == 2, "no body that dripped was sent"


async def test_a_hundred_megabytes_for_who_does_not_read(upstream: Upstream) -> None:
    """The upstream is held back rather than memory filled; in the end the bot sees that it is cut."""
    size = 100 * MEGABYTE
    upstream.script = large_or_small(pour(size))
    async with running_station(upstream, upstream={"total_timeout": 1.0}) as station:
        address = station.gateway.address
        with deaf_bot((address.host, address.port), LARGE) as bot:
            await upstream.until_received(1)
            await others_are_served(station)
            await station.outcomes.until(4)
            (cut,) = (outcome for outcome in station.outcomes.all if outcome.broken)
            assert (cut.conclusion, cut.broken) == ("unknown", "the bot does not read it")
            assert await bot.read_all() < size / 2
        await others_are_served(station)


async def test_a_bot_that_asks_on_and_never_reads_does_not_fill_the_memory(upstream: Upstream) -> None:
    """What is written to it waits in the gateway, so it must not be served on before it has read."""
    upstream.script = large_or_small(HELD)
    async with running_station(upstream) as station:
        address = station.gateway.address
        with deaf_bot((address.host, address.port)) as bot:
            for _ in range(200):
                assert bot.send(LARGE)
            await upstream.until_received(1)
            for _ in range(50):  # in which it would get as many replies, and more
                await others_are_served(station)
            assert waiting_bytes(station) < 2 * MEGABYTE


async def test_what_a_bot_pipelines_stays_with_the_kernel_until_it_is_its_turn(upstream: Upstream) -> None:
    """Beyond 16 KB nothing more is read while a request is under way; none is lost."""
    go = asyncio.Event()
    upstream.answers.append(hold_until(go, say(OK)))
    orders = [request(b"POST", b"/v1/trade/order", body=b"%d" % number * 60_000) for number in range(3)]
    async with running_station(upstream, listen=PATIENT) as station, station.bot() as bot:
        await station.until(lambda: bool(station.gateway.server.connections))
        (connection,) = station.gateway.server.connections
        assert connection.transport is not None
        sock = connection.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        await bot.send(READ)
        await upstream.until_received(1)
        sending = asyncio.ensure_future(bot.send(b"".join(orders)))
        await station.until(lambda: not connection.is_reading)
        go.set()
        for _ in range(4):
            assert (await bot.reply()).status == 200
        await sending
    assert [received.body for received in upstream.received[1:]] == [one[-60_000:] for one in orders]


def waiting_bytes(station: Station) -> int:
    """Return how much was written to bots that have not read it yet."""
    transports = (bot.transport for bot in station.gateway.server.connections)
    return sum(one.get_write_buffer_size() for one in transports if isinstance(one, asyncio.WriteTransport))


async def test_many_that_do_not_read_leave_connections_for_others(upstream: Upstream) -> None:
    """Each holds a connection to the upstream while its large reply is passed on."""
    upstream.script = large_or_small(pour(100 * MEGABYTE))
    settings: Mapping[str, Any] = {
        "upstream": {"max_connections": 8, "connect_timeout": 1.0, "total_timeout": 600.0}
    }
    async with running_station(upstream, **settings) as station:
        address = station.gateway.address
        with contextlib.ExitStack() as bots:
            for _ in range(8):
                bots.enter_context(deaf_bot((address.host, address.port), LARGE))
            await station.until(lambda: upstream.receipts(b"/v1/trade/large") >= 6)
            await others_are_served(station)
        upstream.cut_all()
