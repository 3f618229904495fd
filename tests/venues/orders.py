"""Let ccxt make orders: no field of them is written here.

`python -m venues.orders`, in the folder of the tests: a program of its own, as oracle.py is. It prints JSON
lines: what was asked for in ccxt's words, and the request that came of it.
"""

import json
from collections.abc import Iterator
from typing import Any

import ccxt  # type: ignore[import-untyped]

from venues.calls import VENUES
from venues.oracle import exchange_with

Order = dict[str, Any]

_KINDS = (
    *("LIMIT", "LIMIT_MAKER", "MARKET", "STOP_LOSS", "STOP_LOSS_LIMIT", "TAKE_PROFIT", "TAKE_PROFIT_LIMIT"),
    *("STOP", "STOP_MARKET", "TAKE_PROFIT_MARKET"),
)
_SPOT, _LINEAR, _INVERSE = "BTC/USDT", "BTC/USDT:USDT", "BTC/USD:BTC"
# The exchange's own names of ccxt's markets.
MARKETS = {
    "binance": {_SPOT: "BTCUSDT", _LINEAR: "BTCUSDT", _INVERSE: "BTCUSD_PERP"},
    "bybit": {_SPOT: "BTCUSDT", _LINEAR: "BTCUSDT", _INVERSE: "BTCUSD"},
    "okx": {_SPOT: "BTC-USDT", _LINEAR: "BTC-USDT-SWAP"},
    "kraken": {_SPOT: "XXBTZUSD"},
}
_OPTIONS: dict[str, tuple[Order, ...]] = {
    "bybit": ({"enableUnifiedAccount": True, "enableUnifiedMargin": True},),
    "okx": ({}, {"createOrder": "privatePostTradeOrder"}),
}


def asked_of(venue: str, symbol: str) -> Iterator[Order]:
    """Yield orders in ccxt's words; all amounts differ, so that none can pass for another."""
    for side in ("buy", "sell"):
        yield {"type": "limit", "side": side, "amount": 0.125, "price": 50001.5}
        yield {"type": "limit", "side": side, "amount": 0.25, "price": 50002.5, "reduces": True}
        yield {"type": "market", "side": side, "amount": 0.375}
        yield {"type": "market", "side": side, "amount": 0.5, "trigger": 61000.5}
        yield {"type": "market", "side": side, "amount": 0.5, "trigger": 61001.5, "reduces": True}
        yield {"type": "limit", "side": side, "amount": 0.625, "price": 50003.5, "trigger": 62000.5}
        yield {"type": "limit", "side": side, "amount": 0.625, "price": 65003.5, "trigger": 64000.5}
    yield {"type": "limit", "side": "buy", "amount": 0.75, "price": 50004.5, "changes": "77"}
    yield {"type": "market", "side": "buy", "amount": 0.875, "in_money": 100.5}
    if symbol == _SPOT:
        yield {"type": "limit", "side": "buy", "amount": 0.125, "price": 50005.5, "marginMode": "cross"}
        yield {"type": "limit", "side": "buy", "amount": 0.125, "price": 50006.5, "sor": True}
    yield {"type": "limit", "side": "sell", "amount": 0.125, "price": 50007.5, "portfolioMargin": True}
    yield {"type": "market", "side": "sell", "amount": 0.125, "trigger": 63000.5, "portfolioMargin": True}
    changed = {"type": "limit", "side": "buy", "amount": 0.125, "price": 50008.5, "changes": "77"}
    yield changed | {"portfolioMargin": True}
    if venue == "bybit":
        yield changed | {"trigger": 64000.5}


def market(own_id: str, symbol: str) -> Order:
    pair, _, settle = symbol.partition(":")
    base, quote = pair.split("/")
    kind = "swap" if settle else "spot"
    return {
        "id": own_id,
        "symbol": symbol,
        "base": base,
        "quote": quote,
        "settle": settle or None,
        "type": kind,
        "contract": bool(settle),
        "linear": settle == quote,
        "inverse": settle == base,
        "contractSize": 1.0,
        "precision": {"amount": 1e-8, "price": 1e-8},
        "limits": {"amount": {}, "price": {}, "cost": {}, "leverage": {}},
        "info": {"orderTypes": list(_KINDS), "ordermin": "0.0001"},
        **{name: name == kind for name in ("spot", "margin", "swap", "future", "option")},
    }


def requests_of(venue: str, symbol: str, orders: list[Order], options: Order) -> list[list[Any]]:
    exchange, sent = exchange_with(VENUES[venue], is_dummy=False), list[list[Any]]()
    exchange.enableRateLimit = False
    exchange.options.update(options)
    exchange.set_markets([market(own_id, name) for name, own_id in MARKETS[venue].items()])

    def fetch(*request: Any, **_: Any) -> None:
        sent.append(list(request))
        raise ccxt.NetworkError("recorded")

    exchange.fetch = fetch
    first = orders[0]
    try:
        if len(orders) == 1 and "changes" in first:
            exchange.edit_order(first["changes"], *ordinary(symbol, first).values(), params_of(venue, first))
        elif len(orders) == 1:
            exchange.create_order(*ordinary(symbol, first).values(), params_of(venue, first))
        elif "changes" in first:
            exchange.edit_orders([{"id": "77"} | in_batch(venue, symbol, order) for order in orders])
        else:
            exchange.create_orders([in_batch(venue, symbol, order) for order in orders])
    except ccxt.BaseError:
        pass  # it is recorded, or nothing that ccxt has at this venue
    return sent


def ordinary(symbol: str, order: Order) -> Order:
    return {"symbol": symbol} | {name: order.get(name) for name in ("type", "side", "amount", "price")}


def in_batch(venue: str, symbol: str, order: Order) -> Order:
    return ordinary(symbol, order) | {"params": params_of(venue, order)}


def params_of(venue: str, order: Order) -> Order:
    params: Order = {name: order[name] for name in ("marginMode", "sor", "portfolioMargin") if name in order}
    if "reduces" in order:
        params |= {"reduceOnly": True} | ({"leverage": 2} if venue == "kraken" else {})
    if "trigger" in order:
        is_one = venue == "kraken" or order["type"] == "market"
        params["stopLossPrice" if is_one else "triggerPrice"] = order["trigger"]
        params |= {"triggerDirection": "ascending"} if venue == "bybit" and not is_one else {}
    if "in_money" in order:
        params["cost"] = order["in_money"]
    return params


def main() -> None:
    for venue, markets in MARKETS.items():
        for symbol, own_id in markets.items():
            alone = [[order] for order in asked_of(venue, symbol)]
            plain = {"type", "side", "amount", "price", "reduces", *({"trigger"} if venue == "bybit" else ())}
            batch = [order for (order,) in alone if order.keys() <= plain]
            limits = [order for order in batch if order["type"] == "limit" and "reduces" not in order]
            changes = [order | {"changes": "77"} for order in limits]
            for options in _OPTIONS.get(venue, ({},)):
                for orders in (*alone, batch, changes):
                    row = {"venue": venue, "symbol": symbol, "id": own_id, "orders": orders}
                    for url, method, headers, body in requests_of(venue, symbol, orders, options):
                        request = {"method": method, "url": url, "headers": headers, "body": body}
                        print(json.dumps(row | request))  # noqa: T201


if __name__ == "__main__":
    main()
