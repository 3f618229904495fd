"""Properties of whole runs: bots, a network with jitter and a limiter that knows nothing of the pacer."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rig.limits_figures import figures
from rig.limits_gateway import Gateway
from rig.limits_limiters import (
    Apart,
    Ban,
    Concurrency,
    Fixed,
    FixedFromFirst,
    LeakyQueue,
    Limiter,
    SlidingCounter,
    SlidingLog,
    Stacked,
    TokenBucket,
)
from rig.limits_world import Bot, Chance, Scenario, World
from rig.pacing import settings_of
from sealgate.limits.quotas import Quota

LIMITERS: dict[str, Callable[[Chance], Limiter]] = {
    "fixed": lambda chance: Fixed(20, 1.0, chance.random()),
    "from first": lambda _: FixedFromFirst(20, 1.0),
    "log": lambda _: SlidingLog(20, 1.0),
    "counter": lambda _: SlidingCounter(20, 1.0),
    "bucket": lambda _: TokenBucket(20.0, 20),
    "gcra": lambda _: TokenBucket(20.0, 1),
    "leaky": lambda _: LeakyQueue(20.0),
    "concurrency": lambda _: Concurrency(4),
    "stacked": lambda _: Stacked(SlidingLog(20, 1.0), Fixed(100, 10.0)),
    "apart": lambda _: Apart(SlidingLog(20, 1.0), SlidingLog(10, 1.0)),
    "ban": lambda _: Ban(Fixed(20, 1.0), 8, 5.0),
}
SATURATED = (
    Bot("a", slots=8, think_s=0.3, weight=1),
    Bot("b", slots=8, think_s=0.3, weight=2),
    Bot("c", slots=8, think_s=0.3, weight=1, costs=(("order", 2),)),
    Bot("cancels", slots=1, think_s=1.0, lanes=("cancel",)),
)
SEEDS = st.integers(0, 10**6)
_ROUND_TRIP_S = 0.08  # at the most, with the service
FEW = settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("kind", LIMITERS)
@settings(FEW, max_examples=3)
@given(
    SEEDS,
    st.sampled_from(["exact", "rounded", "absent", "wrong", "date"]),
    st.booleans(),
    st.sampled_from([0.0, 0.3]),
)
def test_nothing_is_sent_inside_a_pause(
    kind: str, seed: int, retry_after: str, do_rejects_count: bool, foreign: float
) -> None:
    scenario = Scenario(
        kind,
        LIMITERS[kind],
        20.0,
        1.0,
        SATURATED,
        15.0,
        retry_after,
        do_rejects_count,
        foreign,
        service_s=0.01,
    )
    log = World(scenario, Gateway(seed, is_exact=retry_after == "exact"), seed).run()
    assert log.inside_pause == 0
    assert log.accepted


PATIENT = ("fixed", "from first", "log", "counter", "bucket", "stacked", "ban")


@FEW
@example("bucket", 39, "exact")  # believed at 30 per second, from three refusals of one bot's burst
@example("bucket", 25, "absent")
@example("bucket", 19, "exact")  # a step up held by what was saved up: refused at each step down from there
@example("fixed", 3, "rounded")
@example("counter", 24, "rounded")
@given(st.sampled_from(PATIENT), SEEDS, st.sampled_from(["exact", "rounded", "absent", "date"]))
def test_an_exchange_that_bans_the_often_refused_is_not_provoked(
    kind: str, seed: int, retry_after: str
) -> None:
    """What was under way beside the first refusal is refused before anybody can know: it counts as one."""
    scenario = Scenario(kind, LIMITERS[kind], 20.0, 1.0, SATURATED, 40.0, retry_after, service_s=0.01)
    log = World(scenario, Gateway(seed, is_exact=retry_after == "exact"), seed).run()
    volleys: list[float] = []
    for at in log.refused:
        if not volleys or at > volleys[-1] + _ROUND_TRIP_S:
            volleys.append(at)
    assert max((sum(first <= at <= first + 10.0 for at in volleys) for first in volleys), default=0) < 8


@FEW
@given(st.sampled_from(["fixed", "log", "bucket"]), SEEDS, st.booleans())
def test_nobody_waits_while_the_demand_is_under_the_limit(kind: str, seed: int, is_known: bool) -> None:
    # Four bots, each five at once and not again within a second: never more than 20 in any second.
    bots = tuple(Bot(name, burst=5, every_s=1.8) for name in "abcd")
    known = settings_of(*[Quota(20, 1.0)] * is_known)
    scenario = Scenario(kind, LIMITERS[kind], 20.0, 1.0, bots, 30.0)
    log = World(scenario, Gateway(seed, settings=known), seed).run()
    assert log.refused == []
    assert max(wait for _, _, wait in log.waits) == 0.0


@FEW
@given(st.sampled_from(["fixed", "log", "bucket"]), SEEDS)
def test_shares_go_by_weight(kind: str, seed: int) -> None:
    scenario = Scenario(kind, LIMITERS[kind], 20.0, 1.0, SATURATED, 60.0)
    found = figures(scenario, World(scenario, Gateway(seed), seed).run())
    assert found.jain > 0.97


@FEW
@given(SEEDS, st.integers(1, 20))
def test_the_line_never_holds_more_than_it_may(seed: int, queue: int) -> None:
    """It is what fits into it, and what each bot that comes to a full line has as its part."""
    gateway = Gateway(seed, settings=settings_of(Quota(5, 1.0), queue=queue))
    world = World(Scenario("log", LIMITERS["log"], 5.0, 1.0, SATURATED, 10.0), gateway, seed)
    world.run()
    assert sum(gateway.pacer.status(10.0).waiting.values()) <= sum(
        queue // number for number in range(1, len(SATURATED) + 1)
    )
    assert world.log.dropped > 0


@FEW
@given(st.sampled_from(["fixed", "stacked", "concurrency"]), SEEDS, st.floats(0.05, 2.0))
def test_nobody_is_kept_beyond_its_deadline(kind: str, seed: int, wait_s: float) -> None:
    scenario = Scenario(kind, LIMITERS[kind], 20.0, 1.0, SATURATED, 15.0, service_s=0.05)
    log = World(scenario, Gateway(seed, wait_s=wait_s), seed).run()
    assert max(wait for _, _, wait in log.waits) <= wait_s


@pytest.mark.parametrize("height", [10, 40])
def test_a_limit_that_changes_is_found_again(height: int) -> None:
    scenario = Scenario("log", LIMITERS["log"], 20.0, 1.0, SATURATED, 200.0)
    changed = replace(scenario, change=(60.0, lambda _: SlidingLog(height, 1.0), float(height)))
    gateway = Gateway(1)
    World(changed, gateway, 1).run()
    (limit,) = gateway.pacer.pools.at("all").status(200.0).limits
    assert limit.n / limit.window_s == pytest.approx(height, rel=0.15)
