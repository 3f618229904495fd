"""The envelope: all that is known of the limit, and when it lets the next request go.

While nobody waits a request goes at once if it stays inside each limit, counted over a sliding window: that
satisfies a fixed window, a sliding log and a token bucket alike and lets bursts through untouched. Once
somebody waits, requests go at the pace of each limit (`pace.py`).
"""

import math
from collections import deque
from operator import attrgetter

from sealgate.core.pacing.claims import Claim
from sealgate.core.pacing.classes import KEPT
from sealgate.core.pacing.episode import Episode
from sealgate.core.pacing.in_flight import InFlight
from sealgate.core.pacing.learning import Context, learn
from sealgate.core.pacing.limit import Limit
from sealgate.core.pacing.pace import Pace
from sealgate.core.pacing.patience import Patience
from sealgate.core.pacing.reading import Kind
from sealgate.core.pacing.round_trips import RoundTrips
from sealgate.core.pacing.sent_log import SentLog, Tally
from sealgate.core.pacing.stated import Quota

_BURST_S, _BURST_PART, _BURST_LEAST = 0.15, 0.8, 10.0  # its window holds that, wherever its edges are
_SURE = 1.5  # times the spread
_LIE_LEAST_S = 1.0  # rounding, and refusals that count, move it by less
_LIES = 2  # waits that contradict others, after which what is stated is obeyed, but not learned from
_LIE = 0.5  # of a wait, by which two differ
_HORIZON_S = 3600.0  # the longest window that is learned
_FULL = 0.9  # of a window in use: with less, another limit holds the rate and nothing is tried of this one
_PROBED_S = 2.0  # a step on the rate of a bucket, whose window is but its burst, is counted over
_MOST_STATED = 8  # windows that header fields may publish, those of the configuration included
_MOST_COUNTS = 8  # of what is left that replies may keep, those that leave least
_SCOPE = attrgetter("scope")


class _Count:
    """One count of the upstream: what it leaves until then, as its latest reply said."""

    __slots__ = ("left", "until")

    def __init__(self, left: float, until: float) -> None:
        self.left = left
        self.until = until


class Envelope:
    """Limits, learned and published, and what was sent under them."""

    def __init__(self, known: tuple[Quota, ...] = ()) -> None:
        self.limits = _published(known)
        self._known = tuple(self.limits)
        self.log = SentLog(_HORIZON_S)
        self.in_flight = InFlight()
        self._trips = RoundTrips()
        self._patience = Patience()
        self.pace = Pace(self.log, self._trips)
        self._slow_until = -math.inf
        self._recent: deque[Episode] = deque(maxlen=KEPT)
        self._episode: Episode | None = None
        self._lies = 0
        self._counts: dict[str, _Count] = {}  # what replies' header fields left, by the name of the count

    def publish(self, known: tuple[Quota, ...]) -> None:
        """Go by other published limits from now on; without any, by what was learned."""
        self._known = tuple(_published(known))
        self.limits = [*self._known] or [limit for limit in self.limits if limit.most == math.inf]

    @property
    def needs_scout(self) -> bool:
        """Whether nothing was accepted since the last 429."""
        return self._episode is not None

    @property
    def is_probing(self) -> bool:
        """Whether the rate of reads is raised for a while."""
        return any(limit.step for limit in self.limits)

    @property
    def counts_apart(self) -> bool:
        """Whether a class may have room while another has none."""
        return bool(self.limits) and any(map(_SCOPE, self.limits))

    def ready_at(self, claim: Claim, now: float, *, is_paced: bool) -> float:
        """Return when the claim may go; infinity where that depends on a reply."""
        if not self.in_flight.has_room():
            return math.inf
        at = now
        for count in self._counts.values():
            if count.left < claim.cost:
                at = max(at, count.until)
        return max(at, self.room_at(claim, now, is_paced=is_paced))

    def room_at(self, claim: Claim, now: float, *, is_paced: bool) -> float:
        """Return when the limits have room for the claim, whatever replies may say until then."""
        at = now
        slowness = self._patience.slowness(now)
        for limit in self._counting(claim):
            at = max(at, self.pace.room_at(limit, claim, now, is_paced=is_paced))
            if is_paced or slowness > 1:
                at = max(at, limit.last_slot + self.pace.spacing_s(limit, now) * slowness * claim.cost)
        return at

    def spent_s(self, now: float) -> float:
        """Return for how long nothing is left, as a reply said; 0 while one under way may say otherwise."""
        if self.in_flight:
            return 0.0
        ends = (count.until - now for count in self._counts.values() if count.left < 1.0)
        return max(0.0, *ends, 0.0)

    def took(self, claim: Claim, now: float, *, is_paced: bool) -> None:
        """Hear that the claim goes now."""
        self.log.add(now, claim.cost, is_read=claim.is_read)
        self.in_flight.sent(claim.id, now)
        for count in self._counts.values():
            count.left -= claim.cost
        if not is_paced:
            for limit in self._counting(claim):
                limit.goes_at_once(now)
            return
        slowness = self._patience.slowness(now)
        is_slow = slowness > 1 and self._episode is None
        if is_slow:  # what is delivered meanwhile says nothing of the limit
            self._slow_until = now
        for limit in self._counting(claim):
            spacing = self.pace.spacing_s(limit, now) * slowness
            self._probe(limit, now, limit.goes_paced(now, spacing, claim.cost, is_slow=is_slow))

    def _counting(self, claim: Claim) -> list[Limit]:
        if not self.limits or not self.counts_apart:
            return self.limits
        return [one for one in self.limits if one.scope.covers(is_read=claim.is_read)]

    def sent(self, claim: Claim, released_at: float, now: float) -> None:
        """Hear that what went then was not written before now."""
        if self.log.remove(released_at, claim.cost, is_read=claim.is_read):
            self.log.add(now, claim.cost, is_read=claim.is_read)

    def untook(self, claim: Claim, sent_at: float) -> None:
        """Hear that a claim that was let go was not sent after all."""
        self.log.remove(sent_at, claim.cost, is_read=claim.is_read)
        self.in_flight.over(claim.id)

    def accepted(self, claim: Claim, sent_at: float, now: float, *, is_scout: bool) -> None:
        """Hear of an answer that was no 429; that of a scout ends the episode."""
        self._trips.add(now - sent_at)
        if self._episode is None:
            self.in_flight.accepted(claim.id)
        else:
            self._accepted_in_episode(self._episode, claim, sent_at, now, is_scout=is_scout)
        if claim.is_read and self.is_probing:
            self._lift(sent_at)

    def _accepted_in_episode(
        self, episode: Episode, claim: Claim, sent_at: float, now: float, *, is_scout: bool
    ) -> None:
        is_interleaved = episode.began < sent_at < episode.earliest - self._jitter_s()
        self.in_flight.accepted(claim.id, is_interleaved=is_interleaved)
        if is_scout:
            self._end(episode.ended(sent_at), now)

    def _lift(self, sent_at: float) -> None:
        for limit in self.limits:
            if limit.step:
                limit.lift(self._tally(limit).count(sent_at - limit.window, sent_at))

    def lost(self, claim: Claim) -> None:
        """Hear that no answer came: it stays counted."""
        self.in_flight.over(claim.id)

    def refused(
        self, claim: Claim, sent_at: float, paused_until: float, stated_s: float | None, resolution_s: float
    ) -> None:
        """Hear of a 429 to what was sent at `sent_at`, for which all pause until then."""
        self.in_flight.refused(claim.id, self._jitter_s(), is_first=self._episode is None)
        self._patience.refused(sent_at, paused_until, is_burst=self._is_burst(sent_at))
        self.log.remove(sent_at, claim.cost, is_read=claim.is_read)
        if stated_s is not None and self._is_lie(sent_at, stated_s):
            self._lies += 1
        if self._lies >= _LIES:
            stated_s = None
        # Before the jitter is known, any that was sent in ignorance of the pause may have come first.
        mixed_until = sent_at + self._jitter_s() if self._trips.is_known else paused_until
        episode = self._episode or Episode(
            sent_at, sent_at, math.inf, claim.cost, claim.is_read, mixed_until=mixed_until
        )
        self._episode = episode.refused_again(sent_at, stated_s, resolution_s)

    def _is_burst(self, sent_at: float) -> bool:
        """Whether nearly all that went in the second before went at once, and that was not little."""
        log, until = self.log.all, sent_at + _BURST_S
        at_once, late = (log.count(sent_at - span_s, until) for span_s in (_BURST_S, 1.0))
        return at_once >= max(_BURST_LEAST, _BURST_PART * late)

    def _is_lie(self, sent_at: float, stated_s: float) -> bool:
        """Whether two refusals of one episode state ends that are far apart."""
        told = self._episode
        if told is None or told.latest == math.inf:
            return False
        off_s = abs(sent_at + stated_s - told.latest)
        return off_s > max(_LIE * min(stated_s, told.latest - told.began), _LIE_LEAST_S)

    def stated(self, quotas: tuple[Quota, ...], now: float) -> None:
        """Take in what a reply's headers say: it beats what was inferred."""
        for quota in quotas:
            if quota.window_s < math.inf:
                self._take_published(quota)
        counts = {name: count for name, count in self._counts.items() if count.until > now}
        # Of several of one name, the least counts.
        for quota in sorted(quotas, key=_left_of, reverse=True):
            if quota.left is not None and quota.reset_s is not None:
                # Of what is under way nobody knows whether it was sent before or after this was said: after.
                counts[quota.name] = _Count(quota.left - len(self.in_flight), now + quota.reset_s)
        while len(counts) > _MOST_COUNTS:
            del counts[max(counts, key=lambda name: counts[name].left)]
        self._counts = counts

    def _take_published(self, quota: Quota) -> None:
        if any((one.most, one.window) == (quota.n, quota.window_s) for one in self.limits):
            return
        published = [one for one in self.limits if one.most < math.inf and one.window != quota.window_s]
        if len(published) >= _MOST_STATED:  # whoever writes another window each time means none of them
            published = [one for one in published if one in self._known]
        self.limits = [*published, Limit(quota.n, quota.window_s, most=quota.n)]
        self.limits.sort(key=lambda one: one.window)

    def wait_per_cost_s(self, claim: Claim) -> float:
        """Return the seconds between two requests of cost 1 when others wait, 0 where no limit is known."""
        return max((self.pace.length_s(limit) / limit.n for limit in self._counting(claim)), default=0.0)

    def used(self, limit: Limit, now: float) -> float:
        """Return the part of a limit that is used up."""
        return self._tally(limit).count(now - limit.window) / limit.n

    def _tally(self, limit: Limit) -> Tally:
        return self.log.of(limit.scope)

    def _end(self, episode: Episode, now: float) -> None:
        self._episode = None
        self._recent.append(episode)
        # A slow pace that is refused was too fast: then what went is what there is.
        slow_until = -math.inf if episode.began <= self._slow_until else self._slow_until
        if self.in_flight.cap is None:
            learn(
                self.limits,
                episode,
                Context(
                    self.log,
                    self._recent,
                    self._jitter_s(),
                    slow_until,
                    is_patience_thin=self._patience.is_thin(episode.began),
                ),
                now,
            )
        else:
            self.limits = [limit for limit in self.limits if limit.most < math.inf]
        if self.in_flight.is_suspected:
            for limit in self.limits:
                limit.hurry()

    def _jitter_s(self) -> float:
        """Return by how much two arrivals may differ from what was sent, hardly ever exceeded."""
        return _SURE * self._trips.spread_s

    def _probe(self, limit: Limit, now: float, paced_since: float) -> None:
        if now < limit.probe_at or now - paced_since < limit.hold_s() or self._patience.is_thin(now):
            return
        span_s = _PROBED_S if limit.kind is Kind.BUCKET else max(limit.window, 1.0)
        held = self._tally(limit).count(now - span_s) * self.pace.length_s(limit) / span_s
        if held + 1.0 >= _FULL * limit.n:
            limit.probe(now, held)


def _published(known: tuple[Quota, ...]) -> list[Limit]:
    return [Limit(quota.n, quota.window_s, most=quota.n) for quota in known]


def _left_of(quota: Quota) -> float:
    return math.inf if quota.left is None else quota.left
