"""Replies to the bot: the upstream's, passed on byte for byte, or a problem of our own (RFC 9457)."""

import asyncio
import json
import math
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from http import HTTPStatus

from aiohttp import web

from sealgate.core.headers import sort_reply
from sealgate.core.routes import METHODS
from sealgate.errors import Refusal
from sealgate.gateway.answer import Answer, BrokenReplyError, Remainder

Fields = Sequence[tuple[bytes, bytes]]

_NO_BODY = frozenset({204, 304})
_HTTP_11 = (1, 1)
_LONGEST_S = 10**9  # of a Retry-After that is written
# Headers that a status calls for: RFC 9110 sections 11.6.1 and 10.2.1.
_CALLED_FOR: dict[str, tuple[bytes, bytes]] = {
    "bot_unauthenticated": (b"WWW-Authenticate", b'Basic realm="sealgate"'),
    "method_refused": (b"Allow", ", ".join(METHODS).encode("ascii")),
}


@dataclass(slots=True)
class Reply:
    """A reply to write. `remainder` is what a large one still has to come, `length` its stated length."""

    status: int
    phrase: str
    fields: Fields
    body: bytes
    remainder: Remainder | None = None
    length: bytes | None = None


def passed_on(answer: Answer) -> Reply:
    """Return the upstream's reply as the bot gets it."""
    length = next((value for name, value in answer.fields if name.lower() == b"content-length"), None)
    return Reply(
        answer.status, answer.phrase, sort_reply(answer.fields), answer.body, answer.remainder, length
    )


def problem(refusal: Refusal, request_id: str, wall: float) -> Reply:
    """Return a refusal as application/problem+json; `wall` is epoch seconds."""
    reason = refusal.reason
    document = {
        "type": f"urn:sealgate:problem:{refusal.slug}",
        "title": reason.title,
        "status": reason.status,
        "detail": f"{refusal.detail} {reason.advice}",
        "timestamp": datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds"),
        "reason": refusal.slug,
        "request_id": request_id,
    }
    fields = [
        (b"Content-Type", b"application/problem+json"),
        (b"X-Gateway-Error", refusal.slug.encode("ascii")),
    ]
    if refusal.slug in _CALLED_FOR:
        fields.append(_CALLED_FOR[refusal.slug])
    if refusal.retry_after_s is not None:
        fields.append(
            (b"Retry-After", str(min(math.ceil(refusal.retry_after_s), _LONGEST_S)).encode("ascii"))
        )
    return Reply(
        reason.status, HTTPStatus(reason.status).phrase, fields, json.dumps(document).encode("ascii")
    )


class Written(web.StreamResponse):
    """What the server is handed: a reply that the pipeline wrote already, or `late` bytes to write now."""

    def __init__(self, *, keep_alive: bool, late: bytes = b"") -> None:
        super().__init__()
        self._late = late
        if not keep_alive:
            self.force_close()
        else:
            self._keep_alive = True

    async def prepare(self, request: web.BaseRequest) -> None:
        """Write what is left to write."""
        if self._late:
            await request.writer.write(self._late)

    async def write_eof(self, data: bytes = b"") -> None:
        """Everything is written."""


class _Framing(Enum):
    """Where the body ends (RFC 9112 section 6.3)."""

    NO_BODY = "no body"
    LENGTH = "length"
    CHUNKED = "chunked"
    CLOSE = "close"


async def write_reply(request: web.BaseRequest, reply: Reply, notes: Fields, *, is_last: bool) -> Written:
    """Write a reply with the gateway's own `notes` (headers) added; after the last one the connection closes.

    Raises ConnectionError where the bot is gone, BrokenReplyError where a streamed reply is cut: the bot's
    connection is then aborted, so that it cannot take the part for the whole.
    """
    framing, line = _framing(request, reply)
    may_stay = bool(request.keep_alive) and request.content.is_eof() and framing is not _Framing.CLOSE
    keep_alive = may_stay and not is_last
    block = head_block(reply, notes, line + _connection(request, keep_alive=keep_alive))
    if framing is _Framing.NO_BODY:
        await request.writer.write(block)
    else:
        await request.writer.write(block + _framed(reply.body, framing))
    if reply.remainder is not None:
        await _stream(request, reply.remainder, framing)
    return Written(keep_alive=keep_alive)


def closing_bytes(reply: Reply, notes: Fields) -> bytes:
    """Return a whole reply after which the connection closes."""
    return head_block(reply, notes, content_length(len(reply.body)) + b"Connection: close\r\n") + reply.body


async def _stream(request: web.BaseRequest, remainder: Remainder, framing: _Framing) -> None:
    try:
        while chunk := await remainder.read():
            await _write_in_time(request, _framed(chunk, framing), remainder)
        if framing is _Framing.CHUNKED:
            await request.writer.write(b"0\r\n\r\n")
    except BaseException:
        remainder.abandon()
        _reset(request)
        raise


async def _write_in_time(request: web.BaseRequest, chunk: bytes, remainder: Remainder) -> None:
    """Write a part; a bot that does not read must not hold a connection to the upstream for ever."""
    try:
        async with asyncio.timeout_at(remainder.ends_at):
            await request.writer.write(chunk)
    except TimeoutError:
        raise BrokenReplyError("the bot does not read it") from None


def _reset(request: web.BaseRequest) -> None:
    """Reset the bot's connection: after an orderly end, HTTP/1.0 would take the part for the whole."""
    transport = request.transport
    if transport is None:
        return
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def head_block(reply: Reply, notes: Fields, framing: bytes) -> bytes:
    """Return status line and header lines, the empty line included."""
    # aiohttp reads a phrase as UTF-8 with surrogates for what is none; this restores its bytes.
    lines = [f"HTTP/1.1 {reply.status} {reply.phrase}\r\n".encode("utf-8", "surrogateescape")]
    lines += [b"%b: %b\r\n" % field for field in (*reply.fields, *notes)]
    return b"".join((*lines, framing, b"\r\n"))


def _framed(chunk: bytes, framing: _Framing) -> bytes:
    return b"%x\r\n%b\r\n" % (len(chunk), chunk) if framing is _Framing.CHUNKED and chunk else chunk


def _framing(request: web.BaseRequest, reply: Reply) -> tuple[_Framing, bytes]:
    """Return how the body ends and the header line that says so."""
    if request.method == "HEAD" or reply.status in _NO_BODY:
        has_length = reply.length is not None and reply.status != HTTPStatus.NO_CONTENT
        return _Framing.NO_BODY, content_length(int(reply.length or b"0")) if has_length else b""
    if reply.remainder is None:
        return _Framing.LENGTH, content_length(len(reply.body))
    if reply.length is not None:
        return _Framing.LENGTH, content_length(int(reply.length))
    if request.version >= _HTTP_11:
        return _Framing.CHUNKED, b"Transfer-Encoding: chunked\r\n"
    return _Framing.CLOSE, b""


def content_length(size: int) -> bytes:
    """Return the header line that states a body's size."""
    return b"Content-Length: %d\r\n" % size


def _connection(request: web.BaseRequest, *, keep_alive: bool) -> bytes:
    if not keep_alive:
        return b"Connection: close\r\n"
    return b"" if request.version >= _HTTP_11 else b"Connection: keep-alive\r\n"
