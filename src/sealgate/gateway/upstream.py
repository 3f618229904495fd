"""The way out: one attempt to the upstream, on aiohttp's connection pool and response protocol.

There is no `ClientSession` here, on purpose. It sends a request again by itself when a connection breaks,
follows redirects with our headers on, unpacks bodies, keeps cookies and listens to proxy variables; none of
that exists below it. The pool does DNS, TLS, happy eyeballs and keep-alive; the protocol parses the reply.

All of aiohttp's exceptions are turned into a `Failure` here and nowhere else. The border that matters runs
between having a connection and writing to it: before it nothing was sent, after it everything may have been.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from yarl import URL

from sealgate.core.attempts import Failure, Fate

# A reply up to this size is held until it is whole, so that a cut one can be told; a larger one is streamed.
HELD_BYTES = 256 * 1024
# Under the 60 s and more that servers keep an idle connection, so that they are not the first to close it.
KEEP_ALIVE_S = 15.0
_MOST_INTERIM = 16  # 1xx replies to one request
_SWITCHING = 101
_NO_CEILING = 86_400.0  # aiohttp rounds time-outs up to whole seconds above this threshold
_LINE_BYTES = 16 * 1024
_TROUBLE = (aiohttp.ClientError, HttpProcessingError, OSError, EOFError)


@dataclass(frozen=True, slots=True)
class Destination:
    """Where everything goes. `base_url` has no trailing slash; durations are seconds."""

    base_url: str
    connect_timeout_s: float
    total_timeout_s: float
    max_connections: int
    ca_file: Path | None = None
    keep_alive_s: float = KEEP_ALIVE_S


Seal = Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What to send. `target` goes out as it is, behind the path of `base_url`.

    `seal` returns the header lines, each with its CRLF, without Host. It is called at the last moment, when
    there is a connection to write to, so that no wait for one can age a timestamp.
    """

    method: str
    target: str
    body: bytes
    seal: Seal


@dataclass(slots=True)
class Answer:
    """A reply: its head, and its body whole, or the first part of it with the rest still to come."""

    status: int
    phrase: str
    fields: tuple[tuple[bytes, bytes], ...]
    body: bytes
    rest: "Rest | None" = None


class Rest:
    """What is left of a large reply. Read it to the end or `abandon` it: it holds a connection.

    `ends_at` is when the time for it is over, on the loop's clock.
    """

    def __init__(self, connection: Connection, content: StreamReader, end: "_End", ends_at: float) -> None:
        self._connection = connection
        self._content = content
        self._end = end
        self._ends_at = ends_at

    async def read(self) -> bytes:
        """Return the next bytes, b"" at the end. Raises BrokenReplyError where it is cut or too slow."""
        try:
            async with asyncio.timeout_at(self._ends_at):
                chunk = await self._content.readany()
            if not chunk:
                self._end.check()
                self._connection.release()
        except (*_TROUBLE, TimeoutError) as error:
            raise BrokenReplyError(_words(error)) from None
        return chunk

    def abandon(self) -> None:
        """Give the connection up without reading to the end."""
        self._connection.close()


@dataclass(frozen=True, slots=True)
class _End:
    """How a reply ends. One without a length ends where its connection does (RFC 9112 section 6.3).

    aiohttp calls that whole whatever ended the connection; `check` tells an end from an abort. `tls` is the
    session below, None without one.
    """

    protocol: ResponseHandler
    tls: ssl.SSLObject | None
    is_by_close: bool

    def check(self) -> None:
        """Raise where the reply was cut."""
        if not self.is_by_close:
            return
        error = self.protocol.exception()
        if error is not None and not isinstance(error, aiohttp.ServerDisconnectedError):
            raise error
        if self.tls is not None and not _has_said_goodbye(self.tls):
            raise aiohttp.ClientPayloadError("cut inside TLS")


def _has_said_goodbye(tls: ssl.SSLObject) -> bool:
    """Ask whether the peer ended the session and not just the connection (RFC 8446 section 6.1)."""
    try:
        return not tls.read(1)
    except ssl.SSLZeroReturnError:
        return True
    except ssl.SSLError:
        return False


class NotNow(Exception):  # noqa: N818 - an answer, not an error
    """Raised by a `seal`: nothing may be sent at this moment. The connection stays open for the next."""


class BrokenReplyError(Exception):
    """A streamed reply ended before its end."""


class Upstream:
    """The connections to one upstream. Make it and close it inside a running loop."""

    def __init__(self, destination: Destination) -> None:
        self.destination = destination
        url = URL(destination.base_url)
        self.authority = url.raw_authority
        self._base_path = url.raw_path.rstrip("/")
        self._connector = aiohttp.TCPConnector(
            limit=destination.max_connections,
            keepalive_timeout=destination.keep_alive_s,
            ssl=_tls(destination.ca_file) if url.scheme == "https" else True,
            timeout_ceil_threshold=_NO_CEILING,
        )
        # Only says where to connect; it is never sent.
        self._where = ClientRequest("GET", url, loop=asyncio.get_running_loop(), session=None)
        self._connect_timeout = aiohttp.ClientTimeout(
            connect=destination.connect_timeout_s,
            sock_connect=destination.connect_timeout_s,
            ceil_threshold=_NO_CEILING,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._connector.close()

    async def send(self, request: Outgoing, timeout_s: float) -> Answer | Failure:
        """Make one attempt, and never a second one.

        All of it, the rest of a large reply included, takes at most `timeout_s`.
        """
        connection: Connection | None = None
        is_written = False
        try:
            async with asyncio.timeout(timeout_s) as bound:
                connection = await self._connector.connect(self._where, [], self._connect_timeout)
                protocol, transport = _prepare(connection, request.method)
                transport.write(self._bytes_of(request))
                is_written = True
                return await self._receive(connection, protocol, bound.when() or 0.0)
        except TimeoutError:
            if is_written:
                return _failed(connection, Fate.LATE, "no whole reply in time")
            return _failed(connection, Fate.CONNECT_TIMEOUT, "no connection in time")
        except _TROUBLE as error:
            return _failed(connection, Fate.LOST if is_written else Fate.UNREACHABLE, _words(error))
        except NotNow:
            if connection is not None:
                connection.release()
            raise
        except BaseException:  # the bot hung up
            if connection is not None:
                connection.close()
            raise

    def _bytes_of(self, request: Outgoing) -> bytes:
        line = f"{request.method} {self._base_path}{request.target} HTTP/1.1\r\nHost: {self.authority}\r\n"
        return b"".join((line.encode("ascii"), request.seal(), b"\r\n", request.body))

    async def _receive(self, connection: Connection, protocol: ResponseHandler, ends_at: float) -> Answer:
        tls = connection.transport.get_extra_info("ssl_object") if connection.transport else None
        message, content = await _final_message(protocol)
        end = _End(protocol, tls, _is_ended_by_close(message, content))
        body = await _hold(content)
        answer = Answer(message.code, message.reason, message.raw_headers, body)
        if content.at_eof():
            end.check()
            connection.release()
        else:
            answer.rest = Rest(connection, content, end, ends_at)
        return answer


def _prepare(connection: Connection, method: str) -> tuple[ResponseHandler, asyncio.Transport]:
    """Make a pooled connection ready for one reply.

    Raises where it was closed meanwhile, or where something came on it that nobody asked for: that must not
    pass for the reply.
    """
    protocol = connection.protocol
    transport = connection.transport
    if protocol is None or transport is None or transport.is_closing() or protocol.should_close:
        raise aiohttp.ServerDisconnectedError
    protocol.set_response_params(
        skip_payload=method == "HEAD",
        read_until_eof=True,
        auto_decompress=False,
        max_line_size=_LINE_BYTES,
        max_field_size=_LINE_BYTES,
        timeout_ceil_threshold=_NO_CEILING,
    )
    return protocol, transport


async def _final_message(protocol: ResponseHandler) -> tuple[RawResponseMessage, StreamReader]:
    """Skip interim replies (RFC 9110 section 15.2); nobody asked to switch protocols."""
    for _ in range(_MOST_INTERIM):
        message, content = await protocol.read()
        if message.code == _SWITCHING:
            break
        if message.code >= 200:  # noqa: PLR2004 - the end of the 1xx class
            return message, content
    raise aiohttp.ClientPayloadError("interim replies without end")


async def _hold(content: StreamReader) -> bytes:
    """Read a body whole, or its first part if it is larger than what is held."""
    if content.is_eof():
        return content.read_nowait()
    parts: list[bytes] = []
    size = 0
    while size < HELD_BYTES and (chunk := await content.readany()):
        parts.append(chunk)
        size += len(chunk)
    return b"".join(parts)


def _is_ended_by_close(message: RawResponseMessage, content: StreamReader) -> bool:
    if message.chunked or content is EMPTY_PAYLOAD:
        return False
    return all(name.lower() != b"content-length" for name, _ in message.raw_headers)


def _failed(connection: Connection | None, fate: Fate, detail: str) -> Failure:
    if connection is not None:
        connection.close()
    return Failure(fate, detail)


def _tls(ca_file: Path | None) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file)


def _words(error: BaseException) -> str:
    """Say in a few words what went wrong, without what the peer sent."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"cannot connect to {error.host}:{error.port}: {_cause(error.certificate_error)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect to {error.host}:{error.port}: {_cause(error.os_error)}"
    if isinstance(error, HttpProcessingError):
        return "the reply is not HTTP"
    return type(error).__name__ if not isinstance(error, OSError) or not error.strerror else error.strerror


def _cause(error: Exception) -> str:
    """Return the words of whoever knows: TLS, the resolver or the system (asyncio's repeat the address)."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused ({error.verify_message}); see upstream.ca_file"
    if isinstance(error, ssl.SSLError):
        return f"it does not speak TLS as expected ({error.reason})"
    if isinstance(error, socket.gaierror):
        return "no such host name"
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
