"""Orders in doubt: sent, but without a known result.

An order in doubt may have been executed, or may still be until its fence has passed. Only a look-up at the
exchange ends the doubt; nothing here ends it automatically.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import parse_qsl

OVER_STREAM = "WS"  # the method of an order over a stream
_LONGEST = 64  # characters of a term that is shown
# The names that exchanges use; the first one found in an order counts.
_NAMES = {
    "symbol": (
        *("symbol", "instId", "instrument_name", "instrument_id", "product_id", "currency_pair"),
        *("contract", "market", "pair", "instrument"),
    ),
    "side": ("side", "direction"),
    "size": ("size", "sz", "qty", "quantity", "amount", "volume", "vol", "orderQty", "order_qty"),
    "price": ("price", "px", "limit_price", "limitPrice", "rate"),
    "client_id": (
        *("clOrdId", "clOrdID", "orderLinkId", "newClientOrderId", "clientOrderId", "client_order_id"),
        *("clientOid", "client_oid", "cl_ord_id", "cliOrdId", "userref"),
    ),
}


class Terms(NamedTuple):
    """The terms of an order, each as written; None if the order does not state it.

    `client_id` is the bot's own name for the order, which the exchange knows as well.
    """

    symbol: str | None = None
    side: str | None = None
    size: str | None = None
    price: str | None = None
    client_id: str | None = None


def read_terms(body: bytes | None, target: str = "") -> Terms:
    """Read the terms of one order from its body, JSON or a form, else from the target's query.

    Numbers keep every digit that was sent. A batch of orders has no common terms. An object without a symbol
    may contain the order, as messages of streams do.
    """
    order: dict[str, object] = _fields(body) if body else dict(parse_qsl(target.partition("?")[2]))
    order = next((one for one in _inside(order) if any(map(one.get, _NAMES["symbol"]))), order)
    found = {name: (_text(order.get(one)) for one in names) for name, names in _NAMES.items()}
    return Terms(**{name: next(filter(None, texts), None) for name, texts in found.items()})


def _fields(body: bytes) -> dict[str, object]:
    try:
        document = json.loads(body, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError):
        return dict(parse_qsl(body.decode("ascii", "replace")))
    return next(_objects(document), {})


def _objects(value: object) -> Iterator[dict[str, object]]:
    """Yield an object, or the only one in a list: several objects are a batch of orders."""
    found = value if isinstance(value, list) else [value]
    objects = [one for one in found if isinstance(one, dict)]
    if len(objects) == 1:
        yield objects[0]


def _inside(order: dict[str, object]) -> Iterator[dict[str, object]]:
    """Yield an object and the objects inside it, the outer ones first."""
    level = [order]
    while level:
        yield from level
        level = [found for one in level for value in one.values() for found in _objects(value)]


def _text(value: object) -> str | None:
    """Return a value if it can be shown in a line, else None: a bot may have sent anything."""
    if isinstance(value, str) and 0 < len(value) <= _LONGEST and value.isprintable():
        return value
    return None


@dataclass(frozen=True, slots=True)
class Doubt:
    """An order in doubt, prepared for its readers; times are epoch ms.

    `id` is the gateway's own, `request_id` the one in log and reply, which a bot may have chosen. `sent_ms`,
    `timestamp_ms` (which was signed) and `fence_ms` (after which the exchange no longer accepts the order)
    are on the exchange's clock. The last five are its `Terms`.
    """

    id: str
    request_id: str
    bot: str
    exchange: str
    key: str
    method: str
    route: str
    target: str
    idempotency_key: str | None
    timestamp_ms: int
    fence_ms: int
    attempts: int
    sent_ms: int
    symbol: str | None = None
    side: str | None = None
    size: str | None = None
    price: str | None = None
    client_id: str | None = None

    @property
    def call(self) -> str:
        """The call: method and target; for an order over a stream, the stream and the order's operation."""
        return f"{self.method} {self.route if self.method == OVER_STREAM else self.target}"

    @property
    def terms_words(self) -> str:
        """The terms in words, "" if none is known."""
        price = f"at {self.price}" if self.price else None
        client_id = f"as {self.client_id}" if self.client_id else None
        return " ".join(filter(None, (self.side, self.size, self.symbol, price, client_id)))


@dataclass(frozen=True, slots=True)
class JournalStatus:
    """The state of the journal. `doubts` are the oldest of the `in_doubt` orders, as many as are shown.

    `trouble` says why nothing can be written, None if it can be; `is_refusing`: orders are refused because of
    it. `lost` says that an earlier journal was missing at the start. `by_exchange` counts the orders in doubt
    at each exchange that has some, including exchanges that are no longer configured.
    """

    in_doubt: int
    doubts: tuple[Doubt, ...]
    trouble: str | None
    is_refusing: bool
    lost: str | None = None
    by_exchange: Mapping[str, int] = field(default_factory=dict)
