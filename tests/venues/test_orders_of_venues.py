"""How the files say that orders are read, against the orders that ccxt makes.

A policy judges by these pointers: one that is wrong would let pass what it must not, or refuse all.
"""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from sealgate.errors import Refusal
from sealgate.http.headers import Head
from sealgate.http.target import parse_target
from sealgate.orders.policy import Policy, PolicyMemory, is_judged
from sealgate.venues.order_terms import OrderShape, OrderTerms, UnreadableError, read_orders
from sealgate.venues.routes import Lane
from venues.pages import own_routes
from venues.through import FILES, body_of, printed_by, table_of, venue_of

# What no file names: JSON within a form, orders that ccxt makes of several parts, orders by number alone.
CLOSED = {
    *("/fapi/v1/batchOrders", "/dapi/v1/batchOrders"),
    *("/api/v5/trade/order-algo", "/papi/v1/cm/conditional/order"),
    *("/0/private/AddOrderBatch", "/0/private/AmendOrder"),
}


class Made(NamedTuple):
    """An order, or a batch of them, in ccxt's words and as the exchange gets it."""

    venue: str
    market: str
    own_id: str
    asked: list[dict[str, Any]]
    request: dict[str, Any]

    @property
    def path(self) -> str:
        return str(urlsplit(self.request["url"]).path)

    def shape(self) -> OrderShape | None:
        route = table_of(self.venue).find(self.request["method"], self.path)
        assert is_judged(route)
        assert route.lane is Lane.ORDER
        return route.order

    def read(self, shape: OrderShape) -> list[OrderTerms]:
        content_type = self.request["headers"].get("Content-Type")
        query = urlsplit(self.request["url"]).query or None
        kept = {b"content-type": content_type.encode()} if content_type else {}
        return read_orders(shape, query, body_of(self.request), Head(kept, b""))

    def terms(self, shape: OrderShape) -> list[OrderTerms]:
        return [_terms(order, self, shape) for order in self.asked]

    def is_readable(self) -> bool:
        """Ask whether sizes are in coins, or in contracts where the file says so."""
        is_spot = ":" not in self.market
        if self.venue == "bybit":
            is_inverse = self.market.endswith(":BTC")
            return not is_inverse and not (is_spot and any("changes" in order for order in self.asked))
        return True


def _terms(asked: dict[str, Any], made: Made, shape: OrderShape) -> OrderTerms:
    price = asked["price"] if asked["type"] == "limit" else None
    is_capped = price is not None and asked["side"] == "buy" and shape.side is not None
    if made.venue == "kraken" and "trigger" in asked:
        is_capped = False  # what is the limit elsewhere is the trigger there
    worst = price if is_capped else max(price or 0, asked.get("trigger", 0)) or None
    if shape.in_contracts:
        is_capped, worst = False, None
    is_ignored = made.venue == "bybit" and ":" not in made.market  # spot has no positions
    reduces = shape.reduce_only is not None and asked.get("reduces", False) and not is_ignored
    return OrderTerms(made.own_id, _decimal(asked["amount"]), _decimal(worst), reduces, is_capped)


def _decimal(number: float | None) -> Decimal | None:
    return None if number is None else Decimal(str(number))


@pytest.fixture(scope="session")
def made() -> list[Made]:
    rows = map(json.loads, printed_by("venues.orders").splitlines())
    return [Made(row["venue"], row["symbol"], row["id"], row["orders"], row) for row in rows]


def is_read(one: Made, shape: OrderShape) -> bool:
    try:
        return list(map(_as_asked, one.asked, one.read(shape))) == one.terms(shape)
    except UnreadableError:
        return False


def _as_asked(asked: dict[str, Any], terms: OrderTerms) -> OrderTerms:
    """Take back that ccxt lets some stop orders reduce by itself."""
    is_own = "trigger" in asked and "reduces" not in asked
    return terms._replace(reduces=False) if is_own else terms


def in_money(one: Made) -> bool:
    return any("in_money" in order for order in one.asked) and one.venue != "okx" and ":" not in one.market


def readable(made: list[Made]) -> Iterator[tuple[Made, OrderShape]]:
    for one in made:
        shape = one.shape()
        if shape is not None and one.is_readable() and not in_money(one):
            yield one, shape


def test_every_order_that_ccxt_makes_is_read_or_closed(made: list[Made]) -> None:
    assert {one.path for one in made if one.shape() is None} == CLOSED
    wrong = [one for one, shape in readable(made) if not is_read(one, shape)]
    assert wrong == []
    assert len(made) > 150


def test_what_is_sized_in_money_or_unlike_the_rest_is_not_read(made: list[Made]) -> None:
    unread = [one for one in made if one.shape() is not None and (in_money(one) or not one.is_readable())]
    assert {one.venue for one in unread} == {"binance", "bybit", "kraken"}
    for one in unread:
        shape = one.shape()
        assert shape is not None
        with pytest.raises(UnreadableError):
            one.read(shape)


def test_each_pointer_is_held_by_an_order_of_ccxt(made: list[Made]) -> None:
    """Each that is taken away, or points elsewhere, is noticed, in every row of every file."""
    held: dict[tuple[str, str, str], bool] = {}
    for one, shape in readable(made):
        for name in ("each", "symbol", "size", "price", "trigger", "reduce_only", "kind", "side"):
            if getattr(shape, name) is not None:
                at = (one.venue, repr(shape), name)
                elsewhere: Any = {name: ("elsewhere",)}
                other = replace(shape, **elsewhere)
                held[at] = held.get(at, False) or not is_read_as(one, other, shape)
    assert [at for at, is_held in held.items() if not is_held] == []


def is_read_as(one: Made, other: OrderShape, shape: OrderShape) -> bool:
    try:
        return one.read(other) == one.read(shape)
    except UnreadableError:
        return False


REDUCE = Policy(reduce_only=True)
SIZE = Policy(max_size=Decimal(1))
NOTIONAL = Policy(max_notional=Decimal(10))
BYBIT, BYBIT_BATCH = "bybit POST /v5/order/create", "bybit POST /v5/order/create-batch"
OKX, OKX_BATCH = "okx POST /api/v5/trade/order", "okx POST /api/v5/trade/batch-orders"
KRAKEN = "kraken POST /0/private/AddOrder"
SERVICE = "service POST /order"  # behind the prefix of its base_url
MARGIN_BUY = b'"instId": "X-USDT", "side": "buy", "ordType": "market", "tgtCcy": "base_ccy", "sz": "1"'


@pytest.mark.parametrize(
    ("policy", "where", "body", "rule"),
    [
        (REDUCE, BYBIT, b'{"category": "linear", "reduceOnly": true}', None),
        (REDUCE, BYBIT, b'{"category": "spot", "orderType": "Limit", "reduceOnly": true}', "reduce_only"),
        (REDUCE, BYBIT_BATCH, b'{"category": "linear", "request": [{"reduceOnly": true}]}', None),
        (
            REDUCE,
            BYBIT_BATCH,
            b'{"category": "spot", "request": [{"orderType": "Limit", "reduceOnly": true}]}',
            "reduce_only",
        ),
        (REDUCE, OKX, b'{"instId": "X-SWAP", "reduceOnly": true}', "reduce_only"),
        (REDUCE, OKX_BATCH, b'[{"instId": "X-SWAP", "reduceOnly": true}]', "reduce_only"),
        (REDUCE, KRAKEN, b"pair=X&reduce_only=true&leverage=2", None),
        *(
            (REDUCE, KRAKEN, b"pair=X&reduce_only=true&leverage=%b" % leverage, None)
            for leverage in (b"3", b"9", b"5:1", b"10:1", b"19", b"50", b"99")
        ),
        *(
            (REDUCE, KRAKEN, b"pair=X&reduce_only=true&leverage=%b" % leverage, "reduce_only")
            for leverage in (b"0", b"1", b"01", b"1:1")
        ),
        (REDUCE, KRAKEN, b"pair=X&reduce_only=true&leverage=none", "reduce_only"),
        (REDUCE, KRAKEN, b"pair=X&reduce_only=true", "reduce_only"),
        (REDUCE, f"{KRAKEN}?reduce_only=true&leverage=2", b"pair=X", "body"),
        (REDUCE, "binance POST /fapi/v1/order", b"symbol=X&reduceOnly=true", None),
        (REDUCE, "binance PUT /fapi/v1/order", b"symbol=X&reduceOnly=true", "reduce_only"),
        (REDUCE, "binance PUT /dapi/v1/order", b"symbol=X&reduceOnly=true", "reduce_only"),
        (NOTIONAL, SERVICE, b'{"symbol": "X", "side": "buy", "size": "9", "price": "1"}', None),
        (
            NOTIONAL,
            SERVICE,
            b'{"symbol": "X", "side": "buy", "size": "9", "price": "1", "type": "market"}',
            "max_notional",
        ),
        (SIZE, OKX, b'{"tdMode": "cash", ' + MARGIN_BUY + b"}", None),
        (SIZE, OKX, b'{"tdMode": "cross", ' + MARGIN_BUY + b"}", "body"),
        (SIZE, OKX_BATCH, b'[{"tdMode": "cross", ' + MARGIN_BUY + b"}]", "body"),
        (SIZE, OKX, b'{"instId": "X-SWAP", "instIdCode": 9, "sz": "1"}', "body"),
        (SIZE, OKX, b'{"instId": "X-SWAP", "AttachAlgoOrds": [{"sz": "9"}], "sz": "1"}', "body"),
        (
            SIZE,
            BYBIT_BATCH,
            b'{"category": "spot", "orderType": "Limit", "request": [{"qty": "1"}]}',
            "body",
        ),
    ],
)
def test_a_policy_goes_by_what_the_exchange_makes_of_an_order(
    policy: Policy, where: str, body: bytes, rule: str | None
) -> None:
    venue, method, path = where.split()
    guard = PolicyMemory().guard("grid", (policy,), "spot", "x")
    target = parse_target(path, "")
    route = table_of(venue).find(method, target.path)
    expected = nullcontext() if rule is None else pytest.raises(Refusal, match=rf"policy\.{rule}: ")
    with expected:
        guard.admit(route, target, Head({}, b""), body, 0.0)


@pytest.mark.parametrize(
    "where",
    [
        "binance POST /fapi/v1/listenKey",
        "binance PUT /api/v3/userDataStream",
        "binance POST /fapi/v1/countdownCancelAll",
        "okx POST /api/v5/trade/cancel-all-after",
        "kraken POST /0/private/CancelAllOrdersAfter",
    ],
)
def test_a_policy_closes_neither_streams_nor_the_countdown_to_a_cancel(where: str) -> None:
    venue, method, path = where.split()
    assert not is_judged(table_of(venue).find(method, path))


def test_a_changed_order_is_measured_by_the_market_whatever_side_it_says() -> None:
    body = b"symbol=X&quantity=1&price=5&side=BUY"
    for path in ("/fapi/v1/order", "/papi/v1/um/order"):
        shape = table_of("binance").find("PUT", path).order
        assert shape is not None
        (terms,) = read_orders(shape, None, body, Head({}, b""))
        assert not terms.is_capped


def test_every_route_with_orders_is_held(made: list[Made]) -> None:
    seen = {(one.venue, one.request["method"], one.path) for one in made}
    rows = {
        (venue.name, route.method, route.template)
        for venue in map(venue_of, FILES)
        if venue.name != "service"
        for route in own_routes(venue)
        if route.order is not None
    }
    assert rows <= seen
