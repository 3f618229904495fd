"""One limit as it is believed: at most `n` in any `window` seconds, and the search for its true height.

The search is a bracket: `n` is what held, `failed` the lowest that did not. A probe raises the rate of
reads for a while (orders stay at what held). Held, it becomes `n` and the next step doubles, or halves the
bracket where there is one; refused, it becomes `failed`. Once the bracket is narrow the limit rests, at
growing distances, and then starts over, because limits change.
"""

import math
from dataclasses import dataclass

_FIRST_STEP = 0.02  # of a limit that is well known: the least that the search can tell from jitter
_LONGEST_STEP = 1.0  # doubling is fast enough: what it overshoots, every bot waits for
_ENOUGH_READS = 0.2  # of what went while a step was held, or it was hardly tried
_NARROW = 0.015  # a bracket whose half is less than this is not worth a 429
_STALL_S = 1.5  # a step too high fills a window that much too early, and the key then stands still
_WORST_STALL_S = 2.0  # the same for a step that grew because others held: the limit was far off
_RETRY_S = 10.0  # after a refusal before the next probe: one per window would be heard as hammering
_FIRST_REST_S = 60.0  # young knowledge is tried again sooner
_LONGEST_REST_S = 600.0  # one probe in ten minutes costs nothing that anybody notices
_LONGEST_HOLD_S = 20.0  # enough for the bursts of common buckets; larger ones are found by the next step
_LEAST = 0.5  # of `n`: slower than half a request per window is another window's business
_DEAR = 5.0  # a refusal after so many accepted lowers the rate by its inverse: aims at few per thousand
_LEAST_OF_PROVEN = 0.85  # a short cycle delivers what it likes, and does not overthrow what held for long
_MOST_LOWERED = 0.05  # at once: a 429 right after the last may still be of the same cause


@dataclass(slots=True)
class Limit:
    """`n` per `window` seconds; `most` where the limit is published: it is not probed beyond."""

    n: float
    window: float
    most: float = math.inf
    seen: int = 0
    last_seen: float = -math.inf
    fell_at: float = -math.inf
    failed: float = math.inf
    step: float = 0.0
    next_step: float = _FIRST_STEP
    went: float = 0.0
    went_reads: float = 0.0
    probe_at: float = math.inf
    rest_s: float = _FIRST_REST_S
    is_proven: bool = False  # it was searched for and held

    @property
    def rate(self) -> float:
        """Requests per second that held."""
        return self.n / self.window

    def allowed(self, *, is_read: bool) -> float:
        """Return how many may go per window: reads probe."""
        return self.n * (1 + self.step) if is_read else self.n

    def search(self, now: float, blur_s: float) -> None:
        """Start to look for the true height; `blur_s` is how little is known of the end of the window."""
        blur = min(max(_FIRST_STEP, blur_s / self.window), _LONGEST_STEP)
        self.failed, self.step, self.is_proven = math.inf, 0.0, False
        self.next_step = min(blur, max(_FIRST_STEP, _STALL_S / self.window))
        self.probe_at = now + self._hold_s()

    def took(self, cost: float, *, is_read: bool) -> None:
        """Hear that something goes: how much of a step was tried depends on how many reads there were."""
        self.went += cost
        if is_read:
            self.went_reads += cost

    def probe(self, now: float) -> None:
        """Go on with the search, where it is time."""
        if now < self.probe_at or self.n >= self.most:
            return
        if self.step:
            if self.went_reads < _ENOUGH_READS * self.went:
                self._hold(now)
                return
            self.n, self.is_proven = min(self._tried(), self.most), True
            self.next_step = min(2 * self.step, _LONGEST_STEP, max(_FIRST_STEP, _WORST_STALL_S / self.window))
        self._next_step(now)

    def _tried(self) -> float:
        """Return the height that was tried: the average over reads, which probe, and the others."""
        return self.n * (1 + self.step * self.went_reads / max(self.went, 1.0))

    def _next_step(self, now: float) -> None:
        is_bracketed = self.failed < math.inf
        self.step = (self.failed / self.n - 1) / 2 if is_bracketed else self.next_step
        if is_bracketed and self.step < _NARROW:
            self._rest(now)
        else:
            self._hold(now)

    def _hold(self, now: float) -> None:
        self.went = self.went_reads = 0.0
        self.probe_at = now + self._hold_s()

    def _rest(self, now: float) -> None:
        self.failed, self.step, self.next_step = math.inf, 0.0, _FIRST_STEP
        self.probe_at = now + max(self.rest_s, 3 * self.window)
        self.rest_s = min(2 * self.rest_s, _LONGEST_REST_S)

    def _hold_s(self) -> float:
        """Return how long a step must hold: a window and, beside a known failure, a bucket's burst too."""
        hold_s = 1.5 * self.window + 1.0
        if not self.step or self.failed == math.inf:
            return hold_s
        return hold_s + min(self.window / self.step, _LONGEST_HOLD_S)

    def probe_failed(self, now: float) -> None:
        """Go back to what held, after a 429 while a probe was under way."""
        self.failed = self.n * (1 + self.step)
        self.step = 0.0
        self.probe_at = now + max(_RETRY_S, 2 * self.window)

    def lower(self, now: float, rate: float, accepted: float) -> None:
        """Go a little lower, or down to about `rate`, after a 429 at `n`; `accepted` went since the last."""
        self.failed = min(self.failed, self.n)
        # Within one window a second 429 is of the same cause.
        by = min(_MOST_LOWERED, _DEAR / max(accepted, self.n))
        least = _LEAST_OF_PROVEN * self.n if self.is_proven else _LEAST
        self.n = max(_LEAST, min(self.n * (1 - by), max(least, rate * self.window)))
        self.probe_at = now + max(_RETRY_S, 2 * self.window)

    def fall(self, now: float, n: float) -> None:
        """Go down to `n`, after a 429 far below what held: others spend this limit, or it was lowered."""
        self.n = n
        self.fell_at = now
        self.search(now, 0.0)
