"""Four gateways on one key, with a real Redis, beside one gateway.

Sandboxes, Redis and gateways are processes of their own. The bots ask for more than the limit grants, each at
all four gateways, or all at one. After a time for learning, from the sandbox's
journal: goodput (accepted / granted), 429s per 1000 accepted (and of the whole run), the longest time without
an acceptance, and Jain's index of the shares by weight. One and four are measured side by side, again and
again, because the first flood comes in another order each time; medians are written down.

Then Redis is killed and started again, each time in the middle of a pause (shared_outage), and what sharing
adds to a request is measured (shared_latency). `--plan` is the same in virtual time, up to 256 gateways.
"""

import argparse
import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from operator import attrgetter
from statistics import median
from typing import Any, NamedTuple

from bench import shared_latency, shared_outage, shared_plan
from bench.floods import Case, Row, address_of, figures, gateway_environ, running_sandbox
from bench.pages import SCALING, machine, table, write_part
from rig.herd import Address, Entry, journal_at, put, running_herd
from rig.program import running_program
from rig.redis import running_redis

GATEWAYS = 4
KINDS = {
    "fixed": Case("fixed", 20, 0.5),
    "sliding log": Case("sliding_log", 20, 0.5),
    "token bucket": Case("token_bucket", 20, 0.5),
}
_IN_FLIGHT = 12  # of each bot, over all gateways
_HEAD = (
    "limiter",
    "gateways",
    "goodput %",
    "429s per 1000",
    "429s of the whole run",
    "accepted",
    "longest stall s",
    "Jain",
)


class Spans(NamedTuple):
    """How long each part takes, in seconds, and how often it is measured."""

    learning: float
    measured: float
    rounds: int


FULL, QUICK = Spans(5.0, 30.0, 3), Spans(2.0, 4.0, 1)


class Run(NamedTuple):
    """What is compared of one run, or the medians of several."""

    goodput: float  # percent
    refused_per_1000: float
    refused: float  # of the whole run, as is what was accepted
    accepted: float
    stall_s: float
    jain: float


Both = tuple[Run, Run]


@asynccontextmanager
async def running_gateway(sandbox: Mapping[str, Any], redis: str) -> AsyncIterator[Address]:
    environ = {**gateway_environ(sandbox), "SEALGATE_LIMITS__REDIS": redis}
    async with running_program("serve", environ=environ) as program:
        await program.line('"clock_synced"')
        if redis:
            await program.line('"limit_shared"')
        yield address_of(json.loads(await program.line("listening"))["bots"])


@asynccontextmanager
async def running_herds(sandbox: Mapping[str, Any], redis: str, count: int) -> AsyncIterator[None]:
    """Let so many gateways be flooded as long as the block lasts."""
    async with AsyncExitStack() as stack:
        starting = (stack.enter_async_context(running_gateway(sandbox, redis)) for _ in range(count))
        gateways = [await one for one in starting]
        for gateway in gateways:
            await stack.enter_async_context(running_herd(gateway, _IN_FLIGHT // count))
        yield


async def measure(kind: str, count: int, spans: Spans) -> Run:
    async with running_sandbox() as sandbox, running_redis() as redis:
        where = address_of(sandbox["base_url"])
        await put(where, b"/_sandbox/limit", KINDS[kind].settings())
        async with running_herds(sandbox, redis.url if count > 1 else "", count):
            await asyncio.sleep(spans.learning)
            first = (await journal_at(where))[-1]
            await asyncio.sleep(spans.measured)
            received = await journal_at(where)
    late = [entry for entry in received if entry.n > first.n]
    return compared(figures(KINDS[kind].granted_per_s, first.received_ms, late), received)


def compared(row: Row, received: Sequence[Entry]) -> Run:
    """Return the figures after learning, and the counts of everything that was received."""
    refused, accepted = (sum(map(attrgetter(name), received)) for name in ("is_refused", "is_accepted"))
    return Run(100 * row.goodput, row.refused_per_1000, refused, accepted, row.stall_s, row.jain)


async def measure_both(kind: str, spans: Spans) -> Both:
    """Return the medians of one gateway, and of several."""
    runs = [
        await asyncio.gather(*(measure(kind, count, spans) for count in (1, GATEWAYS)))
        for _ in range(spans.rounds)
    ]
    one, several = (Run(*map(median, zip(*found, strict=True))) for found in zip(*runs, strict=True))
    return one, several


def cells(kind: str, count: int, run: Run) -> tuple[str, ...]:
    return (
        kind,
        str(count),
        f"{run.goodput:.1f}",
        f"{run.refused_per_1000:.1f}",
        f"{run.refused:.0f}",
        f"{run.accepted:.0f}",
        f"{run.stall_s:.2f}",
        f"{run.jain:.4f}",
    )


def sums(found: Iterable[Both]) -> str:
    """Return the 429s of all limiters together, as those of one are few, and what is left of the goodput."""
    both = list(zip(*found, strict=True))
    one, four = (1000 * sum(run.refused for run in runs) / sum(run.accepted for run in runs) for runs in both)
    least = min(several.goodput / alone.goodput for alone, several in zip(*both, strict=True))
    return (
        f"429s per 1000 accepted, all limiters, learning included: {one:.1f} with one gateway, "
        f"{four:.1f} with {GATEWAYS}: {four / one:.2f} times. The goodput of {GATEWAYS} is "
        f"{100 * least:.0f} % of one's at the least."
    )


async def limits(spans: Spans) -> str:
    found = {kind: await measure_both(kind, spans) for kind in KINDS}
    rows = [
        cells(kind, count, run)
        for kind, both in found.items()
        for count, run in zip((1, GATEWAYS), both, strict=True)
    ]
    times = f"Medians of {spans.rounds} runs each." if spans.rounds > 1 else "One run each."
    return f"{times}\n\n{table(_HEAD, rows)}\n\n{sums(found.values())}"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Several gateways on one key, through Redis.")
    parser.add_argument("--plan", action="store_true", help="in virtual time, up to 256 gateways")
    parser.add_argument("--only", choices=("limits", "outage", "latency"), help="one part")
    parser.add_argument("--quick", action="store_true", help="half a minute; far too few 429s to compare")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/internals/scaling.md")
    return parser.parse_args()


def main() -> None:
    options = parse()
    parts: dict[str, Callable[[], str]] = {
        "limits": lambda: asyncio.run(limits(QUICK if options.quick else FULL)),
        "outage": lambda: asyncio.run(shared_outage.measure(running_herds, GATEWAYS)),
        "latency": lambda: shared_latency.measure(is_quick=options.quick),
    }
    if options.plan:
        parts = {"plan": lambda: shared_plan.measure(is_quick=options.quick)}
    for name, run in parts.items():
        if options.only not in (None, name):
            continue
        text = run()
        print(f"\n## {name}\n\n{text}", flush=True)
        if options.write:
            write_part(name, text if name == "plan" else f"{machine()}\n\n{text}", SCALING)


if __name__ == "__main__":
    main()
