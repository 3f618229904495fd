"""The jitter of the round trip: by how much two requests may come closer on their way than they were sent.

A limiter counts when a request arrives, which lies between its sending and its reply. Two requests sent a
window apart arrive up to the spread of the trip closer together, so a window is kept that much longer.
"""

from collections import deque

_KEPT = 60  # round trips looked at: so many that two are left out, so few that a change of route is followed
_TAIL = 0.03  # the slowest, left out: a stalled reply says little about the way there
_EVERY = 20  # the spread is worked out once per that many
FIRST_S = 0.005  # until enough is known


class RoundTrips:
    """The recent round trips, in seconds."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque(maxlen=_KEPT)
        self._heard = 0
        self.spread_s = FIRST_S

    @property
    def is_known(self) -> bool:
        """Whether the spread is more than a guess."""
        return self._heard >= _EVERY

    @property
    def mean_s(self) -> float:
        """The mean of the last _EVERY, 0 before the first."""
        latest = list(self._recent)[-_EVERY:]
        return sum(latest) / len(latest) if latest else 0.0

    def add(self, seconds: float) -> None:
        """Take in one round trip."""
        self._recent.append(seconds)
        self._heard += 1
        if self._heard % _EVERY == 0:
            ordered = sorted(self._recent)
            self.spread_s = ordered[int((1 - _TAIL) * (len(ordered) - 1))] - ordered[0]
