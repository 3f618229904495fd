"""A bot's request. Its body is read whole, bounded in size and time, and as it came: nothing is unpacked."""

import asyncio

from aiohttp.streams import StreamReader
from aiohttp.web import RequestPayloadError

from sealgate.errors import Refusal
from sealgate.gateway.bots.line import BotLine
from sealgate.gateway.bots.parser import RequestMessage

_HTTP_11 = (1, 1)
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Incoming:
    """A bot's request: the head, and the body as it comes in `content`.

    `target` is raw, as `fields` are. `may_stay` says whether the connection outlives the request, `is_offer`
    whether the bot offers to go on with another protocol, `is_misframed` whether others may read the end of
    the body otherwise.
    """

    __slots__ = (
        "connection",
        "content",
        "fields",
        "is_chunked",
        "is_misframed",
        "is_offer",
        "may_stay",
        "method",
        "target",
        "version",
    )

    def __init__(self, message: RequestMessage, content: StreamReader, connection: BotLine) -> None:
        self.method = message.method
        self.target = message.path
        self.version = message.version
        self.fields = message.raw_headers
        self.is_chunked = message.chunked
        # RFC 9112 section 6.1: HTTP/1.0 has no transfer codings, so that the body may end elsewhere.
        self.is_misframed = message.chunked and message.version < _HTTP_11
        self.may_stay = not (message.should_close or self.is_misframed)
        self.is_offer = message.upgrade
        self.content = content
        self.connection = connection

    def release(self) -> None:
        """Let go of the head, which may be large, where only the reply is still to come."""
        self.fields, self.target = (), ""


def whole_body(request: Incoming, max_body: int) -> bytes:
    """Return a body that is there. Raises Refusal `body_too_large`, or `bad_request` as below."""
    try:
        body = request.content.read_nowait()
    except RequestPayloadError:
        raise _bad_body() from None
    _check_size(len(body), max_body)
    return body


async def read_body(request: Incoming, max_body: int, timeout_s: float, *, expects_continue: bool) -> bytes:
    """Return a body of at most `max_body` bytes that still comes.

    Raises Refusal `body_too_large`, `body_timeout`, or what the connection refuses the body with:
    `bad_request` (cut, or framed wrongly), `headers_too_large` (the trailers).
    """
    # RFC 9110 section 10.1.1; what else Expect may say was refused before, and HTTP/1.0 knows no 100.
    if expects_continue and request.version >= _HTTP_11:
        request.connection.write(_CONTINUE)
    try:
        async with asyncio.timeout(timeout_s):
            body = await _read_all(request, max_body)
            await request.connection.check_presence()
            return body
    except TimeoutError:
        raise Refusal("body_timeout", f"The body did not arrive within {timeout_s:g} s.") from None
    except RequestPayloadError:
        raise _bad_body() from None


async def _read_all(request: Incoming, max_body: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while chunk := await request.content.readany():
        size += len(chunk)
        _check_size(size, max_body)
        parts.append(chunk)
    return b"".join(parts)


def _check_size(size: int, max_body: int) -> None:
    if size > max_body:
        raise Refusal("body_too_large", f"The body is larger than listen.max_body ({max_body} bytes).")


def _bad_body() -> Refusal:
    return Refusal("bad_request", "The body is cut short or framed wrongly.")
