"""How patient the exchange may still be: a client that is refused often is banned.

Refusals that come one upon the other say that what is believed of the limit is too generous. Once there were
a few, nothing is tried any more until they are old, and of what is believed only what was accepted counts.
Each one beyond some more halves the pace meanwhile. The volley of a burst counts as a pair for that: what was
sent before the pause was over could not know of its first refusal, as a client that knows of it waits; and as
nearly all that the limit holds went at once, what is believed of it holds.
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
        self._telling: deque[float] = deque()  # of a burst's volley only the first few
        self._volley_until = -math.inf  # the end of its pause
        self._left = math.inf  # of the volley that may still tell something

    def refused(self, at: float, paused_until: float, *, is_burst: bool) -> None:
        """Hear of a 429 to what was sent at `at`, maybe in a burst; by it all pause until then."""
        if at > self._volley_until:
            self._left = _FEW if is_burst else math.inf
        self._volley_until = max(self._volley_until, paused_until)
        self._refused.append(at)
        if self._left > 0:
            self._telling.append(at)
        self._left -= 1

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
