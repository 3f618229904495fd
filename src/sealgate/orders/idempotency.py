"""Idempotency: the reply to each `Idempotency-Key`, so that a request sent twice is executed once.

The rule: from the first `begin` of an Idempotency-Key until it is forgotten, no second request with it is
sent. A key is forgotten in two cases:

1. Its request certainly had no effect that a second one could double (`is_remembered`).
2. It is settled and too old, or the oldest of too many. If only the replies take too much memory, only the
   oldest replies are dropped: their keys stay spent.

A key in flight is never forgotten: if all of a bot's keys are in flight, a new key is declined. Each bot has
its own bounds at each exchange, so that neither another bot nor another exchange can displace its keys.

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
    """A bot, an exchange and an Idempotency-Key: two bots, or two exchanges, may have the same key."""

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
    """The first request with this key: send it, and in any case call `finish`."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """The key was answered before: replay this reply, with this conclusion and fence, and send nothing."""

    reply: BotReply
    conclusion: Conclusion
    fence_ms: int


@dataclass(frozen=True, slots=True)
class Declined:
    """Send nothing: reply with the reason `slug`, and the conclusion about the bot's first request.

    `fence_ms` is that of the first request, 0 if it has not been signed yet.
    """

    slug: str
    detail: str
    conclusion: Conclusion
    fence_ms: int = 0


@dataclass(frozen=True, slots=True)
class ReplayBounds:
    """The most keys and bytes of replies to remember, and for how long after they were settled.

    The bounds apply to each bot at each exchange.
    """

    most_count: int
    most_bytes: int
    longest_s: float


_FRESH = Fresh()
_LOST = (
    "A request with this Idempotency-Key was sent before; its reply was lost or too large to keep. "
    "The key stays spent: to send the order again, use a new one."
)


@dataclass(slots=True)
class _InFlight:
    digest: str
    fence_ms: int = 0


@dataclass(slots=True)
class _Settled:
    """The ending of a request without its reply, which is kept separately while there is room."""

    digest: str
    conclusion: Conclusion
    fence_ms: int
    at: float


def parse_key(value: str) -> str:
    """Check an Idempotency-Key and return it unchanged. Raises Refusal `bad_request`.

    The draft defines a quoted string, but most clients send it without quotes. Both are taken literally: the
    same bytes are always the same key.
    """
    if not _KEY.fullmatch(value):
        raise Refusal("bad_request", "Idempotency-Key is not 1 to 255 visible ASCII characters.")
    return value


def digest(method: str, target: str, key: str, body: bytes) -> str:
    """Return a hash that identifies the content of a request; `target` has no space.

    Target and body are the bot's, without the parts that `Sealer.bare` removes. `key` is the alias that the
    bot chose, not its API key, which may be replaced between two tries of one request.
    """
    return sha256(f"{method} {target} {key}\n".encode() + body).hexdigest()


class IdempotencyKeys:
    """The Idempotency-Keys of one gateway. `now` is a monotonic clock, in seconds."""

    def __init__(self, bounds: ReplayBounds) -> None:
        self._bounds = bounds
        self._keys: dict[tuple[str, str], _BotKeys] = defaultdict(lambda: _BotKeys(self._bounds))

    def __len__(self) -> int:
        return sum(map(len, self._keys.values()))

    def begin(self, name: Name, content: str, now: float) -> Fresh | Repeated | Declined:
        """Decide how to treat a request, by its key and its `digest`."""
        return self._keys[name.bot, name.exchange].begin(name.key, content, now)

    def signed(self, name: Name, fence_ms: int) -> None:
        """Note the fence of a request in flight; call it each time that the request is signed."""
        self._keys[name.bot, name.exchange].signed(name.key, fence_ms)

    def finish(self, name: Name, ending: Ending, now: float) -> None:
        """Settle a request in flight. A body above LARGEST_BODY is dropped, its ending is kept."""
        self._keys[name.bot, name.exchange].finish(name.key, ending, now)

    def restore(self, kept: Iterable[Kept], now: float) -> None:
        """Load the keys from the journal, before the first request."""
        for one in sorted(kept, key=lambda one: one.age_s, reverse=True):
            if one.age_s <= self._bounds.longest_s:
                self._keys[one.name.bot, one.name.exchange].keep(
                    one.name.key, one.digest, one.ending, now - one.age_s
                )


class _BotKeys:
    """The keys of one bot at one exchange. The cost of a request does not depend on the number of keys.

    `_settled` and `_replies` are in the order in which the keys were settled. They are OrderedDicts: in a
    dict, finding the oldest entry takes longer the more entries were removed before it.
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
        # 1. Forget old keys.
        while self._settled:
            oldest = next(iter(self._settled))
            if now - self._settled[oldest].at <= self._bounds.longest_s:
                break
            self._forget(oldest)

        # 2. A new key. Forget settled keys to make room for it; keys in flight stay.
        known = self._settled.get(key) or self._in_flight.get(key)
        if known is None:
            if not self._settled and len(self._in_flight) >= self._bounds.most_count:
                told = f"{len(self)} requests with an Idempotency-Key are in progress, which is the maximum."
                return Declined("queue_full", told, Conclusion.NOT_SENT)
            self._in_flight[key] = _InFlight(content)
            self._keep_bounds()
            return _FRESH

        # 3. A known key. There are four cases.
        if known.digest != content:
            told = "This Idempotency-Key was used for another request."
            return Declined("key_reused", told, Conclusion.NOT_SENT)
        if isinstance(known, _InFlight):
            told = "The first request with this Idempotency-Key is still in progress."
            return Declined("in_flight", told, Conclusion.UNKNOWN, known.fence_ms)
        reply = self._replies.get(key)
        if reply is not None:
            return Repeated(reply, known.conclusion, known.fence_ms)
        # It was sent, and its reply is lost. Only the reason `upstream_broken` advises a look-up: with
        # `in_flight` the bot would repeat forever, with `key_reused` it would send a second order.
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
