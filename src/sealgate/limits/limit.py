"""The belief about one limit: a window, and a rate between two bounds."""

import math
from bisect import bisect_left
from dataclasses import dataclass, field

from sealgate.limits.claims import Claim
from sealgate.limits.quotas import Quota
from sealgate.limits.sent_log import SentLog, Tally
from sealgate.limits.throttle import ThrottleEvent

SHORT_S = 2.0  # a window so short is over before it matters that it is full
STEP = 1.05  # the first step upwards; one that held is followed by one twice as wide
MOST_STEP = 1.5  # a step that is refused has so many requests too many under way
FEW = 3  # refusals: fewer tell one limiter from another by chance
QUICK_S = 8.0  # a limiter that gives way at once is tried no longer, however long its window
LONGEST_REST_S = 600.0  # between two steps that were refused: as long as a change may go unnoticed
AGAIN_S = 10.0  # the time in which exchanges count refusals towards a ban
FALL = 0.008  # of a pace that held goes when it is refused: a quarter of what is taken for one rate
AMPLE = 0.5  # of a published window, up to which nobody has to go evenly for its sake
FREE = 0.8  # of a long window goes at once in a flood; the rest goes evenly, so that no cancel waits for it
_PARTS = 6  # of the last seconds, all of which a flood fills
Weights = tuple[float, float]  # what a read takes of a limit, and what any other request does
ALL, READS, OTHERS = (1.0, 1.0), (1.0, 0.0), (0.0, 1.0)
OF_ONE_CLASS = (READS, OTHERS)


class WeightedTally:
    """The costs of reads and of other requests, each times its weight."""

    def __init__(self, log: SentLog, weights: Weights) -> None:
        self._reads, self._others = log.reads, log.others
        self._weights = weights

    def count(self, since: float, until: float | None = None) -> float:
        """Return the cost sent in (since, until]."""
        of_read, of_other = self._weights
        return of_read * self._reads.count(since, until) + of_other * self._others.count(since, until)

    def room_since(self, room: float) -> float:
        """Return the earliest `since` for which count(since) is at most `room`."""
        reads, others, (of_read, of_other) = self._reads.totals, self._others.totals, self._weights
        least = of_read * reads[-1] + of_other * others[-1] - room
        index = bisect_left(range(len(reads)), least, key=lambda i: of_read * reads[i] + of_other * others[i])
        return self._reads.times[index - 1] if index else -math.inf


@dataclass(slots=True)
class Limit:
    """At most `n` per `window` seconds at once, and `low` to `high` per second in the long run.

    `most` is the published rate, infinite for a limit that was learned; nothing beyond it is tried. `refutes`
    is the published limit instead of which it is believed. `weights` says what a read and what any other
    request takes of it. `seen` events came while it was believed, the latest at `last_seen`; at `fell_at`
    it became much lower than before, as if by another user of the limit. `tried` is the rate above `low`
    that is being tried, if any.
    """

    n: float
    window: float
    low: float
    high: float = math.inf
    weights: Weights = ALL
    most: float = math.inf
    refutes: Quota | None = None
    doubts: int = 0  # refusals in a row at which a published limit was not full
    is_bucket: bool = False
    is_round: bool = False  # it was learned, and its numbers are such as people write
    is_smooth: bool = False  # it gave way within a few requests each time, as it is never full for long
    seen: int = 0
    last_seen: float = -math.inf
    stood_s: float = 0.0  # how long it gave way to nothing at the last of them
    fell_at: float = -math.inf
    tried: float | None = None
    next_at: float = -math.inf  # when the next step may begin, or the current one is judged
    since: float = -math.inf  # when that began
    is_held: bool = False  # the pace did hold
    is_for_all: bool = False  # no read came that could have carried the step, so anything carries it
    fullest: float = 0.0  # the most that the window held since the step began
    step: float = STEP
    rest_s: float = 0.0
    withheld: float = 0.0  # of `n`, after a restart, until `withheld_until`
    withheld_until: float = -math.inf
    last_turn: float = -math.inf  # of a request at an even pace
    last_sent: float = -math.inf  # when the last request was sent
    paced_at: float = -math.inf  # when a request last had to wait
    last_extra: float = -math.inf  # when the last request carried the step, in addition to the pace
    _looked_at: float = field(default=-math.inf, repr=False)
    _spread_s: float = field(default=0.0, repr=False)

    @property
    def quota(self) -> Quota:
        """A published limit as it is published."""
        return Quota(round(self.most * self.window), self.window)

    def longest_s(self) -> float:
        """Return how long this limit may keep all requests waiting.

        A wait must not cost more than one request too many, which costs a 429: a guess from few refusals is
        kept to no longer than the limiter itself refused everything.
        """
        if self.most < math.inf or self.seen >= FEW:
            return math.inf
        return max(SHORT_S, min(3 / self.low, self.stood_s))

    @property
    def given_up_at(self) -> float:
        """When a learned limit that makes requests wait for long is kept to no more, unless it is refused."""
        is_kept = self.most < math.inf or self.refutes is not None or not self.seen
        if is_kept or self.low >= 1 / SHORT_S:
            return math.inf
        return self.last_seen + (self.rest_s or LONGEST_REST_S)

    def tried_within_s(self, seconds: float) -> float:
        """Return how long to try a rate: so many seconds, unless the limiter gives way at once."""
        return min(seconds, QUICK_S) if self.is_smooth else seconds

    def is_carried_by(self, claim: Claim) -> bool:
        """Return whether a request may carry a step: reads, and others only where no reads come."""
        return self.tried is not None and (claim.is_read or self.is_for_all)

    def is_saturated(self, now: float) -> bool:
        """Return whether a request waited a moment ago: a step up must not let everything go at once."""
        return self.tried is not None and now - self.paced_at < 3 / self.low

    def is_flooded(self, tally: Tally | WeightedTally, now: float) -> bool:
        """Return whether what is sent is twice the pace and will not stop by itself.

        Bursts that meet are over within a few parts of the time looked at; a flood fills them all.
        """
        if self.window <= SHORT_S:
            return False
        part_s = max(0.4, 1.5 / self.low, self.window / 72)
        if tally.count(now - _PARTS * part_s) <= 2 * self.low * _PARTS * part_s:
            return False
        ends = (now - part * part_s for part in range(_PARTS))
        return all(tally.count(end - part_s, end) > self.low * part_s for end in ends)

    def is_ample(self, tally: Tally | WeightedTally, now: float) -> bool:
        """Return whether a published window is not half used."""
        is_whole = self.most < math.inf and self.low >= self.most / 1.001 and self.window > SHORT_S
        return is_whole and tally.count(now - self.window) < AMPLE * self.n

    def room_at(
        self, cost: float, tally: Tally | WeightedTally, margin_s: float, *, is_flooded: bool
    ) -> float:
        """Return when the window has room for that cost; in a flood not all of the window is free."""
        n, window = (self.n, self.window) if self.tried is None else self._at_most()
        room = max(math.ceil((FREE if is_flooded else 1.0) * n - self.withheld - 0.01) - cost, 0.0) + 1e-6
        return tally.room_since(room) + window + margin_s

    def turn_at(self, cost: float, tally: Tally | WeightedTally, now: float, *, is_carrier: bool) -> float:
        """Return when it is a request's turn at the even pace, or in addition to it if it carries a step."""
        spacing_s = self.spacing_s(tally, now) * cost
        at = self.last_turn + spacing_s
        if self.tried is None:  # what makes up for a timer that was late makes no burst of it
            return max(at, self.last_sent + spacing_s / 2)
        if is_carrier:
            at = min(at, self.last_extra + cost / (self.tried - self.low))
        # Two closer together would try a burst, and not the rate.
        return max(at, self.last_sent + cost / self.tried)

    def took(
        self, cost: float, tally: Tally | WeightedTally, now: float, *, is_paced: bool, is_carrier: bool
    ) -> None:
        """Count a request that goes in its turn, or in addition to it."""
        if is_paced:
            self.paced_at = now
        spacing_s = self.spacing_s(tally, now)
        # A step makes up for timers that were late as well, or less than the pace would be sent.
        late_s = 0.0
        if self.tried is not None:
            due = self.turn_at(cost, tally, now, is_carrier=is_carrier)
            late_s = min(max(now - due, 0.0), spacing_s / 4)
        if is_carrier and self.last_turn + spacing_s * cost > now + 1e-9:
            self.last_extra = now
        else:
            # What a timer is late by, up to a place, is not lost.
            self.last_turn = max(self.last_turn + spacing_s * cost, now - spacing_s)
        self.last_sent = now - late_s

    def spacing_s(self, tally: Tally | WeightedTally, now: float) -> float:
        """Return the seconds between two requests at an even pace.

        The remainder of a long window is spread over its remaining time: over parts of it from an eighth, or
        of some 15 requests.
        """
        if self.is_bucket or self.window <= SHORT_S:
            return 1 / self.low
        if now - self._looked_at > self.window / 200:
            self._looked_at = now
            n, window = self._at_most()
            parts = (
                window * part / 64 for part in (1, 2, 4, 8, 16, 32, 48, 64) if part >= min(8.0, 1000 / n)
            )
            self._spread_s = max(ahead / max(n - tally.count(now + ahead - window), 1.0) for ahead in parts)
        return max(1 / self.low, self._spread_s)

    def hold_s(self, step: float) -> float:
        """Return how long a rate must hold to be believed: a window, and two requests more than before."""
        if step <= 1:
            return 1.2 * self.window + 4 / self.low
        # At a step above its rate a bucket is not empty at once; a window is full after its length.
        full_s = 4.0 + min(self.window, 4.0) if self.is_bucket else 1.2 * self.window
        # What the window still has room for has to be filled first.
        slack = 2 + max(self.n - self.low * self.window, 0.0)
        return self.tried_within_s(full_s) + slack / (self.low * (step - 1))

    def step_up(self, now: float) -> None:
        """Begin to try the next rate."""
        self.tried = self.next_rate()
        self.last_extra = now
        self.next_at = now + self.hold_s(self.tried / self.low)

    def next_rate(self) -> float:
        """Return the rate that is to be tried next: the middle of the bounds, or a step above them."""
        if self.high < math.inf:
            step = min(math.sqrt(self.high / self.low), 2.0)
            # What is refused late in a long window stops all for as long; a bucket gives way at once.
            if self.window > 2 * SHORT_S and not self.is_bucket and not self.is_smooth:
                step = min(step, 1 + max(SHORT_S, 3 / self.low, self.window / 10) / self.window)
        else:
            # One request more in two seconds, or two in a longer window.
            more = 2 / self.n if self.window > SHORT_S else 1 / (self.low * SHORT_S)
            step = min(max(self.step, 1 + more), MOST_STEP)
        return min(self.low * step, self.most)

    def rise(self, low: float) -> float:
        """Take in that a rate held; return how much more the window holds. An uncertain one is shorter."""
        up = max(1.0, low * self.window / self.n)
        self.low, self.rest_s, self.is_round = low, 0.0, False
        if self.high < math.inf:
            self.window /= up
            self.step = STEP
            return 1.0
        self.n *= up
        self.step = min(1 + 2 * (self.step - 1), MOST_STEP)
        return up

    def replace(
        self, old: "Limit", event: ThrottleEvent, delivered: float, refused_in_a_row: int, now: float
    ) -> float:
        """Take the place of the limit that was refused; return for how long the excess must drain.

        `delivered` is the rate since the event before, and `refused_in_a_row` how often a pace was refused.
        """
        # 1. A step was refused: what held before it is kept, and no more than the step is possible.
        if event.tried is not None:
            if self.low > event.tried:  # what allows more than was refused explains nothing
                self.n, self.low = old.n, old.low
            self.low, self.is_held = max(self.low, old.low), old.is_held
            if old.is_round:  # a step beyond round numbers was refused: they are the limit
                self.n, self.high, self.is_bucket = old.n, self.low, False
                self.is_round = True
            self.window = self.n / self.low
            self.high = max(self.low, min(self.high, event.tried))
            self.rest_s = max(self.rest_s, AGAIN_S)
            return 0.0
        drain_s = 0.0
        # 2. A pace was refused, as claims waited: it is lowered.
        if event.refused_at - old.paced_at < 3 / old.low:
            # Where little was too much of what held before, it is nearly right; but not time after time.
            is_little = event.wait_s <= max(3 / old.low, 0.1 * old.window)
            is_same = self.is_round and (self.n, self.window) == (old.n, old.window)
            is_near = (is_same or (is_little and old.is_held)) and refused_in_a_row < FEW - 1
            least = (1 - FALL * 2.0**refused_in_a_row) * old.low
            if not is_near:  # the middle of the pace and of what was delivered
                least = min(least, math.sqrt(old.low * min(delivered, old.low)))
            least = max(least, 0.5 * old.low)
            if is_near:
                self.high, self.is_held = max(self.high, old.low), True
            if is_near or self.low >= old.low * (1 - FALL):
                self.low = max(self.low, least) if self.low < old.low * (1 - FALL) else least
                drain_s = min(2.0 ** (refused_in_a_row + 1) / self.low, self.window / 4)
        # 3. The bounds fit the rate. A rate that is much lower than before may be another user's doing.
        self.window = min(self.window, self.n / self.low)
        self.high = max(self.low, self.high)
        if self.low < 0.7 * old.low:
            self.high, self.fell_at = max(self.high, old.low), now
        return drain_s

    def fall(self, fullness: float, now: float) -> None:
        """Lower the pace of a published limit that was refused when so full: somebody else uses it."""
        self.low = max(self.low * min(1 - FALL, max(fullness, 0.5)), 1e-4)
        self.fell_at = now

    def _at_most(self) -> tuple[float, float]:
        """Return what holds now: a step tries a shorter window while it is uncertain, else more in it."""
        if self.tried is None:
            return self.n, self.window
        up = max(1.0, self.tried * self.window / self.n)
        return (self.n, self.window / up) if self.high < math.inf else (self.n * up, self.window)
