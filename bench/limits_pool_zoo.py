"""The zoo with pools: two to four limiters at once, for other requests; `scripts/bench limits --zoo --pools`.

What a pool is, is described to the gateway, as a venue's file does; no number is. In three of four cells a
refusal names its pool. Each place of a pool (there is one for each key, account or route) is held against a
control: the same limiter with its own traffic and a pacer of its own. That is run twice, with other chances:
the difference is what chance alone makes. Pools are apart, or one of them is wide: it counts what others
count, too, and what no other counts fills it.
"""

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from statistics import mean, median, quantiles

from bench.limits_zoo import PLAIN, height_of, log_uniform
from rig.limits_limiters import Limiter
from rig.limits_pools import Exchange, PoolGateway, PoolKind, PoolWorld, Sender, alone
from rig.limits_world import Bot, Chance, Scenario

_KEYS = {"one-a": "one", "one-b": "one", "two": "two"}  # with their accounts
_CLASSES = {"spot": "order", "futures": "order", "read": "read", "open": "read"}  # of requests, with lanes
_ROUTES = ("x", "y")
_WINDOWS, _LEAST_S = 20, 60.0
_FASTEST, _MOST = 150.0, 20_000.0
_NARROW_SHARE = 0.3  # of the wide pool, that the narrow ones in it take at most
_PROCESSES = 2


@dataclass(frozen=True)
class Cell:
    """An exchange, and how many requests per second the bots ask for, by place and in all."""

    name: str
    exchange: Exchange
    demand: dict[str, float]  # of each bot
    wait_s: float
    wide: str  # the name of the pool that others are part of, "" without


@dataclass(frozen=True)
class PlaceFigures:
    """One place with the others and alone; goodput in percent of what limiter and demand allow."""

    cell: int
    name: str
    place: str
    is_named: bool
    is_wide: bool
    has_wide: bool
    goodput: float
    alone: float
    again: float  # alone, by other chances
    refused: float  # 429s per 1000 accepted
    refused_alone: float
    into_pause: int  # of all of the cell


def draw(seed: int, index: int) -> Cell:
    """Return a cell."""
    chance = random.Random(f"pools {seed}/{index}")
    while True:
        cell = _draw(chance, f"{seed}/{index}", is_named=index % 4 != 3)
        rate = sum(cell.demand.values())
        if rate < _FASTEST and rate * cell.exchange.scenario.seconds < _MOST:
            return cell


def _draw(chance: Chance, name: str, *, is_named: bool) -> Cell:
    way_s = log_uniform(chance, 0.001, 0.125)
    # 1. The narrow pools, each of a class of requests; a wide one leaves one class to none of them.
    count = chance.randrange(2, 5)
    scope = chance.choice(("", "account", "address"))  # of the wide pool
    inside = [one for one in _CLASSES if scope != "account" or one != "open"]
    free = chance.choice([one for one in inside if _CLASSES[one] == "read"]) if scope else ""
    classes = chance.sample([one for one in _CLASSES if one != free], count - bool(scope))
    pools = [_narrow(one, chance, way_s) for one in classes]
    senders = [sender for pool in pools for sender in _senders(pool.name, chance, per_route=pool.per_route)]
    # 2. The wide pool has room for them, and for more.
    if scope:
        senders += _senders(free, chance)
        within = [pool for pool in pools if scope == "address" or pool.name != "open"]
        narrow = sum(pool.rate * len({pool.place(one) for one in senders} - {None}) for pool in within)
        rate = (narrow or 1.0) / _NARROW_SHARE * chance.uniform(1.0, 2.0)
        pools.append(_pool("wide", scope, rate, chance, way_s))
    # 3. What the bots of each place ask for; the wide pool's is what the free class adds.
    demand: dict[str, float] = {}
    shape = Exchange(tuple(pools), tuple(senders), is_named, _scenario(name, (), pools, way_s))
    for place, pool in shape.places.items():
        its = [one.bot.name for one in senders if shape.passed[one.bot.name][0] == place]
        factor = chance.choice((0.7, 1.2, 3.0)) if pool.name != "wide" else chance.choice((1.2, 3.0))
        demand.update(dict.fromkeys(its, factor * pool.rate / max(1, len(its))))
    senders = [replace(one, bot=_paced(one.bot, demand[one.bot.name], way_s, chance)) for one in senders]
    scenario = _scenario(name, tuple(one.bot for one in senders), pools, way_s)
    style = chance.choice(("exact", "exact", "rounded", "date", "absent"))
    scenario = replace(scenario, retry_after=style)
    words = [f"{pool.scope} {pool.name} {pool.rate:.3g}/s of {pool.window:.3g}s" for pool in pools]
    wait_s = max(30.0, 3 / min(pool.rate for pool in pools))
    exchange = Exchange(tuple(pools), tuple(senders), is_named, scenario)
    return Cell(f"{name} {style} {', '.join(words)}", exchange, demand, wait_s, "wide" if scope else "")


def _narrow(name: str, chance: Chance, way_s: float) -> PoolKind:
    n, window = round(log_uniform(chance, 3, 600)), log_uniform(chance, 0.3, 60)
    scope = "address" if name == "open" else chance.choice(("key", "account", "address"))
    pool = _pool(name, scope, n / window, chance, way_s, window)
    return replace(pool, per_route=_CLASSES[name] == "read" and chance.random() < 1 / 3)


def _pool(  # noqa: PLR0913, PLR0917 - all that differs
    name: str, scope: str, rate: float, chance: Chance, way_s: float, window: float | None = None
) -> PoolKind:
    window = log_uniform(chance, 1, 60) if window is None else window
    n, kind = max(3, round(rate * window)), chance.choice((*PLAIN, "stacked"))
    height = height_of(kind, n, window, 2 * way_s, random.Random(chance.random()))
    longest = max(limit.window for limit in height.known)

    def make(chance: Chance) -> Limiter:
        return height.make(chance)

    return PoolKind(
        name, scope, lambda one: name in ("wide", one.bot.name.split()[0]), make, sum(height.parts), longest
    )


def _senders(name: str, chance: Chance, *, per_route: bool = False) -> Iterator[Sender]:
    """Yield the bots of a class of requests: one for each key and, where these count apart, each route."""
    lane = _CLASSES[name]
    for key, account in _KEYS.items():
        for route in _ROUTES if per_route else _ROUTES[:1]:
            bot = Bot(f"{name} {key} {route}", weight=chance.choice((1, 1, 2)), lanes=(lane,))
            yield Sender(bot, key, account, f"{name} {route}", is_open=name == "open")


def _paced(bot: Bot, demand: float, way_s: float, chance: Chance) -> Bot:
    trip_s = 2 * way_s
    if chance.random() < 0.7:
        slots = max(3, round(2 * demand * trip_s) + 1)
        return replace(bot, slots=slots, think_s=max(0.0, slots / demand - trip_s))
    every_s = max(chance.uniform(1.0, 10.0), 1 / demand)
    burst = max(1, round(demand * every_s))
    return replace(bot, burst=burst, every_s=burst / demand, most=3 * burst)


def _scenario(name: str, bots: tuple[Bot, ...], pools: Iterable[PoolKind], way_s: float) -> Scenario:
    window = max(pool.window for pool in pools)
    seconds = max(_WINDOWS * window, _LEAST_S)
    rate = max(pool.rate for pool in pools)
    return Scenario(name, lambda _: Limiter(), rate, window, bots, seconds, way_s=way_s, tail_s=0.05 * way_s)


def measure(seed: int, index: int) -> list[PlaceFigures]:
    """Run a cell, and each of its places alone."""
    cell = draw(seed, index)
    world, found = _run(cell, cell.exchange, 1000 * seed + index), []
    for place, pool in cell.exchange.places.items():
        control = alone(cell.exchange, place)
        its, again = (_run(cell, control, 1000 * seed + index + other) for other in (0, 1_000_000))
        goodput, by_itself, again_by_itself = (_goodput(cell, one, place) for one in (world, its, again))
        refused, refused_alone = (_refused(one, place) for one in (world, its))
        found.append(
            PlaceFigures(
                cell=index,
                name=cell.name,
                place=place,
                is_named=cell.exchange.is_named,
                is_wide=pool.name == "wide",
                has_wide=bool(cell.wide),
                goodput=goodput,
                alone=by_itself,
                again=again_by_itself,
                refused=refused,
                refused_alone=refused_alone,
                into_pause=world.into_pause,
            )
        )
    return found


def _run(cell: Cell, exchange: Exchange, seed: int) -> PoolWorld:
    is_exact = exchange.scenario.retry_after == "exact"
    world = PoolWorld(exchange, PoolGateway(exchange, seed, is_exact=is_exact, wait_s=cell.wait_s), seed)
    world.run()
    return world


def _start(world: PoolWorld) -> float:
    return max(3 * world.scenario.window, 10.0)


def _accepted(world: PoolWorld, place: str) -> int:
    start, passed = _start(world), world.exchange.passed
    return sum(at >= start and place in passed[job.bot] for at, job in world.log.accepted)


def _goodput(cell: Cell, world: PoolWorld, place: str) -> float:
    """Return what a place accepted, in percent of what it and the other pools of its requests allow."""
    exchange = world.exchange
    of_narrow: dict[str, float] = {}
    for name, passed in exchange.passed.items():
        if place in passed:
            of_narrow[passed[0]] = of_narrow.get(passed[0], 0.0) + cell.demand[name]
    wanted = sum(min(asked, exchange.places[narrow].rate) for narrow, asked in of_narrow.items())
    allowed = min(wanted, exchange.places[place].rate) * (world.scenario.seconds - _start(world))
    return 100 * _accepted(world, place) / allowed


def _refused(world: PoolWorld, place: str) -> float:
    start = _start(world)
    refused = sum(at >= start and full == place for at, full in world.pools.refused)
    return 1000 * refused / max(1, _accepted(world, place))


_HEAD = (
    "| cells | places | goodput %, alone: median / 10th / worst | with the others "
    "| points less: mean / median / 90th / worst | by chance alone "
    "| 429s per 1000, alone: median / 90th | with the others | sent in a pause |\n"
    "|---|--:|---|---|---|---|---|---|--:|"
)


def _line(name: str, rows: Sequence[PlaceFigures]) -> str:
    less, by_chance = (
        [row.alone - one for row, one in zip(rows, ones, strict=True)] for ones in _others(rows)
    )
    pauses = {row.cell: row.into_pause for row in rows}
    return (
        f"| {name} | {len(rows)} | {_low([row.alone for row in rows])} "
        f"| {_low([row.goodput for row in rows])} "
        f"| {mean(less):.1f} / {_high(less)} / {max(less):.1f} "
        f"| {mean(by_chance):.1f} / {_high(by_chance)} / {max(by_chance):.1f} "
        f"| {_high([row.refused_alone for row in rows])} | {_high([row.refused for row in rows])} "
        f"| {sum(pauses.values())} |"
    )


def _others(rows: Sequence[PlaceFigures]) -> tuple[list[float], list[float]]:
    return [row.goodput for row in rows], [row.again for row in rows]


def _low(values: Sequence[float]) -> str:
    return f"{median(values):.1f} / {_tenth(values, 0):.1f} / {min(values):.1f}"


def _high(values: Sequence[float]) -> str:
    return f"{median(values):.1f} / {_tenth(values, -1):.1f}"


def _tenth(values: Sequence[float], which: int) -> float:
    return quantiles(values, n=10, method="inclusive")[which] if len(values) > 1 else values[0]


def report(rows: Sequence[PlaceFigures]) -> str:
    """Return the table: all places, by whether refusals name their pool, and by whether one pool is wide."""
    parts = {
        "all": rows,
        "refusals name their pool": [row for row in rows if row.is_named],
        "they do not": [row for row in rows if not row.is_named],
        "pools apart": [row for row in rows if not row.has_wide],
        "within a wide one": [row for row in rows if row.has_wide and not row.is_wide],
        "the wide one": [row for row in rows if row.is_wide],
        "named, apart": [row for row in rows if row.is_named and not row.has_wide],
        "named, within a wide one": [
            row for row in rows if row.is_named and row.has_wide and not row.is_wide
        ],
        "named, the wide one": [row for row in rows if row.is_named and row.is_wide],
    }
    return "\n".join([_HEAD, *(_line(name, some) for name, some in parts.items() if some)])


def _one(job: tuple[int, int]) -> list[PlaceFigures]:
    return measure(*job)


def main(seed: int, cells: int, *, as_json: bool) -> None:
    """Print the table, or every place as JSON."""
    with get_context("fork").Pool(_PROCESSES) as pool:
        found = pool.map(_one, [(seed, index) for index in range(cells)], chunksize=1)
    rows = [row for some in found for row in some]
    if as_json:
        print(json.dumps({"seed": seed, "places": [asdict(row) for row in rows]}, indent=1))
    else:
        print(f"{cells} cells of seed {seed}\n\n{report(rows)}")
