"""A bot on bare sockets: it sends exact bytes and reads replies by its own parser."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rig.acts import reset_when_closed
from rig.wire import (
    PATIENCE_S,
    CutError,
    Fields,
    Head,
    NotHttpError,
    Tape,
    framing,
    let_pass,
    read_chunked,
    read_head,
)

_EMPTY = (b"204", b"304")
_MEMBERS = {"type", "title", "status", "detail", "timestamp", "reason", "request_id"}


@dataclass(frozen=True)
class Reply:
    """A reply. `is_whole` is False where the connection ended before the reply did.

    `ends_by` is "none", "length", "chunked" or "close".
    """

    head: Head
    status: int
    phrase: bytes
    body: bytes
    is_whole: bool
    ends_by: str
    raw: bytes

    @property
    def fields(self) -> Fields:
        """The fields in their order and spelling."""
        return self.head.fields

    def text(self, name: str) -> str | None:
        """Return the value of a field that comes at most once."""
        value = self.head.value(name.encode())
        return None if value is None else value.decode("latin-1")

    @property
    def outcome(self) -> str | None:
        """What the gateway lets the bot conclude."""
        return self.text("X-Gateway-Outcome")

    @property
    def reason(self) -> str | None:
        """The gateway's reason, None for the upstream's own reply."""
        return self.text("X-Gateway-Error")

    @property
    def attempts(self) -> int:
        """How often it was sent."""
        return int(self.text("X-Gateway-Attempts") or -1)

    @property
    def closes(self) -> bool:
        """Whether the reply says that the connection ends with it."""
        return self.text("Connection") == "close"

    def document(self) -> dict[str, Any]:
        """Return the body as a JSON object."""
        document = json.loads(self.body)
        assert isinstance(document, dict)
        return document


def told(answer: Reply) -> tuple[int, str | None, str | None]:
    """Return what a bot concludes from: status, outcome, reason."""
    assert answer.is_whole
    return answer.status, answer.outcome, answer.reason


def met(answer: Reply) -> tuple[int, str | None, str | None, int]:
    """Return what a bot is told, and how often its request was sent."""
    return *told(answer), answer.attempts


class Bot:
    """One connection to the gateway."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, raw: bytes) -> None:
        """Write bytes; a gateway that has closed already is no error here."""
        with contextlib.suppress(ConnectionError):
            self._writer.write(raw)
            await self._writer.drain()

    async def send_in_pieces(self, raw: bytes, size: int) -> None:
        """Write bytes piece by piece, so that the gateway reads them so."""
        for start in range(0, len(raw), size):
            await self.send(raw[start : start + size])
            await let_pass(0)

    async def drip(self, piece: bytes, gap_s: float) -> None:
        """Write a piece again and again, until cancelled."""
        while True:
            await self.send(piece)
            await let_pass(gap_s)

    async def reply(self, method: bytes = b"GET", first: bytes | None = None) -> Reply:
        """Read one reply to a request of that method; `first` is its first line, if that was read before."""
        async with asyncio.timeout(PATIENCE_S):
            return await _read_reply(Tape(self._reader), method, first)

    async def ask(self, raw: bytes) -> Reply:
        """Send a request and read its reply."""
        await self.send(raw)
        return await self.reply(raw.split(b" ", 1)[0])

    async def line(self) -> bytes:
        """Read one line, without its CRLF."""
        async with asyncio.timeout(PATIENCE_S):
            return await Tape(self._reader).line()

    async def rest(self) -> bytes:
        """Return what comes until the gateway closes."""
        async with asyncio.timeout(PATIENCE_S):
            try:
                return await Tape(self._reader).to_the_end()
            except CutError as cut:
                return cut.got

    @property
    def unsent(self) -> int:
        """How many bytes the kernel has not taken yet."""
        return self._writer.transport.get_write_buffer_size()

    def half_close(self) -> None:
        """Send FIN, and go on reading."""
        self._writer.write_eof()

    def reset(self) -> None:
        """Be gone, with RST."""
        reset_when_closed(self._writer.get_extra_info("socket"))
        self.hang_up()

    def hang_up(self) -> None:
        """Be gone."""
        self._writer.transport.abort()


async def _read_reply(tape: Tape, method: bytes, first: bytes | None) -> Reply:
    head = await read_head(tape, first)
    version, _, rest = head.line.partition(b" ")
    status, space, phrase = rest.partition(b" ")
    if version != b"HTTP/1.1" or not space or len(status) != 3 or not status.isdigit():
        raise NotHttpError(f"status line {head.line!r}")
    ends_by, body, is_whole = await _read_body(tape, head, is_empty=method == b"HEAD" or status in _EMPTY)
    return Reply(head, int(status), phrase, body, is_whole, ends_by, tape.raw)


async def _read_body(tape: Tape, head: Head, *, is_empty: bool) -> tuple[str, bytes, bool]:
    """Return how the body ended, the body, and whether it is whole (RFC 9112 section 6.3)."""
    stated = framing(head)
    try:
        if is_empty:
            return "none", b"", True
        if stated == "chunked":
            return "chunked", await read_chunked(tape), True
        if isinstance(stated, int):
            return "length", await tape.exactly(stated), True
        return "close", await tape.to_the_end(), True
    except CutError as cut:
        return "close" if stated is None else str(stated), cut.got, False


@contextlib.asynccontextmanager
async def bot_at(host: str, port: int) -> AsyncIterator[Bot]:
    """Connect a bot as long as the block lasts."""
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection(host, port, limit=1 << 20)
    try:
        yield Bot(reader, writer)
    finally:
        writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def request(
    method: bytes = b"GET",
    target: bytes = b"/v1/trade/user/0xabc/positions",
    *fields: bytes,
    body: bytes | None = None,
) -> bytes:
    """Write a request to the gateway; `fields` are whole lines, a body brings its Content-Length."""
    lines = [method + b" " + target + b" HTTP/1.1", b"Host: 127.0.0.1", *fields]
    if body is not None:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + (body or b"")


def check_problem(answer: Reply, status: int, reason: str) -> None:
    """Check all that docs/replies.md says of a reply that the gateway makes itself."""
    assert answer.is_whole
    assert (answer.status, answer.reason, answer.outcome) == (status, reason, "not_sent"), answer.raw
    assert (answer.attempts, answer.text("X-Gateway-Queue-Ms")) == (0, "0")
    assert answer.text("X-Gateway-Request-Id")
    assert answer.text("Content-Type") == "application/problem+json"
    names = [name.lower() for name, _ in answer.fields]
    assert len(names) == len(set(names))
    assert (b"allow" in names, b"www-authenticate" in names) == (status == 405, status == 401)
    assert not any(name.startswith(b"access-control-") for name in names)
    document = answer.document()
    assert set(document) == _MEMBERS
    assert (document["status"], document["reason"]) == (status, reason)
    assert document["request_id"] == answer.text("X-Gateway-Request-Id")
    assert document["title"]
    assert document["detail"]
    assert datetime.fromisoformat(document["timestamp"]).tzinfo is not None
