"""Which pools a request passes at each venue, and what its documented refusals close, and for how long."""

import json
from typing import NamedTuple

import pytest

from sealgate.venues.routes import Auth
from sealgate.venues.venue import Venue
from venues.through import FILES, Call, named, table_of, venue_of


def pools_of(name: str, method: str, path: str) -> list[str]:
    """Return the names of the pools that a request passes, as docs/venues.md has it."""
    venue = named(name)
    route = table_of(name).find(method, path.removeprefix(venue.prefix))
    is_open = route.auth is Auth.OPEN
    return [
        pool.name
        for pool in venue.limits.pools
        if pool.takes(method, route.template)
        and (not pool.lanes or route.lane in pool.lanes)
        and (is_open or not pool.is_open)
        and not (is_open and pool.is_signed)
    ]


# What an order, a cancel, a private and a public read pass.
_PASSED: dict[str, dict[str, str]] = {
    "binance": {
        "POST /api/v3/order": "weight orders",
        "POST /api/v3/orderList/otoco": "weight orders",
        "POST /api/v3/order/test": "weight",
        "DELETE /api/v3/order": "weight",
        "GET /api/v3/account": "weight",
        "GET /api/v3/depth": "weight",
        "GET /api/v3/time": "weight",
        "POST /sapi/v1/margin/order": "sapi-address sapi-account",
        "GET /sapi/v1/anything/new": "sapi-address sapi-account",
    },
    "binanceusdm": {
        "POST /fapi/v1/order": "weight orders",
        "PUT /fapi/v1/batchOrders": "weight orders",
        "POST /fapi/v1/leverage": "weight",
        "DELETE /fapi/v1/allOpenOrders": "weight",
        "GET /fapi/v2/positionRisk": "weight",
        "GET /fapi/v1/depth": "weight",
        "GET /fapi/v1/fundingRate": "funding",
        "GET /futures/data/openInterestHist": "data",
    },
    "binancecoinm": {"POST /dapi/v1/order": "weight orders", "DELETE /dapi/v1/order": "weight"},
    "binance-papi": {"POST /papi/v1/um/order": "weight orders", "DELETE /papi/v1/um/order": "weight"},
    "binance-options": {"POST /eapi/v1/order": "weight orders", "DELETE /eapi/v1/order": "weight"},
    "binanceus": {
        "POST /api/v3/order": "weight orders",
        "GET /sapi/v1/asset/assetDistributionHistory": "weight",
    },
    "bybit": {
        "POST /v5/order/create": "address path",
        "POST /v5/order/cancel": "address path",
        "GET /v5/position/list": "address path",
        "GET /v5/market/time": "address",
    },
    "bybiteu": {"POST /v5/order/create": "address path"},
    "okx": {
        "POST /api/v5/trade/order": "place orders",
        "POST /api/v5/trade/amend-order": "amend orders",
        "POST /api/v5/trade/batch-orders": "orders path",
        "POST /api/v5/trade/cancel-order": "cancel",
        "POST /api/v5/trade/cancel-batch-orders": "path",
        "GET /api/v5/account/positions": "path",
        "GET /api/v5/market/ticker": "public",
        "GET /api/v5/public/time": "public",
    },
    "myokx": {"POST /api/v5/trade/order": "place orders"},
    "kucoin": {
        "POST /api/v1/hf/orders": "spot path",
        "DELETE /api/v1/orders/12": "spot path",
        "GET /api/v1/orders": "spot path",
        "POST /api/v3/hf/margin/order": "spot path",
        "GET /api/v1/accounts": "management path",
        "POST /api/v3/withdrawals": "management path",
        "GET /api/v1/earn/hold-assets": "earn path",
        "POST /api/ua/v1/classic/order/place": "unified path",
        "GET /api/v1/market/allTickers": "public",
        "GET /api/v1/timestamp": "public",
        "POST /api/v1/bullet-private": "spot path",
    },
    "kucoinfutures": {
        "POST /api/v1/orders": "futures path",
        "DELETE /api/v1/orders/12": "futures path",
        "GET /api/v1/positions": "futures path",
        "POST /api/v1/copy-trade/futures/orders": "copytrading path",
        "GET /api/v1/contracts/active": "public",
        "GET /api/v1/level2/depth20": "public",
    },
    "bitget": {
        "POST /api/v2/spot/trade/place-order": "address path",
        "POST /api/v2/mix/order/cancel-order": "address path",
        "GET /api/v2/spot/account/assets": "address path",
        "GET /api/v2/spot/market/tickers": "address public",
        "GET /api/v2/public/time": "address public",
    },
    "coinbase": {
        "POST /api/v3/brokerage/orders": "private",
        "POST /api/v3/brokerage/orders/batch_cancel": "private",
        "GET /api/v3/brokerage/accounts": "private",
        "GET /api/v3/brokerage/market/products": "public",
        "GET /v2/accounts": "app",
    },
    "kraken": {
        "POST /0/private/AddOrder": "engine concurrency",
        "POST /0/private/AmendOrder": "engine concurrency",
        "POST /0/private/CancelOrder": "concurrency",
        "POST /0/private/CancelAll": "concurrency",
        "POST /0/private/Balance": "counter concurrency",
        "POST /0/private/Withdraw": "counter concurrency",
        "GET /0/public/Depth": "public",
        "GET /0/public/OHLC": "history",
    },
    "krakenfutures": {
        "POST /derivatives/api/v3/sendorder": "derivatives",
        "POST /derivatives/api/v3/cancelorder": "derivatives",
        "GET /derivatives/api/v3/openpositions": "derivatives",
        "GET /derivatives/api/v3/tickers": "public",
    },
    "gate": {
        "POST /api/v4/spot/orders": "spot-orders",
        "PATCH /api/v4/spot/orders/12": "spot-orders",
        "DELETE /api/v4/spot/orders/12": "spot-cancels",
        "POST /api/v4/spot/cancel_batch_orders": "spot-cancels",
        "POST /api/v4/futures/usdt/orders": "futures-orders",
        "PUT /api/v4/futures/usdt/orders/12": "futures-orders",
        "DELETE /api/v4/futures/btc/orders/12": "futures-cancels",
        "POST /api/v4/options/orders": "options-orders",
        "DELETE /api/v4/delivery/usdt/orders/12": "delivery-cancels",
        "GET /api/v4/spot/accounts": "others",
        "POST /api/v4/spot/price_orders": "others",
        "GET /api/v4/wallet/total_balance": "wallet",
        "POST /api/v4/withdrawals": "withdrawals",
        "GET /api/v4/spot/order_book": "public",
    },
    "gateeu": {"POST /api/v4/spot/orders": "spot-orders"},
    "mexc": {
        "POST /api/v3/order": "private",
        "DELETE /api/v3/order": "private",
        "GET /api/v3/openOrders": "private",
        "GET /api/v3/depth": "public",
    },
    "mexc-contract": {
        "POST /api/v1/private/order/create": "private",
        "POST /api/v1/private/order/cancel": "private",
        "GET /api/v1/private/position/open_positions": "private",
        "GET /api/v1/contract/depth/BTC_USDT": "market",
        "GET /api/v1/contract/kline/BTC_USDT": "public",
    },
    "htx": {
        "POST /v1/order/orders/place": "private",
        "POST /v1/order/orders/12/submitcancel": "private",
        "GET /v1/account/accounts": "private",
        "GET /market/depth": "public",
    },
    "htx-swap": {
        "POST /linear-swap-api/v1/swap_order": "linear-trading",
        "POST /linear-swap-api/v1/swap_cancel": "linear-trading",
        "POST /v5/trade/order": "linear-trading",
        "POST /v5/trade/cancel_order": "linear-trading",
        "POST /linear-swap-api/v1/swap_position_info": "linear-reading",
        "POST /swap-api/v1/swap_order": "coin-trading",
        "POST /api/v1/contract_cancel": "coin-trading",
        "POST /api/v1/contract_account_info": "coin-reading",
        "GET /linear-swap-ex/market/depth": "market",
        "GET /linear-swap-api/v1/swap_index": "public",
        "GET /v5/market/funding_rate": "public",
    },
    "deribit": {
        "GET /api/v2/private/buy": "matching",
        "GET /api/v2/private/edit": "matching",
        "GET /api/v2/private/cancel": "matching",
        "GET /api/v2/private/cancel_all": "cancel-all",
        "GET /api/v2/private/get_positions": "non-matching",
        "GET /api/v2/private/get_transaction_log": "transaction-log",
        "GET /api/v2/public/ticker": "public",
        "GET /api/v2/public/get_instruments": "instruments",
    },
    "bitfinex": {
        "POST /v2/auth/w/order/submit": "path",
        "POST /v2/auth/w/order/cancel": "path",
        "POST /v2/auth/r/wallets": "path",
        "GET /v2/ticker/tBTCUSD": "path",
    },
    "bitmex": {
        "POST /api/v1/order": "minute second",
        "DELETE /api/v1/order/all": "minute second",
        "POST /api/v1/position/leverage": "minute second",
        "GET /api/v1/position": "minute",
        "GET /api/v1": "public",
    },
    "bitvavo": {
        "POST /v2/order": "weight",
        "DELETE /v2/order": "weight",
        "GET /v2/BTC-EUR/book": "weight",
        "GET /v2/time": "public",
    },
    "phemex": {
        "PUT /g-orders/create": "address contract",
        "DELETE /orders/all": "address contract",
        "POST /spot/orders": "address spot-orders",
        "GET /spot/wallets": "address others",
        "GET /md/orderbook": "address others",
    },
    "gemini": {
        "POST /v1/order/new": "private",
        "POST /v1/order/cancel": "private",
        "POST /v1/balances": "private",
        "GET /v1/pubticker/btcusd": "public",
    },
    "coinbaseexchange": {
        "POST /orders": "private",
        "DELETE /orders/12": "private",
        "GET /fills": "fills",
        "GET /loans/interest": "loans",
        "GET /products/BTC-USD/book": "public",
    },
    "bitflyer": {
        "POST /v1/me/sendchildorder": "address private orders",
        "POST /v1/me/cancelchildorder": "address private",
        "GET /v1/me/getbalance": "address private",
        "GET /v1/getboard": "address",
    },
    "bitmart": {
        "POST /spot/v2/submit_order": "private",
        "POST /spot/v3/cancel_order": "private",
        "GET /spot/quotation/v3/books": "public",
    },
    "bitmart-futures": {
        "POST /contract/private/submit-order": "private",
        "GET /contract/public/depth": "public",
    },
    "hitbtc": {
        "POST /api/3/spot/order": "trading",
        "DELETE /api/3/spot/order/a1": "trading",
        "GET /api/3/spot/balance": "others",
        "GET /api/3/public/orderbook/ETHBTC": "public",
    },
    "blofin": {
        "POST /api/v1/trade/order": "address trading",
        "POST /api/v1/trade/cancel-order": "address trading",
        "GET /api/v1/account/balance": "address",
        "GET /api/v1/market/books": "address",
    },
    "bingx": {
        "POST /openApi/swap/v2/trade/order": "private",
        "DELETE /openApi/swap/v2/trade/order": "private",
        "GET /openApi/swap/v2/user/positions": "private",
        "GET /openApi/swap/v2/quote/depth": "public",
    },
    "weex-contract": {
        "POST /capi/v3/order": "weight orders",
        "DELETE /capi/v3/order": "weight",
        "GET /capi/v3/account/balance": "weight",
        "GET /capi/v3/market/depth": "weight",
    },
    "coinex": {
        "POST /v2/spot/order": "address spot-orders",
        "POST /v2/spot/modify-order": "address spot-orders",
        "POST /v2/spot/cancel-order": "address spot-cancels",
        "POST /v2/futures/cancel-all-order": "address futures-batch-cancels",
        "POST /v2/futures/adjust-position-leverage": "address futures-orders",
        "GET /v2/spot/pending-order": "address spot-queries",
        "GET /v2/assets/spot/balance": "address others",
        "GET /v2/spot/depth": "address",
    },
    "delta": {
        "POST /v2/orders": "private",
        "DELETE /v2/orders/all": "private",
        "GET /v2/positions": "private",
        "GET /v2/tickers/BTCUSD": "public",
    },
    "bequant": {"POST /api/3/futures/order": "trading"},
    "fmfwio": {"PATCH /api/3/margin/order/a1": "trading"},
}


@pytest.mark.parametrize(
    ("name", "call", "passed"),
    [(name, *case) for name, cases in _PASSED.items() for case in cases.items()],
)
def test_a_request_passes_the_pools_that_are_documented(name: str, call: str, passed: str) -> None:
    assert " ".join(pools_of(name, *call.split(" "))) == passed


def with_pools() -> list[Venue]:
    return [venue for venue in map(venue_of, FILES) if len(venue.limits.pools) > 1]


@pytest.mark.parametrize("name", [venue.name for venue in with_pools()])
def test_each_call_that_ccxt_knows_passes_a_pool(name: str, every_call: dict[str, list[Call]]) -> None:
    calls = every_call.get(name, [])
    assert [call for call in calls if not pools_of(name, call.method, call.path)] == []


class Refusal(NamedTuple):
    """What a call is refused with, the pool or the scope that this closes, and for how long.

    That is in seconds, until the time in the text, or as a header states it; "" is for a backoff.
    """

    name: str
    call: str
    status: int
    said: object
    closed: str
    wait: float | str = ""


_X_BAPI = "x-bapi-limit-reset-timestamp as epoch_ms"
_BINANCE = ("POST /api/v3/order", "GET /api/v3/depth")
_REFUSED = [
    *(
        Refusal("binance", call, 429, {"code": -1003, "msg": "Too many requests"}, "weight")
        for call in _BINANCE
    ),
    Refusal(
        "binance", "GET /sapi/v1/margin/order", 429, {"code": -1003, "msg": ""}, "sapi-address sapi-account"
    ),
    Refusal("binance", "POST /api/v3/order", 429, {"code": -1015, "msg": "Too many new orders"}, "orders"),
    Refusal("binance", "POST /api/v3/order", 400, {"code": -1008, "msg": "Server is overloaded"}, "orders"),
    Refusal(
        "binance",
        "GET /api/v3/depth",
        418,
        {"code": -1003, "msg": "Way too many requests; IP banned until 1790000000000."},
        "address",
        "1790000000000",
    ),
    Refusal("binance", "GET /api/v3/depth", 418, {}, "address", 120.0),
    Refusal("binanceusdm", "POST /fapi/v1/order", 429, {"code": -1015, "msg": ""}, "orders"),
    Refusal("binanceusdm", "GET /fapi/v1/depth", 429, {"code": -1003, "msg": ""}, "weight"),
    Refusal("binanceusdm", "GET /futures/data/basis", 429, {"code": -1003, "msg": ""}, "data"),
    Refusal("binancecoinm", "POST /dapi/v1/order", 429, {"code": -1015, "msg": ""}, "orders"),
    Refusal("binance-papi", "POST /papi/v1/um/order", 429, {"code": -1015, "msg": ""}, "orders"),
    Refusal("binance-options", "GET /eapi/v1/depth", 418, {}, "address", 120.0),
    Refusal("binanceus", "POST /api/v3/order", 429, {"code": -1015, "msg": ""}, "orders"),
    *(
        Refusal("bybit", "POST /v5/order/create", 200, {"retCode": code}, "path", _X_BAPI)
        for code in (10006, 10429, 170222)
    ),
    Refusal("bybit", "GET /v5/position/list", 403, "access too frequent", "address", 600.0),
    Refusal("bybit", "GET /v5/position/list", 200, {"retCode": 10018}, "address", 600.0),
    Refusal("okx", "POST /api/v5/trade/order", 429, {"code": "50011", "msg": ""}, "place"),
    Refusal("okx", "POST /api/v5/trade/order", 200, {"code": "1", "data": [{"sCode": "50061"}]}, "orders"),
    Refusal("okx", "POST /api/v5/trade/order", 429, {"code": "50061", "msg": ""}, "orders"),
    Refusal("okx", "POST /api/v5/trade/batch-orders", 429, {"code": "50011", "msg": ""}, "path"),
    Refusal("okx", "GET /api/v5/market/ticker", 429, {"code": "50011", "msg": ""}, "public"),
    Refusal(
        "kucoin", "POST /api/v1/hf/orders", 429, {"code": "429000"}, "spot", "gw-ratelimit-reset as in_ms"
    ),
    Refusal(
        "kucoin", "GET /api/v1/timestamp", 429, {"code": "429000"}, "public", "gw-ratelimit-reset as in_ms"
    ),
    Refusal("kucoin", "GET /api/v1/accounts", 200, {"code": "200002"}, "path", 10.0),
    Refusal("kucoin", "GET /api/v1/accounts", 403, {"code": "1015"}, "address", 30.0),
    Refusal(
        "kucoinfutures",
        "POST /api/v1/orders",
        429,
        {"code": "429000"},
        "futures",
        "gw-ratelimit-reset as in_ms",
    ),
    Refusal("bitget", "POST /api/v2/spot/trade/place-order", 429, {"code": "429"}, "path"),
    Refusal("bitget", "GET /api/v2/spot/market/tickers", 429, {"code": "429"}, "public"),
    Refusal("coinbase", "GET /api/v3/brokerage/accounts", 429, {"error": "rate_limit_exceeded"}, "private"),
    Refusal("coinbase", "GET /v2/accounts", 429, {"errors": [{"id": "rate_limit_exceeded"}]}, "app"),
    Refusal("kraken", "POST /0/private/Balance", 200, {"error": ["EAPI:Rate limit exceeded"]}, "counter"),
    Refusal("kraken", "POST /0/private/AddOrder", 200, {"error": ["EOrder:Rate limit exceeded"]}, "engine"),
    Refusal("kraken", "GET /0/public/Depth", 200, {"error": ["EGeneral:Too many requests"]}, "public"),
    Refusal(
        "kraken",
        "POST /0/private/Balance",
        200,
        {"error": ["EService: Throttled: 1790000000"]},
        "concurrency",
        "1790000000",
    ),
    Refusal(
        "kraken", "POST /0/private/Balance", 200, {"error": ["EGeneral:Temporary lockout"]}, "account", 900.0
    ),
    Refusal(
        "krakenfutures",
        "POST /derivatives/api/v3/sendorder",
        200,
        {"result": "error", "error": "apiLimitExceeded"},
        "derivatives",
    ),
    Refusal(
        "gate",
        "POST /api/v4/futures/usdt/orders",
        429,
        {"label": "TOO_MANY_REQUESTS"},
        "futures-orders",
        "x-gate-ratelimit-reset-timestamp as epoch_s",
    ),
    Refusal(
        "gate",
        "GET /api/v4/spot/tickers",
        429,
        {"label": "TOO_FAST"},
        "public",
        "x-gate-ratelimit-reset-timestamp as epoch_s",
    ),
    Refusal("mexc", "POST /api/v3/order", 429, {"code": 429}, "private"),
    Refusal("mexc", "GET /api/v3/depth", 200, {"code": 510}, "public"),
    Refusal("mexc", "GET /api/v3/depth", 418, {}, "address", 120.0),
    Refusal("mexc-contract", "POST /api/v1/private/order/create", 200, {"code": 510}, "private"),
    Refusal(
        "htx",
        "POST /v1/order/orders/place",
        200,
        {"status": "error", "err-code": "rate-too-many-requests"},
        "private",
        "x-hb-ratelimit-requests-expire as epoch_ms",
    ),
    Refusal(
        "htx-swap",
        "POST /linear-swap-api/v1/swap_order",
        200,
        {"status": "error", "err_code": 1032},
        "linear-trading",
        "ratelimit-reset as epoch_ms",
    ),
    Refusal("deribit", "GET /api/v2/private/buy", 400, {"error": {"code": 10028}}, "matching"),
    Refusal("deribit", "GET /api/v2/private/get_positions", 429, {"error": {"code": 10028}}, "non-matching"),
    Refusal("deribit", "GET /api/v2/private/sell", 400, {"error": {"code": 10047}}, "matching"),
    Refusal(
        "bitfinex", "POST /v2/auth/w/order/submit", 500, ["error", 11010, "ratelimit: error"], "path", 60.0
    ),
    Refusal("bitfinex", "GET /v2/tickers", 429, {"error": "ERR_RATE_LIMIT"}, "path", 60.0),
    Refusal(
        "bitvavo",
        "POST /v2/order",
        429,
        {"errorCode": 110, "error": "Rate limit exceeded."},
        "weight",
        "bitvavo-ratelimit-resetat as epoch_ms",
    ),
    Refusal(
        "bitvavo",
        "POST /v2/order",
        403,
        {"errorCode": 105, "error": "Your IP or API key has been banned. The ban expires at 1790000000000."},
        "weight",
        "1790000000000",
    ),
    Refusal(
        "bingx",
        "POST /openApi/swap/v2/trade/order",
        200,
        {"code": 100410, "msg": "frequency limit rule, will be unblocked after 1790000000000"},
        "private",
        "1790000000000",
    ),
    Refusal("bingx", "GET /openApi/swap/v2/quote/depth", 200, {"code": 100410, "msg": ""}, "public", 300.0),
    Refusal("bingx", "GET /openApi/swap/v2/quote/depth", 418, {}, "address", 300.0),
    Refusal("weex-contract", "POST /capi/v3/order", 429, {}, "weight", 10.0),
    Refusal("coinex", "POST /v2/spot/order", 200, {"code": 4213}, "address spot-orders"),
    Refusal("toobit", "GET /api/v1/account", 429, {}, "all", "x-api-limit-reset-timestamp as epoch_ms"),
    Refusal("delta", "POST /v2/orders", 429, {}, "private", "x-rate-limit-reset as in_ms"),
    Refusal("phemex", "GET /spot/wallets", 429, {}, "address others"),
    Refusal("bitmex", "GET /api/v1/position", 429, {"error": {"message": "Rate limit exceeded"}}, "minute"),
]


@pytest.mark.parametrize("refusal", _REFUSED, ids=lambda one: f"{one.name} {one.said}")
def test_a_refusal_closes_what_is_documented_for_as_long(refusal: Refusal) -> None:
    verdict = named(refusal.name).replies.judge(refusal.status, json.dumps(refusal.said).encode())
    rule, passed = verdict.wait, pools_of(refusal.name, *refusal.call.split(" "))
    assert verdict.is_limited
    meant = [pool for pool in passed if pool in rule.pools] or passed  # as docs/venues.md has it
    assert (rule.scope or " ".join(meant)) == refusal.closed
    stated = f"{rule.header} as {rule.moment}" if rule.header else verdict.found.get("until")
    assert (stated or rule.documented_s or "") == refusal.wait
