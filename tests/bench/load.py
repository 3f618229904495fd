"""The benchmark's client: load.py PORT CONNECTIONS SECONDS REQUESTS. Prints the latencies' summary as JSON.

Each connection sends an order, waits for the whole reply, and sends the next one (a closed loop). It parses
only what it must: where the reply ends.
"""

import asyncio
import json
import re
import sys
import time
from dataclasses import dataclass, field
from statistics import quantiles

import uvloop

PATIENCE_S = 10.0
TOKEN = "bench-token"
BODY = b'{"symbol":"BTC","side":"buy","size":"0.001","price":"65000.0"}'.ljust(100)
REQUEST = (
    b"POST /v1/trade/order HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\n"
    b"Authorization: Bearer %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
) % (TOKEN.encode(), len(BODY), BODY)
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@dataclass
class Course:
    """What all connections share: when and after how many requests to stop, and the latencies so far."""

    until: float
    requests: int
    latencies: list[float] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return len(self.latencies) >= self.requests or time.perf_counter() >= self.until


class Client(asyncio.Protocol):
    """One connection."""

    def __init__(self, course: Course) -> None:
        self.done = asyncio.get_running_loop().create_future()
        self._course = course
        self._buffer = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._sent = time.perf_counter()
        self._transport.write(REQUEST)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not _is_whole(self._buffer):
            return
        if not self._buffer.startswith(b"HTTP/1.1 200 "):
            self.done.set_exception(RuntimeError(self._buffer.decode("latin-1")))
            return
        self._course.latencies.append(time.perf_counter() - self._sent)
        self._buffer = b""
        if self._course.is_over:
            self._transport.close()
            self.done.set_result(None)
        else:
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("closed"))


def _is_whole(reply: bytes) -> bool:
    end = reply.find(b"\r\n\r\n")
    if end < 0:
        return False
    stated = _LENGTH.search(reply, 0, end)
    return len(reply) >= end + 4 + int(stated[1]) if stated else reply.endswith(b"\r\n0\r\n\r\n")


async def main(port: int, connections: int, seconds: float, requests: int) -> None:
    started = time.perf_counter()
    course = Course(started + seconds, requests)
    loop = asyncio.get_running_loop()
    clients = [
        (await loop.create_connection(lambda: Client(course), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]
    async with asyncio.timeout(seconds + PATIENCE_S):
        await asyncio.gather(*(client.done for client in clients))
    print(json.dumps(summary(course.latencies, time.perf_counter() - started)))


def summary(latencies: list[float], elapsed_s: float) -> dict[str, float]:
    hundredths = quantiles(latencies, n=100)
    return {
        "p50_ms": hundredths[49] * 1000,
        "p99_ms": hundredths[98] * 1000,
        "per_s": len(latencies) / elapsed_s,
        "requests": len(latencies),
    }


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as running:
        running.run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])))
