"""Whole runs in virtual time: several gateways on one key do as well as one, also while Redis is away."""

from collections.abc import Callable
from dataclasses import replace
from statistics import median

import pytest

from rig.limits_figures import Figures, figures
from rig.limits_gateway import Gateway
from rig.limits_limiters import Fixed, FixedFromFirst, Limiter, TokenBucket
from rig.limits_matrix import saturated
from rig.limits_world import Bot, Chance, Client, Log, Scenario, World
from rig.shared_cluster import Cluster

SECONDS = 40.0
SEED = 5


def _fixed(chance: Chance) -> Limiter:
    return Fixed(20, 0.5, 0.5 * chance.random())


def _bucket(_: Chance) -> Limiter:
    return TokenBucket(40.0, 20)


def scenario(name: str) -> Scenario:
    return replace(saturated(name), seconds=SECONDS)


def run_shared(one: Scenario, count: int, cut_off: tuple[float, float] | None = None) -> tuple[Log, Cluster]:
    cluster = Cluster(count, SEED, lambda job: job.id % count)
    if cut_off is not None:
        cluster.cut_off = cut_off
    return World(one, cluster, SEED).run(), cluster


@pytest.mark.parametrize("name", ["fixed 20/1s", "token bucket 20/s burst 20"])
def test_four_do_as_well_as_one(name: str) -> None:
    plan = scenario(name)
    alone = figures(plan, World(plan, Gateway(SEED), SEED).run())
    log, cluster = run_shared(plan, 4)
    shared: Figures = figures(plan, log)
    assert shared.goodput >= 0.95 * alone.goodput
    assert len(log.refused) <= 1.5 * alone.refused_all * len(log.accepted) / 1000 + 2  # few: one more is much
    assert shared.jain >= 0.99
    assert cluster.inside_known_pause == 0


@pytest.mark.parametrize("make", [_fixed, _bucket])
def test_a_first_flood_over_loopback_costs_four_no_more_than_one(make: Callable[[Chance], Limiter]) -> None:
    """The way to the exchange is as short as that over Redis, and what is sent at once comes in any order."""
    bots = tuple(Bot(f"bot{number}", 12, weight=weight) for number, weight in enumerate((1, 1, 2)))
    plan = Scenario("loopback", make, 40.0, 0.5, bots, 12.0)

    def accepted(make_client: Callable[[int], Client]) -> float:
        worlds = (World(plan, make_client(seed), seed, way_s=0.0005, tail_s=0.002) for seed in range(3))
        return median(len(world.run().accepted) for world in worlds)

    four = accepted(lambda seed: Cluster(4, seed, lambda job: job.id % 4))
    assert four >= 0.95 * accepted(Gateway)


def test_redis_away_for_ten_seconds_stops_nobody_and_nobody_bursts_after() -> None:
    plan = scenario("fixed 20/1s")
    log, cluster = run_shared(plan, 4, (20.0, 30.0))
    per_s = [sum(1 for at, _ in log.accepted if second <= at < second + 1) for second in range(int(SECONDS))]
    assert min(per_s[21:30]) >= 8  # each at eight tenths of a quarter
    assert min(per_s[33:]) >= 15
    assert sum(1 for at in log.refused if 20.0 <= at < 32.0) <= 4
    assert cluster.inside_known_pause == 0
    assert [node.member.status().degraded for node in cluster.nodes] == [None] * 4
    assert sum(node.member.is_leader for node in cluster.nodes) == 1


def test_a_pause_that_is_known_holds_while_redis_dies() -> None:
    """The one limit there is lasts long, so that nearly all of the time is a pause."""
    bots = tuple(Bot(f"bot{number}", 4, 0.01) for number in range(4))
    plan = Scenario("long pauses", lambda _: FixedFromFirst(30, 5.0), 6.0, 5.0, bots, SECONDS)
    for since in (0.5, 1.5, 6.2):
        log, cluster = run_shared(plan, 4, (since, since + 2.0))
        assert log.refused
        assert cluster.inside_known_pause == 0


def test_calls_to_redis_are_few_where_many_share() -> None:
    plan = replace(scenario("fixed 20/1s"), seconds=15.0)
    log, cluster = run_shared(plan, 32)
    assert cluster.group.heartbeats < 12 * len(log.accepted)
