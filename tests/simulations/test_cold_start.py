"""The bots of the demo meet a limit that nobody knows yet: one of them floods it from its first moment."""

from statistics import median

import pytest

from rig.limits_gateway import Gateway
from rig.limits_limiters import Fixed
from rig.limits_world import Bot, Chance, Scenario, World

_LIMIT, _SECONDS, _SEEDS = 20, 15.0, range(8)
_BOTS = (
    Bot("quick", slots=1, think_s=0.2, weight=4, lanes=("read",) * 5 + ("order",)),
    Bot("slow", slots=1, think_s=1.0, weight=2, lanes=("order",)),
    Bot("flood", slots=8, lanes=("read",)),
    Bot("cancel", slots=1, think_s=0.25, weight=2, lanes=("order", "cancel")),
)


def _phased(chance: Chance) -> Fixed:
    return Fixed(_LIMIT, 1.0, chance.random())


def _used(seed: int, way_s: float, tail_s: float) -> float:
    """Run the demo; return the part of the limit that was accepted."""
    scenario = Scenario("demo", _phased, float(_LIMIT), 1.0, _BOTS, _SECONDS, "rounded")
    world = World(scenario, Gateway(seed, is_exact=False), seed, way_s=way_s, tail_s=tail_s)
    return len(world.run().accepted) / (_LIMIT * _SECONDS)


@pytest.mark.parametrize(
    ("way_s", "tail_s", "least"),
    [(0.0004, 0.0001, 0.9), (0.0015, 0.001, 0.9), (0.018, 0.002, 0.85)],
    ids=["1 ms", "5 ms", "40 ms"],
)
def test_most_of_the_limit_is_used_from_the_start(way_s: float, tail_s: float, least: float) -> None:
    """At 40 ms a burst may lie across an edge of the window, and what it held looks like twice the limit."""
    used = [_used(seed, way_s, tail_s) for seed in _SEEDS]
    assert median(used) >= 0.95
    assert min(used) >= least
