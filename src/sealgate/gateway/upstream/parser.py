"""How the upstream's replies are parsed: by aiohttp's C parser within our bounds, and nothing unpacked."""

import asyncio
from typing import Protocol

import aiohttp
from aiohttp.http import HttpResponseParser

from sealgate.gateway.host.flow import BUFFERED_BYTES, Flow

_LINE_BYTES = 16 * 1024


class ReplyMessage(Protocol):
    """The head of a reply, as far as it is used: aiohttp states a tuple, which its C class is not."""

    code: int
    reason: str
    raw_headers: tuple[tuple[bytes, bytes], ...]
    should_close: bool
    chunked: bool


def new_parser(connection: Flow, loop: asyncio.AbstractEventLoop, *, is_head: bool) -> HttpResponseParser:
    """Return the parser of one reply; that to a HEAD request has no body."""
    return HttpResponseParser(
        connection.for_aiohttp(),
        loop,
        BUFFERED_BYTES,
        payload_exception=aiohttp.ClientPayloadError,
        response_with_body=not is_head,
        read_until_eof=True,
        auto_decompress=False,
        max_line_size=_LINE_BYTES,
        max_field_size=_LINE_BYTES,
    )
