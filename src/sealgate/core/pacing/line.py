"""The line of those who wait: lanes by rank, and in a lane the bots by start-time fair queueing.

Fairness: each bot has a tag that grows by cost / weight whenever it is served, and the lowest tag goes first
(start-time fair queueing, Goyal, Vin and Cheng 1996). A bot that comes back takes the tag that is served now,
if its own is lower: it goes at once, but saves up nothing. What a bot does not ask for, the others borrow.
Cancels cost no share.

Ranks: cancel, order, read. A lane of lower rank is owed a tenth of all that goes while it waits, so that none
starves.

Every step costs the logarithm of those who wait, at most: queues are kept in order of entry and by id, bots
in heaps by tag, costs as running totals.
"""

import heapq
from collections import Counter
from collections.abc import Iterator
from itertools import count

from sealgate.core.pacing.claims import Claim
from sealgate.core.pacing.queues import LaneQueues
from sealgate.core.routes import Lane

RANKS = (Lane.CANCEL, Lane.ORDER, Lane.READ)
_OWED = 0.1  # of what goes, to each lower lane that waits: none starves
_OWED_PROBING = 0.35  # to reads while the limit is probed, because only reads may probe


class Line:
    """Claims in the order in which they will go."""

    def __init__(self) -> None:
        self._tags: dict[str, float] = {}
        self._lanes = {lane: LaneQueues(self._tags) for lane in RANKS}
        self._upto = {lane: [self._lanes[one] for one in RANKS[: RANKS.index(lane) + 1]] for lane in RANKS}
        self._owed = dict.fromkeys(RANKS, 0.0)
        self._served_tag = 0.0
        self._ends: list[tuple[float, int, Claim]] = []
        self._order = count()
        self._standing: dict[str, Claim] = {}
        self._claims_of: Counter[str] = Counter()
        self._weights = 0.0  # of all bots that wait

    def __len__(self) -> int:
        return len(self._standing)

    def __contains__(self, claim: Claim) -> bool:
        return claim.id in self._standing

    def add(self, claim: Claim) -> None:
        """Stand in line: at the end of the bot's claims, or before them when it was refused once."""
        if not self._claims_of[claim.bot]:
            self._tags[claim.bot] = max(self._tags.get(claim.bot, 0.0), self._served_tag)
            self._weights += claim.weight
        self._claims_of[claim.bot] += 1
        self._lanes[claim.lane].add(claim)
        self._standing[claim.id] = claim
        heapq.heappush(self._ends, (claim.give_up_at, next(self._order), claim))

    def claims(self) -> tuple[Claim, ...]:
        """Return all who stand in line, by the time that they entered."""
        return tuple(self._standing.values())

    def heads(self) -> Iterator[Claim]:
        """Yield the first of each lane, in the order in which they go."""
        waiting = [lane for lane in RANKS if self._lanes[lane]]
        waiting.sort(key=lambda lane: self._owed[lane] < 1.0)
        return (self._lanes[lane].head() for lane in waiting)

    def take(self, claim: Claim, *, is_probing: bool) -> None:
        """Let the head go, and account for it."""
        self.remove(claim)
        for lane in RANKS[1:]:
            if not self._lanes[lane]:
                self._owed[lane] = 0.0
            elif lane is not claim.lane:
                part = _OWED_PROBING if is_probing and lane is Lane.READ else _OWED
                self._owed[lane] += part * claim.cost
        self._owed[claim.lane] = max(0.0, self._owed[claim.lane] - claim.cost)
        if claim.lane is not Lane.CANCEL:
            # The virtual time of start-time fair queueing: who was busy alone owes nothing to later ones.
            self._served_tag = max(self._served_tag, self._tags[claim.bot])
            self._tags[claim.bot] += claim.cost / claim.weight

    def remove(self, claim: Claim) -> None:
        """Take out a claim that stands in line."""
        standing = self._standing.pop(claim.id)
        self._lanes[claim.lane].remove(standing)
        self._claims_of[claim.bot] -= 1
        if not self._claims_of[claim.bot]:
            del self._claims_of[claim.bot]
            self._weights = self._weights - claim.weight if self._standing else 0.0

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

    def cost_ahead(self, claim: Claim, *, is_apart: bool = False) -> float:
        """Estimate the cost that goes before a claim that enters now, of its lane alone if that is apart."""
        lanes = [self._lanes[claim.lane]] if is_apart else self._upto[claim.lane]
        everything = sum(lane.cost for lane in lanes)
        if claim.lane is Lane.CANCEL:
            return everything
        mine = sum(lane.cost_of(claim.bot) for lane in lanes)
        # By its share, a bot with `mine` before it waits for as much as all bots get meanwhile.
        return float(min(everything, mine * self._weights / claim.weight))

    def depths(self) -> Counter[tuple[Lane, str]]:
        """Return how many wait, by lane and bot."""
        return Counter({(lane, bot): depth for lane in RANKS for bot, depth in self._lanes[lane].depths()})

    def _first_end(self) -> float:
        # One that stands no longer, or stands again after it was let go and refused.
        while self._ends and self._standing.get(self._ends[0][2].id) is not self._ends[0][2]:
            heapq.heappop(self._ends)
        return self._ends[0][0] if self._ends else float("inf")
