"""What the gateway costs, beside direct, HAProxy and mitmproxy that sign, and a bare aiohttp proxy.

The gateway runs with everything on: bots' tokens, policy, signature, clock, pacing, metrics, and one line
for each request in a log file; once more with compiled modules where `scripts/compiled` was run, and on
asyncio instead of uvloop. Before anything is measured, one request of each way that signs is looked at as
it arrives.

The ways take turns within each round, and each round begins with another way, so that a machine that gets
slower or faster meanwhile does so for all of them. The table has the medians of the rounds; the ratios are
the medians of each round's own. CPU is what the process in the middle (direct: the upstream) spends on a
request; of all figures it depends least on what else the machine does.
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.latency_plot import plot
from bench.latency_report import CONNECTIONS, Report, Round
from bench.pages import DOCS, README, machine, write_part
from bench.process import Way, allow_many_connections, resident_mb
from bench.programs import BARE, DIRECT, STARTS, measure, running_upstream, running_ways, started
from bench.seal_check import check_seal

WITHOUT = dict(zip(("haproxy", "bare", "mitmproxy", "gateway", "compiled", "asyncio"), STARTS, strict=True))
_MANY = 1000  # open connections


@dataclass(frozen=True)
class Effort:
    """How many rounds of how long, and how many starts."""

    rounds: int
    seconds: float
    starts: int


FULL, QUICK = Effort(12, 0.6, 5), Effort(4, 0.25, 2)


@dataclass
class Run:
    """The ways as they stand, and what is measured of them."""

    ways: Mapping[str, Way]
    memory: dict[str, list[float]] = field(default_factory=dict)

    def check(self) -> None:
        for name in self.ways.keys() - {DIRECT, BARE}:
            check_seal(name, self.ways[name], self.ways[DIRECT])

    def note_memory(self, connections: int = 0) -> None:
        """Look at the memory: at rest, or while each connection has a request under way."""
        for name, way in self.ways.items():
            figures = measure(way, connections, 0.5) if connections else {}
            used = figures.get("resident_mb", math.nan) if connections else resident_mb(way.pid)
            self.memory.setdefault(name, []).append(used)

    def round(self, number: int, seconds: float) -> Round:
        names = list(self.ways)
        turn = number % len(names)
        return {
            (name, connections): measure(self.ways[name], connections, seconds)
            for connections in CONNECTIONS
            for name in names[turn:] + names[:turn]
        }


def measure_all(names: Sequence[str], effort: Effort) -> Report:
    with TemporaryDirectory() as folder, running_ways(Path(folder), names) as ways:
        run = Run(ways)
        run.check()
        run.note_memory()
        run.note_memory(32)  # warms up, too
        rounds = [run.round(number, effort.seconds) for number in range(effort.rounds)]
        run.note_memory(_MANY)
    ready_s = {name: median(starts(name, effort.starts)) for name in names if name in ways}
    return Report(rounds, run.memory, ready_s)


def starts(name: str, count: int) -> list[float]:
    """Return how long a way takes to its first answer, start by start."""
    with running_upstream() as direct:
        return [_start_s(name, f"127.0.0.1:{direct.port}") for _ in range(count)]


def _start_s(name: str, upstream: str) -> float:
    with TemporaryDirectory() as folder, started(STARTS[name](upstream, Path(folder))) as way:
        return way.ready_s


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Latency, requests/s, CPU, memory and start, way by way.")
    parser.add_argument("--quick", action="store_true", help="half a minute instead of three; coarse figures")
    parser.add_argument(
        "--without", action="append", choices=tuple(WITHOUT), default=[], help="leave out a way"
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="put the figures into docs/performance.md, its plot and the README",
    )
    return parser.parse_args()


def main() -> None:
    options = parse()
    allow_many_connections()
    names = [name for short, name in WITHOUT.items() if short not in options.without]
    report = measure_all(names, QUICK if options.quick else FULL)
    text = f"{machine()}\n\n{report.text()}"
    print(text)
    if options.write:
        write_part("latency", f"{text}\n\n![Added latency and throughput](performance.svg)")
        write_part("overhead", report.summary(), README)
        (DOCS / "performance.svg").write_text(plot(report))


if __name__ == "__main__":
    main()
