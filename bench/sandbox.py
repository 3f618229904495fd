"""Signed requests per second of the sandbox alone: `python bench/sandbox.py [COUNT]`.

The sandbox runs in a process of its own; the client here sends requests that were signed beforehand over
kept-alive loopback connections, one at a time on each, so that it costs as little as a client can.
"""

import asyncio
import hashlib
import hmac
import json
import subprocess
import sys
import time
from typing import Any
from urllib.parse import urlsplit

CONNECTIONS = 16
SANDBOX = [
    sys.executable,
    "-m",
    "sealgate",
    "sandbox",
    "--json",
    "--listen=127.0.0.1:0",
    "--limit-kind=none",
    "--recv-window-ms=3600000",
    "--clock-limit-ms=0",
    "--usdc=1000000000",
]
ORDER = json.dumps({"symbol": "BTC", "side": "buy", "size": "0.001", "price": "65000.0"}).encode()


def signed(sandbox: dict[str, str], method: str, path: str, body: bytes = b"") -> bytes:
    """Write a whole request."""
    timestamp = str(time.time_ns() // 1_000_000)
    message = f"{timestamp}{method}{path}".encode() + body
    signature = hmac.new(sandbox["api_secret"].encode(), message, hashlib.sha256).hexdigest()
    head = (
        f"{method} /v1/trade{path} HTTP/1.1\r\nHost: sandbox\r\nContent-Length: {len(body)}\r\n"
        f"X-SERVICE-APIKEY: {sandbox['api_key']}\r\nX-SERVICE-TIMESTAMP: {timestamp}\r\n"
        f"X-SERVICE-SIGNATURE: {signature}\r\n\r\n"
    )
    return head.encode() + body


async def drive(address: tuple[str, int], requests: list[bytes], latencies_s: list[float]) -> None:
    """Send requests one after the other on one connection."""
    reader, writer = await asyncio.open_connection(*address)
    for request in requests:
        started_s = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        latencies_s.append(time.perf_counter() - started_s)
    writer.close()


async def measure(name: str, address: tuple[str, int], requests: list[bytes]) -> None:
    """Send them all and print the figures."""
    latencies_s: list[float] = []
    started_s = time.perf_counter()
    lanes = [requests[lane::CONNECTIONS] for lane in range(CONNECTIONS)]
    await asyncio.gather(*(drive(address, lane, latencies_s) for lane in lanes))
    took_s = time.perf_counter() - started_s
    latencies_s.sort()
    p50_ms, p99_ms = (latencies_s[int(len(latencies_s) * share)] * 1000 for share in (0.5, 0.99))
    rate, each_ms = len(requests) / took_s, took_s / len(requests) * 1000
    print(f"{name:<22} {rate:7.0f}/s  {each_ms:.3f} ms each  p50 {p50_ms:.2f} ms  p99 {p99_ms:.2f} ms")


async def run(sandbox: dict[str, Any], count: int) -> None:
    """Measure the kinds of requests that a demo is made of."""
    url = urlsplit(sandbox["base_url"])
    address = (str(url.hostname), int(url.port or 0))
    address_path = f"/user/{sandbox['user_address']}/positions"
    await measure("time, unsigned", address, [signed(sandbox, "GET", "/time")] * count)
    await measure("positions, signed", address, [signed(sandbox, "GET", address_path)] * count)
    await measure("order, signed", address, [signed(sandbox, "POST", "/order", ORDER)] * count)
    cancels = [signed(sandbox, "DELETE", f"/order/{order_id}") for order_id in range(1, count + 1)]
    await measure("cancel by id, signed", address, cancels)


def main() -> None:
    """Start the sandbox and measure it."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with subprocess.Popen(SANDBOX, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            asyncio.run(run(json.loads(process.stdout.readline()), count))
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
