"""Idempotency: what was answered to an `Idempotency-Key`, so that a request sent twice is executed once.

The rule behind it: between the first `begin` of a key and the moment it is forgotten, no second request
with that key is sent. A key is forgotten in two cases:

1. Its request certainly did nothing that a second one could double (`is_remembered`).
2. It is settled, and the oldest of too many keys, or too old. If the replies are too large together, only
   the oldest replies are dropped: their keys stay spent.

A key in flight is never forgotten: if a bot has no others, a new key is declined. Each bot has bounds of its
own at each exchange, so that no bot makes another's keys forgotten, and no exchange another's.

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
    """A bot, an exchange and a key: two bots may use the same key, and a bot may at two exchanges."""

    bot: str
    exchange: str
    key: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A settled key from the journal, after a restart; `age_s` is the time since it was settled."""

    name: Name
    digest: str
    ending: Ending
    age_s: float


@dataclass(frozen=True, slots=True)
class Fresh:
    """The first request with this key: send it, and call `finish` whatever happens."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """The key was answered before: pass this reply on, with this conclusion and fence, and send nothing."""

    reply: BotReply
    conclusion: Conclusion
    fence_ms: int


@dataclass(frozen=True, slots=True)
class Declined:
    """Send nothing: answer with the reason `slug`, and what the bot may conclude about its first request.

    `fence_ms` is that of the first request, 0 if it has not been signed yet.
    """

    slug: str
    detail: str
    conclusion: Conclusion
    fence_ms: int = 0


@dataclass(frozen=True, slots=True)
class ReplayBounds:
    """How many keys and bytes of replies are remembered, and for how long after they were settled.

    They hold for each bot at each exchange.
    """

    most_count: int
    most_bytes: int
    longest_s: float


_FRESH = Fresh()
_LOST = (
    "A request with this Idempotency-Key was sent before; its reply was lost or too large to be kept. "
    "The key stays spent: an order that is to be sent again needs a new one."
)


@dataclass(slots=True)
class _InFlight:
    digest: str
    fence_ms: int = 0


@dataclass(slots=True)
class _Settled:
    """How it ended, without the reply, which is kept separately while there is room for it."""

    digest: str
    conclusion: Conclusion
    fence_ms: int
    at: float


def parse_key(value: str) -> str:
    """Check an Idempotency-Key and return it unchanged. Raises Refusal `bad_request`.

    The draft writes it as a quoted string, most clients send it without quotes. Both are taken literally: the
    same bytes are always the same key.
    """
    if not _KEY.fullmatch(value):
        raise Refusal("bad_request", "Idempotency-Key is not 1 to 255 visible ASCII characters.")
    return value


def digest(method: str, target: str, key: str, body: bytes) -> str:
    """Return a hash by which two requests with the same content are recognized; `target` has no space.

    Target and body are the bot's, without what `Sealer.bare` removes. `key` is the alias that the bot chose,
    not the API key behind it, which may be replaced between two tries of one request.
    """
    return sha256(f"{method} {target} {key}\n".encode() + body).hexdigest()


class IdempotencyKeys:
    """The keys of one gateway. `now` is a clock that nobody sets, in seconds."""

    def __init__(self, bounds: ReplayBounds) -> None:
        self._bounds = bounds
        self._keys: dict[tuple[str, str], _BotKeys] = defaultdict(lambda: _BotKeys(self._bounds))

    def __len__(self) -> int:
        return sum(map(len, self._keys.values()))

    def begin(self, name: Name, content: str, now: float) -> Fresh | Repeated | Declined:
        """Decide what to do with a request, by its key and its `digest`."""
        return self._keys[name.bot, name.exchange].begin(name.key, content, now)

    def signed(self, name: Name, fence_ms: int) -> None:
        """Note the fence of a request in flight, each time that it is signed."""
        self._keys[name.bot, name.exchange].signed(name.key, fence_ms)

    def finish(self, name: Name, ending: Ending, now: float) -> None:
        """Settle a request in flight. A body above LARGEST_BODY is not kept, its ending is."""
        self._keys[name.bot, name.exchange].finish(name.key, ending, now)

    def restore(self, kept: Iterable[Kept], now: float) -> None:
        """Start with what the journal kept; before the first request."""
        for one in sorted(kept, key=lambda one: one.age_s, reverse=True):
            if one.age_s <= self._bounds.longest_s:
                self._keys[one.name.bot, one.name.exchange].keep(
                    one.name.key, one.digest, one.ending, now - one.age_s
                )


class _BotKeys:
    """The keys of one bot at one exchange. The cost of a request does not depend on how many keys there are.

    `_settled` and `_replies` are in the order in which the keys were settled. They are OrderedDicts, because
    a dict needs longer for its oldest entry the more entries were removed before it.
    """

    def __init__(self, bounds: ReplayBounds) -> None:
        self._bounds = bounds
        self._in_flight: dict[str, _InFlight] = {}
        self._settled: OrderedDict[str, _Settled] = OrderedDict()
        self._replies: OrderedDict[str, BotReply] = OrderedDict()
        self._replies_size = 0

    def __len__(self) -> int:
        return len(self._in_flight) + len(self._settled)

    def begin(self, key: str, content: str, now: float) -> Fresh | Repeated | Declined:
        # 1. Forget what is too old.
        while self._settled:
            oldest = next(iter(self._settled))
            if now - self._settled[oldest].at <= self._bounds.longest_s:
                break
            self._forget(oldest)

        # 2. A new key. Room is made for it by forgetting settled keys; those in flight stay.
        known = self._settled.get(key) or self._in_flight.get(key)
        if known is None:
            if not self._settled and len(self._in_flight) >= self._bounds.most_count:
                told = f"{len(self)} requests with an Idempotency-Key are under way, which is the maximum."
                return Declined("queue_full", told, Conclusion.NOT_SENT)
            self._in_flight[key] = _InFlight(content)
            self._keep_bounds()
            return _FRESH

        # 3. A known key. There are four cases.
        if known.digest != content:
            told = "This Idempotency-Key was used for another request."
            return Declined("key_reused", told, Conclusion.NOT_SENT)
        if isinstance(known, _InFlight):
            told = "The first request with this Idempotency-Key is still under way."
            return Declined("in_flight", told, Conclusion.UNKNOWN, known.fence_ms)
        reply = self._replies.get(key)
        if reply is not None:
            return Repeated(reply, known.conclusion, known.fence_ms)
        # It was sent and its reply is lost. Only the reason `upstream_broken` advises to look the order up:
        # with `in_flight` the bot would ask forever, with `key_reused` send a second order with a new key.
        return Declined("upstream_broken", _LOST, known.conclusion, known.fence_ms)

    def signed(self, key: str, fence_ms: int) -> None:
        self._in_flight[key].fence_ms = fence_ms

    def finish(self, key: str, ending: Ending, now: float) -> None:
        content = self._in_flight.pop(key).digest
        if is_remembered(ending):
            self.keep(key, content, ending, now)

    def keep(self, key: str, content: str, ending: Ending, at: float) -> None:
        if key in self._settled:
            self._forget(key)
        self._settled[key] = _Settled(content, ending.conclusion, ending.fence_ms, at)
        reply = ending.reply
        if reply is not None and len(reply.body) <= LARGEST_BODY and reply.size <= self._bounds.most_bytes:
            self._replies[key] = reply
            self._replies_size += reply.size
        self._keep_bounds()

    def _keep_bounds(self) -> None:
        """Forget the oldest settled keys while there are too many, and the oldest replies while too large."""
        while self._settled and len(self) > self._bounds.most_count:
            self._forget(next(iter(self._settled)))
        while self._replies_size > self._bounds.most_bytes:
            self._forget_reply(next(iter(self._replies)))

    def _forget(self, key: str) -> None:
        del self._settled[key]
        self._forget_reply(key)

    def _forget_reply(self, key: str) -> None:
        if (reply := self._replies.pop(key, None)) is not None:
            self._replies_size -= reply.size
