"""Let ccxt's own methods ask: what a bot on ccxt does all day, and what moves money between wallets.

`python -m venues.unified`, in the folder of the tests: a program of its own, as oracle.py is. It prints JSON
lines: the venue, ccxt's method and what it was asked, and the request that came of it.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import permutations
from typing import Any

import ccxt  # type: ignore[import-untyped]

from venues.calls import GONE, VENUES
from venues.oracle import exchange_with
from venues.orders import market

Asked = tuple[str, tuple[Any, ...]]  # ccxt's method and its arguments

_SYMBOLS = ("BTC/USDT", "BTC/USDT:USDT", "BTC/USD:BTC")

# Those that freqtrade 2026.9 calls, and their like in a bot of one's own.
_OF_A_SYMBOL = (
    *(
        "cancel_all_orders",
        "fetch_open_orders",
        "fetch_closed_orders",
        "fetch_canceled_orders",
        "fetch_orders",
    ),
    *("fetch_my_trades", "fetch_position", "fetch_leverage", "fetch_funding_history", "fetch_funding_rate"),
    *("fetch_funding_rate_history", "fetch_trading_fee", "fetch_ticker", "fetch_order_book", "fetch_ohlcv"),
    "fetch_trades",
)
_ALONE = (
    *("fetch_balance", "fetch_positions", "fetch_accounts", "fetch_tickers", "fetch_bids_asks"),
    *("fetch_markets", "fetch_currencies", "fetch_time", "fetch_leverage_tiers", "fetch_trading_fees"),
    "fetch_funding_rates",
)

# Names of wallets in ccxt's own words, beside those that a venue has of its own. With "master", ccxt moves
# between accounts of a user.
_WALLETS = ("spot", "swap", "future", "margin", "funding", "trading", "main", "cross", "isolated", "option")
_NAMES = (*_WALLETS, "", "master")

# Ways in which ccxt can be set up, each with requests of its own.
_OPTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "binance-papi": ({"portfolioMargin": True},),
    "bithumb-v1": ({"generation": 1},),
    "bitget": ({}, {"uta": False}),
    "bitvavo": ({"operatorId": 1},),
    "cex": ({"createOrder": {"accountId": "main"}},),
    "deepcoin": ({"transfer": {"userId": "9"}},),
    "pacifica": ({"builderFee": False},),  # else its first order approves a fee for ccxt, which needs `keys`
    **{name: ({"uta": False}, {"uta": True}) for name in ("kucoin", "kucoinfutures")},
}


def asked_by_a_bot() -> Iterator[Asked]:
    for symbol in _SYMBOLS:
        yield "create_order", (symbol, "limit", "buy", 5, 50000)
        yield "create_order", (symbol, "market", "sell", 5)
        yield "create_order", (symbol, "limit", "sell", 5, 50000, {"stopLossPrice": 49000})
        yield "create_order", (symbol, "market", "sell", 5, None, {"stopPrice": 49000, "reduceOnly": True})
        yield "edit_order", ("77", symbol, "limit", "buy", 5, 50000)
        yield from ((name, ("77", symbol)) for name in ("cancel_order", "fetch_order", "fetch_order_trades"))
        yield from ((name, (symbol,)) for name in _OF_A_SYMBOL)
        yield "set_leverage", (3, symbol)
        yield from (("set_margin_mode", (mode, symbol, {"leverage": 3})) for mode in ("isolated", "cross"))
        yield from (("set_position_mode", (is_hedged, symbol)) for is_hedged in (True, False))
        yield from ((name, (symbol, 5)) for name in ("add_margin", "reduce_margin"))
    yield from ((name, ()) for name in _ALONE)


def transfers(exchange: Any) -> Iterator[Asked]:
    """Yield transfers from each wallet that ccxt or the venue has a name for to each other one."""
    own = exchange.options.get("accountsByType") or exchange.options.get("v2AccountsByType") or {}
    for pair in permutations(dict.fromkeys((*own, *_NAMES)), 2):
        yield "transfer", ("USDT", 5, *pair)


def requests_of(exchange: Any, asked: Asked) -> list[list[Any]]:
    """Return what a method sends; as each reply is empty, it may not come to a second request."""
    name, arguments = asked
    sent: list[list[Any]] = []

    def fetch(*request: Any, **_: Any) -> Any:
        sent.append(list(request))
        return {}

    exchange.fetch = fetch
    with suppress(ccxt.BaseError, AssertionError, AttributeError, LookupError, TypeError, ValueError):
        getattr(exchange, name)(*arguments)
    return sent


def coarse(symbol: str) -> dict[str, Any]:
    """Return a market of whole amounts and prices, which are exact as steps and as decimal places."""
    return market(symbol.replace("/", "").replace(":", "_"), symbol) | {
        "precision": {"amount": 1, "price": 1},
        "numericId": 27,
        "baseId": symbol.partition("/")[0],
        "quoteId": "USDT",
        "uppercaseId": symbol.replace("/", "").replace(":", "_"),
    }


def main() -> None:
    for venue in (name for name in VENUES if name not in GONE):
        for options in _OPTIONS.get(venue, ({},)):
            exchange = exchange_with(VENUES[venue], is_dummy=False)
            exchange.enableRateLimit = False
            exchange.options.update(options)
            exchange.set_markets(list(map(coarse, _SYMBOLS)))
            for asked in (*asked_by_a_bot(), *transfers(exchange)):
                for url, method, headers, body in requests_of(exchange, asked):
                    row = {"venue": venue, "asked": asked, "url": url, "method": method}
                    print(json.dumps(row | {"headers": headers, "body": body}))  # noqa: T201


if __name__ == "__main__":
    main()
