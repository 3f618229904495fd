"""The exchange's clock, as an interval that must contain it.

A sample says: a reply that carried the server time S (cut off to a resolution R) was made between our sending
and our receiving it. So S <= true server time at that moment < S + R, and the offset (server minus ours) lies
in [S - received, S + R - sent], whatever the network did and however asymmetric it was. Each bound is
certain; together they are an intersection of intervals (Marzullo 1984; the same idea as in NTP's selection,
RFC 5905 section 11.2.1, but with no majority, because there is one server). Two clocks drift apart, so a
bound is widened by DRIFT of its age. All bounds widen at one rate, so the intersection needs no list of
samples: its two edges, referred to time zero, are enough. When it is empty, one of the clocks was stepped:
what was known is void.

Times are seconds. "Ours" is a clock that counts suspend and is never set; `now` is read from it.
"""

import math
from dataclasses import dataclass, replace

DRIFT = 200e-6  # seconds per second: a quartz clock is within 100 ppm, and there are two


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading of the server's clock: `server` (epoch) is cut off to `resolution`."""

    sent: float
    received: float
    server: float
    resolution: float = 0.001


@dataclass(frozen=True, slots=True)
class Bounds:
    """The offset (server minus ours) lies in [low, high]."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """The best single guess of the offset."""
        return (self.low + self.high) / 2


@dataclass(frozen=True, slots=True)
class ServerClock:
    """What the samples so far say. Immutable: `observe` returns the next one.

    `low` and `high` are the edges of the offset, referred to time zero of our clock; `last` is when the
    latest sample was received, None before the first; `steps` counts the samples that voided all earlier
    ones.
    """

    low: float = -math.inf
    high: float = math.inf
    last: float | None = None
    steps: int = 0

    @property
    def is_synced(self) -> bool:
        """Whether there is any sample to go by."""
        return self.last is not None

    def observe(self, sample: Sample) -> "ServerClock":
        """Take in a sample; one that contradicts the others voids them (a step)."""
        low, high = _edges(sample)
        if self.agrees_with(sample):
            return ServerClock(max(low, self.low), min(high, self.high), sample.received, self.steps)
        return ServerClock(low, high, sample.received, self.steps + 1)

    def agrees_with(self, sample: Sample) -> bool:
        """Ask whether a sample leaves room for a time that it and all the others allow."""
        low, high = _edges(sample)
        widening = DRIFT * sample.received
        return max(low, self.low) - widening <= min(high, self.high) + widening

    def error(self, now: float) -> float:
        """Return how far off the middle of the interval can be at `now`, infinite before the first sample."""
        return (self.high - self.low) / 2 + DRIFT * now

    def bounds(self, now: float) -> Bounds:
        """Return the interval of the offset at `now`."""
        return Bounds(self.low - DRIFT * now, self.high + DRIFT * now)

    def widened(self, seconds: float) -> "ServerClock":
        """Return the clock after something that may have moved it by up to `seconds` either way."""
        return replace(self, low=self.low - seconds, high=self.high + seconds)

    def timestamp_ms(self, now: float) -> int:
        """Return the millisecond to sign with: the early edge, as exchanges tolerate old, not future.

        The clock must be synced.
        """
        return int((now + self.low - DRIFT * now) * 1000)


def _edges(sample: Sample) -> tuple[float, float]:
    """Return the edges of the offset that a sample allows, referred to time zero of our clock."""
    # Each is certain at its own moment: if the reply was made as it arrived, or as we sent.
    low = sample.server - sample.received + DRIFT * sample.received
    high = sample.server + sample.resolution - sample.sent - DRIFT * sample.sent
    return low, high
