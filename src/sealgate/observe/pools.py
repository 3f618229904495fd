"""The pools that the requests of a key pass, or those without a key, as they are shown."""

import math
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from heapq import nlargest
from posixpath import commonpath
from typing import NamedTuple

from sealgate.limits.membership import Membership
from sealgate.limits.pool import of_in, shut_out_place
from sealgate.limits.status import LimitStatus, PacerStatus, PoolStatus
from sealgate.machine.findings import span
from sealgate.venues.limit_rules import ALL, PoolRule
from sealgate.venues.replies import Scope
from sealgate.venues.routes import Lane

MOST_TOLD = 50  # pools of one key that are told one by one
_MOST_CLOSED = 3  # that a sentence names
_UNKNOWN = PoolStatus()


class PoolState(StrEnum):
    """Whether requests pass a pool."""

    OPEN = "open"
    CLOSED = "closed"
    BANNED = "banned"


@dataclass(frozen=True, slots=True)
class KeyPool:
    """A pool that requests of a key pass; `of` is what it is for each of, such as a route, "" without.

    `passes` says which requests pass it, in words; with `is_whole`, all that the key signs do. `lanes` are
    theirs, empty where more than its lane decides whether a request passes. `is_shared`: all keys that leave
    by this address are counted in it. `pause_s` is how long it stays closed; `spent_s` is how much of that
    follows from a reply that stated that nothing is left. `at_a_time` is the most requests that may be under
    way, None where no such limit was met. `cost_per_s` is what was sent in the last ten seconds, as the limit
    counts it.
    """

    pool: str
    of: str
    passes: str
    is_whole: bool
    lanes: tuple[str, ...]
    is_shared: bool
    state: PoolState
    pause_s: float
    limits: tuple[LimitStatus, ...]
    at_a_time: int | None = None
    spent_s: float = 0.0
    cost_per_s: float = 0.0

    @property
    def label(self) -> str:
        """Its name for people, with what it is for."""
        return f"{self.pool} {self.of}" if self.of else self.pool

    @property
    def fullest(self) -> LimitStatus | None:
        """The limit that is nearest to being full, None where none is known."""
        return max(self.limits, key=lambda limit: limit.used_ratio, default=None)

    @property
    def urgency(self) -> tuple[bool, float]:
        """How much there is to tell of it: it is closed, or nearly full, or at least its limit is known."""
        fullest = self.fullest
        return self.state is not PoolState.OPEN, -1.0 if fullest is None else fullest.used_ratio


class Pools(NamedTuple):
    """The pools of which there is most to tell, in the order of the file, and how many more there are."""

    told: tuple[KeyPool, ...]
    more: int


def pools_of(pacer: PacerStatus, membership: Membership, hidden: Container[str] = ()) -> Pools:
    """Return the pools that requests of this membership pass, except those at the hidden places."""
    shut_s = shut_out_s(pacer, membership)
    places = {place: rule for place, rule in membership.places.items() if place not in hidden}
    is_only = len(membership.places) == 1
    found = [
        _key_pool(place, rule, membership, pacer.pools.get(place, _UNKNOWN), shut_s, is_only=is_only)
        for place, rule in places.items()
        if place in pacer.pools or not of_in(place)
    ]
    chosen = set(nlargest(MOST_TOLD, range(len(found)), lambda at: found[at].urgency))
    told = tuple(pool for at, pool in enumerate(found) if at in chosen)
    return Pools(told, len(places) - len(told))


def open_pools_of(
    pacer: PacerStatus, of_open: Membership, of_keys: Iterable[Membership]
) -> tuple[KeyPool, ...]:
    """Return the pools that only requests without a key pass, if there is anything to tell of them.

    Of one that the file does not describe as theirs, that is a pause, or a limit that was met.
    """
    others = tuple(of_keys)
    hidden = {
        place
        for place, rule in of_open.places.items()
        if any(place in one.places for one in others)
        or not (rule.is_open or _was_met(pacer.pools.get(place, _UNKNOWN)))
    }
    told = pools_of(pacer, of_open, hidden).told
    return tuple(pool for pool in told if pool.limits or pool.state is not PoolState.OPEN)


def _was_met(pool: PoolStatus) -> bool:
    return bool(pool.pause_s or pool.spent_s or any(limit.seen for limit in pool.limits))


def shut_out_s(pacer: PacerStatus, membership: Membership) -> float:
    """Return for how long the exchange has shut out whoever sends these requests."""
    bans = (pacer.pools.get(shut_out_place(one), _UNKNOWN) for one in membership.subjects)
    return max((ban.pause_s for ban in bans), default=0.0)


def _key_pool(  # noqa: PLR0913 - all that is known of it
    place: str, rule: PoolRule, membership: Membership, pool: PoolStatus, shut_s: float, *, is_only: bool
) -> KeyPool:
    is_closed = bool(pool.pause_s or pool.spent_s)
    is_banned = shut_s > 0 or pool.is_banned
    of_lanes_alone = rule.lanes and replace(rule, lanes=frozenset(), is_signed=False).has_all
    return KeyPool(
        pool=rule.name,
        of=of_in(place),
        passes=_passes(rule, is_only=is_only),
        is_whole=place in membership.always,
        lanes=tuple(lane.value for lane in Lane if lane in rule.lanes) if of_lanes_alone else (),
        is_shared=rule.scope is Scope.ADDRESS,
        state=PoolState.BANNED if is_banned else PoolState.CLOSED if is_closed else PoolState.OPEN,
        pause_s=max(pool.pause_s, pool.spent_s, shut_s),
        limits=pool.limits,
        at_a_time=pool.at_a_time,
        spent_s=pool.spent_s,
        cost_per_s=pool.cost_per_s,
    )


def _passes(rule: PoolRule, *, is_only: bool) -> str:
    """Return which requests pass a pool: "orders", "signed requests to 3 paths"; "" if only its part says."""
    if rule.name == ALL and rule.has_all:
        return "all requests" if is_only else "all other requests"
    which = _and([f"{lane.value}s" for lane in Lane if lane in rule.lanes]) or "requests"
    if rule.is_signed:
        which = f"signed {which}"
    if rule.routes:
        which += f" to {_paths(rule.routes)}"
    if rule.outside:
        which = f"all {which} except those to {_paths(rule.outside)}"
    if rule.is_open:
        which += " without a key"
    if which != "requests":
        return which
    return "" if rule.per or rule.per_parameter else "all requests"


def _paths(routes: Iterable[tuple[str, str]]) -> str:
    """Return the only path, or how many there are and where: "9 paths below /api/v3"."""
    paths = sorted({template for _, template in routes})
    if len(paths) == 1:
        return paths[0]
    below = commonpath(paths) if all(path.startswith("/") for path in paths) else ""
    return f"{len(paths)} paths" + (f" below {below}" if len(below) > 1 else "")


def closed_in_words(pools: Sequence[KeyPool]) -> str:
    """Return "orders: closed for 7 s; cancels and reads go on", "" where no pool is closed."""
    closed = [pool for pool in pools if pool.state is not PoolState.OPEN]
    if not closed:
        return ""
    told = [f"{_whose(pool)}: {state_in_words(pool)}" for pool in closed[:_MOST_CLOSED]]
    if len(closed) > _MOST_CLOSED:
        told.append(f"{len(closed) - _MOST_CLOSED} more pools closed")
    return "; ".join((*told, *_what_goes_on(closed)))


def _whose(pool: KeyPool) -> str:
    """Return a pool's name; with which requests pass it, unless lanes or its part say so."""
    is_said = pool.lanes or pool.of or pool.is_whole or not pool.passes
    return pool.label if is_said else f"{pool.label} ({pool.passes})"


def state_in_words(pool: KeyPool) -> str:
    """Return "closed for 7 s", "" while the pool is open."""
    if pool.state is PoolState.OPEN:
        return ""
    left = span(math.ceil(pool.pause_s))
    return f"nothing left for {left}" if pool.spent_s == pool.pause_s else f"{pool.state.value} for {left}"


def _what_goes_on(closed: Sequence[KeyPool]) -> Iterator[str]:
    """Yield which requests pass while these pools are closed; nothing if none may."""
    if any(pool.is_whole for pool in closed):
        return
    if not all(pool.lanes for pool in closed):
        yield "everything else goes on"
        return
    stopped = {lane for pool in closed for lane in pool.lanes}
    if others := [f"{lane.value}s" for lane in Lane if lane.value not in stopped]:
        yield f"{_and(others)} go on"


def _and(words: Sequence[str]) -> str:
    """Return "cancels, orders and reads"."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
