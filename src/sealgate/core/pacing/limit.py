"""One limit as it is believed: at most `n` in any `window` seconds, and the search for its true height.

The search is a bracket: `n` is what held, `failed` the lowest that did not. A probe raises the rate of
reads for a while; orders follow only up to a height at which reads were accepted. Held, what went becomes
`n` and the next step doubles, or halves the bracket where there is one; refused, the step becomes `failed`.
Once the bracket is narrow the limit rests, at growing distances, and then starts over, because limits
change.
"""

import math
from dataclasses import dataclass, field

from sealgate.core.pacing.episode import Episode
from sealgate.core.pacing.reading import Kind
from sealgate.core.pacing.sent_log import LimitScope

_FIRST_STEP = 0.02  # of a limit that is well known: the least that the search can tell from jitter
_LONGEST_STEP = 0.35  # more cannot be tried by the reads alone
_TRIED = 0.9  # of a step must have gone, or it was hardly tried
_NARROW = 0.015  # a bracket whose half is less than this is not worth a 429
_WHOLE = 1.01  # windows count whole requests: there is nothing between n and n + 1
_FEW = 10.0  # below it one more is not the least step
_STALL_S = 1.5  # a step too high fills a window that much too early, and the key then stands still
_WORST_STALL_S = 2.0  # the same for a step that grew because others held: the limit was far off
_CALM_S = 10.0  # after a flood was refused: exchanges ban who is refused often
_RETRY_S = 2.0  # after a refusal before the next probe: one per window would be heard as hammering
_FIRST_REST_S = 60.0  # young knowledge is tried again sooner
_LONGEST_REST_S = 600.0  # one probe in ten minutes costs nothing that anybody notices
_TOLD = 1.5  # requests more than before: a step that came to less was not seen by the limiter
_LONGEST_HOLD_S = 20.0  # enough for the bursts of common buckets; larger ones are found by the next step
_LEAST = 0.5  # of `n`: slower than half a request per window is another window's business
_DEAR = 5.0  # a refusal after so many accepted lowers the rate by its inverse: aims at few per thousand
_LEAST_CUT, _MOST_CUT = 0.01, 0.15  # of what held before: a short cycle does not overthrow it
_MOST_LOWERED = 0.05  # at once: a 429 right after the last may still be of the same cause
_LEAST_LOWERED = 0.003
_KEPT_EPISODES = 8
_LATE = 0.1  # of a slot that a timer may be late without losing it


@dataclass(slots=True)
class Limit:
    """`n` per `window` seconds; `most` where the limit is published: it is not probed beyond."""

    n: float
    window: float
    most: float = math.inf
    scope: LimitScope = LimitScope.ALL
    kind: Kind = Kind.UNKNOWN
    seen: int = 0
    last_seen: float = -math.inf
    fell_at: float = -math.inf
    failed: float = math.inf
    failed_rate: float = math.inf  # per second, of what was refused while young, at an even pace
    step: float = 0.0
    next_step: float = _FIRST_STEP
    lifted: float = 0.0  # up to here reads were accepted during this step
    probe_at: float = math.inf
    rest_s: float = _FIRST_REST_S
    is_proven: bool = False  # it was searched for and held
    is_soft: bool = False  # what comes too early is refused for a moment only, as by a sliding window
    cuts: int = 0  # times that it was lowered since it held
    since: float = -math.inf  # what was before does not speak of this limit
    episodes: list[Episode] = field(default_factory=list)
    paced_since: float | None = None  # None: nobody waits for it
    cycle_start: float = -math.inf  # when it, or one beside it, gave way last
    last_slot: float = -math.inf  # the pace counts from here

    @property
    def rate(self) -> float:
        """Requests per second that held."""
        return self.n / self.window

    def allowed(self, *, is_read: bool) -> float:
        """Return how many may go per window: reads probe, and others follow."""
        highest = self.n * (1 + self.step)
        # Where reads count apart, nothing but the others can try their limit.
        return (
            highest if is_read or self.scope is LimitScope.OTHERS else max(self.n, min(self.lifted, highest))
        )

    def heard(self, episode: Episode) -> None:
        """Remember an episode."""
        self.episodes = [*self.episodes[1 - _KEPT_EPISODES :], episode]

    def met(self, now: float) -> None:
        """Count an episode that this limit made."""
        self.seen, self.last_seen = self.seen + 1, now

    def become(self, kind: Kind, n: float, window: float) -> None:
        """Be another limit; the search stays where it is."""
        self.kind, self.n, self.window = kind, n, window

    def goes_at_once(self, now: float) -> None:
        """Hear that a request goes that did not wait."""
        self.paced_since, self.last_slot = None, now

    def goes_paced(self, now: float, spacing_s: float, cost: float, *, is_slow: bool) -> float:
        """Hear that one goes that waited, `spacing_s` for each cost; return since when it is paced.

        `is_slow`: slower than the limit allows, which does not count as paced.
        """
        self.last_slot = max(self.last_slot + spacing_s * cost, now - _LATE * spacing_s)
        if is_slow or self.paced_since is None:
            self.paced_since = now
        return self.paced_since

    def lift(self, accepted: float) -> None:
        """Let others follow up to what reads had accepted in a window of this step."""
        self.lifted = max(self.lifted, accepted)

    def refused_paced(self, *, is_little: bool, is_sharp: bool) -> None:
        """Learn from a refusal at an even pace: `is_little` early, `is_sharp` if its end is known."""
        self.is_soft = is_little
        if self.kind is Kind.SLIDING and is_sharp and not is_little:
            self.kind = Kind.FIXED

    def failed_evenly(self) -> None:
        """Remember that this rate was refused though it went at an even pace."""
        self.failed_rate = min(self.failed_rate, self.rate)

    def forget(self, since: float) -> None:
        """Take nothing before `since` as evidence any more."""
        self.since, self.failed_rate = since, math.inf
        self.episodes = [one for one in self.episodes if one.began >= since]

    def search(self, now: float, blur_s: float, failed: float = math.inf) -> None:
        """Start to look for the true height; `blur_s` is how little is known of the end of the window."""
        blur = min(max(self._first_step(), blur_s / self.window), _LONGEST_STEP)
        self.failed, self.step, self.is_proven = failed, 0.0, False
        self.next_step = min(blur, max(self._first_step(), _STALL_S / self.window))
        self.probe_at = now + max(self.hold_s(), _CALM_S)

    def hurry(self) -> None:
        """Take long steps: maybe this limit is none."""
        self.next_step = _LONGEST_STEP

    def probe(self, now: float, held: float) -> None:
        """Go on with the search, where it is time; `held` is what went per window of late."""
        if now < self.probe_at or self.n >= self.most:
            return
        if self.step:
            if held < self.n * (1 + _TRIED * self.step):  # orders keep what reads have shown so far
                self.probe_at = now + self.hold_s()
                return
            self._held_at(min(held, self.n * (1 + self.step), self.most), now)
            self.next_step = min(2 * self.step, self._most_step())
        self.is_proven, self.cuts = True, 0
        self._next_step(now)

    def _held_at(self, n: float, now: float) -> None:
        if self.kind is Kind.BUCKET:  # its rate was tried, not its burst
            self.window *= self.n / n
            self.failed *= self.n / n
            return
        self.n = n
        if self.kind is not Kind.UNKNOWN:
            self.forget(now)

    def _first_step(self) -> float:
        return max(_FIRST_STEP, 1 / self.n) if self._is_whole() else _FIRST_STEP

    def _most_step(self) -> float:
        return (
            _LONGEST_STEP
            if self.is_soft
            else min(max(_FIRST_STEP, _WORST_STALL_S / self.window), _LONGEST_STEP)
        )

    def _is_whole(self) -> bool:
        return self.kind in (Kind.FIXED, Kind.SLIDING) and self.n >= _FEW

    def _is_narrow(self) -> bool:
        is_next = self._is_whole() and self.failed - self.n <= _WHOLE
        return is_next or (self.failed / self.n - 1) / 2 < _NARROW

    def _next_step(self, now: float) -> None:
        if self._is_narrow():
            rest_s = self.rest_s
            was_tried = self.step > 0
            self.rest(now)
            if not was_tried:  # a refusal of the pace, while it rested
                self.rest_s = rest_s
            return
        is_bracketed = self.failed < math.inf
        self.step = min((self.failed / self.n - 1) / 2 if is_bracketed else self.next_step, self._most_step())
        self._hold(now)

    def _hold(self, now: float) -> None:
        self.lifted = 0.0
        self.probe_at = now + self.hold_s()

    def rest(self, now: float) -> None:
        """Leave the search for a while: the height is known."""
        self.failed, self.step, self.next_step = math.inf, 0.0, self._first_step()
        self.probe_at = now + max(self.rest_s, 3 * self.window)
        self.rest_s = min(2 * self.rest_s, _LONGEST_REST_S)

    def hold_s(self) -> float:
        """Return how long a step must hold: a window, and until it came to more than a request.

        Beside a known failure it must outlast a bucket's burst, too.
        """
        is_bucket = self.kind is Kind.BUCKET  # whose window is but the time that its burst takes to come back
        hold_s = 1.0 + 1.5 * min(self.window, 1.0 if is_bucket else math.inf)
        if not self.step:
            return hold_s
        hold_s += _TOLD * self.window / (self.n * self.step)
        if self.failed == math.inf or self.kind in (Kind.FIXED, Kind.SLIDING):
            return hold_s
        return hold_s + min(self.window / self.step, _LONGEST_HOLD_S)

    def probe_failed(self, now: float) -> None:
        """Go back to what held, after a 429 while a probe was under way."""
        self.failed = self.n * (1 + self.step)
        self.step = 0.0
        if self._is_narrow():
            self.rest(now)
        else:
            self.probe_at = now + max(_RETRY_S, 2 * self.window)

    def slow(self, early_s: float, delivered: float) -> None:
        """Go so much slower that what came `early_s` too early will not, but not below the rate delivered."""
        self.failed = min(self.failed, self.n)
        by = min(self.window / (self.window + early_s), 1 - _LEAST_LOWERED)
        self.n = max(_LEAST, self.n * by, min(delivered * self.window, self.n * (1 - _LEAST_LOWERED)))

    def lower(self, now: float, rate: float, accepted: float) -> None:
        """Go a little lower, or down to about `rate`, after a 429 at `n`; `accepted` went since the last."""
        self.failed = min(self.failed, self.n)
        if self.is_proven and self.kind in (Kind.FIXED, Kind.SLIDING):
            least = self.n * (1 - min(_LEAST_CUT * 2**self.cuts, _MOST_CUT))
            self.cuts += 1
        else:  # within one window a second 429 is of the same cause
            by = min(_MOST_LOWERED, _DEAR / max(accepted, self.n))
            least = self.n * (1 - _MOST_CUT) if self.is_proven else _LEAST
            least = min(self.n * (1 - by), max(least, rate * self.window))
        self.n = max(_LEAST, least)
        self.probe_at = now + max(_RETRY_S, 2 * self.window)

    def fall(self, now: float, n: float) -> None:
        """Go down to `n`, after a 429 far below what held: others spend this limit, or it was lowered."""
        self.n = n
        self.fell_at = now
        self.forget(now)
        self.search(now, 0.0)
