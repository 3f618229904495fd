"""Upstreams that close idle connections, and what that must not do to orders: leave in doubt, or double."""

import select
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rig.backends import only
from rig.bot import met, request, told
from rig.station import Station, running_station, watch_signing
from rig.tls import Authority
from rig.upstream import Upstream, running_upstream, say, say_and_close
from rig.wire import OK, reply
from sealgate.machine.system import System

READ = request()
ORDER = request(b"POST", b"/v1/trade/order", body=b'{"id":"1"}')
CANCEL = request(b"DELETE", b"/v1/trade/order/1")

Deed = Callable[[], None]


@pytest.fixture
def before_sending(station: Station) -> Iterator[Callable[[Deed], None]]:
    """Return a function that has something done once, when a request has its connection and is signed."""
    deeds: list[Deed] = []

    def do(_: bytes) -> None:
        for deed in [deeds.pop() for _ in tuple(deeds)]:
            deed()

    watch_signing(station, do)
    yield deeds.append
    assert not deeds


def wait_for_arrival(station: Station) -> None:
    """Block until what was sent last has come to the gateway: even loopback takes time on a busy machine."""
    for connection in only(station.gateway.generation).exchange.upstream._lanes:
        assert connection.transport is not None
        arrivals = select.poll()
        arrivals.register(connection.transport.get_extra_info("socket"), select.POLLIN)
        assert arrivals.poll(10_000)


def close_all(station: Station) -> Deed:
    """Send FIN on all connections, so that only the system of the gateway's machine knows of it."""

    def close() -> None:
        for wire in station.upstream._wires:
            wire.writer.get_extra_info("socket").shutdown(socket.SHUT_WR)
        wait_for_arrival(station)

    return close


def break_all(station: Station) -> Deed:
    """Let the first write to a connection that a request has fail with EPIPE."""

    def break_them() -> None:
        for connection in only(station.gateway.generation).exchange.upstream._lanes:
            assert connection.transport is not None
            connection.transport.get_extra_info("socket").shutdown(socket.SHUT_WR)

    return break_them


@pytest.mark.parametrize("message", [READ, ORDER, CANCEL], ids=["read", "order", "cancel"])
async def test_nothing_is_sent_on_a_connection_that_the_other_end_has_closed(
    station: Station, before_sending: Callable[[Deed], None], message: bytes
) -> None:
    await station.ask(READ)
    before_sending(close_all(station))
    assert met(await station.ask(message)) == (200, "done", None, 1)
    assert len(station.upstream.received) == 2


@pytest.mark.parametrize("message", [READ, ORDER, CANCEL], ids=["read", "order", "cancel"])
async def test_a_first_write_that_fails_sent_nothing_and_is_made_again(
    station: Station, before_sending: Callable[[Deed], None], message: bytes
) -> None:
    await station.ask(READ)
    before_sending(break_all(station))
    assert met(await station.ask(message)) == (200, "done", None, 2)
    assert (await station.outcomes.until(2)).resends == ("unreachable",)
    assert len(station.upstream.received) == 2


async def test_an_order_whose_every_first_write_fails_was_not_sent(
    station: Station, before_sending: Callable[[Deed], None]
) -> None:
    def break_each() -> None:
        break_all(station)()
        if len(breaks) < 2:
            breaks.append(None)
            before_sending(break_each)

    breaks: list[None] = []
    before_sending(break_each)
    assert met(await station.ask(ORDER)) == (502, "not_sent", "upstream_unreachable", 3)
    assert station.upstream.received == []


@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "TLS"])
async def test_what_came_unasked_and_unread_answers_nobody(
    authority: Authority, tmp_path: Path, *, is_tls: bool
) -> None:
    """A second reply, or a 408 before a close: only the system of the gateway's machine knows of it."""
    settings: dict[str, Any] = {"upstream": {"ca_file": authority.write(tmp_path)}} if is_tls else {}
    async with (
        running_upstream(authority.server_context() if is_tls else None) as upstream,
        running_station(upstream, **settings) as station,
    ):
        await station.ask(READ)
        unsaid = [reply(b"408 Request Timeout", b"unasked")]

        def say_it(_: bytes) -> None:
            for wire in upstream._wires:
                if unsaid and wire.number == upstream.received[0].connection:
                    wire.writer.write(unsaid.pop())
                    wait_for_arrival(station)

        watch_signing(station, say_it)
        assert met(await station.ask(ORDER)) == (200, "done", None, 1)
        assert not unsaid
        first, second = upstream.received
        assert first.connection != second.connection


# What the exchange announces.


@pytest.mark.parametrize(
    ("announced", "is_kept"),
    [(b"timeout=600", True), (b"timeout=0", False), (b"max=9, Timeout=0", False), (b"max=100", True)],
    ids=["long", "none at all", "none, behind a number", "no time"],
)
async def test_a_connection_that_the_exchange_will_close_takes_no_order(
    upstream: Upstream, announced: bytes, *, is_kept: bool
) -> None:
    upstream.otherwise = say(reply(b"200 OK", b"{}", b"Keep-Alive: " + announced))
    async with running_station(upstream, upstream={"warm": False}) as station:
        for _ in range(3):
            assert told(await station.ask(ORDER)) == (200, "done", None)
    assert len({one.connection for one in upstream.received}) == (1 if is_kept else 3)


# What is learned where nothing is announced.

FAILS_S = 10.0


def let_grow_old(station: Station, seconds: float) -> None:
    """Let all idle connections have been idle for longer."""
    for connection in only(station.gateway.generation).exchange.upstream._idle:
        connection.life.ended_request(System.now() - seconds)


async def lose_one(station: Station) -> None:
    """Let an idle connection be closed instead of read, once an order is on it."""
    assert told(await station.ask(READ)) == (200, "done", None)
    let_grow_old(station, FAILS_S)
    station.upstream.unread_acts.append(say_and_close())
    assert told(await station.ask(ORDER)) == (502, "unknown", "upstream_broken")


async def test_after_an_order_was_lost_none_goes_on_a_connection_as_old(upstream: Upstream) -> None:
    async with running_station(upstream, upstream={"warm": False}) as station:
        await lose_one(station)
        for _ in range(3):
            assert told(await station.ask(ORDER)) == (200, "done", None)
            let_grow_old(station, FAILS_S)
    assert len({one.connection for one in upstream.received[1:]}) == 3


async def test_an_exchange_that_closes_behind_each_reply_gets_each_order_on_a_new_connection(
    upstream: Upstream,
) -> None:
    """Nothing of the reply says so; once it is seen, no order waits for the luck of the draw."""
    upstream.otherwise = say_and_close(OK)
    async with running_station(upstream) as station:
        for _ in range(10):
            assert told(await station.ask(ORDER)) == (200, "done", None)
        assert len({one.connection for one in upstream.received}) == 10


async def test_a_read_that_is_lost_goes_again_on_a_new_connection(upstream: Upstream) -> None:
    async with running_station(upstream, upstream={"warm": False}) as station:
        await lose_one(station)
        for _ in range(2):
            await station.ask(ORDER)
            let_grow_old(station, FAILS_S)
        upstream.unread_acts.append(say_and_close())
        assert met(await station.ask(READ)) == (200, "done", None, 2)
        assert upstream.received[-1].connection == upstream.connections


async def test_old_connections_leave_room_for_a_new_one(upstream: Upstream) -> None:
    async with running_station(upstream, upstream={"warm": False, "max_connections": 2}) as station:
        await lose_one(station)
        for _ in range(4):
            assert told(await station.ask(ORDER)) == (200, "done", None)
            let_grow_old(station, FAILS_S)
            assert len(only(station.gateway.generation).exchange.upstream._idle) <= 2
