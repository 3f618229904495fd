"""The numbers that every request adds to, which traffic_metrics.py makes metrics of when somebody asks.

The library's own counters check and lock for each number; these cost a quarter of that. One thread adds, and
another may read meanwhile, copies of what grows.
"""

from bisect import bisect_left
from collections import Counter

from sealgate.core.outcome import Conclusion, Outcome
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


class _Row:
    """What requests with the same labels add to. `queued` is shared by those of one key and lane."""

    __slots__ = ("queued", "requests", "sent")

    def __init__(self, queued: Durations | None) -> None:
        self.queued = queued
        self.requests = 0
        self.sent = 0


class Traffic:
    """What the requests of known bots added up to."""

    def __init__(self) -> None:
        self._rows: dict[tuple[Labels, Lane | None], _Row] = {}
        self.added = Durations(_FAST)
        self.upstream = Durations(_SLOW)
        self._queued: dict[tuple[str, Lane], Durations] = {}

    def take(self, outcome: Outcome, bot: str, key: str) -> None:
        """Take a request in."""
        labels = (bot, key, outcome.route, outcome.method, outcome.status, outcome.conclusion)
        row = self._rows.get((labels, outcome.lane)) or self._new_row(labels, outcome.lane)
        row.requests += 1
        self.added.add(outcome.added_s)
        if outcome.attempts:
            row.sent += outcome.attempts
            self.upstream.add(outcome.upstream_s)
        if row.queued is not None:
            row.queued.add(outcome.queue_s)

    def _new_row(self, labels: Labels, lane: Lane | None) -> _Row:
        queued = None
        if lane is not None:
            queued = self._queued.setdefault((labels[1], lane), Durations(_SLOW))
        row = self._rows[labels, lane] = _Row(queued)
        return row

    def rows(self) -> Counter[Labels]:
        """Return how many requests there were of each kind."""
        counts: Counter[Labels] = Counter()
        for (labels, _), row in self._rows.copy().items():
            counts[labels] += row.requests
        return counts

    def sent(self) -> Counter[tuple[str, str, Lane]]:
        """Return how often each bot sent something to the exchange, by key and lane."""
        counts: Counter[tuple[str, str, Lane]] = Counter()
        for (labels, lane), row in self._rows.copy().items():
            if lane is not None and row.sent:
                counts[labels[0], labels[1], lane] += row.sent
        return counts

    def queued(self) -> dict[tuple[str, Lane], Durations]:
        """Return how long those of each key and lane waited."""
        return self._queued.copy()
