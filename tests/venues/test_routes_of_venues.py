"""Which requests go unsigned, and which need more than the right to trade, against ccxt.

Where the query is signed, an exchange refuses parameters that it did not ask for: market data must go as it
came, and nothing else may.
"""

import re

import pytest

from sealgate.orders.halts import is_stoppable
from sealgate.venues.routes import Auth, Lane, Permission, Route, RouteRow
from sealgate.venues.venue import Venue
from venues.calls import GONE, VENUES
from venues.through import OF_ANOTHER_FILE, Call, family, named, table_of

BY_QUERY = (
    *("binance", "mexc", "bingx", "htx", "coinsph", "kraken", "hashkey", "toobit", "bitrue", "btcbox"),
    *("binanceusdm", "binancecoinm", "binance-papi", "binance-options", "binanceus", "htx-swap"),
    *("tokocrypto", "digifinex", "bittrade", "bit2c", "indodax", "mercado", "coinmate"),
    *("lbank", "zaif"),
)

# What ccxt has as public, and as private, too: the exchange's documents call it public.
_TWICE = {
    "/openApi/swap/v2/quote/bookTicker",
    "/v2/etp/reference",
    "/v2/etp/rebalance",
    "/v2/reference/currencies",
}
# What ccxt signs, and takes the key alone by the exchange's documents (2026-11).
_KEY_ALONE = {"/sapi/v1/userDataStream/isolated"}


def auth_of(venue: Venue, call: Call) -> Auth:
    """Return how a request proves itself: a literal goes before a placeholder, both before a subtree."""
    ranked = [
        (rank, route)
        for route in venue.routes
        if route.method in (call.method, "*") and (rank := _rank(route, call.path))
    ]
    return max(ranked, key=lambda pair: pair[0])[1].auth if ranked else Auth.SIGNED


def _rank(route: RouteRow, path: str) -> list[int]:
    wanted, segments = route.template.strip("/").split("/"), path.strip("/").split("/")
    if wanted[-1] == "**":
        wanted, segments = wanted[:-1], segments[: len(wanted) - 1]
    if len(wanted) != len(segments) or any(
        own != other and not own.startswith("{") for own, other in zip(wanted, segments, strict=True)
    ):
        return []
    return [1 + (own == other) for own, other in zip(wanted, segments, strict=True)] or [0]


@pytest.mark.parametrize("name", BY_QUERY)
def test_what_ccxt_signs_is_signed(name: str, every_call: dict[str, list[Call]]) -> None:
    venue = named(name)
    signed = [call for call in every_call[name] if call.is_signed and call.path not in _TWICE | _KEY_ALONE]
    assert len(signed) > 3
    assert [call for call in signed if auth_of(venue, call) is not Auth.SIGNED] == []


@pytest.mark.parametrize("name", BY_QUERY)
def test_market_data_goes_as_it_came(name: str, every_call: dict[str, list[Call]]) -> None:
    venue = named(name)
    assert [
        call
        for call in every_call[name]
        if not call.is_signed and auth_of(venue, call) is Auth.SIGNED and not is_elsewhere(name, call)
    ] == []


def is_elsewhere(name: str, call: Call) -> bool:
    """Ask whether it is another venue's file, another host's, or nothing that ccxt could have right."""
    others = {
        "mexc": ("/api/v1/", "/open/"),
        "bitrue": ("/fapi/", "/dapi/", "/api/kline/"),
        "kraken": ("/api/v2/help_center/",),
        "btcbox": ("//ajax/",),
        "htx": ("/swap-api/v1/linear-swap-api/",),
        "binance": ("/fapi/v1/apiTradingStatus",),
        "lbank": ("/cfd/",),
        **{name: OF_ANOTHER_FILE[name] for name in ("digifinex", "mercado", "tokocrypto")},
    }
    return call.path.startswith(others.get(family(name), ("\0",)))


# Their reads are POSTs with a body, which a read of the gateway's own does not have; Pacifica signs none.
_WITHOUT_A_READ = {"cex", "cryptocom", "indodax", "mercado", "pacifica", "zaif"}


def test_the_read_that_checks_a_key_is_one_that_ccxt_signs(every_call: dict[str, list[Call]]) -> None:
    """`sealgate check` and the gateway send it, by the method that the exchange has for it."""
    venues = {name: named(name) for name in VENUES}
    assert {name for name, venue in venues.items() if not venue.signed_read} == _WITHOUT_A_READ
    unknown = []
    for name in sorted(set(every_call) - _WITHOUT_A_READ):
        venue = venues[name]
        path = venue.signed_read.partition("?")[0].rstrip("/")
        method = table_of(name).method_of_read(path.removeprefix(venue.prefix))
        route = route_of(name, method, path)
        if (route.needs, route.auth) != (Permission.READ, Auth.SIGNED) or not any(
            (call.method, call.path) == (method, path) for call in every_call[name]
        ):
            unknown.append((name, method, path))
    assert unknown == []


def route_of(name: str, method: str, path: str) -> Route:
    return table_of(name).find(method, path.removeprefix(named(name).prefix))


def needs(name: str, method: str, path: str) -> Permission:
    return route_of(name, method, path).needs


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("deribit", "HEAD /api/v2/private/list_api_keys"),
        ("deribit", "POST /api/v2/private/withdraw"),
        ("deribit", "GET /api/v2/Private/Withdraw"),
        ("kraken", "GET /0/private/Withdraw"),
        ("bitstamp", "POST /api/v2/withdrawal/open/"),
        ("bitmex", "GET /api/v1/apiKey"),
    ],
)
def test_what_needs_keys_needs_them_by_other_methods_and_spellings(name: str, call: str) -> None:
    assert needs(name, *call.split()) is Permission.KEYS


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("okx", "GET /api/v5/account/spot-manual-borrow-repay"),
        ("deribit", "GET /api/v2/private/buy"),
        ("deribit", "GET /api/v2/Private/buy"),
        ("deribit", "GET /api/v2/private/Buy"),
        ("deribit", "GET /api/v1/private/buy"),
        ("deribit", "GET /API/v2/private/buy"),
        ("deribit", "HEAD /api/v2/PRIVATE/sell"),
        ("deribit", "GET /api/v2/private/something_new"),
        ("kraken", "GET /0/private/AddOrder"),
        ("kraken", "HEAD /0/private/AddOrder"),
    ],
)
def test_a_bot_that_reads_gets_no_credential_and_no_order_by_another_spelling(name: str, call: str) -> None:
    assert needs(name, *call.split()) is Permission.TRADE


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("btse", "DELETE /futures/api/v3/trade/positions"),  # which closes them at the market
        ("kraken", "POST /0/private/GetWebSocketsToken"),  # with which orders go past the gateway
        ("phemex", "GET /exchange/wallets/confirm/withdraw"),
        ("binance", "POST /api/v3/order/cancelReplace"),
        ("bitget", "POST /api/v2/spot/trade/cancel-replace-order"),
    ],
)
def test_a_halt_stops_what_trades_by_whatever_method_and_name(name: str, call: str) -> None:
    method, path = call.split()
    assert is_stoppable(table_of(name).find(method, path))


@pytest.mark.parametrize("path", ["", "/private/get_positions", "/public/get_time", "/private/cancel"])
def test_json_rpc_needs_keys_and_goes_as_an_order_whatever_its_path_says(path: str) -> None:
    """Its body names the call."""
    route = route_of("deribit", "POST", f"/api/v2{path}")
    assert (route.needs, route.lane, route.is_cancel) == (Permission.KEYS, Lane.ORDER, False)
    by_get = route_of("deribit", "GET", f"/api/v2{path}")
    assert by_get.is_bodiless or by_get.auth is Auth.OPEN


_CANCEL = re.compile(r"cancel|kill_?switch$|/delete-(open-)?orders?$|/allOpenOrders$", re.IGNORECASE)
# What takes back no order, or makes another one; of Bybit's and MEXC's those of other files.
_NO_CANCEL = re.compile(
    r"replace|_and_new$|staking|collection|withdraw|transfer|redeem|copy_?trader|-trader|otc|loan|lend|borrow|c2c|invoice|qr_code"
    r"|on[_-]disconnect|cancel_status|p2p|hash-transfer",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(r"^/(spot|contract|unified)/v3/private|^/api/v1/private/|^/open/api")


def test_what_cancels_goes_first_and_passes_a_halt(every_call: dict[str, list[Call]]) -> None:
    cancels = [
        (name, call)
        for name, calls in every_call.items()
        for call in calls
        if call.method != "GET"
        and _CANCEL.search(call.path)
        and not _NO_CANCEL.search(call.path)
        and not _ELSEWHERE.search(call.path)
        and not call.path.startswith(OF_ANOTHER_FILE.get(name, ("\0",)))
    ]
    assert len(cancels) > 200
    assert [(name, call) for name, call in cancels if stops(name, call.method, call.path)] == []


# By GET those of Deribit cancel; two batches can hold orders, too; three venues have one path for all.
_LOOKED_UP, _BATCHES = "GET", ("/derivatives/api/v3/batchorder", "/api/v1/orders/batch")
_FOR_ALL = {("indodax", "/tapi"), ("mercado", "/tapi/v3"), ("zaif", "/tapi")}
_OF_ANOTHER = {**OF_ANOTHER_FILE, "mexc": ("/api/v1/private/", "/open/")}


def test_what_ccxt_cancels_with_passes_a_halt_at_every_venue(unified: dict[str, set[Call]]) -> None:
    cancels = [
        (name, call)
        for name, calls in unified.items()
        for call in calls
        if (call.method != _LOOKED_UP or family(name) == "deribit")
        and call.path not in _BATCHES
        and (name, call.path) not in _FOR_ALL
        and not call.path.startswith(_OF_ANOTHER.get(name, ("\0",)))
    ]
    assert len(unified) == len(VENUES) - len(GONE)
    assert len(cancels) > 200
    assert sorted((name, call) for name, call in cancels if stops(name, call.method, call.path)) == []


def test_nothing_else_that_ccxt_knows_passes_a_halt(
    unified: dict[str, set[Call]], every_call: dict[str, list[Call]]
) -> None:
    def is_cancel(name: str, call: Call) -> bool:
        is_named = _CANCEL.search(call.path) and not _NO_CANCEL.search(call.path)
        is_order = call.method == "DELETE" and re.search(r"order|/strateg", call.path, re.IGNORECASE)
        return bool(is_named or is_order) or call._replace(is_signed=True) in unified[name]

    assert [
        (name, call)
        for name, calls in every_call.items()
        for call in calls
        if call.is_signed
        and needs(name, call.method, call.path) is not Permission.READ
        and not stops(name, call.method, call.path)
        and not is_cancel(name, call)
        and not (call.method == "GET" and needs(name, "GET", call.path) is Permission.KEYS)
    ] == []


def stops(name: str, method: str, path: str) -> bool:
    return is_stoppable(route_of(name, method, path))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("exmo", "POST /v1.1/order_create/cancel"),
        ("bybit", "POST /v5/order/create/cancel"),
        ("bybit", "DELETE /v5/order/create"),
        ("gate", "DELETE /api/v4/unified/loans"),
        ("gate", "DELETE /api/v4/margin/loans/7"),
        ("binance", "DELETE /sapi/v1/margin/isolated/account"),
    ],
)
def test_neither_the_method_nor_the_end_of_a_path_passes_a_halt(name: str, call: str) -> None:
    assert stops(name, *call.split())


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("coinex", "POST /v2/spot/cancel-order"),
        ("bitmex", "DELETE /api/v1/order"),
        ("ascendex", "DELETE /4/api/pro/v1/cash/order/all"),
        ("bitmart", "POST /spot/v3/cancel_order"),
        ("exmo", "POST /v1.1/order_cancel"),
        ("bitmex", "POST /api/v1/order/cancelAllAfter"),
        ("deribit", "GET /api/v2/private/cancel_all_by_kind_or_type"),
    ],
)
def test_so_does_what_ccxt_does_not_know(name: str, call: str) -> None:
    method, path = call.split()
    assert not is_stoppable(table_of(name).find(method, path))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("deribit", "GET /api/v2/private/get_positions"),
        ("deribit", "GET /api/v2/public/ticker"),
        ("kraken", "POST /0/private/Balance"),
        ("kraken", "POST /0/private/WithdrawStatus"),
        ("bybit", "GET /v5/user/query-api"),
        ("okx", "GET /api/v5/asset/withdrawal-history"),
        ("binance", "GET /sapi/v1/capital/withdraw/history"),
        ("binance", "POST /sapi/v3/asset/getUserAsset"),
        ("bitstamp", "POST /api/v2/fees/trading/btcusd"),
        ("bitstamp", "POST /api/v2/withdrawal/status"),
        ("cex", "POST /api/spot/rest/get_my_orders"),
        ("gemini", "POST /v1/positions"),
    ],
)
def test_a_bot_that_reads_still_reads(name: str, call: str) -> None:
    assert needs(name, *call.split()) is Permission.READ


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("bybit", "/v5/position/list"),
        ("bybit", "/v5/order/realtime"),
        ("okx", "/api/v5/account/balance"),
        ("okx", "/api/v5/trade/orders-pending"),
    ],
)
def test_the_usual_reads_have_a_name_in_log_and_page_and_no_other_right(name: str, path: str) -> None:
    table = table_of(name)
    read, write = table.find("GET", path), table.find("POST", path)
    assert (read.template, read.needs, read.is_cancel) == (path, Permission.READ, False)
    assert (write.template, write.needs) == ("other", Permission.TRADE)


def test_no_read_of_bybit_takes_a_body_also_where_a_row_of_its_own_names_it() -> None:
    rows = named("bybit").routes
    table = table_of("bybit")
    reads = [row.template for row in rows if row.method == "GET" and row.needs is not Permission.KEYS]
    assert len(reads) > 10
    assert [path for path in reads if not table.find("GET", path.replace("**", "x")).is_bodiless] == []
    assert table.find("GET", "/v5/market/time").auth is Auth.OPEN


_STREAM_KEY = re.compile(r"listen-?key|userDataStream|ws-?token|websockets_token|bullet", re.IGNORECASE)


def test_keys_of_streams_are_reads_that_pass_a_halt_and_that_each_bot_gets_for_itself(
    every_call: dict[str, list[Call]],
) -> None:
    keys = [
        (name, call)
        for name, calls in every_call.items()
        for call in calls
        if _STREAM_KEY.search(call.path)
        and not call.path.startswith(OF_ANOTHER_FILE.get(name, ("\0",)))
        and call.path != "/0/private/GetWebSocketsToken"  # with which orders go past the gateway
    ]
    assert {name for name, _ in keys} >= {"binance", "bingx", "hashkey", "mexc", "toobit", "bitstamp", "xt"}
    for name, call in keys:
        route = table_of(name).find(call.method, call.path)
        needed = Permission.TRADE if call.method == "DELETE" else Permission.READ  # that closes it for all
        assert (route.needs, route.lane, route.share_s) == (needed, Lane.READ, None), (name, call)
        assert call.method == "DELETE" or not is_stoppable(route)


@pytest.mark.parametrize(
    ("name", "call", "auth"),
    [
        ("binance", "POST /sapi/v1/userDataStream/isolated", Auth.KEY),
        ("binance", "PUT /fapi/v1/listenKey", Auth.KEY),
        ("kucoin", "POST /api/v1/bullet-public", Auth.OPEN),
        ("kucoin", "POST /api/v1/bullet-private", Auth.SIGNED),
        ("lbank", "POST /v2/subscribe/get_key.do", Auth.SIGNED),
        ("bitbns", "GET /api/trade/v1/tickers", Auth.KEY),
    ],
)
def test_what_needs_no_signature_goes_without_one(name: str, call: str, auth: Auth) -> None:
    assert table_of(name).find(*call.split()).auth is auth


def test_where_no_method_is_signed_a_read_only_bot_sends_no_order_by_get(
    every_call: dict[str, list[Call]], orders: dict[str, set[Call]]
) -> None:
    """A GET that the exchange documents is a read; by any other, some server might execute the order."""
    unsigned = {name for name in every_call if not named(name).signing.signs_method}
    assert {"bitopro", "bitfinex", "cex", "btcbox", "gemini", "krakenfutures", "phemex"} <= unsigned
    documented = {
        (name, _shape(call.path))
        for name, calls in every_call.items()
        for call in calls
        if call.method == "GET"
    }
    guarded = [
        (name, call.path)
        for name in unsigned
        for call in {*orders[name], *filter(_is_order_by_name, every_call[name])}
        if call.method != "GET"
        and (name, _shape(call.path)) not in documented
        and call.path.startswith(named(name).prefix)
        and needs(name, call.method, call.path) is not Permission.READ
    ]
    assert len(guarded) > 150
    assert [one for one in guarded if needs(one[0], "GET", one[1]) is Permission.READ] == []
    spelled = [(name, other) for name, path in guarded for other in _other_spellings(name, path)]
    assert [one for one in spelled if needs(one[0], "GET", one[1]) is Permission.READ] == []


def _is_order_by_name(call: Call) -> bool:
    return call.is_signed and re.search(r"order|place|submit", call.path.casefold()) is not None


def _other_spellings(name: str, path: str) -> list[str]:
    """Return how some server might be led to the path of an order: other letters, an extension, a space."""
    prefix = named(name).prefix
    own = path.removeprefix(prefix)
    others = (own.upper(), f"{own}.json", f"{own}/", f"{own}%20", own.replace("i", "%C4%B1"))
    return [prefix + other for other in others]


def _shape(path: str) -> str:
    return re.sub(r"x\d+", "x", path)


def test_where_no_method_is_signed_a_get_has_no_body(every_call: dict[str, list[Call]]) -> None:
    with_bodies = [
        (name, call.path)
        for name, calls in every_call.items()
        if not named(name).signing.signs_method
        for call in calls
        if (route := route_of(name, "GET", call.path)).auth is Auth.SIGNED and not route.is_bodiless
    ]
    assert with_bodies == []
