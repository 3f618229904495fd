"""The plan: 1, 4, 32 and 256 gateways on one key, in virtual time.

Each request comes to another gateway than the one before, so that all bots are at all gateways: nothing could
be further from a bot that has its own. A call to Redis takes `HOP_S` either way, as on a local network.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import mean

from bench.pages import table
from rig import limits_matrix as matrix
from rig.limits_figures import Figures, figures
from rig.limits_gateway import Gateway
from rig.limits_world import Scenario, World
from rig.shared_cluster import Cluster

COUNTS = (1, 4, 32, 256)
KINDS = ("fixed 20/1s", "sliding log 20/1s", "token bucket 20/s burst 20")
_SEEDS = (11, 12)
_SECONDS = 100.0
_HEAD = (
    "limiter",
    "gateways",
    "goodput %",
    "429s per 1000",
    "429s per 1000, learning too",
    "longest stall s",
    "sent in a pause",
    "Jain",
    "cancel p99 ms",
    "Redis calls per request",
)


def measure(*, is_quick: bool) -> str:
    kinds, counts = (KINDS[:1], COUNTS[:2]) if is_quick else (KINDS, COUNTS)
    return table(_HEAD, (row for name in kinds for row in rows(name, counts)))


def rows(name: str, counts: tuple[int, ...]) -> Iterator[tuple[str, ...]]:
    scenario = replace(matrix.saturated(name), seconds=_SECONDS)
    alone = [figures(scenario, World(scenario, Gateway(seed), seed).run()) for seed in _SEEDS]
    yield cells(name, "1, no Redis", alone, [0.0])
    for count in counts:
        found = [run(scenario, count, seed) for seed in _SEEDS]
        yield cells(name, str(count), [one for one, _ in found], [calls for _, calls in found])


def run(scenario: Scenario, count: int, seed: int) -> tuple[Figures, float]:
    """Return the figures, and the calls to Redis per request that was sent."""
    cluster = Cluster(count, seed, lambda job: job.id % count)
    log = World(scenario, cluster, seed).run()
    return figures(scenario, log), cluster.group.heartbeats / (len(log.accepted) + len(log.refused))


def cells(name: str, gateways: str, found: Sequence[Figures], calls: Sequence[float]) -> tuple[str, ...]:
    return (
        name,
        gateways,
        f"{mean(one.goodput for one in found):.1f}",
        f"{mean(one.refused for one in found):.1f}",
        f"{mean(one.refused_all for one in found):.1f}",
        f"{max(one.stall for one in found):.2f}",
        f"{sum(one.inside_pause for one in found)}",
        f"{mean(one.jain for one in found):.4f}",
        f"{max(one.cancel_p99 for one in found):.0f}",
        f"{mean(calls):.1f}",
    )
