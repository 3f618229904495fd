"""The matrix: limiters, what 429s say, who else spends the limit, and how it changes."""

from collections.abc import Callable
from dataclasses import dataclass, replace

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
from rig.limits_world import Bot, Chance, Scenario

_OVERLOAD = 3.0
_SLOTS = 32  # requests in flight or thinking, over all bots
_TRIP_S = 0.04
_SHORT_S, _LONG_S = 150.0, 600.0  # how long a run lasts, by the window


@dataclass(frozen=True, slots=True)
class Kind:
    """A limiter, what it grants per second, and its longest window."""

    make: Callable[[Chance], Limiter]
    allowance: float = 20.0
    window: float = 1.0
    service_s: float = 0.0
    costs: tuple[tuple[str, int], ...] = ()


KINDS = {
    "fixed 20/1s": Kind(lambda chance: Fixed(20, 1.0, chance.random())),
    "fixed from first 20/1s": Kind(lambda _: FixedFromFirst(20, 1.0)),
    "sliding log 20/1s": Kind(lambda _: SlidingLog(20, 1.0)),
    "sliding counter 20/1s": Kind(lambda _: SlidingCounter(20, 1.0)),
    "fixed 1200/60s": Kind(lambda chance: Fixed(1200, 60.0, 60 * chance.random()), window=60.0),
    "sliding log 1200/60s": Kind(lambda _: SlidingLog(1200, 60.0), window=60.0),
    "sliding counter 1200/60s": Kind(lambda _: SlidingCounter(1200, 60.0), window=60.0),
    "token bucket 20/s burst 20": Kind(lambda _: TokenBucket(20.0, 20)),
    "token bucket 20/s burst 200": Kind(lambda _: TokenBucket(20.0, 200)),
    "GCRA 20/s burst 10": Kind(lambda _: TokenBucket(20.0, 10)),
    "GCRA 20/s burst 5": Kind(lambda _: TokenBucket(20.0, 5)),
    "GCRA 20/s burst 1": Kind(lambda _: TokenBucket(20.0, 1)),
    "orders cost 2, 20/1s": Kind(lambda _: SlidingLog(20, 1.0), costs=(("order", 2),)),
    "20/1s and 600/60s": Kind(lambda _: Stacked(SlidingLog(20, 1.0), Fixed(600, 60.0)), 10.0, 60.0),
    "reads and orders apart": Kind(lambda _: Apart(SlidingLog(10, 1.0), SlidingLog(10, 1.0))),
    "ban after 8 in 10 s": Kind(lambda chance: Ban(Fixed(20, 1.0, chance.random()), 8, 30.0)),
    "4 at a time": Kind(lambda _: Concurrency(4), 40.0, service_s=0.06),
    "leaky queue 20/s": Kind(lambda _: LeakyQueue(20.0)),
}
FEW = ("fixed 20/1s", "sliding log 1200/60s", "token bucket 20/s burst 20")
SOME = (
    "fixed 20/1s",
    "sliding log 20/1s",
    "fixed 1200/60s",
    "token bucket 20/s burst 20",
    "GCRA 20/s burst 5",
)


def saturated(name: str, bots: int = 4) -> Scenario:
    """Return a run in which the bots, of weights 1 and 2, ask for three times the allowance; and cancels."""
    kind = KINDS[name]
    think_s = _SLOTS / (_OVERLOAD * kind.allowance) - _TRIP_S
    crowd = [
        Bot(f"bot{index}", _SLOTS // bots, think_s, weight=1 + index % 2, costs=kind.costs)
        for index in range(bots)
    ]
    cancels = Bot("cancels", slots=2, think_s=2.0, lanes=("cancel",))
    seconds = _SHORT_S if kind.window <= 2 else _LONG_S
    return Scenario(
        name, kind.make, kind.allowance, kind.window, (*crowd, cancels), seconds, service_s=kind.service_s
    )


def stating(name: str, retry_after: str) -> Scenario:
    scenario = saturated(name)
    return replace(scenario, name=f"{name}, {retry_after}", retry_after=retry_after)


def counting(name: str) -> Scenario:
    return replace(saturated(name), name=f"{name}, rejects count", do_rejects_count=True)


def alone(name: str) -> Scenario:
    return replace(saturated(name, bots=1), name=f"{name}, 1 bot")


def shared(name: str) -> Scenario:
    return replace(saturated(name), name=f"{name}, 30 % foreign", foreign=0.3)


_CHANGES: dict[str, Callable[[float], Limiter]] = {
    "fixed 20/1s": lambda factor: Fixed(round(20 * factor), 1.0),
    "sliding log 1200/60s": lambda factor: SlidingLog(round(1200 * factor), 60.0),
    "token bucket 20/s burst 20": lambda factor: TokenBucket(20 * factor, round(20 * factor)),
}


def changing(name: str, factor: float) -> Scenario:
    """Return a run whose limit changes after a third; it is three times as long."""
    scenario, make = saturated(name), _CHANGES[name]
    # The demand stays: three times what the higher of the two limits grants would be needed to see it used.
    bots = tuple(replace(bot, think_s=bot.think_s / max(factor, 1.0)) for bot in scenario.bots)
    change = (scenario.seconds, lambda _: make(factor), scenario.allowance * factor)
    title = f"{name}, {'halves' if factor < 1 else 'doubles'}"
    return replace(scenario, name=title, change=change, seconds=3 * scenario.seconds, bots=bots)


def under_limit(name: str, *, is_learned: bool) -> Scenario:
    """Return a run of bursts, at most nine tenths of the limit in any window: nothing should wait.

    Where the limit is learned, a flood teaches it first.
    """
    kind, scenario = KINDS[name], saturated(name)
    burst = int(0.9 * kind.allowance * kind.window / 4)
    flood_s = 3 * kind.window + 10.0 if is_learned else 0.0
    since = 2 * flood_s
    bots = [Bot(f"burst{index}", burst=burst, every_s=1.75 * kind.window, since=since) for index in range(4)]
    flood = [replace(bot, until=flood_s) for bot in scenario.bots] if is_learned else []
    title = f"{name}, {'learned' if is_learned else 'unknown'}"
    return replace(
        scenario, name=title, bots=(*bots, *flood), bursts_from=since, seconds=since + 2 * scenario.seconds
    )
