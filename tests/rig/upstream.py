"""An upstream on bare sockets: it keeps every byte that it gets and answers from a script, faults included.

An act (rig/acts.py) is what it does once it has read a request (or, for `unread_acts`, its first line). The
script is a queue of acts, one per request, then `otherwise`; or any function from a request to an act. What
goes wrong before that is the door's (rig/door.py). `/v1/trade/time` is answered with its own clock, unless
`time` is replaced, and is not counted among `received`.
"""

import asyncio
import contextlib
import ssl
import time  # noqa: TID251 - the upstream has a clock of its own
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from rig.acts import (
    Act,
    Wire,
    drip,
    hold_until,
    say,
    say_and_abort,
    say_and_close,
    say_and_reset,
    say_and_stall,
)
from rig.door import Door
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

__all__ = [
    "Act",
    "Received",
    "Script",
    "Upstream",
    "Wire",
    "drip",
    "hold_until",
    "running_upstream",
    "say",
    "say_and_abort",
    "say_and_close",
    "say_and_reset",
    "say_and_stall",
]

TIME = b"/v1/trade/time"


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


Script = Callable[[Received], Act]
Early = Callable[[bytes], Act | None]


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
    early: Early | None = None
    """Asked with each first line once `unread_acts` is empty; what it returns is done likewise."""
    answers: deque[Act] = field(default_factory=deque)
    received: list[Received] = field(default_factory=list)
    asked_time: list[Received] = field(default_factory=list)
    connections: int = 0
    broken: list[Exception] = field(default_factory=list)
    """What came that was no HTTP; must stay empty."""
    unread: int = 0
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)
    _wires: set[Wire] = field(default_factory=set)
    _door: Door | None = None

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

    @property
    def door(self) -> Door:
        """Where it listens."""
        assert self._door is not None
        return self._door

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
        if not is_time and (act := self._unread_act(line)) is not None:
            self.unread += 1
            await act(wire)
            return
        request = await self._read(tape, await read_head(tape, line), wire)
        if is_time:
            self.asked_time.append(request)
            await (self.time or say(self.time_reply()))(wire)
        else:
            await self._note(request)
            await self._next_act(request)(wire)

    def _unread_act(self, line: bytes) -> Act | None:
        if self.unread_acts:
            return self.unread_acts.popleft()
        return None if self.early is None else self.early(line)

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

    @property
    def closed(self) -> int:
        """How many connections there were that are no more."""
        return self.connections - len(self._wires)

    def cut_all(self) -> None:
        """Break every connection."""
        for wire in list(self._wires):
            wire.reset()


@contextlib.asynccontextmanager
async def running_upstream(tls: ssl.SSLContext | None = None, port: int = 0) -> AsyncIterator[Upstream]:
    """Run an upstream as long as the block lasts. What it got must have been HTTP throughout."""
    upstream = Upstream(is_tls=tls is not None)
    upstream._door = door = Door(upstream.serve, tls)
    door.open(port)
    upstream.port = door.port
    try:
        yield upstream
    finally:
        upstream.cut_all()
        await door.close()
    assert upstream.broken == []
