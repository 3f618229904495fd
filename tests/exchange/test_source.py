"""The local address from which connections start."""

import asyncio
import socket
from contextlib import closing
from typing import Any
from unittest.mock import patch

import pytest
from yarl import URL

from rig.bot import request
from rig.station import running_station
from rig.upstream import Upstream, running_upstream
from sealgate.exchange.destination import ConnectError, Dialer, Way

OTHER = "127.0.0.2"  # Linux has all of 127.0.0.0/8
NOBODYS = "203.0.113.7"  # RFC 5737


class Peers(asyncio.Protocol):
    """A server that notes who connects."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.seen.append(transport.get_extra_info("peername")[0])


def _has(address: str) -> bool:
    with socket.socket() as tried:
        try:
            tried.bind((address, 0))
        except OSError:
            return False
    return True


needs_other = pytest.mark.skipif(not _has(OTHER), reason="this system has one loopback address")


@needs_other
async def test_connections_start_from_the_address() -> None:
    peers = Peers()
    server = await asyncio.get_running_loop().create_server(lambda: peers, "127.0.0.1", 0)
    with closing(server):
        url = URL.build(scheme="http", host="127.0.0.1", port=server.sockets[0].getsockname()[1])
        for way in (Way(), Way(OTHER)):
            protocol = await Dialer(url, None, way).dial(_Kept)
            protocol.transport.abort()
    assert peers.seen == ["127.0.0.1", OTHER]


class _Kept(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport


@needs_other
async def test_so_do_all_of_a_gateway() -> None:
    peers: set[str] = set()

    async def note(exchange: Upstream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peers.add(writer.get_extra_info("peername")[0])
        await serve(exchange, reader, writer)

    serve = Upstream.serve
    with patch.object(Upstream, "serve", note):
        async with (
            running_upstream() as exchange,
            running_station(exchange, upstream={"source": OTHER}) as station,
        ):
            assert (await station.ask(request())).status == 200
    assert peers == {OTHER}


async def test_an_address_that_this_machine_has_no_more(unused_tcp_port: int) -> None:
    dialer = Dialer(URL(f"http://127.0.0.1:{unused_tcp_port}"), None, Way(NOBODYS))
    with pytest.raises(ConnectError) as caught:
        await dialer.dial(asyncio.Protocol)
    assert str(caught.value) == (
        f"cannot connect to 127.0.0.1:{unused_tcp_port} from {NOBODYS}: "
        "this machine does not have that address any more; see upstream.source"
    )


async def test_a_name_without_an_address_of_that_family(monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(*_: Any, family: int = 0, **__: Any) -> None:
        assert family == socket.AF_INET6
        raise socket.gaierror(socket.EAI_NODATA, "No address associated with hostname")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(ConnectError, match="no such host name, or it has no IPv6 address"):
        await Dialer(URL("http://exchange.test"), None, Way("::1")).dial(asyncio.Protocol)
