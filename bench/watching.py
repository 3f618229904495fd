"""What it costs to be watched: scripts/bench watching.

One gateway gets 500 requests a second. By turns nobody looks, or five viewers have the live page's stream
open and somebody scrapes /metrics every second. Compared are the gateway's processor time, and how long its
loop was kept from a ticker of one millisecond: by the clock, which whatever else runs on the machine makes
longer, and by the processor time that the loop's own thread spent meanwhile, which is the gateway's doing.
"""

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp

from bench.orders import order
from bench.pages import machine, table
from bench.process import Program, cpu_s, running
from bench.programs import gateway_environ, running_upstream

VIEWERS = 5
HEAD = ("round", "watched", "requests/s", "CPU %", "late by ms", "own work ms", "own over 5 ms")
# The gateway with a ticker on its loop, which tells on SIGUSR1 how late it was since the last time.
TICKING = """
import asyncio, signal, sys, time
from sealgate.server import serving
serve = serving.serve
async def ticking(*arguments):
    loop, late, own = asyncio.get_running_loop(), [], []
    def tick(due, spent):
        now, used = time.perf_counter(), time.thread_time()
        late.append(now - due)
        own.append(used - spent)
        loop.call_later(0.001, tick, now + 0.001, used)
    def tell():
        print("STALLS", max(late) * 1000, max(own) * 1000, sum(one > 0.005 for one in own), flush=True)
        late[:], own[:] = [0.0], [0.0]
    loop.add_signal_handler(signal.SIGUSR1, tell)
    tick(time.perf_counter(), time.thread_time())
    await serve(*arguments)
serving.serve = ticking
from sealgate.cli import main
main(["serve"])
"""


class Gateway:
    """The program under test."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process = process
        told = self._listening(log)
        self.port = int(told["bots"].rpartition(":")[2])
        self.admin = told["admin"]

    def _listening(self, log: Path) -> dict[str, Any]:
        while self.process.poll() is None:
            for line in log.read_text().splitlines():
                if line.startswith("{") and line.endswith("}") and '"listening"' in line:
                    found: dict[str, Any] = json.loads(line)
                    return found
            time.sleep(0.05)
        raise SystemExit(log.read_text())

    def stalls(self) -> tuple[float, float, int]:
        """Return by how many ms it was late at most, its longest own work, how many of that over 5 ms."""
        assert self.process.stdout is not None
        self.process.send_signal(10)
        _, late, own, count = self.process.stdout.readline().split()
        return float(late), float(own), int(count)


@contextmanager
def running_gateway(upstream: str, folder: Path) -> Iterator[Gateway]:
    log = folder / "gateway.log"
    command = [sys.executable, "-c", TICKING]
    with log.open("wb") as stderr:
        program = Program(command, gateway_environ(upstream), stdout=subprocess.PIPE, stderr=stderr)
        with running(program) as process:
            yield Gateway(process, log)


async def load(port: int, per_s: int, seconds: float) -> int:
    """Send orders at an even rate over ten connections; return how many were answered."""
    answered = 0
    ends_at = time.monotonic() + seconds

    async def one(number: int) -> None:
        nonlocal answered
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        gap, due = 10 / per_s, time.monotonic() + number / per_s
        while due < ends_at:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due += gap
            writer.write(order())
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
            await reader.readexactly(length)
            answered += 1
        writer.close()

    await asyncio.gather(*(one(number) for number in range(10)))
    return answered


@contextlib.asynccontextmanager
async def watching(admin: str) -> AsyncIterator[None]:
    """Look on, with five streams and a scraper."""
    async with aiohttp.ClientSession(read_bufsize=1 << 22) as session:

        async def view() -> None:
            async with session.get(f"{admin}/events") as stream:
                async for _ in stream.content:
                    pass

        async def scrape() -> None:
            while True:
                async with session.get(f"{admin}/metrics") as reply:
                    await reply.read()
                await asyncio.sleep(1)

        tasks = [asyncio.create_task(view()) for _ in range(VIEWERS)] + [asyncio.create_task(scrape())]
        await asyncio.sleep(0.5)
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def measure(gateway: Gateway, options: argparse.Namespace, *, watched: bool) -> dict[str, float]:
    look = watching(gateway.admin) if watched else contextlib.nullcontext()
    async with look:
        gateway.stalls()
        spent, since = cpu_s(gateway.process.pid), time.monotonic()
        answered = await load(gateway.port, options.per_s, options.seconds)
        elapsed = time.monotonic() - since
        late, own, over = gateway.stalls()
        spent = cpu_s(gateway.process.pid) - spent
    return {"per_s": answered / elapsed, "cpu": spent / elapsed * 100, "late": late, "own": own, "over": over}


def row(number: int, *, watched: bool, found: dict[str, float]) -> Sequence[str]:
    figures = (f"{found[name]:.1f}" for name in ("cpu", "late", "own"))
    return str(number), "yes" if watched else "no", f"{found['per_s']:.0f}", *figures, f"{found['over']:.0f}"


async def main(options: argparse.Namespace) -> None:
    rows, added = [], []
    with (
        TemporaryDirectory() as folder,
        running_upstream() as upstream,
        running_gateway(f"http://127.0.0.1:{upstream.port}", Path(folder)) as gateway,
    ):
        await load(gateway.port, options.per_s, 2)
        for number in range(1, options.rounds + 1):
            pair = {}
            for watched in (False, True) if number % 2 else (True, False):
                found = pair[watched] = await measure(gateway, options, watched=watched)
                rows.append(row(number, watched=watched, found=found))
            added.append(pair[True]["cpu"] - pair[False]["cpu"])
    print(f"{machine()} Load average {os.getloadavg()[0]:.1f}.\n\n{table(HEAD, rows, words=2)}\n")
    print(
        f"Watching adds {median(added):.1f} % of a processor (median; {min(added):.1f} to {max(added):.1f})."
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What five viewers and a scrape each second cost.")
    parser.add_argument("--per-s", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=5)
    asyncio.run(main(parser.parse_args()))
