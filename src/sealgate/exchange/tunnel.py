"""A tunnel to the exchange through a proxy, by HTTP CONNECT or SOCKS5. python-socks speaks these.

Nothing of a request is sent before the tunnel is open. TLS goes through it from end to end: to a proxy, what
passes is unreadable.
"""

import asyncio
import socket
from typing import TYPE_CHECKING, cast

from sealgate.config.addresses import ProxyUrl
from sealgate.exchange.proxy_refusals import CLOSED, refused_connect, refused_socks

if TYPE_CHECKING:
    from python_socks.async_.asyncio.v2 import Proxy

_LONGEST_HEAD = 16 * 1024
_LONG_S = 86400.0  # who waits for a tunnel has a time-out of its own


class TunnelError(Exception):
    """There is no tunnel: its words say why, and what to do."""


class _ClosedError(Exception):
    """The proxy closed the connection."""


class _Conversation:
    """What python-socks reads and writes: a socket on which a proxy has accepted. `heard` came last.

    It stands in the place of another proxy, which python-socks would ask for its connection.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self.heard = b""

    async def connect(self, **_: object) -> "_Conversation":
        """Return the connection to the proxy."""
        return self

    async def write(self, data: bytes) -> None:
        """Send."""
        await self._loop.sock_sendall(self._sock, data)

    async def read(self) -> bytes:
        """Return the head of a reply to CONNECT, and no byte more. Raises ValueError if it is endless."""
        head = b""
        while not head.endswith((b"\r\n\r\n", b"\n\n")):
            head += await self.read_exactly(1)
            if len(head) > _LONGEST_HEAD:
                raise ValueError
        return head

    async def read_exactly(self, count: int) -> bytes:
        """Return so many bytes."""
        data = b""
        while len(data) < count:
            piece = await self._loop.sock_recv(self._sock, count - len(data))
            if not piece:
                raise _ClosedError
            data += piece
        self.heard = data
        return data

    async def close(self) -> None:
        """Close the connection to the proxy."""
        self._sock.close()


async def open_tunnel(sock: socket.socket, proxy: ProxyUrl, password: str, host: str, port: int) -> None:
    """Have a proxy connect to the exchange, so that the socket leads there.

    The proxy gets the exchange's name, and looks it up itself. Raises TunnelError, OSError; the socket is
    closed then.
    """
    from python_socks import ProxyError, ProxyType  # noqa: PLC0415 - few have a proxy
    from python_socks.async_.asyncio.v2 import Proxy  # noqa: PLC0415

    is_http, has_login = proxy.scheme == "http", bool(proxy.user)
    kind = ProxyType.HTTP if is_http else ProxyType.SOCKS5
    talk = _Conversation(sock)
    way = Proxy(kind, proxy.host, proxy.port, proxy.user, password, forward=cast("Proxy", talk))
    try:
        await way.connect(host, port, timeout=_LONG_S)
    except ProxyError as error:
        code = error.error_code
    except _ClosedError:
        raise TunnelError(f"the proxy {proxy.authority} {CLOSED}") from None
    except ValueError:  # bytes that are no text or no address, or too many
        code = None
    else:
        return
    words = (
        refused_connect(code, has_login=has_login)
        if is_http
        else refused_socks(code, talk.heard, has_login=has_login)
    )
    raise TunnelError(f"the proxy {proxy.authority} {words}")
