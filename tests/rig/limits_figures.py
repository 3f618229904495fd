"""The figures of one run, taken from what the server saw and what the bots waited."""

import math
from dataclasses import dataclass
from itertools import pairwise

from rig.limits_world import Log, Scenario

_WITHIN = 0.10  # a window counts as reached when it carries its allowance but a tenth


@dataclass(frozen=True, slots=True)
class Figures:
    """One run. NaN stands for what the run does not show."""

    goodput: float  # percent of the allowance, after learning
    refused: float  # 429s per 1000 accepted, after learning
    refused_all: float  # the same over the whole run
    stall: float  # seconds, the longest without an accepted request, after learning
    inside_pause: int
    wait_p99: float  # added wait in ms while the demand is under the limit
    jain: float  # of accepted cost per weight
    cancel_p99: float  # ms
    windows: float  # until the first window within 10 %


def figures(scenario: Scenario, log: Log) -> Figures:
    start = learned_at(scenario)
    end, bursts_from = scenario.seconds, scenario.bursts_from
    allowance = _allowance(scenario, start) - sum(1 for at in log.foreign if at >= start)
    accepted = [(at, job) for at, job in log.accepted if at >= start]
    cost = sum(job.cost for _, job in accepted)
    return Figures(
        goodput=100 * cost / allowance if bursts_from is None else math.nan,
        refused=_per_1000(sum(1 for at in log.refused if at >= start), len(accepted)),
        refused_all=_per_1000(len(log.refused), len(log.accepted)),
        stall=_longest_gap([start, *(at for at, _ in accepted), end]) if bursts_from is None else math.nan,
        inside_pause=log.inside_pause,
        wait_p99=_p99(
            [wait for born, _, wait in log.waits if bursts_from is not None and born >= bursts_from]
        ),
        jain=jain(scenario, log, start),
        cancel_p99=_p99([wait for born, lane, wait in log.waits if born >= start and lane == "cancel"]),
        windows=_windows_until(scenario, log) if bursts_from is None else math.nan,
    )


def learned_at(scenario: Scenario) -> float:
    """Three windows, and at least ten seconds; from the change on, where the limit changes."""
    since = scenario.change[0] if scenario.change else 0.0
    return since + max(3 * scenario.window, 10.0)


def _allowance(scenario: Scenario, start: float) -> float:
    rate = scenario.change[2] if scenario.change else scenario.allowance
    return rate * (scenario.seconds - start)


def _per_1000(count: int, of: int) -> float:
    return 1000 * count / of if of else math.inf


def _longest_gap(times: list[float]) -> float:
    times.sort()
    return max(later - earlier for earlier, later in pairwise(times))


def _p99(values: list[float]) -> float:
    return 1000 * sorted(values)[int(0.99 * len(values))] if values else math.nan


def jain(scenario: Scenario, log: Log, start: float) -> float:
    """Return Jain's index (1984): 1 is fair, 1/n is all for one."""
    got = dict.fromkeys((bot.name for bot in scenario.bots if bot.slots and bot.lanes != ("cancel",)), 0.0)
    for at, job in log.accepted:
        if at >= start and job.bot in got:
            got[job.bot] += job.cost / job.weight
    squares = sum(value * value for value in got.values())
    return sum(got.values()) ** 2 / (len(got) * squares) if len(got) > 1 and squares else math.nan


def _windows_until(scenario: Scenario, log: Log) -> float:
    """Windows (of one second at least) until the first that carries its allowance within a tenth."""
    span = max(scenario.window, 1.0)
    since = scenario.change[0] if scenario.change else 0.0
    rate = (scenario.change[2] if scenario.change else scenario.allowance) * (1 - scenario.foreign)
    counts: dict[int, int] = {}
    for at, job in log.accepted:
        if at >= since:
            index = int((at - since) / span)
            counts[index] = counts.get(index, 0) + job.cost
    reached = (index for index in sorted(counts) if counts[index] >= (1 - _WITHIN) * rate * span)
    return next(reached, math.inf)
