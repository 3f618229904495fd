"""The queue of waiting claims: lanes by rank, and in a lane the bots by start-time fair queueing.

The rank is cancel, order, read. In a lane, each bot has a tag that grows by cost / weight whenever one of its
claims is sent, and the bot with the lowest tag goes first (Goyal, Vin and Cheng 1996). A bot that returns
takes the tag that is served now, if its own is lower: it goes at once, but saves up nothing. What a bot does
not ask for, the others borrow.

The tasks themselves wait in scheduler.py.

Claims that are alike keep a place each, so that all go when the earliest of them does, which alone pays.

Every step costs at most the logarithm of the number of waiting claims. Only the estimate of a wait asks each
bot that waits.
"""

import heapq
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from sealgate.limits.claims import Claim
from sealgate.limits.lane_queues import LaneQueues, Tags
from sealgate.venues.routes import Lane

RANKS = (Lane.CANCEL, Lane.ORDER, Lane.READ)
LANE_SHARE = 0.1  # of every cost that is sent: what each lower lane earns, so that none starves
PROBING_SHARE = 0.35  # what reads earn while the limit is probed, because only reads may probe
ONE_REQUEST = (
    1.0 - 1e-9
)  # the credit at which a lane goes before its rank; ten tenths sum up to a little less


class Sent(NamedTuple):
    """A claim that was sent from the queue."""

    at: float
    rank: int
    cost: float


class WaitQueue:
    """Claims in the order in which they will go."""

    def __init__(self) -> None:
        self._order_tags, self._tags = Tags(), Tags()
        self._lanes = {
            lane: LaneQueues(self._tags if lane is Lane.READ else self._order_tags) for lane in RANKS
        }
        self._credit = dict.fromkeys(RANKS, 0.0)
        # Twice as many as it takes a lane to earn one request.
        self._recent: deque[Sent] = deque(maxlen=round(2 / LANE_SHARE))
        self._ends: list[tuple[float, int, Claim]] = []
        self._entered = 0
        self._waiting: dict[str, Claim] = {}
        self._alike: dict[object, dict[str, Claim]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, claim: Claim) -> bool:
        return claim.id in self._waiting

    def add(self, claim: Claim) -> None:
        """Add a claim behind its bot's others, or before them if it was refused once."""
        self._lanes[claim.lane].add(claim)
        self._waiting[claim.id] = claim
        if claim.alike is not None:
            self._alike.setdefault(claim.alike, {})[claim.id] = claim
        self._entered += 1
        heapq.heappush(self._ends, (claim.give_up_at, self._entered, claim))

    def claims(self) -> tuple[Claim, ...]:
        """Return all claims, in the order in which they entered."""
        return tuple(self._waiting.values())

    def heads(self, busy: Collection[str] = ()) -> Iterator[Claim]:
        """Yield the first claim of each lane, in the order in which they go.

        Lanes whose credit has reached one request go before the others. A claim of a `busy` serial is a head
        only if its whole lane is busy.
        """
        waiting = [lane for lane in RANKS if self._lanes[lane]]
        waiting.sort(key=lambda lane: self._credit[lane] < ONE_REQUEST)
        return (self._lanes[lane].head(busy) for lane in waiting)

    def send_head(self, claim: Claim, now: float, *, is_probing: bool) -> None:
        """Remove the claim at the head of its lane, and charge its lane and its bot for it.

        Lower lanes must not starve: each earns credit worth a tenth of every claim sent, and a lane whose
        credit has reached one request goes before its rank.
        """
        self.remove(claim)
        self._recent.append(Sent(now, RANKS.index(claim.lane), claim.cost))

        # 1. Charge the lane. A lane that went before its rank spends its credit, below zero if the claim cost
        #    more than one request; a lane that went by its rank cannot fall below zero.
        credit = self._credit[claim.lane]
        went_early = credit >= ONE_REQUEST
        self._credit[claim.lane] = credit - claim.cost if went_early else max(0.0, credit - claim.cost)

        # 2. Every lower lane earns its share, up to one request, even while it is empty: credit outlives an
        #    idle moment, but is not hoarded.
        for lane in (Lane.ORDER, Lane.READ):
            if self._credit[lane] < ONE_REQUEST:
                share = PROBING_SHARE if is_probing and lane is Lane.READ else LANE_SHARE
                earned = share * claim.cost
                self._credit[lane] = min(self._credit[lane] + earned, max(1.0, earned))

        # 3. Charge the bot. Cancels are free. An order counts towards its bot's share of reads; a read does
        #    not count towards its share of orders, or a reader of low weight would fall behind with them.
        if claim.lane is not Lane.CANCEL:
            self._tags.charge(claim)
        if claim.lane is Lane.ORDER:
            self._order_tags.charge(claim)

    def remove(self, claim: Claim) -> None:
        """Remove a claim."""
        waiting = self._waiting.pop(claim.id)
        self._lanes[claim.lane].remove(waiting)
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

    def ended(self, now: float) -> list[Claim]:
        """Remove and return the claims whose deadline has passed at `now`."""
        ended = []
        while self._first_end() <= now:
            claim = heapq.heappop(self._ends)[2]
            self.remove(claim)
            ended.append(claim)
        return ended

    def next_end(self) -> float | None:
        """Return the first deadline, None if the queue is empty."""
        end = self._first_end()
        return end if self._ends else None

    def _first_end(self) -> float:
        # An entry is stale if its claim has left, or has entered anew after it was refused.
        while self._ends and self._waiting.get(self._ends[0][2].id) is not self._ends[0][2]:
            heapq.heappop(self._ends)
        return self._ends[0][0] if self._ends else float("inf")

    def cost_ahead(self, claim: Claim, now: float, slot_s: float, *, is_apart: bool = False) -> float:
        """Estimate the cost that goes before a claim that waits or enters now; a cost of 1 takes `slot_s`.

        In a queue of mixed costs each bot counts by its first claim: it may hold one dear request more.
        """
        # 1. What waits before it in its own lane. If its limits are apart, other lanes take nothing from it.
        orders = self._lanes[Lane.ORDER] if claim.lane is Lane.READ else None
        lane, rank = self._lanes[claim.lane], RANKS.index(claim.lane)
        own = lane.cost_before(claim, lane.tag_of(claim.bot), orders)
        if is_apart:
            return own
        # 2. What waits in higher lanes, and what lower lanes send on their credit meanwhile.
        ahead = own + sum(self._lanes[higher].cost for higher in RANKS[:rank])
        ahead += sum(self._early_cost(lower, ahead) for lower in RANKS[rank + 1 :])
        if claim.lane is Lane.CANCEL:
            return ahead
        # 3. What will come in higher lanes: as much as of late. But its own lane has its share for certain.
        guaranteed = max(0.0, own + claim.cost - self._credit[claim.lane]) / LANE_SHARE
        since = now - slot_s / LANE_SHARE
        higher_cost = sum(sent.cost for sent in self._recent if sent.at > since and sent.rank < rank)
        free_share = 1.0 - LANE_SHARE * higher_cost
        if free_share <= LANE_SHARE:
            return guaranteed
        return min((ahead + claim.cost) / free_share - claim.cost, guaranteed)

    def _early_cost(self, lane: Lane, higher_cost: float) -> float:
        """Return the cost that a lane sends before its rank while so much of higher lanes is sent."""
        waiting = self._lanes[lane]
        surplus = self._credit[lane] + LANE_SHARE * higher_cost - ONE_REQUEST
        return min(waiting.cost, surplus + waiting.head().cost) if waiting and surplus >= 0 else 0.0

    def depths(self) -> Counter[tuple[Lane, str]]:
        """Return how many claims wait, by lane and bot."""
        if not self._waiting:
            return Counter()
        return Counter({(lane, bot): depth for lane in RANKS for bot, depth in self._lanes[lane].depths()})
