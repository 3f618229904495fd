"""Totals of all requests, which metrics.py turns into metrics at a scrape.

prometheus_client's own counters and histograms could do the same, but each request adds to three counters and
three histograms: even with every child kept they take 9.4 us of CPU, of about 80 for the whole request, and
these totals take 1.5 us (Python 3.11, one request or many at a time).

One thread adds. Another may read at the same time: it gets copies of what grows.
"""

from bisect import bisect_left
from collections.abc import Sequence

from sealgate.orders.outcome import Conclusion, Outcome
from sealgate.venues.routes import Lane

_FAST = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 1.0)
_SLOW = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

# Bot, key, route, method, status, conclusion, lane: a key or lane is None if a request was refused before it.
Kind = tuple[str, str | None, str, str, int, Conclusion, Lane | None]


class Durations:
    """A histogram in seconds. `bounds` ascend; longer durations than the last one are counted as well."""

    __slots__ = ("_bounds", "_counts", "_sum_s")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum_s = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum_s += seconds

    def buckets(self) -> tuple[list[tuple[str, float]], float]:
        """Return how many are at most each bound, and the sum of all."""
        below, buckets = 0, []
        for bound, count in zip((*self._bounds, "+Inf"), self._counts.copy(), strict=True):
            below += count
            buckets.append((str(bound), float(below)))
        return buckets, self._sum_s


class Tally:
    """Requests of one kind: their number, and how often they were sent. `queued` is that of key and lane."""

    __slots__ = ("queued", "requests", "sent")

    def __init__(self, queued: Durations | None) -> None:
        self.requests = self.sent = 0
        self.queued = queued


class TrafficTotals:
    """Totals of the requests of known bots."""

    def __init__(self) -> None:
        self._tallies: dict[Kind, Tally] = {}
        self._queued: dict[tuple[str, Lane], Durations] = {}
        self.added = Durations(_FAST)
        self.upstream = Durations(_SLOW)

    def take(self, outcomes: Sequence[Outcome]) -> None:
        """Add requests; those of strangers are left out."""
        for one in outcomes:
            if one.bot is None:
                continue
            kind = (one.bot, one.key, one.route, one.method, one.status, one.conclusion, one.lane)
            tally = self._tallies.get(kind)
            if tally is None:
                tally = self._tallies[kind] = Tally(self._queue(one))
            tally.requests += 1
            self.added.add(one.added_s)
            if tally.queued is not None:
                tally.queued.add(one.queue_s)
            if one.attempts:
                tally.sent += one.attempts
                self.upstream.add(one.upstream_s)

    def _queue(self, one: Outcome) -> Durations | None:
        """Return the waits of a request's key and lane, None for one that was refused before its lane."""
        if one.lane is None:
            return None
        return self._queued.setdefault((one.key or "", one.lane), Durations(_SLOW))

    def tallies(self) -> dict[Kind, Tally]:
        """Return the totals by kind."""
        return self._tallies.copy()

    def queued(self) -> dict[tuple[str, Lane], Durations]:
        """Return how long requests waited, by key and lane."""
        return self._queued.copy()
