"""How patient the exchange may still be: who is refused often is banned.

Refusals that come one upon the other say that what is believed of the limit is too generous. Once there were
a few, nothing is tried any more until they are old, and of what is believed only what was accepted counts.
Each one beyond some more halves the pace meanwhile.
"""

from collections import deque

SPAN_S = 10.0  # the shortest span over which exchanges are known to count refusals
_FEW = 2  # refusals in it that learning takes at the least: one, and one that was under way beside it
_MANY = 4  # a second such pair; after it what is believed should hold
_MOST_HALVINGS = 4  # a burst may be refused as a whole; it must not be paid for longer than it is counted


class Patience:
    """The refusals of late."""

    def __init__(self) -> None:
        self._refused: deque[float] = deque()

    def refused(self, at: float) -> None:
        """Hear of a 429 to what was sent at `at`."""
        self._refused.append(at)

    def is_thin(self, now: float) -> bool:
        """Whether more refusals may be too many."""
        return self._count(now) > _FEW

    def slowness(self, now: float) -> float:
        """Return by how many times to go slower than the limits allow."""
        if not self._refused:
            return 1.0
        return 2.0 ** min(max(self._count(now) - _MANY, 0), _MOST_HALVINGS)

    def _count(self, now: float) -> int:
        while self._refused and self._refused[0] <= now - SPAN_S:
            self._refused.popleft()
        return len(self._refused)
