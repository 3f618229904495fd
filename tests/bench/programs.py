"""The benchmark's programs: upstream, bare proxy, gateway and client, each a process of its own."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.load import TOKEN

DIRECT, BARE, GATEWAY = WAYS = ("direct", "bare proxy", "gateway")
_HERE = Path(__file__).parent
_MOST_REQUESTS = 50_000  # of one measurement
_PATIENCE_S = 20.0

Measurement = dict[str, float]


@dataclass(frozen=True)
class Way:
    """Where the client connects, and the process that listens there."""

    port: int
    pid: int


@contextmanager
def running_ways(folder: Path) -> Iterator[dict[str, Way]]:
    """Run all but the client."""
    with ExitStack() as stack:
        upstream = stack.enter_context(_running("upstream.py"))
        base_url = f"http://127.0.0.1:{upstream.port}"
        bare = stack.enter_context(_running("bare_proxy.py", base_url))
        gateway = stack.enter_context(_running_gateway(base_url, folder / "gateway.log"))
        yield {DIRECT: upstream, BARE: bare, GATEWAY: gateway}


def measure(way: Way, connections: int, seconds: float) -> Measurement:
    """Let the client run, and see what the process that it talks to spends meanwhile."""
    arguments = (str(_HERE / "load.py"), str(way.port), str(connections), str(seconds), str(_MOST_REQUESTS))
    before = _cpu_s(way.pid)
    done = subprocess.run(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        check=True,
        timeout=seconds + _PATIENCE_S,
        text=True,
    )
    spent = _cpu_s(way.pid) - before
    figures: Measurement = json.loads(done.stdout)
    return figures | {"cpu_us": spent * 1e6 / figures["requests"]}


def _cpu_s(pid: int) -> float:
    """Return the processor time of a process so far, not a number where the system does not tell."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files) / 1e9 or math.nan


@contextmanager
def _running(*arguments: str) -> Iterator[Way]:
    """Run a program of this folder, which prints its port."""
    command = [sys.executable, str(_HERE / arguments[0]), *arguments[1:]]
    with _ended(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)) as process:
        assert process.stdout is not None
        yield Way(int(process.stdout.readline()), process.pid)


@contextmanager
def _running_gateway(base_url: str, log: Path) -> Iterator[Way]:
    command = [sys.executable, "-m", "sealgate", "serve"]
    with (
        log.open("wb") as stderr,
        _ended(
            subprocess.Popen(command, env=_gateway_environ(base_url), stderr=stderr, text=True)
        ) as process,
    ):
        yield Way(_gateway_port(process, log), process.pid)


@contextmanager
def _ended(process: "subprocess.Popen[str]") -> Iterator["subprocess.Popen[str]"]:
    with process:
        try:
            yield process
        finally:
            process.terminate()


def _gateway_environ(base_url: str) -> Mapping[str, str]:
    return {
        **os.environ,
        "SEALGATE_BASE_URL": base_url,
        "SEALGATE_LISTEN__TCP": "127.0.0.1:0",
        "SEALGATE_ADMIN__TCP": "127.0.0.1:0",
        "SEALGATE_LOG__FORMAT": "json",
        "SEALGATE_KEYS__MAIN__API_KEY": "bench",
        "SEALGATE_KEYS__MAIN__SECRET": "env:BENCH_SECRET",
        "SEALGATE_BOTS__BENCH__TOKEN": "env:BENCH_TOKEN",
        "BENCH_SECRET": "bench-secret",
        "BENCH_TOKEN": TOKEN,
    }


def _gateway_port(process: "subprocess.Popen[str]", log: Path) -> int:
    """Wait until the log says where it listens, and that it is ready."""
    while process.poll() is None:
        events = {line["event"]: line for line in map(json.loads, _whole_lines(log))}
        if "clock_synced" in events and "listening" in events:
            return int(events["listening"]["bots"].rpartition(":")[2])
    raise SystemExit(log.read_text())


def _whole_lines(log: Path) -> list[str]:
    return log.read_text().split("\n")[:-1]
