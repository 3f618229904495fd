"""The last prices in an exchange's replies, for policies that limit the value of an order."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from sealgate.venues.order_terms import PriceShape, read_price, read_prices
from sealgate.venues.replies import unpacked

FRESH_S = 60.0
_TRUSTED_S = 3600.0
_LONGEST_BODY = 256 * 1024  # bytes, decompressed: 5,000 symbols, which take some milliseconds to parse
_MOST_UNREAD = 16  # replies
_MOST_PRICES = 10_000
_MOST_WANTED = 50  # symbols whose prices are read and kept for future orders

PriceRequest = tuple[str, bytes]  # target and body
# The request of a price restored after a restart: no reply withdraws it, a later one replaces it.
_KEPT: PriceRequest = ("", b"")


@dataclass(frozen=True, slots=True)
class _Reply:
    """A reply that is not parsed yet; `body` is None if it was too long to keep."""

    shape: PriceShape
    body: bytes | None
    coding: bytes | None
    came_at: float


@dataclass(frozen=True, slots=True)
class _Price:
    text: str
    request: PriceRequest
    came_at: float


class Prices:
    """The prices of one exchange. `now` is a monotonic clock, in seconds.

    A reply is stored unparsed until an order needs a price, or a later reply to the same request replaces it.
    So reads cost almost nothing, and any bot may poll the prices for a bot with a policy. `wanted` are the
    symbols of orders, the latest last.
    """

    def __init__(self) -> None:
        self._unread: dict[PriceRequest, _Reply] = {}
        self._prices: dict[str, _Price] = {}  # by symbol, the latest read last
        self.wanted: dict[str, None] = {}
        self._faults: dict[PriceRequest, bool] = {}  # whether it was reported

    def learn(
        self,
        request: PriceRequest,
        shape: PriceShape,
        body: bytes | None,
        coding: bytes | None = None,
        *,
        now: float,
    ) -> None:
        """Store a successful reply; `coding` is its Content-Encoding.

        `body` is None if it was too long to keep. An empty one, as of a 304, is ignored.
        """
        if body == b"":
            return
        if body is not None and len(body) > _LONGEST_BODY:
            body = None
        # An unreadable reply withdraws only the prices of its own request. So parse the stored replies first,
        # or a price from an older reply to another request would count again.
        replaced = self._unread.get(request)
        if body is None and replaced is not None and replaced.body is not None:
            self.read()
        self._unread.pop(request, None)
        self._unread[request] = _Reply(shape, body, coding, now)
        if len(self._unread) > _MOST_UNREAD:
            self.read()

    def last(self, symbol: str, now: float) -> Decimal | None:
        """Return the last price of a symbol for an order, None if the gateway has none of the last hour."""
        self.read()
        if symbol not in self.wanted and len(self.wanted) >= _MOST_WANTED:
            del self.wanted[next(iter(self.wanted))]
        self.wanted.pop(symbol, None)
        self.wanted[symbol] = None
        known = self._prices.get(symbol)
        return None if known is None or now - known.came_at > _TRUSTED_S else read_price(known.text)

    def is_fresh(self, symbol: str, now: float) -> bool:
        """Return whether the price of a symbol is at most a minute old."""
        if self._came_at(symbol) <= now - FRESH_S:
            self.read()
        return self._came_at(symbol) > now - FRESH_S

    def _came_at(self, symbol: str) -> float:
        known = self._prices.get(symbol)
        return -math.inf if known is None else known.came_at

    def kept(self, now: float) -> dict[str, tuple[str, float]]:
        """Return the prices of ordered symbols, with their ages in seconds, to store for a restart."""
        if self.wanted:
            self.read()
        known = ((symbol, self._prices[symbol]) for symbol in self.wanted if symbol in self._prices)
        return {symbol: (price.text, now - price.came_at) for symbol, price in known}

    def restore(self, kept: Mapping[str, tuple[str, float]], now: float) -> None:
        """Load stored prices, before the first reply; a damaged text is never taken for a price."""
        for symbol, (text, age_s) in kept.items():
            self.wanted[symbol] = None
            self._prices[symbol] = _Price(text, _KEPT, now - max(0.0, age_s))

    def new_faults(self) -> list[str]:
        """Return the paths of requests with unreadable replies, each request once."""
        new = [request for request, is_reported in self._faults.items() if not is_reported]
        self._faults |= dict.fromkeys(new, True)
        return [target.partition("?")[0] for target, _ in new]

    def read(self) -> None:
        """Parse the prices in the stored replies."""
        if not self._unread:
            return
        for request, reply in self._unread.items():
            plain = None if reply.body is None else unpacked(reply.body, reply.coding, _LONGEST_BODY)
            found = {} if plain is None or len(plain) > _LONGEST_BODY else read_prices(reply.shape, plain)
            # An unreadable reply withdraws the earlier prices of its request: they are unknown now.
            if not found:
                self._prices = {
                    name: price for name, price in self._prices.items() if price.request != request
                }
                if len(self._faults) < _MOST_UNREAD:
                    self._faults.setdefault(request, False)
            for symbol, text in found.items():
                self._prices.pop(symbol, None)
                self._prices[symbol] = _Price(text, request, reply.came_at)
        self._unread.clear()
        for symbol in list(self._prices)[:-_MOST_PRICES]:
            del self._prices[symbol]
