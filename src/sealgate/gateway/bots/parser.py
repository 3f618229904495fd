"""How the requests of bots are parsed: by aiohttp's C parser within our bounds, and what its errors mean."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from aiohttp.http import HttpRequestParser
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.streams import StreamReader
from aiohttp.web import RequestPayloadError

from sealgate.errors import Refusal
from sealgate.gateway.host.flow import Flow

_LINE_BYTES = 8190
_FIELDS = 128
_BODY_BYTES = (
    16 * 1024
)  # that are taken of a body before somebody reads it, as nobody may: twice that at most


class RequestMessage(Protocol):
    """The head of a request, as far as it is used: aiohttp states a tuple, which its C class is not."""

    method: str
    path: str
    version: tuple[int, int]
    raw_headers: tuple[tuple[bytes, bytes], ...]
    should_close: bool
    chunked: bool
    upgrade: bool


Messages = Sequence[tuple[RequestMessage, StreamReader]]

# All that the parser raises. yarl, which takes every target apart, fails on some with errors of its own.
PARSER_ERRORS = (HttpProcessingError, LookupError, ValueError)


def new_parser(connection: Flow, loop: asyncio.AbstractEventLoop, most_at_once: int) -> HttpRequestParser:
    """Return the parser of one connection; it gives out at most so many requests that are not consumed."""
    return HttpRequestParser(
        connection.for_aiohttp(),
        loop,
        _BODY_BYTES,
        max_line_size=_LINE_BYTES,
        max_field_size=_LINE_BYTES,
        max_headers=_FIELDS,
        payload_exception=RequestPayloadError,
        auto_decompress=False,
        max_msg_queue_size=most_at_once,
    )


def refusal_of(error: Exception, otherwise: str) -> Refusal:
    """Return what to answer to what could not be parsed; `otherwise` is the detail of no special case."""
    if isinstance(error, Refusal):
        return error
    is_too_long = isinstance(error, LineTooLong)
    if is_too_long or (isinstance(error, HttpProcessingError) and "Too many" in error.message):
        return Refusal("headers_too_large", "A line or the header is too long.")
    return Refusal("bad_request", otherwise)
