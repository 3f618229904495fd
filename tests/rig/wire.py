"""HTTP/1.1 as the tests read it: by hand, strictly, and sharing nothing with the gateway.

Whatever is not exactly as RFC 9112 says raises NotHttpError, so that a gateway which writes sloppily fails
its test here. Bytes stay bytes.
"""

import asyncio
import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass

Fields = tuple[tuple[bytes, bytes], ...]

PATIENCE_S = 60.0  # how long a test waits for what must come; nothing is measured by it

_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_DECIMAL = re.compile(rb"[0-9]{1,18}")
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,16}")


class NotHttpError(Exception):
    """The peer wrote something that RFC 9112 does not allow."""


class CutError(Exception):
    """The peer stopped in the middle; `got` is what came of the body."""

    def __init__(self, got: bytes = b"") -> None:
        super().__init__(f"cut after {len(got)} bytes")
        self.got = got


@dataclass(frozen=True)
class Head:
    """The first line without its CRLF, and the fields in their order and spelling."""

    line: bytes
    fields: Fields

    def values(self, name: bytes) -> list[bytes]:
        """Return all values of a field."""
        return [value for field, value in self.fields if field.lower() == name.lower()]

    def value(self, name: bytes) -> bytes | None:
        """Return the value of a field that comes at most once."""
        values = self.values(name)
        if len(values) > 1:
            raise NotHttpError(f"{name!r} comes {len(values)} times")
        return values[0] if values else None


class Tape:
    """Reads a connection and keeps every byte that it read."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self.raw = b""

    async def line(self) -> bytes:
        """Read a line and return it without its CRLF."""
        line = await self._until(b"\r\n")
        if b"\n" in line or b"\r" in line:
            raise NotHttpError(f"a bare CR or LF in {line!r}")
        return line

    async def exactly(self, size: int) -> bytes:
        """Read that many bytes."""
        try:
            got = await self._reader.readexactly(size)
        except asyncio.IncompleteReadError as error:
            self.raw += error.partial
            raise CutError(error.partial) from None
        except ConnectionError:
            raise CutError from None
        self.raw += got
        return got

    async def to_the_end(self) -> bytes:
        """Read until the peer closes. Raises CutError where it resets instead."""
        got = b""
        try:
            while part := await self._reader.read(1 << 16):
                got += part
        except ConnectionError:
            raise CutError(got) from None
        finally:
            self.raw += got
        return got

    async def _until(self, end: bytes) -> bytes:
        try:
            got = await self._reader.readuntil(end)
        except asyncio.IncompleteReadError as error:
            self.raw += error.partial
            raise CutError(error.partial) from None
        except ConnectionError:
            raise CutError from None
        self.raw += got
        return got[: -len(end)]


async def read_head(tape: Tape, first: bytes | None = None) -> Head:
    """Read a first line, unless it was read already, and the fields up to the empty line."""
    first = await tape.line() if first is None else first
    fields: list[tuple[bytes, bytes]] = []
    while line := await tape.line():
        fields.append(_field(line))
    return Head(first, tuple(fields))


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(b":")
    value = value.strip(b" \t")
    if not colon or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise NotHttpError(f"not a field: {line!r}")
    return name, value


def framing(head: Head) -> int | str | None:
    """Return the length that a head states, "chunked", or None where it states nothing."""
    coding, length = head.value(b"transfer-encoding"), head.value(b"content-length")
    if coding is not None and length is not None:
        raise NotHttpError("both Transfer-Encoding and Content-Length")
    if coding is not None:
        if coding != b"chunked":
            raise NotHttpError(f"transfer coding {coding!r}")
        return "chunked"
    if length is not None and not _DECIMAL.fullmatch(length):
        raise NotHttpError(f"Content-Length {length!r}")
    return None if length is None else int(length)


async def read_chunked(tape: Tape) -> bytes:
    """Read a chunked body without extensions or trailers, which the gateway never writes."""
    body = b""
    while True:
        try:
            size_line = await tape.line()
            if not _CHUNK_SIZE.fullmatch(size_line):
                raise NotHttpError(f"chunk size {size_line!r}")
            size = int(size_line, 16)
            body += await tape.exactly(size)
            if await tape.line() != b"":
                raise NotHttpError("no line end after a chunk")
        except CutError as cut:
            raise CutError(body + cut.got) from None
        if size == 0:
            return body


async def let_pass(seconds: float) -> None:
    """Let time pass for others; never the way to wait for a result."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for a state that nobody announces, by going round the loop."""
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await let_pass(0.002)


def chunked(*parts: bytes) -> bytes:
    """Write a chunked body, its end included."""
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts if part) + b"0\r\n\r\n"


def reply(status: bytes, body: bytes = b"", *fields: bytes) -> bytes:
    """Write a reply whose length is stated. `status` is such as b"200 OK"; `fields` are whole lines."""
    lines = (b"HTTP/1.1 " + status, *fields, b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


OK = reply(b"200 OK", b'{"ok":true}', b"Content-Type: application/json")
OK_HEAD = OK[: OK.index(b"{")]
