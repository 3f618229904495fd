"""The exchange's clock, as an interval that must contain it; when to sample it, and jumps of this host's.

1. A sample bounds the offset (server minus ours). A reply that states the server time S, cut off to a
   resolution R, was made between our sending the request and our receiving the reply. So the offset lies in
   [S - received, S + R - sent], however slow or asymmetric the network was.
2. Each bound is certain, so all of them hold: the offset lies in their intersection (Marzullo 1984; NTP's
   selection in RFC 5905 section 11.2.1 looks for a majority, but here there is one server).
3. Two clocks drift apart, so a bound widens by DRIFT of its age. All bounds widen at one rate: the two edges
   of the intersection, referred to time zero, are enough, and no list of samples is kept.
4. If the intersection is empty, one of the clocks was stepped, and all earlier samples are void.

Times are seconds. "Ours" is a clock that counts suspend and is never set; `now` is read from it.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from sealgate.machine.clocks import SystemClocks

DRIFT = 200e-6  # seconds per second: a quartz clock is within 100 ppm, and there are two
_ROUNDING_S = 1e-6  # of sums of floats as large as an epoch: less than that contradicts nothing
_LEAST_JUMP_S = 0.1  # well over the time that it takes to read three clocks one after the other
BURST = 5
BURST_GAP_S = 0.05
QUICK_S = 1.0
SLOWEST_S = 30.0  # after failures
_SOONEST_S = 0.2  # even if a fresh sample is wanted at once
_POOR = 2.0  # times the best error that one sample can have
_GOOD_ENOUGH_S = 0.01


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
    """What the samples say so far. Immutable: `observe` returns the next one.

    `low` and `high` are the edges of the offset, referred to time zero of our clock. `last` is when the
    latest sample was received, None before the first. `steps` counts the samples that voided all earlier
    ones.
    """

    low: float = -math.inf
    high: float = math.inf
    last: float | None = None
    steps: int = 0

    @property
    def is_synced(self) -> bool:
        """Whether there was a sample."""
        return self.last is not None

    def observe(self, sample: Sample) -> "ServerClock":
        """Take in a sample; one that contradicts the others voids them (a step)."""
        low, high = _edges(sample)
        if self.agrees_with(sample):
            return ServerClock(max(low, self.low), min(high, self.high), sample.received, self.steps)
        return ServerClock(low, high, sample.received, self.steps + 1)

    def agrees_with(self, sample: Sample) -> bool:
        """Return whether there is a time that this sample and all earlier ones allow."""
        low, high = _edges(sample)
        widening = DRIFT * sample.received
        return max(low, self.low) - widening <= min(high, self.high) + widening + _ROUNDING_S

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
    # Each edge is certain at its own moment: had the reply been made as it arrived, or as we sent.
    low = sample.server - sample.received + DRIFT * sample.received
    high = sample.server + sample.resolution - sample.sent - DRIFT * sample.sent
    return low, high


class Jump(StrEnum):
    """What happened to a clock between two readings."""

    SUSPEND = "suspend"
    WALL_STEP = "wall_step"


def find_jump(before: SystemClocks, after: SystemClocks) -> Jump | None:
    """Return what happened between two readings, None if nothing did.

    All three clocks run at one rate, so if one of them advanced differently, something happened to it. The
    server's time is kept on the clock that counts suspend, so neither jump spoils a signature; both are
    reasons to take a fresh sample at once.
    """
    elapsed = after.boot - before.boot
    if elapsed - (after.mono - before.mono) > _LEAST_JUMP_S:
        return Jump.SUSPEND
    if abs(after.wall - before.wall - elapsed) > _LEAST_JUMP_S:
        return Jump.WALL_STEP
    return None


class Gap(NamedTuple):
    """The next sample is due after `latest_s`, or after `soonest_s` if one is wanted."""

    soonest_s: float
    latest_s: float


@dataclass(frozen=True, slots=True)
class Sampling:
    """When to sample: a burst, then at an interval; sooner while the bound is poor; later after failures.

    `left` counts the samples left in the burst, `failures` those that failed in a row. `best_s` is the
    least error that one sample had since the burst began: half of its round trip, and of the unit in which
    the time is told. A bound much wider than that is poor. So a slow network alone, or a time in whole
    seconds, is no reason to sample more often, but a step, a suspend or slow replies are.
    """

    left: int = BURST
    best_s: float = math.inf
    failures: int = 0

    def taken(self, error_s: float) -> "Sampling":
        """Return the state after a good sample, which alone is true to `error_s`."""
        return Sampling(max(0, self.left - 1), min(self.best_s, error_s))

    def failed(self) -> "Sampling":
        """Return the state after a sample that brought no time."""
        return replace(self, failures=self.failures + 1)

    def gap(self, interval_s: float, error_s: float) -> Gap:
        """Return when to sample next; `error_s` is the present bound."""
        if self.failures:
            backoff_s = min(QUICK_S * 2 ** min(self.failures - 1, 10), SLOWEST_S)
            return Gap(QUICK_S, backoff_s)
        if self.left > 0:
            return Gap(BURST_GAP_S, BURST_GAP_S)
        is_poor = error_s > max(_POOR * self.best_s, _GOOD_ENOUGH_S)
        latest_s = min(QUICK_S, interval_s) if is_poor else interval_s
        return Gap(min(_SOONEST_S, latest_s), latest_s)


@dataclass(frozen=True, slots=True)
class ClockStatus:
    """The clock, in seconds, None until the first sample; `offset_s` is upstream minus wall clock here."""

    offset_s: float | None
    error_s: float | None
    age_s: float | None
    steps: int
    refusals: int
    trouble: str | None
