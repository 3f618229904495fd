"""Fuzz what streams carry: messages of odd sizes, cut at odd places, both ways, until somebody closes.

    scripts/bench fuzz_streams --messages 10000000

Bots and exchange are this process, the gateway is one of its own. Each message has its number at its start,
is split into frames at random, with pings between these, and written in pieces; readers stop now and then.
What arrives must be what was sent, in order, with nothing lost or doubled, and all of it unless somebody
reset the connection, or closed it on the sender, or the bot was gone without a close frame. A close arrives
with its code and reason; where the exchange is gone without one, 1012. Half of the streams are passed on
unread; on the others, Bybit's orders, the bot logs in, and the gateway reads what it sends. The first
violation ends the run; the same seed makes the same messages. With --way "aiohttp proxy", that one stands in
the gateway's place, for comparison: what it loses when a stream ends is counted, but not held against it.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import uvloop

from bench.fuzz_target import FoundError
from bench.process import Way, resident_mb
from bench.programs import COMPILED, DIRECT, GATEWAY, running_here, serving, setting_environ
from bench.rivals import API_KEY, Setting
from bench.stream_load import AUTHORISED
from bench.stream_ways import PROXY
from rig.acts import reset_when_closed
from rig.websocket import (
    BINARY,
    CLOSE,
    PING,
    PONG,
    TEXT,
    FrameReader,
    NotFramesError,
    accepted,
    close_frame,
    code_and_reason,
    frame,
    upgrade,
)
from rig.wire import reply

HOST = "stream.bybit.com"
UNREAD, READ = "/v5/public/linear", "/v5/trade"
PATIENCE_S = 60.0
AT_ONCE = 8  # streams
GONE = 1012
CODES = (1000, 1001, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4321, 4999)
REASONS = ("", "bye", "später, ☂", "x" * 123, "reason: with a detail")
_COMPLETE = ("finished", "close")
ENDINGS = ("finished", "finished", "close", "close", "reset", "end")
_POOL = Random(38).randbytes(1 << 19)
_LETTERS = "".join(Random(38).choices("abcdefgh {}[]:,0123456789äß€☂\U0001f600", k=1 << 18))
_LOGIN = b'{"op":"auth","reqId":"in","args":["dummy",1,"made up"]}'


@dataclass(frozen=True)
class Plan:
    """One stream: `many` messages from the bot and from the exchange, and how it ends.

    `ender` is 0 for the bot, 1 for the exchange. It ends when all has arrived ("finished"), or when it has
    sent its own: by a close frame, by RST, or by FIN without one, perhaps in the middle of a frame.
    """

    number: int
    seed: int
    is_read: bool
    many: tuple[int, int]
    ender: int
    ending: str
    code: int
    reason: str
    cuts: bool


def draw_plan(number: int, chance: Random, most: int) -> Plan:
    ending = chance.choice(ENDINGS)
    return Plan(
        number,
        chance.randrange(1 << 32),
        chance.random() < 0.5,
        (int(most ** chance.random()), int(most ** chance.random())),
        chance.randrange(2),
        ending,
        chance.choice(CODES),
        chance.choice(REASONS),
        chance.random() < 0.5,
    )


def size_of(chance: Random) -> int:
    """Draw the size of a message: 1 byte to 200 KB, few above 1 KB, and often one at which a head grows."""
    kind = chance.random()
    if kind < 0.7:
        return 1 + int(200 * kind)
    if kind < 0.985:
        return 100 + int(900 * chance.random())
    if kind < 0.995:
        return chance.choice((125, 126, 127, 4096, 16384))
    return chance.choice((65535, 65536, chance.randint(1000, 20_000), chance.randint(20_000, 200_000)))


def message(number: int, chance: Random, *, is_json: bool) -> tuple[int, bytes]:
    """Write a message: its opcode, and its number and some bytes."""
    size, at = size_of(chance), chance.getrandbits(18)
    if is_json:
        size = min(size, 60_000)
        return TEXT, b'{"op":"ping","n":%d,"x":"%b"}' % (number, b"p" * size)
    if chance.random() < 0.5:
        return BINARY, (number.to_bytes(4, "little") + _POOL[at : at + size])[:size]
    letters = str(number)[::-1] + _LETTERS[at : at + size]
    return TEXT, letters[:size].encode()


class End(asyncio.Protocol):
    """One end of a stream: what it sent that has not arrived yet, and what came.

    `other` is the far end; `closed_by` is what a close frame said, None before one.
    """

    def __init__(self, *, is_bot: bool) -> None:
        self.is_bot = is_bot
        self.other: End | None = None
        self.unseen: deque[tuple[int, bytes]] = deque()  # sent, and not yet arrived at the other end
        self.unanswered: deque[bytes] = deque()  # pings
        self.pongs: list[bytes] = []
        self.is_silent = self.is_writing = False
        self.closed_by: tuple[int, str] | None = None
        self.close_payload = b""
        self.came = 0
        self.changed = asyncio.Event()
        self.is_lost = False
        self.is_open = False
        self.is_draining = asyncio.Event()
        self.is_draining.set()
        self.fault: Exception | None = None
        self.reader = FrameReader(is_masked=not is_bot)
        self.head = self.rest = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport

    def pause_writing(self) -> None:
        self.is_draining.clear()

    def resume_writing(self) -> None:
        self.is_draining.set()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.is_lost = True
        self.is_draining.set()
        self.changed.set()

    def data_received(self, data: bytes) -> None:
        if not self.is_open:
            self.head += data
            end = self.head.find(b"\r\n\r\n") + 4
            if end < 4:
                return
            self.head, data = self.head[:end], self.head[end:]
            self.rest = data
            self.is_open = True
            self.begin()
        try:
            for opcode, payload in self.reader.feed(data):
                self.take(opcode, payload)
        except (FoundError, NotFramesError) as error:
            self.fault = self.fault or error
            self.transport.abort()
        self.changed.set()

    def begin(self) -> None:
        """Note that the handshake is over."""

    def take(self, opcode: int, payload: bytes) -> None:
        """Hold an event against what the other end sent. Raises FoundError."""
        assert self.other is not None
        if self.closed_by is not None:
            raise FoundError(f"opcode {opcode} behind a close")
        if opcode in (TEXT, BINARY):
            if not self.other.unseen:
                raise FoundError(f"message {self.came} was never sent: {payload[:60]!r}")
            sent_opcode, sent = self.other.unseen.popleft()
            if opcode != sent_opcode or payload != sent:
                raise FoundError(
                    f"message {self.came} is {opcode} {payload[:60]!r} ({len(payload)} bytes),"
                    f" not {sent_opcode} {sent[:60]!r} ({len(sent)})"
                )
            self.came += 1
        elif opcode == PING:
            self.pongs.append(frame(PONG, payload, mask=self.mask()))
            self.answer_pings()
        elif opcode == PONG:
            if not self.unanswered or payload != self.unanswered.popleft():
                raise FoundError(f"the pong {payload!r} answers no ping, or not the next one")
        elif opcode == CLOSE:
            self.closed_by, self.close_payload = code_and_reason(payload), payload

    def answer_pings(self) -> None:
        """Send what pongs wait, unless a frame is being written."""
        if not self.is_writing and not self.is_silent and not self.is_lost:
            self.transport.write(b"".join(self.pongs))
            self.pongs.clear()

    def write(self, data: bytes) -> None:
        """Write bytes, unless the connection is lost."""
        if not self.is_lost:
            self.transport.write(data)

    def mask(self) -> bytes:
        """Return the mask of a frame of this end."""
        return b"\x37\xfa\x21\x3d" if self.is_bot else b""

    @property
    def is_over(self) -> bool:
        """Whether nothing more can be sent."""
        return self.is_lost or self.closed_by is not None or self.fault is not None

    async def until(self, *ends: "End") -> None:
        """Wait until something has come to one of the ends."""
        waits = [asyncio.ensure_future(end.changed.wait()) for end in ends]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


class ExchangeEnd(End):
    """The exchange's end: it answers the upgrade, or a request for its time."""

    def __init__(self, waiting: dict[int, "asyncio.Future[End]"]) -> None:
        super().__init__(is_bot=False)
        self._waiting = waiting

    def begin(self) -> None:
        """Answer, and tell the course of it."""
        if b"upgrade: websocket" not in self.head.lower():
            now = time.time_ns() // 1_000_000
            self.transport.write(reply(b"200 OK", b'{"retCode":0,"result":{},"time":%d}' % now))
            self.head, self.is_open = b"", False
            return
        self.transport.write(accepted(self.head))
        waits = self._waiting[int(self.head.split(b" ", 2)[1].rpartition(b"=")[2])]
        if not waits.done():
            waits.set_result(self)


class Speaker:
    """Sends what one end has to say."""

    def __init__(self, end: End, plan: Plan) -> None:
        self.end, self.plan = end, plan
        self.chance = Random(plan.seed + end.is_bot)
        self.left = plan.many[0 if end.is_bot else 1]
        self.number = 0
        self.is_json = plan.is_read and end.is_bot

    def mask(self) -> bytes:
        """Draw a mask."""
        return self.chance.randbytes(4) if self.end.is_bot else b""

    def frames_of(self, opcode: int, payload: bytes) -> Iterator[bytes]:
        """Write a message as frames, with pings between them."""
        chance = self.chance
        if chance.random() < 0.85:
            yield frame(opcode, payload, mask=self.mask())
            return
        cuts = sorted(chance.randint(0, len(payload)) for _ in range(chance.choice((1, 1, 2, 5))))
        places = [0, *cuts, len(payload)]
        for at, (start, end) in enumerate(pairwise(places)):
            is_last = at == len(cuts)
            yield frame(0 if at else opcode, payload[start:end], fin=is_last, mask=self.mask())
            if not is_last and chance.random() < 0.2:
                yield self.ping()

    def ping(self) -> bytes:
        """Write a ping."""
        payload = b"%d." % self.number + _POOL[: self.chance.choice((0, 3, 100))]
        self.end.unanswered.append(payload)
        return frame(PING, payload, mask=self.mask())

    def burst(self) -> bytes:
        """Write a few messages."""
        chance, parts = self.chance, list[bytes]()
        for _ in range(min(self.left, chance.choice((1, 3, 20, 60)))):
            whole = message(self.number, chance, is_json=self.is_json)
            self.end.unseen.append(whole)
            parts += self.frames_of(*whole)
            if chance.random() < 0.02:
                parts.append(self.ping())
            self.number += 1
            self.left -= 1
        return b"".join(parts)

    async def write(self, data: bytes) -> None:
        """Write bytes, mostly in pieces, as fast as they are taken."""
        chance, end = self.chance, self.end
        cuts = sorted(chance.randint(0, len(data)) for _ in range(chance.choice((0, 0, 1, 2, 9))))
        places = [0, *cuts, len(data)]
        for start, stop in pairwise(places):
            await end.is_draining.wait()
            if end.is_lost or end.fault:
                return
            end.write(data[start:stop])
            await asyncio.sleep(0)

    async def speak(self) -> None:
        """Send all messages, as long as the other side is there."""
        while self.left and not self.end.is_over:
            self.end.is_writing = True
            await self.write(self.burst())
            self.end.is_writing = False
            self.end.answer_pings()
            if self.chance.random() < 0.01 and not self.end.is_lost:
                self.end.transport.pause_reading()
                await asyncio.sleep(self.chance.uniform(0, 0.02))
                if not self.end.is_lost:
                    self.end.transport.resume_reading()


class Course:
    """One stream, from its opening to its end."""

    def __init__(self, plan: Plan, figures: Counter[str], *, is_gateway: bool) -> None:
        self.plan, self.figures, self.is_gateway = plan, figures, is_gateway

    async def run(self, port: int, prefix: str, exchange: "asyncio.Future[End]") -> int:
        """Play it; return how many messages arrived. Raises FoundError."""
        plan, loop = self.plan, asyncio.get_running_loop()
        bot = End(is_bot=True)
        await loop.create_connection(lambda: bot, "127.0.0.1", port)
        path = READ if plan.is_read else UNREAD
        bot.write(upgrade(f"{prefix}{path}?course={plan.number}", AUTHORISED))
        async with asyncio.timeout(PATIENCE_S):
            while not bot.is_open and not bot.is_lost:
                bot.changed.clear()
                await bot.until(bot)
            if not bot.head.startswith(b"HTTP/1.1 101 "):
                raise FoundError(f"the upgrade was answered with {bot.head + bot.rest!r}")
            far = await exchange
        bot.other, far.other = far, bot
        ends = (bot, far)
        if plan.is_read and self.is_gateway:
            await self.log_in(bot, far)
        speakers = [Speaker(end, plan) for end in ends]
        talks = [asyncio.create_task(speaker.speak()) for speaker in speakers]
        ender, other = ends[plan.ender], ends[1 - plan.ender]
        if plan.ending == "finished":
            await asyncio.gather(*talks)
            await self.wait(ends, lambda: not any(end.unseen or end.unanswered for end in ends))
        else:
            await talks[plan.ender]
        if ender.fault is None and not ender.is_over:
            self.end(ender, speakers[plan.ender])
            await self.wait(ends, lambda: other.is_over)
            if other.closed_by is not None and not other.is_lost:
                await talks[1 - plan.ender]
                other.is_silent = True
                other.write(frame(CLOSE, other.close_payload, mask=other.mask()))
            if plan.ending in _COMPLETE:
                await self.wait(ends, lambda: ender.is_lost or ender.closed_by is not None)
        for end in ends:
            end.transport.close()
        await self.wait(ends, lambda: bot.is_lost and far.is_lost)
        await asyncio.gather(*talks)
        self.check(ender, other)
        return bot.came + far.came

    async def log_in(self, bot: End, far: End) -> None:
        """Log in with made-up credentials; the exchange gets the key's."""
        got: list[bytes] = []
        take_far, take_bot = far.take, bot.take

        def take(opcode: int, payload: bytes) -> None:
            del opcode
            got.append(payload)

        far.take = bot.take = take  # type: ignore[method-assign]
        bot.write(frame(TEXT, _LOGIN, mask=bot.mask()))
        await self.wait((bot, far), lambda: len(got) == 1)
        args = json.loads(got[0])["args"]
        if args[0] != API_KEY or args[2] == "made up":
            raise FoundError(f"the login arrived as {got[0]!r}")
        far.write(frame(TEXT, b'{"retCode":0,"op":"auth","reqId":"in"}'))
        await self.wait((bot, far), lambda: len(got) == 2)
        far.take, bot.take = take_far, take_bot  # type: ignore[method-assign]

    def end(self, ender: End, speaker: Speaker) -> None:
        """Let one side end the stream as the plan says."""
        plan = self.plan
        ender.is_silent = True
        if plan.ending in _COMPLETE:
            ender.write(close_frame(plan.code, plan.reason, ender.mask()))
            return
        if plan.cuts:
            opcode, payload = message(speaker.number, speaker.chance, is_json=speaker.is_json)
            data = frame(opcode, payload, mask=speaker.mask())
            ender.write(data[: speaker.chance.randint(1, len(data) - 1)])
        if plan.ending == "reset":
            reset_when_closed(ender.transport.get_extra_info("socket"))
            ender.transport.abort()
        else:
            ender.transport.write_eof()  # and reads on: to close with bytes unread would be a reset

    async def wait(self, ends: tuple[End, End], is_so: Callable[[], bool]) -> None:
        """Wait for a state, or a fault. Raises FoundError after a minute without news."""
        while not is_so() and not any(end.fault for end in ends):
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await ends[0].until(*ends)
            except TimeoutError:
                states = [(len(end.unseen), end.came, end.closed_by, end.is_lost) for end in ends]
                raise FoundError(f"nothing comes any more; unseen, came, closed, lost: {states}") from None
            for end in ends:
                end.changed.clear()

    def check(self, ender: End, other: End) -> None:
        """Hold the end of a stream against the plan. Raises FoundError."""
        plan = self.plan
        for end in (ender, other):
            if end.fault:
                raise FoundError(f"{'bot' if end.is_bot else 'exchange'}: {end.fault}")
        whose = "the exchange" if plan.ender else "the bot"
        name = f"{plan.ending} by {whose}"
        self.figures[name] += 1
        is_complete = plan.ending in _COMPLETE or (plan.ending == "end" and not ender.is_bot)
        if ender.unseen and is_complete and self.is_gateway:
            raise FoundError(f"{len(ender.unseen)} messages did not arrive: {ender.unseen[0][1][:60]!r} ...")
        if plan.ending == "finished" and (other.unseen or ender.unanswered or other.unanswered):
            raise FoundError("not all arrived")
        if plan.ending in _COMPLETE:
            if other.closed_by != (plan.code, plan.reason) and (self.is_gateway or other.closed_by):
                raise FoundError(f"{plan.code} {plan.reason!r} arrived as {other.closed_by}")
            self.figures[f"{name}: answered with {_code(ender)}"] += 1
        elif other.is_bot and other.closed_by is not None and other.closed_by[0] != GONE:
            raise FoundError(f"the exchange was gone, and the bot was told {other.closed_by}")
        else:
            self.figures[f"{name}: the other side was told {_code(other)}"] += 1
        for end, words in ((ender, "it had sent"), (other, "it had not got")):
            if end.unseen:
                self.figures[f"{name}: streams of which messages were lost that {words}"] += 1


def _code(end: End) -> str:
    if end.closed_by is None:
        return "nothing"
    return "its code" if end.closed_by[0] in CODES and end.closed_by[0] != GONE else str(end.closed_by[0])


class Fuzz:
    """A run: streams through one way, some at once, until enough messages have arrived."""

    def __init__(self, seed: int, most: int) -> None:
        self.seed, self.most = seed, most
        self.figures: Counter[str] = Counter()
        self.came = self.number = 0
        self.waiting: dict[int, asyncio.Future[End]] = {}

    async def run(self, options: argparse.Namespace) -> None:
        """Play streams until there are enough. Raises FoundError."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: ExchangeEnd(self.waiting), "127.0.0.1", 0, backlog=1024)
        port = server.sockets[0].getsockname()[1]
        ends_at = time.monotonic() + 60 * options.minutes
        with TemporaryDirectory() as folder, running_way(options.way, port, Path(folder)) as way:
            at_rest_mb = resident_mb(way.pid)
            async with asyncio.TaskGroup() as players:
                for _ in range(AT_ONCE):
                    players.create_task(self._play(way, options, ends_at))
            figures = f"{at_rest_mb:.0f} MB at rest, {resident_mb(way.pid):.0f} MB at the end"
            print(f"{self.came:,} messages, {self.number:,} streams; RSS {figures}")
        server.close()

    async def _play(self, way: Way, options: argparse.Namespace, ends_at: float) -> None:
        is_gateway = options.way in (GATEWAY, COMPILED)
        while self.came < options.messages and time.monotonic() < ends_at:
            self.number += 1
            plan = draw_plan(self.number, Random(f"{self.seed}/{self.number}"), self.most)
            exchange = self.waiting[plan.number] = asyncio.get_running_loop().create_future()
            course = Course(plan, self.figures, is_gateway=is_gateway)
            try:
                prefix = f"/{HOST}" if is_gateway else ""
                came = await course.run(way.port, prefix, exchange)
            except FoundError as found:
                raise FoundError(f"seed {self.seed}, {plan}: {found}") from None
            self.came += came
            del self.waiting[plan.number]
            if self.number % 100 == 0:
                print(f"{self.came:,} messages, {self.number:,} streams", file=sys.stderr, flush=True)


@contextmanager
def running_way(name: str, port: int, folder: Path) -> Iterator[Way]:
    """Run a gateway with one bot at Bybit, or the aiohttp proxy; streams and requests go to `port`."""
    if name == DIRECT:
        yield Way(port, os.getpid())
        return
    if name == PROXY:
        with running_here("stream_proxy.py", f"http://127.0.0.1:{port}") as way:
            yield way
        return
    environ = {
        **setting_environ(name, Setting(f"127.0.0.1:{port}"), folder),
        "SEALGATE_VENUE": "bybit",
        "SEALGATE_UPSTREAM__STREAMS": f"ws://127.0.0.1:{port}",
        "SEALGATE_LIMITS__STREAM_OPENS": "1000000/1s",
    }
    with serving(folder, environ) as way:
        try:
            yield way
        except BaseException:
            print((folder / "gateway.log").read_text()[-4000:], file=sys.stderr)
            raise


def main() -> None:
    parser = argparse.ArgumentParser(description="Fuzz what streams carry, and how they end.")
    parser.add_argument("--messages", type=int, default=10_000_000, help="over all streams (10 million)")
    parser.add_argument("--minutes", type=float, default=60.0, help="at most (60)")
    parser.add_argument("--most", type=int, default=20_000, help="messages one way in one stream (20,000)")
    parser.add_argument("--way", choices=(GATEWAY, COMPILED, PROXY, DIRECT), default=GATEWAY)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    fuzz = Fuzz(options.seed, options.most)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            runner.run(fuzz.run(options))
        except* FoundError as found:
            sys.exit("\n".join(map(str, found.exceptions)))
    for name, figure in sorted(fuzz.figures.items()):
        print(f"{figure:8,} {name}")


if __name__ == "__main__":
    main()
