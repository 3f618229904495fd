"""Find the limiter that explains the refusals: the one that was equally full at each of them."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import log1p
from typing import NamedTuple

from sealgate.limits.limit import ALL, FEW, OTHERS, READS, WeightedTally, Weights
from sealgate.limits.observations import GRID, RATIO, ROUND_S, Held, Kept, Observation, held_at
from sealgate.limits.round_trips import RoundTrips
from sealgate.limits.sent_log import SentLog

COSTS = (2.0, 3.0, 4.0, 5.0)  # what an order may cost where a read costs 1
SURE = 2.0  # nats: no event says more; it is the price of one more parameter, and what round numbers gain
KEEP = SURE / 2  # nats: what is not believed yet must explain that much more
FOLLOWED = 1000  # requests that are gone through to tell how full a bucket was, as a fit has to be quick
SEEN_LONGER = 2  # a request is in flight here up to so many times as long as it is at work there

_FINE = [RATIO ** (j / 36) for j in range(-18, 19)]  # between two windows of GRID
Level = tuple[float, float]  # the least and the most that a limiter may have held
Form = tuple[Weights, bool, bool]


class Cycle(NamedTuple):
    """What was sent from one refusal to the next, in how many seconds, and the least held meanwhile."""

    sent: float
    seconds: float
    kept: float = 0.0


class Hypothesis(NamedTuple):
    """One candidate: `n` weighted requests per `window` seconds; `high` is the highest rate per second.

    A cap on concurrent requests is `n` in a window as long as a round trip. `is_round`: both are numbers
    that people write.
    """

    score: float
    weights: Weights
    n: float
    window: float
    high: float
    is_bucket: bool = False
    is_cap: bool = False
    is_round: bool = False
    observations: tuple[Observation, ...] = ()

    @property
    def form(self) -> Form:
        """What kind of limiter it is, its numbers aside."""
        return self.weights, self.is_bucket, self.is_cap


class _Judged(NamedTuple):
    """How well a window explains the events, in nats, and its worth compared with others of the same rate.

    It is full at the level `n`, which may be meant to be up to `most`.
    """

    score: float = -math.inf
    worth: float = -math.inf
    n: float = 0.0
    most: float = 0.0
    is_round: bool = False


class Fit:
    """The explanations of some events. Limits of those `forms` are believed, the refused one has `window`."""

    def __init__(
        self,
        observations: Sequence[Observation],
        log: SentLog,
        trips: RoundTrips,
        forms: frozenset[Form],
        window: float | None,
    ) -> None:
        self._observations, self._log = observations, log
        self._spread_s, self._trip_s = trips.spread_s, trips.mean_s
        self._forms, self._window = forms, window
        self._is_plain = all(form[0] == ALL for form in forms) and len(forms) <= 1

    def best(self) -> list[Hypothesis]:
        """Return the one or two limiters that explain the events best; none if nothing was refused."""
        best, found = -math.inf, list[Hypothesis]()
        count = len(self._observations)
        for observations in self._with_and_without_growth():
            for cut in sorted({0, max(0, count - FEW), max(0, count - FEW + 1)}):
                for limiters in self._structures(observations[cut:]):
                    # A change is one more parameter, its moment, and nothing that is believed.
                    score = self._score(limiters) - (SURE + KEEP) * (cut > 0)
                    if score > best:
                        best, found = score, limiters
        return [self._refined(one) for one in found]

    def _with_and_without_growth(self) -> Iterator[Sequence[Observation]]:
        """Yield the events as the steps that held since say that they would be now, and as they were."""
        yield self._observations
        if any(one.scale > 1 for one in self._observations):
            yield [replace(one, scale=1.0) for one in self._observations]

    def _score(self, limiters: Sequence[Hypothesis]) -> float:
        score = sum(one.score for one in limiters) + self._allowed(limiters)
        rounded = sum(one.is_round for one in limiters)
        # A limit more is a number and a window more: that they are round makes up for it, and no more.
        # That one class alone was refused so far makes no number of its own likelier.
        is_alone = len(limiters) == 1 and limiters[0].weights in (READS, OTHERS)
        score -= SURE * (rounded - (rounded == len(limiters) and not is_alone))
        if {one.form for one in limiters} == self._forms:
            return score + KEEP
        if limiters[0].weights == limiters[-1].weights == ALL:
            return score - 2 * SURE * (len(limiters) - 1) - KEEP * limiters[0].is_cap
        return score - SURE

    def _allowed(self, limiters: Sequence[Hypothesis]) -> float:
        """Return the logarithm of the requests per second that limits allow together."""
        reads, others = self._log.reads.totals[-1] + 1.0, self._log.others.totals[-1] + 1.0
        per_request = (
            (one.weights[0] * reads + one.weights[1] * others) / (reads + others) for one in limiters
        )
        return math.log(
            min(one.n / one.window / cost for one, cost in zip(limiters, per_request, strict=True))
        )

    def _structures(self, observations: Sequence[Observation]) -> Iterator[list[Hypothesis]]:
        """Yield the candidates: one limit on all; a cost; separate classes; a short window and a long one."""
        one = [self._window_of(observations, ALL), *self._buckets(observations)]
        best = max(one, key=lambda found: found.score + math.log(found.n / found.window))
        yield [best._replace(high=max(found.high for found in one if found.score >= best.score - KEEP))]
        yield from self._caps(observations)
        # Nothing explains more than all, and less than that much more is no reason to believe in several.
        if len(observations) < FEW or (best.score > SURE * (len(observations) - 1) and self._is_plain):
            return
        for cost in COSTS:
            yield [self._window_of(observations, (1.0, cost))]
        reads, others = (
            [obs for obs in observations if obs.event.is_read == is_read] for is_read in (True, False)
        )
        yield list(self._apart(reads, others))
        waits = sorted(obs.event.wait_s for obs in observations)
        for shorter, longer in pairwise(waits[:-1]):  # one long wait alone may be a ban
            if longer > 1.5 * shorter + 0.5:
                parts = (
                    [obs for obs in observations if (obs.event.wait_s > shorter) == is_long]
                    for is_long in (False, True)
                )
                yield [self._window_of(part, ALL) for part in parts]

    def _caps(self, observations: Sequence[Observation]) -> Iterator[list[Hypothesis]]:
        """Yield a cap on concurrent requests: a window as long as a trip, counted by what is in flight."""
        most = [obs.event.in_flight for obs in observations]
        if self._trip_s and min(most) > (FEW if len(observations) == 1 else 1):
            levels = [(beside / SEEN_LONGER, float(beside)) for beside in most]
            cycles = [Cycle(float(obs.event.peak), (SEEN_LONGER - 1) * self._trip_s) for obs in observations]
            judged = self._judge(levels, cycles, ALL, self._trip_s)
            # The fewest, and what was accepted of late all the same.
            n = max(min(most), min(most[-1], observations[-1].event.peak))
            longest_s = SEEN_LONGER * (self._trip_s + self._spread_s)
            waits = [obs.event.wait_s for obs in observations]
            # A cap gives way with the next reply; but a wait that is always the same is advice, not measured.
            is_advice = len(observations) >= FEW and max(waits) - min(waits) < self._spread_s
            too_long = 0 if is_advice else sum(wait > longest_s for wait in waits)
            score = judged.score - (SURE + KEEP) * too_long
            yield [Hypothesis(score, ALL, n, self._trip_s, n / self._trip_s, is_cap=True)]

    def _apart(self, reads: Sequence[Observation], others: Sequence[Observation]) -> Iterator[Hypothesis]:
        """Yield a limit per class that was refused; of few events the window is the other class's."""
        classes = sorted(((reads, READS), (others, OTHERS)), key=lambda one: len(one[0]), reverse=True)
        window: float | None = None
        for own, weights in classes:
            if own:
                found = self._window_of(own, weights, window if len(own) < FEW else None)
                window = found.window
                yield found

    def _window_of(
        self, observations: Sequence[Observation], weights: Weights, window: float | None = None
    ) -> Hypothesis:
        """Return the window of GRID that explains the events best, or how well the given one does."""
        places = [GRID.index(window)] if window is not None else range(len(GRID))
        held = [
            (
                [obs.least[at] for at in places],
                [obs.most[at] for at in places],
                [obs.kept[at] for at in places],
            )
            for obs in observations
        ]
        best, window, high = self._scan(observations, weights, [GRID[at] for at in places], held)
        n = max(best.n, *weights)
        high = n / window if best.is_round else max(n / window, high)
        return Hypothesis(
            best.score, weights, n, window, high, is_round=best.is_round, observations=tuple(observations)
        )

    def _refined(self, found: Hypothesis) -> Hypothesis:
        """Return what was found with its window to the point."""
        if found.is_bucket or found.is_cap or found.is_round:
            return found
        windows = [found.window * fine for fine in _FINE]
        held = [held_at(self._log, obs.event, obs.since, windows) for obs in found.observations]
        best, window, _ = self._scan(found.observations, found.weights, windows, held)
        n = max(best.n, *found.weights)
        return found._replace(n=n, window=window, high=max(n / window, found.high))

    def _scan(
        self,
        observations: Sequence[Observation],
        weights: Weights,
        windows: Sequence[float],
        held: Sequence[tuple[Held, Held, Kept]],
    ) -> tuple[_Judged, float, float]:
        """Return the best of some windows, and the highest rate of those that explain nearly as well."""
        cycles = self._cycles(observations, weights)
        # A window gives way when something leaves it: it is not longer ago than the first that was sent.
        longest_s = observations[-1].event.latest - self._log.all.times[0] + self._spread_s
        # What was refused did not fit: so much less one may have been left.
        scaled = [
            (
                obs.scale * weights[0],
                obs.scale * weights[1],
                (obs.event.cost - 1.0) * weights[0 if obs.event.is_read else 1],
                *own,
            )
            for obs, own in zip(observations, held, strict=True)
        ]
        best, window = _Judged(), windows[0]
        rounded, round_s = _Judged(), windows[0]
        rates: list[tuple[float, float]] = []
        before: list[Level] = []
        for index, longer in enumerate(windows):
            levels, fresh = list[Level](), list[Cycle]()
            for cycle, (reads, others, left, least, most, kept) in zip(cycles, scaled, strict=True):
                (r1, o1), (r2, o2) = least[index], most[index]
                levels.append((reads * r1 + others * o1, reads * r2 + others * o2 + left))
                (r1, o1), (r2, o2) = kept[index]
                still = min(reads * r1 + others * o1, reads * r2 + others * o2)
                fresh.append(Cycle(cycle.sent, cycle.seconds, still))
            if longer in ROUND_S and longer <= longest_s and weights in (ALL, READS, OTHERS):
                own = [
                    (low / obs.scale, high / obs.scale)
                    for obs, (low, high) in zip(observations, levels, strict=True)
                ]
                judged = self._judge_round(own, fresh, weights, longer)
                if judged.worth > rounded.worth:
                    rounded, round_s = judged, longer
            if levels == before:
                continue  # a longer window that holds the same restricts more, and explains nothing more
            before = levels
            judged = self._judge(levels, fresh, weights, longer)
            if judged.worth > best.worth:
                best, window = judged, longer
            if not judged.n:  # it may have held all, and gave way a moment later
                judged = self._judge([(most, most) for _, most in levels], fresh, weights, longer)
            rates.append((judged.score, max(judged.n, judged.most) / longer))
        rate = rounded.n / round_s
        is_as_high = rounded.n and rate * RATIO > best.n / window
        if is_as_high and rounded.score + self._rate_worth(rounded.n, round_s) > best.worth:
            return rounded, round_s, 0.0
        return best, window, max((rate for score, rate in rates if score > best.score - KEEP), default=0.0)

    def _judge_round(
        self,
        levels: Sequence[Level],
        cycles: Sequence[Cycle],
        weights: Weights,
        window: float,
    ) -> _Judged:
        """Judge a window by the largest number that people write and that no event speaks against."""
        blur = self._blur(window)
        least = min(most for _, most in levels)
        n = _round_below(least + max(weights) + least * blur)
        if not n:
            return _Judged()
        sigma = max(weights) + n * blur
        if levels[-1][0] > n + sigma:  # the last event shows that more fits
            return _Judged()
        against = self._over(cycles, n, window, sigma)
        score = _agreement(levels, cycles, n, sigma) - against + SURE
        worth = self._rate_worth(n, window) - against
        for low, most in levels:
            off = max(low - n, n - most, 0.0) / sigma
            worth -= min(log1p(off * off), 2 * SURE)
        return _Judged(score, worth, n, n, is_round=True)

    def _cycles(self, observations: Sequence[Observation], weights: Weights) -> list[Cycle]:
        """Return what was accepted from one refusal to the next."""
        tally, found = WeightedTally(self._log, weights), [Cycle(0.0, 0.0)]
        for before, after in pairwise(obs.event for obs in observations):
            went = tally.count(before.refused_at, after.refused_at)
            found.append(Cycle(went, after.refused_at - before.earliest))
        return found

    def _judge(
        self,
        levels: Sequence[Level],
        cycles: Sequence[Cycle],
        weights: Weights,
        window: float,
    ) -> _Judged:
        """Judge a window by the level at which it was full at most of the events."""
        blur = self._blur(window)
        coarse = max(weights)  # the request at the edge of the window may count or not
        score, n = -math.inf, 0.0
        edges = 1 if len(levels) < FEW else 2  # of few, the least that may be meant
        most_score = SURE * len(levels)
        looked_at = math.inf
        for full in sorted({edge for level in levels for edge in level[:edges] if edge > 0}, reverse=True):
            sigma = min(coarse, full / 4) + full * blur  # one is no more than nothing
            if full > looked_at - sigma / 2:  # as good as the one before
                continue
            looked_at = full
            against = self._over(cycles, full, window, sigma)
            if most_score - against > score + 0.1:
                agreed = _agreement(levels, cycles, full, sigma) - against
                if agreed > score + 0.1:
                    score, n = agreed, full
        if not n:
            return _Judged()
        off = coarse + n * blur
        (least, last), three = levels[-1], sorted(least for least, _ in levels[-FEW:])
        most = min((b for a, b in levels if a <= n + off and b >= n - off), default=last)
        if least > n + off:
            n, most = least, last
        elif last < n - off:
            n = three[1 if len(three) == FEW else 0]
            most = max(n, last)
        n = max(n, 0.5)
        return _Judged(score, score + self._rate_worth(n, window), n, most)

    def _rate_worth(self, n: float, window: float) -> float:
        """Return what speaks for a window beside the events: the rate, and that it is believed."""
        is_believed = self._window is not None and abs(math.log(window / self._window)) < math.log(RATIO) / 2
        return math.log(n / window) + KEEP * is_believed

    def _blur(self, window: float) -> float:
        """Return which part of a full window trips of unequal length may add or take away."""
        return min(self._spread_s / window, 0.3) + 0.01

    @staticmethod
    def _over(cycles: Sequence[Cycle], n: float, window: float, sigma: float) -> float:
        """Return how much speaks against a limit that would not have allowed what was accepted, in nats."""
        against = 0.0
        for went, seconds, _ in cycles:
            over = went - n * (1 + seconds / window)
            if over > 0:
                against += log1p((over / sigma) ** 2)
        return against

    def _buckets(self, observations: Sequence[Observation]) -> list[Hypothesis]:
        """Return the buckets that would have been empty at two of the events."""
        cycles, last = self._cycles(observations, ALL), observations[-1].event
        rates: list[float] = []
        for first, second in pairwise(obs.event for obs in observations):
            for end in (second, last):
                span_s = end.ended_at - first.ended_at
                went = self._log.all.count(first.ended_at - 1e-3, end.refused_at)
                rates.append(went / span_s if span_s > 0 else 0.0)
        for (went, seconds, _), (more, longer, _) in pairwise(
            sorted(cycles[1:], key=lambda one: one.seconds)
        ):
            if longer > seconds and more > went:  # each began with all that it holds
                rates.append((more - went) / (longer - seconds))
        rates.sort()
        apart = [rate for before, rate in pairwise([0.0, *rates]) if rate > 1.005 * before]
        return [self._bucket(observations, cycles, rate) for rate in apart]

    def _bucket(
        self, observations: Sequence[Observation], cycles: Sequence[Cycle], rate: float
    ) -> Hypothesis:
        """Return the bucket of that rate: what was taken and not refilled at each event is what it holds."""
        times, totals = self._log.all.times, self._log.all.totals
        levels, fresh = list[Level](), list[Cycle]()
        most = FOLLOWED // len(observations)
        taken, peak, at, index, kept = 0.0, 1.0, -math.inf, 0, 0.0
        for event, cycle in zip((obs.event for obs in observations), cycles, strict=True):
            fresh.append(cycle._replace(kept=kept))
            end = bisect_right(times, event.refused_at)
            is_cut = end - index > most
            if is_cut:  # what was taken before is anything up to all
                index, taken, at = end - most, 0.0, -math.inf
            while index < end:
                taken = max(0.0, taken - rate * (times[index] - at)) + totals[index + 1] - totals[index]
                peak, at = max(peak, taken), times[index]
                index += 1
            least = taken + 1 - rate * (event.latest - at)
            if is_cut:
                taken = max(taken, peak)
            levels.append((least, taken + 1 - rate * max(0.0, event.earliest - at)))
            kept = max(0.0, taken - rate * (event.resumed_at - at))
        blur = 1.0 + 1.5 * rate * self._spread_s
        longest_s = 2 / rate + 2 * self._spread_s + 0.01
        too_long = sum(obs.event.wait_s > longest_s for obs in observations)  # no bucket is empty for so long
        score, n = -math.inf, 1.0
        for full in {*(max(least, 1.0) for least, _ in levels), peak}:
            sigma = blur + 0.01 * full
            agreed = _agreement(levels, fresh, full, sigma) - log1p((max(peak - full, 0.0) / sigma) ** 2)
            if agreed > score:
                score, n = agreed, full
        n = max(1.0, n - blur)
        score -= (SURE + KEEP) * too_long
        return Hypothesis(score, ALL, n, n / rate, rate, is_bucket=True, observations=tuple(observations))


def _agreement(levels: Sequence[Level], cycles: Sequence[Cycle], full: float, sigma: float) -> float:
    """Return how much likelier the levels are of what is full there than of anything, in nats.

    No level tells more than what was sent since the one before, or than it moved by: a window that is nearly
    full all the time is so at a refusal too.
    """
    score, double = 0.0, 2 * sigma
    for (least, most), (sent, _, kept) in zip(levels, cycles, strict=True):
        moved = max(min(sent, full - kept), 0.0)
        gain = min(log1p(moved / (double + most - least)), SURE)
        off = least - full if full < least else full - most if full > most else 0.0
        if off:
            off /= sigma
            gain = max(gain - log1p(off * off), -SURE)
        score += gain
    return score


def _round_below(most: float) -> float:
    """Return the largest number up to `most` that people write: 10, 15 … 100, 110 …; 0 if none is."""
    unit = 5.0 if most < 100 else 10.0 ** (len(f"{int(most)}") - 2)  # noqa: PLR2004 - a number of two digits
    n = most // unit * unit
    return n if n >= 2 * unit else 0.0
