"""The benchmark's client: load.py PORT PID CONNECTIONS SECONDS. Prints a summary as JSON.

Each connection sends an order, waits for the whole reply, and sends the next one (a closed loop). It parses
only what it must: where the reply ends. All begin when each has had a first reply, as a server may be slow
to accept a thousand connections. The process PID, which is the one that it talks to, is looked at after a
warm-up and at the end, so that neither the client's start nor the opening of the connections counts.
"""

import argparse
import asyncio
import json
import math
import re
import ssl
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from statistics import quantiles

import uvloop

from bench.orders import VARIED, order, orders, unique_orders
from bench.process import cpu_s, resident_mb

PATIENCE_S = 30.0
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@dataclass
class Course:
    """What all connections share: what to send, the latencies so far, and whether to stop."""

    messages: Iterator[bytes]
    latencies: list[float] = field(default_factory=list)
    is_on: bool = False


class Client(asyncio.Protocol):
    """One connection."""

    def __init__(self, course: Course) -> None:
        loop = asyncio.get_running_loop()
        self.opened, self.done = loop.create_future(), loop.create_future()
        self._course = course
        self._buffer = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self.send()

    def send(self) -> None:
        message = next(self._course.messages)
        self._sent = time.perf_counter()
        self._transport.write(message)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not _is_whole(self._buffer):
            return
        if not self._buffer.startswith(b"HTTP/1.1 200 "):
            self._fail(RuntimeError(self._buffer.decode("latin-1")))
            return
        self._course.latencies.append(time.perf_counter() - self._sent)
        self._buffer = b""
        if self._course.is_on:
            self.send()
        elif self.opened.done():
            self.done.set_result(None)
        else:
            self.opened.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(exc or ConnectionError("closed"))

    def _fail(self, error: Exception) -> None:
        for future in (self.opened, self.done):
            if not future.done():
                future.set_exception(error)


def _is_whole(reply: bytes) -> bool:
    end = reply.find(b"\r\n\r\n")
    if end < 0:
        return False
    stated = _LENGTH.search(reply, 0, end)
    return len(reply) >= end + 4 + int(stated[1]) if stated else reply.endswith(b"\r\n0\r\n\r\n")


async def main(options: argparse.Namespace) -> None:
    repeated = orders(*options.vary) if options.vary else [order()]
    course = Course(unique_orders() if options.unique else cycle(repeated))
    trusted = ssl.create_default_context(cafile=options.ca_file) if options.ca_file else None
    loop = asyncio.get_running_loop()
    clients = [
        (await loop.create_connection(lambda: Client(course), "127.0.0.1", options.port, ssl=trusted))[1]
        for _ in range(options.connections)
    ]
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(client.opened for client in clients))
    course.is_on = True
    for client in clients:
        client.send()
    await asyncio.sleep(options.warm_up)
    figures = await measure(course, options.pid, options.seconds)
    course.is_on = False
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(client.done for client in clients))
    print(json.dumps(figures))


async def measure(course: Course, pid: int, seconds: float) -> dict[str, float]:
    """Return what happens from now on for some seconds."""
    course.latencies.clear()
    since, spent_s = time.perf_counter(), cpu_s(pid)
    await asyncio.sleep(seconds)
    latencies = list(course.latencies)
    elapsed_s, spent_s = time.perf_counter() - since, cpu_s(pid) - spent_s
    return summary(latencies) | {
        "per_s": len(latencies) / elapsed_s,
        "cpu_us": spent_s * 1e6 / (len(latencies) or math.nan),
        "resident_mb": resident_mb(pid),
    }


def summary(latencies: Sequence[float]) -> dict[str, float]:
    """Return the latencies that half and 99 of 100 stay under, not a number where there are too few."""
    hundredths = quantiles(latencies, n=100) if len(latencies) > 1 else [math.nan] * 99
    return {"p50_us": hundredths[49] * 1e6, "p99_us": hundredths[98] * 1e6}


def _varied(text: str) -> tuple[str, int]:
    name, _, count = text.partition(":")
    if name not in (*VARIED, "exchanges"):
        raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(VARIED)} and exchanges")
    return name, int(count)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Send orders, each after the reply to the last one.")
    parser.add_argument("port", type=int)
    parser.add_argument("pid", type=int)
    parser.add_argument("connections", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--warm-up", type=float, default=0.1, metavar="SECONDS")
    parser.add_argument("--vary", type=_varied, metavar="WHAT:COUNT", help="orders of as many bots, ...")
    parser.add_argument("--ca-file", metavar="FILE", help="speak TLS, and trust this authority")
    parser.add_argument("--unique", action="store_true", help="orders with fields that no other one has")
    return parser.parse_args()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as running:
        running.run(main(parse()))
