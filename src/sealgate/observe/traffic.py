"""The numbers that every request adds to, which metrics.py makes metrics of when somebody asks.

The library's own counters check and lock for each number; these cost a quarter of that. One thread adds, and
another may read meanwhile, copies of what grows.
"""

from bisect import bisect_left
from collections import Counter

from sealgate.orders.outcome import Batch, Conclusion
from sealgate.venues.routes import Lane

_FAST = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 1.0)
_SLOW = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

Labels = tuple[str, str, str, str, int, Conclusion]  # bot, key, route, method, status and so on


class Durations:
    """A histogram in seconds. `bounds` ascend; what is beyond the last one counts too."""

    __slots__ = ("_bounds", "_counts", "_sum_s")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum_s = 0.0

    def add(self, durations_s: list[float]) -> None:
        """Take in some durations."""
        bounds, counts = self._bounds, self._counts
        for seconds in durations_s:
            counts[bisect_left(bounds, seconds)] += 1
        self._sum_s += sum(durations_s)

    def buckets(self) -> tuple[list[tuple[str, float]], float]:
        """Return how many are at most each bound, and the sum of all."""
        below, buckets = 0, []
        for bound, count in zip((*self._bounds, "+Inf"), self._counts.copy(), strict=True):
            below += count
            buckets.append((str(bound), float(below)))
        return buckets, self._sum_s


class TrafficTotals:
    """What the requests of known bots added up to."""

    def __init__(self) -> None:
        self._rows: Counter[Labels] = Counter()
        self._sent: Counter[tuple[str, str, Lane]] = Counter()
        self.added = Durations(_FAST)
        self.upstream = Durations(_SLOW)
        self._queued: dict[tuple[str, Lane], Durations] = {}

    def take(self, batch: Batch) -> None:
        """Take in a batch of requests; those of strangers are left out."""
        for (bot, key, route, method, status, conclusion, lane, attempts), alike in batch.kinds.items():
            if bot is None:
                continue
            self._rows[bot, key or "", route, method, status, conclusion] += len(alike)
            self.added.add([one.added_s for one in alike])
            if attempts:
                self.upstream.add([one.upstream_s for one in alike])
            if lane is None:
                continue
            if attempts:
                self._sent[bot, key or "", lane] += attempts * len(alike)
            if (key or "", lane) not in self._queued:
                self._queued[key or "", lane] = Durations(_SLOW)
            self._queued[key or "", lane].add([one.queue_s for one in alike])

    def rows(self) -> Counter[Labels]:
        """Return how many requests there were of each kind."""
        return self._rows.copy()

    def sent(self) -> Counter[tuple[str, str, Lane]]:
        """Return how often each bot sent something to the exchange, by key and lane."""
        return self._sent.copy()

    def queued(self) -> dict[tuple[str, Lane], Durations]:
        """Return how long those of each key and lane waited."""
        return self._queued.copy()
