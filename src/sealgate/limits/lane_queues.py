"""The claims of one lane that pass the same pools: those of each bot in order, and the bots by tag.

Claims that are alike go as one, so they cost as much as one: in the lane, and among those of one bot.
A heap may hold a bot with an old tag, or one without claims: tags only grow, so such an entry comes up too
early, and is corrected then.
"""

import heapq
import math
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile

from sealgate.limits.claims import Claim
from sealgate.limits.turns import Tags, Turns
from sealgate.venues.routes import Lane

Queues = dict[str, OrderedDict[str, Claim]]  # the claims of each bot, by their id


class _Order:
    """The bots of a lane in the order of one pool's tags."""

    def __init__(self, tags: Tags) -> None:
        self.tags = tags
        self._heap: list[tuple[float, str]] = []
        self._heaped: set[str] = set()

    def add(self, bot: str, queues: Queues) -> None:
        """Add a bot that returns: it saved up nothing, but is not behind those that wait here."""
        self.tags.of[bot] = tag = self.tag_of(bot, queues)
        if bot not in self._heaped:
            self._heaped.add(bot)
            heapq.heappush(self._heap, (tag, bot))

    def tag_of(self, bot: str, queues: Queues) -> float:
        """Return the tag of a bot that waits here or would.

        `served` may be higher than all tags here, by a lane that went before its rank.
        """
        tag = self.tags.of[bot]
        if bot in queues:
            return tag
        served = self.tags.served
        return max(tag, min(served, self.tags.of[self.first(queues)]) if queues else served)

    def first(self, queues: Queues) -> str:
        """Return the bot with the lowest tag; some bot must wait."""
        while True:
            tag, bot = self._heap[0]
            if bot not in queues:
                heapq.heappop(self._heap)
                self._heaped.remove(bot)
            elif tag != self.tags.of[bot]:
                heapq.heapreplace(self._heap, (self.tags.of[bot], bot))
            else:
                return bot


class LaneQueues:
    """Claims by bot, which go by the tags of the pool that is `turns`, one of those that all of them pass."""

    def __init__(self, lane: Lane, turns: Sequence[Turns]) -> None:
        self._orders = {one: _Order(one.tags(lane)) for one in turns}
        self._queues: Queues = {}
        self._costs: defaultdict[str, float] = defaultdict(float)
        self._counts: defaultdict[str, int] = defaultdict(int)
        self._serials: defaultdict[str, Counter[str]] = defaultdict(Counter)  # how many of each, by bot
        self._alike: Counter[tuple[str | None, object]] = Counter()  # of a bot, and of all (None)
        self._cost, self._count = 0.0, 0  # of all claims

    def __bool__(self) -> bool:
        return bool(self._queues)

    def add(self, claim: Claim) -> None:
        """Add a claim behind its bot's others, or before them if it was refused once."""
        queue = self._queues.get(claim.bot)
        if queue is None:
            for order in self._orders.values():
                order.add(claim.bot, self._queues)
            queue = self._queues[claim.bot] = OrderedDict()
        queue[claim.id] = claim
        if claim.is_again:
            queue.move_to_end(claim.id, last=False)
        self._count_in(claim, 1)
        self._serials[claim.bot][claim.serial] += 1

    def remove(self, claim: Claim) -> None:
        """Remove a claim."""
        queue = self._queues[claim.bot]
        del queue[claim.id]
        self._count_in(claim, -1)
        serials = self._serials[claim.bot]
        serials[claim.serial] -= 1
        if not serials[claim.serial]:
            del serials[claim.serial]
        if not queue:
            for by_bot in (self._queues, self._costs, self._counts, self._serials):
                del by_bot[claim.bot]

    def _count_in(self, claim: Claim, more: int) -> None:
        """Count one claim more or less; of those alike only one."""
        bot = claim.bot
        for whose in (bot, None):
            changes = True
            if claim.alike is not None:
                place = whose, claim.alike
                before = self._alike[place]
                self._alike[place] = before + more
                if not self._alike[place]:
                    del self._alike[place]
                changes = not (before and before + more)
            change = more if changes else 0
            if whose is None:
                self._cost += change * claim.cost
                self._count += change
            else:
                self._costs[bot] += change * claim.cost
                self._counts[bot] += change

    def tag_of(self, bot: str, turns: Turns) -> float:
        """Return a bot's tag, as `_Order.tag_of` does."""
        return self._orders[turns].tag_of(bot, self._queues)

    def head(self, turns: Turns, busy: Collection[str] = ()) -> Claim:
        """Return the first claim of the bot with the lowest tag; the lane must not be empty.

        A claim of a `busy` serial, which waits for a reply, lets the others go before it.
        """
        order = self._orders[turns]
        first = next(iter(self._queues[order.first(self._queues)].values()))
        return next(self._free(order.tags, busy), first) if first.serial in busy else first

    def _free(self, tags: Tags, busy: Collection[str]) -> Iterator[Claim]:
        """Yield the claims of serials that are not busy, in order."""
        for bot in sorted(self._queues, key=lambda bot: (tags.of[bot], bot)):
            if not all(serial in busy for serial in self._serials[bot]):
                yield from (claim for claim in self._queues[bot].values() if claim.serial not in busy)

    def cost(self, turns: Turns) -> float:
        """Return what all claims take of a pool."""
        return self._count if turns.counts_requests else self._cost

    def cost_of(self, bot: str, turns: Turns) -> float:
        """Return what a bot's claims take of a pool."""
        return self._counts.get(bot, 0) if turns.counts_requests else self._costs.get(bot, 0.0)

    def first_of(self, bot: str) -> Claim:
        """Return the first claim of a bot that waits here."""
        return next(iter(self._queues[bot].values()))

    def bots(self) -> Iterable[str]:
        """Return who waits."""
        return self._queues

    def has(self, bot: str) -> bool:
        """Return whether a bot waits."""
        return bot in self._queues

    def cost_of_earlier(self, claim: Claim, turns: Turns) -> float:
        """Return the cost of the claims of its bot that go before one that waits or enters now."""
        queue = self._queues.get(claim.bot)
        if queue is None or claim.id not in queue:
            return 0.0 if claim.is_again else self.cost_of(claim.bot, turns)
        earlier = takewhile(lambda one: one.id != claim.id, queue.values())
        costs = {one.id if one.alike is None else (one.alike,): turns.cost_of(one) for one in earlier}
        return sum(costs.values())


def cost_before(
    lane: Sequence[LaneQueues], own: LaneQueues, orders: Sequence[LaneQueues], claim: Claim, turns: Turns
) -> float:
    """Return the cost in a pool's lane that goes before a claim that waits or enters `own` now.

    Its bot's earlier claims do, and of every other bot as many as have a lower tag when its turn comes. In a
    lane of mixed costs each bot counts by its first claim: it may hold one dear request more. Cancels do not
    raise tags; `orders`, which go before a whole lane of reads, do.
    """
    before, tags = own.cost_of_earlier(claim, turns), turns.tags(claim.lane)
    costs_share = claim.lane is not Lane.CANCEL
    tag = own.tag_of(claim.bot, turns)
    of_orders, waits = _costs(orders, turns), _costs(lane, turns)
    its_tag = tag + (before + of_orders.get(claim.bot, 0.0)) / claim.weight
    whole_cost = sum(one.cost(turns) for one in lane)
    waits.pop(claim.bot, None)
    for bot, cost in waits.items():
        first = next(one.first_of(bot) for one in lane if one.has(bot))
        owns = tags.of[bot] + of_orders.get(bot, 0.0) / first.weight
        if costs_share:
            first_cost = turns.cost_of(first)
            rounds = (its_tag - owns) * first.weight / first_cost
            # Of equal tags the first by name comes up.
            whole = math.floor(rounds) + 1 if bot < claim.bot else math.ceil(rounds)
            before += min(cost, max(0, whole) * first_cost)
        elif (owns, bot) < (tag, claim.bot):
            before += cost
    return min(before, whole_cost)


def _costs(queues: Iterable[LaneQueues], turns: Turns) -> dict[str, float]:
    """Return what the claims of each bot take of a pool."""
    costs: dict[str, float] = {}
    for queue in queues:
        for bot in queue.bots():
            costs[bot] = costs.get(bot, 0.0) + queue.cost_of(bot, turns)
    return costs
