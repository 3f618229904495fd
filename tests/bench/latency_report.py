"""The latency benchmark's tables: medians of the rounds, and medians of each round's ratios."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import median

from bench.pages import spread, table
from bench.programs import BARE, COMPILED, DIRECT, GATEWAY, HAPROXY, MITMPROXY, Measurement

CONNECTIONS = (1, 32)
RIVALS = (HAPROXY, BARE, MITMPROXY)
HEAD = ("way", "connections", "p50 µs", "added p50 µs", "p99 µs", "requests/s", "CPU µs/request")
MEMORY_HEAD = ("way", "RSS at rest MB", "32 connections", "1,000 connections", "ready after s")
SUMMARY_HEAD = ("way", "added p50 µs, 1 connection", "requests/s, 32 connections", "RSS at rest MB")
RATIO_HEAD = ("way", "to", "connections", "added p50", "requests/s", "CPU/request")

Round = Mapping[tuple[str, int], Measurement]


@dataclass(frozen=True)
class Report:
    """What was measured. Memory is at rest, under 32 and under 1,000 connections, by way."""

    rounds: Sequence[Round]
    memory: Mapping[str, Sequence[float]]
    ready_s: Mapping[str, float]

    @property
    def ways(self) -> list[str]:
        return list(self.memory)

    def figure(self, way: str, connections: int, name: str) -> float:
        """Return the median of the rounds."""
        return median(_added(one, way, connections)[name] for one in self.rounds)

    def text(self) -> str:
        """Write all tables."""
        memory = table(MEMORY_HEAD, map(self._memory_row, self.ways))
        title = "Ratios of each round: median (least to most)"
        ratios = table(RATIO_HEAD, self._ratio_rows())
        return f"{table(HEAD, self._rows())}\n\n{memory}\n\n{title}\n\n{ratios}"

    def summary(self) -> str:
        """Write the few figures that the README has of the same tables."""
        ways = [way for way in (*RIVALS, GATEWAY, COMPILED) if way in self.ways]
        alone, many = CONNECTIONS
        rows = (
            (
                way,
                f"{self.figure(way, alone, 'added_p50_us'):,.0f}",
                f"{self.figure(way, many, 'per_s'):,.0f}",
                self._memory_row(way)[1],
            )
            for way in ways
        )
        return table(SUMMARY_HEAD, rows)

    def _rows(self) -> Iterator[Sequence[str]]:
        for connections in CONNECTIONS:
            for way in self.ways:
                names = ("p50_us", "added_p50_us", "p99_us", "per_s", "cpu_us")
                cells = [f"{self.figure(way, connections, name):,.0f}" for name in names]
                cells[1] = "" if way == DIRECT else cells[1]
                yield way, str(connections), *cells

    def _memory_row(self, way: str) -> Sequence[str]:
        start = f"{self.ready_s[way]:.2f}" if way in self.ready_s else ""
        return way, *(f"{used:.0f}" for used in self.memory[way]), start

    def _ratio_rows(self) -> Iterator[Sequence[str]]:
        for ours, rival in product((GATEWAY, COMPILED), RIVALS):
            for connections in CONNECTIONS if {ours, rival} <= {*self.ways} else ():
                ratios = (
                    self._ratios((ours, rival), connections, name)
                    for name in ("added_p50_us", "per_s", "cpu_us")
                )
                yield ours, rival, str(connections), *map(spread, ratios)

    def _ratios(self, ways: tuple[str, str], connections: int, name: str) -> list[float]:
        pairs = ((_added(one, way, connections)[name] for way in ways) for one in self.rounds)
        return [ours / (rival or math.nan) for ours, rival in pairs]


def _added(one: Round, way: str, connections: int) -> Measurement:
    """Return the figures of one way, with its latency beyond what the direct way takes."""
    figures = one[way, connections]
    return figures | {"added_p50_us": figures["p50_us"] - one[DIRECT, connections]["p50_us"]}
