"""An upstream on bare sockets: it keeps every byte that it gets and answers from a script, faults included.

An act is what it does once it has read a request (or, for `unread_acts`, its first line). The script is a
queue of acts, one per request, then `otherwise`; or any function from a request to an act. `/v1/trade/time`
is answered with its own clock, unless `time` is replaced, and is not counted among `received`.
"""

import asyncio
import contextlib
import itertools
import socket
import ssl
import struct
import time  # noqa: TID251 - the upstream has a clock of its own
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from rig.wire import (
    OK,
    OK_HEAD,
    PATIENCE_S,
    CutError,
    Fields,
    Head,
    NotHttpError,
    Tape,
    framing,
    read_chunked,
    read_head,
)
from rig.wire import reply as write_reply

TIME = b"/v1/trade/time"
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 seconds: close() sends RST


@dataclass(frozen=True)
class Received:
    """One whole request. `at` is seconds on the loop's clock, `at_ms` the upstream's own epoch time."""

    raw: bytes
    head: Head
    method: bytes
    target: bytes
    body: bytes
    connection: int
    at: float
    at_ms: int

    @property
    def fields(self) -> Fields:
        """The fields in their order and spelling."""
        return self.head.fields


class Wire:
    """The upstream's end of a connection, as acts use it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        self.reader = reader
        self.writer = writer
        self.number = number
        self.is_open = True

    async def write(self, raw: bytes) -> None:
        """Write and hand over to the kernel."""
        with contextlib.suppress(ConnectionError):
            self.writer.write(raw)
            await self.writer.drain()

    async def close(self) -> None:
        """Close as one should: with close_notify under TLS, then FIN."""
        self.is_open = False
        self.writer.close()

    def abort(self) -> None:
        """FIN without more ado: under TLS there is no close_notify."""
        self.is_open = False
        self.writer.transport.abort()

    def reset(self) -> None:
        """Send RST."""
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.abort()

    async def peer_gone(self) -> None:
        """Return when the gateway has given the connection up."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(1 << 16):
                pass
        self.abort()


Act = Callable[[Wire], Awaitable[None]]
Script = Callable[[Received], Act]


def say(raw: bytes) -> Act:
    """Answer, and keep the connection."""

    async def act(wire: Wire) -> None:
        await wire.write(raw)

    return act


def say_and_close(raw: bytes = b"") -> Act:
    """Answer with these bytes, whole or not, then close as one should."""

    async def act(wire: Wire) -> None:
        await wire.write(raw)
        await wire.close()

    return act


def say_and_abort(raw: bytes = b"") -> Act:
    """Answer with these bytes, then FIN without close_notify."""

    async def act(wire: Wire) -> None:
        await wire.write(raw)
        wire.abort()

    return act


def say_and_reset(raw: bytes = b"") -> Act:
    """Answer with these bytes, then RST."""

    async def act(wire: Wire) -> None:
        await wire.write(raw)
        wire.reset()

    return act


def say_and_stall(raw: bytes = b"") -> Act:
    """Answer with these bytes and then nothing more, until the gateway gives up."""

    async def act(wire: Wire) -> None:
        await wire.write(raw)
        await wire.peer_gone()

    return act


def drip(raw: bytes, gap_s: float = 0.01) -> Act:
    """Answer byte by byte, and begin again at the end, until the gateway gives up."""

    async def act(wire: Wire) -> None:
        gone = asyncio.ensure_future(wire.peer_gone())
        for octet in itertools.cycle(raw):
            await wire.write(bytes((octet,)))
            await asyncio.wait((gone,), timeout=gap_s)
            if gone.done():
                return

    return act


def hold_until(event: asyncio.Event, then: Act) -> Act:
    """Wait for the test's sign before acting."""

    async def act(wire: Wire) -> None:
        await event.wait()
        await then(wire)

    return act


@dataclass(repr=False)
class Upstream:
    """A running upstream. See `running_upstream`."""

    port: int = 0
    is_tls: bool = False
    skew_ms: int = 0
    otherwise: Act | None = None
    """What answers when `answers` is empty; without it, 200."""
    script: Script | None = None
    time: Act | None = None
    unread_acts: deque[Act] = field(default_factory=deque)
    """Acts for the next requests, done after their first line: the rest is not read, `unread` counts them."""
    answers: deque[Act] = field(default_factory=deque)
    received: list[Received] = field(default_factory=list)
    asked_time: list[Received] = field(default_factory=list)
    connections: int = 0
    broken: list[Exception] = field(default_factory=list)
    """What came that was no HTTP; must stay empty."""
    unread: int = 0
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)
    _wires: set[Wire] = field(default_factory=set)

    @property
    def base_url(self) -> str:
        """Where the gateway finds it."""
        return f"{'https' if self.is_tls else 'http'}://127.0.0.1:{self.port}"

    def now_ms(self) -> int:
        """Return the upstream's own epoch time."""
        return time.time_ns() // 1_000_000 + self.skew_ms

    def time_reply(self, *fields: bytes) -> bytes:
        """Return what `/v1/trade/time` answers now."""
        body = b'{"serverTime":%d}' % self.now_ms()
        return write_reply(b"200 OK", body, b"Content-Type: application/json", *fields)

    def receipts(self, target: bytes) -> int:
        """Count how often a target was received."""
        return sum(1 for request in self.received if request.target == target)

    async def until_received(self, count: int) -> Received:
        """Wait for the request of that number, from 1."""
        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(lambda: len(self.received) >= count)
        return self.received[count - 1]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.connections += 1
        wire = Wire(reader, writer, self.connections)
        self._wires.add(wire)
        try:
            while wire.is_open:
                await self._serve_one(wire)
        except (CutError, ConnectionError, asyncio.CancelledError):
            pass
        except (NotHttpError, AssertionError, ValueError) as error:
            self.broken.append(error)
        finally:
            self._wires.discard(wire)
            writer.close()

    async def _serve_one(self, wire: Wire) -> None:
        tape = Tape(wire.reader)
        line = await tape.line()
        is_time = line == b"GET " + TIME + b" HTTP/1.1"
        if self.unread_acts and not is_time:
            self.unread += 1
            await self.unread_acts.popleft()(wire)
            return
        request = await self._read(tape, await read_head(tape, line), wire)
        if is_time:
            self.asked_time.append(request)
            await (self.time or say(self.time_reply()))(wire)
        else:
            await self._note(request)
            await self._next_act(request)(wire)

    async def _read(self, tape: Tape, head: Head, wire: Wire) -> Received:
        method, target, version = head.line.split(b" ")
        if version != b"HTTP/1.1":
            raise NotHttpError(f"version {version!r}")
        length = framing(head)
        body = b""
        if length == "chunked":
            body = await read_chunked(tape)
        elif isinstance(length, int):
            body = await tape.exactly(length)
        now = asyncio.get_running_loop().time()
        return Received(tape.raw, head, method, target, body, wire.number, now, self.now_ms())

    async def _note(self, request: Received) -> None:
        self.received.append(request)
        async with self._news:
            self._news.notify_all()

    def _next_act(self, request: Received) -> Act:
        if self.script is not None:
            return self.script(request)
        if self.answers:
            return self.answers.popleft()
        return self.otherwise or say(OK_HEAD if request.method == b"HEAD" else OK)

    def cut_all(self) -> None:
        """Break every connection."""
        for wire in list(self._wires):
            wire.reset()


@contextlib.asynccontextmanager
async def running_upstream(tls: ssl.SSLContext | None = None, port: int = 0) -> AsyncIterator[Upstream]:
    """Run an upstream as long as the block lasts. What it got must have been HTTP throughout."""
    upstream = Upstream(is_tls=tls is not None)
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", port, ssl=tls, limit=1 << 20)
    upstream.port = server.sockets[0].getsockname()[1]
    try:
        yield upstream
    finally:
        server.close()
        upstream.cut_all()
        async with asyncio.timeout(PATIENCE_S):
            await server.wait_closed()
    assert upstream.broken == []
