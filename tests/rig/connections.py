"""Connections to an upstream that counts them, without a gateway."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

from sealgate.exchange.answer import Answer
from sealgate.exchange.connection import UpstreamConnection
from sealgate.exchange.destination import Destination
from sealgate.exchange.failure import Failure
from sealgate.exchange.pool import Upstream
from sealgate.venues.routes import Lane

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


LONG_S = 30.0


class Server:
    """A raw upstream that only counts its connections, by whether their TLS session was resumed."""

    def __init__(self) -> None:
        self.opened: asyncio.Queue[bool] = asyncio.Queue()
        self.port = 0
        self._writers: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tls = writer.get_extra_info("ssl_object")
        self._writers.add(writer)
        self.opened.put_nowait(bool(tls and tls.session_reused))
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(OK)
                await writer.drain()
        writer.close()

    def cut_all(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


@contextlib.asynccontextmanager
async def running_server(tls: ssl.SSLContext | None = None, port: int = 0) -> AsyncIterator[Server]:
    server = Server()
    listener = await asyncio.start_server(server.serve, "127.0.0.1", port, ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        server.cut_all()


@contextlib.asynccontextmanager
async def connections_to(
    port: int, ca_file: Path | None = None, keep_alive_s: float = LONG_S, most: int = 8
) -> AsyncIterator[Upstream]:
    scheme = "http" if ca_file is None else "https"
    upstream = Upstream(Destination(f"{scheme}://127.0.0.1:{port}", 3.0, 5.0, most, ca_file, keep_alive_s))
    try:
        async with asyncio.timeout(LONG_S):
            yield upstream
    finally:
        await upstream.close()


@contextlib.asynccontextmanager
async def kept_warm(upstream: Upstream) -> AsyncIterator[None]:
    task = asyncio.create_task(upstream.keep_warm())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def ask(upstream: Upstream) -> Answer | Failure:
    return await ask_on(await connected(upstream), upstream)


async def connected(upstream: Upstream, lane: Lane = Lane.ORDER) -> UpstreamConnection:
    connection = await upstream.connect(lane, LONG_S)
    assert not isinstance(connection, Failure)
    return connection


async def ask_on(connection: UpstreamConnection, upstream: Upstream) -> Answer | Failure:
    return await connection.exchange(upstream.head("GET", "/x") + b"\r\n", LONG_S, is_head=False)


async def server_turn() -> None:
    """Let the other side have a turn of the loop."""
    loop = asyncio.get_running_loop()
    turn = loop.create_future()
    loop.call_soon(turn.set_result, None)
    await turn


async def port_of(tls: ssl.SSLContext | None = None) -> tuple[asyncio.Server, int]:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=tls)
    return server, server.sockets[0].getsockname()[1]
