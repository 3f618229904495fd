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

# Exchange, bot, key, route, method, status, conclusion, lane: a key or lane is None if a request was refused
# before it, an exchange "".
Kind = tuple[str, str, str | None, str, str, int, Conclusion, Lane | None]


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
    """Requests of one kind: their number, and how often they were sent.

    The durations are also those of other kinds: `added` and `upstream` of all at the exchange, `queued` of
    all with its key and lane.
    """

    __slots__ = ("added", "queued", "requests", "sent", "upstream")

    def __init__(self, added: Durations, upstream: Durations, queued: Durations | None) -> None:
        self.requests = self.sent = 0
        self.added = added
        self.upstream = upstream
        self.queued = queued


class TrafficTotals:
    """Totals of the requests of known bots."""

    def __init__(self) -> None:
        self._tallies: dict[Kind, Tally] = {}
        self._queued: dict[tuple[str, str, Lane], Durations] = {}
        self._added: dict[str, Durations] = {}
        self._upstream: dict[str, Durations] = {}

    def take(self, outcomes: Sequence[Outcome]) -> None:
        """Add requests; those of strangers are left out."""
        for one in outcomes:
            if one.bot is None:
                continue
            kind = (
                one.exchange,
                one.bot,
                one.key,
                one.route,
                one.method,
                one.status,
                one.conclusion,
                one.lane,
            )
            tally = self._tallies.get(kind)
            if tally is None:
                tally = self._tallies[kind] = self._tally(one)
            tally.requests += 1
            tally.added.add(one.added_s)
            if tally.queued is not None:
                tally.queued.add(one.queue_s)
            if one.attempts:
                tally.sent += one.attempts
                tally.upstream.add(one.upstream_s)

    def _tally(self, one: Outcome) -> Tally:
        """Return an empty tally for a request's kind; one that was refused before its lane waited nowhere."""
        self.begin(one.exchange)
        queued = None
        if one.lane is not None:
            queued = self._queued.setdefault((one.exchange, one.key or "", one.lane), Durations(_SLOW))
        return Tally(self._added[one.exchange], self._upstream[one.exchange], queued)

    def begin(self, exchange: str) -> None:
        """Count the durations at an exchange from zero on, even before its first request."""
        self._added.setdefault(exchange, Durations(_FAST))
        self._upstream.setdefault(exchange, Durations(_SLOW))

    def tallies(self) -> dict[Kind, Tally]:
        """Return the totals by kind."""
        return self._tallies.copy()

    def queued(self) -> dict[tuple[str, str, Lane], Durations]:
        """Return how long requests waited, by exchange, key and lane."""
        return self._queued.copy()

    def added(self) -> dict[str, Durations]:
        """Return the gateway's own share of the requests' time, by exchange."""
        return self._added.copy()

    def upstream(self) -> dict[str, Durations]:
        """Return how long requests waited for the exchange, by exchange."""
        return self._upstream.copy()
