"""How a connection is opened: which address of a name is taken, and how often the name is looked up."""

import asyncio
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

from rig.connections import port_of
from rig.tls import Authority
from rig.wire import let_pass
from sealgate.exchange import destination
from sealgate.exchange.destination import ConnectError, Dialer, client_context


class Names:
    """A resolver that knows one name, which leads to ports of this machine."""

    def __init__(self, *ports: int) -> None:
        self.ports = ports
        self.asked = 0
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def look_up(self, host: str, *_: int) -> list[Any]:
        assert host.rstrip(".") == "exchange.test"
        self.asked += 1
        await self.go_on.wait()
        if not self.ports:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port)) for port in self.ports]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    names = Names()
    monkeypatch.setattr(destination, "look_up", names.look_up)
    return names


async def dialled(dialer: Dialer) -> int:
    """Return the port that the dialer has connected to."""
    protocol = await dialer.dial(_Kept)
    port = protocol.port
    protocol.transport.abort()
    return port


class _Kept(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.port: int = transport.get_extra_info("peername")[1]


async def test_an_address_that_refuses_gives_way_to_the_next(names: Names, unused_tcp_port: int) -> None:
    server, port = await port_of()
    with closing(server):
        names.ports = unused_tcp_port, port
        assert await dialled(Dialer(URL("http://exchange.test"), None)) == port


async def test_so_does_one_that_speaks_no_tls(names: Names, authority: Authority, tmp_path: Path) -> None:
    plain, wrong = await port_of()
    server, port = await port_of(authority.server_context("exchange.test"))
    with closing(plain), closing(server):
        names.ports = wrong, port
        context = client_context(Path(authority.write(tmp_path)))
        assert await dialled(Dialer(URL("https://exchange.test."), context)) == port


async def test_connections_that_are_opened_together_share_a_look_up(names: Names) -> None:
    server, port = await port_of()
    with closing(server):
        dialer = Dialer(URL("http://exchange.test"), None)
        names.ports = (port,)
        names.go_on.clear()
        gone, *others = (asyncio.ensure_future(dialled(dialer)) for _ in range(3))
        await let_pass(0)
        gone.cancel()  # without the look-up, for which others wait
        names.go_on.set()
        assert await asyncio.gather(*others) == [port, port]
        assert await dialled(dialer) == port
        assert names.asked == 1


async def test_a_look_up_that_failed_is_not_remembered(names: Names) -> None:
    dialer = Dialer(URL("http://exchange.test"), None)
    with pytest.raises(ConnectError, match="the DNS servers do not answer"):
        await dialled(dialer)
    server, port = await port_of()
    with closing(server):
        names.ports = (port,)
        assert await dialled(dialer) == port
