"""When the time is asked for next: a burst, then at an interval, and faster while the bound is poor.

A bound is poor while it is much wider than half of the shortest round trip, which is the best that one sample
can do: after a step, a suspend or a run of slow replies. Then one sample a second is worth it; when the
network itself is slow, it is not.
"""

from dataclasses import dataclass, replace

BURST = 5
BURST_GAP_S = 0.05
QUICK_S = 1.0
_POOR = 2.0  # times the best
_GOOD_ENOUGH_S = 0.01


@dataclass(frozen=True, slots=True)
class Sampling:
    """The state of it: samples left in the burst, and half of the shortest round trip since it began."""

    left: int = BURST
    best_s: float = float("inf")

    def taken(self, half_round_trip_s: float) -> "Sampling":
        """Return the state after a good sample."""
        return replace(self, left=max(0, self.left - 1), best_s=min(self.best_s, half_round_trip_s))

    def gap_s(self, interval_s: float, error_s: float | None) -> float:
        """Return the seconds to the next sample; `error_s` is the present bound, None without any sample."""
        if error_s is None:
            return min(QUICK_S, interval_s)
        if self.left > 0:
            return BURST_GAP_S
        is_poor = error_s > max(_POOR * self.best_s, _GOOD_ENOUGH_S)
        return min(QUICK_S, interval_s) if is_poor else interval_s
