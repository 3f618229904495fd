"""Idempotency: what was answered to an `Idempotency-Key`, so that a request sent twice is executed once.

The rule behind it: between the first `begin` of a key and the moment it is forgotten, no second request
with that key is sent. A key is forgotten only where that can double nothing (`is_remembered`), and by the
bounds: the settled ones go, oldest first, once there are too many, too large or too old ones. One that is
under way is never dropped; where nothing but those is left, a new key is declined. Each bot has bounds of its
own, so that nothing that one does makes another's keys forgotten.

Source: draft-ietf-httpapi-idempotency-key-header.
"""

import re
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from sealgate.errors import Refusal
from sealgate.orders.outcome import LARGEST_BODY, BotReply, Conclusion, Ending, is_remembered

_KEY = re.compile(r"[!-~]{1,255}")


class Name(NamedTuple):
    """Whose key: two bots may use the same one."""

    bot: str
    key: str


@dataclass(frozen=True, slots=True)
class Kept:
    """What comes back from the journal after a restart; `age_s` is the time since it was settled."""

    name: Name
    digest: str
    ending: Ending
    age_s: float


@dataclass(frozen=True, slots=True)
class Fresh:
    """The first with this key: send it, and `finish` it whatever happens."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """Answered before: pass this reply on, with this conclusion and fence, and send nothing."""

    reply: BotReply
    conclusion: Conclusion
    fence_ms: int


@dataclass(frozen=True, slots=True)
class Declined:
    """Send nothing: answer with the reason `slug`, and what the bot may conclude of the order with this key.

    `fence_ms` is that of the first request, 0 where it is not signed yet.
    """

    slug: str
    detail: str
    conclusion: Conclusion
    fence_ms: int = 0


@dataclass(frozen=True, slots=True)
class ReplayBounds:
    """How many keys and bytes of replies are remembered of one bot, and how long after they were settled."""

    most_count: int
    most_bytes: int
    longest_s: float


_FRESH = Fresh()


@dataclass(slots=True)
class _InFlight:
    digest: str
    fence_ms: int = 0


@dataclass(slots=True)
class _Settled:
    """How it ended, but for the reply, which is kept apart as long as there is room for it."""

    digest: str
    conclusion: Conclusion
    fence_ms: int
    at: float


def parse_key(value: str) -> str:
    """Check an Idempotency-Key and return it as it is. Raises Refusal `bad_request`.

    The draft writes it as a quoted string, most clients without quotes. Both are taken literally, so that
    the same bytes are always the same key.
    """
    if not _KEY.fullmatch(value):
        raise Refusal("bad_request", "Idempotency-Key is not 1 to 255 visible ASCII characters.")
    return value


def digest(method: str, target: str, key: str, body: bytes) -> str:
    """Return what tells one request's content from another's; no `target` has a space.

    Target and body are as they came, but for what `Sealer.bare` leaves out.
    `key` is the alias, which is what a bot chooses: the API key behind it may be replaced between two tries,
    and the second must be known all the same.
    """
    return sha256(f"{method} {target} {key}\n".encode() + body).hexdigest()


class IdempotencyKeys:
    """The keys of one gateway. `now` is a clock that nobody sets, in seconds."""

    def __init__(self, bounds: ReplayBounds) -> None:
        self._bounds = bounds
        self._by_bot: dict[str, _BotKeys] = defaultdict(lambda: _BotKeys(self._bounds))

    def __len__(self) -> int:
        return sum(map(len, self._by_bot.values()))

    def begin(self, name: Name, content: str, now: float) -> Fresh | Repeated | Declined:
        """Take in a request by its key and its `digest`; say what is to be done with it."""
        return self._by_bot[name.bot].begin(name.key, content, now)

    def signed(self, name: Name, fence_ms: int) -> None:
        """Note the fence of a request under way, each time that it is signed."""
        self._by_bot[name.bot].signed(name.key, fence_ms)

    def finish(self, name: Name, ending: Ending, now: float) -> None:
        """Settle a request under way. A body above LARGEST_BODY is not kept, the ending is."""
        self._by_bot[name.bot].finish(name.key, ending, now)

    def restore(self, kept: Iterable[Kept], now: float) -> None:
        """Start from what the journal kept; before the first request."""
        for one in sorted(kept, key=lambda one: one.age_s, reverse=True):
            if one.age_s <= self._bounds.longest_s:
                self._by_bot[one.name.bot].keep(one.name.key, one.digest, one.ending, now - one.age_s)


class _BotKeys:
    """The keys of one bot. What a request costs here does not depend on how many keys there are.

    `_settled` and `_replies` are in the order in which the keys were settled. Only an OrderedDict gives its
    oldest entry at once: a dict goes past all that were taken out before it.
    """

    def __init__(self, bounds: ReplayBounds) -> None:
        self._bounds = bounds
        self._under_way: dict[str, _InFlight] = {}
        self._settled: OrderedDict[str, _Settled] = OrderedDict()
        self._replies: OrderedDict[str, BotReply] = OrderedDict()
        self._size = 0  # of all replies

    def __len__(self) -> int:
        return len(self._under_way) + len(self._settled)

    def begin(self, key: str, content: str, now: float) -> Fresh | Repeated | Declined:
        self._drop_old(now)
        known = self._settled.get(key) or self._under_way.get(key)
        if known is None:
            return self._enter(key, content)
        if known.digest != content:
            told = "This Idempotency-Key was used for another request."
            return Declined("key_reused", told, Conclusion.NOT_SENT)
        return _again(known, self._replies.get(key))

    def signed(self, key: str, fence_ms: int) -> None:
        self._under_way[key].fence_ms = fence_ms

    def finish(self, key: str, ending: Ending, now: float) -> None:
        content = self._under_way.pop(key).digest
        if is_remembered(ending):
            self.keep(key, content, ending, now)

    def keep(self, key: str, content: str, ending: Ending, at: float) -> None:
        if key in self._settled:
            self._drop(key)
        self._settled[key] = _Settled(content, ending.conclusion, ending.fence_ms, at)
        if (reply := ending.reply) is not None and len(reply.body) <= LARGEST_BODY:
            size = reply.size
            if size <= self._bounds.most_bytes:  # its key stays spent whatever the size
                self._replies[key] = reply
                self._size += size
        self._drop_most()

    def _enter(self, key: str, content: str) -> Fresh | Declined:
        if not self._settled and len(self._under_way) >= self._bounds.most_count:
            told = f"{len(self)} requests with an Idempotency-Key are under way, which is the maximum."
            return Declined("queue_full", told, Conclusion.NOT_SENT)
        self._under_way[key] = _InFlight(content)
        self._drop_most()
        return _FRESH

    def _drop_most(self) -> None:
        """Drop the oldest settled ones until the bounds hold; for the bytes, their replies are enough.

        A key that is gone could be used for a second order; one without its reply is still spent.
        """
        most = self._bounds.most_count
        while self._settled and len(self._settled) + len(self._under_way) > most:
            self._drop(next(iter(self._settled)))
        while self._size > self._bounds.most_bytes:
            self._drop_reply(next(iter(self._replies)))

    def _drop_old(self, now: float) -> None:
        while self._settled:
            key = next(iter(self._settled))
            if now - self._settled[key].at <= self._bounds.longest_s:
                break
            self._drop(key)

    def _drop(self, key: str) -> None:
        self._settled.pop(key, None)
        self._drop_reply(key)

    def _drop_reply(self, key: str) -> None:
        if (reply := self._replies.pop(key, None)) is not None:
            self._size -= reply.size


def _again(known: _Settled | _InFlight, reply: BotReply | None) -> Repeated | Declined:
    if isinstance(known, _InFlight):
        told = "The first request with this Idempotency-Key is still under way."
        return Declined("in_flight", told, Conclusion.UNKNOWN, known.fence_ms)
    if reply is None:
        return _without_reply(known)
    return Repeated(reply, known.conclusion, known.fence_ms)


def _without_reply(known: _Settled) -> Declined:
    """Decline where the order was sent and its reply is not to be had.

    The reason is `upstream_broken`, the only one of the list that advises to look the order up. `in_flight`
    would let the bot ask for ever, and `key_reused` would have it choose a new key and send a second order.
    """
    told = (
        "A request with this Idempotency-Key was sent before; its reply was lost or too large to be kept. "
        "The key stays spent: an order that is to be sent again needs a new one."
    )
    return Declined("upstream_broken", told, known.conclusion, known.fence_ms)
