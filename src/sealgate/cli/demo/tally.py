"""What a bot counts: its requests, and how long it waited for them."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median

_RECENT = 1000


class Tally:
    """One bot's experience. `accepted` and `limited` (429) count replies, `requests` what it asked for.

    A wait lasts from the moment the bot wants something until the exchange has answered it, seconds by `now`.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.requests = 0
        self.accepted = 0
        self.limited = 0
        self.unknown_orders = 0
        self.longest_cancel_s = 0.0
        self._now = now
        self._longest_s = 0.0
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._open: list[float] = []

    @contextmanager
    def waiting(self, method: str) -> Iterator[None]:
        """Count a request, and the time that the block takes as its wait."""
        asked = self._now()
        self.requests += 1
        self._open.append(asked)
        try:
            yield
        finally:
            self._open.remove(asked)
            self._note(method, self._now() - asked)

    def _note(self, method: str, seconds: float) -> None:
        self._recent.append(seconds)
        self._longest_s = max(self._longest_s, seconds)
        if method == "DELETE":
            self.longest_cancel_s = max(self.longest_cancel_s, seconds)

    @property
    def usual_wait_s(self) -> float:
        """The median of the latest waits."""
        return median(self._recent) if self._recent else 0.0

    @property
    def longest_wait_s(self) -> float:
        """The longest wait, one that still lasts included."""
        now = self._now()
        return max(self._longest_s, *(now - asked for asked in self._open), 0.0)
