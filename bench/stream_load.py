"""The client of the streams' benchmark: stream_load.py PORT PID TARGET STREAMS SECONDS. Prints JSON.

It opens the streams, and looks at the process PID, which is the one that it talks to, from a warm-up on. Of
a feed it counts the messages, all of which must be those of stream_frames.py in their order. Where the target
ends in /echo, each stream sends a message, waits for the answer, and sends the next one (a closed loop).
"""

import argparse
import asyncio
import json
import math
import time

import uvloop

from bench.load import PATIENCE_S, summary
from bench.orders import token
from bench.process import allow_many_connections, cpu_s
from bench.stream_frames import FRAMES, FrameCount
from rig.websocket import TEXT, frame, upgrade

ASKED = frame(
    TEXT, b'{"op":"ping","reqId":"00000001","args":["BTCUSDT"]}'.ljust(120), mask=b"\x21\x84\x0f\xd3"
)
AUTHORISED = f"Authorization: Bearer {token(0)}"


class Client(asyncio.Protocol):
    """One stream. `latencies` are those of the messages that it sent."""

    def __init__(self, target: str) -> None:
        self.opened = asyncio.get_running_loop().create_future()
        self.is_ending = False
        self.latencies: list[float] = []
        self.count = FrameCount()
        self._target = target
        self._asks = target.endswith("/echo")
        self._head = b""
        self._came = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        transport.write(upgrade(self._target, AUTHORISED))

    def data_received(self, data: bytes) -> None:
        if not self.opened.done():
            self._head += data
            end = self._head.find(b"\r\n\r\n") + 4
            if end < 4:
                return
            if not self._head.startswith(b"HTTP/1.1 101 "):
                self._fail(self._head.decode("latin-1"))
                return
            data = self._head[end:]
            self.opened.set_result(None)
        if self._asks:
            self._came += len(data)
            if self._came == len(FRAMES[0]):
                self.latencies.append(time.perf_counter() - self._sent)
                self.ask()
        else:
            self.count.add(data)

    def ask(self) -> None:
        """Send a message."""
        self._came, self._sent = 0, time.perf_counter()
        self.transport.write(ASKED)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.is_ending:
            self._fail(f"the stream ended: {exc!r}")

    def _fail(self, words: str) -> None:
        if self.opened.done():
            raise SystemExit(words)
        self.opened.set_exception(SystemExit(words))


async def open_streams(port: int, target: str, many: int) -> list[Client]:
    """Open streams, a few at a time."""
    loop, clients = asyncio.get_running_loop(), []
    for at in range(0, many, 20):
        group = [Client(target) for _ in range(min(20, many - at))]
        for client in group:
            await loop.create_connection(lambda client=client: client, "127.0.0.1", port)  # type: ignore[misc]
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(client.opened for client in group))
        clients += group
    return clients


async def main(options: argparse.Namespace) -> None:
    clients = await open_streams(options.port, options.target, options.streams)
    if options.target.endswith("/echo"):
        for client in clients:
            client.ask()
    await asyncio.sleep(options.warm_up)
    for client in clients:
        client.latencies.clear()
    since, spent_s = time.perf_counter(), cpu_s(options.pid)
    frames = sum(client.count.frames for client in clients)
    await asyncio.sleep(options.seconds)
    elapsed_s, spent_s = time.perf_counter() - since, cpu_s(options.pid) - spent_s
    latencies = [latency for client in clients for latency in client.latencies]
    messages = sum(client.count.frames for client in clients) - frames + len(latencies)
    figures = {
        "per_s": messages / elapsed_s,
        "cpu_us": spent_s * 1e6 / (messages or math.nan),
        "share": spent_s / elapsed_s,
        **summary(latencies),
    }
    print(json.dumps(figures))
    for client in clients:
        client.is_ending = True
        client.transport.abort()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Open streams, and measure what comes.")
    parser.add_argument("port", type=int)
    parser.add_argument("pid", type=int)
    parser.add_argument("target")
    parser.add_argument("streams", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--warm-up", type=float, default=0.3, metavar="SECONDS")
    return parser.parse_args()


if __name__ == "__main__":
    allow_many_connections()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as running:
        running.run(main(parse()))
