"""How long an idle connection may still carry an order: what the exchange announces, and what closes show.

An exchange may close a connection as the next order is on its way there, and then nobody knows whether it was
executed. Such an order is `unknown`; a read is merely sent again.
"""

import math
import re

_TIMEOUT = re.compile(rb"(?:^|[,;\s])timeout\s*=\s*\"?(\d{1,9})(?!\d)", re.IGNORECASE)
_MEMORY_S = 600.0  # how long a close is remembered: longer than a restart of the exchange, which closes all
_ENOUGH = 100  # that lived longer in a row: then fewer than one in a hundred is lost
_HALF = 0.5  # of the time that was seen to fail: the exchange's timer and the way there take some of the rest


def announced_timeout_s(keep_alive: bytes) -> float | None:
    """Return the seconds that a `Keep-Alive` field states, the shortest of several, None without any."""
    return min(map(float, _TIMEOUT.findall(keep_alive)), default=None)


def announced_life_s(timeout_s: float, round_trip_s: float) -> float:
    """Return how long a connection may be idle at our end where the exchange announces a timeout.

    Its time begins when it writes the reply, and the next request must be there before it ends: that takes
    one round trip, and now and then two. A tenth is for timers that are early and loops that are late.
    """
    return 0.9 * timeout_s - 2 * round_trip_s


class _Shortest:
    """The shortest idle time that ended with a close, of the last five to ten minutes."""

    def __init__(self) -> None:
        self._latest = self._earlier = self._shortest = math.inf
        self._since = -math.inf
        self._survivors = 0

    def closed(self, idle_s: float, now: float) -> None:
        self._forget_old(now)
        self._latest = min(self._latest, idle_s)
        self._shortest = min(self._shortest, idle_s)
        self._survivors = 0

    def survived(self, idle_s: float, now: float) -> None:
        if idle_s >= self.seconds(now):
            self._survivors += 1
            if self._survivors >= _ENOUGH:
                self._latest = self._earlier = self._shortest = math.inf

    def seconds(self, now: float) -> float:
        if now - self._since >= _MEMORY_S / 2:
            self._forget_old(now)
        return self._shortest

    def _forget_old(self, now: float) -> None:
        if now - self._since >= _MEMORY_S / 2:
            is_recent = now - self._since < _MEMORY_S
            self._shortest = self._earlier = self._latest if is_recent else math.inf
            self._latest, self._since = math.inf, now


class IdleCloses:
    """What the closing of idle connections shows: no order goes on one that may be closed by now.

    Those that never carried a request are looked at apart, as servers keep them for another time. Times are
    seconds; `idle_s` is how long a connection has been idle.
    """

    def __init__(self) -> None:
        self._used, self._unused = _Shortest(), _Shortest()
        self.announced_s: float | None = None  # by the latest reply that did

    def closed(self, idle_s: float, now: float, *, is_used: bool) -> None:
        """Take in that the exchange closed one, or lost a request that was sent on it."""
        self._of(is_used=is_used).closed(idle_s, now)

    def survived(self, idle_s: float, now: float, *, is_used: bool) -> None:
        """Take in that a request on one was answered."""
        self._of(is_used=is_used).survived(idle_s, now)

    def safe_s(self, now: float, *, is_used: bool) -> float:
        """Return how long one may have been idle and still carry an order."""
        return _HALF * (self._used if is_used else self._unused).seconds(now)

    def _of(self, *, is_used: bool) -> _Shortest:
        return self._used if is_used else self._unused
