"""The latency benchmark's tables: medians of the rounds, and medians of each round's ratios."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.pages import spread, table
from bench.programs import BARE, CADDY, COMPILED, DIRECT, GATEWAY, HAPROXY, STARTS, Measurement

CONNECTIONS = (1, 32)
HEAD = ("way", "connections", "p50 µs", "added p50 µs", "p99 µs", "requests/s", "CPU µs/request")
FIGURES = ("p50_us", "added_p50_us", "p99_us", "per_s", "cpu_us")
RATIOS = {  # what of ours is divided by what of whom, at how many connections
    "added p50 to HAProxy's, 1": ("added_p50_us", HAPROXY, 1),
    "to Caddy's, 1": ("added_p50_us", CADDY, 1),
    "CPU to HAProxy's, 1": ("cpu_us", HAPROXY, 1),
    "requests/s to bare aiohttp's, 32": ("per_s", BARE, 32),
    "to Caddy's, 32": ("per_s", CADDY, 32),
    "CPU to bare aiohttp's, 32": ("cpu_us", BARE, 32),
}

Round = Mapping[tuple[str, int], Measurement]


@dataclass(frozen=True)
class Report:
    """What was measured of one row: round by round, each way at each number of connections."""

    rounds: Sequence[Round]

    @property
    def ways(self) -> list[str]:
        return [way for way in (DIRECT, *STARTS) if (way, CONNECTIONS[0]) in self.rounds[0]]

    def figure(self, way: str, connections: int, name: str) -> float:
        """Return the median of the rounds."""
        return median(_added(one, way, connections)[name] for one in self.rounds)

    def ratios(self, way: str, ratio: str) -> list[float]:
        """Return those of each round, none where the rival is missing."""
        name, rival, connections = RATIOS[ratio]
        if rival not in self.ways:
            return []
        return [
            _added(one, way, connections)[name] / _added(one, rival, connections)[name] for one in self.rounds
        ]

    @property
    def gateways(self) -> list[str]:
        return [way for way in self.ways if way in (GATEWAY, COMPILED)]

    def plain_data(self) -> dict[str, Any]:
        """Return all of it as JSON has it; ratios as their median, least and most."""
        figures = {
            way: {
                str(connections): {name: self.figure(way, connections, name) for name in FIGURES}
                for connections in CONNECTIONS
            }
            for way in self.ways
        }
        ratios = {
            way: {
                ratio: [median(found), min(found), max(found)]
                for ratio in RATIOS
                if (found := self.ratios(way, ratio))
            }
            for way in self.gateways
        }
        return {"figures": figures, "ratios": ratios}


def _added(one: Round, way: str, connections: int) -> Measurement:
    """Return the figures of one way, with its latency beyond what the direct way takes."""
    figures = one[way, connections]
    return figures | {"added_p50_us": figures["p50_us"] - one[DIRECT, connections]["p50_us"]}


def figures_table(report: Report) -> str:
    def rows() -> Iterator[Sequence[str]]:
        for connections in CONNECTIONS:
            for way in report.ways:
                cells = [f"{report.figure(way, connections, name):,.0f}" for name in FIGURES]
                cells[1] = "" if way == DIRECT else cells[1]
                yield way, str(connections), *cells

    return table(HEAD, rows())


def ratios_table(reports: Mapping[str, Report]) -> str:
    """Write a line for each row and kind of gateway."""

    def rows() -> Iterator[Sequence[str]]:
        for row, report in reports.items():
            for way in report.gateways:
                found = (report.ratios(way, ratio) for ratio in RATIOS)
                yield row, way, *(spread(ratios) if ratios else "" for ratios in found)

    title = "Ratios of each round, at 1 or 32 connections: median (least to most)"
    return f"{title}\n\n{table(('row', 'way', *RATIOS), rows(), words=2)}"
