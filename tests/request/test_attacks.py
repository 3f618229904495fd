"""What once got through: bots and upstreams that misbehave in ways that no single rule foresaw."""

import asyncio
import contextlib
from typing import Any

import pytest

from rig.backends import only
from rig.bot import request
from rig.compiled import needs_sources
from rig.station import Station, running_station
from rig.upstream import Upstream, hold_until, say
from rig.wire import OK, let_pass, reply
from sealgate.venues.routes import Lane

READ = request()
ORDER = request(b"POST", b"/v1/trade/order", body=b'{"id":"1"}')


async def test_a_bot_that_is_gone_while_there_is_no_connection(upstream: Upstream) -> None:
    """Its order is not sent when one becomes free, and the record says so."""
    go = asyncio.Event()
    upstream.answers.append(hold_until(go, say(OK)))
    async with running_station(upstream, upstream={"max_connections": 1}) as station:
        first = asyncio.ensure_future(station.ask(READ))
        await upstream.until_received(1)
        async with station.bot() as bot:
            await bot.send(ORDER)
            await station.until(
                lambda: only(station.gateway.generation).exchange.upstream.waiting(Lane.ORDER) == 1
            )
            bot.hang_up()
        outcome = await station.outcomes.until(1)
        go.set()
        assert (await first).status == 200
        assert (await station.ask(READ)).status == 200
    assert (outcome.has_hung_up, outcome.conclusion, outcome.attempts) == (True, "not_sent", 0)
    assert [item.method for item in upstream.received] == [b"GET", b"GET"]


async def test_a_fault_after_the_order_went_out_claims_nothing(station: Station) -> None:
    """No answer at all is the truth; "not sent" would double the order."""

    class Faulty:
        def __init__(self, real: Any) -> None:
            self._real = real

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

        def write(self, _: bytes) -> None:
            raise ValueError("made up")

    async with station.bot() as bot:
        await station.until(lambda: bool(station.gateway.server.connections))
        (connection,) = station.gateway.server.connections
        transport: Any = Faulty(connection.transport)
        connection.transport = transport
        await bot.send(ORDER)
        with contextlib.suppress(ConnectionResetError):
            assert await bot.rest() == b""
    assert len(station.upstream.received) == 1


async def test_equal_orders_of_one_millisecond_carry_different_signatures(station: Station) -> None:
    await asyncio.gather(*(station.ask(ORDER) for _ in range(20)))
    signatures = {item.head.value(b"X-SERVICE-SIGNATURE") for item in station.upstream.received}
    assert len(signatures) == len(station.upstream.received) == 20


@needs_sources
async def test_a_connection_that_comes_too_late_is_given_back(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was sent, the record says so, and the next request gets the connection."""
    async with running_station(upstream, upstream={"max_connections": 1}) as station:
        connections = only(station.gateway.generation).exchange.upstream
        connect = connections.connect

        async def dawdle(lane: Lane, timeout_s: float, *_: float, **__: bool) -> object:
            line = await connect(lane, 5.0)
            await let_pass(timeout_s + 0.01)
            return line

        with monkeypatch.context() as patch:
            patch.setattr(connections, "take", lambda *_, **__: None)
            patch.setattr(connections, "connect", dawdle)
            for _ in range(3):
                late = await station.ask(
                    request(b"POST", b"/v1/trade/order", b"X-Gateway-Deadline-Ms: 30", body=b"")
                )
                assert (late.reason, late.outcome, late.attempts) == ("deadline_exceeded", "not_sent", 0)
        assert upstream.received == []
        assert (await station.ask(ORDER)).status == 200


@pytest.mark.parametrize("is_pipelined", [False, True], ids=["another bot", "pipelined"])
@pytest.mark.parametrize("stray", [1, 2])
async def test_a_second_reply_in_one_piece_answers_nobody(
    upstream: Upstream, stray: int, *, is_pipelined: bool
) -> None:
    unasked, own = reply(b"200 OK", b"of the first"), reply(b"200 OK", b"its own")
    upstream.answers.extend([say(OK + stray * unasked), say(own)])
    async with (
        running_station(upstream, upstream={"max_connections": 1}) as station,
        station.bot() as bot,
        station.bot() as other,
    ):
        next_bot = bot if is_pipelined else other
        await bot.send(ORDER * 2 if is_pipelined else ORDER)
        assert (await bot.reply()).status == 200
        if not is_pipelined:
            await other.send(ORDER)
        assert (await next_bot.reply()).body == b"its own"
    first, second = upstream.received
    assert first.connection != second.connection
