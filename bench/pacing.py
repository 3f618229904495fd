"""How well is an unknown limit met on real sockets? Sandbox and gateway are processes of their own.

Three bots of weights 1, 1 and 2 ask for more than each kind of limiter grants, and one of them cancels ten
times a second. After a time for learning, from the sandbox's journal: goodput (accepted / granted), 429s per
1000 accepted, the longest time without an acceptance, and Jain's index of the shares by weight; from
`X-Gateway-Queue-Ms`: how long a cancel waited. Then, with the limit published to a fresh gateway, bursts of
four at 80 % of it: how long any request waited. `scripts/bench limits` has many more cases, in virtual
time.
"""

import argparse
import asyncio
import json
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

REQUESTS, WINDOW_S = 20, 0.5
CANCEL_EVERY_S = 0.1
SLOTS, HELD_S = 4, 0.05  # of the limit on requests at a time: how many, and how long each takes
BURST, DEMAND = 4, 0.8

FIXED = {"requests": REQUESTS, "window_s": WINDOW_S, "retry_after": "exact"}
KINDS: dict[str, dict[str, Any]] = {
    "fixed": {"kind": "fixed", **FIXED},
    "fixed from first": {"kind": "fixed_from_first", **FIXED},
    "sliding log": {"kind": "sliding_log", **FIXED},
    "token bucket": {"kind": "token_bucket", **FIXED},
    "GCRA burst 5": {"kind": "gcra", **FIXED, "burst": 5},
    "4 at a time": {"kind": "concurrency", **FIXED, "requests": SLOTS, "window_s": 0.1},
}


@dataclass(frozen=True)
class Spans:
    """How long each part takes, in seconds."""

    learning: float
    measured: float
    under: float


FULL, QUICK = Spans(4.0, 6.0, 2.0), Spans(1.0, 1.0, 0.3)


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


async def saturate(kind: str, sandbox: Mapping[str, Any], spans: Spans) -> Row:
    where = address_of(sandbox["base_url"])
    waits_ms: list[float] = []
    async with running_gateway(sandbox) as gateway, running_herd(gateway):
        cancelling = asyncio.create_task(cancel_on(gateway, waits_ms))
        await asyncio.sleep(spans.learning)
        first, heard = (await journal_at(where))[-1], len(waits_ms)
        await asyncio.sleep(spans.measured)
        received = await journal_at(where, first.n)
        cancelling.cancel()
    return figures(kind, first.received_ms, received, waits_ms[heard:])


def figures(kind: str, since_ms: int, received: Sequence[Entry], waits_ms: Sequence[float]) -> Row:
    accepted = [entry for entry in received if entry.is_accepted]
    times_s = [since_ms / 1000, *(entry.received_ms / 1000 for entry in accepted)]
    elapsed_s = times_s[-1] - times_s[0]
    return Row(
        goodput=len(accepted) / (granted_per_s(kind) * elapsed_s),
        refused_per_1000=1000 * sum(entry.is_refused for entry in received) / len(accepted),
        stall_s=max(later - earlier for earlier, later in pairwise(times_s)),
        cancel_ms=hundredth(waits_ms, 99),
        jain=jain(accepted),
    )


def granted_per_s(kind: str) -> float:
    is_at_a_time = KINDS[kind]["kind"] == "concurrency"
    return SLOTS / HELD_S if is_at_a_time else REQUESTS / WINDOW_S


def jain(accepted: Iterable[Entry]) -> float:
    """Return Jain's index of the shares by weight; cancels cost no share."""
    counts = Counter(entry.bot for entry in accepted if entry.method != "DELETE")
    shares = [counts[name] / weight for name, weight in WEIGHTS.items()]
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))


def hundredth(values: Sequence[float], which: int) -> float:
    return quantiles(values, n=100, method="inclusive")[which - 1] if len(values) > 1 else float("nan")


async def stay_under(sandbox: Mapping[str, Any], seconds: float) -> tuple[float, float]:
    """Send bursts at 80 % of a limit that the gateway knows; return p50 and p99 of the waits, in ms."""
    waits_ms: list[float] = []
    gap_s = BURST / (DEMAND * REQUESTS / WINDOW_S)
    senders = cycle((name, make) for make in (order_by, read_by) for name in WEIGHTS)
    async with running_gateway(sandbox, f"{REQUESTS}/{WINDOW_S}s") as gateway, asyncio.TaskGroup() as group:
        for _ in range(round(seconds / gap_s)):
            for _ in range(BURST):
                name, make = next(senders)
                group.create_task(note_wait(gateway, make(name), waits_ms))
            await asyncio.sleep(gap_s)
    return median(waits_ms), hundredth(waits_ms, 99)


async def measure(kind: str, sandbox: Mapping[str, Any], spans: Spans) -> Row:
    where = address_of(sandbox["base_url"])
    is_at_a_time = KINDS[kind]["kind"] == "concurrency"
    delay = {"kind": "delay", "match": "* /v1/trade/*", "delay_s": HELD_S}
    await put(where, b"/_sandbox/limit", KINDS[kind])
    await put(where, b"/_sandbox/faults", {"faults": [delay] if is_at_a_time else []})
    row = await saturate(kind, sandbox, spans)
    if not is_at_a_time:
        await put(where, b"/_sandbox/limit", KINDS[kind])  # forgets what was spent
        row.wait_ms = await stay_under(sandbox, spans.under)
    return row


async def measure_all(spans: Spans) -> None:
    async with running_sandbox() as sandbox:
        for kind in KINDS:
            row = await measure(kind, sandbox, spans)
            print(f"{kind:18}{''.join(f'{cell:>15}' for cell in row.cells())}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Pacing before each kind of limiter, on real sockets.")
    parser.add_argument("--quick", action="store_true", help="20 seconds instead of 80; too few for p99s")
    spans = QUICK if parser.parse_args().quick else FULL
    print(f"{REQUESTS} per {WINDOW_S:g} s; at a time: {SLOTS}, {HELD_S * 1000:g} ms each")
    print(f"{'':18}{''.join(f'{name:>15}' for name in HEAD)}")
    asyncio.run(measure_all(spans))


if __name__ == "__main__":
    main()
