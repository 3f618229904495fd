"""The figures of the soak: samples of a process from outside, their linear fit, and latencies."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import linear_regression, mean, pstdev, quantiles
from typing import Any

from bench.pages import table
from bench.process import resident_mb
from rig.served import Served

_THREADS = re.compile(r"^Threads:\s*(\d+)", re.MULTILINE)
# What may come and go without being growth, over half of the time: the noise of an allocator, a connection.
_TOLERATED = {
    "RSS MB": 2.0,
    "descriptors": 8.0,
    "tasks": 8.0,
    "threads": 2.0,
    "in flight": 8.0,
    "connections": 8.0,
}
_SIGMAS = 2.0


@dataclass
class Samples:
    """Readings of one process: seconds since the start, and a value by name."""

    at_s: list[float] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=dict)

    async def take(self, served: Served, at_s: float, outcomes: Mapping[str, int]) -> None:
        status = await served.status()
        self.at_s.append(at_s)
        for name, value in _reading(served.pid, len(served.descriptors), status).items():
            self.values.setdefault(name, []).append(value)
        for name in ("done", "unknown", "not_sent"):
            self.values.setdefault(name, []).append(outcomes.get(name, 0))

    def rows(self, count: int = 6) -> Iterator[tuple[str, ...]]:
        """Return so many of them, evenly spread, the first and the last included."""
        last = len(self.at_s) - 1
        for at in sorted({round(last * part / (count - 1)) for part in range(count)}):
            values = (f"{values[at]:,.1f}".removesuffix(".0") for values in self.values.values())
            yield (f"{self.at_s[at]:.0f}", *values)


def _reading(pid: int, descriptors: int, status: Mapping[str, Any]) -> dict[str, float]:
    threads = _THREADS.search(Path(f"/proc/{pid}/status").read_text())
    assert threads is not None
    return {
        "RSS MB": resident_mb(pid),
        "descriptors": descriptors,
        "tasks": status["tasks"],
        "threads": float(threads[1]),
        "in flight": status["inflight"],
        "connections": status["connections"],
        "in doubt": status["journal"]["in_doubt"],
    }


@dataclass(frozen=True)
class Trend:
    """The line through the second half of the readings: by then memories are full and pools open."""

    name: str
    per_minute: float
    growth: float
    noise: float

    @property
    def grows(self) -> bool:
        return self.growth > max(_TOLERATED[self.name], _SIGMAS * self.noise)

    def cells(self) -> tuple[str, ...]:
        figures = (f"{value:+.2f}" for value in (self.per_minute, self.growth))
        return self.name, *figures, f"{self.noise:.2f}", "GROWS" if self.grows else "no"


def trends(samples: Samples) -> Iterator[Trend]:
    half = len(samples.at_s) // 2
    minutes = [at_s / 60 for at_s in samples.at_s[half:]]
    for name in _TOLERATED:
        values = samples.values[name][half:]
        slope, start = linear_regression(minutes, values)
        rest = [value - start - slope * minute for minute, value in zip(minutes, values, strict=True)]
        yield Trend(name, slope, slope * (minutes[-1] - minutes[0]), pstdev(rest))


def report(samples: Samples) -> tuple[str, bool]:
    """Return the tables, and whether anything grows."""
    found = list(trends(samples))
    over_time = table(("s", *samples.values), samples.rows(), words=0)
    fits = table(("second half", "a minute", "in all", "noise", "grows?"), (one.cells() for one in found))
    return f"{over_time}\n\n{fits}", any(one.grows for one in found)


def latency_row(name: str, latencies: Sequence[float], growth_mb: float) -> tuple[str, ...]:
    """Return what half and 99 of 100 stay under, the worst, and what the memory grew by meanwhile."""
    hundredths = quantiles(latencies, n=100)
    figures = (hundredths[49], hundredths[98], max(latencies), mean(latencies))
    return name, *(f"{value * 1000:.1f}" for value in figures), f"{growth_mb:+.1f}"


LATENCY_HEAD = ("others meanwhile", "p50 ms", "p99 ms", "worst ms", "mean ms", "RSS MB")
