"""Reading the upstream's reply: held while small, so that a cut one can be told; streamed when large."""

import asyncio
import ssl
from dataclasses import dataclass

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from sealgate.gateway.troubles import TROUBLE, words

HELD_BYTES = 256 * 1024
_MOST_INTERIM = 16  # 1xx replies to one request
_SWITCHING = 101
_FINAL = 200  # the end of the 1xx class


@dataclass(slots=True)
class Answer:
    """A reply: its head, and its body whole, or the first part of it with the remainder still to come."""

    status: int
    phrase: str
    fields: tuple[tuple[bytes, bytes], ...]
    body: bytes
    remainder: "Remainder | None" = None


class BrokenReplyError(Exception):
    """A streamed reply ended before its end."""


class Remainder:
    """What is left of a large reply. Read it to the end or `abandon` it: it holds a connection.

    `ends_at` is when the time for it is over, on the loop's clock.
    """

    def __init__(self, connection: Connection, content: StreamReader, end: "_End", ends_at: float) -> None:
        self._connection = connection
        self._content = content
        self._end = end
        self.ends_at = ends_at

    async def read(self) -> bytes:
        """Return the next bytes, b"" at the end. Raises BrokenReplyError where it is cut or too slow."""
        try:
            async with asyncio.timeout_at(self.ends_at):
                chunk = await self._content.readany()
            if not chunk:
                self._end.check()
                self._connection.release()
        except (*TROUBLE, TimeoutError) as error:
            raise BrokenReplyError(words(error)) from None
        return chunk

    def abandon(self) -> None:
        """Give the connection up without reading to the end."""
        self._connection.close()


async def read_answer(connection: Connection, protocol: ResponseHandler, ends_at: float) -> Answer:
    """Read the reply on a connection, and release that where the reply is whole. Raises TROUBLE."""
    tls = connection.transport.get_extra_info("ssl_object") if connection.transport else None
    message, content = await _final_message(protocol)
    end = _End(protocol, tls, _is_ended_by_close(message, content))
    body = await _hold(content)
    answer = Answer(message.code, message.reason, message.raw_headers, body)
    if content.at_eof():
        end.check()
        connection.release()
    else:
        answer.remainder = Remainder(connection, content, end, ends_at)
    return answer


async def _final_message(protocol: ResponseHandler) -> tuple[RawResponseMessage, StreamReader]:
    """Skip interim replies (RFC 9110 section 15.2); nobody asked to switch protocols."""
    for _ in range(_MOST_INTERIM):
        message, content = await protocol.read()
        if message.code == _SWITCHING:
            break
        if message.code >= _FINAL:
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
