"""How well is an unknown limit met on real sockets? Sandbox and gateway are processes of their own.

Three bots of weights 1, 1 and 2 ask for more than each kind of limiter grants, whose number and window are
drawn anew at each run, and one of them cancels ten times a second. After a time for learning, from the
sandbox's journal: goodput (accepted / granted), 429s per 1000 accepted, the longest time without an
acceptance, and Jain's index of the shares by weight; from `X-Gateway-Queue-Ms`: how long a cancel waited.
Then, with the limit published to a fresh gateway, bursts of four at 80 % of it: how long any request waited.
`scripts/bench limits` has many more cases, in virtual time.
"""

import argparse
import asyncio
import json
import math
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle, pairwise
from statistics import median, quantiles
from typing import Any
from urllib.parse import urlsplit

from rig.bot import Reply, bot_at
from rig.herd import (
    WEIGHTS,
    Address,
    Entry,
    bots_table,
    by,
    journal_at,
    order_by,
    put,
    read_by,
    running_herd,
    tokens,
)
from rig.program import running_program

CANCEL_EVERY_S = 0.1
HELD_S = 0.05  # how long each request takes where the limit is on requests at a time
BURST, DEMAND = 4, 0.8
_FASTEST = 40.0  # requests per second: a quarter of what the bots ask for


@dataclass(frozen=True)
class Case:
    """A limiter of the sandbox: `requests` per `window_s`, or at a time."""

    kind: str
    requests: int
    window_s: float
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_at_a_time(self) -> bool:
        """Whether it counts what is under way."""
        return self.kind == "concurrency"

    @property
    def granted_per_s(self) -> float:
        """What it grants in the long run."""
        return self.requests / (HELD_S if self.is_at_a_time else self.window_s)

    def settings(self) -> dict[str, Any]:
        """Return what the sandbox is told."""
        own = {"kind": self.kind, "requests": self.requests, "window_s": self.window_s}
        return {**own, "retry_after": "exact", **self.more}

    def __str__(self) -> str:
        """Return its numbers."""
        return (
            f"{self.requests} at a time" if self.is_at_a_time else f"{self.requests} per {self.window_s:g} s"
        )


def drawn(seed: int) -> dict[str, Case]:
    """Return a case of each kind, with a number and a window of its own."""
    chance = random.Random(seed)

    def case(kind: str, **more: object) -> Case:
        window_s = round(math.exp(chance.uniform(math.log(0.5), math.log(3.0))), 2)
        return Case(kind, max(5, round(window_s * chance.uniform(10.0, _FASTEST))), window_s, more)

    return {
        "fixed": case("fixed"),
        "fixed, rounded": case("fixed", retry_after="rounded"),
        "fixed, no Retry-After": case("fixed", retry_after="absent"),
        "fixed from first": case("fixed_from_first"),
        "sliding log": case("sliding_log"),
        "log, refusals count": case("sliding_log", rejects_count=True),
        "token bucket": case("token_bucket"),
        "bucket, burst 40": case("token_bucket", burst=40),
        "GCRA burst 5": case("gcra", burst=5),
        "at a time": Case("concurrency", chance.randrange(2, 11), 0.1),
    }


@dataclass(frozen=True)
class Spans:
    """How long each part takes at the least, in seconds; the first two in windows, too."""

    learning: float
    measured: float
    under: float
    windows: float


FULL, QUICK = Spans(5.0, 8.0, 2.0, 5.0), Spans(1.0, 1.0, 0.3, 1.0)


@dataclass
class Row:
    """The figures of one kind. A bucket that was full at the start grants its burst on top: over 100 %."""

    goodput: float
    refused_per_1000: float
    stall_s: float
    cancel_ms: float
    jain: float
    wait_ms: Sequence[float] = field(default=())

    def cells(self) -> list[str]:
        first = (f"{self.goodput * 100:.1f}", f"{self.refused_per_1000:.1f}", f"{self.stall_s:.2f}")
        waits = [f"{wait:.0f}" for wait in self.wait_ms] or ["-", "-"]
        return [*first, f"{self.cancel_ms:.0f}", f"{self.jain:.3f}", *waits]


HEAD = (
    "goodput %",
    "429s/1000",
    "stall s",
    "cancel p99 ms",
    "Jain",
    "wait p50 ms",
    "wait p99 ms",
)


@asynccontextmanager
async def running_sandbox() -> AsyncIterator[dict[str, Any]]:
    arguments = ("--json", "--listen=127.0.0.1:0", "--limit-kind=none", "--usdc=1000000000")
    async with running_program("sandbox", *arguments) as program:
        yield json.loads(await program.line("base_url"))


def gateway_environ(sandbox: Mapping[str, Any]) -> dict[str, str]:
    """Return the configuration of a gateway before that sandbox, for the bots of the herd."""
    environ = {
        "SEALGATE_BASE_URL": sandbox["base_url"],
        "SEALGATE_LISTEN__TCP": "127.0.0.1:0",
        "SEALGATE_ADMIN__TCP": "",
        "SEALGATE_ADMIN__UNIX": "off",
        "SEALGATE_LOG__FORMAT": "json",
        "SEALGATE_KEYS__MAIN__API_KEY": sandbox["api_key"],
        "SEALGATE_KEYS__MAIN__SECRET": "env:BENCH_SECRET",
        "BENCH_SECRET": sandbox["api_secret"],
        **tokens(),
    }
    for name, bot in bots_table().items():
        environ |= {f"SEALGATE_BOTS__{name}__{key}".upper(): str(value) for key, value in bot.items()}
    return environ


@asynccontextmanager
async def running_gateway(sandbox: Mapping[str, Any], known: str = "") -> AsyncIterator[Address]:
    environ = gateway_environ(sandbox)
    if known:
        environ["SEALGATE_LIMITS__KNOWN"] = known
    async with running_program("serve", environ=environ) as program:
        await program.line('"clock_synced"')
        yield address_of(json.loads(await program.line("listening"))["bots"])


def address_of(url: str) -> Address:
    parts = urlsplit(url)
    return str(parts.hostname), int(parts.port or 0)


async def cancel_on(gateway: Address, waits_ms: list[float]) -> None:
    """Cancel again and again, each on time, whether or not the last one has been answered."""
    async with asyncio.TaskGroup() as group:
        while True:
            group.create_task(note_wait(gateway, by("one", b"DELETE", b"/v1/trade/order/1"), waits_ms))
            await asyncio.sleep(CANCEL_EVERY_S)


async def note_wait(gateway: Address, message: bytes, waits_ms: list[float]) -> None:
    async with bot_at(*gateway) as bot:
        reply: Reply = await bot.ask(message)
    waits_ms.append(float(reply.text("X-Gateway-Queue-Ms") or "nan"))


async def saturate(case: Case, sandbox: Mapping[str, Any], spans: Spans) -> Row:
    where = address_of(sandbox["base_url"])
    waits_ms: list[float] = []
    async with running_gateway(sandbox) as gateway, running_herd(gateway):
        cancelling = asyncio.create_task(cancel_on(gateway, waits_ms))
        await asyncio.sleep(max(spans.learning, spans.windows * case.window_s))
        first, heard = (await journal_at(where))[-1], len(waits_ms)
        await asyncio.sleep(max(spans.measured, spans.windows * case.window_s))
        received = await journal_at(where, first.n)
        cancelling.cancel()
    return figures(case.granted_per_s, first.received_ms, received, waits_ms[heard:])


def figures(granted_per_s: float, since_ms: int, received: Sequence[Entry], waits_ms: Sequence[float]) -> Row:
    accepted = [entry for entry in received if entry.is_accepted]
    times_s = [since_ms / 1000, *(entry.received_ms / 1000 for entry in accepted)]
    elapsed_s = times_s[-1] - times_s[0]
    return Row(
        goodput=len(accepted) / (granted_per_s * elapsed_s),
        refused_per_1000=1000 * sum(entry.is_refused for entry in received) / len(accepted),
        stall_s=max(later - earlier for earlier, later in pairwise(times_s)),
        cancel_ms=hundredth(waits_ms, 99),
        jain=jain(accepted),
    )


def jain(accepted: Iterable[Entry]) -> float:
    """Return Jain's index of the shares by weight; cancels cost no share."""
    counts = Counter(entry.bot for entry in accepted if entry.method != "DELETE")
    shares = [counts[name] / weight for name, weight in WEIGHTS.items()]
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))


def hundredth(values: Sequence[float], which: int) -> float:
    return quantiles(values, n=100, method="inclusive")[which - 1] if len(values) > 1 else float("nan")


async def stay_under(case: Case, sandbox: Mapping[str, Any], seconds: float) -> tuple[float, float]:
    """Send bursts at 80 % of a limit that the gateway knows; return p50 and p99 of the waits, in ms."""
    waits_ms: list[float] = []
    burst = min(BURST, case.requests)
    gap_s = burst / (DEMAND * case.granted_per_s)
    senders = cycle((name, make) for make in (order_by, read_by) for name in WEIGHTS)
    async with (
        running_gateway(sandbox, f"{case.requests}/{case.window_s}s") as gateway,
        asyncio.TaskGroup() as group,
    ):
        for _ in range(round(seconds / gap_s)):
            for _ in range(burst):
                name, make = next(senders)
                group.create_task(note_wait(gateway, make(name), waits_ms))
            await asyncio.sleep(gap_s)
    return median(waits_ms), hundredth(waits_ms, 99)


async def measure(case: Case, sandbox: Mapping[str, Any], spans: Spans) -> Row:
    where = address_of(sandbox["base_url"])
    delay = {"kind": "delay", "match": "* /v1/trade/*", "delay_s": HELD_S}
    await put(where, b"/_sandbox/limit", case.settings())
    await put(where, b"/_sandbox/faults", {"faults": [delay] if case.is_at_a_time else []})
    row = await saturate(case, sandbox, spans)
    if not case.is_at_a_time:
        await put(where, b"/_sandbox/limit", case.settings())  # forgets what was spent
        row.wait_ms = await stay_under(case, sandbox, spans.under)
    return row


async def measure_all(seed: int, spans: Spans) -> None:
    async with running_sandbox() as sandbox:
        for name, case in drawn(seed).items():
            row = await measure(case, sandbox, spans)
            print(f"{name:22}{case!s:16}{''.join(f'{cell:>14}' for cell in row.cells())}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Pacing before each kind of limiter, on real sockets.")
    parser.add_argument(
        "--quick", action="store_true", help="half a minute instead of four; too few for p99s"
    )
    parser.add_argument(
        "--seed", type=int, help="of the numbers and windows; another one each time by default"
    )
    options = parser.parse_args()
    seed = random.randrange(10**6) if options.seed is None else options.seed
    print(f"--seed {seed}; at a time: {HELD_S * 1000:g} ms each")
    print(f"{'':38}{''.join(f'{name:>14}' for name in HEAD)}")
    asyncio.run(measure_all(seed, QUICK if options.quick else FULL))


if __name__ == "__main__":
    main()
