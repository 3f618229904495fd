"""The queue of waiting claims, in the order of turns.py.

Claims of one key that pass the same pools wait together. Of the pools of a claim, the widest one for which
claims must wait decides when its turn is; see `heads`.

The tasks themselves wait in scheduler.py.

Claims that are alike keep a place each, so that all go when the earliest of them does, which alone pays.

Every step costs at most the logarithm of the number of waiting claims, times that of the pools. Only the
estimate of a wait asks each bot that waits.
"""

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from sealgate.limits.claims import Claim
from sealgate.limits.lane_queues import LaneQueues, cost_before
from sealgate.limits.turns import LANE_SHARE, ONE_REQUEST, RANKS, Turns
from sealgate.venues.routes import Lane

Place = tuple[tuple[str, ...], tuple[str, ...]]


class Group:
    """The claims that wait for the same: what one of them cannot pass, none of them can.

    `turns` are those of their pools, from the narrowest.
    """

    def __init__(self, pools: tuple[str, ...], turns: tuple[Turns, ...]) -> None:
        self.pools = pools
        self.turns = turns
        self.lanes = {lane: LaneQueues(lane, turns) for lane in RANKS}
        self.waiting: dict[str, Claim] = {}
        self._ends: list[tuple[float, int, Claim]] = []
        self._entered = 0

    @property
    def leading(self) -> Turns:
        """Those of the widest pool for which claims must wait: what most others wait for, too."""
        return next((one for one in reversed(self.turns) if one.paced), self.turns[0])

    def add(self, claim: Claim) -> None:
        """Add a claim."""
        self.lanes[claim.lane].add(claim)
        self.waiting[claim.id] = claim
        self._entered += 1
        heapq.heappush(self._ends, (claim.give_up_at, self._entered, claim))

    def remove(self, claim: Claim) -> None:
        """Remove a claim."""
        self.lanes[claim.lane].remove(self.waiting.pop(claim.id))

    def first_end(self) -> float:
        """Return the first deadline, infinity without one."""
        # An entry is stale if its claim has left, or has entered anew after it was refused.
        while self._ends and self.waiting.get(self._ends[0][2].id) is not self._ends[0][2]:
            heapq.heappop(self._ends)
        return self._ends[0][0] if self._ends else float("inf")

    def pop_end(self) -> Claim:
        """Return the claim with the first deadline, and forget the deadline."""
        return heapq.heappop(self._ends)[2]


class WaitQueue:
    """Claims in the order in which they will go."""

    def __init__(self) -> None:
        self._groups: dict[Place, Group] = {}  # those in which claims wait
        self._alike: dict[object, dict[str, Claim]] = {}
        self._entered: dict[str, Claim] = {}

    def __len__(self) -> int:
        return len(self._entered)

    def __contains__(self, claim: Claim) -> bool:
        return claim.id in self._entered

    def add(self, claim: Claim, turns: tuple[Turns, ...]) -> None:
        """Add a claim behind its bot's others, or before them if it was refused once.

        `turns` are those of its pools.
        """
        place = claim.pools, claim.subjects
        group = self._groups.get(place)
        if group is None:
            group = self._groups[place] = Group(claim.pools, turns)
        group.add(claim)
        self._entered[claim.id] = claim
        if claim.alike is not None:
            self._alike.setdefault(claim.alike, {})[claim.id] = claim

    def claims(self) -> tuple[Claim, ...]:
        """Return all claims, in the order in which they entered."""
        return tuple(self._entered.values())

    def groups(self) -> list[Group]:
        """Return the claims by what they wait for."""
        return [*self._groups.values()]

    def groups_at(self, place: str, closed: Collection[str] = ()) -> list[Group]:
        """Return those that pass a pool, and none of those that are closed."""
        return [
            group
            for group in self._groups.values()
            if place in group.pools and not any(one in closed for one in group.pools)
        ]

    def heads(self, busy: Collection[str] = ()) -> Iterator[Claim]:
        """Yield the first claim of each lane and group, in the order in which they go.

        Cancels go first, then orders, whatever pool leads them; in each pool, lanes whose credit has reached
        one request go before the others. A claim of a `busy` serial is a head only if its whole lane is busy.
        """
        led: dict[Turns, list[Group]] = {}
        for group in self._groups.values():
            led.setdefault(group.leading, []).append(group)
        lanes = [turns.lanes() for turns in led]
        for rank in range(len(RANKS)):
            for (turns, groups), ranked in zip(led.items(), lanes, strict=True):
                lane = ranked[rank]
                queues = [group.lanes[lane] for group in groups if group.lanes[lane]]
                heads = [queue.head(turns, busy) for queue in queues]
                if len(heads) > 1:
                    of = turns.tags(lane).of
                    heads.sort(key=lambda claim: (of[claim.bot], claim.bot))
                yield from heads

    def remove(self, claim: Claim) -> None:
        """Remove a claim."""
        waiting = self._entered.pop(claim.id)
        place = waiting.pools, waiting.subjects
        group = self._groups[place]
        group.remove(waiting)
        if not group.waiting:
            del self._groups[place]
        if waiting.alike is not None:
            alike = self._alike[waiting.alike]
            del alike[waiting.id]
            if not alike:
                del self._alike[waiting.alike]

    def take_alike(self, claim: Claim) -> list[Claim]:
        """Remove and return the claims that are like one that goes."""
        alike = [*self._alike.get(claim.alike, {}).values()]
        for one in alike:
            self.remove(one)
        return alike

    def first_alike(self, claim: Claim) -> Iterable[Claim]:
        """Return the first claim of each bot that waits for the same reply."""
        first: dict[str, Claim] = {}
        for one in self._alike.get(claim.alike, {}).values():
            first.setdefault(one.bot, one)
        return first.values()

    def ended(self, group: Group, at: float) -> list[Claim]:
        """Remove and return the claims of a group whose deadline has passed at that time."""
        ended = []
        while group.first_end() <= at:
            claim = group.pop_end()
            self.remove(claim)
            ended.append(claim)
        return ended

    def next_end(self) -> float:
        """Return the first deadline, infinity if the queue is empty."""
        return min((group.first_end() for group in self._groups.values()), default=float("inf"))

    def cost_ahead(  # noqa: PLR0913 - a claim, a pool, and what is known of both
        self,
        claim: Claim,
        groups: Sequence[Group],
        turns: Turns,
        now: float,
        slot_s: float,
        *,
        is_apart: bool = False,
    ) -> float:
        """Estimate the cost that goes before a claim in one of its pools; a cost of 1 takes `slot_s`.

        `groups` are those that wait for this pool.
        """
        # 1. What waits before it in its own lane. If its limits are apart, other lanes take nothing from it.
        lane, rank = claim.lane, RANKS.index(claim.lane)
        found = self._groups.get((claim.pools, claim.subjects))
        mine = LaneQueues(lane, (turns,)) if found is None else found.lanes[lane]
        orders = _lanes(groups, Lane.ORDER) if lane is Lane.READ else []
        own = cost_before(_lanes(groups, lane), mine, orders, claim, turns)
        if is_apart:
            return own
        # 2. What waits in higher lanes, and what lower lanes send on their credit meanwhile.
        ahead = own + sum(one.cost(turns) for higher in RANKS[:rank] for one in _lanes(groups, higher))
        ahead += sum(_early_cost(_lanes(groups, lower), lower, turns, ahead) for lower in RANKS[rank + 1 :])
        if lane is Lane.CANCEL:
            return ahead
        # 3. What will come in higher lanes: as much as of late. But its own lane has its share for certain.
        cost = turns.cost_of(claim)
        guaranteed = max(0.0, own + cost - turns.credit(lane)) / LANE_SHARE
        higher_cost = turns.sent_above(lane, now - slot_s / LANE_SHARE)
        free_share = 1.0 - LANE_SHARE * higher_cost
        if free_share <= LANE_SHARE:
            return guaranteed
        return min((ahead + cost) / free_share - cost, guaranteed)

    def depths(self) -> Counter[tuple[str, Lane, str]]:
        """Return how many claims wait, by key, lane and bot."""
        return Counter((claim.key, claim.lane, claim.bot) for claim in self._entered.values())


def _lanes(groups: Sequence[Group], lane: Lane) -> list[LaneQueues]:
    return [group.lanes[lane] for group in groups if group.lanes[lane]]


def _early_cost(waiting: Sequence[LaneQueues], lane: Lane, turns: Turns, higher_cost: float) -> float:
    """Return the cost that a lane sends before its rank while so much of higher lanes is sent."""
    surplus = turns.credit(lane) + LANE_SHARE * higher_cost - ONE_REQUEST
    if not waiting or surplus < 0:
        return 0.0
    first_cost = turns.cost_of(waiting[0].head(turns))
    return min(sum(one.cost(turns) for one in waiting), surplus + first_cost)
