"""The estimator of the limits of one pool: it is told of every request, and says when the next one may go.

1. A limiter refuses when it is full, so whatever its kind, one number was the same at every refusal: how
   full it was, its level.
2. A 429 and whatever follows until a scout is accepted is one event: it began when the limiter was full, and
   the limiter gave way between two known moments; stated waits that contradict each other say nothing, and
   after two such events no stated wait does; nor does a ban, which is a punishment (`throttle.py`).
3. The level of a window of any length lies between two counts, one for each of those moments; the less is
   known about the moment, the further apart they are and the less they prove.
4. The hypothesis that is believed is the one whose level was the same at the last events, six at the most
   (`fit.py`): a window, a bucket, a cap on concurrent requests (a window as long as a round trip, counted by
   what is in flight), and from three events on separate windows for reads and for everything else, a window
   in which everything else costs more than a read, or two windows.
5. Agreement is a likelihood: no event adds to it, or takes from it, more than a bound, so that neither a ban
   nor another user of the limit can outweigh the rest, nor more than the movement of the level since the
   event before can prove, as what is nearly full all the time is full at a refusal by chance; a wait that a
   bucket or a cap could not cause counts against it for more than any event; what is not believed yet pays
   for parameters beyond those of one window or bucket: a cap half of what one event can add, costs and
   separate windows as much as one, two windows as much as two.
6. Whatever was accepted between two events counts against every limit that would not have allowed it.
7. To its agreement a hypothesis adds the logarithm of the rate that it allows, so that the least restrictive
   of equals wins, a little if it is of the kind that is believed, and more if all its numbers and windows are
   such as people publish, unless it limits one class alone.
8. If the last two or three events alone are explained clearly better, the limit changed before them; if the
   last level is off, a higher one is the limit, and a lower one has the median of the last three believed,
   or the lower of two.
9. While nobody waits, a request goes at once if it fits into every window; once somebody has to wait,
   requests go at an even pace, that of the shortest window and of every other one that is not published or
   half used, slower where a window is nearly used up, until one comes to a free turn: that nobody waits for
   the length of a trip, as after reads that went as one, does not end it; a flood, which is longer than
   bursts that meet, waits before a long window is full, so that no cancel has to wait for the window's end.
   Where a 429 costs less than waiting, a learned limit holds nobody for long: one that was refused fewer than
   three times for no longer than a few turns; one that is slow, unless a published one was refuted by it,
   after a time without a refusal not at all, and so one that a lone refusal after fewer than ten requests
   suggests; what waits then goes one at first, and twice as many in each round trip, until the next refusal,
   or until nobody waits any more, when the slow limit is forgotten.
10. The pace is `low`, which is believed to hold; `high` is the most that the events allow, infinite where
    they say nothing above `low`.
11. A step up, towards the middle of the two or beyond an exact `low`, is carried by reads (by all others
    where no read came), never closer together than its rate says; if a good part of the excess went and held,
    the step becomes `low`, else what went; a step that was refused becomes `high`.
12. A step needs a budget, which accepted requests fill and events empty, the less the further apart the two
    bounds are; none begins when four refusals came within ten seconds, and the first one beyond what is exact
    waits until the standstill of the last event was a small part of the time, ten minutes at the most.
13. A pace that was refused while somebody waited is lowered by a small step, doubled each time in a row, if
    it had held and the limiter soon gave way, or if its numbers still look published; otherwise, and the
    third time in a row, it becomes what the events say or, where that is no lower, the middle of it and of
    what was delivered, but at least half; a break lets the limiter drain where the pace itself was lowered.
14. A cap is raised one by one after a long time without a refusal, until the next refusal.
15. A published limit is kept to until the exchange states another one of its window, or counts more in it
    without a refusal. Where it is refused, somebody else may use it: its pace alone is lowered to the part
    that was full, half at the least, then searched up to what is published. Two refusals in a row while it
    was not full, bans aside, refute it, if what explains them is lower or smaller: that is then searched like
    any other limit, up to what is published. A remainder that a reply states holds until its reset or the
    next statement; a limit that a reply states is ignored once three times as much was accepted.
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from sealgate.limits.claims import Claim
from sealgate.limits.counts import StatedCounts
from sealgate.limits.fit import Fit, Hypothesis
from sealgate.limits.in_flight import InFlight
from sealgate.limits.limit import (
    AGAIN_S,
    ALL,
    AMPLE,
    FEW,
    LONGEST_REST_S,
    OF_ONE_CLASS,
    OTHERS,
    READS,
    SHORT_S,
    Limit,
    WeightedTally,
)
from sealgate.limits.observations import Observation, observe
from sealgate.limits.quotas import Quota
from sealgate.limits.round_trips import RoundTrips
from sealgate.limits.sent_log import SentLog, Tally
from sealgate.limits.throttle import ThrottleEvent
from sealgate.venues.routes import Lane

HORIZON_S: Final = 3600.0  # the longest window that is learned
KEPT = 6  # events that are explained together: three of reads and three of orders, where they are apart
BUDGET: Final = 3.0  # refusals that a search may cost in a row
PER_ACCEPTED: Final = 0.002  # of a refusal: what one accepted request adds to the budget
NEAR = 1.03  # two rates so near are one: trips of unequal length blur a window by as much
FULL = 0.9  # of a limit that is believed: a refusal with less in the window was another limit's
STILL = 0.02  # of the time, for which refused steps may stop everything
MOST_STATED = 8  # windows that header fields may publish
REFUTED = 3.0  # times a stated limit: no window or bucket admits more than twice its number in one window
LIES = 2  # stated waits that contradict others, after which they are obeyed and not learned from

_MANY = 4  # refusals within AGAIN_S, after which nothing is tried
_EVIDENCE = 10  # requests: one refusal after fewer tells next to nothing of a limit
_SURE = 1.5  # times the spread of the round trips: hardly ever exceeded


class Step(NamedTuple):
    """What would be tried next: a rate, in so many seconds and after so many acceptances at the least."""

    rate: float
    in_s: float
    accepted: int


class LimitEstimator:
    """The limits of one pool, learned and published, and everything that was sent under them."""

    def __init__(self, known: tuple[Quota, ...] = (), *, counts_requests: bool = False) -> None:
        self.counts_requests = counts_requests
        self.log = SentLog(HORIZON_S)
        self.limits = [self._published(one) for one in known]
        self._known = tuple(self.limits)
        self.at_a_time: int | None = None  # the cap on concurrent requests, None if there is none
        self._most_in_flight = math.inf  # while requests that waited go under no limit that is believed
        self._in_flight = InFlight()
        self._trips = RoundTrips()
        self._observations: deque[Observation] = deque(maxlen=KEPT)
        self._event: ThrottleEvent | None = None
        self._budget = BUDGET
        self._lies = 0  # events whose stated waits contradicted each other
        self._sent_at = self._refused_at = -math.inf  # the latest request, and the latest that was refused
        self._proves_from = -math.inf  # when a pace that holds has held for as long as the last event took
        self.accepted_in_a_row = 0  # since the last event
        self._refused_in_a_row = 0  # how often a pace was
        self._resumed_at = -math.inf  # when the last event was over
        self._recent_refusals: deque[float] = deque(maxlen=_MANY)
        self.counts = StatedCounts()
        self._refuted: deque[str] = deque(maxlen=MOST_STATED)  # names of stated limits that were exceeded

    def believe(self, limits: Sequence[Limit], at_a_time: int | None = None) -> None:
        """Go by these limits from now on, as restored from memory or handed over."""
        self.limits, self.at_a_time = list(limits), at_a_time

    def next_step(self, limit: Limit, now: float) -> Step | None:
        """Return what would be tried next to learn more of a limit; None if nothing would."""
        if limit.low >= limit.most / 1.001:
            return None
        missing = max(0.0, self._step_cost(limit) - self._budget)
        return Step(limit.next_rate(), max(0.0, limit.next_at - now), math.ceil(missing / PER_ACCEPTED))

    def publish(self, known: tuple[Quota, ...]) -> None:
        """Go by other published limits from now on; without any, by what was learned."""
        self._known = tuple(map(self._published, known))
        self.limits = [*self._known] or [limit for limit in self.limits if limit.most == math.inf]

    def stated(self, quotas: tuple[Quota, ...], now: float) -> None:
        """Take in what the header fields of a reply state: it overrides what was inferred.

        A stated limit of which the exchange has accepted several times as much is not of all that is sent
        here; it may belong to one path, for example. It and what is left of it are ignored from then on.
        """
        # Whether what is in flight will be accepted, nobody knows.
        until = math.nextafter(self._in_flight.since, -math.inf)
        for quota in quotas:
            accepted = self.log.all.count(now - quota.window_s, until)
            if quota.name not in self._refuted and accepted > REFUTED * quota.n:
                self._refuted.append(quota.name)
        quotas = tuple(quota for quota in quotas if quota.name not in self._refuted)
        for quota in quotas:
            if quota.window_s < math.inf:
                self._take_published(quota)
        self.counts.take_in(quotas, len(self._in_flight), now)

    def _take_published(self, quota: Quota) -> None:
        """Believe a limit that a reply states instead of others of its window, unless it was refuted."""
        rate, published = quota.n / quota.window_s, list[Limit]()
        for one in self.limits:
            stated = one.refutes if one.most == math.inf else one.quota
            if stated is None or stated.window_s != quota.window_s:
                published += [one] if stated else []
            elif stated.n == quota.n or (quota.is_least and rate <= one.most < math.inf):
                return
        if len(published) >= MOST_STATED:  # an exchange that states ever new windows means none of them
            published = [one for one in published if one in self._known]
        limit = self._published(quota)
        limit.refutes = next((one.quota for one in self._known if one.window == quota.window_s), None)
        self.limits = sorted([*published, limit], key=lambda one: one.window)

    def _published(self, quota: Quota) -> Limit:
        self.log.reach(quota.window_s, quota.n)
        rate = quota.n / quota.window_s
        return Limit(quota.n, quota.window_s, rate, rate, most=rate)

    def _cost_of(self, claim: Claim) -> float:
        return 1.0 if self.counts_requests else claim.cost

    @property
    def in_flight(self) -> int:
        """How many requests are under way."""
        return len(self._in_flight)

    @property
    def needs_scout(self) -> bool:
        """Whether nothing was accepted since the last 429."""
        return self._event is not None

    @property
    def is_probing(self) -> bool:
        """Whether a step above the pace is being tried."""
        for limit in self.limits:  # noqa: SIM110 - asked often, and `any` of a generator takes longer
            if limit.tried is not None:
                return True
        return False

    @property
    def is_apart(self) -> bool:
        """Whether reads, or all others, have a limit of their own."""
        for limit in self.limits:  # noqa: SIM110 - as above
            if limit.weights in OF_ONE_CLASS:
                return True
        return False

    @property
    def counts_apart(self) -> bool:
        """Whether a class may have room while another has none."""
        return self.is_probing or self.is_apart

    def ready_at(self, claim: Claim, now: float, *, is_paced: bool) -> float:
        """Return when the claim may go; infinity where that depends on a reply."""
        if self.at_a_time is not None and len(self._in_flight) >= self.at_a_time:
            return math.inf
        at = max(self.counts.room_at(self._cost_of(claim), now), self.room_at(claim, now, is_paced=is_paced))
        return at if len(self._in_flight) < self._most_in_flight else max(at, self._sent_at + SHORT_S)

    def room_at(self, claim: Claim, now: float, *, is_paced: bool, ahead: float = 0.0) -> float:
        """Return when the limits have room for the claim and the cost `ahead` of it, as far as is known.

        What pending replies may say is left aside.
        """
        at, kind = now, 0 if claim.is_read else 1
        for limit in self.limits:
            cost = (self._cost_of(claim) + ahead) * limit.weights[kind]
            if not cost or (is_paced and now >= limit.given_up_at):
                continue
            tally = self._tally(limit)
            # A learned pace holds as it is; of a window as published trips of unequal length take a part.
            is_learned = is_paced and limit.most == math.inf and not limit.is_round
            margin_s = 0.0 if is_learned else min(self._trips.spread_s, 0.25 * limit.window)
            is_flooded = not is_paced and claim.lane is not Lane.CANCEL and limit.is_flooded(tally, now)
            if not (limit.is_bucket and is_paced):  # a bucket at its pace never has to wait for more
                at = max(at, limit.room_at(cost, tally, margin_s, is_flooded=is_flooded))
            if (is_paced and self._sets_pace(limit, now)) or limit.is_saturated(now):
                at = max(at, limit.turn_at(cost, tally, now, is_carrier=limit.is_carried_by(claim)))
            if is_paced:
                at = min(at, max(now, self._sent_at + limit.longest_s()), max(now, limit.given_up_at))
        return at

    def _sets_pace(self, limit: Limit, now: float) -> bool:
        """Return whether what waits goes at a limit's pace: that of the shortest window, or of one half used.

        100 per 10 s beside 200,000 a day must not go at the even pace of the day.
        """
        return limit is self.limits[0] or not limit.is_ample(self._tally(limit), now)

    def spent_s(self, now: float) -> float:
        """Return for how long nothing is left, according to a reply; 0 while another may correct it."""
        return 0.0 if self._in_flight else self.counts.spent_s(now)

    def wait_per_cost_s(self, claim: Claim, now: float) -> float:
        """Return the seconds between two requests of cost 1 while others wait, 0 if no limit is known."""
        kind = 0 if claim.is_read else 1
        kept = (one for one in self.limits if now < one.given_up_at and self._sets_pace(one, now))
        return max((min(one.weights[kind] / one.low, one.longest_s()) for one in kept), default=0.0)

    def used(self, limit: Limit, now: float) -> float:
        """Return the part of a limit that is used up."""
        return self._tally(limit).count(now - limit.window) / limit.n

    def took(self, claim: Claim, now: float, *, is_paced: bool) -> None:
        """Count a claim that is sent now; `is_paced`: others like it wait."""
        self.log.add(now, self._cost_of(claim), is_read=claim.is_read)
        # All that waited was accepted, beyond what a limit that is given up would have allowed.
        if self._most_in_flight < math.inf and not is_paced and not self._in_flight:
            self._most_in_flight = math.inf
            self.limits = [limit for limit in self.limits if now < limit.given_up_at]
        self._in_flight.send(claim.id, now)
        self.counts.send(self._cost_of(claim))
        self._sent_at = now
        kind = 0 if claim.is_read else 1
        for limit in self.limits:
            cost = self._cost_of(claim) * limit.weights[kind]
            if not cost:
                continue
            if limit.withheld and now >= limit.withheld_until:
                limit.withheld = 0.0
            is_in_turn = is_paced and self._sets_pace(limit, now)
            if not is_in_turn and not limit.is_saturated(now):
                limit.last_turn = now
                continue
            if now >= limit.given_up_at:
                if self._most_in_flight == math.inf:
                    self._most_in_flight = float(len(self._in_flight))
                continue
            limit.took(
                cost, self._tally(limit), now, is_paced=is_paced, is_carrier=limit.is_carried_by(claim)
            )
            if limit.tried is not None:
                limit.fullest = max(limit.fullest, self._tally(limit).count(now - limit.window))
            if now >= limit.next_at and self._event is None:
                self._search(limit, now)

    def sent(self, claim: Claim, released_at: float, now: float) -> None:
        """Move a claim that was released then to the moment at which it was written."""
        if self.log.remove(released_at, self._cost_of(claim), is_read=claim.is_read):
            self.log.add(now, self._cost_of(claim), is_read=claim.is_read)

    def take_back(self, claim: Claim, sent_at: float) -> None:
        """Take back a claim that was released and never sent."""
        self.log.remove(sent_at, self._cost_of(claim), is_read=claim.is_read)
        self._in_flight.end(claim.id)

    def lost(self, claim: Claim) -> None:
        """Keep a claim counted to which no reply came."""
        self._in_flight.end(claim.id)

    def accepted(self, claim: Claim, sent_at: float, now: float, *, is_scout: bool) -> None:
        """Take in a reply other than a 429; the reply to a scout ends the event."""
        self._trips.add(now - sent_at)
        at_a_time = self._in_flight.accepted(claim.id)
        self._most_in_flight += 1.0  # so that twice as many go in each round trip
        if self._budget < BUDGET:
            self._budget = min(BUDGET, self._budget + PER_ACCEPTED)
        self.accepted_in_a_row += 1
        is_old = now - self._refused_at > LONGEST_REST_S
        if self.at_a_time is not None and at_a_time >= self.at_a_time and is_old:
            self.at_a_time += 1
        event = self._event
        if event is not None and is_scout:
            event.ended(sent_at)
            self._lies += event.is_lie
            self._event = None
            self._learn(event, now)

    def throttled(  # noqa: PLR0913 - all that a refusal says
        self,
        claim: Claim,
        sent_at: float,
        paused_until: float,
        stated_s: float | None,
        resolution_s: float,
        *,
        is_ban: bool = False,
    ) -> None:
        """Take in a 429 or a ban to what was sent at `sent_at`; everything pauses until `paused_until`."""
        jitter_s = _SURE * self._trips.spread_s
        beside = self._in_flight.refused(claim.id, jitter_s)
        self._refused_at = sent_at
        self.log.remove(sent_at, self._cost_of(claim), is_read=claim.is_read)
        if self._event is None or self._event.lost == 1:  # of a volley two count
            self._recent_refusals.append(sent_at)
        if self._event is None:
            # The very first refusal could not be avoided, and costs half.
            self._budget = max(self._budget - (1.0 if self.limits else 0.5), 0.0)
            # While the jitter is unknown, any request sent before the pause may have arrived first.
            mixed_until = sent_at + jitter_s if self._trips.is_known else paused_until
            tried = next((one.tried for one in self.limits if one.tried is not None), None)
            self._event = ThrottleEvent(sent_at, mixed_until, is_read=claim.is_read, tried=tried)
        does_learn = self._lies < LIES
        self._event.in_flight = min(self._event.in_flight, beside)
        self._event.add(
            sent_at, self._cost_of(claim), stated_s if does_learn else None, resolution_s, is_ban=is_ban
        )

    def _tally(self, limit: Limit) -> Tally | WeightedTally:
        weights = limit.weights
        if weights == ALL:
            return self.log.all
        if weights == READS:
            return self.log.reads
        return self.log.others if weights == OTHERS else WeightedTally(self.log, weights)

    def _learn(self, event: ThrottleEvent, now: float) -> None:
        """Find the limiter that explains all recent events, and believe it."""
        counting = [one for one in self.limits if one.weights[0 if event.is_read else 1]]
        before = max(counting, key=lambda one: self._fullness(one, event), default=None)
        if before is not None and before.most < math.inf and self._fullness(before, event) < AMPLE:
            # None was near: others sent, too, and the shortest window fills the soonest.
            before = min((one for one in counting if one.most < math.inf), key=lambda one: one.window)
        event.peak = self._in_flight.peak
        self._proves_from = 2 * event.resumed_at - event.refused_at
        self._remember(event, before)
        is_published, drain_s = before is not None and before.most < math.inf, 0.0
        # 1. A published limit is believed until it was not full at two refusals in a row, and a lower one
        #    explains them.
        if before is not None and is_published:
            since = event.refused_at - before.window - _SURE * self._trips.spread_s
            held = self._tally(before).count(since, event.refused_at) + event.cost
            before.doubts = before.doubts + (not event.is_ban) if held < FULL * before.n else 0
            found = [one for one in self._fit(before) if not one.is_cap] if before.doubts >= LIES else []
            if any(one.n / one.window < before.most or one.n < FULL * before.n for one in found):
                drain_s = self._believe(found, event, before, now)
            else:
                before.fall(self._fullness(before, event), now)
        # 2. What a class was refused of which no published limit counts says nothing.
        elif before is not None or all(one.most == math.inf for one in self.limits):
            found = self._fit(before)
            # One refusal after hardly any request limits nothing.
            is_lone = len(self._observations) == 1 and event.lost <= event.cost
            if is_lone and all(one.n < _EVIDENCE and not one.is_cap for one in found):
                found = []
            self._most_in_flight = math.inf if found else 2.0
            drain_s = self._believe(found, event, before, now)
        self.accepted_in_a_row = self._in_flight.peak = 0
        self._resumed_at = event.resumed_at
        for limit in self.limits:
            limit.last_turn = max(limit.last_turn, event.resumed_at) + drain_s
            limit.seen, limit.last_seen = limit.seen + 1, now
            limit.stood_s = event.stood_s
            if limit.is_round or limit.seen >= FEW:
                stood_s = min(limit.stood_s, limit.window)
                # One event alone may have meant something else: that is found out sooner.
                most_s = LONGEST_REST_S if limit.seen > 1 else 2 * AGAIN_S
                limit.rest_s = min(max(stood_s / STILL, AGAIN_S), most_s)
            limit.tried, limit.since = None, now
            limit.next_at = now + limit.hold_s(1.0)

    def _fit(self, before: Limit | None) -> list[Hypothesis]:
        """Return what explains the recent events best; `before` is believed to have been refused last."""
        learned = [limit for limit in self.limits if limit.most == math.inf]
        forms = frozenset((limit.weights, limit.is_bucket, False) for limit in learned)
        if self.at_a_time is not None:
            forms = frozenset([(ALL, False, True)])
        window = before.window if before else None
        return Fit(list(self._observations), self.log, self._trips, forms, window).best()

    def _fullness(self, limit: Limit, event: ThrottleEvent) -> float:
        since = event.earliest - limit.window - _SURE * self._trips.spread_s
        return self._tally(limit).count(since, event.refused_at) / limit.n

    def _remember(self, event: ThrottleEvent, before: Limit | None) -> None:
        """Keep an event; one that repeats the previous one replaces it."""
        last = self._observations[-1].event if len(self._observations) >= FEW else None
        if last is not None and before is not None and last.is_read == event.is_read:
            is_soon = self._tally(before).count(last.refused_at, event.refused_at) < 0.1 * before.n
            if is_soon and self._fullness(before, event) > FULL:
                self._observations.pop()
        since = self._observations[-1].event.resumed_at if self._observations else -math.inf
        self._observations.append(observe(self.log, event, since))

    def _believe(
        self, found: list[Hypothesis], event: ThrottleEvent, before: Limit | None, now: float
    ) -> float:
        """Believe the hypotheses; return how long to pause until the excess has drained."""
        has_rested = event.refused_at - self._resumed_at > AGAIN_S
        # Two full windows held.
        if before and has_rested and self.accepted_in_a_row > min(1 / PER_ACCEPTED, 2 * before.n):
            self._refused_in_a_row = 0
        was, drain_s, self.at_a_time = self.limits, 0.0, None
        refutes = None
        if before is not None:
            refutes = before.quota if before.most < math.inf else before.refutes
        # A published limit stays that is not refuted, and so do the limits of a class that was not refused.
        is_apart = any(one.weights in OF_ONE_CLASS for one in found)
        weights = {one.weights for one in found}
        self.limits = [
            one
            for one in was
            if (one.most < math.inf and one is not before)
            or (is_apart and one.weights in OF_ONE_CLASS and one.weights not in weights)
        ]
        if not found or found[0].is_cap:
            self.at_a_time = int(found[0].n) if found else None
            self.limits += [self._published(refutes)] if refutes else []
            return 0.0
        for one in found:
            rate = max(one.n / one.window, 1e-4)
            same = [limit for limit in was if limit.weights == one.weights]
            old = min(same, key=lambda limit: abs(math.log(limit.window / one.window)), default=None)
            # So few requests may have been a whole burst, or all that are allowed at a time.
            is_all = len(self._observations) == 1 and one.n <= max(FEW, event.in_flight + 1)
            high = math.inf if is_all else max(rate, one.high)
            limit = Limit(
                one.n, one.window, rate, high, one.weights, refutes=refutes, is_bucket=one.is_bucket
            )
            limit.is_round = one.is_round and not is_all
            at_once_s = FEW / rate + self._trips.spread_s
            limit.is_smooth = all(one.event.wait_s <= at_once_s for one in self._observations)
            limit.last_turn = limit.paced_at = now
            if old is not None:
                limit.seen, limit.fell_at = old.seen, old.fell_at
                limit.paced_at, limit.rest_s = old.paced_at, old.rest_s
            if old is not None and old is before:
                since = event.refused_at - old.window
                if len(self._observations) > 1:  # a window at the least, or since the event before
                    since = min(since, self._observations[-2].event.refused_at)
                went = self._tally(old).count(since, event.refused_at)
                delivered = went / (event.refused_at - since)
                drain_s = limit.replace(old, event, delivered, self._refused_in_a_row, now)
                self._refused_in_a_row += drain_s > 0
            self.limits.append(limit)
        self.limits.sort(key=lambda one: one.window)
        return drain_s

    def _search(self, limit: Limit, now: float) -> None:
        """Judge the step that was tried, and begin the next one if the budget allows it."""
        tally = self._tally(limit)
        rate = tally.count(limit.since) / max(now - limit.since, 1e-3)
        has_reads = limit.weights[0] and self.log.reads.count(limit.since)
        # 1. A pace held if nearly all of it was sent, for longer than the limiter stood still before: until
        #    then a pace that is too high may hold as well.
        limit.is_held = limit.is_held or (rate >= 0.9 * limit.low and now >= self._proves_from)
        # 2. What was accepted is allowed, and so is all that was in the window at once.
        if limit.tried is not None:
            is_sent = rate >= limit.low + 0.4 * (limit.tried - limit.low)
            held = limit.tried if is_sent else max(rate, limit.fullest / limit.window)
            if held > limit.low:
                self._refused_in_a_row = 0
                up = limit.rise(held)
                for one in self._observations:
                    one.scale *= up
            limit.tried, limit.last_turn = None, now
            # What is published instead of it is no more than what holds.
            if limit.refutes and limit.low * NEAR * limit.refutes.window_s >= limit.refutes.n:
                limit.n, limit.window = limit.refutes.n, limit.refutes.window_s
                limit.high = limit.low = limit.most = limit.n / limit.window
                limit.weights, limit.is_bucket, limit.refutes = ALL, False, None
        limit.since = now
        limit.next_at = now + limit.hold_s(1.0)
        # 3. No step begins beyond a published rate, after many refusals of late, or beyond the budget.
        recent = self._recent_refusals
        if limit.low >= limit.most / 1.001 or (len(recent) == _MANY and now - recent[0] < AGAIN_S):
            return
        if self._budget < self._step_cost(limit):
            return
        # 4. Once the bounds have met, which in a long window they have when a step is less than a request,
        #    the next step goes beyond them, after a rest.
        room = limit.high / limit.low
        if room < max(NEAR, 1 + 1 / limit.n if limit.window > SHORT_S else 0.0):
            limit.high = math.inf
            limit.next_at = now + max(limit.rest_s, limit.tried_within_s(2 * limit.window))
            return
        limit.is_for_all, limit.fullest = not has_reads, 0.0
        limit.step_up(now)

    def _step_cost(self, limit: Limit) -> float:
        """Return the budget that a step needs: less, the further apart the bounds are."""
        return 1.0 - 4 * math.log(limit.high / limit.low) if limit.high < math.inf else 1.0
