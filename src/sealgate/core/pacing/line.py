"""The line of those who wait: lanes by rank, and in a lane the bots by start-time fair queueing.

Fairness: each bot has a tag that grows by cost / weight whenever it is served, and the lowest tag goes first
(start-time fair queueing, Goyal, Vin and Cheng 1996). A bot that comes back takes the tag that is served now,
if its own is lower: it goes at once, but saves up nothing. What a bot does not ask for, the others borrow.
Cancels cost no share.

Ranks: cancel, order, read. A lane of lower rank is owed a tenth of all that goes while it waits, so that none
starves.
"""

import heapq
from collections import Counter, deque
from itertools import count

from sealgate.core.pacing.claims import Claim
from sealgate.core.routes import Lane

RANKS = (Lane.CANCEL, Lane.ORDER, Lane.READ)
_OWED = 0.1  # of what goes, to each lower lane that waits (product.md section 3)
_OWED_PROBING = 0.35  # to reads while the limit is probed, because only reads may probe


class Line:
    """Claims in the order in which they will go."""

    def __init__(self) -> None:
        self._lanes: dict[Lane, dict[str, deque[Claim]]] = {lane: {} for lane in RANKS}
        self._owed = dict.fromkeys(RANKS, 0.0)
        self._tags: dict[str, float] = {}
        self._served_tag = 0.0
        self._ends: list[tuple[float, int, Claim]] = []
        self._order = count()
        self._standing: dict[str, Claim] = {}

    def __len__(self) -> int:
        return len(self._standing)

    def __contains__(self, claim: Claim) -> bool:
        return claim.id in self._standing

    def add(self, claim: Claim) -> None:
        """Stand in line: at the end of the bot's claims, or before them when it was refused once."""
        if not self._is_waiting(claim.bot):
            self._tags[claim.bot] = max(self._tags.get(claim.bot, 0.0), self._served_tag)
        queue = self._lanes[claim.lane].setdefault(claim.bot, deque())
        if claim.is_again:
            queue.appendleft(claim)
        else:
            queue.append(claim)
        self._standing[claim.id] = claim
        heapq.heappush(self._ends, (claim.give_up_at, next(self._order), claim))

    def head(self) -> Claim | None:
        """Return who goes next, None when nobody waits."""
        lane = self._next_lane()
        if lane is None:
            return None
        queues = self._lanes[lane]
        return queues[min(queues, key=self._tags.__getitem__)][0]

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
        queue = self._lanes[claim.lane][claim.bot]
        queue.remove(standing)
        if not queue:
            del self._lanes[claim.lane][claim.bot]

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

    def cost_ahead(self, claim: Claim) -> float:
        """Estimate the cost that goes before a claim that enters now."""
        rank = RANKS.index(claim.lane)
        lanes = [self._lanes[lane] for lane in RANKS[: rank + 1]]
        queues = [(bot, queue) for lane in lanes for bot, queue in lane.items()]
        everything = sum(one.cost for _, queue in queues for one in queue)
        mine = sum(one.cost for bot, queue in queues if bot == claim.bot for one in queue)
        weights = {bot: queue[0].weight for bot, queue in queues} | {claim.bot: claim.weight}
        if claim.lane is Lane.CANCEL:
            return everything
        # By its share, a bot with `mine` before it waits for as much as all bots get meanwhile.
        return float(min(everything, mine * sum(weights.values()) / claim.weight))

    def depths(self) -> Counter[tuple[Lane, str]]:
        """Return how many wait, by lane and bot."""
        return Counter(
            {(lane, bot): len(queue) for lane, bots in self._lanes.items() for bot, queue in bots.items()}
        )

    def _is_waiting(self, bot: str) -> bool:
        return any(bot in bots for bots in self._lanes.values())

    def _next_lane(self) -> Lane | None:
        waiting = [lane for lane in RANKS if self._lanes[lane]]
        owed = (lane for lane in waiting if self._owed[lane] >= 1.0)
        return next(owed, waiting[0] if waiting else None)

    def _first_end(self) -> float:
        while self._ends and self._ends[0][2].id not in self._standing:
            heapq.heappop(self._ends)
        return self._ends[0][0] if self._ends else float("inf")
