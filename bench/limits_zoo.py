"""The zoo: random limiters, networks, bots and troubles, drawn from a seed; `scripts/bench limits --zoo`.

Cell K of seed S is the same cell for every client and on every machine. The seeds that an estimator was tuned
on say little about it: seeds from 100 on are kept for the figures that are published.
"""

import json
import math
import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from statistics import median, quantiles

from bench.limits_rivals import Aimd, AimdBucket, Botocore, OnlyRetryAfter
from rig.limits_figures import jain
from rig.limits_gateway import Gateway
from rig.limits_limiters import (
    Apart,
    Ban,
    Concurrency,
    Fixed,
    FixedFromFirst,
    Limiter,
    SlidingCounter,
    SlidingLog,
    Stacked,
    TokenBucket,
)
from rig.limits_world import Answer, Bot, Chance, Client, Job, Log, Scenario, World
from sealgate.limits import ALL, OTHERS, READS, Limit, Weights
from sealgate.limits.claims import Claim

PLAIN = ("fixed", "from first", "sliding log", "sliding counter", "token bucket", "GCRA")
KINDS = (*PLAIN, "stacked", "concurrency", "apart", "costs")
_ROUND_N = (3, 5, 10, 20, 30, 50, 60, 100, 120, 200, 300, 500, 600, 1000, 1200, 2000, 3000)
_ROUND_W = (0.5, 1, 2, 3, 5, 10, 15, 30, 60, 120, 300, 600)
_WINDOWS = 20  # a run has that many at least, before a change and after it
_LEAST_S = 60.0
_FASTEST = 150.0  # requests per second, and in all: what can be run in a few seconds
_MOST = 25_000.0
_PROCESSES = 2


@dataclass(frozen=True, slots=True)
class Height:
    """How high a limiter is; `parts`: what it grants per second, of reads and orders where they are apart.

    `known` and `at_a_time` are what somebody who knew the limiter would say of it.
    """

    make: Callable[[Chance], Limiter]
    known: tuple[Limit, ...]
    parts: tuple[float, ...]
    at_a_time: int | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """A scenario, and what it takes to judge it."""

    kind: str
    scenario: Scenario
    before: Height
    after: Height
    demand: float  # requests or cost per second that the bots ask for, in all
    read_share: float  # of the demand
    wait_s: float  # how long a request may wait
    is_plain: bool


@dataclass(frozen=True, slots=True)
class ZooFigures:
    """One client in one cell, after three windows and at least ten seconds."""

    goodput: float  # percent of what both the limiter and the demand allow
    refused: float  # 429s per 1000 accepted
    stall: float  # seconds, the longest without an accepted request while one waited
    overstall: float  # of it, beyond what was stated, or beyond a window
    inside_pause: int
    cancel_p99: float  # ms beyond a stated pause
    jain: float
    in_target: bool


def draw(seed: int, index: int) -> Cell:
    """Return a cell."""
    chance = random.Random(f"{seed}/{index}")
    while True:
        cell = _draw(chance, f"{seed}/{index}")
        rate = sum(cell.before.parts)
        most = max(rate, sum(cell.after.parts))
        if most < _FASTEST and most * cell.scenario.seconds < _MOST:
            return cell


def _draw(chance: Chance, name: str) -> Cell:
    kind = chance.choice(KINDS)
    is_round = chance.random() < 1 / 3
    n = chance.choice(_ROUND_N) if is_round else round(log_uniform(chance, 3, 3000))
    window = float(chance.choice(_ROUND_W)) if is_round else log_uniform(chance, 0.3, 600)
    way_s = log_uniform(chance, 0.001, 0.125)
    tail_s = way_s * (0.05 if chance.random() < 0.7 else 0.4)
    spikes = 0.003 if chance.random() < 0.2 else 0.0
    service_s = log_uniform(chance, 0.01, 0.3) if kind == "concurrency" else 0.0
    if kind == "concurrency":
        n, window = round(log_uniform(chance, 2, 40)), 1.0
    trip_s = 2 * (way_s + tail_s) + service_s
    shape = random.Random(chance.random())
    state = shape.getstate()
    after_n = n
    before = after = height_of(kind, n, window, trip_s, shape)
    is_changing = chance.random() < 0.25 and kind != "concurrency"
    if is_changing:
        shape.setstate(state)
        after_n = max(1, round(n * log_uniform(chance, 0.3, 3)))
        after = height_of(kind, after_n, window, trip_s, shape)
    window = max([window, *(limit.window for limit in before.known)])
    is_banning = chance.random() < 0.1
    ban = chance.randrange(5, 20), log_uniform(chance, 5, 60)
    half_s = max(_WINDOWS * window, _LEAST_S)
    rate = sum(before.parts)
    factor = chance.choice((0.7, 1.2, 3.0))
    # Where the limit rises, the demand would be under it: it is taken of the higher one.
    demand = factor * max(rate, sum(after.parts))
    read_share = chance.randrange(3, 8) / 10
    bots = _bots(chance, demand, trip_s, window, read_share)
    # What the bots ask for costs more where costs are hidden.
    costs = (("order", min(chance.randrange(2, 6), n, after_n)),) if kind == "costs" else ()
    mean = 1 + (1 - read_share) * (costs[0][1] - 1) if costs else 1.0
    if costs:
        bots = [_slower(bot, mean) for bot in bots]
    foreign = chance.uniform(0.05, 0.5) if chance.random() < 0.3 and kind != "concurrency" else 0.0
    bots = [replace(bot, costs=costs) for bot in bots]
    cancels_s = max(2.0, 20 / rate)
    bots.append(Bot("cancels", slots=1, think_s=cancels_s, lanes=("cancel",)))
    style = chance.choice(("exact", "exact", "rounded", "date", "absent", "wrong"))

    def limiter(height: Height) -> Callable[[Chance], Limiter]:
        return lambda chance: Ban(height.make(chance), *ban) if is_banning else height.make(chance)

    scenario = Scenario(
        f"{name} {kind} {n}/{window:.3g}s",
        limiter(before),
        rate,
        window,
        tuple(bots),
        half_s * (2 if is_changing else 1),
        retry_after=style,
        do_rejects_count=chance.random() < 0.3 and kind != "concurrency",
        foreign=foreign,
        change=(half_s, limiter(after), sum(after.parts)) if is_changing else None,
        service_s=service_s,
        way_s=way_s,
        tail_s=tail_s,
        spikes=spikes,
        foreign_burst_s=2 * window * chance.random() if chance.random() < 0.5 else 0.0,
        are_costs_hidden=bool(costs),
    )
    troubles = (is_changing, is_banning, bool(foreign), style == "wrong")
    words = [
        f"x{factor}",
        "bursts" if bots[0].burst else "",
        style,
        f"{1000 * trip_s:.0f}ms",
        "spikes" if spikes else "",
        "counted" if scenario.do_rejects_count else "",
        f"-> {sum(after.parts) / rate:.2f}" if is_changing else "",
        "ban" if is_banning else "",
        f"foreign {foreign:.2f}{' bursts' if scenario.foreign_burst_s else ''}" if foreign else "",
    ]
    scenario = replace(scenario, name=" ".join([scenario.name, *filter(None, words)]))
    wait_s = max(30.0, 3 / rate)
    is_plain = kind in PLAIN and not any(troubles)
    return Cell(kind, scenario, before, after, demand + 1 / cancels_s, read_share, wait_s, is_plain)


def log_uniform(chance: Chance, low: float, high: float) -> float:
    return math.exp(chance.uniform(math.log(low), math.log(high)))


def height_of(kind: str, n: int, window: float, trip_s: float, shape: Chance) -> Height:
    rate, one = n / window, (_limit(n, window),)
    if kind == "token bucket":
        return Height(lambda _: TokenBucket(rate, n), one, (rate,))
    if kind == "GCRA":
        burst = min(n, shape.randrange(1, 11))
        return Height(lambda _: TokenBucket(rate, burst), (_limit(burst, burst / rate),), (rate,))
    if kind == "concurrency":
        return Height(lambda _: Concurrency(n), (), (n / trip_s,), at_a_time=n)
    inner = _window(shape.choice(("fixed", "from first", "sliding log")) if kind not in PLAIN else kind)
    if kind == "stacked":
        times, part = shape.uniform(5, 60), shape.uniform(0.3, 0.9)
        long_n, long_s = max(1, round(n * times * part)), window * times
        limits = (*one, _limit(long_n, long_s))
        return Height(
            lambda chance: Stacked(inner(chance, n, window), inner(chance, long_n, long_s)),
            limits,
            (min(rate, long_n / long_s),),
        )
    if kind == "apart":
        others = max(1, round(n * log_uniform(shape, 1 / 3, 3)))
        return Height(
            lambda chance: Apart(inner(chance, n, window), inner(chance, others, window)),
            (_limit(n, window, READS), _limit(others, window, OTHERS)),
            (rate, others / window),
        )
    return Height(lambda chance: inner(chance, n, window), one, (rate,))


def _limit(n: float, window: float, weights: Weights = ALL) -> Limit:
    rate = n / window
    return Limit(n, window, rate, rate, weights, most=rate)


def _window(kind: str) -> Callable[[Chance, int, float], Limiter]:
    return {
        "fixed": lambda chance, n, window: Fixed(n, window, window * chance.random()),
        "from first": lambda _, n, window: FixedFromFirst(n, window),
        "sliding log": lambda _, n, window: SlidingLog(n, window),
        "sliding counter": lambda _, n, window: SlidingCounter(n, window),
    }[kind]


def _bots(chance: Chance, demand: float, trip_s: float, window: float, read_share: float) -> list[Bot]:
    count = chance.randrange(1, 7)
    reads = round(10 * read_share)
    lanes = ("read",) * reads + ("order",) * (10 - reads)
    if chance.random() < 0.7:
        slots = max(4, math.ceil(2 * demand * trip_s / count))
        think_s = max(0.0, slots * count / demand - trip_s)
        return [Bot(f"bot{index}", slots, think_s, 1 + index % 2, lanes) for index in range(count)]
    every_s = max(min(window, 20.0) * chance.uniform(0.5, 2.0), count / demand)
    burst = max(1, round(demand * every_s / count))
    every_s = burst * count / demand
    most = 3 * burst
    return [
        Bot(f"bot{index}", 0, 0.0, 1 + index % 2, lanes, burst, every_s, most=most) for index in range(count)
    ]


def _slower(bot: Bot, times: float) -> Bot:
    return replace(bot, think_s=bot.think_s * times, every_s=bot.every_s * times)


class Told(Gateway):
    """The gateway that is told each limit, what it counts, what a request costs, and when it changes."""

    def __init__(self, seed: int, cell: Cell) -> None:
        self._change = cell.scenario.change
        self._after = cell.after
        super().__init__(seed, is_exact=_is_exact(cell), wait_s=cell.wait_s)
        self._tell(cell.before)

    def claim(self, job: Job) -> Claim:
        return replace(super().claim(job), cost=job.cost)

    def enter(self, job: Job, now: float) -> bool:
        self._hear_of_change(now)
        return super().enter(job, now)

    def answered(self, job: Job, now: float, answer: Answer) -> bool:
        self._hear_of_change(now)
        return super().answered(job, now, answer)

    def _hear_of_change(self, now: float) -> None:
        if self._change and now >= self._change[0]:
            self._change = None
            self._tell(self._after)

    def _tell(self, height: Height) -> None:
        self.pacer.pools.at("all").estimator.believe(
            [replace(limit) for limit in height.known], height.at_a_time
        )


def _is_exact(cell: Cell) -> bool:
    return cell.scenario.retry_after in ("exact", "wrong")


CLIENTS: dict[str, Callable[[int, Cell], Client]] = {
    "gateway": lambda seed, cell: Gateway(seed, is_exact=_is_exact(cell), wait_s=cell.wait_s),
    "told": Told,
    "only Retry-After": lambda seed, _: OnlyRetryAfter(seed),
    "AIMD": lambda seed, _: Aimd(seed),
    "botocore adaptive": lambda seed, _: Botocore(seed),
    "ATB": lambda seed, _: AimdBucket(seed),
}


def measure(cell: Cell, client: str, seed: int) -> ZooFigures:
    """Run one client in a cell."""
    log = World(cell.scenario, CLIENTS[client](seed, cell), seed).run()
    return judge(cell, log)


def judge(cell: Cell, log: Log) -> ZooFigures:
    """Return the figures of a run."""
    scenario = cell.scenario
    start, end = max(3 * scenario.window, 10.0), scenario.seconds
    changed_at = scenario.change[0] if scenario.change else end
    accepted = [(at, job) for at, job in log.accepted if at >= start]
    foreign = sum(at >= start for at in log.foreign)
    spans = (
        (cell.before, changed_at - start, sum(start <= at < changed_at for at in log.foreign)),
        (cell.after, end - changed_at, sum(at >= changed_at for at in log.foreign)),
    )
    assert foreign == spans[0][2] + spans[1][2]
    allowed = sum(_allowed(cell, height, seconds, taken) for height, seconds, taken in spans)
    refused = sum(at >= start for at in log.refused)
    rate = min(sum(cell.before.parts), sum(cell.after.parts)) * (1 - scenario.foreign)
    pauses = sorted(log.pauses)
    gaps = [(max(since, start), until) for since, until in log.gaps if until > start]
    overs = [_over(pauses, since, until, scenario.window, rate) for since, until in gaps]
    waits = [
        1000 * (wait - _paused(pauses, born, born + wait))
        for born, lane, wait in log.waits
        if lane == "cancel" and born >= start
    ]
    goodput = 100 * sum(job.cost for _, job in accepted) / allowed if allowed > 0 else 100.0
    per_1000 = 1000 * refused / max(len(accepted), 1)
    cancel = sorted(waits)[int(0.99 * len(waits))] if waits else 0.0
    over = max(overs, default=0.0)
    in_target = (
        goodput >= 97.0 and per_1000 <= 4.0 and over <= 2.0 and cancel <= 250.0 + 2000.0 / rate
    ) and not log.inside_pause
    stall = max((until - since for since, until in gaps), default=0.0)
    fair = jain(scenario, log, start)
    return ZooFigures(goodput, per_1000, stall, over, log.inside_pause, cancel, fair, in_target)


def _allowed(cell: Cell, height: Height, seconds: float, foreign: int) -> float:
    demands = (cell.read_share, 1 - cell.read_share) if len(height.parts) > 1 else (1.0,)
    left = [
        max(0.0, part - part / sum(height.parts) * foreign / seconds) if seconds else 0.0
        for part in height.parts
    ]
    granted = sum(min(cell.demand * share, part) for share, part in zip(demands, left, strict=True))
    return granted * seconds


def _over(
    pauses: Sequence[tuple[float, float]], since: float, until: float, window: float, rate: float
) -> float:
    """Return how much longer a gap was than a stated pause and a place at an even pace, or than a window."""
    last = bisect_right(pauses, (until, math.inf))
    stated = max((end for at, end in pauses[max(0, last - 200) : last] if end > since), default=None)
    if stated is None:
        return until - since - max(window, 1.5 / rate)
    return until - max(since, min(stated, until)) - 1.5 / rate


def _paused(pauses: Sequence[tuple[float, float]], since: float, until: float) -> float:
    last = bisect_right(pauses, (until, math.inf))
    overlaps = (min(end, until) - max(at, since) for at, end in pauses[max(0, last - 50) : last])
    return max(0.0, *overlaps, 0.0)


def run(seed: int, cells: int, clients: Sequence[str], kinds: Sequence[str] = ()) -> list[dict[str, object]]:
    """Return the figures of all cells, in two processes."""
    jobs = [(seed, index, client) for index in range(cells) for client in clients]
    if kinds:
        jobs = [job for job in jobs if draw(*job[:2]).kind in kinds]
    with get_context("fork").Pool(_PROCESSES) as pool:
        return pool.map(_one, jobs, chunksize=1)


def _one(job: tuple[int, int, str]) -> dict[str, object]:
    seed, index, client = job
    cell = draw(seed, index)
    found = asdict(measure(cell, client, 1000 * seed + index))
    return {
        "cell": index,
        "client": client,
        "kind": cell.kind,
        "name": cell.scenario.name,
        "is_plain": cell.is_plain,
        **found,
    }


_HEAD = (
    "| client | goodput %: median / 10th percentile / worst | 429s per 1000: median / 90th | longest stall s "
    "| longest beyond a pause or window s | sent in a pause | in target |\n|---|---|---|--:|--:|--:|--:|"
)


def table(rows: Sequence[dict[str, object]]) -> str:
    """Return a line per client as a Markdown table."""
    names = dict.fromkeys(str(row["client"]) for row in rows)
    return "\n".join(
        [_HEAD, *(_line(name, [row for row in rows if row["client"] == name]) for name in names)]
    )


def _line(name: str, rows: Sequence[dict[str, object]]) -> str:
    def values(field: str) -> list[float]:
        return [float(str(row[field])) for row in rows]

    goodput, refused = values("goodput"), values("refused")
    return (
        f"| {name} | {median(goodput):.1f} / {_tenth(goodput, 0):.1f} / {min(goodput):.1f} "
        f"| {median(refused):.1f} / {_tenth(refused, -1):.1f} | {max(values('stall')):.0f} "
        f"| {max(values('overstall')):.0f} | {sum(values('inside_pause')):.0f} "
        f"| {100 * sum(row['in_target'] is True for row in rows) / len(rows):.0f} % |"
    )


def _tenth(values: Sequence[float], which: int) -> float:
    return quantiles(values, n=10, method="inclusive")[which] if len(values) > 1 else values[0]


def report(rows: Sequence[dict[str, object]]) -> str:
    """Return the tables: all cells, the plain ones, and the gateway by kind."""
    plain = [row for row in rows if row["is_plain"]]
    parts = [f"All {len({row['cell'] for row in rows})} cells:", table(rows)]
    if plain:
        parts += [
            "Plain windows and buckets, without a change, foreign use, bans or a wrong `Retry-After`:",
            table(plain),
        ]
    for kind in KINDS:
        some = [{**row, "client": f"{kind}: {row['client']}"} for row in rows if row["kind"] == kind]
        parts += [
            _line(name, [row for row in some if row["client"] == name])
            for name in dict.fromkeys(str(row["client"]) for row in some)
        ]
    return (
        "\n\n".join(parts[: 4 if plain else 2])
        + "\n\n"
        + "\n".join(["By kind:\n", _HEAD, *parts[4 if plain else 2 :]])
    )


def main(seed: int, cells: int, clients: Sequence[str], *, as_json: bool) -> None:
    """Print the tables, or every cell as JSON."""
    rows = run(seed, cells, clients)
    print(json.dumps({"seed": seed, "cells": rows}, indent=1) if as_json else report(rows))
