"""The timestamps of one key, so that no two requests carry one signature.

Equal requests of one millisecond would be signed alike, and an exchange that looks for replays would refuse
the second. It takes a free millisecond before: exchanges tolerate old, not future.
"""

FURTHEST_MS = 500  # before now; a flood of equal requests repeats itself rather than grow older than that
_KEPT = 1024  # contents


class Stamps:
    """Which milliseconds were taken for which content: the latest, and the earliest of a run."""

    def __init__(self) -> None:
        self._taken: dict[int, tuple[int, int]] = {}

    def take(self, now_ms: int, content: int) -> int:
        """Return a timestamp, at most `now_ms`; `content` is a hash of all that is signed besides."""
        latest, earliest = self._taken.pop(content, (-1, 0))
        if latest < now_ms <= latest + FURTHEST_MS:
            latest = timestamp_ms = now_ms
        elif now_ms - FURTHEST_MS < earliest <= now_ms <= latest:
            earliest = timestamp_ms = earliest - 1
        else:  # the first for long, too many at once, or the clock was set back
            latest = earliest = timestamp_ms = now_ms
        self._taken[content] = latest, earliest
        if len(self._taken) > _KEPT:
            del self._taken[next(iter(self._taken))]
        return timestamp_ms
