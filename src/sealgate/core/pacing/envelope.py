"""The envelope: all that is known of the limit, and when it lets the next request go.

While nobody waits a request goes at once if it stays inside each limit, counted over a sliding window: that
satisfies a fixed window, a sliding log and a token bucket alike and lets bursts through untouched. Once
somebody waits, requests go evenly spaced: an even rate just under n / window satisfies every kind of
limiter, whichever it is. On long windows what is left is spread over what is left of the window, so that
the key never stands still.
"""

import math
from dataclasses import dataclass

from sealgate.core.pacing.claims import Claim
from sealgate.core.pacing.episode import Episode
from sealgate.core.pacing.in_flight import InFlight
from sealgate.core.pacing.learning import Context, learn
from sealgate.core.pacing.limit import Limit
from sealgate.core.pacing.round_trips import RoundTrips
from sealgate.core.pacing.sent_log import SentLog
from sealgate.core.pacing.stated import Quota

_LONG_S = 2.0  # a window up to this may run full: nobody waits longer than it lasts
_FREE_PART = 0.8  # of a long window that a flood may take freely; the rest is spread
_FLOOD = 2.0  # times the even pace, sent over the last second: it will not stop by itself
_FLOOD_LEAST = 3.0  # requests in that second; on slow limits two are no flood yet
_AT_ONCE_S = 0.05  # what is sent within this time is one burst, whose end is in sight
_LOOKS = 8  # points at which a long window is looked at ahead
_LOOK_EVERY = 200  # times per window: it changes slowly, and looking costs more than all else
_MOST_MARGIN = 0.25  # of a window: beyond it, jitter would cost more than the 429s it saves
_LATE = 0.1  # of a slot that a timer may be late without losing it
_HORIZON_S = 3600.0  # the longest window that is learned
_FULL = 0.9  # of a window in use: with less, another limit holds the rate and nothing is tried of this one
_EPSILON = 1e-6  # sums of fractions, compared
_ROUNDING = 0.01  # a limit of 19.995 lets 20 go; the pace keeps the rate


@dataclass(frozen=True, slots=True)
class Budget:
    """What a reply's headers left: `left` until `until`."""

    left: float
    until: float


class Envelope:
    """Limits, learned and published, and what was sent under them."""

    def __init__(self, known: tuple[Quota, ...] = ()) -> None:
        self.limits = [Limit(quota.n, quota.window_s, most=quota.n) for quota in known]
        self.log = SentLog(_HORIZON_S)
        self.in_flight = InFlight()
        self._trips = RoundTrips()
        self._last_slot = -math.inf
        self._spreads: dict[float, tuple[float, float]] = {}  # by window: looked at when, seen what
        self._paced_since: float | None = None
        self._cycle_start = -math.inf
        self._episode: Episode | None = None
        self._budget = Budget(math.inf, -math.inf)

    @property
    def needs_scout(self) -> bool:
        """Whether nothing was accepted since the last 429."""
        return self._episode is not None

    @property
    def is_probing(self) -> bool:
        """Whether the rate of reads is raised for a while."""
        return any(limit.step for limit in self.limits)

    def ready_at(self, claim: Claim, now: float, *, is_paced: bool) -> float:
        """Return when the claim may go; infinity where that depends on a reply."""
        if not self.in_flight.has_room():
            return math.inf
        at = max(now, self._budget.until if self._budget.left < claim.cost else now)
        if is_paced:
            spacing = self._spacing_s(now, is_read=claim.is_read)
            at = max(at, self._last_slot + spacing * claim.cost)
        return max([at, *(self._room_at(limit, claim, now, is_paced=is_paced) for limit in self.limits)])

    def took(self, claim: Claim, now: float, *, is_paced: bool) -> None:
        """Hear that the claim goes now."""
        self.log.add(now, claim.cost)
        self.in_flight.sent(claim.id)
        self._budget = Budget(self._budget.left - claim.cost, self._budget.until)
        if not is_paced:
            self._paced_since, self._last_slot = None, now
            return
        spacing = self._spacing_s(now, is_read=claim.is_read)
        self._last_slot = max(self._last_slot + spacing * claim.cost, now - _LATE * spacing)
        if self._paced_since is None:
            self._paced_since = now
        self._probe(claim, now, self._paced_since)

    def untook(self, claim: Claim, sent_at: float) -> None:
        """Hear that a claim that was let go was not sent after all."""
        self.log.remove(sent_at, claim.cost)
        self.in_flight.over(claim.id)

    def accepted(self, claim: Claim, sent_at: float, now: float, *, is_scout: bool) -> None:
        """Hear of an answer that was no 429; that of a scout ends the episode."""
        self._trips.add(now - sent_at)
        self.in_flight.accepted(claim.id)
        if is_scout and self._episode is not None:
            self._end(self._episode.ended(sent_at), now)

    def lost(self, claim: Claim) -> None:
        """Hear that no answer came: it stays counted."""
        self.in_flight.over(claim.id)

    def refused(self, claim: Claim, sent_at: float, stated_s: float | None, resolution_s: float) -> None:
        """Hear of a 429 to what was sent at `sent_at`."""
        self.in_flight.refused(claim.id, is_first=self._episode is None)
        self.log.remove(sent_at, claim.cost)
        episode = self._episode or Episode(sent_at, sent_at, math.inf)
        self._episode = episode.refused_again(sent_at, stated_s, resolution_s)

    def stated(self, quotas: tuple[Quota, ...], now: float) -> None:
        """Take in what a reply's headers say: it beats what was inferred."""
        for quota in quotas:
            if quota.window_s < math.inf:
                self._publish(quota)
            if quota.left is not None and quota.reset_s is not None:
                # Of what is under way nobody knows whether it was sent before or after this was said: after.
                self._budget = Budget(quota.left - len(self.in_flight), now + quota.reset_s)

    def _publish(self, quota: Quota) -> None:
        if any((one.most, one.window) == (quota.n, quota.window_s) for one in self.limits):
            return
        published = [one for one in self.limits if one.most < math.inf and one.window != quota.window_s]
        self.limits = [*published, Limit(quota.n, quota.window_s, most=quota.n)]
        self.limits.sort(key=lambda one: one.window)

    def wait_per_cost_s(self) -> float:
        """Return the seconds between two requests of cost 1 when others wait, 0 where no limit is known."""
        return max((self._length_s(limit) / limit.n for limit in self.limits), default=0.0)

    def used(self, limit: Limit, now: float) -> float:
        """Return the part of a limit that is used up."""
        return self.log.count(now - limit.window) / limit.n

    def _end(self, episode: Episode, now: float) -> None:
        self._episode = None
        if self.in_flight.cap is None:
            learn(self.limits, episode, Context(self.log, self._cycle_start, self._paced_since), now)
        else:
            self.limits = [limit for limit in self.limits if limit.most < math.inf]
        self._cycle_start = episode.gave_way

    def _length_s(self, limit: Limit) -> float:
        return limit.window + min(self._trips.spread_s, _MOST_MARGIN * limit.window)

    def _room_at(self, limit: Limit, claim: Claim, now: float, *, is_paced: bool) -> float:
        n = limit.allowed(is_read=claim.is_read)
        is_spread = not is_paced and limit.window > _LONG_S and self._is_flood(limit, now)
        part = _FREE_PART if is_spread else 1.0
        allowed = max(math.ceil(n * part - _ROUNDING), claim.cost)
        return self.log.room_since(allowed - claim.cost + _EPSILON) + self._length_s(limit)

    def _is_flood(self, limit: Limit, now: float) -> bool:
        recent = self.log.count(now - 1.0, now - _AT_ONCE_S)
        return recent > max(_FLOOD * limit.rate, _FLOOD_LEAST)

    def _spacing_s(self, now: float, *, is_read: bool) -> float:
        return max((self._spacing_of(limit, now, is_read=is_read) for limit in self.limits), default=0.0)

    def _spacing_of(self, limit: Limit, now: float, *, is_read: bool) -> float:
        """Return the seconds per cost: the even pace, or slower where the window ahead has less room."""
        even_s = self._length_s(limit) / limit.n
        if limit.window > _LONG_S:
            spread_s = self._spread_s(limit, now)
            if spread_s > even_s:
                return spread_s
        return even_s * limit.n / limit.allowed(is_read=is_read)

    def _spread_s(self, limit: Limit, now: float) -> float:
        """Return the seconds per cost that spread what is left over every part of the window ahead."""
        looked_at, spread_s = self._spreads.get(limit.window, (-math.inf, 0.0))
        length_s = self._length_s(limit)
        if now - looked_at >= length_s / _LOOK_EVERY:
            ahead = [length_s * look / _LOOKS for look in range(1, _LOOKS + 1)]
            spread_s = max(s / max(limit.n - self.log.count(now + s - length_s), 1.0) for s in ahead)
            self._spreads[limit.window] = now, spread_s
        return spread_s

    def _probe(self, claim: Claim, now: float, paced_since: float) -> None:
        for limit in self.limits:
            limit.took(claim.cost, is_read=claim.is_read)
            is_full = self.log.count(now - limit.window) + 1.0 >= _FULL * limit.n
            if is_full and now - paced_since >= limit.window:
                limit.probe(now)
