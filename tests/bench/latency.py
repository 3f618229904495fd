"""What the gateway costs: latency and requests/s of direct, a bare aiohttp proxy, and the gateway.

The gateway runs with everything on: bots' tokens, policy, signature, clock, pause, metrics, and one line for
each request in a log file. The three ways take turns within each round, so that a machine that gets slower or
faster meanwhile does so for all of them. The table has the medians of the rounds; the ratios are the medians
of each round's own. `cpu us` is what the process in the middle (direct: the upstream) spends on a request; of
all figures it depends least on what else the machine does.
"""

import argparse
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.programs import BARE, DIRECT, GATEWAY, WAYS, Measurement, Way, measure, running_ways

CONNECTIONS = (1, 32)
FIGURES = ("p50_ms", "p99_ms", "per_s", "cpu_us")
RATIOS = ("added_p50_ms", "per_s", "cpu_us")

Round = dict[tuple[str, int], Measurement]


def run_round(ways: Mapping[str, Way], seconds: float) -> Round:
    return {
        (name, connections): measure(way, connections, seconds)
        for connections in CONNECTIONS
        for name, way in ways.items()
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
    print(f"{'':12}{'connections':>12}{'p50 ms':>10}{'p99 ms':>10}{'requests/s':>12}{'cpu us':>8}")
    for connections in CONNECTIONS:
        for way in WAYS:
            p50, p99, per_s, cpu = (median(one[way, connections][name] for one in rounds) for name in FIGURES)
            print(f"{way:12}{connections:>12}{p50:>10.3f}{p99:>10.3f}{per_s:>12.0f}{cpu:>8.0f}")


def print_ratios(rounds: list[Round]) -> None:
    print("\ngateway / bare proxy: median (least to most) of the rounds")
    print(f"{'connections':>12}{'added p50':>22}{'requests/s':>22}{'cpu us':>22}")
    for connections in CONNECTIONS:
        pairs = [(added(one, GATEWAY, connections), added(one, BARE, connections)) for one in rounds]
        spreads = (spread([ours[name] / bare[name] for ours, bare in pairs]) for name in RATIOS)
        print(f"{connections:>12}{''.join(f'{text:>22}' for text in spreads)}")


def added(one: Round, way: str, connections: int) -> Measurement:
    """Return the figures of one way, its latency without what the direct way takes."""
    figures = one[way, connections]
    return figures | {"added_p50_ms": figures["p50_ms"] - one[DIRECT, connections]["p50_ms"]}


def spread(values: list[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description="Latency and requests/s: direct, bare proxy, gateway.")
    parser.add_argument("--quick", action="store_true", help="ten seconds instead of most of a minute")
    quick = parser.parse_args().quick
    count, seconds = (2, 0.5) if quick else (6, 1.0)
    print(describe_machine(), end="\n\n")
    with TemporaryDirectory() as folder, running_ways(Path(folder)) as ways:
        run_round(ways, 0.3)  # warms up
        rounds = [run_round(ways, seconds) for _ in range(count)]
    print_table(rounds)
    print_ratios(rounds)


if __name__ == "__main__":
    main()
