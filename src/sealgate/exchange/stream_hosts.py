"""Where an exchange's streams are, and how a connection to one is opened."""

import asyncio
from typing import TYPE_CHECKING

from yarl import URL

from sealgate.exchange.connection import CLOSED_UNUSED, UpstreamConnection
from sealgate.exchange.destination import (
    ConnectError,
    Destination,
    Dialer,
    ProxyRefusedError,
    client_context,
)
from sealgate.exchange.failure import Failure, FailureKind
from sealgate.exchange.idle_connections import IdleCloses
from sealgate.http.head_memory import HeadMemory
from sealgate.machine.system import System

if TYPE_CHECKING:
    from sealgate.http.parser import RawReplyHead


class StreamHost:
    """One host: makes its connections, of which it keeps none. `authority` is the Host header's value."""

    def __init__(self, url: URL, destination: Destination) -> None:
        self.authority = url.raw_authority
        self.headers = destination.headers
        self.closes = IdleCloses()
        self.heads: HeadMemory[RawReplyHead] = HeadMemory(0)
        self.judge = destination.replies
        self._timeout_s = destination.connect_timeout_s
        self._tls = client_context(destination.ca_file) if url.scheme == "https" else None
        self._dialer = Dialer(url, self._tls, destination.way)

    async def open(self) -> UpstreamConnection | Failure:
        """Return a new connection, or why there is none."""
        try:
            async with asyncio.timeout(self._timeout_s):
                connection = await self._dialer.dial(lambda: UpstreamConnection(self, System.now()))
        except TimeoutError:
            return Failure(FailureKind.CONNECT_TIMEOUT, self._dialer.too_late)
        except ProxyRefusedError as error:
            return Failure(FailureKind.PROXY, str(error))
        except ConnectError as error:
            return Failure(FailureKind.UNREACHABLE, str(error))
        if connection.is_usable:
            return connection
        connection.close()
        return Failure(FailureKind.UNREACHABLE, CLOSED_UNUSED)

    def take_back(self, connection: UpstreamConnection) -> None:
        """Close a connection: none is used twice."""
        connection.close()

    def forget(self, connection: UpstreamConnection) -> None:
        """Keep the TLS session of a closed connection for the next one."""
        if self._tls is not None and connection.tls is not None:
            self._tls.remember(connection.tls)

    @staticmethod
    def is_wanted() -> bool:
        """Return False: nobody waits for a connection of another."""
        return False


class StreamHosts:
    """The hosts of one exchange. With an `instead`, such as http://127.0.0.1:9000, all are that one."""

    def __init__(self, destination: Destination, instead: str = "") -> None:
        self.destination = destination
        self.instead = instead
        self._hosts: dict[str, StreamHost] = {}

    def of(self, host: str) -> StreamHost:
        """Return the host of a name with its port, unless that is 443."""
        if host not in self._hosts:
            self._hosts[host] = StreamHost(URL(self.instead or f"https://{host}"), self.destination)
        return self._hosts[host]
