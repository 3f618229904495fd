"""How ccxt.pro opens private streams whose address, or first message, has what REST has handed out.

Nothing is signed on these streams, but the request by REST is, and the bot sends it with dummy keys. Rows are
as in stream_calls.py.
"""

from typing import Any

from venues.stream_calls import LINEAR, SPOT, Exchange, Login, orders, orders_of

_TOKEN = "pqia91ma19a5s61cv6a81va65"
_LISTEN_KEY = {"listenKey": _TOKEN}
_KUCOINS_SERVER = {"endpoint": "wss://ws-api-spot.kucoin.com/", "pingInterval": 18000}


def margin(exchange: Exchange) -> Any:
    return exchange.watch_balance({"type": "margin"})


def option(exchange: Exchange) -> Any:
    return exchange.watch_balance({"type": "option"})


def _handed(exchange: str, call: Any, path: str, answer: Any, **more: Any) -> Login:
    """Return the row of an exchange that answers a path with a token, or with a key to listen with."""
    return Login(exchange, call, rest={path: answer}, **more)


def _binance(exchange: str, call: Any, path: str) -> Login:
    options = {"watchPositions": {"fetchPositionsSnapshot": False}}
    return _handed(exchange, call, path, _LISTEN_KEY, sends=0, options=options)


def _kucoin(exchange: str, call: Any, version: str) -> Login:
    answer = {"code": "200000", "data": {"token": _TOKEN, "instanceServers": [_KUCOINS_SERVER]}}
    path = f"/api/{version}/bullet-private"
    return _handed(exchange, call, path, answer, options={"uta": version == "v2"})


def _xt(call: Any, path: str, answer: Any) -> Login:
    return _handed("xt", call, path, answer, own=("/messages/0/id",))


HANDED_OUT: dict[str, Login] = {
    "binance margin": _handed(
        "binance", margin, "/sapi/v1/userListenToken", {"token": _TOKEN, "expirationTime": 1}
    ),
    "binance-options": _binance("binance", option, "/eapi/v1/listenKey"),
    "binance-papi": _binance("binance", orders_of(LINEAR, portfolioMargin=True), "/papi/v1/listenKey"),
    "binancecoinm listen key": _binance("binancecoinm", orders, "/dapi/v1/listenKey"),
    "binanceusdm listen key": _binance("binanceusdm", orders, "/fapi/v1/listenKey"),
    "bingx": _handed("bingx", orders_of(LINEAR), "/openApi/user/auth/userDataStream", _LISTEN_KEY, sends=0),
    "bitrue": _handed("bitrue", orders, "/poseidon/api/v1/listenKey", {"data": _LISTEN_KEY}),
    "bitstamp": _handed(
        "bitstamp", orders_of(SPOT), "/api/v2/websockets_token/", {"token": _TOKEN, "user_id": "4848701"}
    ),
    "deepcoin": _handed(
        "deepcoin",
        orders,
        "/deepcoin/listenkey/acquire",
        {"code": "0", "data": {"listenkey": _TOKEN}},
        sends=0,
    ),
    "hashkey": _handed("hashkey", orders, "/api/v1/userDataStream", _LISTEN_KEY, sends=0),
    "kraken": _handed(
        "kraken", orders, "/0/private/GetWebSocketsToken", {"result": {"token": _TOKEN, "expires": 900}}
    ),
    "kucoin": _kucoin("kucoin", orders, "v1"),
    "kucoin v2": _kucoin("kucoin", orders, "v2"),
    "kucoinfutures": _kucoin("kucoinfutures", orders_of(LINEAR), "v1"),
    "mexc": _handed("mexc", orders, "/api/v3/userDataStream", _LISTEN_KEY),
    "toobit": _handed("toobit", orders, "/api/v1/userDataStream", _LISTEN_KEY, sends=0),
    "whitebit": _handed(
        "whitebit",
        orders_of(SPOT),
        "/api/v4/profile/websocket_token",
        {"websocket_token": _TOKEN},
        sends=2,
        replies=('{"error":null,"result":{"status":"success"},"id":"$/id"}',),
        own=("/messages/0/id", "/messages/1/id"),
    ),
    "xt": _xt(orders, "/v4/ws-token", {"rc": 0, "result": {"accessToken": _TOKEN}}),
    "xt futures": _xt(
        orders_of(LINEAR), "/future/user/v1/user/listen-key", {"returnCode": 0, "result": _TOKEN}
    ),
}
