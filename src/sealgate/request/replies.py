"""Replies to the bot: the upstream's, passed on byte for byte, or a problem of our own (RFC 9457)."""

import asyncio
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, Protocol

from sealgate.errors import Refusal
from sealgate.exchange.answer import Answer, BrokenReplyError, Remainder
from sealgate.http.headers import content_length, header_lines
from sealgate.http.server import Incoming, ServerConnection
from sealgate.orders.outcome import BotReply
from sealgate.venues.error_shapes import ErrorShape, class_of
from sealgate.venues.replies import BODILESS
from sealgate.venues.routes import METHODS

_HTTP_11: Final = (1, 1)
_PATIENCE_S = 0.5  # with a bot that does not read, while others wait
_REDIRECTS = range(300, 400)
_LONGEST_S = 10**9  # of a Retry-After that is written
_LONGEST_PHRASE, _LONGEST_DETAIL = 200, 1_000  # characters
_INVISIBLE = re.compile(r"[^ -~]")
_PROBLEM, _JSON = "application/problem+json", "application/json"
# Headers that a status calls for: RFC 9110 sections 11.6.1 and 10.2.1.
_CALLED_FOR: dict[str, tuple[bytes, bytes]] = {
    "bot_unauthenticated": (b"WWW-Authenticate", b'Basic realm="sealgate"'),
    "method_refused": (b"Allow", ", ".join(METHODS).encode("ascii")),
}


class Switched(Protocol):
    """What has a bot's connection behind a 101: `run`, or `abandon` where the bot never got that reply."""

    async def run(self) -> None:
        """Serve until it is over, or the bot is gone."""

    def abandon(self) -> None:
        """End it."""


@dataclass(slots=True, init=False)
class Reply(BotReply):
    """A reply to write.

    `remainder` is the part of a large body that is still arriving, `length` its stated length. `lines` are
    the fields as they go out, if they are at hand. `stream` is what follows a 101.
    """

    remainder: Remainder | None
    length: bytes | None
    lines: bytes | None
    stream: "Switched | None"

    def __init__(  # noqa: PLR0913, PLR0917 - its fields
        self,
        status: int,
        phrase: str,
        fields: Sequence[tuple[bytes, bytes]],
        body: bytes,
        remainder: Remainder | None = None,
        length: bytes | None = None,
        lines: bytes | None = None,
    ) -> None:
        self.status = status
        self.phrase = phrase
        self.fields = fields
        self.body = body
        self.remainder = remainder
        self.length = length
        self.lines = lines
        self.stream = None


def passed_on(answer: Answer) -> Reply:
    """Return the upstream's reply as the bot gets it."""
    head = answer.head
    return Reply(
        answer.status, answer.phrase, head.passed, answer.body, answer.remainder, head.length, head.lines
    )


def without_location(reply: Reply) -> Reply:
    """Return a redirect without the place that it leads to; other replies as they are.

    To a client, all exchanges at one address are one origin: it would follow the redirect of one exchange to
    another one, with its token and the body of its order.
    """
    if reply.status not in _REDIRECTS:
        return reply
    fields = [(name, value) for name, value in reply.fields if name.strip().lower() != b"location"]
    return Reply(reply.status, reply.phrase, fields, reply.body, reply.remainder, reply.length)


def problem(
    refusal: Refusal,
    request_id: str,
    wall: float,
    shape: ErrorShape | None = None,
    *,
    is_unknown: bool = False,
) -> Reply:
    """Return a refusal as application/problem+json; `wall` is epoch seconds.

    `shape` is how the exchange of the request states errors: its members are in the document, or all of it
    where both cannot be in one. `is_unknown` says that the request may have executed.
    """
    reason, detail = refusal.reason, f"{refusal.detail} {refusal.advice}"
    document: Any = {
        "type": f"urn:sealgate:problem:{refusal.slug}",
        "title": reason.title,
        "status": reason.status,
        "detail": detail,
        "timestamp": datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds"),
        "reason": refusal.slug,
        "request_id": request_id,
        **refusal.members,
    }
    status, phrase, content_type = reason.status, refusal.phrase, _PROBLEM
    if shape is not None:
        error = class_of(refusal.slug, is_unknown=is_unknown)
        status = shape.statuses.get(error, status)
        # Libraries that drop the body show this.
        phrase = phrase or _visible(f"{refusal.slug}: {refusal.detail}", _LONGEST_PHRASE)
        own = shape.document(error, refusal.slug, detail)
        if isinstance(own, list) or (own and not document.keys().isdisjoint(own)):
            document, content_type = own, _JSON
        elif own:
            document = {**own, **document}  # first, as libraries cut the texts of their exceptions
        content_type = shape.content_type or content_type
    fields = [
        (b"Content-Type", content_type.encode("ascii")),
        (b"X-Gateway-Error", refusal.slug.encode("ascii")),
    ]
    if shape is not None:
        fields.append((b"X-Gateway-Detail", _visible(detail, _LONGEST_DETAIL).encode("ascii")))
    if refusal.slug in _CALLED_FOR:
        fields.append(_CALLED_FOR[refusal.slug])
    if refusal.retry_after_s is not None:
        fields.append(
            (b"Retry-After", str(min(math.ceil(refusal.retry_after_s), _LONGEST_S)).encode("ascii"))
        )
    return Reply(
        status,
        phrase or HTTPStatus(reason.status).phrase,
        fields,
        json.dumps(document).encode("ascii"),
    )


def _visible(text: str, at_most: int) -> str:
    """Return the beginning of a text, with a question mark for all that a header line cannot hold."""
    return _INVISIBLE.sub("?", text[:at_most])


class _Framing(Enum):
    """Where the body ends (RFC 9112 section 6.3)."""

    NO_BODY = "no body"
    LENGTH = "length"
    CHUNKED = "chunked"
    CLOSE = "close"


_NO_BODY: Final = _Framing.NO_BODY
_LENGTH: Final = _Framing.LENGTH
_CHUNKED: Final = _Framing.CHUNKED
_CLOSE: Final = _Framing.CLOSE


async def write_reply(request: Incoming, reply: Reply, notes: bytes, *, is_last: bool) -> bool:
    """Write a reply with the gateway's own header lines, `notes`; return whether the connection may stay.

    After the last reply it closes. Raises ConnectionError where the bot is gone, BrokenReplyError where a
    streamed reply is cut: the bot's connection is then reset, so that it cannot take the part for the whole.
    """
    if reply.stream is not None:
        request.connection.write(head_block(reply, notes, b""))
        return False
    framing, line = _framing(request, reply)
    keep_alive = not is_last and request.may_stay and request.body.is_whole and framing is not _CLOSE
    if not keep_alive:
        line += b"Connection: close\r\n"
    elif request.head.version < _HTTP_11:
        line += b"Connection: keep-alive\r\n"
    block = head_block(reply, notes, line)
    if framing is not _NO_BODY:
        block += _framed(reply.body, framing)
    if reply.remainder is None:
        request.connection.write(block)
    elif framing is _CLOSE and not request.connection.can_be_reset:
        reply.remainder.abandon()
        raise BrokenReplyError("with HTTP/1.0 on a Unix socket, the end of a large reply looks like a cut")
    else:
        await _stream(request.connection, block, reply.remainder, framing)
    return keep_alive


def closing_bytes(reply: Reply, notes: bytes) -> bytes:
    """Return a whole reply after which the connection closes."""
    return head_block(reply, notes, content_length(len(reply.body)) + b"Connection: close\r\n") + reply.body


async def _stream(bot: ServerConnection, block: bytes, remainder: Remainder, framing: _Framing) -> None:
    try:
        bot.write(block)
        while chunk := await remainder.read():
            bot.write(_framed(chunk, framing))
            await _drain_in_time(bot, remainder)
        if framing is _CHUNKED:
            bot.write(b"0\r\n\r\n")
    except BaseException:
        remainder.abandon()
        bot.reset()
        raise


async def _drain_in_time(bot: ServerConnection, remainder: Remainder) -> None:
    """Wait for the bot to read; one that does not must not hold a connection to the upstream for ever.

    Where others wait for one, it is not held without progress either.
    """
    loop = asyncio.get_running_loop()
    while True:
        look_at = min(remainder.ends_at, loop.time() + _PATIENCE_S)
        try:
            async with asyncio.timeout_at(look_at):
                return await bot.drain()
        except TimeoutError:
            if look_at == remainder.ends_at or remainder.is_wanted():
                raise BrokenReplyError("the bot does not read it") from None


def head_block(reply: Reply, notes: bytes, framing: bytes) -> bytes:
    """Return status line and header lines, the empty line included."""
    return b"%b%b%b%b\r\n" % (
        _status_line(reply.status, reply.phrase),
        header_lines(reply.fields) if reply.lines is None else reply.lines,
        notes,
        framing,
    )


@lru_cache(maxsize=64)
def _status_line(status: int, phrase: str) -> bytes:
    # The parser reads a phrase as UTF-8 with surrogates for what is none; this restores its bytes.
    return f"HTTP/1.1 {status} {phrase}\r\n".encode("utf-8", "surrogateescape")


def _framed(chunk: bytes, framing: _Framing) -> bytes:
    return b"%x\r\n%b\r\n" % (len(chunk), chunk) if framing is _CHUNKED and chunk else chunk


def _framing(request: Incoming, reply: Reply) -> tuple[_Framing, bytes]:
    """Return how the body ends and the header line that says so."""
    if request.head.method == "HEAD" or reply.status in BODILESS:
        has_length = reply.length is not None and reply.status != HTTPStatus.NO_CONTENT
        return _NO_BODY, content_length(int(reply.length or b"0")) if has_length else b""
    if reply.remainder is None:
        return _LENGTH, content_length(len(reply.body))
    if reply.length is not None:
        return _LENGTH, content_length(int(reply.length))
    if request.head.version >= _HTTP_11:
        return _CHUNKED, b"Transfer-Encoding: chunked\r\n"
    return _CLOSE, b""
