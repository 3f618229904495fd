"""What the oracle asks ccxt for, venue by venue."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# What a bot may ask with: names in no order that a venue could prefer, values that need escapes.
NAMES = ("symbol", "side", "amount", "limit", "ordertype", "zone", "client", "after", "kind")
PLAIN = ("BTCUSDT", "1.50", 7, 0.25, "buy", "a-b_c.d~e", 1000000)
ESCAPED = (*PLAIN, "BTC/USDT", "x y", "a:b,c", "50%", "1+1", "[1]", "größe", 'q"uote')


@dataclass(frozen=True)
class Calls:
    """How a class of ccxt is asked: rows of (its api, method, path), parameters drawn from `values`."""

    exchange: str
    rows: tuple[tuple[Any, str, str], ...]
    values: tuple[Any, ...] = ESCAPED
    secret: str = "raw"  # or base64, where ccxt decodes it
    options: Mapping[str, Any] | None = None
    real_options: Mapping[str, Any] | None = None  # for the real key alone
    api_key: str = "KEY4f0e"


def rows(api: Any, **paths: str) -> tuple[tuple[Any, str, str], ...]:
    return tuple((api, method.upper(), path) for method, joined in paths.items() for path in joined.split())


_PRIVATE = ["private"]

VENUES: dict[str, Calls] = {
    "okx": Calls(
        "okx", rows(_PRIVATE, get="account/balance trade/order", post="trade/cancel-order trade/order")
    ),
    "bitget": Calls(
        "bitget",
        rows(["private", "spot"], get="v2/spot/trade/orderInfo", post="v2/spot/trade/place-order"),
    ),
    "weex": Calls(
        "weex",
        rows(_PRIVATE, get="api/v3/order", post="api/v3/order", delete="api/v3/order api/v3/order/batch"),
    ),
    "deepcoin": Calls(
        "deepcoin", rows(_PRIVATE, get="deepcoin/account/balances", post="deepcoin/trade/order")
    ),
    "bybit": Calls(
        "bybit", rows(_PRIVATE, get="v5/order/realtime", post="v5/order/create v5/order/cancel"), PLAIN
    ),
    "coinbase": Calls(
        "coinbase",
        (
            *rows(
                ["v3", "private"],
                get="brokerage/accounts",
                post="brokerage/orders",
                put="brokerage/portfolios/7",
            ),
            *rows(["v3", "private"], delete="brokerage/portfolios/7"),
            *rows(["v2", "private"], get="accounts", post="accounts", delete="accounts/9"),
        ),
        # In URLs of v2, ccxt leaves out "[1]", which it signs: such a request fails at the exchange, too.
        tuple(value for value in ESCAPED if value != "[1]"),
    ),
    "coinbaseexchange": Calls(
        "coinbaseexchange",
        rows(_PRIVATE, get="accounts", post="conversions", delete="orders orders/5"),
        secret="base64",
    ),
    "bitfinex": Calls("bitfinex", rows(_PRIVATE, post="auth/r/wallets auth/w/order/submit")),
    "bitstamp": Calls(
        "bitstamp", rows(_PRIVATE, get="contacts/c7/ travel_rule/contacts/", post="balance/ buy/btcusd/")
    ),
    "mexc-contract": Calls(
        "mexc", rows(["contract", "private"], get="account/assets", post="order/submit order/cancel")
    ),
    "deribit": Calls("deribit", rows(_PRIVATE, get="get_positions buy cancel")),
    "phemex": Calls(
        "phemex",
        rows(
            _PRIVATE,
            get="spot/orders",
            post="orders spot/orders",
            put="orders/replace",
            delete="orders/cancel",
        ),
    ),
    "woo": Calls(
        "woo",
        rows(
            ["v3", "private"], get="trade/orders", post="trade/order", put="trade/order", delete="trade/order"
        ),
    ),
    "woo-v1": Calls("woo", rows(["v1", "private"], get="client/token", post="order", delete="order")),
    "bitvavo": Calls("bitvavo", rows(_PRIVATE, get="ordersOpen", post="order", put="order", delete="order")),
    "bitso": Calls(
        "bitso", rows(_PRIVATE, get="balance", post="orders", delete="orders/all", patch="orders/o1")
    ),
    "bitrue-futures": Calls("bitrue", rows(["fapi", "v2", "private"], get="openOrders", post="order cancel")),
    "blofin": Calls("blofin", rows(_PRIVATE, get="asset/balances", post="trade/order")),
    "delta": Calls("delta", rows(_PRIVATE, get="orders", post="orders", put="orders", delete="orders")),
    "cex": Calls("cex", rows(_PRIVATE, post="do_my_new_order get_my_fee")),
    "bitbank": Calls("bitbank", rows(_PRIVATE, get="user/assets user/spot/order", post="user/spot/order")),
    "coincheck": Calls(
        "coincheck",
        rows(_PRIVATE, get="accounts accounts/balance", post="exchange/orders", delete="exchange/orders/3"),
    ),
    "btcmarkets": Calls(
        "btcmarkets",
        rows(_PRIVATE, get="orders", post="orders", put="orders/4", delete="orders orders/4"),
        secret="base64",
    ),
    "bitflyer": Calls("bitflyer", rows(_PRIVATE, get="getbalance", post="sendchildorder")),
    "digifinex-swap": Calls(
        "digifinex", rows(["private", "swap"], get="account/positions", post="trade/order_place")
    ),
    "btse": Calls(
        "btse",
        rows(
            _PRIVATE,
            get="spot/api/v3.3/order futures/api/v2.3/order",
            post="spot/api/v3.3/order futures/api/v2.3/order",
            put="spot/api/v3.3/order",
            delete="spot/api/v3.3/order futures/api/v3/order",
        ),
    ),
    "bydfi": Calls("bydfi", rows(_PRIVATE, get="v1/account/assets", post="v1/fapi/trade/place_order")),
    "apex": Calls("apex", rows(_PRIVATE, get="v3/account v3/fills", post="v3/delete-order v3/order"), PLAIN),
    "btcturk": Calls(
        "btcturk", rows(_PRIVATE, get="openOrders", post="order", delete="order"), secret="base64"
    ),
    "latoken": Calls(
        "latoken", rows(_PRIVATE, get="auth/account", post="auth/order/place auth/order/cancel")
    ),
    "kucoin": Calls(
        "kucoin",
        (
            *rows(_PRIVATE, get="accounts", post="hf/orders", delete="hf/orders/9"),
            *rows(["futuresPrivate"], get="account-overview", post="orders", delete="orders/9"),
        ),
        PLAIN,
        # ccxt signs as a partner of the exchange, too, with the key in it: the file takes that out.
        real_options={"partner": {}},
    ),
    "gate": Calls(
        "gate",
        (
            *rows(
                ["private", "spot"], get="orders", post="orders", delete="orders orders/8", patch="orders/8"
            ),
            *rows(["private", "futures"], get="usdt/accounts", post="usdt/orders usdt/positions/x/margin"),
        ),
    ),
    "hitbtc": Calls(
        "hitbtc",
        rows(_PRIVATE, get="spot/balance", post="spot/order", delete="spot/order", patch="spot/order/c3"),
    ),
    "gemini": Calls("gemini", rows(_PRIVATE, post="v1/order/new v1/balances"), api_key="account-KEY4f0e"),
    "krakenfutures": Calls(
        "krakenfutures",
        rows(_PRIVATE, get="openpositions", post="sendorder batchorder", put="leveragepreferences"),
        secret="base64",
    ),
    "poloniex": Calls(
        "poloniex",
        (
            *rows(_PRIVATE, get="accounts", post="orders", put="orders/2", delete="orders orders/2"),
            *rows(["swapPrivate"], get="v3/account/balance", post="v3/trade/order", delete="v3/trade/order"),
        ),
    ),
    "xt": Calls(
        "xt",
        rows(["private", "spot"], get="balances", post="order withdraw", put="order/7", delete="open-order"),
        options={"recvWindow": "5000"},
    ),
    "foxbit": Calls("foxbit", rows(["v3", "private"], get="orders", post="orders", put="orders/cancel")),
    "bitopro": Calls(
        "bitopro",
        rows(_PRIVATE, get="accounts/balance", post="orders/btc", put="orders", delete="orders/all"),
    ),
    "binance": Calls(
        "binance",
        (
            *rows(_PRIVATE, get="openOrders account", post="order order/test", delete="order openOrders"),
            *rows(["fapiPrivate"], get="openOrders", post="order", put="order", delete="order"),
            *rows(["dapiPrivate"], get="openOrders", post="order", put="order", delete="order"),
            *rows(["sapi"], get="margin/account", post="asset/transfer"),
        ),
    ),
    "mexc": Calls(
        "mexc",
        rows(
            ["spot", "private"],
            get="openOrders",
            post="order order/test",
            delete="order",
            put="userDataStream",
        ),
    ),
    "bingx": Calls(
        "bingx",
        (
            *rows(["spot", "v1", "private"], get="trade/query", post="trade/order trade/cancel"),
            *rows(["swap", "v2", "private"], get="user/balance", post="trade/order", delete="trade/order"),
        ),
    ),
    "htx": Calls(
        "htx",
        (
            *rows(["spot", "private"], get="v1/account/accounts", post="v1/order/orders/place"),
            *rows(["v2Private"], get="account/ledger", post="account/transfer"),
        ),
    ),
    "coinsph": Calls(
        "coinsph",
        rows(
            _PRIVATE,
            get="openapi/v1/openOrders",
            post="openapi/v1/order",
            put="openapi/v1/userDataStream",
            delete="openapi/v1/order",
        ),
    ),
    "kraken": Calls("kraken", rows(_PRIVATE, post="Balance AddOrder CancelOrder"), secret="base64"),
    "hashkey": Calls(
        "hashkey",
        rows(_PRIVATE, get="api/v1/spot/openOrders", post="api/v1/spot/order", delete="api/v1/spot/order"),
        PLAIN,
    ),
    "toobit": Calls(
        "toobit", rows(_PRIVATE, get="api/v1/account", post="api/v1/spot/order", delete="api/v1/spot/order")
    ),
    "bitrue": Calls(
        "bitrue", rows(["spot", "v1", "private"], get="openOrders", post="order", delete="order")
    ),
    "btcbox": Calls("btcbox", rows(_PRIVATE, post="balance trade_add")),
    # What ccxt has no more: these are signed by 4.5.0, and kept in recorded.json.
    "bitmex": Calls(
        "bitmex", rows("private", get="order", post="order", put="order", delete="order order/all")
    ),
    "bitmart": Calls("bitmart", rows("private", get="spot/v1/wallet", post="spot/v2/submit_order")),
    "ascendex": Calls(
        "ascendex",
        (
            *rows(["v1", "private"], get="info wallet/transactions"),
            *rows(["v1", "private", "accountCategory"], get="balance order/open", post="order order/batch"),
            *rows(["v1", "private", "accountCategory"], delete="order order/all"),
            *rows(
                ["v1", "private", "accountGroup"], get="cash/balance margin/risk futures/position spot/fee"
            ),
            *rows(["v2", "private", "accountGroup"], get="futures/position", post="futures/order"),
            *rows(["v2", "private", "data"], get="order/hist"),
        ),
    ),
    "coinex": Calls(
        "coinex",
        rows(["v2", "private"], get="assets/spot/balance", post="spot/order spot/cancel-order"),
        PLAIN,
    ),
    "exmo": Calls("exmo", rows("private", post="user_info order_create")),
}
GONE = frozenset({"bitmex", "bitmart", "ascendex", "coinex", "exmo"})
