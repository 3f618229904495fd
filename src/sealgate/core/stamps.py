"""The timestamps of one key, so that no two requests carry one signature.

Equal requests of one millisecond would be signed alike, and an exchange that looks for replays would refuse
the second. It takes a free millisecond before: exchanges tolerate old, not future.
"""

FURTHEST_MS = 500  # before now; a flood of equal requests repeats itself rather than grow older than that
_KEPT = 1024  # contents


_NEVER = (0, 0, 0)


class Stamps:
    """Which milliseconds were taken for which content.

    Of each it knows the latest, and a stretch of free ones before: those between `floor` and `low`, which are
    taken themselves. The stretch is what is left below the first of a run, until that is too old, and then
    the largest gap since.
    """

    def __init__(self) -> None:
        self._taken: dict[int, tuple[int, int, int]] = {}

    def take(self, now_ms: int, content: int, furthest_ms: int = FURTHEST_MS) -> int:
        """Return a timestamp, at most `now_ms`, and at most `furthest_ms` before it if not yet taken there.

        `content` is a hash of all that is signed besides.
        """
        latest, floor, low = self._taken.pop(content, _NEVER)
        too_old_ms = now_ms - furthest_ms - 1
        if now_ms > latest:
            if low - max(floor, too_old_ms) < now_ms - latest:
                floor, low = latest, now_ms
            latest = timestamp_ms = now_ms
        elif max(floor, too_old_ms) < low - 1 <= now_ms:
            low = timestamp_ms = low - 1
        else:  # too many at once, or the clock was set back
            latest, floor, low = now_ms, 0, now_ms
            timestamp_ms = now_ms
        self._taken[content] = latest, floor, low
        if len(self._taken) > _KEPT:
            del self._taken[next(iter(self._taken))]
        return timestamp_ms
