"""The way out, on aiohttp's connection pool and response protocol.

There is no `ClientSession` here, on purpose. It sends a request again by itself when a connection breaks,
follows redirects with our headers on, unpacks bodies, keeps cookies and listens to proxy variables; none of
that exists below it. The pool does DNS, TLS, happy eyeballs and keep-alive; the protocol parses the reply.
(aiohttp documents neither for this use; its version is pinned, and tests on raw sockets hold the behaviour.)

The border that matters is the one between two functions: what fails in `connect` was not sent, what fails in
`exchange` may have been.
"""

import asyncio
import ssl
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from yarl import URL

from sealgate.core.attempts import Failure, Fate
from sealgate.core.routes import Lane
from sealgate.gateway.answer import Answer, read_answer
from sealgate.gateway.room import Room
from sealgate.gateway.troubles import TROUBLE, words

# Under the 60 s and more that servers keep an idle connection, so that they are not the first to close it.
KEEP_ALIVE_S = 15.0
_NO_CEILING = 86_400.0  # aiohttp rounds time-outs up to whole seconds above this threshold
_LINE_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class Destination:
    """Where everything goes. `base_url` has no trailing slash; durations are seconds."""

    base_url: str
    connect_timeout_s: float
    total_timeout_s: float
    max_connections: int
    ca_file: Path | None = None
    keep_alive_s: float = KEEP_ALIVE_S


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What to send. `target` goes out as it is, behind the path of `base_url`.

    `fields` are header lines, each with its CRLF, without Host.
    """

    method: str
    target: str
    fields: bytes = b""
    body: bytes = b""


class Upstream:
    """The connections to one upstream. Make it and close it inside a running loop."""

    def __init__(self, destination: Destination) -> None:
        self.destination = destination
        url = URL(destination.base_url)
        self._base_path = url.raw_path.rstrip("/")
        self._host_line = f"Host: {url.raw_authority}\r\n"
        self._room = Room(destination.max_connections)
        self._connector = aiohttp.TCPConnector(
            limit=self._room.size,
            keepalive_timeout=destination.keep_alive_s,
            ssl=_tls(destination.ca_file) if url.scheme == "https" else True,
            timeout_ceil_threshold=_NO_CEILING,
        )
        # Only says where to connect; it is never sent.
        self._where = ClientRequest("GET", url, loop=asyncio.get_running_loop(), session=None)
        self._usual_timeout = _connect_timeout(destination.connect_timeout_s)

    async def close(self) -> None:
        """Close all connections."""
        await self._connector.close()

    def waiting(self, lane: Lane) -> int:
        """Return how many wait for a connection in a lane."""
        return self._room.waiting[lane]

    async def connect(self, lane: Lane, timeout_s: float) -> "Line | Failure":
        """Return a line that is ready, waiting for a place in the pool if need be. Nothing is sent yet."""
        timeout = self._usual_timeout
        if timeout_s < self.destination.connect_timeout_s:
            timeout = _connect_timeout(timeout_s)
        try:
            leave = await self._room.enter(lane, timeout.connect or timeout_s)
        except TimeoutError:
            return Failure(Fate.CONNECT_TIMEOUT, "all connections are in use")
        try:
            connection = await self._connector.connect(self._where, [], timeout)
        except TimeoutError:
            failure = Failure(Fate.CONNECT_TIMEOUT, "no connection in time")
        except TROUBLE as error:
            failure = Failure(Fate.UNREACHABLE, words(error))
        except BaseException:  # the bot hung up
            leave()
            raise
        else:
            connection.add_callback(leave)
            return self._line_on(connection)
        leave()
        return failure

    def _line_on(self, connection: Connection) -> "Line | Failure":
        """Take a connection, unless something came on it unasked: that must not pass for the reply."""
        protocol, transport = connection.protocol, connection.transport
        if protocol is None or transport is None or transport.is_closing() or protocol.should_close:
            connection.close()
            return Failure(Fate.UNREACHABLE, "the idle connection had been closed")
        return Line(self, connection, protocol, transport)

    def bytes_of(self, request: Outgoing) -> bytes:
        """Return a request as it goes out."""
        head = f"{request.method} {self._base_path}{request.target} HTTP/1.1\r\n{self._host_line}"
        return b"".join((head.encode("ascii"), request.fields, b"\r\n", request.body))


class Line:
    """A connection that is ready for one request: `exchange` it, or `give_back` the line unused."""

    def __init__(
        self,
        upstream: Upstream,
        connection: Connection,
        protocol: ResponseHandler,
        transport: asyncio.Transport,
    ) -> None:
        self._upstream = upstream
        self._connection = connection
        self._protocol = protocol
        self._transport = transport

    def give_back(self) -> None:
        """Leave the connection to the next."""
        self._connection.release()

    async def exchange(self, request: Outgoing, timeout_s: float) -> Answer | Failure:
        """Send a request, once, and return its reply.

        All of it, the remainder of a large reply included, takes at most `timeout_s`.
        """
        self._protocol.set_response_params(
            skip_payload=request.method == "HEAD",
            read_until_eof=True,
            auto_decompress=False,
            max_line_size=_LINE_BYTES,
            max_field_size=_LINE_BYTES,
            timeout_ceil_threshold=_NO_CEILING,
        )
        self._transport.write(self._upstream.bytes_of(request))
        try:
            async with asyncio.timeout(timeout_s) as bound:
                return await read_answer(self._connection, self._protocol, bound.when() or 0.0)
        except TimeoutError:
            failure = Failure(Fate.LATE, "no whole reply in time")
        except TROUBLE as error:
            failure = Failure(Fate.LOST, words(error))
        except BaseException:  # the bot hung up
            self._connection.close()
            raise
        self._connection.close()
        return failure


def give_back(line: Line | Failure) -> None:
    """Leave an unused line to the next, if there is one."""
    if isinstance(line, Line):
        line.give_back()


def _connect_timeout(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(connect=seconds, sock_connect=seconds, ceil_threshold=_NO_CEILING)


def _tls(ca_file: Path | None) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file)
