"""Whole runs in virtual time: several gateways on one key do as well as one, also while Redis is away."""

from dataclasses import replace

import pytest

from bench.limits_figures import Figures, figures
from bench.limits_gateway import Gateway
from bench.limits_limiters import FixedFromFirst
from bench.limits_matrix import saturated
from bench.limits_world import Bot, Log, Scenario, World
from bench.shared_cluster import Cluster

SECONDS = 40.0
SEED = 5


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


def test_redis_away_for_ten_seconds_stops_nobody_and_nobody_bursts_after() -> None:
    plan = scenario("fixed 20/1s")
    log, cluster = run_shared(plan, 4, (20.0, 30.0))
    per_s = [sum(1 for at, _ in log.accepted if second <= at < second + 1) for second in range(int(SECONDS))]
    assert min(per_s[21:30]) >= 8  # each at eight tenths of a quarter
    assert min(per_s[33:]) >= 15
    assert sum(1 for at in log.refused if 20.0 <= at < 32.0) <= 4
    assert cluster.inside_known_pause == 0
    assert [node.seat.status().degraded for node in cluster.nodes] == [None] * 4
    assert sum(node.seat.is_lead for node in cluster.nodes) == 1


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
    assert cluster.table.visits < 12 * len(log.accepted)
