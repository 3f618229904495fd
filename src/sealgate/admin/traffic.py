"""The numbers that every request adds to, which traffic_metrics.py makes metrics of when somebody asks.

The library's own counters check and lock for each number; these cost a quarter of that. One thread adds, and
another may read meanwhile, copies of what grows.
"""

from bisect import bisect_left

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


class Traffic:
    """What the requests of known bots added up to."""

    def __init__(self) -> None:
        self._rows: dict[Labels, int] = {}
        self.added = Durations(_FAST)
        self.upstream = Durations(_SLOW)
        self._sent: dict[tuple[str, str, Lane], int] = {}  # by bot, key and lane
        self._queued: dict[tuple[str, Lane], Durations] = {}

    def take(self, outcome: Outcome, bot: str, key: str) -> None:
        """Take a request in."""
        row = (bot, key, outcome.route, outcome.method, outcome.status, outcome.conclusion)
        self._rows[row] = self._rows.get(row, 0) + 1
        self.added.add(outcome.added_s)
        if outcome.attempts:
            self.upstream.add(outcome.upstream_s)
        if outcome.lane is not None:
            if outcome.attempts:
                sent = (bot, key, outcome.lane)
                self._sent[sent] = self._sent.get(sent, 0) + outcome.attempts
            self._queue(key, outcome.lane).add(outcome.queue_s)

    def _queue(self, key: str, lane: Lane) -> Durations:
        queued = self._queued.get((key, lane))
        if queued is None:
            queued = self._queued[key, lane] = Durations(_SLOW)
        return queued

    def rows(self) -> dict[Labels, int]:
        """Return how many requests there were of each kind."""
        return self._rows.copy()

    def sent(self) -> dict[tuple[str, str, Lane], int]:
        """Return how often each bot sent something to the exchange, by key and lane."""
        return self._sent.copy()

    def queued(self) -> dict[tuple[str, Lane], Durations]:
        """Return how long those of each key and lane waited."""
        return self._queued.copy()
