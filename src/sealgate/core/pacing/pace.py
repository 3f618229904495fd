"""The pace under one limit: how far apart requests go, and when the next one has room.

An even rate just under n / window satisfies every kind of limiter, whichever it is. On long windows what is
left is spread over what is left of the window, so that the key never stands still; bursts may take most of it
freely.
"""

import math

from sealgate.core.pacing.claims import Claim
from sealgate.core.pacing.limit import Limit
from sealgate.core.pacing.reading import Kind
from sealgate.core.pacing.round_trips import RoundTrips
from sealgate.core.pacing.sent_log import LimitScope, SentLog

_LONG_S = 2.0  # a window up to this may run full: nobody waits longer than it lasts
_FREE_PART = 0.8  # of a long window that a flood may take freely; the rest is spread
_FLOOD = 2.0  # times the even pace, over the last second
_FLOOD_PARTS = 10  # of that second, in most of which something is sent: bursts come in one or two
_FLOOD_MOST = 0.6  # of those parts
_LOOKS = 8  # points at which a long window is looked at ahead
_LOOK_EVERY = 200  # times per window: it changes slowly, and looking costs more than all else
_MOST_MARGIN = 0.25  # of a window: beyond it, jitter would cost more than the 429s it saves
_BUCKET_MARGIN = 1.005
_EPSILON = 1e-6  # sums of fractions, compared
_ROUNDING = 0.01  # a limit of 19.995 lets 20 go; the pace keeps the rate


class Pace:
    """What the log of sends and the jitter of round trips let a limit grant."""

    def __init__(self, log: SentLog, trips: RoundTrips) -> None:
        self._log = log
        self._trips = trips
        self._spreads: dict[tuple[float, LimitScope], tuple[float, float]] = {}  # looked at when, seen what

    def length_s(self, limit: Limit) -> float:
        """Return the window with a margin for the jitter of what was sent."""
        if limit.kind is Kind.BUCKET and limit.n > 1:
            return limit.window * _BUCKET_MARGIN  # its burst takes up the jitter
        return limit.window + min(self._trips.spread_s, _MOST_MARGIN * limit.window)

    def room_at(self, limit: Limit, claim: Claim, now: float, *, is_paced: bool) -> float:
        """Return when the limit has room for the claim."""
        if is_paced and limit.kind is Kind.BUCKET and limit.window > _LONG_S:
            return now  # it never has less than its rate; a short one is worth its margin
        n = limit.allowed(is_read=claim.is_read)
        if not is_paced and limit.window > _LONG_S:
            spread_at = self._free_at(limit, _FREE_PART * n, claim.cost)
            if spread_at <= now or self._is_flood(limit, now):
                return spread_at
        return self._free_at(limit, n, claim.cost)

    def _free_at(self, limit: Limit, n: float, cost: float) -> float:
        """Return when no more than `n`, or the cost alone, will be in the window with it."""
        room = max(math.ceil(n - _ROUNDING) - cost, 0.0)
        return self._log.of(limit.scope).room_since(room + _EPSILON) + self.length_s(limit)

    def _is_flood(self, limit: Limit, now: float) -> bool:
        """Whether what is sent will not stop by itself; bursts do, whatever their size."""
        log = self._log.of(limit.scope)
        ends = [now - part / _FLOOD_PARTS for part in range(_FLOOD_PARTS)]
        busy = sum(log.count(end - 1 / _FLOOD_PARTS, end) > 0 for end in ends)
        return busy >= _FLOOD_MOST * _FLOOD_PARTS and log.count(now - 1.0) > _FLOOD * limit.rate

    def spacing_s(self, limit: Limit, now: float) -> float:
        """Return the seconds per cost: the even pace, or slower where the window ahead has less room."""
        spacing_s = self.length_s(limit) / limit.n
        if limit.window > _LONG_S and limit.kind is not Kind.BUCKET:
            spacing_s = max(spacing_s, self._spread_s(limit, now))
        return spacing_s / (1 + limit.step)

    def _spread_s(self, limit: Limit, now: float) -> float:
        """Return the seconds per cost that spread what is left over every part of the window ahead."""
        looked_at, spread_s = self._spreads.get((limit.window, limit.scope), (-math.inf, 0.0))
        length_s = self.length_s(limit)
        if now - looked_at >= length_s / _LOOK_EVERY:
            ahead = [length_s * look / _LOOKS for look in range(1, _LOOKS + 1)]
            highest, log = limit.allowed(is_read=True), self._log.of(limit.scope)
            spread_s = max(s / max(highest - log.count(now + s - length_s), 1.0) for s in ahead)
            self._spreads[limit.window, limit.scope] = now, spread_s
        return spread_s
