"""A cap on concurrent requests, seen by how many were in flight at each refusal."""

from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from sealgate.core.limits import LimitEstimator
from sealgate.core.limits.claims import Claim
from sealgate.core.limits.quotas import Quota
from sealgate.core.routes import Lane

TRIP_S = 0.1


@dataclass
class Crowd:
    """`bots` that each have one request in flight or waiting, at a limiter that grants `cap` at a time."""

    bots: int
    cap: int
    estimator: LimitEstimator = field(default_factory=LimitEstimator)
    now: float = 0.0
    refused: int = 0
    accepted: int = 0
    flying: list[tuple[float, int, Claim, float, bool, bool]] = field(default_factory=list)
    ids: count = field(default_factory=count)  # type: ignore[type-arg]
    paused_until: float = 0.0
    is_paced: bool = False

    def run(self, until: float) -> None:
        """Send whatever may go."""
        while self.now < until:
            while len(self.flying) < self.bots and self.now >= self.paused_until:
                number = next(self.ids)
                claim = Claim(str(number), "a", Lane.READ, 1e9, is_read=True)
                is_scout = self.estimator.needs_scout
                if is_scout and self.flying:
                    break
                if self.estimator.ready_at(claim, self.now, is_paced=self.is_paced) > self.now:
                    self.is_paced = True
                    break
                self.estimator.took(claim, self.now, is_paced=self.is_paced)
                running = sum(one[4] for one in self.flying)
                flight = (self.now + TRIP_S, number, claim, self.now, running < self.cap, is_scout)
                heappush(self.flying, flight)
            self.now += 0.01
            while self.flying and self.flying[0][0] <= self.now:
                _, _, claim, sent_at, is_accepted, is_scout = heappop(self.flying)
                if is_accepted:
                    self.accepted += 1
                    self.estimator.accepted(claim, sent_at, self.now, is_scout=is_scout)
                else:
                    self.refused += 1
                    self.paused_until = self.now + 1.0
                    self.estimator.refused(claim, sent_at, self.paused_until, 1.0, 1.0)


def test_a_cap_is_found_by_how_many_are_in_flight_at_a_refusal() -> None:
    crowd = Crowd(12, 5)
    crowd.run(60.0)
    assert crowd.estimator.at_a_time == 5
    assert crowd.estimator.limits == []
    assert crowd.accepted > 0.9 * 5 * 60 / (TRIP_S + 0.01)


def test_a_cap_that_holds_for_long_is_tried_one_higher() -> None:
    crowd = Crowd(12, 5)
    crowd.run(60.0)
    crowd.cap = 7
    crowd.run(800.0)
    assert crowd.estimator.at_a_time == 7


def test_a_cap_that_falls_is_followed() -> None:
    crowd = Crowd(12, 8)
    crowd.run(60.0)
    crowd.cap = 5
    crowd.run(120.0)
    assert crowd.estimator.at_a_time == 5


def test_requests_that_were_accepted_beside_many_more_refute_a_cap() -> None:
    crowd = Crowd(20, 20)
    crowd.run(2.0)
    for _ in range(3):
        crowd.bots, crowd.cap = 20, 20
        crowd.run(crowd.now + 5.0)
        crowd.bots, crowd.cap = 6, 5
        crowd.run(crowd.now + 0.2)
    assert crowd.estimator.at_a_time is None


def test_a_cap_stands_beside_no_window_and_a_free_place_lets_the_next_go() -> None:
    estimator = LimitEstimator()
    estimator.believe([], at_a_time=1)
    first, second = (Claim(name, "a", Lane.READ, 1e9, is_read=True) for name in "ab")
    estimator.took(first, 0.0, is_paced=False)
    assert estimator.ready_at(second, 0.0, is_paced=False) == float("inf")
    estimator.accepted(first, 0.0, 0.1, is_scout=False)
    assert estimator.ready_at(second, 0.1, is_paced=False) == 0.1


def test_whatever_was_sent_a_moment_after_a_refused_request_may_have_arrived_before() -> None:
    estimator = LimitEstimator()
    claims = [Claim(name, "a", Lane.READ, 1e9, is_read=True) for name in "abcdefg"]
    for at, claim in zip((0.0, 0.0, 0.0, 0.0, 0.0, 0.001, 0.05), claims, strict=True):
        estimator.took(claim, at, is_paced=False)
    estimator.refused(claims[4], 0.0, 1.0, 1.0, 1.0)
    for claim in [*claims[:4], *claims[5:]]:
        estimator.accepted(claim, 0.0, 0.1, is_scout=False)
    scout = Claim("s", "a", Lane.READ, 1e9, is_read=True)
    estimator.took(scout, 1.1, is_paced=False)
    estimator.accepted(scout, 1.1, 1.2, is_scout=True)
    assert estimator.at_a_time == 5


def test_a_published_limit_leaves_no_room_for_guesses_about_others() -> None:
    """A class that no published limit counts was refused: that is nothing to learn from."""
    estimator, read = LimitEstimator((Quota(10, 1.0),)), Claim("1", "a", Lane.READ, 1e9, is_read=True)
    estimator.limits[0].weights = (0.0, 1.0)
    estimator.took(read, 0.0, is_paced=False)
    estimator.refused(read, 0.0, 1.0, 1.0, 0.0)
    estimator.took(read, 1.0, is_paced=True)
    estimator.accepted(read, 1.0, 1.1, is_scout=True)
    assert [(limit.n, limit.low) for limit in estimator.limits] == [(10, 10.0)]
