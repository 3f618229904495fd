"""Connections to the upstream that are there before a request asks for one."""

import asyncio
import contextlib
import itertools
import math
import ssl
from pathlib import Path

import pytest
import trustme

from rig.backends import only
from rig.bot import request
from rig.connections import (
    LONG_S,
    OK,
    Server,
    ask,
    ask_on,
    connected,
    connections_to,
    kept_warm,
    running_server,
    server_turn,
)
from rig.station import running_station
from rig.tls import Authority
from rig.upstream import Wire, running_upstream
from rig.wire import let_pass
from sealgate.exchange.answer import Answer
from sealgate.exchange.failure import Failure
from sealgate.exchange.pool import Upstream
from sealgate.machine.system import System
from sealgate.venues.routes import Lane


async def test_a_connection_is_there_before_the_first_request() -> None:
    async with running_server() as server, connections_to(server.port) as upstream, kept_warm(upstream):
        assert await server.opened.get() is False
        while upstream.take(Lane.ORDER) is None:
            await server_turn()
        assert server.opened.empty()


def grow_old(upstream: Upstream) -> None:
    """Let all connections have been idle for longer than they may."""
    upstream._used_at = -math.inf
    for connection in upstream._idle:
        connection.life.ended_request(System.now() - LONG_S)


async def test_one_that_is_cut_is_replaced() -> None:
    async with running_server() as server, connections_to(server.port) as upstream, kept_warm(upstream):
        await server.opened.get()
        server.cut_all()
        assert await server.opened.get() is False


async def test_an_upstream_that_closes_them_at_once_is_asked_rarely() -> None:
    """It may be full, or down for maintenance; thousands of connections a second help nobody."""
    opened: asyncio.Queue[float] = asyncio.Queue()

    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.put_nowait(asyncio.get_running_loop().time())
        writer.close()

    listener = await asyncio.start_server(close, "127.0.0.1", 0)
    async with (
        listener,
        connections_to(listener.sockets[0].getsockname()[1]) as upstream,
        kept_warm(upstream),
    ):
        times = [await opened.get() for _ in range(4)]
    gaps_s = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert [gap > least for gap, least in zip(gaps_s, (0.05, 0.1, 0.3), strict=True)] == [True] * 3


async def test_a_rest_does_not_leave_it_cold() -> None:
    """The next one is opened before the last one goes."""
    async with (
        running_server() as server,
        connections_to(server.port, keep_alive_s=0.1) as upstream,
        kept_warm(upstream),
    ):
        for _ in range(4):
            await server.opened.get()
        assert isinstance(await ask(upstream), Answer)


@pytest.mark.parametrize(("age", "is_renewed"), [(0.6, False), (0.9, True)])
async def test_the_next_one_is_opened_well_before_the_last_one_goes_and_not_sooner(
    age: float, *, is_renewed: bool
) -> None:
    """Else an order would wait for it, or the exchange would have twice as many as are of use."""
    async with running_server() as server, connections_to(server.port) as upstream:
        upstream.take_back(connection := await connected(upstream))
        await server.opened.get()
        connection.life.ended_request(System.now() - age * LONG_S)
        async with kept_warm(upstream):
            if is_renewed:
                await server.opened.get()
                assert connection.life.carries_order(System.now())
            else:
                async with connections_to(server.port) as other:  # which takes longer than to begin
                    await connected(other)
                    await server.opened.get()
                    await let_pass(0.05)
                assert server.opened.empty()


@pytest.mark.parametrize("idle", [0, 1])
async def test_it_is_none_beyond_the_most_that_there_may_be(idle: int) -> None:
    async with running_server() as server, connections_to(server.port, most=2) as upstream:
        held = [await connected(upstream, lane) for lane in (Lane.READ, Lane.ORDER)]
        for connection in held[:idle]:
            connection.release()
        grow_old(upstream)
        async with kept_warm(upstream):
            assert isinstance(await ask_on(held[1], upstream), Answer)
            _, ours = await asyncio.open_connection("127.0.0.1", server.port)
            for _ in range(3):
                await server.opened.get()
            assert server.opened.empty()  # whoever had begun before us would be there
            grow_old(upstream)
            held[1].close()
            await server.opened.get()  # now there is room
            ours.close()


async def test_a_refused_connection_is_tried_again(unused_tcp_port: int) -> None:
    async with connections_to(unused_tcp_port, keep_alive_s=0.05) as upstream, kept_warm(upstream):
        await server_turn()
        server = Server()
        listener = await asyncio.start_server(server.serve, "127.0.0.1", unused_tcp_port)
        assert await server.opened.get() is False
        listener.close()
        server.cut_all()


async def test_tls_sessions_are_resumed(tmp_path: Path, authority: Authority) -> None:
    ca_file = Path(authority.write(tmp_path))
    async with (
        running_server(authority.server_context()) as server,
        connections_to(server.port, ca_file) as upstream,
    ):
        for is_resumed in (False, True, True):
            assert isinstance(await ask(upstream), Answer)
            assert await server.opened.get() is is_resumed
            (idle,) = upstream._idle
            idle.close()


async def test_a_session_is_not_trusted_in_place_of_a_certificate(
    tmp_path: Path, authority: Authority
) -> None:
    """Another server at the same address, whose authority is unknown, is refused, session or not."""
    ca_file = Path(authority.write(tmp_path))
    stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(stranger)
    async with contextlib.AsyncExitStack() as ends:
        async with running_server(authority.server_context()) as server:
            upstream = await ends.enter_async_context(connections_to(server.port, ca_file))
            assert isinstance(await ask(upstream), Answer)
            upstream._idle[0].close()
        assert upstream._tls is not None
        assert upstream._tls.session is not None
        await ends.enter_async_context(running_server(stranger, server.port))
        refused = await upstream.connect(Lane.ORDER, LONG_S)
        assert isinstance(refused, Failure)
        assert "certificate" in refused.detail


@pytest.mark.parametrize(("warm", "opened"), [(True, 2), (False, 1)])
async def test_the_setting(warm: bool, opened: int) -> None:
    """One connection is the clock's own."""
    async with running_upstream() as upstream, running_station(upstream, upstream={"warm": warm}) as station:
        ways_out = only(station.gateway.generation).exchange.upstream
        await station.until(lambda: upstream.connections == opened and bool(ways_out._idle) is warm)
        await station.ask(request())
        assert upstream.connections == 2


@pytest.mark.parametrize(("size", "is_kept"), [(1000, True), (20_000_000, False)])
async def test_a_reply_that_came_before_the_request_was_sent(size: int, *, is_kept: bool) -> None:
    """What is left of the request would go out before the next one."""
    is_over = asyncio.Event()

    async def answer_and_read_nothing(wire: Wire) -> None:
        await wire.write(OK)
        await is_over.wait()
        wire.reset()

    async with running_upstream() as server, connections_to(server.port) as upstream:
        server.unread_acts.append(answer_and_read_nothing)
        connection = await upstream.connect(Lane.ORDER, LONG_S)
        assert not isinstance(connection, Failure)
        head = upstream.head("POST", "/x") + b"Content-Length: %d\r\n\r\n" % size
        answer = await connection.exchange(head + bytes(size), LONG_S, is_head=False)
        assert isinstance(answer, Answer)
        assert (answer.status, answer.body) == (200, b"ok")
        assert upstream.take(Lane.ORDER) is (connection if is_kept else None)
        is_over.set()
