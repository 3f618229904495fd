"""The metrics that every request adds to: plain numbers, which become metrics when somebody asks.

The library's own counters check and lock for each number; these cost a quarter of that. One thread adds, and
another may write meanwhile, from copies.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from sealgate.core.outcome import Conclusion, Outcome
from sealgate.core.routes import Lane

_FAST = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 1.0)
_SLOW = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

_Row = tuple[str, str, str, str, int, Conclusion]  # bot, key, route, method, status and so on


class _Durations:
    """A histogram in seconds. `bounds` ascend; what is beyond the last one counts too."""

    __slots__ = ("_bounds", "_counts", "_sum_s")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum_s = 0.0

    def add(self, seconds: float) -> None:
        """Take in one duration."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum_s += seconds

    def buckets(self) -> tuple[list[tuple[str, float]], float]:
        """Return how many are at most each bound, and the sum of all."""
        below, buckets = 0, []
        for bound, count in zip((*self._bounds, "+Inf"), self._counts.copy(), strict=True):
            below += count
            buckets.append((str(bound), float(below)))
        return buckets, self._sum_s


class Traffic(Collector):
    """The metrics that every request of a known bot adds to."""

    def __init__(self) -> None:
        self._rows: dict[_Row, int] = {}
        self._added = _Durations(_FAST)
        self._upstream = _Durations(_SLOW)
        self._queued: dict[tuple[str, Lane], _Durations] = {}

    def take(self, outcome: Outcome, bot: str, key: str) -> None:
        """Take a request in."""
        row = (bot, key, outcome.route, outcome.method, outcome.status, outcome.conclusion)
        self._rows[row] = self._rows.get(row, 0) + 1
        self._added.add(outcome.added_s)
        if outcome.attempts:
            self._upstream.add(outcome.upstream_s)
        if outcome.lane is not None:
            self._queue(key, outcome.lane).add(outcome.queue_s)

    def _queue(self, key: str, lane: Lane) -> _Durations:
        queued = self._queued.get((key, lane))
        if queued is None:
            queued = self._queued[key, lane] = _Durations(_SLOW)
        return queued

    def collect(self) -> Iterator[Metric]:
        """Write them from copies: a scrape is in another thread."""
        rows = self._rows.copy()
        labels = ("bot", "key", "route", "method", "status")
        requests = CounterMetricFamily("sealgate_requests", "Requests of known bots", labels=labels)
        outcomes = CounterMetricFamily(
            "sealgate_outcomes", "What bots could conclude", labels=("bot", "outcome")
        )
        counts: Counter[tuple[str, ...]] = Counter()
        concluded: Counter[tuple[str, str]] = Counter()
        for (bot, key, route, method, status, conclusion), count in rows.items():
            counts[bot, key, route, method, str(status)] += count
            concluded[bot, conclusion.value] += count
        for names, count in counts.items():
            requests.add_metric(names, count)
        for pair, count in concluded.items():
            outcomes.add_metric(pair, count)
        yield requests
        yield outcomes
        yield _durations("added_latency", "Time that the gateway itself takes", {(): self._added})
        queued: dict[tuple[str, ...], _Durations] = {
            (key, lane.value): one for (key, lane), one in self._queued.copy().items()
        }
        yield _durations("queue_wait", "Time spent waiting in the gateway", queued, "key", "lane")
        yield _durations("upstream_duration", "Time spent waiting for the upstream", {(): self._upstream})


def _durations(
    name: str, text: str, of: Mapping[tuple[str, ...], _Durations], *labels: str
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(f"sealgate_{name}_seconds", text, labels=labels)
    for combination, durations in of.items():
        buckets, sum_s = durations.buckets()
        family.add_metric(combination, buckets, sum_s)
    return family
