"""The numbers that every request adds to, which traffic_metrics.py makes metrics of when somebody asks.

The library's own counters check and lock for each number; these cost a quarter of that. One thread adds, and
another may read meanwhile, copies of what grows.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from sealgate.core.outcome import Conclusion, Outcome, by_kind
from sealgate.core.routes import Lane

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

    def add(self, durations_s: Sequence[float]) -> None:
        """Take in some durations."""
        for seconds in durations_s:
            self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum_s += sum(durations_s)

    def buckets(self) -> tuple[list[tuple[str, float]], float]:
        """Return how many are at most each bound, and the sum of all."""
        below, buckets = 0, []
        for bound, count in zip((*self._bounds, "+Inf"), self._counts.copy(), strict=True):
            below += count
            buckets.append((str(bound), float(below)))
        return buckets, self._sum_s


class Traffic:
    """What the requests of known bots added up to."""

    def __init__(self) -> None:
        self._rows: Counter[Labels] = Counter()
        self._sent: Counter[tuple[str, str, Lane]] = Counter()
        self.added = Durations(_FAST)
        self.upstream = Durations(_SLOW)
        self._queued: dict[tuple[str, Lane], Durations] = {}

    def take(self, outcomes: Sequence[Outcome]) -> None:
        """Take in a batch of requests, all of known bots."""
        for (bot, key, route, method, status, conclusion, lane, attempts), count in by_kind(outcomes).items():
            self._rows[bot or "", key or "", route, method, status, conclusion] += count
            if lane is not None and attempts:
                self._sent[bot or "", key or "", lane] += attempts * count
        self.added.add([outcome.added_s for outcome in outcomes])
        self.upstream.add([outcome.upstream_s for outcome in outcomes if outcome.attempts])
        waits: dict[tuple[str, Lane], list[float]] = {}
        for outcome in outcomes:
            if outcome.lane is not None:
                waits.setdefault((outcome.key or "", outcome.lane), []).append(outcome.queue_s)
        for place, waits_s in waits.items():
            if place not in self._queued:
                self._queued[place] = Durations(_SLOW)
            self._queued[place].add(waits_s)

    def rows(self) -> Counter[Labels]:
        """Return how many requests there were of each kind."""
        return self._rows.copy()

    def sent(self) -> Counter[tuple[str, str, Lane]]:
        """Return how often each bot sent something to the exchange, by key and lane."""
        return self._sent.copy()

    def queued(self) -> dict[tuple[str, Lane], Durations]:
        """Return how long those of each key and lane waited."""
        return self._queued.copy()
