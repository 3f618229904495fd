"""What pacing costs a request, by the pools that it passes: `scripts/bench limits --cost`.

The pacer alone, in virtual time: its limits are published and never reached, except where requests wait.
"""

import gc
import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import thread_time

from bench.pages import machine, table
from sealgate.limits import pacer as module
from sealgate.limits.claims import Claim, Fate, LimitReply
from sealgate.limits.pacer import Pacer
from sealgate.limits.pool import PoolSettings
from sealgate.limits.pools import PacerSettings
from sealgate.limits.quotas import Quota
from sealgate.venues.routes import Lane

_PLACES = tuple(f"account | pool{number}" for number in range(8))
_SHARES = (1, 3, 8)  # how many of the eight a request passes
_REQUESTS, _ROUNDS, _WAITING = 2000, 9, 20
_TRIP_S = 0.002  # from one request to the next
_COMPILED = Path(__file__).parents[1] / ".compiled" / "bin" / "python"
_ACCEPTED = LimitReply(Fate.ACCEPTED)
Way = Callable[[Pacer, int], float]


def _pacer(n: int) -> Pacer:
    """Return a pacer with eight pools of `n` per second, all of them in use."""
    known = PoolSettings((Quota(n, 1.0),))
    pacer = Pacer(PacerSettings(pools={f"pool{number}": known for number in range(8)}), lambda: 0.5)
    for number in range(100):
        claim, now = _claim(number, 8, 0.0), float(number)
        pacer.goes_at_once(claim, now)
        pacer.answered(claim, now, _ACCEPTED)
    return pacer


def _claim(number: int, pools: int, now: float) -> Claim:
    lane = Lane.ORDER if number % 2 else Lane.READ
    bot = f"bot{number % _WAITING}"
    return Claim(str(number), bot, lane, now + 1e6, is_read=not number % 2, pools=_PLACES[:pools], key="key")


def _at_once(pacer: Pacer, pools: int) -> float:
    """Return the seconds of a request that goes at once and is accepted."""
    claims = [_claim(number, pools, 0.0) for number in range(_REQUESTS)]
    now, since = 1000.0, thread_time()
    for claim in claims:
        now += _TRIP_S
        assert pacer.goes_at_once(claim, now)
        pacer.sent(claim, now)
        pacer.answered(claim, now, _ACCEPTED)
    return (thread_time() - since) / len(claims)


def _through_the_line(pacer: Pacer, pools: int) -> float:
    """Return the same of one that enters the empty line, and is let go by the next look at it."""
    claims = [_claim(number, pools, 0.0) for number in range(_REQUESTS)]
    now, since = 2000.0, thread_time()
    for claim in claims:
        now += _TRIP_S
        assert pacer.enter(claim, now) is None
        assert pacer.release(now).go == (claim,)
        pacer.sent(claim, now)
        pacer.answered(claim, now, _ACCEPTED)
        pacer.release(now)
    return (thread_time() - since) / len(claims)


def _in_a_queue(pacer: Pacer, pools: int) -> float:
    """Return the same where as many bots as there are each have a request that waits: the limit is full."""
    claims = [_claim(number, pools, 0.0) for number in range(_REQUESTS)]
    now = 3000.0
    for claim in claims[:_WAITING]:
        pacer.enter(claim, now)
    waiting, since = iter(claims[_WAITING:]), thread_time()
    went = 0
    while True:
        release = pacer.release(now)
        for claim in release.go:
            pacer.sent(claim, now)
            pacer.answered(claim, now, _ACCEPTED)
            went += 1
            following = next(waiting, None)
            if following is None:
                return (thread_time() - since) / went
            pacer.enter(following, now)
        if not release.go:
            assert release.look_again_at is not None
            now = max(now + 1e-6, release.look_again_at)


_WAYS: dict[str, tuple[Way, int]] = {
    "at once": (_at_once, 10_000),
    "through the line, nobody waits": (_through_the_line, 10_000),
    f"through the line, {_WAITING} wait": (_in_a_queue, 200),
}


def measure() -> dict[str, list[float]]:
    """Return the microseconds of a request by its way, for each number of pools: the median of the rounds."""
    found: dict[str, list[float]] = {}
    gc.disable()
    for name, (way, n) in _WAYS.items():
        for pools in _SHARES:
            rounds = [1e6 * way(_pacer(n), pools) for _ in range(_ROUNDS)]
            found.setdefault(name, []).append(median(rounds))
            gc.collect()
    return found


def report(found: dict[str, dict[str, list[float]]]) -> str:
    """Return the table: a line for each way, of the sources and of the compiled modules."""
    head = ("µs per request", "modules", *(f"{pools} of 8 pools" for pools in _SHARES))
    rows: list[Sequence[str]] = [
        (name, kind, *(f"{value:.1f}" for value in values[name]))
        for name in _WAYS
        for kind, values in found.items()
    ]
    return f"{machine()}\n\n{table(head, rows, words=2)}"


def main(*, as_json: bool) -> None:
    """Print the table, or the figures as JSON; of what scripts/compiled has made, too, if it has run."""
    kind = "sources" if module.__file__.endswith(".py") else "compiled"
    found = {kind: measure()}
    if as_json:
        print(json.dumps(found[kind]))
        return
    if kind == "sources" and _COMPILED.exists():
        command = [str(_COMPILED), str(Path(__file__).with_name("limits.py")), "--cost", "--json"]
        found["compiled"] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    print(report(found))
