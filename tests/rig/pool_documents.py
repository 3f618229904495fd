"""What eight exchanges count together, written from their documents and never from the venues' files.

A refusal that `scripted_exchanges` knows is taken from there by its name. Numbers are of a small account.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from rig.limits_limiters import Fixed, FixedFromFirst, Limiter, SlidingLog, TokenBucket
from rig.scripted_exchanges import EXCHANGES, Said

Says = Callable[[float, float], Said]  # from the epoch seconds now and at the end of a refusal
Tells = Callable[[int, int, float, float], Mapping[str, object]]  # most, left, now and end: header fields
STATED, DOCUMENTED, UNKNOWN = "stated", "documented", "unknown"
_PAIR = re.compile(r"(?:symbol|instId|pair|currency_pair|instrument_name)[\"':= ]+([A-Z]+)")


@dataclass(frozen=True)
class Asked:
    """What of a request decides which pools it passes."""

    method: str
    path: str
    pair: str
    is_open: bool


@dataclass(frozen=True)
class Ask:
    """A request that bots make: its kind is read, order, cancel or open, which needs no key."""

    kind: str
    method: str
    target: str
    body: str = ""
    rate: float = 0.5  # per second, of each bot


@dataclass(frozen=True)
class PoolScript:
    """What is counted together, and by which refusal one hears that it is full.

    `per` is "", "path" or "pair". `end` says how a client knows when it has room again: it is stated in the
    refusal, a window or a time in the documents, or unknown. `tells` are the fields of an accepted reply; if
    `do_counts_close`, they say that it is full, too, before anything was refused.
    """

    name: str
    scope: str
    has: Callable[[Asked], bool]
    most: int
    meter: Callable[[], Limiter]
    say: Says
    end: str
    lasts_s: tuple[float, float]
    per: str = ""
    tells: Tells | None = None
    on_orders_only: bool = False
    do_counts_close: bool = False


@dataclass(frozen=True)
class BanScript:
    """A ban, whose end is stated or documented; it is met by whoever asks for something that it covers."""

    name: str
    scope: str
    has: Callable[[Asked], bool]
    say: Says
    end: str
    lasts_s: tuple[float, float]
    per: str = ""


@dataclass(frozen=True)
class Documents:
    """An exchange: what bots ask of it, its pools and its bans."""

    asks: tuple[Ask, ...]
    is_open: Callable[[str], bool]
    pools: tuple[PoolScript, ...]
    bans: tuple[BanScript, ...] = ()
    costs: Mapping[str, int] = field(default_factory=dict)  # by path


def pair_of(text: str) -> str:
    """Return the pair that a query or body names, "" without one."""
    found = _PAIR.search(text)
    return found[1] if found else ""


def _said(venue: str, name: str) -> Says:
    return next(one.say for one in EXCHANGES[venue].closures if one.name == name)


def _body(status: int, body: object) -> Says:
    return lambda _now, _end: (status, body, {})


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


def _all(_: Asked) -> bool:
    return True


def _private(asked: Asked) -> bool:
    return not asked.is_open


def _public(asked: Asked) -> bool:
    return asked.is_open


def _to(*calls: str) -> Callable[[Asked], bool]:
    return lambda asked: any(f"{asked.method} {asked.path}".startswith(call) for call in calls)


# Binance, spot: limits, REST (developers.binance.com/docs/binance-spot-api-docs/rest-api/limits).
def _in_api(asked: Asked) -> bool:
    return asked.path.startswith("/api/")


_BINANCE = Documents(
    (
        Ask("read", "GET", "/api/v3/openOrders?symbol=X"),
        Ask("order", "POST", "/api/v3/order", "symbol=X"),
        Ask("cancel", "DELETE", "/api/v3/order?symbol=X"),
        Ask("open", "GET", "/api/v3/depth?symbol=X"),
        Ask("read", "GET", "/sapi/v1/margin/account"),  # counted for itself, and in no weight of /api
    ),
    lambda path: path in {"/api/v3/time", "/api/v3/depth", "/api/v3/ticker/price", "/api/v3/exchangeInfo"},
    (
        PoolScript(
            "weight",
            "address",
            _in_api,
            6000,
            partial(Fixed, 6000, 60.0),
            _said("binance", "429 with Retry-After"),
            STATED,
            (1, 90),
            tells=lambda most, left, _now, _end: {"X-MBX-USED-WEIGHT-1M": most - left},
            do_counts_close=True,
        ),
        PoolScript(
            "orders",
            "account",
            _to("POST /api/v3/order"),
            100,
            partial(Fixed, 100, 10.0),  # 10 SECOND begins at :00, :10 …
            _said("binance", "-1015"),  # without Retry-After
            DOCUMENTED,
            (1, 25),
            tells=lambda most, left, _now, _end: {"X-MBX-ORDER-COUNT-10S": most - left},
            on_orders_only=True,
            do_counts_close=True,
        ),
    ),
    (
        BanScript("418", "address", _all, _said("binance", "418 with its words"), STATED, (120, 600)),
        # "Repeated violations … from 2 minutes to 3 days": two minutes at least.
        BanScript(
            "418, silent", "address", _all, _said("binance", "418 that says nothing"), DOCUMENTED, (120, 120)
        ),
    ),
    {"/api/v3/openOrders": 6, "/api/v3/depth": 5, "/api/v3/account": 20},
)


# Bybit v5: bybit-exchange.github.io/docs/v5/rate-limit. The reset is "now" where nothing was exceeded.
def _bapi(most: int, left: int, now: float, _end: float) -> Mapping[str, object]:
    return {"X-Bapi-Limit": most, "X-Bapi-Limit-Status": left, "X-Bapi-Limit-Reset-Timestamp": _ms(now)}


_BYBIT = Documents(
    (
        Ask("read", "GET", "/v5/position/list?category=linear"),
        Ask("read", "GET", "/v5/order/realtime?category=linear"),
        Ask("order", "POST", "/v5/order/create", '{"symbol":"X"}'),
        Ask("order", "POST", "/v5/order/amend", '{"symbol":"X"}'),
        Ask("cancel", "POST", "/v5/order/cancel", '{"symbol":"X"}'),
        Ask("open", "GET", "/v5/market/orderbook?symbol=X"),
    ),
    lambda path: path.startswith("/v5/market/"),
    (
        PoolScript(
            "path",
            "account",
            _private,
            10,
            partial(SlidingLog, 10, 1.0),
            _said("bybit", "10006 with its reset"),
            STATED,
            (1, 5),
            "path",
            _bapi,
        ),
    ),
    (BanScript("403", "address", _all, _said("bybit", "403"), DOCUMENTED, (600, 600)),),
)


# KuCoin: kucoin.com/docs-new/rate-limit, VIP 0; the window of 30 s begins with the first request.
def _gw(most: int, left: int, now: float, end: float) -> Mapping[str, object]:
    return {
        "gw-ratelimit-limit": most,
        "gw-ratelimit-remaining": left,
        "gw-ratelimit-reset": _ms(end - now) + 1,
    }


def _kucoin(name: str, scope: str, has: Callable[[Asked], bool], most: int) -> PoolScript:
    says = _said("kucoin", "429000 with its reset")
    return PoolScript(
        name,
        scope,
        has,
        most,
        partial(FixedFromFirst, most, 30.0),
        says,
        STATED,
        (1, 60),
        tells=_gw,
        do_counts_close=True,
    )


_KUCOIN = Documents(
    (
        Ask("read", "GET", "/api/v1/hf/orders/active?symbol=X"),
        Ask("order", "POST", "/api/v1/hf/orders", '{"symbol":"X"}'),
        Ask("cancel", "DELETE", "/api/v1/hf/orders/1?symbol=X"),
        Ask("read", "GET", "/api/v1/accounts"),  # of the pool "management"
        Ask("open", "GET", "/api/v1/market/allTickers"),
    ),
    lambda path: path.startswith(("/api/v1/market/", "/api/v1/timestamp", "/api/v1/symbols")),
    (
        _kucoin("spot", "account", _to("GET /api/v1/hf/", "POST /api/v1/hf/", "DELETE /api/v1/hf/"), 4000),
        _kucoin("management", "account", _to("GET /api/v1/accounts", "GET /api/v1/sub"), 2000),
        _kucoin("public", "address", _public, 2000),
    ),
    (
        BanScript("1015", "address", _all, _said("kucoin", "1015"), DOCUMENTED, (30, 30)),
        BanScript("200002", "account", _private, _said("kucoin", "200002"), DOCUMENTED, (10, 10), "path"),
    ),
    {"/api/v1/hf/orders/active": 2, "/api/v1/accounts": 5, "/api/v1/market/allTickers": 15},
)

# OKX v5: each endpoint by itself, per 2 s; orders and cancels per instrument, too; no field states a wait.
_OKX_TRADE = _to("POST /api/v5/trade/")


def _okx(name: str, scope: str, has: Callable[[Asked], bool], most: int, per: str) -> PoolScript:
    meter = partial(SlidingLog, most, 2.0)
    return PoolScript(name, scope, has, most, meter, _said("okx", "50011"), DOCUMENTED, (1, 8), per)


_OKX_ORDERS = _okx("orders", "account", _to("POST /api/v5/trade/order", "POST /api/v5/trade/amend"), 1000, "")
_OKX = Documents(
    (
        Ask("read", "GET", "/api/v5/account/positions"),
        Ask("read", "GET", "/api/v5/trade/orders-pending"),
        Ask("order", "POST", "/api/v5/trade/order", '{"instId":"X"}'),
        Ask("order", "POST", "/api/v5/trade/order", '{"instId":"Y"}'),
        Ask("cancel", "POST", "/api/v5/trade/cancel-order", '{"instId":"X"}'),
        Ask("open", "GET", "/api/v5/market/ticker?instId=X"),
    ),
    lambda path: path.startswith(("/api/v5/market/", "/api/v5/public/")),
    (
        _okx("trade", "account", _OKX_TRADE, 60, "path and pair"),
        _okx("endpoint", "account", lambda asked: _private(asked) and not _OKX_TRADE(asked), 10, "path"),
        _okx("public", "address", _public, 20, "path"),
        replace(_OKX_ORDERS, say=_body(429, {"code": "50061", "msg": "Order count exceeds the limit"})),
    ),
)

# Kraken: docs.kraken.com/api/docs/guides/spot-rest-ratelimits and spot-ratelimits; intermediate tier.
_KRAKEN_TRADE = _to("POST /0/private/AddOrder", "POST /0/private/CancelOrder")


def _kraken_error(text: str) -> Says:
    return _body(200, {"error": [text]})


_KRAKEN = Documents(
    (
        Ask("read", "POST", "/0/private/OpenOrders", "trades=true", rate=0.3),
        Ask("order", "POST", "/0/private/AddOrder", "pair=XBT"),
        Ask("order", "POST", "/0/private/AddOrder", "pair=ETH"),
        Ask("cancel", "POST", "/0/private/CancelOrder", "txid=1"),
        Ask("open", "GET", "/0/public/Depth?pair=XBT", rate=0.15),
    ),
    lambda path: path.startswith("/0/public/"),
    (
        PoolScript(
            "counter",
            "key",
            lambda asked: _private(asked) and not _KRAKEN_TRADE(asked),
            20,
            partial(TokenBucket, 0.5, 20),
            _said("kraken", "rate limit"),
            UNKNOWN,
            (3, 20),
        ),
        PoolScript(
            "engine",
            "account",
            _to("POST /0/private/AddOrder"),
            125,
            partial(TokenBucket, 2.34, 125),
            _kraken_error("EOrder:Rate limit exceeded"),
            UNKNOWN,
            (3, 20),
            "pair",
        ),
        PoolScript(
            "public",
            "address",
            _public,
            15,
            partial(TokenBucket, 1.0, 15),
            _kraken_error("EGeneral:Too many requests"),
            UNKNOWN,
            (3, 20),
        ),
    ),
    (
        BanScript("lockout", "account", _private, _said("kraken", "lockout"), DOCUMENTED, (900, 900)),
        # Whose requests are too many at a time, no page says: at least the key's.
        BanScript("throttled", "key", _private, _said("kraken", "throttled until"), STATED, (5, 60)),
    ),
)


# Gate v4: the table before "Rate Limit"; the reset is "now" where nothing was exceeded.
def _gate_fields(most: int, left: int, now: float, _end: float) -> Mapping[str, object]:
    return {
        "X-Gate-RateLimit-Limit": most,
        "X-Gate-RateLimit-Requests-Remain": left,
        "X-Gate-RateLimit-Reset-Timestamp": int(now),
    }


def _gate(name: str, has: Callable[[Asked], bool], most: int, window_s: float, per: str) -> PoolScript:
    meter, says = partial(Fixed, most, window_s), _said("gate", "TOO_MANY_REQUESTS with its reset")
    return PoolScript(name, "account", has, most, meter, says, STATED, (1, 12), per, _gate_fields)


_GATE_PLACES, _GATE_CANCELS = _to("POST /api/v4/spot/orders"), _to("DELETE /api/v4/spot/orders")
_GATE = Documents(
    (
        Ask("read", "GET", "/api/v4/spot/open_orders"),
        Ask("read", "GET", "/api/v4/spot/accounts"),
        Ask("order", "POST", "/api/v4/spot/orders", '{"currency_pair":"X"}'),
        Ask("order", "POST", "/api/v4/spot/orders", '{"currency_pair":"Y"}'),
        Ask("cancel", "DELETE", "/api/v4/spot/orders/1?currency_pair=X"),
        Ask("open", "GET", "/api/v4/spot/order_book?currency_pair=X"),
    ),
    lambda path: path.startswith(("/api/v4/spot/order_book", "/api/v4/spot/time", "/api/v4/spot/tickers")),
    (
        _gate("placing", _GATE_PLACES, 10, 1.0, "pair"),
        _gate("cancelling", _GATE_CANCELS, 200, 1.0, ""),
        _gate(
            "endpoint",
            lambda asked: _private(asked) and not _GATE_PLACES(asked) and not _GATE_CANCELS(asked),
            200,
            10.0,
            "path",
        ),
        replace(_gate("public", _public, 200, 10.0, "path"), scope="address"),
    ),
)

# Bitget v2: each endpoint per second by UID or IP, and 6000 a minute by IP, refused in the same words.
_BITGET_429 = _said("bitget", "429")


def _bitget(name: str, scope: str, has: Callable[[Asked], bool], most: int) -> PoolScript:
    return PoolScript(
        name, scope, has, most, partial(SlidingLog, most, 1.0), _BITGET_429, DOCUMENTED, (1, 5), "path"
    )


_BITGET = Documents(
    (
        Ask("read", "GET", "/api/v2/spot/trade/unfilled-orders"),
        Ask("read", "GET", "/api/v2/spot/account/assets"),
        Ask("order", "POST", "/api/v2/spot/trade/place-order", '{"symbol":"X"}'),
        Ask("cancel", "POST", "/api/v2/spot/trade/cancel-order", '{"symbol":"X"}'),
        Ask("open", "GET", "/api/v2/spot/market/tickers"),
    ),
    lambda path: path.startswith(("/api/v2/spot/market/", "/api/v2/public/")),
    (
        _bitget("endpoint", "account", _private, 10),
        _bitget("public", "address", _public, 20),
        PoolScript(
            "address", "address", _all, 6000, partial(Fixed, 6000, 60.0), _BITGET_429, UNKNOWN, (1, 60)
        ),
    ),
)

# Deribit v2: credits of a sub-account; the matching engine apart, with cancels; below USD 1 M in 7 days.
_DERIBIT_MATCHES = _to(
    "GET /api/v2/private/buy",
    "GET /api/v2/private/sell",
    "GET /api/v2/private/edit",
    "GET /api/v2/private/cancel",
)


def _deribit(name: str, scope: str, has: Callable[[Asked], bool], rate: float, burst: int) -> PoolScript:
    return PoolScript(
        name, scope, has, burst, partial(TokenBucket, rate, burst), _said("deribit", "10028"), UNKNOWN, (1, 5)
    )


_DERIBIT = Documents(
    (
        Ask("read", "GET", "/api/v2/private/get_positions"),
        Ask("order", "GET", "/api/v2/private/buy?instrument_name=X"),
        Ask("cancel", "GET", "/api/v2/private/cancel?order_id=1"),
        Ask("open", "GET", "/api/v2/public/get_order_book?instrument_name=X"),
    ),
    lambda path: path.startswith("/api/v2/public/"),
    (
        _deribit("matching", "account", _DERIBIT_MATCHES, 5.0, 20),
        _deribit(
            "others", "account", lambda asked: _private(asked) and not _DERIBIT_MATCHES(asked), 20.0, 100
        ),
        _deribit("public", "address", _public, 20.0, 100),
    ),
)
DOCUMENTS: Mapping[str, Documents] = {
    "binance": _BINANCE,
    "bybit": _BYBIT,
    "kucoin": _KUCOIN,
    "okx": _OKX,
    "kraken": _KRAKEN,
    "gate": _GATE,
    "bitget": _BITGET,
    "deribit": _DERIBIT,
}
