"""How long an idle connection may still carry an order, by what the exchange announces and what closes show.

An exchange may close an idle connection while the next request is on its way there. Nobody then knows whether
that was executed: an order ends as `unknown`, a read is merely sent again.
"""

import math

_MEMORY_S = (
    600.0  # a close is remembered for so long: longer than a restart of the exchange, which closes all
)
_ENOUGH = 100  # connections in a row that lived longer: then fewer than one order in a hundred is lost
_HALF = 0.5  # of the shortest time that failed: the exchange's timer and the network vary by some of the rest


def announced_life_s(timeout_s: float, round_trip_s: float) -> float:
    """Return how long a connection may be idle at our end if the exchange announces a timeout.

    The timeout begins when the exchange writes the reply, and the next request must arrive before it ends:
    that takes one round trip, and now and then two. A tenth is for early timers and late loops.
    """
    return 0.9 * timeout_s - 2 * round_trip_s


class _Shortest:
    """The shortest idle time in the last five to ten minutes that ended with a close."""

    def __init__(self) -> None:
        self._latest = self._shortest = math.inf
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
                self._latest = self._shortest = math.inf

    def seconds(self, now: float) -> float:
        if now - self._since >= _MEMORY_S / 2:
            self._forget_old(now)
        return self._shortest

    def _forget_old(self, now: float) -> None:
        if now - self._since >= _MEMORY_S / 2:
            is_recent = now - self._since < _MEMORY_S
            self._shortest = self._latest if is_recent else math.inf
            self._latest, self._since = math.inf, now


class IdleCloses:
    """What closes of idle connections show: no order is sent on a connection that may be closed by now.

    Connections that never carried a request count apart, as servers keep them for another time. Times are
    seconds; `idle_s` is how long a connection has been idle.
    """

    def __init__(self) -> None:
        self._used, self._unused = _Shortest(), _Shortest()
        self.announced_s: float | None = None  # by the latest reply that announced a timeout
        self.has_any = False  # the exchange has closed a connection, or announced a timeout

    def closed(self, idle_s: float, now: float, *, is_used: bool) -> None:
        """Take in that the exchange closed a connection, or lost a request on it."""
        self.has_any = True
        self._of(is_used=is_used).closed(idle_s, now)

    def announced(self, timeout_s: float) -> None:
        """Take in the timeout of idle connections that the exchange announces."""
        self.has_any = True
        self.announced_s = timeout_s

    def survived(self, idle_s: float, now: float, *, is_used: bool) -> None:
        """Take in that a request was answered on a connection that had been idle."""
        self._of(is_used=is_used).survived(idle_s, now)

    def safe_s(self, now: float, *, is_used: bool) -> float:
        """Return how long a connection may have been idle and still carry an order."""
        shortest = self._used if is_used else self._unused
        return _HALF * shortest.seconds(now)

    def _of(self, *, is_used: bool) -> _Shortest:
        return self._used if is_used else self._unused


class IdleLife:
    """How long one connection may be idle: by our setting, by what is announced, and by what closes show.

    `is_used`: a request was answered on it. `has_rested`: it has been idle in the pool. `round_trip_s` is the
    shortest time that anything took there and back.
    """

    def __init__(self, closes: IdleCloses, round_trip_s: float, now: float) -> None:
        self.is_used = self.has_rested = False
        self.round_trip_s = round_trip_s
        self._closes = closes
        self._since = now
        self._keep_alive_s = math.inf
        self._announced_s: float | None = None

    def rest(self, keep_alive_s: float, now: float) -> float:
        """Note that the connection is in the pool; return for how long, until it is closed at our end."""
        self.has_rested, self._keep_alive_s = True, keep_alive_s
        return self._life_s() - (now - self._since)

    def ended_request(self, now: float) -> None:
        """Note since when the connection is idle."""
        self._since = now

    def idle_s(self, now: float) -> float:
        """Return how long the connection has been idle."""
        return now - self._since

    def lasts_s(self, now: float, share: float = 1.0) -> float:
        """Return for how long it will carry orders, if it lived for that share of its life."""
        life_s = self._keep_alive_s
        if self._closes.has_any:
            life_s = min(self._life_s(), self._closes.safe_s(now, is_used=self.is_used))
        return share * life_s - (now - self._since)

    def carries_order(self, now: float) -> bool:
        """Return whether it is young enough for an order; one opened for this request always is."""
        return not self.has_rested or self.lasts_s(now) > 0

    def closed(self, idle_s: float, now: float) -> None:
        """Note that the exchange closed it; a connection closed right after it was opened shows nothing."""
        if self.has_rested or self.is_used:
            self._closes.closed(idle_s, now, is_used=self.is_used)

    def answered(self, idle_s: float | None, announced_s: float | None, now: float) -> None:
        """Note a reply; `idle_s` is how long the connection was in the pool before, None if it was not."""
        if idle_s is not None and self._closes.has_any:
            self._closes.survived(idle_s, now, is_used=self.is_used)
        self.is_used = True
        if announced_s is not None:
            self._announced_s = announced_s
            self._closes.announced(announced_s)

    def _life_s(self) -> float:
        announced_s = self._announced_s if self.is_used else self._closes.announced_s
        if announced_s is None:
            return self._keep_alive_s
        return min(self._keep_alive_s, announced_life_s(announced_s, self.round_trip_s))
