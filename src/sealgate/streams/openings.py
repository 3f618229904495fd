"""How many streams an exchange lets one address open in a time."""

from collections import deque


class Openings:
    """Counts the openings of streams at one exchange: `most` within `window_s`; 0 is any number."""

    def __init__(self, most: float = 0.0, window_s: float = 0.0) -> None:
        self.most = most
        self.window_s = window_s
        self._opened: deque[float] = deque()
        self._closed_until = 0.0

    def wait_s(self, now: float) -> float:
        """Return the seconds until one more may be opened."""
        while self._opened and self._opened[0] <= now - self.window_s:
            self._opened.popleft()
        wait_s = max(0.0, self._closed_until - now)
        if self.most and len(self._opened) >= self.most:
            oldest = self._opened[len(self._opened) - int(self.most)]
            wait_s = max(wait_s, oldest + self.window_s - now)
        return wait_s

    def opened(self, now: float) -> None:
        """Count an opening, also one that the exchange then refuses."""
        if self.most:
            self._opened.append(now)

    def refused(self, until: float) -> None:
        """Open none until then: the exchange refused one for its limit."""
        self._closed_until = max(self._closed_until, until)
