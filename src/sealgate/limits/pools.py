"""The pools of one exchange, by place, and which of its subjects are shut out."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nlargest, nsmallest

from sealgate.limits import snapshots as memory
from sealgate.limits.claims import ONLY, Claim
from sealgate.limits.pool import SHUT_OUT, Pool, PoolSettings, name_in, of_in, shut_out_place, subject_in
from sealgate.limits.snapshots import Snapshot
from sealgate.limits.status import PoolStatus

_UNKNOWN = PoolSettings()
_MOST = 2000  # that are kept: with one for each value of a parameter, bots choose how many there are
_MOST_SHOWN = 100  # of the pools that are one for each route or parameter: words take time


@dataclass(frozen=True, slots=True)
class PacerSettings:
    """How many may wait of each key, whether header fields may state limits, and the pools by name.

    `queue` is None where other gateways bound what they send here.
    """

    queue: int | None = 1000
    headers: bool = True
    pools: Mapping[str, PoolSettings] = field(default_factory=dict)

    def of(self, place: str) -> PoolSettings:
        """Return the settings of the pool at a place."""
        return self.pools.get(name_in(place), _UNKNOWN)


class Pools:
    """All pools that were met. A pool is made when the first claim passes it."""

    def __init__(self, settings: PacerSettings, chance: Callable[[], float]) -> None:
        self.settings = settings
        self.by_place: dict[str, Pool] = {}
        self.on_new: Callable[[Pool], None] | None = None  # called before the first claim passes it
        self._chance = chance
        self._found: dict[tuple[str, ...], tuple[Pool, ...]] = {}  # what claims were found to pass
        self._shut: dict[str, Pool] = {}  # by subject: of those that are shut out
        self._too_many = _MOST
        self._closed: set[Pool] = set()  # those that had a pause, at the latest look

    def adopt(self, settings: PacerSettings) -> None:
        """Go by other settings from now on; the pauses and what was sent stay."""
        is_anew = settings.headers != self.settings.headers
        self.settings = settings
        for pool in self.by_place.values():
            pool.adopt(settings.of(pool.place), is_anew=is_anew)
            if not settings.headers:
                pool.estimator.counts.forget()

    def at(self, place: str) -> Pool:
        """Return the pool at a place, and make it if there is none."""
        pool = self.by_place.get(place)
        if pool is None:
            pool = self.by_place[place] = Pool(place, self.settings.of(place), self._chance)
            if self.on_new is not None:
                self.on_new(pool)
        return pool

    def of(self, claim: Claim) -> tuple[Pool, ...]:
        """Return the pools that a claim passes, from the narrowest; behind them those that are shut out."""
        pools = self._found.get(claim.pools)
        if pools is None:
            self.make_room()
            pools = self._found[claim.pools] = tuple(map(self.at, claim.pools))
        if self._shut:
            return (*pools, *(self._shut[one] for one in claim.subjects if one in self._shut))
        return pools

    def make_room(self) -> None:
        """Forget what nothing waits for or counts in, and no pause closes, once there are too many pools.

        Of those for a route or parameter bots choose how many there are: they take the place of no other.
        Those go that were not used for longest. Call it before `at` where strangers named the place.
        """
        if len(self.by_place) < self._too_many:
            return
        parts: list[Pool] = []
        wholes: list[Pool] = []
        for pool in self.by_place.values():
            (parts if of_in(pool.place) else wholes).append(pool)
        for pools in (parts, wholes):
            if len(pools) >= _MOST // 2:
                idle = (pool for pool in pools if pool.is_idle and pool not in self._closed)
                for pool in nsmallest(len(pools) // 2, idle, lambda pool: pool.used_at):
                    del self.by_place[pool.place]
        # Looking through all of them takes time: it is not done for each new one.
        self._too_many = max(_MOST, len(self.by_place) + _MOST // 10)
        self._found.clear()
        self._shut = {one: pool for one, pool in self._shut.items() if pool.place in self.by_place}

    def shut(self, subject: str) -> Pool:
        """Return the pool of all that a subject sends, which claims pass until a scout was accepted."""
        pool = self._shut[subject] = self.at(shut_out_place(subject))
        return pool

    def admit(self) -> None:
        """Let subjects that are shut out send again if their scout was accepted."""
        if self._shut:
            self._shut = {one: pool for one, pool in self._shut.items() if pool.needs_scout}

    def note_closed(self, pools: Iterable[Pool], now: float) -> None:
        """Remember which of these pools, and of those that are shut out, pause."""
        known = (*self._closed, *pools, *self._shut.values())
        self._closed = {pool for pool in known if now < pool.gate.until}

    def closed_beside(self, claim: Claim, now: float) -> set[str]:
        """Return the places of the pools that pause, and that a claim does not pass."""
        return self.pauses(now).keys() - claim.pools if self._closed else set()

    def pauses(self, now: float) -> dict[str, float]:
        """Return the ends of the pauses, by place."""
        return {pool.place: pool.gate.until for pool in self._closed if now < pool.gate.until}

    def hold(self, place: str, until: float, now: float) -> bool:
        """Close a pool until then, if it is not: the pause was met elsewhere or earlier. Return whether."""
        self.make_room()
        pool = self.at(place)
        if until <= pool.gate.until:
            return False
        if pool.name == SHUT_OUT:
            self.shut(subject_in(place))
        pool.hold(until, now)
        self.note_closed((pool,), now)
        return True

    def paused_until(self, places: Iterable[str] = ONLY, subjects: Iterable[str] = ()) -> float:
        """Return the end of the last pause of these pools and subjects, minus infinity if there was none."""
        known = [self.by_place[place] for place in places if place in self.by_place]
        known += [self._shut[one] for one in subjects if one in self._shut]
        return max((pool.gate.until for pool in known), default=-math.inf)

    def reopens_at(self, places: Iterable[str], subjects: Iterable[str]) -> float:
        """Return the end of their latest long pause, minus infinity if there was none."""
        all_places = (*places, *map(shut_out_place, subjects))
        known = [self.by_place[place] for place in all_places if place in self.by_place]
        return max((pool.reopens_at for pool in known), default=-math.inf)

    def status(self, now: float) -> dict[str, PoolStatus]:
        """Return what there is to see, by place; of those for each route or parameter, the latest."""
        shown = [pool for place, pool in self.by_place.items() if not of_in(place)]
        parts = (pool for place, pool in self.by_place.items() if of_in(place))
        # Those that are closed, then those that were used last.
        shown += nlargest(_MOST_SHOWN, parts, lambda pool: (pool.blocked_until(now) > now, pool.used_at))
        return {pool.place: pool.status(now) for pool in shown}

    def snapshot(self, now: float) -> dict[str, Snapshot]:
        """Return what each pool has learned, and what is left of its pause, to be kept over a restart."""
        return {place: pool.snapshot(now) for place, pool in self.by_place.items()}

    def restore(self, kept: Mapping[str, Snapshot], now: float) -> float:
        """Start from a snapshot; return what is left of the longest pause, 0 where there is none."""
        longest_s = 0.0
        for place, snapshot in kept.items():
            self.at(place).restore(snapshot, now)
            pause_s = memory.pause_s(snapshot)
            longest_s = max(longest_s, pause_s)
            if pause_s > 0:
                self.hold(place, now + pause_s, now)
        return longest_s
