"""The line of those who wait: lanes by rank, and in a lane the bots by start-time fair queueing.

Fairness: each bot has a tag that grows by cost / weight whenever it is served, and the lowest tag goes first
(start-time fair queueing, Goyal, Vin and Cheng 1996). A bot that comes back takes the tag that is served now,
if its own is lower: it goes at once, but saves up nothing. What a bot does not ask for, the others borrow.
Cancels cost no share. Orders count towards a bot's share of reads, but not the other way round: reads have
a tenth whatever their bots' tags are, so a reader of low weight would fall behind with its orders, and take
with it whoever comes back.

Claims that are alike keep a place each, so that all go when the earliest of them does, which alone pays.

Ranks: cancel, order, read. A lane of lower rank earns a tenth of all that goes, and goes first once it has
earned one request, so that none starves. It keeps what it has earned, up to that one request, while
nothing of it waits: a reader that gave up, or comes rarely, does not begin at nothing again.

Every step costs the logarithm of those who wait, at most: queues are kept in order of entry and by id, bots
in heaps by tag, costs as running totals. Only the estimate of a wait asks each bot that waits.
"""

import heapq
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator

from sealgate.limits.claims import Claim
from sealgate.limits.lane_queues import LaneQueues, Tags
from sealgate.venues.routes import Lane

RANKS = (Lane.CANCEL, Lane.ORDER, Lane.READ)
_OWED = 0.1  # of what goes, to each lower lane: none starves
_WHOLE = 1.0 - 1e-9  # one request's worth, as ten tenths are summed up
_OWED_PROBING = 0.35  # to reads while the limit is probed, because only reads may probe


class WaitQueue:
    """Claims in the order in which they will go."""

    def __init__(self) -> None:
        self._orders, self._all = Tags(), Tags()
        self._lanes = {lane: LaneQueues(self._all if lane is Lane.READ else self._orders) for lane in RANKS}
        self._above = {lane: [self._lanes[one] for one in RANKS[: RANKS.index(lane)]] for lane in RANKS}
        self._owed = dict.fromkeys(RANKS, 0.0)
        # What went of late: when, rank and cost. Twice as many as a lane with a tenth has one of.
        self._gone: deque[tuple[float, int, float]] = deque(maxlen=round(2 / _OWED))
        self._ends: list[tuple[float, int, Claim]] = []
        self._entered = 0
        self._standing: dict[str, Claim] = {}
        self._alike: dict[object, dict[str, Claim]] = {}

    def __len__(self) -> int:
        return len(self._standing)

    def __contains__(self, claim: Claim) -> bool:
        return claim.id in self._standing

    def add(self, claim: Claim) -> None:
        """Stand in line: at the end of the bot's claims, or before them when it was refused once."""
        self._lanes[claim.lane].add(claim)
        self._standing[claim.id] = claim
        if claim.alike is not None:
            self._alike.setdefault(claim.alike, {})[claim.id] = claim
        self._entered += 1
        heapq.heappush(self._ends, (claim.give_up_at, self._entered, claim))

    def claims(self) -> tuple[Claim, ...]:
        """Return all who stand in line, by the time that they entered."""
        return tuple(self._standing.values())

    def heads(self, busy: Collection[str] = ()) -> Iterator[Claim]:
        """Yield the first of each lane, in the order in which they go; before it, none of a `busy` serial."""
        waiting = [lane for lane in RANKS if self._lanes[lane]]
        waiting.sort(key=lambda lane: self._owed[lane] < _WHOLE)
        return (self._lanes[lane].head(busy) for lane in waiting)

    def take(self, claim: Claim, now: float, *, is_probing: bool) -> None:
        """Let the head go, and account for it."""
        self.remove(claim)
        self._gone.append((now, RANKS.index(claim.lane), claim.cost))
        # Whoever went before its rank pays in full; whoever went by its rank took nothing from anybody.
        owed = self._owed[claim.lane]
        self._owed[claim.lane] = owed - claim.cost if owed >= _WHOLE else max(0.0, owed - claim.cost)
        for lane in RANKS[1:]:
            if self._owed[lane] < _WHOLE:
                part = _OWED_PROBING if is_probing and lane is Lane.READ else _OWED
                earned = part * claim.cost
                self._owed[lane] = min(self._owed[lane] + earned, max(1.0, earned))
        if claim.lane is not Lane.CANCEL:
            self._all.charge(claim)
        if claim.lane is Lane.ORDER:
            self._orders.charge(claim)

    def remove(self, claim: Claim) -> None:
        """Take out a claim that stands in line."""
        standing = self._standing.pop(claim.id)
        self._lanes[claim.lane].remove(standing)
        if standing.alike is not None:
            alike = self._alike[standing.alike]
            del alike[standing.id]
            if not alike:
                del self._alike[standing.alike]

    def take_alike(self, claim: Claim) -> list[Claim]:
        """Take out and return those that are like a claim that goes."""
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

    def ended(self, now: float) -> list[Claim]:
        """Take out and return the claims whose time is over at `now`."""
        over = []
        while self._first_end() <= now:
            claim = heapq.heappop(self._ends)[2]
            self.remove(claim)
            over.append(claim)
        return over

    def next_end(self) -> float | None:
        """Return when the first claim gives up, None when nobody waits."""
        end = self._first_end()
        return end if self._ends else None

    def cost_ahead(self, claim: Claim, now: float, slot_s: float, *, is_apart: bool = False) -> float:
        """Estimate the cost that goes before a claim that waits or enters now, one of cost 1 in `slot_s`.

        Beside what waits before it, others of higher lanes will come, as many as of late; but its lane has
        its tenth for certain, and so have those below it. Where its lane `is_apart`, the others take nothing
        from it. Queues of mixed costs are counted by their first claim: each queue that goes by turns with
        this one may hold one dear request more than that.
        """
        orders = self._lanes[Lane.ORDER] if claim.lane is Lane.READ else None
        lane = self._lanes[claim.lane]
        own = lane.cost_before(claim, lane.tag_of(claim.bot), orders)
        if is_apart:
            return own
        ahead = own + sum(above.cost for above in self._above[claim.lane])
        ahead += sum(self._owed_to(lane, ahead) for lane in RANKS[RANKS.index(claim.lane) + 1 :])
        if claim.lane is Lane.CANCEL:
            return ahead
        guaranteed = max(0.0, own + claim.cost - self._owed[claim.lane]) / _OWED
        left = 1.0 - _OWED * self._taken_above(claim.lane, now - slot_s / _OWED)
        if left <= _OWED:
            return guaranteed
        return min((ahead + claim.cost) / left - claim.cost, guaranteed)

    def _owed_to(self, lane: Lane, gone: float) -> float:
        """Return the cost that goes from a lane as its tenth, beside that much of higher ones."""
        waiting = self._lanes[lane]
        beyond = self._owed[lane] + _OWED * gone - _WHOLE
        return min(waiting.cost, beyond + waiting.head().cost) if waiting and beyond >= 0 else 0.0

    def _taken_above(self, lane: Lane, since: float) -> float:
        """Return the cost that waited in higher lanes and went since then."""
        rank = RANKS.index(lane)
        return sum(cost for at, its_rank, cost in self._gone if at > since and its_rank < rank)

    def depths(self) -> Counter[tuple[Lane, str]]:
        """Return how many wait, by lane and bot."""
        if not self._standing:
            return Counter()
        return Counter({(lane, bot): depth for lane in RANKS for bot, depth in self._lanes[lane].depths()})

    def _first_end(self) -> float:
        # One that stands no longer, or stands again after it was let go and refused.
        while self._ends and self._standing.get(self._ends[0][2].id) is not self._ends[0][2]:
            heapq.heappop(self._ends)
        return self._ends[0][0] if self._ends else float("inf")
