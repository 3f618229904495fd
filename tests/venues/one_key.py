"""Let one object of ccxt ask at four hosts of one exchange: spot, both kinds of futures, portfolio margin.

`python -m venues.one_key GATEWAY`, in the folder of the tests: a program of its own, as oracle.py is. It
prints JSON lines: what was asked, the request that the real key makes of it, and what an object with a dummy
key sends, whose addresses lead to the gateway.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from venues.calls import VENUES
from venues.oracle import NOW_MS, exchange_with
from venues.orders import market
from venues.unified import Asked, requests_of

# The hosts, and the names that their exchanges have in the configuration.
HOSTS = {
    "api.binance.com": "spot",
    "fapi.binance.com": "perp",
    "dapi.binance.com": "coin",
    "papi.binance.com": "papi",
}
_SYMBOLS = {"BTC/USDT": "BTCUSDT", "BTC/USDT:USDT": "BTCUSDT", "BTC/USD:BTC": "BTCUSD_PERP"}
_PAPI = {"portfolioMargin": True}


def asked() -> Iterator[Asked]:
    for symbol in _SYMBOLS:
        for params in ({}, _PAPI):
            yield "create_order", (symbol, "limit", "buy", 5, 50000, params)
            yield "create_order", (symbol, "market", "sell", 5, None, params)
            yield "create_order", (symbol, "limit", "sell", 5, 50000, {"stopPrice": 49000, **params})
            yield "edit_order", ("77", symbol, "limit", "buy", 6, 50001, params)
            yield "cancel_order", ("77", symbol, params)
            yield "cancel_all_orders", (symbol, params)
            yield "fetch_order", ("77", symbol, params)
            yield "fetch_open_orders", (symbol, None, None, params)
            yield "fetch_my_trades", (symbol, None, None, params)
        yield "fetch_ticker", (symbol,)
        yield "fetch_order_book", (symbol, 5)
    for symbol in ("BTC/USDT:USDT", "BTC/USD:BTC"):
        yield "set_leverage", (3, symbol)
        yield "fetch_positions", ([symbol],)
        yield "fetch_positions", ([symbol], _PAPI)
    for kind in ("spot", "margin", "funding", "swap", "delivery"):
        yield "fetch_balance", ({"type": kind},)
    yield "fetch_balance", (_PAPI,)
    yield "transfer", ("USDT", 5, "spot", "swap")


def exchange(*, is_dummy: bool, gateway: str = "") -> Any:
    """Return one object of ccxt; with `gateway`, it looks for each host below its name there."""
    made = exchange_with(VENUES["binance"], is_dummy=is_dummy)
    made.enableRateLimit = False
    made.set_markets(
        [
            market(own_id, symbol) | {"precision": {"amount": 1, "price": 1}}
            for symbol, own_id in _SYMBOLS.items()
        ]
    )
    if gateway:
        for name, url in made.urls["api"].items():
            parts = urlsplit(url)
            if parts.netloc in HOSTS:
                made.urls["api"][name] = f"{gateway}/{HOSTS[parts.netloc]}{parts.path}"
    return made


def main() -> None:
    gateway = sys.argv[1]
    real, dummy = exchange(is_dummy=False), exchange(is_dummy=True, gateway=gateway)
    key = {"key": [real.apiKey, real.secret, real.password, real.uid], "now_ms": NOW_MS, "uuid": ""}
    for one in asked():
        for signed, sent in zip(requests_of(real, one), requests_of(dummy, one), strict=True):
            row = {"asked": one, "signed": _named(signed), "dummy": _named(sent)}
            print(json.dumps(row | key))  # noqa: T201


def _named(request: list[Any]) -> dict[str, Any]:
    url, method, headers, body = request
    return {"url": url, "method": method, "headers": headers or {}, "body": body}


if __name__ == "__main__":
    main()
