"""The rivals: what bots do without a gateway, driven in virtual time by the same events.

"Only Retry-After" sends at once and, after a 429, holds everything until the stated time. AIMD adds a rate
that grows by a little per accepted request and halves at a 429. botocore's adaptive mode is the library
itself: its rate limiter (CUBIC) behind its exponential backoff, one per bot because the SDK's clients share
nothing.
"""

import heapq
import itertools
import math
import random
from collections import deque
from types import SimpleNamespace

from botocore.exceptions import CapacityNotAvailableError  # type: ignore[import-untyped]
from botocore.retries import (  # type: ignore[import-untyped]
    adaptive,
    bucket,
    standard,
    throttling,
)

from rig.limits_world import Answer, Job

_BACKOFF_S = 1.0  # what rivals wait after a 429 that names no time


class OnlyRetryAfter:
    """One queue for all bots, let go as a whole when the pause is over."""

    def __init__(self, _seed: int) -> None:
        self.queue: deque[Job] = deque()
        self.until = -math.inf

    def enter(self, job: Job, now: float) -> bool:  # noqa: ARG002 - the interface of every client
        self.queue.append(job)
        return True

    def answered(self, job: Job, now: float, answer: Answer) -> bool:
        if answer.is_accepted:
            return True
        wait = _BACKOFF_S if answer.retry_after_s is None else answer.retry_after_s
        self.until = max(self.until, now + wait)
        self.queue.appendleft(job)
        return False

    def due(self, now: float) -> tuple[list[Job], list[Job], float | None]:
        if now < self.until:
            return [], [], self.until if self.queue else None
        jobs = list(self.queue)
        self.queue.clear()
        return jobs, [], None


class Aimd(OnlyRetryAfter):
    """A paced rate on top: + 1/s per second of success, halved by a 429 (at most once per round trip)."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.rate, self.next, self.cut_at = 1000.0, 0.0, -math.inf
        self.recent: deque[float] = deque()

    def answered(self, job: Job, now: float, answer: Answer) -> bool:
        if answer.is_accepted:
            self.rate += 1 / max(self.rate, 1.0)
            self.recent.append(now)
            while self.recent[0] < now - 1:
                self.recent.popleft()
        elif now - self.cut_at > 0.1:
            self.rate = max(0.5, min(self.rate, len(self.recent)) / 2)
            self.cut_at = now
        return super().answered(job, now, answer)

    def due(self, now: float) -> tuple[list[Job], list[Job], float | None]:
        if now < self.until:
            return super().due(now)
        jobs = []
        while self.queue and self.next <= now:
            jobs.append(self.queue.popleft())
            self.next = max(self.next, now) + 1 / self.rate
        return jobs, [], self.next if self.queue else None


class AimdBucket(OnlyRetryAfter):
    """ATB, the adaptive token bucket of arXiv 2510.04516.

    Its rate grows once a second without a 429: by half below the last rate that was congested, by a fifth
    above it. A 429 halves it and empties the bucket.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.rate, self.tokens, self.at = 1.0, 1.0, 0.0
        self.congested, self.grown_at = math.inf, 0.0

    def answered(self, job: Job, now: float, answer: Answer) -> bool:
        if not answer.is_accepted:
            self.congested, self.rate, self.tokens = self.rate, max(0.05, self.rate / 2), 0.0
            self.grown_at = now
        return super().answered(job, now, answer)

    def due(self, now: float) -> tuple[list[Job], list[Job], float | None]:
        if now >= self.grown_at + 1.0:
            self.rate *= 1.5 if self.rate < self.congested else 1.2
            self.rate, self.grown_at = min(self.rate, 1e6), now
        self.tokens = min(max(1.0, self.rate), self.tokens + (now - self.at) * self.rate)
        self.at = now
        if now < self.until:
            return super().due(now)
        jobs = []
        while self.queue and self.tokens >= 1.0:
            jobs.append(self.queue.popleft())
            self.tokens -= 1.0
        wait_s = min((1.0 - self.tokens) / self.rate, 1.0) + 1e-6
        return jobs, [], now + wait_s if self.queue else None


class _VirtualClock(bucket.Clock):  # type: ignore[misc] # botocore has no types
    def __init__(self) -> None:
        self.now = 0.0

    def current_time(self) -> float:
        return self.now


class _Adaptive:
    """One client of the SDK."""

    def __init__(self) -> None:
        self.clock = _VirtualClock()
        self.tokens = bucket.TokenBucket(max_rate=1, clock=self.clock)
        self.limiter = adaptive.ClientRateLimiter(
            rate_adjustor=throttling.CubicCalculator(starting_max_rate=0, start_time=0.0),
            rate_clocker=adaptive.RateClocker(self.clock),
            token_bucket=self.tokens,
            throttling_detector=standard.ThrottlingErrorDetector(
                SimpleNamespace(create_retry_context=_context)
            ),
            clock=self.clock,
        )
        self.queue: deque[Job] = deque()

    def due(self, now: float) -> tuple[list[Job], float | None]:
        self.clock.now = now
        jobs: list[Job] = []
        while self.queue:
            if self.limiter._enabled:
                try:
                    self.tokens.acquire(block=False)
                except CapacityNotAvailableError:
                    return jobs, now + self.tokens._sleep_amount(1) + 1e-6
            jobs.append(self.queue.popleft())
        return jobs, None


def _context(**kwargs: object) -> SimpleNamespace:
    is_throttled = kwargs["is_throttled"]
    return SimpleNamespace(
        get_error_code=lambda: "Throttling" if is_throttled else None,
        operation_model=None,
        http_response=SimpleNamespace(status_code=429 if is_throttled else 200),
    )


class Botocore:
    """The adaptive retry mode: three attempts with a random exponential backoff, then the SDK gives up."""

    _MAX_ATTEMPTS = 3  # the SDK's default

    def __init__(self, seed: int) -> None:
        self.clients: dict[str, _Adaptive] = {}
        self.later: list[tuple[float, int, Job]] = []
        self.order = itertools.count()
        self.chance = random.Random(seed)

    def enter(self, job: Job, now: float) -> bool:  # noqa: ARG002 - the interface of every client
        self.clients.setdefault(job.bot, _Adaptive()).queue.append(job)
        return True

    def answered(self, job: Job, now: float, answer: Answer) -> bool:
        client = self.clients[job.bot]
        client.clock.now = now
        client.limiter.on_receiving_response(is_throttled=not answer.is_accepted)
        if answer.is_accepted or job.attempts >= self._MAX_ATTEMPTS:
            return True
        wait = self.chance.random() * min(2 ** (job.attempts - 1), 20)
        heapq.heappush(self.later, (now + wait, next(self.order), job))
        return False

    def due(self, now: float) -> tuple[list[Job], list[Job], float | None]:
        while self.later and self.later[0][0] <= now:
            job = heapq.heappop(self.later)[2]
            self.clients[job.bot].queue.append(job)
        again = [self.later[0][0]] if self.later else []
        jobs: list[Job] = []
        for client in self.clients.values():
            released, at = client.due(now)
            jobs += released
            if at is not None:
                again.append(at)
        return jobs, [], min(again, default=None)
