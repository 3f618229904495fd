"""The memory of streams whose other side does not read, and what other bots see of them.

    scripts/bench streams_memory

In each round a gateway gets 200 streams of one feed each, as fast as it is taken, with bots that do not read;
or 200 bots that send as fast as they can to an exchange that does not read. Meanwhile one bot's round trips
over a stream of its own are timed, and one's requests. RSS is looked at before, while the streams fill up,
and when they have rested. At last the deaf bots read: all must come, in order, and the memory must come back.
"""

import argparse
import asyncio
import contextlib
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import uvloop

from bench.orders import order
from bench.pages import machine, table, write_part
from bench.process import Way, allow_many_connections, resident_mb
from bench.programs import COMPILED, GATEWAY, running_here
from bench.stream_frames import FRAMES
from bench.stream_load import AUTHORISED
from bench.stream_ways import PROXY, READ, UNREAD, running_way, target_of
from rig.websocket import TEXT, frame, upgrade

DEAF_BOTS, DEAF_EXCHANGE = "bots that do not read", "an exchange that does not read"
_GAP_S = 0.01  # between two round trips
_POLL_S = 0.1
_HERE = Path(__file__).parent


@dataclass
class Found:
    """What was measured of one kind, over all rounds. Latencies are milliseconds."""

    grown_mb: list[float] = field(default_factory=list)  # the most
    rested_mb: list[float] = field(default_factory=list)
    after_mb: list[float] = field(default_factory=list)
    passed_mb: list[float] = field(default_factory=list)  # what the deaf ones got at last, or had been sent
    ratios: dict[str, list[float]] = field(default_factory=dict)  # median latency, during to before


async def open_stream(way: str, port: int, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a stream that reads only what is asked for."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
    writer.write(upgrade(target_of(way, path), AUTHORISED))
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 101 "):
        raise SystemExit(head.decode("latin-1"))
    return reader, writer


@contextlib.asynccontextmanager
async def timing(way: str, port: int) -> AsyncIterator[dict[str, list[float]]]:
    """Time round trips of a stream and of requests, each on a connection that stays; the gateway's only."""
    took: dict[str, list[float]] = {"stream": []}

    async def over_stream() -> None:
        reader, writer = await open_stream(way, port, f"{READ}/echo")
        size = len(FRAMES[0])
        asked = frame(TEXT, b'{"op":"ping"}', mask=b"\x21\x84\x0f\xd3")
        while True:
            since = time.perf_counter()
            writer.write(asked)
            await reader.readexactly(size)
            took["stream"].append((time.perf_counter() - since) * 1e3)
            await asyncio.sleep(_GAP_S)

    async def over_requests() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        took["requests"] = []
        while True:
            since = time.perf_counter()
            writer.write(order())
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200 "):
                raise SystemExit(head.decode("latin-1"))
            fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:-2])
            await reader.readexactly(int(fields[b"content-length"]))
            took["requests"].append((time.perf_counter() - since) * 1e3)
            await asyncio.sleep(_GAP_S)

    tasks = [asyncio.create_task(over_stream())]
    if way != PROXY:
        tasks.append(asyncio.create_task(over_requests()))
    try:
        yield took
    finally:
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if not isinstance(result, asyncio.CancelledError):
                raise SystemExit(f"another bot was cut: {result!r}")


async def play(name: str, way: Way, kind: str, options: argparse.Namespace, found: Found) -> None:
    """Run one round."""
    path, more = (f"{UNREAD}/flood/20", ()) if kind == DEAF_BOTS else (f"{UNREAD}/deaf", ("--pour",))
    numbers = (str(way.port), target_of(name, path), str(options.streams))
    async with timing(name, way.port) as took:
        await asyncio.sleep(options.seconds)
        before, before_mb = {one: median(latencies) for one, latencies in took.items()}, resident_mb(way.pid)
        deaf = await asyncio.create_subprocess_exec(
            *(sys.executable, str(_HERE / "stream_deaf.py"), *numbers, *more), stdin=PIPE, stdout=PIPE
        )
        assert deaf.stdin is not None
        assert deaf.stdout is not None
        await deaf.stdout.readline()
        for latencies in took.values():
            latencies.clear()
        grown_mb, until = 0.0, time.monotonic() + options.seconds
        while time.monotonic() < until:
            grown_mb = max(grown_mb, resident_mb(way.pid) - before_mb)
            await asyncio.sleep(_POLL_S)
        found.grown_mb.append(grown_mb)
        found.rested_mb.append(resident_mb(way.pid) - before_mb)
        for one, latencies in took.items():
            # One that takes longer than that has not ended.
            during = median(latencies or [options.seconds * 1e3])
            found.ratios.setdefault(one, []).append(during / before[one])
    deaf.stdin.write(b"read\n" if kind == DEAF_BOTS else b"end\n")
    found.passed_mb.append(int(await deaf.stdout.readline()) / 1e6)
    await deaf.wait()
    await asyncio.sleep(options.seconds)
    found.after_mb.append(resident_mb(way.pid) - before_mb)


def report(found: dict[tuple[str, str], Found]) -> str:
    """Return the table of all kinds."""

    def text(values: Sequence[float], digits: int = 0) -> str:
        return f"{median(values):.{digits}f}" if values else "-"

    head = ("way", "200 streams with", "RSS grows by MB", "at rest MB", "gone MB", "passed MB")
    last = ("a stream's round trip", "an order")
    rows = [
        (
            *key,
            *(text(values) for values in (one.grown_mb, one.rested_mb, one.after_mb, one.passed_mb)),
            *(text(one.ratios.get(name, []), 2) for name in ("stream", "requests")),
        )
        for key, one in found.items()
    ]
    return table((*head, *last), rows, words=2)


def main() -> None:
    parser = argparse.ArgumentParser(description="Memory of streams whose other side does not read.")
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each part of a round (5)")
    parser.add_argument("--ways", nargs="+", choices=(PROXY, GATEWAY, COMPILED), default=(GATEWAY, PROXY))
    parser.add_argument("--write", action="store_true", help="put it into docs/internals/performance.md")
    options = parser.parse_args()
    allow_many_connections()
    found: dict[tuple[str, str], Found] = {}
    for _ in range(options.rounds):
        for name in options.ways:
            for kind in (DEAF_BOTS, DEAF_EXCHANGE):
                with (
                    TemporaryDirectory() as folder,
                    running_here("stream_exchange.py") as exchange,
                    running_way(name, exchange, Path(folder)) as way,
                    asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
                ):
                    runner.run(play(name, way, kind, options, found.setdefault((name, kind), Found())))
                    print(name, kind, found[name, kind], file=sys.stderr)
    text = f"{machine()}\n\n{report(found)}"
    print(text)
    if options.write:
        write_part("streams-memory", text)


if __name__ == "__main__":
    main()
