"""What the gateway costs: latency and requests/s of direct, a bare aiohttp proxy, and the gateway.

The gateway runs with everything on: bots' tokens, policy, signature, clock, pause, metrics, and a JSON
log line per request into a file. The three ways take turns within each round, so that a machine that gets slower
or faster meanwhile does so for all of them. The table has the medians of the rounds; the ratios are the
medians of each round's own.
"""

import argparse
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.programs import DIRECT, WAYS, Measurement, measure, running_ways

CONNECTIONS = (1, 32)
FIGURES = ("p50_ms", "p99_ms", "per_s")

Round = dict[tuple[str, int], Measurement]


def run_round(ports: Mapping[str, int], seconds: float) -> Round:
    return {
        (way, connections): measure(port, connections, seconds)
        for connections in CONNECTIONS
        for way, port in ports.items()
    }


def describe_machine() -> str:
    python = f"Python {platform.python_version()}"
    libraries = (f"{name} {version(name)}" for name in ("aiohttp", "uvloop", "sealgate"))
    return f"{_processor()}, {os.cpu_count()} CPUs, {platform.system()}\n{', '.join((python, *libraries))}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def print_table(rounds: list[Round]) -> None:
    print(f"{'':12}{'connections':>12}{'p50 ms':>10}{'p99 ms':>10}{'requests/s':>12}")
    for connections in CONNECTIONS:
        for way in WAYS:
            p50, p99, per_s = (median(one[way, connections][name] for one in rounds) for name in FIGURES)
            print(f"{way:12}{connections:>12}{p50:>10.3f}{p99:>10.3f}{per_s:>12.0f}")


def print_ratios(rounds: list[Round]) -> None:
    print("\ngateway / bare proxy, median (least to most) of the rounds")
    for connections in CONNECTIONS:
        added = [
            added_p50(one, "gateway", connections) / added_p50(one, "bare proxy", connections)
            for one in rounds
        ]
        per_s = [
            one["gateway", connections]["per_s"] / one["bare proxy", connections]["per_s"] for one in rounds
        ]
        print(f"{connections:>4} connections   added p50 {spread(added)}   requests/s {spread(per_s)}")


def added_p50(one: Round, way: str, connections: int) -> float:
    return one[way, connections]["p50_ms"] - one[DIRECT, connections]["p50_ms"]


def spread(values: list[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description="Latency and requests/s: direct, bare proxy, gateway.")
    parser.add_argument("--quick", action="store_true", help="ten seconds instead of most of a minute")
    quick = parser.parse_args().quick
    count, seconds = (2, 0.5) if quick else (6, 1.0)
    print(describe_machine(), end="\n\n")
    with TemporaryDirectory() as folder, running_ways(Path(folder)) as ports:
        run_round(ports, 0.3)  # warms up
        rounds = [run_round(ports, seconds) for _ in range(count)]
    print_table(rounds)
    print_ratios(rounds)


if __name__ == "__main__":
    main()
