"""When the time is asked for next: a burst, then at an interval, faster while the bound is poor.

A bound is poor while it is much wider than half of the shortest round trip, which is the best that one sample
can do: after a step, a suspend or a run of slow replies. Then one sample a second is worth it; when the
network itself is slow, it is not. In trouble the gap doubles, and what `Retry-After` states is kept to.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

BURST = 5
BURST_GAP_S = 0.05
QUICK_S = 1.0
SLOWEST_S = 30.0  # in trouble
_SOONEST_S = 0.2  # however much a fresh sample is wanted
_POOR = 2.0  # times the best
_GOOD_ENOUGH_S = 0.01


class Gap(NamedTuple):
    """The next sample is taken after `latest_s`; after `soonest_s` already, if one is wanted."""

    soonest_s: float
    latest_s: float


@dataclass(frozen=True, slots=True)
class Sampling:
    """The state of it.

    `left` counts the samples left in the burst, `best_s` is half of the shortest round trip since it began,
    `failures` counts those in a row, and `stated_s` is the wait that the last one stated.
    """

    left: int = BURST
    best_s: float = math.inf
    failures: int = 0
    stated_s: float = 0.0

    def taken(self, half_round_trip_s: float) -> "Sampling":
        """Return the state after a good sample."""
        return Sampling(max(0, self.left - 1), min(self.best_s, half_round_trip_s))

    def failed(self, retry_after_s: float | None) -> "Sampling":
        """Return the state after one that brought no time."""
        return replace(self, failures=self.failures + 1, stated_s=retry_after_s or 0.0)

    def gap(self, interval_s: float, error_s: float) -> Gap:
        """Return when to sample next; `error_s` is the present bound."""
        if self.failures:
            backoff_s = min(QUICK_S * 2 ** min(self.failures - 1, 10), SLOWEST_S)
            return Gap(max(QUICK_S, self.stated_s), max(backoff_s, self.stated_s))
        if self.left > 0:
            return Gap(BURST_GAP_S, BURST_GAP_S)
        is_poor = error_s > max(_POOR * self.best_s, _GOOD_ENOUGH_S)
        latest_s = min(QUICK_S, interval_s) if is_poor else interval_s
        return Gap(min(_SOONEST_S, latest_s), latest_s)
