"""Does anything grow? Some minutes of load with every fault against `sealgate serve`, seen from outside.

Bots send orders, cancels and reads, half of the orders with an Idempotency-Key, some hang up; the
upstream does all that rig/faults.py has, over its connections comes the weather of rig/mischief.py, there is
a journal, the limit is shared through a Redis that dies or hangs now and then, and an operator reloads and
rotates the secret. The line through the second half of the readings says whether something grows.

Then the slow ones: 300 bots that drip or do not read, and 100 MB to one that reads slowly. What do the
others wait, and what does it cost in memory? Exits with 1 where something grows or a bound is broken.
"""

import argparse
import asyncio
import contextlib
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import quantiles
from tempfile import TemporaryDirectory

from bench.pages import machine, table
from bench.process import allow_many_connections, resident_mb
from bench.soak_figures import LATENCY_HEAD, Samples, latency_row, report
from rig.acts import Act, pour, say
from rig.bot import Bot, request
from rig.faults import whole
from rig.mischief import Mischief, stop
from rig.redis import RedisServer, running_redis
from rig.served import Served, environ, running_served
from rig.slow import address_of, slow_bots
from rig.upstream import Script, Upstream, running_upstream
from rig.wire import OK, CutError, let_pass

BOTS, SLOW_OF_EACH_KIND, LARGE_MB = 32, 100, 100
READ = request()
LARGE = request(target=b"/v1/trade/large")
METHODS = (b"POST", b"DELETE", b"GET")
SLOW_S = 8.0  # how long the others are looked at
_PIECE, _GAP_S = 1 << 18, 0.02  # of the slow reader: 13 MB/s
_MOST_P99_S, _MOST_GROWTH_MB = 1.0, 40.0
SETTINGS = {
    "UPSTREAM__TOTAL_TIMEOUT": "0.5",
    "UPSTREAM__CONNECT_TIMEOUT": "0.2",
    "LIMITS__MAX_WAIT": "2",
    "JOURNAL__KEEP": "20",  # so that what is remembered is full long before the second half
}
WITHOUT = ("pause",)  # 429s that follow no rule teach the gateway a limit so low that little is sent
OPERATED_EACH_S, REDIS_AWAY_S = 5.0, 3.0
PATIENT = {"LISTEN__HEAD_TIMEOUT": "600", "LISTEN__BODY_TIMEOUT": "600"}


@dataclass
class Load:
    """Bots that trade until cancelled."""

    served: Served
    chance: Random
    count: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)

    async def trade(self, name: int) -> None:
        while True:
            with contextlib.suppress(ConnectionError, CutError):
                async with self.served.bot() as bot:
                    for _ in range(self.chance.randrange(1, 60)):
                        await self._order(bot, name)

    async def _order(self, bot: Bot, name: int) -> None:
        self.count += 1
        target = b"/v1/trade/order/%d-%d" % (name, self.count)
        keys = (b"Idempotency-Key: %d-%d" % (name, self.count),) if self.chance.random() < 0.5 else ()
        method = self.chance.choice(METHODS)
        raw = request(method, target, *keys, body=None if method == b"GET" else b"{}")
        if self.chance.random() < 0.05:
            await bot.send(raw)
            bot.hang_up()
            raise ConnectionResetError
        answer = await bot.ask(raw)
        self.outcomes[str(answer.outcome)] += 1
        if not answer.is_whole:
            raise ConnectionResetError


@dataclass
class Operator:
    """Reloads, new secrets, and outages of Redis, one after the other until cancelled."""

    served: Served
    redis: RedisServer
    secret: Path
    chance: Random
    deeds: Counter[str] = field(default_factory=Counter)

    async def work(self) -> None:
        deeds = {
            "reloads": self._reload,
            "secrets": self._rotate,
            "Redis killed": self._restart_redis,
            "Redis hung": self._freeze_redis,
        }
        while True:
            await let_pass(OPERATED_EACH_S)
            name = self.chance.choice(list(deeds))
            await deeds[name]()
            self.deeds[name] += 1

    async def _reload(self) -> None:
        self.served.program.tell(signal.SIGHUP)

    async def _rotate(self) -> None:
        self.secret.write_text(f"secret-of-the-hour-{self.deeds['secrets']}\n")

    async def _restart_redis(self) -> None:
        await self.redis.kill()
        await let_pass(REDIS_AWAY_S)
        await self.redis.start()

    async def _freeze_redis(self) -> None:
        self.redis.freeze()
        try:
            await let_pass(REDIS_AWAY_S)
        finally:
            self.redis.thaw()


def forget(upstream: Upstream, mischief: Mischief) -> None:
    """Let this process not grow in its place."""
    upstream.received.clear()
    upstream.asked_time.clear()
    mischief.deeds.clear()


async def soak(folder: Path, seconds: float, seed: int) -> tuple[Samples, Counter[str]]:
    samples, secret = Samples(), folder / "main.secret"
    secret.write_text("secret-of-the-first-hour\n")
    secret.chmod(0o600)
    async with running_upstream() as upstream, running_redis() as redis:
        own = {"KEYS__MAIN__SECRET": f"file:{secret}", "LIMITS__REDIS": redis.url}
        settings = environ(upstream.base_url, folder / "journal.db", **SETTINGS, **own)
        async with running_served(settings, folder) as served:
            mischief, load = Mischief(upstream, seed, WITHOUT), Load(served, Random(seed))
            operator = Operator(served, redis, secret, Random(seed))
            work = [asyncio.ensure_future(load.trade(name)) for name in range(BOTS)]
            work += [asyncio.ensure_future(mischief.weather()), asyncio.ensure_future(operator.work())]
            since = time.monotonic()
            while (at_s := time.monotonic() - since) < seconds:
                await samples.take(served, at_s, load.outcomes)
                forget(upstream, mischief)
                served.program.err.clear()
                await let_pass(min(2.0, seconds / 60))
            assert not any(task.done() for task in work), "a bot, the weather or the operator failed"
            for task in work:
                await stop(task)
    return samples, operator.deeds


async def others(served: Served, seconds: float) -> list[float]:
    """Ask again and again, half of the time on a fresh connection; return what each reply took."""
    latencies: list[float] = []
    until = time.monotonic() + seconds
    async with served.bot() as kept:
        while time.monotonic() < until:
            for asking in (kept.ask, served.ask):
                since = time.monotonic()
                assert (await asking(READ)).status == 200
                latencies.append(time.monotonic() - since)
            await let_pass(0.002)
    return latencies


@contextlib.asynccontextmanager
async def reading_slowly(served: Served) -> AsyncIterator[None]:
    """Let a bot read a large reply piece by piece as long as the block lasts, or until it has it."""
    reader, writer = await asyncio.open_connection(*address_of(served.bots), limit=_PIECE)
    writer.write(LARGE)

    async def read() -> None:
        while await reader.read(_PIECE):
            await let_pass(_GAP_S)

    task = asyncio.ensure_future(read())
    try:
        yield
    finally:
        await stop(task)
        writer.transport.abort()


async def watch(pid: int, growth_mb: list[float]) -> None:
    """Note by how much the memory is above its start, until cancelled."""
    start = resident_mb(pid)
    while True:
        growth_mb.append(resident_mb(pid) - start)
        await let_pass(0.01)


@dataclass(frozen=True)
class Meanwhile:
    """What the others waited while somebody was slow, in seconds, and by how much the memory grew."""

    name: str
    latencies: list[float]
    growth_mb: float

    @property
    def is_fine(self) -> bool:
        return quantiles(self.latencies, n=100)[98] < _MOST_P99_S and self.growth_mb < _MOST_GROWTH_MB


async def meanwhile(name: str, served: Served, slow: AbstractAsyncContextManager[None]) -> Meanwhile:
    growth_mb = [0.0]
    watching = asyncio.ensure_future(watch(served.pid, growth_mb))
    async with slow:
        latencies = await others(served, SLOW_S)
    await stop(watching)
    return Meanwhile(name, latencies, max(growth_mb))


def with_large(large: Act) -> Script:
    return lambda received: large if received.target.endswith(b"/large") else say(OK)


async def slow_ones(folder: Path) -> list[Meanwhile]:
    async with (
        running_upstream() as upstream,
        running_served(environ(upstream.base_url, None, **PATIENT), folder) as served,
    ):
        await others(served, 1.0)
        found = [await meanwhile("nobody is slow", served, contextlib.nullcontext())]
        upstream.script = with_large(say(whole(b"x" * 200_000)))
        crowd = slow_bots(address_of(served.bots), SLOW_OF_EACH_KIND)
        found.append(await meanwhile(f"{3 * SLOW_OF_EACH_KIND} slow bots", served, crowd))
        upstream.script = with_large(pour(LARGE_MB * 10**6))
        slow = reading_slowly(served)
        found.append(await meanwhile(f"{LARGE_MB} MB, read slowly", served, slow))
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Mixed load with faults: does anything grow?")
    parser.add_argument("--minutes", type=float, default=3.0, help="of the load (3)")
    parser.add_argument("--seed", type=int, default=1, help="of the faults (1)")
    return parser.parse_args()


def main() -> None:
    options = parse()
    allow_many_connections()
    with TemporaryDirectory() as name:
        samples, deeds = asyncio.run(soak(Path(name), options.minutes * 60, options.seed))
    text, grows = report(samples)
    did = ", ".join(f"{name} {count}" for name, count in deeds.items())
    print(f"{machine()}\n\nSeed {options.seed}, {options.minutes:g} minutes; {did}.\n\n{text}\n")
    with TemporaryDirectory() as name:
        found = asyncio.run(slow_ones(Path(name)))
    print(table(LATENCY_HEAD, (latency_row(one.name, one.latencies, one.growth_mb) for one in found)))
    sys.exit(grows or not all(one.is_fine for one in found))


if __name__ == "__main__":
    main()
