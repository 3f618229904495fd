"""Reads beside orders and cancels that never end, in virtual time: a tenth is theirs, in time or refused."""

import heapq
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from rig.pacing import settings_of
from sealgate.limits.claims import Claim, Fate, LimitReply, Rejection
from sealgate.limits.pacer import Pacer
from sealgate.limits.quotas import Quota
from sealgate.venues.routes import Lane

_TRIP_S = 0.05
_AGAIN_S = 1.0  # who was refused asks again after that
_BEGIN_S, _END_S = 5.0, 65.0
_TENTH = 0.1 * 5 * (_END_S - _BEGIN_S)


@dataclass
class Worker:
    """A bot's thread: asks, waits for the answer, and asks again."""

    bot: str
    lanes: Iterator[Lane]
    wait_s: float
    thinks_s: float = 0.0
    begins_s: float = 0.0
    ends: Counter[str] = field(default_factory=Counter)
    rejections: list[Rejection] = field(default_factory=list)


class Day:
    """Workers that share a limit of 5 per second."""

    def __init__(self, *workers: Worker) -> None:
        self.pacer = Pacer(settings_of(Quota(5, 1.0)), lambda: 0.5)
        self.workers: dict[str, Worker] = {}
        self.numbers = itertools.count()
        self.events: list[tuple[float, int, str, Claim | Worker | None]] = []
        self.looks_at: set[float] = set()
        for worker in workers:
            self.at(worker.begins_s, "asks", worker)

    def at(self, at: float, what: str, whose: Claim | Worker | None) -> None:
        heapq.heappush(self.events, (at, next(self.numbers), what, whose))

    def run(self) -> None:
        while self.events[0][0] < _END_S:
            now, _, _, whose = heapq.heappop(self.events)
            self.looks_at.discard(now)
            if isinstance(whose, Worker):
                self.ask(whose, now)
            elif whose is not None:
                self.pacer.answered(whose, now, LimitReply(Fate.ACCEPTED))
                self.over(whose, now, "done")
            self.obey(now)

    def ask(self, worker: Worker, now: float) -> None:
        lane, name = next(worker.lanes), str(next(self.numbers))
        claim = Claim(name, worker.bot, lane, now + worker.wait_s, is_read=lane is Lane.READ)
        self.workers[name] = worker
        if self.pacer.goes_at_once(claim, now):
            self.at(now + _TRIP_S, "answer", claim)
        elif (rejection := self.pacer.enter(claim, now)) is not None:
            worker.rejections.append(rejection)
            self.over(claim, now, "refused at once")

    def obey(self, now: float) -> None:
        release = self.pacer.release(now)
        for claim in release.go:
            self.at(now + _TRIP_S, "answer", claim)
        for rejection in release.rejected:
            self.over(rejection.claim, now, "expired")
        if release.look_again_at is not None and (at := max(now, release.look_again_at)) not in self.looks_at:
            self.looks_at.add(at)
            self.at(at, "look", None)

    def over(self, claim: Claim, now: float, end: str) -> None:
        worker = self.workers.pop(claim.id)
        worker.ends[end] += 1
        self.at(now + worker.thinks_s + (0.0 if end == "done" else _AGAIN_S), "asks", worker)


def traders(count: int) -> list[Worker]:
    """Return threads of two bots that order and cancel as fast as they may."""
    return [
        Worker(f"trader{number % 2}", itertools.cycle([Lane.ORDER, Lane.CANCEL]), 30.0)
        for number in range(count)
    ]


def readers(count: int, wait_s: float) -> list[Worker]:
    """Return a bot's threads that read, when the others have been at it for a while."""
    return [Worker("watcher", itertools.repeat(Lane.READ), wait_s, begins_s=_BEGIN_S) for _ in range(count)]


def ends(workers: list[Worker]) -> Counter[str]:
    return sum((worker.ends for worker in workers), Counter())


@pytest.mark.parametrize("threads", [2, 4, 10])
def test_reads_whose_deadlines_are_short_have_their_tenth(threads: int) -> None:
    busy, watcher = traders(threads), readers(6, 2.0)
    Day(*busy, *watcher).run()
    went, reads = ends(busy)["done"], ends(watcher)["done"]
    assert went + reads > 0.95 * 5 * _END_S
    assert reads >= 0.95 * _TENTH


def test_a_read_that_cannot_be_served_in_time_is_refused_at_once_and_not_at_its_deadline() -> None:
    watcher = readers(6, 2.0)
    Day(*traders(10), *watcher).run()
    assert ends(watcher)["expired"] == 0
    assert ends(watcher)["refused at once"] > 0


def test_the_refusal_says_which_deadline_would_do_and_it_does() -> None:
    watcher = readers(1, 0.5)
    busy = traders(10)
    Day(*busy, *watcher).run()
    [worker] = watcher
    details = {one.detail for one in worker.rejections}
    stated_s = max(int(found[1]) / 1000 for text in details if (found := re.search(r"Ms: (\d+)", text)))
    assert 0.5 < stated_s < 2.5
    patient = readers(1, stated_s)
    Day(*traders(10), *patient).run()
    assert ends(patient).keys() == {"done"}
    assert ends(patient)["done"] >= 0.9 * _TENTH


def test_a_reader_that_asks_rarely_finds_its_tenth_kept() -> None:
    """It need not wait for ten others first, each time that it comes."""
    watcher = Worker("watcher", itertools.repeat(Lane.READ), wait_s=0.5, thinks_s=5.0, begins_s=5.0)
    Day(*traders(10), watcher).run()
    assert watcher.ends["done"] >= 10
    assert watcher.ends["expired"] + watcher.ends["refused at once"] <= 1
