"""How patient the exchange may still be: who is refused often is banned.

Refusals that come one upon the other say that what is believed of the limit is too generous. Once there were
a few, nothing is tried any more until they are old, and of what is believed only what was accepted counts.
Each one beyond some more halves the pace meanwhile, but of a volley only the first ones do: what was sent
before its first refusal was heard could not know of it, so it says nothing of what is believed since.
"""

import math
from collections import deque

SPAN_S = 10.0  # the shortest span over which exchanges are known to count refusals
_FEW = 2  # refusals in it that learning takes at the least: one, and one that was under way beside it
_MANY = 4  # a second such pair; after it what is believed should hold
_MOST_HALVINGS = 4  # a burst may be refused as a whole; it must not be paid for longer than it is counted


class Patience:
    """The refusals of late."""

    def __init__(self) -> None:
        self._refused: deque[float] = deque()
        self._telling: deque[float] = deque()  # of each volley the first few
        self._heard_at = -math.inf  # when the last volley's first refusal was
        self._in_volley = 0

    def refused(self, at: float, now: float) -> None:
        """Hear now of a 429 to what was sent at `at`."""
        self._refused.append(at)
        if at > self._heard_at:
            self._heard_at, self._in_volley = now, 0
        self._in_volley += 1
        if self._in_volley <= _FEW:
            self._telling.append(at)

    def is_thin(self, now: float) -> bool:
        """Whether more refusals may be too many."""
        return _count(self._refused, now) > _FEW

    def slowness(self, now: float) -> float:
        """Return by how many times to go slower than the limits allow."""
        if not self._telling:
            return 1.0
        return 2.0 ** min(max(_count(self._telling, now) - _MANY, 0), _MOST_HALVINGS)


def _count(refused: deque[float], now: float) -> int:
    while refused and refused[0] <= now - SPAN_S:
        refused.popleft()
    return len(refused)
