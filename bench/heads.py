"""What it costs to read the head of an order: out of the memory of heads, by httptools, and by aiohttp.

All are measured in turn in each round, by the time of the processor, so that what else the machine does
disturbs them alike: read the ratios. Each reads the same whole order; httptools calls an object that keeps
the fields, as its users must.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable

from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpRequestParser as AiohttpParser
from httptools import HttpRequestParser

from bench.orders import order
from sealgate.http.memory import HeadMemory
from sealgate.http.parser import RequestHead, RequestParser

_BATCH = 2_000
_BASE = "memory"


class _Taker:
    """Takes what httptools says of one message."""

    def __init__(self) -> None:
        self.target = b""
        self.fields: list[tuple[bytes, bytes]] = []

    def on_url(self, target: bytes) -> None:
        self.target = target

    def on_header(self, name: bytes, value: bytes) -> None:
        self.fields.append((name, value))


def from_memory(message: bytes) -> Callable[[], object]:
    [head, *_] = RequestParser().feed(message)
    assert isinstance(head, RequestHead)
    memory: HeadMemory[RequestHead] = HeadMemory()
    memory.put(head)
    assert memory.find(message) is not None
    return lambda: memory.find(message)


def by_httptools(message: bytes) -> Callable[[], object]:
    taker = _Taker()
    parser = HttpRequestParser(taker)

    def read() -> None:
        taker.fields = []
        parser.feed_data(message)

    read()
    assert taker.fields[0] == (b"Host", b"127.0.0.1")
    return read


def by_aiohttp(message: bytes) -> Callable[[], object]:
    loop = asyncio.get_running_loop()
    parser = AiohttpParser(BaseProtocol(loop), loop, 1 << 16)
    [[head, _]] = parser.feed_data(message)[0]
    assert head.headers["Host"] == "127.0.0.1"
    return lambda: parser.feed_data(message)


def run_us(read: Callable[[], object]) -> float:
    """Return what a call takes, in microseconds of the processor."""
    began = time.process_time_ns()
    for _ in range(_BATCH):
        read()
    return (time.process_time_ns() - began) / _BATCH / 1000


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    rounds = parser.parse_args().rounds
    message = order()
    ways = {
        "memory": from_memory(message),
        "httptools": by_httptools(message),
        "aiohttp": by_aiohttp(message),
    }
    taken = [{name: run_us(read) for name, read in ways.items()} for _ in range(rounds + 1)][1:]
    for name in ways:
        ratios = [one[name] / one[_BASE] for one in taken]
        took = statistics.median(one[name] for one in taken)
        ratio = f"{statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})"
        print(f"{name:<10} {took:6.2f} us, to {_BASE}: {ratio}")


if __name__ == "__main__":
    asyncio.run(main())
