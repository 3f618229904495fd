"""How many orders end `unknown` at upstreams that close connections while the gateway still uses them.

Four upstreams, each with a habit of real servers. Bots send orders, each to a target of its own, and the
upstream counts what it receives: no order may arrive twice. With `--reads`, one more bot reads at the same
time. The gateway is a process of its own, so that a close and the next request really cross.
"""

import argparse
import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.orders import token
from bench.pages import machine, table
from bench.programs import gateway_environ, running_here, serving
from rig.bot import Bot, bot_at, request

HEAD = ("upstream", "orders", "unknown", "%", "not sent", "received twice", "reads", "reads failed")
_READ_GAP_S = 0.01
_SETTLE_S = 0.3  # after it says that it is ready


@dataclass
class Habit:
    """When an upstream closes, and how bots ask it: `bots` of them, each `orders` times, with pauses between.

    `in_waves` lets all bots send at once, so that as many connections are idle for as long. `after_each`
    closes behind every reply, `idle_s` so long after a reply without another request, `most_idle` behind a
    reply when as many connections are idle already. `keep_alive` is announced in each reply.
    """

    name: str
    bots: int
    orders: int
    pause_s: tuple[float, float]
    in_waves: bool = False
    after_each: bool = False
    idle_s: float | None = None
    most_idle: int | None = None
    keep_alive: bytes = b""
    away_ms: float = 0
    received: Counter[bytes] = field(default_factory=Counter)
    idle: set[asyncio.Transport] = field(default_factory=set)


def habits() -> Sequence[Habit]:
    return (
        Habit("closes after each reply", 8, 20, (0.0, 0.004), after_each=True),
        Habit(
            "Keep-Alive: timeout=1, 50 ms away",
            20,
            10,
            (0.88, 1.03),
            in_waves=True,
            idle_s=1.0,
            keep_alive=b"Keep-Alive: timeout=1\r\n",
            away_ms=50,
        ),
        Habit(
            "20 ms idle unannounced, 5 ms away", 4, 40, (0.012, 0.021), in_waves=True, idle_s=0.02, away_ms=5
        ),
        Habit("at most 4 idle connections", 12, 24, (0.0, 0.02), most_idle=4),
    )


class Server(asyncio.Protocol):
    """One connection of an upstream with a habit."""

    def __init__(self, habit: Habit) -> None:
        self._habit = habit
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._work()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
            self._work()
            self._habit.received[head.split(b" ")[1]] += 1
            self._loop.call_later(0.001, self._answer)

    def _answer(self) -> None:
        body = b'{"serverTime":%d}' % (time.time_ns() // 1_000_000)
        lines = b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n" % (self._habit.keep_alive, len(body))
        self._transport.write(lines + body)
        is_crowded = self._habit.most_idle is not None and len(self._habit.idle) >= self._habit.most_idle
        if self._habit.after_each or is_crowded:
            self._transport.close()
        else:
            self._rest()

    def _rest(self) -> None:
        self._habit.idle.add(self._transport)
        if self._habit.idle_s is not None:
            self._timer = self._loop.call_later(self._habit.idle_s, self._transport.close)

    def _work(self) -> None:
        self._habit.idle.discard(self._transport)
        if self._timer is not None:
            self._timer.cancel()


@contextlib.asynccontextmanager
async def running_server(habit: Habit) -> AsyncIterator[int]:
    """Run the upstream, and yield the port where the gateway finds it."""
    server = await asyncio.get_running_loop().create_server(lambda: Server(habit), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        if not habit.away_ms:
            yield port
            return
        with running_here("distance.py", str(port), str(habit.away_ms)) as way:
            yield way.port


class Bots:
    """What all bots of one run send, and what they get."""

    def __init__(self, habit: Habit, port: int) -> None:
        self._habit = habit
        self._port = port
        self._chance = random.Random(1)
        self.orders: Counter[str | None] = Counter()
        self.reads: Counter[str | None] = Counter()
        self.sent: list[bytes] = []

    async def run(self, *, with_reads: bool) -> None:
        async with contextlib.AsyncExitStack() as ends:
            connecting = [bot_at("127.0.0.1", self._port) for _ in range(self._habit.bots)]
            bots = [await ends.enter_async_context(one) for one in connecting]
            if with_reads:
                reading = asyncio.create_task(self._read())
                ends.callback(reading.cancel)
            groups = [bots] if self._habit.in_waves else [[bot] for bot in bots]
            await asyncio.gather(*(self._trade(group, number) for number, group in enumerate(groups)))

    async def _trade(self, group: Sequence[Bot], number: int) -> None:
        for wave in range(self._habit.orders):
            targets = [b"/v1/trade/order/%d-%d-%d" % (number, wave, at) for at in range(len(group))]
            await asyncio.gather(*map(self._order, group, targets))
            await asyncio.sleep(self._chance.uniform(*self._habit.pause_s))

    async def _order(self, bot: Bot, target: bytes) -> None:
        self.sent.append(target)
        answer = await bot.ask(_signed(b"DELETE", target))
        self.orders[answer.outcome] += 1

    async def _read(self) -> None:
        async with bot_at("127.0.0.1", self._port) as bot:
            while True:
                answer = await bot.ask(_signed(b"GET", b"/v1/trade/order/read"))
                self.reads[answer.outcome] += 1
                await asyncio.sleep(_READ_GAP_S)


def _signed(method: bytes, target: bytes) -> bytes:
    return request(method, target, b"Authorization: Bearer " + token(0).encode())


async def measure(habit: Habit, folder: Path, *, with_reads: bool) -> Sequence[str]:
    """Run one upstream and return its row."""
    async with running_server(habit) as port:
        environ = gateway_environ(f"http://127.0.0.1:{port}")
        starting = serving(folder, environ, until="ready")
        way = await asyncio.to_thread(starting.__enter__)
        try:
            await asyncio.sleep(_SETTLE_S)
            bots = Bots(habit, way.port)
            await bots.run(with_reads=with_reads)
        finally:
            await asyncio.to_thread(starting.__exit__, None, None, None)
    total = sum(bots.orders.values())
    twice = sum(habit.received[target] > 1 for target in bots.sent)
    unknown = bots.orders["unknown"]
    reads_failed = sum(count for outcome, count in bots.reads.items() if outcome != "done")
    share = f"{100 * unknown / total:.1f}"
    cells = (total, unknown, share, bots.orders["not_sent"], twice, sum(bots.reads.values()), reads_failed)
    return habit.name, *map(str, cells)


async def report(runs: int, *, with_reads: bool) -> str:
    rows: list[Sequence[str]] = []
    for habit in (one for _ in range(runs) for one in habits()):
        with TemporaryDirectory() as folder:
            rows.append(await measure(habit, Path(folder), with_reads=with_reads))
    return f"{machine()}\n\n{table(HEAD, rows)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1, help="how often each upstream is measured")
    parser.add_argument("--reads", action="store_true", help="let another bot read at the same time")
    options = parser.parse_args()
    print(asyncio.run(report(options.runs, with_reads=options.reads)))


if __name__ == "__main__":
    main()
