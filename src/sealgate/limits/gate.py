"""The gate: after a 429 no request is sent until the pause is over.

What `Retry-After` states is never shortened, and jitter only ever adds to it. Without it the pause is
exponential backoff whose upper half is random (spec.md, Rate limiting). After a pause one request goes first,
the scout, and the others follow once it was accepted. If the scout is refused, the pause was too short, and
the next one lasts twice as long.
"""

import math
from dataclasses import dataclass, replace

FIRST_S = 0.5  # shorter than the shortest window that is common, so that little is lost
LONGEST_BACKOFF_S = 60.0  # the longest window that is common
_LEAST_DOUBLED_S = 0.05  # a scout may come a little too early, and twice nothing would be nothing
_SPREAD_S = 0.005  # added at random to what is stated, so that several gateways do not return as one


@dataclass(frozen=True, slots=True)
class Gate:
    """Nothing is sent before `until`; the last pause takes `length_s`. Immutable: changes return a new one.

    `is_stated`: the exchange itself stated that end. `in_a_row` pauses followed one another with nothing
    accepted between them; 0 if the pause was met elsewhere, and who chose its end is not known.
    """

    until: float = -math.inf
    length_s: float = 0.0
    is_stated: bool = False
    in_a_row: int = 0

    def left_s(self, now: float) -> float:
        """Return the seconds until requests may go again, 0 when they may."""
        return max(0.0, self.until - now)

    def throttled(self, now: float, stated_s: float | None, chance: float, *, is_scout: bool) -> "Gate":
        """Return the gate after a 429 at `now` that stated a usable wait or none; `chance` is in [0, 1)."""
        # 1. It belongs to the burst that began this pause, and states nothing new.
        if stated_s is None and now < self.until and not is_scout:
            return self
        # 2. A refused scout continues the row, and its pause is twice as long as the last one at least.
        before = self.in_a_row if is_scout or now < self.until else 0
        in_a_row = before + 1 if is_scout else max(before, 1)
        least_s = min(max(_LEAST_DOUBLED_S, 2 * self.length_s), LONGEST_BACKOFF_S) if is_scout else 0.0
        # 3. Jitter takes up to half of a backoff, and adds to a stated wait.
        if stated_s is None:
            length_s = max(FIRST_S, least_s)
            wait_s = length_s * (1 + chance) / 2
        else:
            length_s = max(stated_s, least_s)
            wait_s = length_s + chance * _SPREAD_S
        # 4. A pause is never shortened.
        if now + wait_s < self.until:
            return replace(self, length_s=length_s, in_a_row=in_a_row)
        return Gate(now + wait_s, length_s, length_s == stated_s, in_a_row)

    def held(self, until: float) -> "Gate":
        """Return the gate that stays closed at least until then: the pause was met elsewhere."""
        return self if until <= self.until else Gate(until, self.length_s)


def usable(stated_s: float | None) -> float | None:
    """Return the stated seconds, None if no pause can last so long (negative, NaN, infinite)."""
    if stated_s is None or not math.isfinite(stated_s) or stated_s < 0:
        return None
    return stated_s
