"""The oracle: rate limiters as exchanges have them, written from their definitions and not from our core.

A limiter answers `wait_s(now, job)`, the seconds until it would let the job through (0: now), and is told
`spend(now, job)` for what counts and `finish(job)` when a counted job is done. Times are the server's.
"""

import math
from collections import deque
from typing import Protocol

# Float sums of many small refills end a little below what they should be.
_ROUNDING = 1e-9


class Job(Protocol):
    """What a limiter may look at."""

    @property
    def is_read(self) -> bool: ...

    @property
    def cost(self) -> int: ...


class Limiter:
    """Lets everything through; also what the kinds share. `refusing` is what its refusals name."""

    refusing = ""

    def wait_s(self, now: float, job: Job) -> float:  # noqa: ARG002 - the interface of every limiter
        return 0.0

    def spend(self, now: float, job: Job) -> None:
        pass

    def finish(self, job: Job) -> None:
        pass

    def delay_s(self, now: float) -> float:  # noqa: ARG002 - the interface of every limiter
        """How long the job is held before it is served, where a limiter delays instead of refusing."""
        return 0.0

    def refuse(self, now: float) -> float:  # noqa: ARG002 - the interface of every limiter
        """Hear of a refusal; return the least seconds of a ban that it leads to."""
        return 0.0


class Fixed(Limiter):
    """`n` per window; windows start at `phase` + k * `window`."""

    def __init__(self, n: int, window: float, phase: float = 0.0) -> None:
        self.n, self.window, self.phase = n, window, phase
        self.index, self.used = -1, 0

    def _roll(self, now: float) -> None:
        index = math.floor((now - self.phase) / self.window)
        if index != self.index:
            self.index, self.used = index, 0

    def wait_s(self, now: float, job: Job) -> float:
        self._roll(now)
        if self.used + job.cost <= self.n:
            return 0.0
        return self.phase + (self.index + 1) * self.window - now

    def spend(self, now: float, job: Job) -> None:
        self._roll(now)
        self.used += job.cost


class FixedFromFirst(Limiter):
    """`n` per window; a window starts with the first job after the last one ended (Redis INCR + EXPIRE)."""

    def __init__(self, n: int, window: float) -> None:
        self.n, self.window = n, window
        self.start, self.used = -math.inf, 0

    def wait_s(self, now: float, job: Job) -> float:
        if now >= self.start + self.window or self.used + job.cost <= self.n:
            return 0.0
        return self.start + self.window - now

    def spend(self, now: float, job: Job) -> None:
        if now >= self.start + self.window:
            self.start, self.used = now, 0
        self.used += job.cost


class SlidingLog(Limiter):
    """At most `n` in any stretch of `window` seconds."""

    def __init__(self, n: int, window: float) -> None:
        self.n, self.window = n, window
        self.log: deque[tuple[float, int]] = deque()
        self.used = 0

    def wait_s(self, now: float, job: Job) -> float:
        while self.log and self.log[0][0] + self.window <= now:
            self.used -= self.log.popleft()[1]
        excess = self.used + job.cost - self.n
        if excess <= 0:
            return 0.0
        for at, cost in self.log:
            excess -= cost
            if excess <= 0:
                return at + self.window - now
        return self.window

    def spend(self, now: float, job: Job) -> None:
        self.log.append((now, job.cost))
        self.used += job.cost


class SlidingCounter(Limiter):
    """Two fixed windows, the earlier one weighted by how much of it is still in sight (nginx, Cloudflare)."""

    def __init__(self, n: int, window: float) -> None:
        self.n, self.window = n, window
        self.index, self.used, self.before = 0, 0, 0

    def _roll(self, now: float) -> float:
        index = math.floor(now / self.window)
        if index != self.index:
            self.before = self.used if index == self.index + 1 else 0
            self.index, self.used = index, 0
        return now / self.window - index

    def wait_s(self, now: float, job: Job) -> float:
        part = self._roll(now)
        excess = self.before * (1 - part) + self.used + job.cost - self.n
        if excess <= 0:
            return 0.0
        if self.before and excess <= self.before * (1 - part):
            return excess / self.before * self.window
        return (1 - part) * self.window

    def spend(self, now: float, job: Job) -> None:
        self._roll(now)
        self.used += job.cost


class TokenBucket(Limiter):
    """A bucket of `burst` tokens, refilled at `rate` per second; GCRA is the same with other words."""

    def __init__(self, rate: float, burst: int) -> None:
        self.rate, self.burst = rate, burst
        self.tokens, self.at = float(burst), 0.0

    def wait_s(self, now: float, job: Job) -> float:
        self.tokens = min(self.burst, self.tokens + (now - self.at) * self.rate)
        self.at = now
        missing = job.cost - self.tokens
        return missing / self.rate if missing > _ROUNDING else 0.0

    def spend(self, now: float, job: Job) -> None:  # noqa: ARG002 - the interface of every limiter
        self.tokens = max(self.tokens - job.cost, -self.burst)


class LeakyQueue(Limiter):
    """Serves `rate` per second and holds the rest; never refuses."""

    def __init__(self, rate: float) -> None:
        self.rate, self.free_at = rate, 0.0

    def delay_s(self, now: float) -> float:
        self.free_at = max(self.free_at, now) + 1 / self.rate
        return self.free_at - now


class Concurrency(Limiter):
    """At most `n` at a time; nobody knows when one ends, so the advice is one second."""

    def __init__(self, n: int) -> None:
        self.n, self.running = n, 0

    def wait_s(self, now: float, job: Job) -> float:  # noqa: ARG002 - the interface of every limiter
        return 0.0 if self.running < self.n else 1.0

    def spend(self, now: float, job: Job) -> None:  # noqa: ARG002 - the interface of every limiter
        self.running += 1

    def finish(self, job: Job) -> None:  # noqa: ARG002 - the interface of every limiter
        self.running -= 1


class Stacked(Limiter):
    """Several limits at once: all must agree."""

    def __init__(self, *limiters: Limiter) -> None:
        self.limiters = limiters

    def wait_s(self, now: float, job: Job) -> float:
        return max(limiter.wait_s(now, job) for limiter in self.limiters)

    def spend(self, now: float, job: Job) -> None:
        for limiter in self.limiters:
            limiter.spend(now, job)


class Apart(Limiter):
    """One limit for reads, one for the rest."""

    def __init__(self, reads: Limiter, others: Limiter) -> None:
        self.reads, self.others = reads, others

    def _of(self, job: Job) -> Limiter:
        return self.reads if job.is_read else self.others

    def wait_s(self, now: float, job: Job) -> float:
        return self._of(job).wait_s(now, job)

    def spend(self, now: float, job: Job) -> None:
        self._of(job).spend(now, job)


class Ban(Limiter):
    """Bans for `ban` seconds who is refused `patience` times within 10 s; the ban doubles each time."""

    def __init__(self, inner: Limiter, patience: int, ban: float) -> None:
        self.inner, self.patience, self.ban = inner, patience, ban
        self.refusals: deque[float] = deque()
        self.until = -math.inf

    def wait_s(self, now: float, job: Job) -> float:
        return self.until - now if now < self.until else self.inner.wait_s(now, job)

    def spend(self, now: float, job: Job) -> None:
        self.inner.spend(now, job)

    def finish(self, job: Job) -> None:
        self.inner.finish(job)

    def refuse(self, now: float) -> float:
        self.refusals.append(now)
        while self.refusals[0] < now - 10:
            self.refusals.popleft()
        if len(self.refusals) >= self.patience and now >= self.until:
            self.until, self.ban = now + self.ban, self.ban * 2
            self.refusals.clear()
        return max(0.0, self.until - now)
