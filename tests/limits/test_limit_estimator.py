"""The estimator against limiters that are written down here, one request at a time, all of it waiting."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

import pytest

from sealgate.limits import Limit, LimitEstimator
from sealgate.limits.claims import Claim
from sealgate.limits.quotas import Quota
from sealgate.limits.round_trips import RoundTrips
from sealgate.limits.throttle import ThrottleEvent
from sealgate.venues.routes import Lane

TRIP_S = 0.002


def a_read(name: str) -> Claim:
    return Claim(name, "a", Lane.READ, 1e9, is_read=True)


Wait = Callable[[float, bool], float]


def log_of(n: float, window: float, *, cost: float = 1.0, classes: tuple[bool, ...] = (True, False)) -> Wait:
    """Grant at most `n` in any `window`, of some classes; what is no read takes `cost`."""
    within: deque[tuple[float, float]] = deque()

    def wait_s(now: float, is_read: bool) -> float:
        if is_read not in classes:
            return 0.0
        own = 1.0 if is_read else cost
        while within and within[0][0] <= now - window:
            within.popleft()
        excess = sum(its for _, its in within) + own - n
        for at, its in within:
            if excess <= 0:
                break
            excess -= its
            if excess <= 0:
                return at + window - now
        within.append((now, own))
        return 0.0

    return wait_s


def fixed(n: float, window: float, stranger: Callable[[int], int] = lambda _: 0) -> Wait:
    """Grant at most `n` per aligned window, of which a stranger takes some."""
    used: dict[int, int] = {}

    def wait_s(now: float, is_read: bool) -> float:  # noqa: ARG001 - as a limiter is asked
        index = math.floor(now / window)
        used.setdefault(index, stranger(index))
        if used[index] >= n:
            return (index + 1) * window - now
        used[index] += 1
        return 0.0

    return wait_s


def bucket(rate: float, burst: float) -> Wait:
    """Grant from a bucket of `burst` that is refilled at `rate`."""
    tokens, before = burst, 0.0

    def wait_s(now: float, is_read: bool) -> float:  # noqa: ARG001 - as a limiter is asked
        nonlocal tokens, before
        tokens, before = min(burst, tokens + rate * (now - before)), now
        if tokens < 1 - 1e-9:
            return (1 - tokens) / rate
        tokens -= 1
        return 0.0

    return wait_s


@dataclass
class Bots:
    """More requests than any limiter grants, `orders_of_ten` of ten are orders."""

    wait_s: Wait
    orders_of_ten: int = 5
    resolution_s: float = 0.0
    does_state: bool = True
    late_s: float = 0.0  # by how much its timers are
    estimator: LimitEstimator = field(default_factory=LimitEstimator)
    now: float = 0.0
    accepted: int = 0
    refused: int = 0
    ids: count = field(default_factory=count)  # type: ignore[type-arg]

    def run(self, until: float) -> None:
        """Send whatever may go."""
        paused_until = is_paced = 0.0
        while True:
            number = next(self.ids)
            is_read = number * self.orders_of_ten % 10 < 10 - self.orders_of_ten
            claim = Claim(str(number), "a", Lane.READ if is_read else Lane.ORDER, 1e9, is_read=is_read)
            at = self.estimator.ready_at(claim, self.now, is_paced=bool(is_paced))
            if at > self.now:
                is_paced = 1.0
                at = self.estimator.ready_at(claim, self.now, is_paced=True)
            due = max(self.now, at, paused_until)
            self.now = due + self.late_s if due > self.now else due
            if self.now >= until:
                return
            is_scout = self.estimator.needs_scout
            self.estimator.took(claim, self.now, is_paced=bool(is_paced))
            wait_s, sent_at = self.wait_s(self.now, is_read), self.now
            self.now += TRIP_S
            if wait_s > 0:
                stated_s = math.ceil(wait_s) if self.resolution_s else wait_s
                is_paced = 1.0
                self.refused += 1
                paused_until = sent_at + stated_s if self.does_state else self.now + 0.4
                self.estimator.throttled(
                    claim, sent_at, paused_until, stated_s if self.does_state else None, self.resolution_s
                )
            else:
                self.accepted += 1
                self.estimator.accepted(claim, sent_at, self.now, is_scout=is_scout)

    def share(self, rate: float, since: float, until: float) -> float:
        """Return what part of the grant was used from then to then."""
        self.run(since)
        before = self.accepted
        self.run(until)
        return (self.accepted - before) / (rate * (until - since))


def test_a_sliding_window_is_learned_from_one_refusal_and_is_not_refused_again_at_once() -> None:
    bots = Bots(log_of(48, 3.0))
    assert bots.share(16.0, 3.0, 20.0) > 0.97
    assert bots.refused <= 2
    [limit] = bots.estimator.limits
    assert limit.low == pytest.approx(16.0, rel=0.03)
    assert limit.n == pytest.approx(48, rel=0.1)


@pytest.mark.parametrize(("n", "window"), [(20, 1.0), (120, 10.0)])
def test_a_round_number_is_believed_with_the_window_that_an_exchange_would_publish(
    n: int, window: float
) -> None:
    bots = Bots(log_of(n, window), resolution_s=1.0)
    bots.run(window + 1.0)
    [limit] = bots.estimator.limits
    assert (limit.n, limit.window, limit.low) == (n, window, n / window)
    assert bots.refused == 1


@pytest.mark.slow
def test_a_number_that_is_not_round_is_searched_for() -> None:
    bots = Bots(log_of(37, 1.0), resolution_s=1.0)
    assert bots.share(37.0, 3.0, 20.0) > 0.9
    assert bots.share(37.0, 60.0, 200.0) > 0.95


def test_a_step_makes_up_for_timers_that_are_late() -> None:
    bots = Bots(log_of(57, 1.0), late_s=0.003)
    bots.run(40.0)
    [limit] = bots.estimator.limits
    assert limit.low >= 56
    assert bots.refused <= 5


def test_a_lower_limit_is_learned_from_a_burst_that_nobody_had_to_wait_for() -> None:
    bots = Bots(log_of(20, 1.0))
    bots.run(5.0)
    estimator, at = bots.estimator, 60.0
    claims = [a_read(f"of the burst {index}") for index in range(12)]
    for claim in claims[:10]:
        estimator.took(claim, at, is_paced=False)
        estimator.accepted(claim, at, at + TRIP_S, is_scout=False)
    estimator.took(claims[10], at, is_paced=False)
    estimator.throttled(claims[10], at, at + 1.0, 1.0, 0.0)
    estimator.took(claims[11], at + 1.0, is_paced=False)
    estimator.accepted(claims[11], at + 1.0, at + 1.0 + TRIP_S, is_scout=True)
    bots.wait_s, bots.now = log_of(10, 1.0), at + 2.0
    assert bots.share(10.0, 63.0, 90.0) > 0.9


def test_while_a_step_is_tried_those_who_find_nobody_waiting_do_not_all_go_at_once() -> None:
    bots = Bots(log_of(20, 1.0))
    while not bots.estimator.is_probing:
        bots.run(bots.now + 0.5)
    went = 0
    for went in range(20):
        claim = a_read(f"more {went}")
        if bots.estimator.ready_at(claim, bots.now, is_paced=False) > bots.now:
            break
        bots.estimator.took(claim, bots.now, is_paced=False)
    assert went < 4


@pytest.mark.parametrize(("does_state", "resolution_s"), [(True, 0.0), (True, 1.0), (False, 0.0)])
def test_a_window_is_found_however_exactly_a_refusal_says_when_it_ends(
    does_state: bool,
    resolution_s: float,
) -> None:
    bots = Bots(fixed(20, 5.0), does_state=does_state, resolution_s=resolution_s)
    assert bots.share(4.0, 30.0, 200.0) > 0.9
    assert 1000 * bots.refused < 25 * bots.accepted


def test_a_bucket_is_known_by_what_it_refills_and_not_by_its_burst() -> None:
    bots = Bots(bucket(2.0, 100))
    assert bots.share(2.0, 60.0, 200.0) > 0.95
    [limit] = bots.estimator.limits
    assert limit.low == pytest.approx(2.0, rel=0.15)  # a step up takes long to be refused
    assert bots.refused <= 10


@pytest.mark.slow
@pytest.mark.parametrize("limiter", [bucket(20.0, 7), bucket(20.0, 20), log_of(20, 1.0), fixed(20, 1.0)])
def test_waits_in_whole_seconds_hide_neither_a_bucket_nor_a_short_window(limiter: Wait) -> None:
    bots = Bots(limiter, resolution_s=1.0)
    assert bots.share(20.0, 20.0, 95.0) > 0.91
    assert 1000 * bots.refused < 8 * bots.accepted


def test_reads_and_others_that_are_limited_apart_are_believed_apart() -> None:
    reads, others = log_of(30, 2.0, classes=(True,)), log_of(10, 2.0, classes=(False,))
    bots = Bots(lambda now, is_read: max(reads(now, is_read), others(now, is_read)))
    for share in (1, 8, 2, 7, 3, 9, 1, 6):
        bots.orders_of_ten = share
        bots.run(bots.now + 20.0)
    assert {limit.weights for limit in bots.estimator.limits} <= {(0.0, 1.0), (1.0, 0.0)}
    assert bots.estimator.counts_apart
    order = Claim("o", "a", Lane.ORDER, 1e9)
    assert bots.estimator.wait_per_cost_s(order, bots.now) == pytest.approx(0.2, rel=0.1)


@pytest.mark.slow
def test_what_an_order_costs_beside_a_read_is_found() -> None:
    bots = Bots(log_of(120, 4.0, cost=4.0), orders_of_ten=3)
    for share in (1, 6, 2, 8, 3, 7):
        bots.orders_of_ten = share
        bots.run(bots.now + 25.0)
    [limit] = bots.estimator.limits
    assert limit.weights[1] > 2 * limit.weights[0]


@pytest.mark.slow
def test_orders_alone_carry_the_step_so_that_no_wrong_limit_holds_them_for_good() -> None:
    before, after = log_of(20, 1.0), log_of(80, 1.0)
    bots = Bots(lambda now, is_read: (before if now < 5.0 else after)(now, is_read), orders_of_ten=10)
    assert bots.share(80.0, 140.0, 150.0) > 0.5


def test_beside_reads_no_order_carries_a_step() -> None:
    before, after = log_of(20, 1.0), log_of(200, 1.0)
    bots = Bots(lambda now, is_read: (before if now < 5.0 else after)(now, is_read), orders_of_ten=9)
    is_later = False
    while bots.now < 60.0:
        bots.run(bots.now + 0.3)
        if bots.estimator.is_probing:
            read, order = (
                bots.estimator.ready_at(
                    Claim("next", "a", lane, 1e9, is_read=lane is Lane.READ), bots.now, is_paced=True
                )
                for lane in (Lane.READ, Lane.ORDER)
            )
            assert read <= order
            is_later = is_later or read < order
    assert is_later
    assert bots.estimator.limits[0].low > 21


def test_a_step_that_hardly_anybody_takes_raises_nothing() -> None:
    bots = Bots(log_of(37, 1.0))
    while not bots.estimator.is_probing:
        bots.run(bots.now + 0.05)
    low = bots.estimator.limits[0].low
    for number in range(20):
        bots.now += 0.5
        claim = a_read(f"rare {number}")
        bots.estimator.took(claim, bots.now, is_paced=True)
        bots.estimator.accepted(claim, bots.now, bots.now + TRIP_S, is_scout=False)
    assert bots.estimator.limits[0].low == low


@pytest.mark.slow
def test_a_limit_that_halves_is_believed_after_a_few_refusals() -> None:
    before, after = fixed(20, 1.0), fixed(10, 1.0)
    bots = Bots(lambda now, is_read: (before if now < 60.0 else after)(now, is_read))
    bots.run(60.0)
    refused = bots.refused
    assert bots.share(10.0, 70.0, 120.0) > 0.9
    assert bots.refused - refused <= 8


def test_two_limits_are_believed_side_by_side() -> None:
    short, long = fixed(10, 1.0), fixed(120, 60.0)
    bots = Bots(lambda now, is_read: max(short(now, is_read), long(now, is_read)))
    assert bots.share(2.0, 120.0, 600.0) > 0.9


def test_one_stranger_does_not_lower_what_is_believed() -> None:
    bots = Bots(fixed(50, 1.0, lambda index: 25 if index == 40 else 0))
    bots.run(39.9)
    low = bots.estimator.limits[0].low
    bots.run(41.9)
    assert bots.estimator.limits[0].low > 0.9 * low


def test_published_limits_are_kept_to_and_not_probed_beyond() -> None:
    bots = Bots(log_of(40, 1.0), estimator=LimitEstimator((Quota(10, 1.0),)))
    assert bots.share(10.0, 10.0, 60.0) == pytest.approx(1.0, rel=0.03)
    assert not bots.estimator.is_probing


def test_a_published_limit_of_a_day_is_kept_to() -> None:
    estimator = LimitEstimator((Quota(10_100, 86_400.0),))
    for number in range(10_100):
        claim = Claim(str(number), "a", Lane.READ, 1e9)
        now = 5.0 * number
        assert estimator.ready_at(claim, now, is_paced=False) == now
        estimator.took(claim, now, is_paced=False)
        estimator.accepted(claim, now, now + TRIP_S, is_scout=False)
    assert estimator.ready_at(Claim("more", "a", Lane.READ, 1e9), 51_000.0, is_paced=False) >= 86_400.0


@pytest.mark.parametrize(("does_state", "most"), [(True, 12), (False, 40)])
def test_two_refusals_far_below_a_published_limit_refute_it(does_state: bool, most: int) -> None:
    estimator = LimitEstimator((Quota(60, 6.0), Quota(900, 60.0)))
    bots = Bots(fixed(24, 6.0), orders_of_ten=3, does_state=does_state, estimator=estimator)
    assert bots.share(4.0, 30.0, 300.0) > 0.9
    *learned, other = bots.estimator.limits
    assert {limit.refutes for limit in learned} == {Quota(60, 6.0)}
    assert min(limit.low for limit in learned) == pytest.approx(4.0, rel=0.05)
    assert (other.most, other.low, other.refutes) == (15.0, 15.0, None)
    assert bots.refused <= most


def test_a_stranger_for_a_while_refutes_a_published_limit_no_longer_than_that() -> None:
    bots = Bots(fixed(10, 1.0, lambda index: 5 * (index < 60)), estimator=LimitEstimator((Quota(10, 1.0),)))
    bots.run(60.0)
    [limit] = bots.estimator.limits
    assert limit.refutes is not None
    bots.run(600.0)
    [limit] = bots.estimator.limits
    assert (limit.refutes, limit.n, limit.low, limit.most) == (None, 10, 10.0, 10.0)


def test_a_published_limit_that_was_full_is_not_refuted() -> None:
    bots = Bots(fixed(10, 1.0, lambda index: index % 9 == 1), estimator=LimitEstimator((Quota(10, 1.0),)))
    bots.run(60.0)
    [limit] = bots.estimator.limits
    assert bots.refused
    assert (limit.refutes, limit.most) == (None, 10.0)


def test_what_a_reply_states_takes_the_place_of_what_is_published_unless_it_was_refuted() -> None:
    estimator = LimitEstimator((Quota(10, 1.0), Quota(100, 60.0)))
    estimator.stated((Quota(120, 60.0),), 0.0)
    estimator.stated((Quota(150, 60.0, is_least=True), Quota(130, 60.0, is_least=True)), 0.0)
    short, long = estimator.limits
    assert (short.n, short.refutes) == (10, None)
    assert (long.n, long.most, long.refutes) == (150, 2.5, Quota(100, 60.0))
    learned = Limit(50, 60.0, 50 / 60, refutes=Quota(100, 60.0))
    estimator.believe([learned])
    estimator.stated((Quota(100, 60.0),), 0.0)
    assert estimator.limits == [learned]
    estimator.stated((Quota(7, 2.0),), 0.0)
    assert [limit.n for limit in estimator.limits] == [7, 50]


def test_one_refusal_lowers_a_published_limit_to_half_of_it_at_the_most() -> None:
    waits = iter([1.0])
    bots = Bots(lambda _now, _is_read: next(waits, 0.0), estimator=LimitEstimator((Quota(100, 10.0),)))
    bots.run(2.0)
    [limit] = bots.estimator.limits
    assert bots.refused == 1
    assert 0.5 <= limit.low / limit.most < 1.0


def test_without_published_limits_what_was_learned_holds_again() -> None:
    estimator = LimitEstimator((Quota(10, 1.0),))
    estimator.publish((Quota(5, 1.0),))
    assert [limit.n for limit in estimator.limits] == [5]
    estimator.publish(())
    assert estimator.limits == []


def test_what_a_reply_says_is_left_holds_until_its_reset() -> None:
    estimator, read = LimitEstimator(), a_read("1")
    estimator.stated((Quota(math.inf, left=0.0, reset_s=3.0), Quota(math.inf, left=7.0, reset_s=9.0)), 1.0)
    assert estimator.ready_at(read, 1.0, is_paced=False) == 4.0
    assert estimator.spent_s(2.0) == 2.0
    assert estimator.ready_at(read, 5.0, is_paced=False) == 5.0


def test_counts_of_different_names_are_each_kept_to() -> None:
    estimator, read = LimitEstimator(), a_read("1")
    estimator.stated((Quota(math.inf, left=0.0, reset_s=3.0, name="orders"),), 1.0)
    estimator.stated((Quota(math.inf, left=1.0, reset_s=9.0, name="weight"),), 1.0)
    assert estimator.ready_at(read, 1.0, is_paced=False) == 4.0
    estimator.took(read, 4.0, is_paced=False)
    assert estimator.ready_at(read, 4.0, is_paced=False) == 10.0
    assert estimator.spent_s(4.0) == 0.0
    estimator.lost(read)
    assert estimator.spent_s(4.0) == 6.0


def busy(count: int, cost: int = 1, *, unanswered: int = 0) -> LimitEstimator:
    """Return what heard within a second of so many requests, of which all but the last were accepted."""
    estimator = LimitEstimator()
    claims = [Claim(str(number), "a", Lane.READ, 1e9, cost, is_read=True) for number in range(count)]
    for number, claim in enumerate(claims):
        estimator.took(claim, number / count, is_paced=False)
    for number, claim in enumerate(claims[: count - unanswered]):
        estimator.accepted(claim, number / count, 1.0, is_scout=False)
    return estimator


OF_A_PATH = (Quota(10, 60.0, name="a"), Quota(math.inf, left=0.0, reset_s=50.0, name="a"))


def test_a_stated_limit_that_busy_requests_went_far_beyond_does_not_hold_the_key() -> None:
    estimator = busy(31)
    estimator.stated(OF_A_PATH, 1.0)
    assert (estimator.limits, estimator.spent_s(1.0)) == ([], 0.0)
    estimator.stated(OF_A_PATH, 600.0)  # and not after a quiet time either
    assert (estimator.limits, estimator.spent_s(600.0)) == ([], 0.0)


def test_another_limit_stated_beside_it_holds() -> None:
    estimator = busy(31)
    estimator.stated((*OF_A_PATH, Quota(100, 60.0, name="b")), 1.0)
    assert [limit.n for limit in estimator.limits] == [100]


@pytest.mark.parametrize("estimator", [busy(30), busy(60, unanswered=31), busy(4, 10, unanswered=2)])
def test_a_stated_limit_that_a_burst_at_a_boundary_explains_holds(estimator: LimitEstimator) -> None:
    estimator.stated(OF_A_PATH, 1.0)
    assert [limit.n for limit in estimator.limits] == [10]


def test_limits_that_are_handed_over_are_kept_to() -> None:
    estimator = LimitEstimator()
    estimator.believe([Limit(2, 10.0, 0.2, 0.2)], at_a_time=3)
    assert estimator.at_a_time == 3
    reads = [a_read(str(number)) for number in range(3)]
    for read in reads[:2]:
        estimator.took(read, 1.0, is_paced=False)
    assert estimator.ready_at(reads[2], 1.0, is_paced=False) == pytest.approx(11.0, abs=0.1)


def test_what_would_be_tried_next_is_known_and_why_not_yet() -> None:
    bots = Bots(log_of(48, 3.0))
    bots.run(20.0)
    [limit] = bots.estimator.limits
    step = bots.estimator.next_step(limit, bots.now)
    assert step is not None
    assert step.rate > limit.low
    assert step.in_s >= 0.0
    assert step.accepted >= 0
    published = LimitEstimator((Quota(10, 1.0),))
    assert published.next_step(published.limits[0], 0.0) is None


def test_windows_that_replies_publish_are_kept_up_to_a_bound() -> None:
    estimator = LimitEstimator((Quota(10, 1.0),))
    for seconds in range(2, 14):
        estimator.stated((Quota(10.0 * seconds, float(seconds)),) * 2, 0.0)
    assert len(estimator.limits) <= 8
    assert (10, 1.0) in [(limit.n, limit.window) for limit in estimator.limits]


def test_what_was_not_sent_after_all_takes_no_place() -> None:
    estimator, read = LimitEstimator((Quota(1, 10.0),)), a_read("1")
    estimator.took(read, 1.0, is_paced=False)
    estimator.sent(read, 1.0, 2.0)
    estimator.sent(read, 9.0, 9.5)  # forgotten already
    assert estimator.used(estimator.limits[0], 2.0) == 1.0
    estimator.take_back(read, 2.0)
    assert estimator.ready_at(read, 2.0, is_paced=False) == 2.0
    estimator.took(read, 3.0, is_paced=False)
    estimator.lost(read)
    assert estimator.ready_at(read, 3.5, is_paced=False) > 12.0
    assert estimator.spent_s(3.5) == 0.0


def test_who_was_refused_before_anything_was_accepted_is_no_measure() -> None:
    bots = Bots(lambda now, _: max(0.0, 5.0 - now))
    bots.run(60.0 if bots.now else 5.5)
    assert bots.estimator.limits == []


@pytest.mark.parametrize("ban_s", [50.0, 300.0, 3600.0])
@pytest.mark.parametrize(
    ("gap_s", "before", "is_busy"), [(15.0, 5, False), (1.0, 30, True), (0.02, 1000, True)]
)
@pytest.mark.parametrize("does_state", [True, False])
def test_how_long_a_ban_lasts_says_nothing_of_the_limit(
    ban_s: float, gap_s: float, before: int, is_busy: bool, does_state: bool
) -> None:
    """Once it is over nobody waits for long, and whoever was busy before may be about as busy again."""
    estimator = LimitEstimator()
    numbers = count()

    def send(now: float) -> Claim:
        claim = a_read(str(next(numbers)))
        estimator.took(claim, now, is_paced=False)
        return claim

    for number in range(before):
        estimator.accepted(claim := send(number * gap_s), number * gap_s, number * gap_s, is_scout=False)
    banned_at = now = before * gap_s
    while now < banned_at + ban_s:
        until = banned_at + ban_s if does_state else now + max(0.5, now - banned_at)
        estimator.throttled(send(now), now, until, until - now if does_state else None, 1.0, is_ban=True)
        now = until
    estimator.accepted(claim := send(now), now, now + TRIP_S, is_scout=True)
    for _ in range(before):
        now += gap_s
        assert min(estimator.ready_at(claim, now, is_paced=is_paced) for is_paced in (False, True)) <= now + 2
        estimator.accepted(claim := send(now), now, now + TRIP_S, is_scout=False)
    assert not is_busy or all(limit.low > 0.3 / gap_s for limit in estimator.limits)


def test_stated_waits_that_contradict_each_other_are_not_learned_from() -> None:
    estimator = LimitEstimator()
    reads = [a_read(str(number)) for number in range(40)]
    for number, read in enumerate(reads[:20]):
        estimator.took(read, 0.01 * number, is_paced=False)
        estimator.accepted(read, 0.01 * number, 0.01 * number + 0.005, is_scout=False)
    for number, stated_s in enumerate((1.0, 9.0, 30.0, 90.0)):
        estimator.took(reads[20 + number], 0.2, is_paced=False)
        estimator.throttled(reads[20 + number], 0.2, 1.0, stated_s, 0.0)
    estimator.took(reads[30], 2.0, is_paced=True)
    estimator.accepted(reads[30], 2.0, 2.05, is_scout=True)
    assert estimator.limits[0].window < 3.0


class Single:
    """One read after another, of which the gateway makes each as fast as it likes."""

    def __init__(self, estimator: LimitEstimator) -> None:
        self.estimator = estimator
        self.now = 0.0
        self._ids = count()

    def accepted(self, number: int, gap_s: float, *, is_scout: bool = False) -> None:
        """Let so many be accepted, each so long after the one before."""
        for _ in range(number):
            claim = self._took()
            self.estimator.accepted(claim, self.now, self.now + 0.005, is_scout=is_scout)
            self.now += gap_s

    def refused(self, *stated_s: float) -> None:
        """Let one be refused for each stated wait, at once; the last wait is kept, and a scout accepted."""
        for wait_s in stated_s:
            self.estimator.throttled(self._took(), self.now, self.now + wait_s, wait_s, 0.0)
        self.now += stated_s[-1]
        self.accepted(1, 0.1, is_scout=True)

    def _took(self) -> Claim:
        claim = a_read(str(next(self._ids)))
        self.estimator.took(claim, self.now, is_paced=False)
        return claim


@pytest.mark.parametrize(("lies", "is_learned_from"), [(0, True), (1, True), (2, False), (3, False)])
def test_who_stated_contradictory_waits_twice_does_not_slow_the_pace_by_the_next_one(
    lies: int, *, is_learned_from: bool
) -> None:
    """Once may be a mistake. The waits themselves are kept to all the same."""
    single = Single(LimitEstimator())
    for _ in range(lies):
        single.accepted(20, 0.01)
        single.refused(1.0, 9.0)
    single.accepted(20, 0.01)
    single.refused(30.0)
    [limit] = single.estimator.limits
    assert limit.low < 2.0 if is_learned_from else limit.low > 50.0


def test_a_refusal_of_a_pace_that_held_costs_less_than_a_hundredth_of_it_and_not_nothing() -> None:
    """Somebody else uses a published limit, too: it is met again and again while too little is given way."""
    single = Single(LimitEstimator((Quota(100, 10.0),)))
    for refusals in range(1, 4):
        single.accepted(110, 0.09)
        single.refused(0.5)
        [limit] = single.estimator.limits
        assert 0.99**refusals < limit.low / 10.0 < 0.995**refusals


def test_what_was_kept_and_is_twice_the_limit_is_left_at_the_first_refusals() -> None:
    bots = Bots(log_of(10, 1.0))
    bots.estimator.believe([Limit(20, 1.0, 20.0, 20.0, seen=3)])
    assert bots.share(10.0, 20.0, 60.0) > 0.9
    assert bots.refused <= 8


def test_the_spread_leaves_out_the_slowest() -> None:
    trips = RoundTrips()
    assert trips.spread_s == 0.005
    for index in range(20):
        trips.add(5.0 if index == 7 else 0.040 + 0.001 * (index % 10))
    assert trips.spread_s == pytest.approx(0.009)


def test_the_spread_follows_a_change() -> None:
    trips = RoundTrips()
    for seconds in [0.1, 0.2] * 30 + [0.04] * 60:
        trips.add(seconds)
    assert trips.spread_s == 0.0


def test_waits_that_are_stated_in_whole_seconds_are_intersected() -> None:
    event = ThrottleEvent(10.0, 10.01, is_read=True, tried=None)
    event.add(10.0, 1.0, 3.0, 1.0)
    event.add(10.6, 1.0, 3.0, 1.0)
    assert (event.earliest, event.latest) == (12.6, 13.0)
    event.ended(12.8)
    assert (event.earliest, event.latest, event.wait_s) == (12.6, 12.8, 12.6 - 10.0)


def test_what_may_have_overtaken_the_first_belongs_before_it() -> None:
    event = ThrottleEvent(10.0, 10.02, is_read=True, tried=None)
    event.add(10.01, 1.0, None, 1.0)
    assert event.refused_at == 10.01


def test_without_a_stated_wait_the_last_refusal_is_the_earliest() -> None:
    event = ThrottleEvent(10.0, 10.0, is_read=True, tried=None)
    event.add(10.0, 1.0, None, 1.0)
    event.add(11.0, 1.0, None, 1.0)
    assert (event.earliest, event.latest) == (11.0, math.inf)
    event.ended(12.0)
    assert event.ended_at == 11.5


def test_a_refusal_after_the_stated_end_begins_a_new_interval() -> None:
    event = ThrottleEvent(10.0, 10.0, is_read=True, tried=None)
    event.add(10.0, 1.0, 1.0, 0.0)
    event.add(11.5, 1.0, 2.0, 0.0)
    assert (event.earliest, event.latest) == (13.5, 13.5)


def test_two_waits_that_cannot_both_be_true_say_nothing() -> None:
    event = ThrottleEvent(10.0, 10.0, is_read=True, tried=None)
    event.add(10.0, 1.0, 5.0, 0.0)
    event.add(10.0, 1.0, 5.4, 0.0)
    assert event.latest == 15.0
    event.add(10.1, 1.0, 9.0, 0.0)
    event.add(10.2, 1.0, 5.0, 0.0)
    event.ended(19.0)
    assert event.is_lie
    assert (event.earliest, event.latest) == (10.2, 19.0)


CAP_TRIP_S = 0.1


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
                claim = a_read(str(number))
                is_scout = self.estimator.needs_scout
                if is_scout and self.flying:
                    break
                if self.estimator.ready_at(claim, self.now, is_paced=self.is_paced) > self.now:
                    self.is_paced = True
                    break
                self.estimator.took(claim, self.now, is_paced=self.is_paced)
                running = sum(one[4] for one in self.flying)
                flight = (self.now + CAP_TRIP_S, number, claim, self.now, running < self.cap, is_scout)
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
                    self.estimator.throttled(claim, sent_at, self.paused_until, 1.0, 1.0)


def test_a_cap_is_found_by_how_many_are_in_flight_at_a_refusal() -> None:
    crowd = Crowd(12, 5)
    crowd.run(60.0)
    assert crowd.estimator.at_a_time == 5
    assert crowd.estimator.limits == []
    assert crowd.accepted > 0.9 * 5 * 60 / (CAP_TRIP_S + 0.01)


@pytest.mark.slow
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
    first, second = (a_read(name) for name in "ab")
    estimator.took(first, 0.0, is_paced=False)
    assert estimator.ready_at(second, 0.0, is_paced=False) == float("inf")
    estimator.accepted(first, 0.0, 0.1, is_scout=False)
    assert estimator.ready_at(second, 0.1, is_paced=False) == 0.1


def test_whatever_was_sent_a_moment_after_a_refused_request_may_have_arrived_before() -> None:
    estimator = LimitEstimator()
    claims = [a_read(name) for name in "abcdefg"]
    for at, claim in zip((0.0, 0.0, 0.0, 0.0, 0.0, 0.001, 0.05), claims, strict=True):
        estimator.took(claim, at, is_paced=False)
    estimator.throttled(claims[4], 0.0, 1.0, 1.0, 1.0)
    for claim in [*claims[:4], *claims[5:]]:
        estimator.accepted(claim, 0.0, 0.1, is_scout=False)
    scout = a_read("s")
    estimator.took(scout, 1.1, is_paced=False)
    estimator.accepted(scout, 1.1, 1.2, is_scout=True)
    assert estimator.at_a_time == 5


def test_a_published_limit_leaves_no_room_for_guesses_about_others() -> None:
    """A class that no published limit counts was refused: that is nothing to learn from."""
    estimator, read = LimitEstimator((Quota(10, 1.0),)), a_read("1")
    estimator.limits[0].weights = (0.0, 1.0)
    estimator.took(read, 0.0, is_paced=False)
    estimator.throttled(read, 0.0, 1.0, 1.0, 0.0)
    estimator.took(read, 1.0, is_paced=True)
    estimator.accepted(read, 1.0, 1.1, is_scout=True)
    assert [(limit.n, limit.low) for limit in estimator.limits] == [(10, 10.0)]
