"""What befalls one exchange, and what orders to another one in the same gateway see of it.

    scripts/bench isolation

In each round a gateway gets two exchanges of one venue with one key, and bots trade at both. Orders to the
calm exchange are measured, before and while something befalls the other one; in which order, and at which
moment, is drawn from the seed. In the last row one trouble follows another, but for those after which
little is sent. Gateway, exchanges and bots are one process, so that what a trouble costs its exchange to
make, and its bots to bear, counts as well: TLS is spoken only where it is the trouble. What an order takes
is given twice: by the clock, and for how long of that this process worked, for whichever order, which is less
of a guess on a busy machine.

Exits with 1 where an order to the calm exchange is not done, something is held against that exchange, or a
request arrives at an exchange that its bot did not name.
"""

import argparse
import asyncio
import contextlib
import logging
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from statistics import quantiles
from tempfile import TemporaryDirectory

import structlog
import uvloop

from bench.pages import machine, table, write_part
from rig.bot import Bot, bot_at
from rig.troubles import CALM, TROUBLED, TROUBLES, Pair, order_to, running_pair
from rig.wire import CutError, let_pass

ORDERS = 300  # before the trouble, and as many during it
_GAP_S = 0.01  # between two orders to the calm exchange
_BOTS, _BOT_GAP_S = 4, 0.04  # at each exchange
_HURRIED = b"X-Gateway-Deadline-Ms: 500"
_LOOKED_UP_S = 10.0  # a look-up is used for as long
_EACH_S = 0.3  # of the troubles that follow one another
IN_TURN = "one after another"
_STOPPING = frozenset({"429, 60 s", "ban", "firewall", "key invalid"})  # the gateway sends little after these


@dataclass
class Found:
    """What was measured of one trouble, in all rounds. `outcomes` counts those at the troubled exchange.

    An order to the calm exchange takes milliseconds, of which this process works some.
    """

    before: list[tuple[float, float]] = field(default_factory=list)
    during: list[tuple[float, float]] = field(default_factory=list)
    not_done: int = 0
    seen: list[str] = field(default_factory=list)
    outcomes: dict[str, int] = field(default_factory=lambda: defaultdict(int))


@contextlib.asynccontextmanager
async def load_at_troubled(pair: Pair) -> AsyncIterator[None]:
    """Let bots trade at the troubled exchange, each on a connection of its own."""
    numbers = count()

    async def trade() -> None:
        while True:
            with contextlib.suppress(ConnectionError, CutError):
                async with bot_at(pair.gateway.address.host, pair.gateway.address.port) as bot:
                    while True:
                        await bot.ask(order_to(TROUBLED, next(numbers), _HURRIED))
                        await let_pass(_BOT_GAP_S)

    async with asyncio.TaskGroup() as bots:
        tasks = [bots.create_task(trade()) for _ in range(_BOTS)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


async def trade_at_calm(pair: Pair, numbers: Iterator[int], found: Found) -> list[tuple[float, float]]:
    """Send orders at a steady pace over connections that stay; return what each took, as `Found` has it."""
    latencies: list[tuple[float, float]] = []
    free: asyncio.Queue[Bot] = asyncio.Queue()

    async def ask(bot: Bot, number: int) -> None:
        since, worked = time.perf_counter(), time.thread_time()
        told = await bot.ask(order_to(CALM, number))
        latencies.append(((time.perf_counter() - since) * 1e3, (time.thread_time() - worked) * 1e3))
        found.not_done += (told.status, told.outcome, told.attempts) != (200, "done", 1)
        free.put_nowait(bot)

    async with contextlib.AsyncExitStack() as stack, asyncio.TaskGroup() as orders:
        for _ in range(_BOTS):
            free.put_nowait(
                await stack.enter_async_context(bot_at(pair.gateway.address.host, pair.gateway.address.port))
            )
        for _ in range(ORDERS):
            orders.create_task(ask(await free.get(), next(numbers)))
            await let_pass(_GAP_S)
    return latencies


async def play(trouble: str, chance: Random, found: Found) -> None:
    """Run a gateway and let one trouble befall one of its exchanges."""
    numbers = count()
    with TemporaryDirectory() as folder:
        async with running_pair(Path(folder), has_tls=trouble == "TLS fails") as pair, load_at_troubled(pair):
            found.before += await trade_at_calm(pair, numbers, found)
            before = len(pair.outcomes.all)
            if trouble.startswith("DNS"):
                await let_pass(_LOOKED_UP_S)
            begins = asyncio.create_task(_befall(trouble, pair, chance))
            try:
                found.during += await trade_at_calm(pair, numbers, found)
            finally:
                begins.cancel()
            pair.gateway.reporter.flush()
            for one in pair.outcomes.all[before:]:
                if one.exchange == TROUBLED:
                    found.outcomes[one.reason or str(one.conclusion)] += 1
            found.seen += pair.seen_at_calm()
            found.seen += [f"{target!r} arrived elsewhere" for target in pair.strays()]
            found.not_done += len(pair.calm.received) != 2 * ORDERS


async def _befall(trouble: str, pair: Pair, chance: Random) -> None:
    await let_pass(chance.uniform(0, 0.1))
    if trouble != IN_TURN:
        pair.befall(trouble)
        return
    while True:
        pair.relieve()
        pair.befall(chance.choice([one for one in TROUBLES if one not in _STOPPING]))
        await let_pass(chance.uniform(0, 2 * _EACH_S))


def p99(latencies: Sequence[tuple[float, float]]) -> tuple[float, float]:
    wall, work = ([one[kind] for one in latencies] for kind in (0, 1))
    return quantiles(wall, n=100)[98], quantiles(work, n=100)[98]


def report(found: dict[str, Found]) -> str:
    def rows() -> Iterator[Sequence[str]]:
        for trouble, one in found.items():
            most = sorted(one.outcomes.items(), key=lambda item: -item[1])[:2]
            met = ", ".join(f"{number} {name}" for name, number in most) or "nothing ended"
            pairs = zip(p99(one.before), p99(one.during), strict=True)
            figures = (f"{before:.1f} to {during:.1f} ({during / before:.2f})" for before, during in pairs)
            yield trouble, met, str(len(one.during)), str(one.not_done), *figures

    head = ("at the one exchange", "its orders ended", "orders to the other", "not done")
    last = ("p99 ms before to during (ratio)", "of that, work")
    return f"{machine()}\n\n{table((*head, *last), rows(), words=2)}"


async def measure(troubles: Sequence[str], rounds: int, seed: int) -> dict[str, Found]:
    found = {trouble: Found() for trouble in troubles}
    chance = Random(seed)
    for _ in range(rounds):
        for trouble in chance.sample(troubles, len(troubles)):
            await play(trouble, chance, found[trouble])
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def main() -> None:
    troubles = (*TROUBLES, IN_TURN)
    parser = argparse.ArgumentParser(description="Orders to one exchange while something befalls another.")
    parser.add_argument("--only", action="append", choices=troubles, help="this trouble; may be repeated")
    parser.add_argument("--rounds", type=int, default=3, help="of each trouble, 7 s each (3)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    parser.add_argument("--write", action="store_true", help="put it into docs/internals/performance.md")
    options = parser.parse_args()
    print(f"seed {options.seed}", file=sys.stderr)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(measure(options.only or troubles, options.rounds, options.seed))
    print(report(found))
    if options.write:
        write_part("isolation", report(found))
    faults = [f"{trouble}: {words}" for trouble, one in found.items() for words in one.seen]
    faults += [f"{trouble}: {one.not_done} not done" for trouble, one in found.items() if one.not_done]
    sys.exit("\n".join(faults) or None)


if __name__ == "__main__":
    main()
