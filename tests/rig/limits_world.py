"""Virtual time: bots, a client under test, the network and a server with a limiter, as one queue of events.

A client hears `enter` and `answered`, and is asked `due`: what to send now, what it gives up, and when to
ask again. One trip takes 18 ms plus an exponential tail of 2 ms at the mean, if nothing else is said, so a
round trip takes about 40 ms and requests may overtake each other.
"""

import heapq
import itertools
import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from rig.limits_limiters import Limiter

_GAP_S = 0.25  # shorter ones are none
Chance = random.Random
EPOCH = 1_700_000_000.25  # the server's wall clock at virtual time 0, for HTTP-dates; not on a full second


@dataclass(slots=True)
class Job:
    """One request of a bot and what became of it."""

    id: int
    bot: str
    lane: str
    cost: int
    born: float
    weight: int = 1
    attempts: int = 0
    first_sent: float = math.nan
    known_cost: int = 1  # what the client knows of the cost

    @property
    def is_read(self) -> bool:
        return self.lane == "read"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said: accepted, or a 429 with this `Retry-After` in seconds (None: absent).

    `pool` is the name of the one that was full, "" where the refusal does not say.
    """

    is_accepted: bool
    retry_after_s: float | None = None
    pool: str = ""


class Client(Protocol):
    """What paces the bots."""

    def enter(self, job: Job, now: float) -> bool:
        """Take a job; False refuses it."""

    def answered(self, job: Job, now: float, answer: Answer) -> bool:
        """Hear a reply; True: the job is over, False: it waits to be sent again."""

    def due(self, now: float) -> tuple[list[Job], list[Job], float | None]:
        """Return what to send now, what is given up, and when to ask again."""


@dataclass(frozen=True, slots=True)
class Bot:
    """Keeps `slots` requests going, each started `think_s` (mean) after the last one ended; or bursts."""

    name: str
    slots: int = 0
    think_s: float = 0.0
    weight: int = 1
    lanes: tuple[str, ...] = ("read", "order")
    burst: int = 0
    every_s: float = 0.0
    most: float = math.inf  # waiting and under way; what a burst would add beyond that is not asked for
    costs: tuple[tuple[str, int], ...] = ()
    since: float = 0.0
    until: float = math.inf


@dataclass(frozen=True, slots=True)
class Scenario:
    """One cell of the matrix. `allowance` is requests (or cost) per second that the limiter grants."""

    name: str
    limiter: Callable[[Chance], Limiter]
    allowance: float
    window: float
    bots: tuple[Bot, ...]
    seconds: float
    retry_after: str = "exact"  # exact | rounded | absent | wrong | date
    do_rejects_count: bool = False
    foreign: float = 0.0  # the part of the allowance that somebody else spends
    change: tuple[float, Callable[[Chance], Limiter], float] | None = None  # at, limiter, allowance
    service_s: float = 0.0
    bursts_from: float | None = None  # where the demand is under the limit from then on
    way_s: float | None = None  # one trip, where it is not the world's; its tail; how many stall for a while
    tail_s: float = 0.002
    spikes: float = 0.0
    foreign_burst_s: float = 0.0  # somebody else comes in bursts this long, each after a pause as long
    are_costs_hidden: bool = False


@dataclass(slots=True)
class Log:
    """Everything that happened, for the figures."""

    accepted: list[tuple[float, Job]] = field(default_factory=list)  # arrival at the server
    foreign: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)  # 429s
    waits: list[tuple[float, str, float]] = field(default_factory=list)  # born, lane, added wait
    dropped: int = 0
    inside_pause: int = 0
    pauses: list[tuple[float, float]] = field(default_factory=list)  # stated: heard at, until
    gaps: list[tuple[float, float]] = field(default_factory=list)  # nothing accepted while somebody waited


class World:
    """Runs one scenario."""

    def __init__(
        self, scenario: Scenario, client: Client, seed: int, *, way_s: float = 0.018, tail_s: float = 0.002
    ) -> None:
        self.scenario, self.client = scenario, client
        self._way_s, self._tail_s = way_s, tail_s
        if scenario.way_s is not None:
            self._way_s, self._tail_s = scenario.way_s, scenario.tail_s
        self.chance = random.Random(seed)
        self.limiter = scenario.limiter(self.chance)
        self.log = Log()
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self._order = itertools.count()
        self._ids = itertools.count(1)
        self._paused_until = -math.inf
        self._timer = math.inf
        self._open: Counter[str] = Counter()  # by bot: waiting and under way
        self._waiting = 0
        self._gap_from = 0.0

    def run(self) -> Log:
        scenario = self.scenario
        for bot in scenario.bots:
            if bot.burst:
                self._at(bot.since + self.chance.uniform(0, bot.every_s), self._burst, bot)
            for _ in range(bot.slots):
                self._at(self.chance.uniform(0, bot.think_s), self._start, bot)
        if scenario.foreign:
            self._at(self.chance.expovariate(self._foreign_rate()), self._foreign)
        if scenario.change:
            self._at(scenario.change[0], self._change)
        events = self._events
        while events and events[0][0] <= scenario.seconds:
            self.now, _, do, args = heapq.heappop(events)
            do(*args)
        return self.log

    def _at(self, at: float, do: Callable[..., None], *args: object) -> None:
        heapq.heappush(self._events, (at, next(self._order), do, args))

    def _trip(self) -> float:
        trip = self._way_s + min(self.chance.expovariate(1 / self._tail_s), 5 * self._tail_s)
        spikes = self.scenario.spikes
        return trip + self.chance.uniform(0.1, 0.5) if spikes and self.chance.random() < spikes else trip

    def _start(self, bot: Bot) -> None:
        self._enter(bot)
        self._pump()

    def _burst(self, bot: Bot) -> None:
        for _ in range(bot.burst):
            if self._open[bot.name] < bot.most:
                self._enter(bot)
        self._pump()
        self._at(self.now + self.chance.uniform(0.6, 1.4) * bot.every_s, self._burst, bot)

    def _enter(self, bot: Bot) -> None:
        lane = bot.lanes[int(self.chance.random() * len(bot.lanes))]
        cost = dict(bot.costs).get(lane, 1)
        known = 1 if self.scenario.are_costs_hidden else cost
        job = Job(next(self._ids), bot.name, lane, cost, self.now, bot.weight, known_cost=known)
        self._open[bot.name] += 1
        self._waits()
        if not self.client.enter(job, self.now):
            self._waiting -= 1
            self._over(job)

    def _waits(self) -> None:
        if not self._waiting:
            self._gap_from = self.now
        self._waiting += 1

    def _over(self, job: Job) -> None:
        self._open[job.bot] -= 1
        if job.attempts == 0:
            self.log.dropped += 1
        bot = next(bot for bot in self.scenario.bots if bot.name == job.bot)
        if bot.slots and self.now < bot.until:
            self._at(self.now + self.chance.uniform(0.5, 1.5) * bot.think_s + 0.001, self._start, bot)

    def _pump(self) -> None:
        jobs, dropped, again = self.client.due(self.now)
        for job in jobs:
            self._send(job)
        for job in dropped:
            self._waiting -= 1
            self._over(job)
        if again is not None and (again < self._timer or self._timer <= self.now):
            self._timer = max(again, self.now + 1e-6)
            self._at(self._timer, self._tick, self._timer)

    def _tick(self, timer: float) -> None:
        if timer == self._timer:
            self._timer = math.inf
            self._pump()

    def _send(self, job: Job) -> None:
        if self.now < self._paused_until:
            self.log.inside_pause += 1
        job.attempts += 1
        self._waiting -= 1
        if job.attempts == 1:
            job.first_sent = self.now
            self.log.waits.append((job.born, job.lane, self.now - job.born))
        self._at(self.now + self._trip(), self._arrive, job)

    def _arrive(self, job: Job) -> None:
        now = self.now
        wait = self.limiter.wait_s(now, job)
        if wait > 0:
            self.log.refused.append(now)
            wait = max(wait, self.limiter.refuse(now))
            if self.scenario.do_rejects_count:
                self.limiter.spend(now, job)
                wait = max(wait, self.limiter.wait_s(now, job))
            answer = Answer(is_accepted=False, retry_after_s=wait, pool=self.limiter.refusing)
            self._at(now + self._trip(), self._answered, job, answer, now)
            return
        self.limiter.spend(now, job)
        self.log.accepted.append((now, job))
        if now - self._gap_from > _GAP_S:
            self.log.gaps.append((self._gap_from, now))
        self._gap_from = now
        served = self.limiter.delay_s(now) + self.scenario.service_s
        if served:
            self._at(now + served, self._served, job)
        else:
            self._at(now + self._trip(), self._answered, job, Answer(is_accepted=True), now)

    def _served(self, job: Job) -> None:
        self.limiter.finish(job)
        self._at(self.now + self._trip(), self._answered, job, Answer(is_accepted=True), self.now)

    def _answered(self, job: Job, answer: Answer, arrived: float) -> None:
        if not answer.is_accepted:
            answer = replace(answer, retry_after_s=self._stated(answer.retry_after_s or 0.0, arrived))
            if answer.retry_after_s is not None:
                self._paused_until = max(self._paused_until, self.now + answer.retry_after_s)
                self.log.pauses.append((self.now, self._paused_until))
            self._waits()
        if self.client.answered(job, self.now, answer):
            self._waiting -= not answer.is_accepted
            self._over(job)
        self._pump()

    def _stated(self, wait: float, arrived: float) -> float | None:
        kind = self.scenario.retry_after
        if kind == "absent":
            return None
        if kind == "rounded":
            return float(math.ceil(wait))
        if kind == "wrong":
            return wait * self.chance.choice((0.25, 0.5, 2.0))
        if kind == "date":  # a full second of the server's wall clock, read by a well-synced client
            return max(0.0, math.ceil(EPOCH + arrived + wait) - EPOCH - self.now)
        return wait

    def _foreign(self) -> None:
        stranger = Job(0, "stranger", "read", 1, self.now)
        if self.limiter.wait_s(self.now, stranger) <= 0:
            self.limiter.spend(self.now, stranger)
            self.log.foreign.append(self.now)
        at = self.now + self.chance.expovariate(self._foreign_rate())
        burst_s = self.scenario.foreign_burst_s
        if burst_s and at // burst_s % 2:
            at += burst_s
        self._at(at, self._foreign)

    def _foreign_rate(self) -> float:
        return self.scenario.foreign * self.scenario.allowance * (2 if self.scenario.foreign_burst_s else 1)

    def _change(self) -> None:
        assert self.scenario.change is not None
        self.limiter = self.scenario.change[1](self.chance)
