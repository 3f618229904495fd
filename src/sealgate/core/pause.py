"""The pause of a key after a 429: all its bots wait, none pokes.

`Retry-After` decides where it is given. Without it, the wait is exponential backoff (spec.md, Rate
limiting) whose upper half is random. Jitter only ever adds to a stated wait. A pause never gets shorter.
"""

from dataclasses import dataclass

FIRST_S = 0.5
LONGEST_S = 60.0
_SPREAD_S = 0.05  # added at random, so that several gateways do not come back in the same millisecond
_MOST_DOUBLINGS = 7  # FIRST_S doubled that often is beyond LONGEST_S
_CALM_S = 10.0  # a 429 this long after the last pause begins a new series


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing is sent before `until`; `streak` counts the 429s in a row that stated no wait."""

    until: float = float("-inf")
    streak: int = 0

    def left(self, now: float) -> float:
        """Return the seconds until requests may go again, 0 when they may."""
        return max(0.0, self.until - now)

    def after_429(self, now: float, retry_after_s: float | None, chance: float) -> "Pause":
        """Return the pause that a 429 at `now` leads to; `chance` is random in [0, 1)."""
        if retry_after_s is not None:
            return Pause(max(self.until, now + retry_after_s + chance * _SPREAD_S), 0)
        streak = self._next_streak(now)
        ceiling = min(LONGEST_S, FIRST_S * 2 ** min(streak, _MOST_DOUBLINGS))
        return Pause(max(self.until, now + ceiling / 2 + chance * ceiling / 2), streak)

    def _next_streak(self, now: float) -> int:
        if now < self.until:  # sent before the pause began: the same burst, not one more
            return max(1, self.streak)
        return self.streak + 1 if now - self.until < _CALM_S else 1
