"""The kinds of rate limit an exchange may have. Pure: the time comes in, the seconds to wait go out.

Each limiter answers `wait_s` (0: may go now) and is told `spend` for what counts. Theory: fixed windows
count per period; a sliding log counts the last period exactly; token bucket and GCRA (ITU-T I.371) refill
steadily; concurrency counts what is in flight.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

from sealgate.sandbox.models.control import Limit


class Limiter(Protocol):
    """One caller's share of a limit."""

    def wait_s(self, now_s: float, cost: int) -> float:
        """Seconds until a request of this cost may go; 0 if it may go now."""

    def spend(self, now_s: float, cost: int) -> None:
        """Count a request."""

    def leave(self) -> None:
        """Take in that a counted request has been answered."""


class Unlimited:
    """Lets everything through; also what the other kinds share: nothing happens at the end of a request."""

    def wait_s(self, now_s: float, cost: int) -> float:  # noqa: ARG002 - the interface of every limiter
        """Never wait."""
        return 0.0

    def spend(self, now_s: float, cost: int) -> None:
        """Count nothing."""

    def leave(self) -> None:
        """Count nothing."""


class FixedWindow(Unlimited):
    """`requests` per window; windows follow one another from the start of time."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._start_s = float("-inf")
        self._used = 0

    def _next_start_s(self, now_s: float) -> float:
        return now_s // self._limit.window_s * self._limit.window_s

    def _roll(self, now_s: float) -> None:
        if now_s >= self._start_s + self._limit.window_s:
            self._start_s = self._next_start_s(now_s)
            self._used = 0

    def wait_s(self, now_s: float, cost: int) -> float:
        """Wait for the end of the window, once it is full."""
        self._roll(now_s)
        if self._used + min(cost, self._limit.requests) <= self._limit.requests:
            return 0.0
        return max(self._start_s + self._limit.window_s - now_s, 0.001)

    def spend(self, now_s: float, cost: int) -> None:
        """Count it in its window."""
        self._roll(now_s)
        self._used += cost


class FixedFromFirst(FixedWindow):
    """`requests` per window; a window starts with the first request after the last one ended."""

    def _next_start_s(self, now_s: float) -> float:
        return now_s


class SlidingLog(Unlimited):
    """At most `requests` in any stretch of one window."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._log: deque[tuple[float, int]] = deque()
        self._used = 0

    def _forget(self, now_s: float) -> None:
        while self._log and self._log[0][0] + self._limit.window_s <= now_s:
            self._used -= self._log.popleft()[1]

    def wait_s(self, now_s: float, cost: int) -> float:
        """Wait until enough of the oldest requests have left the window."""
        self._forget(now_s)
        excess = self._used + min(cost, self._limit.requests) - self._limit.requests
        if excess <= 0:
            return 0.0
        for at_s, spent in self._log:
            excess -= spent
            if excess <= 0:
                return max(at_s + self._limit.window_s - now_s, 0.001)
        raise AssertionError("the log holds all that is used")

    def spend(self, now_s: float, cost: int) -> None:
        """Write it down."""
        self._log.append((now_s, cost))
        self._used += cost


class TokenBucket(Unlimited):
    """A bucket of `burst` tokens, refilled with `requests` per window."""

    def __init__(self, limit: Limit) -> None:
        self._rate = limit.requests / limit.window_s
        self._burst = limit.burst or limit.requests
        self._tokens = float(self._burst)
        self._at_s = float("-inf")

    def _refill(self, now_s: float) -> None:
        self._tokens = min(self._burst, self._tokens + (now_s - self._at_s) * self._rate)
        self._at_s = now_s

    def wait_s(self, now_s: float, cost: int) -> float:
        """Wait until the missing tokens have come."""
        self._refill(now_s)
        missing = min(cost, self._burst) - self._tokens
        return missing / self._rate if missing > 1e-9 else 0.0  # noqa: PLR2004 - less is rounding

    def spend(self, now_s: float, cost: int) -> None:
        """Take tokens; the debt of refused requests that count is at most one bucket."""
        self._refill(now_s)
        self._tokens = max(self._tokens - cost, -float(self._burst))


class Gcra(Unlimited):
    """The generic cell rate algorithm: one request per interval, up to `burst` of them early."""

    def __init__(self, limit: Limit) -> None:
        self._interval_s = limit.window_s / limit.requests
        self._burst = limit.burst or limit.requests
        self._arrival_s = float("-inf")  # the theoretical arrival time

    def wait_s(self, now_s: float, cost: int) -> float:
        """Wait until the theoretical arrival time is no more than the tolerance ahead."""
        tolerance_s = (self._burst - min(cost, self._burst)) * self._interval_s
        wait_s = self._arrival_s - tolerance_s - now_s
        return wait_s if wait_s > 1e-9 else 0.0  # noqa: PLR2004 - less is rounding

    def spend(self, now_s: float, cost: int) -> None:
        """Move the theoretical arrival time on; refused requests that count do so by one burst at most."""
        arrival_s = max(self._arrival_s, now_s) + cost * self._interval_s
        self._arrival_s = min(arrival_s, now_s + 2 * self._burst * self._interval_s)


class Concurrency(Unlimited):
    """At most `requests` at a time; `window_s` is the advice in Retry-After."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._running = 0

    def wait_s(self, now_s: float, cost: int) -> float:  # noqa: ARG002 - the interface of every limiter
        """Nobody knows when one of the running requests ends: the advice is the window."""
        return 0.0 if self._running < self._limit.requests else self._limit.window_s

    def spend(self, now_s: float, cost: int) -> None:  # noqa: ARG002 - the interface of every limiter
        """One more is running."""
        self._running += 1

    def leave(self) -> None:
        """One has ended."""
        self._running -= 1


def _unlimited(_: Limit) -> Limiter:
    return Unlimited()


LIMITERS: Mapping[str, Callable[[Limit], Limiter]] = {
    "fixed": FixedWindow,
    "fixed_from_first": FixedFromFirst,
    "sliding_log": SlidingLog,
    "token_bucket": TokenBucket,
    "gcra": Gcra,
    "concurrency": Concurrency,
    "none": _unlimited,
}
