"""What a thousand connections without a token cost a gateway that has 256 MiB, and its bots beside them.

`sealgate serve` runs in a memory cgroup of its own, where the kernel ends it if it needs more. A process of
strangers keeps its connections busy in one way after the other, and begins anew whatever is closed. Bots ask
all the while. Exits with 1 where the gateway ends, the bots' p99 is too long, or memory is not given
back.
"""

import argparse
import asyncio
import contextlib
import itertools
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory

from bench.pages import machine, table
from bench.process import allow_many_connections, cpu_s, resident_mb
from rig.acts import say
from rig.bot import request
from rig.mischief import stop
from rig.program import running_program
from rig.served import Served, environ, running_served
from rig.slow import address_of
from rig.upstream import running_upstream
from rig.wire import OK, let_pass

MEMORY, STRANGERS = 256 << 20, 1000
TOKEN = "a-token-of-the-right-bot"
READ = request(b"GET", b"/v1/trade/symbols/list", b"Authorization: Bearer " + TOKEN.encode())
SETTINGS = {"LISTEN__MAX_CONNECTIONS": str(STRANGERS + 100), "BOTS__GRID__TOKEN": "env:TOKEN"}
BOTS, GAP_S = 4, 0.02
_BACK_S = 5.0  # for the memory to come back
_MOST_P99_S, _MOST_LEFT_MB = 0.05, 20.0
_FIELD = b"X-%06d: " + b"x" * 8000 + b"\r\n"
_START = b"GET /v1/trade/x HTTP/1.1\r\nHost: 127.0.0.1\r\n"
_WRONG = b"Authorization: Bearer wrong-%d\r\n"
HEAD_BYTES = 64 * 1024


def unfinished(_: int) -> Iterator[bytes]:
    """Yield a head that lacks one byte to the bound, and nothing more."""
    fields = b"".join(_FIELD % at for at in range(8))
    yield (_START + fields + b"X-Rest: " + b"x" * 8000)[: HEAD_BYTES - 1]


def endless(_: int) -> Iterator[bytes]:
    """Yield a head that goes on and on."""
    yield _START
    yield from (_FIELD % at for at in itertools.count())


def strange(number: int) -> Iterator[bytes]:
    """Yield whole heads of 63 KB with wrong tokens, of which no two are alike, one behind the other."""
    for count in itertools.count():
        fields = b"".join(_FIELD % (number * 1000 + at + 7 * count) for at in range(7))
        yield _START + _WRONG % count + fields + b"X-Rest: " + b"y" * 6000 + b"\r\n\r\n"


def bodies(number: int) -> Iterator[bytes]:
    """Yield bodies of which nobody reads a byte, in chunks, with trailers without an end."""
    yield _START.replace(b"GET", b"POST") + _WRONG % number + b"Transfer-Encoding: chunked\r\n\r\n"
    yield from (b"10000\r\n" + b"x" * 0x10000 + b"\r\n" for _ in range(8))
    yield b"0\r\n"
    yield from (_FIELD % at for at in itertools.count())


WAYS = {way.__name__: way for way in (unfinished, endless, strange, bodies)}


async def be_strange(way: str, host: str, port: int, number: int) -> None:
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                sending = asyncio.ensure_future(send(way, writer, number))
                while await reader.read(1 << 16):
                    pass
                await stop(sending)
            finally:
                writer.transport.abort()
        await asyncio.sleep(0.5)


async def send(way: str, writer: asyncio.StreamWriter, number: int) -> None:
    with contextlib.suppress(OSError):
        for piece in WAYS[way](number):
            writer.write(piece)
            await writer.drain()


async def attack(way: str, host: str, port: int) -> None:
    """Keep all the connections busy until killed."""
    strangers = [asyncio.ensure_future(be_strange(way, host, port, number)) for number in range(STRANGERS)]
    print("attacking", flush=True)
    await asyncio.gather(*strangers)


@contextlib.contextmanager
def memory_cgroup(most: int) -> Iterator[Path]:
    """Make a cgroup below our own as long as the block lasts. Raises SystemExit where none can be made."""
    group = own_cgroup() / f"sealgate-hostile-{os.getpid()}"
    try:
        group.mkdir()
        bound = next(
            file for name in ("memory.max", "memory.limit_in_bytes") if (file := group / name).exists()
        )
        bound.write_text(str(most))
    except (OSError, StopIteration) as error:
        raise SystemExit(f"no memory cgroup can be made at {group}: {error}; run as root") from None
    try:
        yield group
    finally:
        group.rmdir()


def own_cgroup() -> Path:
    """Return this process's memory cgroup: of version 1 if there is one, else of version 2."""
    groups = [line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines()]
    for controllers, path in groups:
        if "memory" in controllers.split(","):
            return Path("/sys/fs/cgroup/memory" + path)
    return Path("/sys/fs/cgroup" + groups[-1][1])


@dataclass
class Round:
    """One way of attack: memory in MB before, at its most and after, and what the bots waited in seconds."""

    way: str
    before_mb: float
    most_mb: float = 0.0
    after_mb: float = 0.0
    cpu: float = 0.0  # of the gateway, while the strangers were there, as a part of a core
    latencies: list[float] = field(default_factory=list)
    failed: int = 0

    @property
    def p99_s(self) -> float:
        return quantiles(self.latencies, n=100)[98] if len(self.latencies) > 1 else float("inf")

    @property
    def is_fine(self) -> bool:
        is_back = self.after_mb - self.before_mb <= _MOST_LEFT_MB
        return self.p99_s < _MOST_P99_S and is_back and not self.failed

    def row(self) -> tuple[str, ...]:
        megabytes = (f"{value:.0f}" for value in (self.before_mb, self.most_mb, self.after_mb))
        waits = (f"{1000 * value:.1f}" for value in (self.p99_s, max(self.latencies, default=float("inf"))))
        return (
            self.way,
            *megabytes,
            f"{100 * self.cpu:.0f}",
            str(len(self.latencies)),
            *waits,
            str(self.failed),
        )


async def ask(served: Served, found: Round) -> None:
    """Be a bot until cancelled, on a connection that is kept."""
    while True:
        try:
            async with served.bot() as bot:
                while True:
                    since = time.monotonic()
                    assert (await bot.ask(READ)).status == 200
                    found.latencies.append(time.monotonic() - since)
                    found.most_mb = max(found.most_mb, resident_mb(served.pid))
                    await let_pass(GAP_S)
        except Exception:  # noqa: BLE001 - whatever keeps a bot from its reply
            found.failed += 1
            await let_pass(GAP_S)


@contextlib.asynccontextmanager
async def attacked(served: Served, way: str) -> AsyncIterator[None]:
    if way == "nobody":
        yield
        return
    host, port = address_of(served.bots)
    command = (str(Path(__file__)), "--attack", way, "--at", f"{host}:{port}")
    async with running_program(*command, start=()) as program:
        await program.line("attacking")
        yield


async def measure(served: Served, way: str, seconds: float) -> Round:
    """Let bots ask while strangers are there, and while the memory comes back."""
    found = Round(way, resident_mb(served.pid))
    asking = [asyncio.ensure_future(ask(served, found)) for _ in range(BOTS)]
    async with attacked(served, way):
        before_s = cpu_s(served.pid)
        await let_pass(seconds)
        found.cpu = (cpu_s(served.pid) - before_s) / seconds
    await let_pass(_BACK_S)
    for task in asking:
        await stop(task)
    found.after_mb = resident_mb(served.pid)
    return found


async def run(ways: list[str], seconds: float) -> list[Round]:
    found = []
    async with running_upstream() as upstream:
        upstream.otherwise = say(OK)
        for way in ways:
            with TemporaryDirectory() as folder, memory_cgroup(MEMORY) as group:
                enter = f"open({str(group / 'cgroup.procs')!r}, 'w').write('0')"
                start = ("-c", f"{enter}; from sealgate.cli import main; main()")
                settings = {**environ(upstream.base_url, None, **SETTINGS), "TOKEN": TOKEN}
                async with running_served(settings, Path(folder), start) as served:
                    await measure(served, "nobody", 2.0)
                    found.append(await measure(served, way, seconds))
            upstream.received.clear()
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A thousand strangers at a gateway with 256 MiB.")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each way of attack (20)")
    parser.add_argument("--ways", nargs="+", choices=(*WAYS, "nobody"), default=[*WAYS], help="of attack")
    parser.add_argument("--attack", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--at", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    options = parse()
    allow_many_connections()
    if options.attack:
        host, _, port = options.at.rpartition(":")
        asyncio.run(attack(options.attack, host, int(port)))
        return
    found = asyncio.run(run(options.ways, options.seconds))
    head = (
        "strangers send",
        "MB before",
        "most",
        "after",
        "CPU %",
        "replies",
        "p99 ms",
        "longest ms",
        "failed",
    )
    print(f"{machine()}\n\n{STRANGERS} strangers, {MEMORY >> 20} MiB.\n")
    print(table(head, (one.row() for one in found)))
    sys.exit(not all(one.is_fine for one in found))


if __name__ == "__main__":
    main()
