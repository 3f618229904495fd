"""The queues of one lane: the claims of each bot in order, and the bots by tag.

Claims that are alike go as one, so they cost as much as one: in the lane, and among those of one bot.
The heap may hold a bot with an old tag, or one without claims: tags only grow, so such an entry comes up too
early, and is corrected then.
"""

import heapq
import math
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import takewhile

from sealgate.limits.claims import Claim
from sealgate.venues.routes import Lane


class Tags:
    """The cost that was sent for each bot, divided by its weight; `served` is the highest reached in turn."""

    def __init__(self) -> None:
        self.of: defaultdict[str, float] = defaultdict(float)
        self.served = 0.0

    def charge(self, claim: Claim) -> None:
        """Count a claim that goes. `served` is the virtual time: a bot that was alone owes nothing later."""
        self.served = max(self.served, self.of[claim.bot])
        self.of[claim.bot] += claim.cost / claim.weight


class LaneQueues:
    """Claims by bot; the bots go by their tags, which lanes may have in common."""

    def __init__(self, tags: Tags) -> None:
        self._tags = tags
        self._queues: dict[str, OrderedDict[str, Claim]] = {}
        self._costs: defaultdict[str, float] = defaultdict(float)
        self._serials: defaultdict[str, Counter[str]] = defaultdict(Counter)  # how many of each, by bot
        self._heap: list[tuple[float, str]] = []
        self._heaped: set[str] = set()
        self._alike: Counter[tuple[str | None, object]] = Counter()  # of a bot, and of all (None)
        self.cost = 0.0  # of all claims

    def __bool__(self) -> bool:
        return bool(self._queues)

    def add(self, claim: Claim) -> None:
        """Add a claim behind its bot's others, or before them if it was refused once."""
        queue = self._queues.get(claim.bot)
        if queue is None:
            tag = self._tags.of[claim.bot] = self.tag_of(claim.bot)
            queue = self._queues[claim.bot] = OrderedDict()
            if claim.bot not in self._heaped:
                self._heaped.add(claim.bot)
                heapq.heappush(self._heap, (tag, claim.bot))
        queue[claim.id] = claim
        if claim.is_again:
            queue.move_to_end(claim.id, last=False)
        self._costs[claim.bot] += self._cost_of_one_more(claim.bot, claim, 1)
        self.cost += self._cost_of_one_more(None, claim, 1)
        self._serials[claim.bot][claim.serial] += 1

    def tag_of(self, bot: str) -> float:
        """Return a bot's tag. A bot that returns saved up nothing, but is not behind those that wait here.

        `served` may be higher than all tags here, by a lane that went before its rank.
        """
        tag = self._tags.of[bot]
        if bot in self._queues:
            return tag
        served = self._tags.served
        return max(tag, min(served, self._tags.of[self._first().bot]) if self._queues else served)

    def head(self, busy: Collection[str] = ()) -> Claim:
        """Return the first claim of the bot with the lowest tag; the lane must not be empty.

        A claim of a `busy` serial, which waits for a reply, lets the others go before it.
        """
        first = self._first()
        return next(self._free(busy), first) if first.serial in busy else first

    def _free(self, busy: Collection[str]) -> Iterator[Claim]:
        """Yield the claims of serials that are not busy, in order."""
        for bot in sorted(self._queues, key=lambda bot: (self._tags.of[bot], bot)):
            if not all(serial in busy for serial in self._serials[bot]):
                yield from (claim for claim in self._queues[bot].values() if claim.serial not in busy)

    def _first(self) -> Claim:
        while True:
            tag, bot = self._heap[0]
            if bot not in self._queues:
                heapq.heappop(self._heap)
                self._heaped.remove(bot)
            elif tag != self._tags.of[bot]:
                heapq.heapreplace(self._heap, (self._tags.of[bot], bot))
            else:
                return next(iter(self._queues[bot].values()))

    def remove(self, claim: Claim) -> None:
        """Remove a claim."""
        queue = self._queues[claim.bot]
        del queue[claim.id]
        self._costs[claim.bot] -= self._cost_of_one_more(claim.bot, claim, -1)
        self.cost -= self._cost_of_one_more(None, claim, -1)
        serials = self._serials[claim.bot]
        serials[claim.serial] -= 1
        if not serials[claim.serial]:
            del serials[claim.serial]
        if not queue:
            del self._queues[claim.bot], self._costs[claim.bot], self._serials[claim.bot]

    def _cost_of_one_more(self, bot: str | None, claim: Claim, more: int) -> float:
        """Count one claim more, or one less, of those alike; return the cost that this adds or removes."""
        if claim.alike is None:
            return claim.cost
        place = bot, claim.alike
        before = self._alike[place]
        self._alike[place] = before + more
        if not self._alike[place]:
            del self._alike[place]
        return 0.0 if before and before + more else claim.cost

    def cost_of(self, bot: str) -> float:
        """Return the cost of a bot's claims."""
        return self._costs.get(bot, 0.0)

    def cost_before(self, claim: Claim, tag: float, orders: "LaneQueues | None" = None) -> float:
        """Return the cost in this lane that goes before a claim that waits or enters now; its bot has `tag`.

        Its bot's earlier claims do, and of every other bot as many as have a lower tag when its turn comes.
        Cancels do not raise tags; `orders`, which go before this whole lane, do.
        """
        before = self._cost_of_earlier(claim)
        costs_share = claim.lane is not Lane.CANCEL
        due = before + (orders.cost_of(claim.bot) if orders else 0.0)
        its_tag = tag + due / claim.weight
        for bot, queue in self._queues.items():
            if bot == claim.bot:
                continue
            first, owns = next(iter(queue.values())), self._tags.of[bot]
            if orders:
                owns += orders.cost_of(bot) / first.weight
            if costs_share:
                turns = (its_tag - owns) * first.weight / first.cost
                # Of equal tags the first by name comes up.
                whole = math.floor(turns) + 1 if bot < claim.bot else math.ceil(turns)
                before += min(self._costs[bot], max(0, whole) * first.cost)
            elif (owns, bot) < (tag, claim.bot):
                before += self._costs[bot]
        return min(before, self.cost)

    def _cost_of_earlier(self, claim: Claim) -> float:
        """Return the cost of the claims of its bot that go before one that waits or enters now."""
        queue = self._queues.get(claim.bot)
        if queue is None or claim.id not in queue:
            return 0.0 if claim.is_again else self.cost_of(claim.bot)
        earlier = takewhile(lambda one: one.id != claim.id, queue.values())
        return sum({one.id if one.alike is None else (one.alike,): one.cost for one in earlier}.values())

    def depths(self) -> Iterable[tuple[str, int]]:
        """Return how many claims wait, by bot."""
        return ((bot, len(queue)) for bot, queue in self._queues.items())
