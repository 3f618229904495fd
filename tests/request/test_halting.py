"""Halts on real sockets: orders stop at once, those that wait too; reads and cancels pass."""

import asyncio
from pathlib import Path

import pytest

from rig.bot import request
from rig.station import Station, running_station
from rig.upstream import Upstream, hold_until, say
from rig.wire import OK, reply
from sealgate.orders.halts import Scope
from sealgate.orders.journal import JournalError

READ = request()
CANCEL = request(b"DELETE", b"/v1/trade/order/1")
ORDER = request(b"POST", b"/v1/trade/order", body=b'{"id":"1"}')


def order(bot: str, key: str) -> bytes:
    fields = (f"Authorization: Bearer {bot}-token".encode(), f"X-Gateway-Key: {key}".encode())
    return request(b"POST", b"/v1/trade/order", *fields, body=b"{}")


async def test_orders_are_refused_and_the_others_pass(station: Station) -> None:
    halted = await station.gateway.halt(Scope())
    assert halted.forgotten_because == "no journal.file is set"
    refused = await station.ask(ORDER)
    assert (refused.status, refused.reason, refused.outcome) == (503, "halted", "not_sent")
    assert "`sealgate resume`" in refused.document()["detail"]
    assert [(await station.ask(message)).status for message in (READ, CANCEL)] == [200, 200]
    assert [halt.bot for halt in station.gateway.status().halts] == [None]
    assert station.gateway.status().not_ready == ()
    await station.gateway.resume(Scope())
    assert (await station.ask(ORDER)).status == 200


async def test_those_that_wait_in_line_are_refused_at_once(upstream: Upstream) -> None:
    """The limit would let them go after a minute."""
    async with running_station(upstream, limits={"known": ["1/60s"], "max_wait": 120}) as station:
        assert (await station.ask(ORDER)).status == 200
        async with station.bot() as orderer, station.bot() as reader:
            await reader.send(READ)
            await orderer.send(ORDER)
            await station.until(lambda: station.gateway.handler.inflight == 2)
            halted = await station.gateway.halt(Scope())
            refused = await orderer.reply(b"POST")
            assert (refused.status, refused.reason, refused.outcome) == (503, "halted", "not_sent")
            assert not refused.closes
            assert (await orderer.ask(ORDER)).reason == "halted"  # its connection is as good as before
            assert halted.refused == 1
            assert station.gateway.handler.inflight == 1  # the read waits on
    assert len(upstream.received) == 1


async def test_those_that_wait_for_a_connection_are_refused_at_once(upstream: Upstream) -> None:
    go = asyncio.Event()
    upstream.answers.append(hold_until(go, say(OK)))
    async with (
        running_station(upstream, upstream={"max_connections": 1}) as station,
        station.bot() as first,
        station.bot() as second,
    ):
        await first.send(ORDER)
        await upstream.until_received(1)
        await second.send(ORDER)
        await station.until(lambda: station.gateway.handler.inflight == 2)
        assert (await station.gateway.halt(Scope())).refused == 1
        assert (await second.reply(b"POST")).outcome == "not_sent"
        go.set()
        assert (await first.reply(b"POST")).status == 200  # what was sent is not stopped
    assert len(upstream.received) == 1


async def test_an_order_that_was_refused_once_is_not_sent_again(upstream: Upstream) -> None:
    upstream.answers.append(say(reply(b"429 Too Many Requests", b"", b"Retry-After: 60")))
    async with running_station(upstream, limits={"max_wait": 120}) as station, station.bot() as bot:
        await bot.send(ORDER)
        await station.until(lambda: station.gateway.status().keys[0].pause_s > 0)
        await station.until(lambda: station.waiting() == 1)
        await station.gateway.halt(Scope())
        refused = await bot.reply(b"POST")
        assert (refused.reason, refused.outcome, refused.attempts) == ("halted", "refused", 1)
    assert len(upstream.received) == 1


async def test_an_answer_that_is_known_is_still_given(station: Station) -> None:
    message = request(b"POST", b"/v1/trade/order", b"Idempotency-Key: k1", body=b"{}")
    first = await station.ask(message)
    await station.gateway.halt(Scope())
    assert (await station.ask(message)).body == first.body
    assert len(station.upstream.received) == 1


async def test_halts_survive_a_restart(upstream: Upstream, tmp_path: Path) -> None:
    journal = {"file": str(tmp_path / "journal.db")}
    async with running_station(upstream, journal=journal) as station:
        assert (await station.gateway.halt(Scope("local"))).forgotten_because is None
    async with running_station(upstream, journal=journal) as station:
        assert (await station.ask(ORDER)).reason == "halted"
        await station.gateway.resume(Scope())
    async with running_station(upstream, journal=journal) as station:
        assert (await station.ask(ORDER)).status == 200


async def test_a_halt_holds_where_it_cannot_be_written(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "journal.db"

    def fail(*_: object, **__: object) -> None:
        raise JournalError(file, "the disk is full", "free space there")

    async with running_station(upstream, journal={"file": str(file)}) as station:
        monkeypatch.setattr("sealgate.request.halting.write_halts", fail)
        halted = await station.gateway.halt(Scope())
        assert "the disk is full" in str(halted.forgotten_because)
        assert (await station.ask(ORDER)).reason == "halted"
