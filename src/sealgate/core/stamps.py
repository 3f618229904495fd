"""The timestamps of one key, so that no two requests carry one signature.

Equal requests of one millisecond would be signed alike, and an exchange that looks for replays would refuse
the second. It takes the next free millisecond before: exchanges tolerate old, not future.
"""

_KEPT = 1024  # more equal requests within the life of a timestamp than any limit lets through


class Stamps:
    """Which millisecond was taken for which content."""

    def __init__(self) -> None:
        self._taken: dict[tuple[int, int], None] = {}

    def take(self, now_ms: int, content: int) -> int:
        """Return a free timestamp for a content (a hash of all that is signed besides), at most `now_ms`."""
        timestamp_ms = now_ms
        while (timestamp_ms, content) in self._taken:
            timestamp_ms -= 1
        self._taken[timestamp_ms, content] = None
        if len(self._taken) > _KEPT:
            del self._taken[next(iter(self._taken))]
        return timestamp_ms
