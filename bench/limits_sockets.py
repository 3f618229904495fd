"""Pacing on real sockets: nine limiters 20 ms away, whose numbers are drawn anew at each run.

`scripts/bench limits --sockets`: sandbox, way, gateway and bots are processes of their own (the bots are this
one). The bots ask for more than any of the limits grants, without a pause between two requests. The figures
are the sandbox's, taken after learning: three windows, and at least ten seconds.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bench.floods import Case, Row, address_of, figures, gateway_environ, running_sandbox
from bench.pages import table
from rig.herd import Address, journal_at, put, running_herd
from rig.program import running_program

ROUND_TRIP_MS: Final = 20
KINDS: Final = {
    "fixed": Case("fixed", 0, 0),
    "fixed from first": Case("fixed_from_first", 0, 0),
    "sliding log": Case("sliding_log", 0, 0),
    "token bucket": Case("token_bucket", 0, 0),
    "GCRA": Case("gcra", 0, 0),
    "at a time": Case("concurrency", 0, 0),
    "fixed, refusals count": Case("fixed", 0, 0, rejects_count=True),
    "sliding log, refusals count": Case("sliding_log", 0, 0, rejects_count=True),
    "token bucket, refusals count": Case("token_bucket", 0, 0, rejects_count=True),
}
HEAD = ("limiter", "N / W", "goodput %", "429s per 1000", "longest stall s")
_WINDOWS_S = (0.5, 1.0, 2.0, 3.0, 5.0)
_ROUND_N = (10, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120, 150, 200)
_RATES = (15.0, 60.0)  # per second: enough to count, and less than the bots ask for
_MEASURED_S, _IN_FLIGHT = 30.0, 12  # of each bot
_AT_A_TIME = 3  # on a machine of two cores
_SERVICE_S = 0.1  # how long a request takes where those at a time are counted
_DISTANCE = str(Path(__file__).with_name("distance.py"))


def draw(kind: str, run: int, seed: str) -> Case:
    """Return the limiter of a kind in a run: half of them have numbers such as people write."""
    chance, case = random.Random(f"{seed}/{run}/{kind}"), KINDS[kind]
    if case.kind == "concurrency":
        return replace(case, requests=chance.randint(2, 8), window_s=0.1)
    while True:
        is_round = chance.random() < 1 / 2
        window_s = chance.choice(_WINDOWS_S) if is_round else round(chance.uniform(0.4, 5.0), 2)
        requests = chance.choice(_ROUND_N) if is_round else chance.randint(5, 200)
        if _RATES[0] <= requests / window_s <= _RATES[1]:
            burst = chance.randint(1, 10) if case.kind == "gcra" else 0
            return replace(case, requests=requests, window_s=window_s, burst=burst)


async def measure(case: Case) -> Row:
    """Return the figures of one limiter in one run."""
    async with running_sandbox() as sandbox:
        where = address_of(sandbox["base_url"])
        await put(where, b"/_sandbox/limit", case.settings())
        is_cap = case.kind == "concurrency"
        if is_cap:
            await put(where, b"/_sandbox/faults", {"faults": [{"kind": "delay", "delay_s": _SERVICE_S}]})
        granted_per_s = case.requests / (ROUND_TRIP_MS / 1000 + _SERVICE_S) if is_cap else case.granted_per_s
        async with _running_gateway(sandbox) as gateway, running_herd(gateway, _IN_FLIGHT):
            await asyncio.sleep(max(3 * case.window_s, 10.0))
            first = (await journal_at(where))[-1]
            await asyncio.sleep(_MEASURED_S)
            late = await journal_at(where, first.n)
    return figures(granted_per_s, first.received_ms, late)


@asynccontextmanager
async def _running_gateway(sandbox: Mapping[str, Any]) -> AsyncIterator[Address]:
    """Run a gateway before a sandbox that is far away."""
    port = str(address_of(sandbox["base_url"])[1])
    async with running_program(port, str(ROUND_TRIP_MS), start=(_DISTANCE,)) as way:
        far = f"http://127.0.0.1:{await way.line('')}"
        environ = {**gateway_environ(sandbox), "SEALGATE_BASE_URL": far}
        async with running_program("serve", environ=environ) as program:
            await program.line('"clock_synced"')
            yield address_of(json.loads(await program.line("listening"))["bots"])


def cells(kind: str, case: Case, row: Row) -> tuple[str, ...]:
    burst = f" burst {case.burst}" if case.burst else ""
    numbers = f"{case.requests} / {case.window_s:g} s{burst}"
    figures = (f"{100 * row.goodput:.1f}", f"{row.refused_per_1000:.1f}", f"{row.stall_s:.2f}")
    return (kind, numbers, *figures)


async def _run(runs: int, seed: str, only: tuple[str, ...]) -> list[tuple[str, ...]]:
    turns = asyncio.Semaphore(_AT_A_TIME)

    async def one(kind: str, run: int) -> tuple[str, ...]:
        async with turns:
            case = draw(kind, run, seed)
            found = cells(kind, case, await measure(case))
            print(*found, sep="  ", flush=True)
            return found

    chosen = [kind for kind in KINDS if any(text in kind for text in only)]
    return await asyncio.gather(*(one(kind, run) for kind in chosen for run in range(runs)))


def main(runs: int, seed: str, only: tuple[str, ...]) -> None:
    """Measure that many runs of each limiter, and print a line for each."""
    print(f"\nSeed {seed}\n\n{table(HEAD, asyncio.run(_run(runs, seed, only)), words=2)}")
