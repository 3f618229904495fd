"""How the upstream's replies are parsed: by aiohttp's C parser within our bounds, and nothing unpacked.

The parser is given a head by itself. So a reply is known before anything behind its head is looked at, and is
not lost where it is whole and what follows is not HTTP.
"""

import asyncio
import re
from typing import Protocol

import aiohttp
from aiohttp.http import HttpResponseParser

from sealgate.core.headers import MOST_BYTES
from sealgate.gateway.host.flow import BUFFERED_BYTES, Flow
from sealgate.gateway.upstream.troubles import UntakenReplyError

_MOST_FIELDS = 256
_START = b"HTTP/"
_HEAD_END = re.compile(rb"\n\r?\n")
_LENGTH = re.compile(rb"^Content-Length[ \t]*:([^\r\n]*)\r?\n", re.IGNORECASE | re.MULTILINE)
_EMPTY = re.compile(rb"\s*HTTP/1\.\d +(?:204|304)\b")  # RFC 9110: there is no body, whatever the fields say


class ReplyMessage(Protocol):
    """The head of a reply, as far as it is used: aiohttp states a tuple, which its C class is not."""

    code: int
    reason: str
    raw_headers: tuple[tuple[bytes, bytes], ...]
    should_close: bool
    chunked: bool


class HeadBytes:
    """Gathers the head of a reply; empty lines before it count for nothing."""

    def __init__(self) -> None:
        self._came = b""
        self._lines = 0

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the head once it is whole, b"" before, and what came behind it.

        Raises UntakenReplyError as soon as it is none, or too large.
        """
        searched = max(0, len(self._came) - 2)
        self._came = (self._came + data).lstrip(b"\r\n")
        if not _START.startswith(self._came[: len(_START)]):
            raise UntakenReplyError("the reply is not HTTP")
        end = _HEAD_END.search(self._came, searched)
        head = self._came[: end.end()] if end else self._came
        self._lines += data.count(b"\n") if end is None else 0
        if len(head) > MOST_BYTES or self._lines > _MOST_FIELDS:
            raise UntakenReplyError("the head of the reply is too large")
        if end is None:
            return b"", b""
        rest = self._came[end.end() :]
        self._came, self._lines = b"", 0
        return _with_one_length(head), rest


def has_no_body(head: bytes) -> bool:
    """Ask whether a reply has no body for its status alone."""
    return _EMPTY.match(head) is not None


def _with_one_length(head: bytes) -> bytes:
    """Leave out a length that only repeats the first (RFC 9110 section 8.6): llhttp refuses it."""
    lengths = _LENGTH.findall(head)
    if len(lengths) == 1 and b"," not in lengths[0]:
        return head
    stated = {length.strip() for line in lengths for length in line.split(b",")}
    if len(stated) != 1:
        return head
    rest = _LENGTH.sub(b"", head)
    line_end = rest.index(b"\n") + 1
    return b"%bContent-Length: %b\r\n%b" % (rest[:line_end], *stated, rest[line_end:])


def new_parser(connection: Flow, loop: asyncio.AbstractEventLoop, *, has_body: bool) -> HttpResponseParser:
    """Return the parser of one reply."""
    return HttpResponseParser(
        connection.for_aiohttp(),
        loop,
        BUFFERED_BYTES,
        payload_exception=aiohttp.ClientPayloadError,
        response_with_body=has_body,
        read_until_eof=True,
        auto_decompress=False,
        max_line_size=MOST_BYTES,
        max_field_size=MOST_BYTES,
        max_headers=_MOST_FIELDS,
    )
