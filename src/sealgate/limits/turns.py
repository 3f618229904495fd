"""Whose turn it is in a pool: lanes by rank, and in a lane the bots by start-time fair queueing.

The rank is cancel, order, read. In a lane, each bot has a tag that grows by cost / weight whenever one of its
claims is sent, and the bot with the lowest tag goes first (Goyal, Vin and Cheng 1996). A bot that returns
takes the tag that is served now, if its own is lower: it goes at once, but saves up nothing. What a bot does
not ask for, the others borrow.

Each pool has turns of its own: who sends much in one owes nothing in another.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import NamedTuple

from sealgate.limits.claims import Claim
from sealgate.venues.routes import Lane

RANKS = (Lane.CANCEL, Lane.ORDER, Lane.READ)
LANE_SHARE = 0.1  # of every cost that is sent: what each lower lane earns, so that none starves
PROBING_SHARE = 0.35  # what reads earn while the limit is probed, because only reads may probe
ONE_REQUEST = (
    1.0 - 1e-9
)  # the credit at which a lane goes before its rank; ten tenths sum up to a little less


class Tags:
    """The cost that was sent for each bot, divided by its weight; `served` is the highest reached in turn."""

    def __init__(self) -> None:
        self.of: defaultdict[str, float] = defaultdict(float)
        self.served = 0.0

    def charge(self, claim: Claim, cost: float) -> None:
        """Count a claim that goes. `served` is the virtual time: a bot that was alone owes nothing later."""
        self.served = max(self.served, self.of[claim.bot])
        self.of[claim.bot] += cost / claim.weight


class _Sent(NamedTuple):
    """A claim that was sent from the queue."""

    at: float
    rank: int
    cost: float


class Turns:
    """The turns of one pool. `counts_requests`: each costs 1.

    `paced` are the classes that go at a pace: a claim had to wait, and none found its turn free since.
    """

    def __init__(self, *, counts_requests: bool = False) -> None:
        self.counts_requests = counts_requests
        self.paced: set[bool] = set()
        self._order_tags, self._tags = Tags(), Tags()
        self._credit = dict.fromkeys(RANKS, 0.0)
        # Twice as many as it takes a lane to earn one request.
        self._recent: deque[_Sent] = deque(maxlen=round(2 / LANE_SHARE))

    def tags(self, lane: Lane) -> Tags:
        """Return the tags by which a lane goes."""
        return self._tags if lane is Lane.READ else self._order_tags

    def cost_of(self, claim: Claim) -> float:
        """Return what a claim takes of the pool."""
        return 1.0 if self.counts_requests else claim.cost

    def lanes(self) -> Sequence[Lane]:
        """Return the lanes in the order in which they go: first those that have earned a request."""
        credit = self._credit
        if credit[Lane.READ] < ONE_REQUEST and credit[Lane.ORDER] < ONE_REQUEST:
            return RANKS
        return sorted(RANKS, key=lambda lane: credit[lane] < ONE_REQUEST)

    def credit(self, lane: Lane) -> float:
        """Return the cost that a lane has earned."""
        return self._credit[lane]

    def sent_above(self, lane: Lane, since: float) -> float:
        """Return the cost that lanes of a higher rank sent of late."""
        rank = RANKS.index(lane)
        return sum(sent.cost for sent in self._recent if sent.at > since and sent.rank < rank)

    def charge(self, claim: Claim, now: float, *, is_probing: bool) -> None:
        """Charge its lane and its bot for a claim that goes from the queue.

        Lower lanes must not starve: each earns credit worth a tenth of every claim sent, and a lane whose
        credit has reached one request goes before its rank.
        """
        lane, cost = claim.lane, self.cost_of(claim)
        self._recent.append(_Sent(now, RANKS.index(lane), cost))
        # 1. Charge the lane. A lane that went before its rank spends its credit, below zero if the claim cost
        #    more than one request; a lane that went by its rank cannot fall below zero.
        credit = self._credit[lane]
        self._credit[lane] = credit - cost if credit >= ONE_REQUEST else max(0.0, credit - cost)
        # 2. Every lower lane earns its share, up to one request, even while it is empty: credit outlives an
        #    idle moment, but is not hoarded.
        for lower in (Lane.ORDER, Lane.READ):
            if self._credit[lower] < ONE_REQUEST:
                share = PROBING_SHARE if is_probing and lower is Lane.READ else LANE_SHARE
                earned = share * cost
                self._credit[lower] = min(self._credit[lower] + earned, max(1.0, earned))
        # 3. Charge the bot. Cancels are free. An order counts towards its bot's share of reads; a read does
        #    not count towards its share of orders, or a reader of low weight would fall behind with them.
        if lane is not Lane.CANCEL:
            self._tags.charge(claim, cost)
        if lane is Lane.ORDER:
            self._order_tags.charge(claim, cost)
