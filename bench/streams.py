"""What streams through the gateway cost, beside a direct connection and the usual small aiohttp proxy.

The exchange sends frames that were made beforehand, the client counts them. Each is a process of its own, and
all ways run at once and take turns within each round, in an order that is drawn from the seed. The figures
are medians of the rounds, the ratios the medians of each round's own; CPU is that of the process in the
middle (direct: the exchange). What is added to a round trip is its time above the direct one of that round.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory

from bench.pages import machine, table, write_part
from bench.process import allow_many_connections
from bench.programs import COMPILED, DIRECT, GATEWAY, Measurement
from bench.stream_ways import PROXY, READ, UNREAD, measure, running_ways

WAYS = (DIRECT, PROXY, GATEWAY, COMPILED)
Round = Mapping[str, Measurement]


@dataclass(frozen=True)
class Row:
    """A load; `unit` and `value` say what is looked at, `aim` what its ratio to the aiohttp proxy may be."""

    name: str
    path: str
    streams: int
    unit: str
    value: Callable[[Round, str], float]
    aim: str


def _added(percentile: str) -> Callable[[Round, str], float]:
    return lambda found, way: found[way][percentile] - found[DIRECT][percentile]


def _figure(name: str) -> Callable[[Round, str], float]:
    return lambda found, way: found[way][name]


_ONE, _BATCH, _TRIP, _TRIP_READ, _MANY = (
    (f"{UNREAD}/feed/1000/1", 1),
    (f"{UNREAD}/flood/20", 1),
    (f"{UNREAD}/echo", 1),
    (f"{READ}/echo", 1),
    (f"{UNREAD}/feed/50/1", 200),
)
ROWS = (
    Row("one message at a time, 1,000/s", *_ONE, "CPU us a message", _figure("cpu_us"), "0.6"),
    Row("20 in a segment, as fast as it goes", *_BATCH, "messages/s", _figure("per_s"), "5 or more"),
    Row("the same", *_BATCH, "CPU us a message", _figure("cpu_us"), ""),
    Row("a round trip", *_TRIP, "added p50 us", _added("p50_us"), "0.8"),
    Row("the same", *_TRIP, "added p99 us", _added("p99_us"), ""),
    Row("the same", *_TRIP, "CPU us", _figure("cpu_us"), ""),
    Row("a round trip, the bot's messages read", *_TRIP_READ, "added p50 us", _added("p50_us"), ""),
    Row("the same", *_TRIP_READ, "added p99 us", _added("p99_us"), ""),
    Row("the same", *_TRIP_READ, "CPU us", _figure("cpu_us"), ""),
    Row("200 streams, 50 messages/s each", *_MANY, "share of a core", _figure("share"), "(0.5 of a core)"),
    Row("the same", *_MANY, "CPU us a message", _figure("cpu_us"), "0.6"),
    Row("the same", *_MANY, "messages/s", _figure("per_s"), ""),
)
LOADS = tuple(dict.fromkeys((row.path, row.streams) for row in ROWS))


def measured(options: argparse.Namespace) -> dict[tuple[str, int], list[Round]]:
    """Return the rounds of each load."""
    found: dict[tuple[str, int], list[Round]] = {load: [] for load in LOADS}
    chance = Random(options.seed)
    with TemporaryDirectory() as folder, running_ways(Path(folder), options.ways) as ways:
        for _ in range(options.rounds):
            for path, streams in chance.sample(LOADS, len(LOADS)):
                figures = {}
                for name in chance.sample([*ways], len(ways)):
                    figures[name] = measure(name, ways[name], path, streams, options.seconds)
                found[path, streams].append(figures)
                print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def report(found: Mapping[tuple[str, int], Sequence[Round]], ways: Sequence[str]) -> str:
    """Return the table of all rows."""

    def text(value: float) -> str:
        if math.isnan(value):
            return "-"
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"

    def rows() -> Iterator[Sequence[str]]:
        for row in ROWS:
            rounds = found[row.path, row.streams]
            values = [{way: row.value(one, way) for way in one} for one in rounds]
            medians = {way: median(one[way] for one in values) for way in values[0]}
            ratios = [
                median(one[way] / one[PROXY] for one in values)
                if {way, PROXY} <= medians.keys()
                else math.nan
                for way in (GATEWAY, COMPILED)
            ]
            yield (
                row.name,
                row.unit,
                *(text(medians.get(way, math.nan)) for way in WAYS if way in ways),
                *map(text, ratios),
                row.aim,
            )

    head = ("load", "figure", *(way for way in WAYS if way in ways))
    return table((*head, "gateway to proxy", "compiled to proxy", "aim"), rows(), words=2)


def main() -> None:
    parser = argparse.ArgumentParser(description="What streams cost, beside an aiohttp proxy and directly.")
    parser.add_argument("--rounds", type=int, default=7, help="of each load (7)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement (2)")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS, help="these; direct among them")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--write", action="store_true", help="put it into docs/internals/performance.md")
    options = parser.parse_args()
    print(f"seed {options.seed}", file=sys.stderr)
    allow_many_connections()
    found = measured(options)
    text = f"{machine()}\n\n{report(found, options.ways)}"
    rounds = [{"path": path, "streams": streams, "rounds": one} for (path, streams), one in found.items()]
    print(json.dumps(rounds, indent=1) if options.json else text)
    if options.write:
        write_part("streams", text)


if __name__ == "__main__":
    main()
