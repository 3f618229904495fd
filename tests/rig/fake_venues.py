"""Exchanges that check each signature, in code that shares nothing with the gateway.

They know one symbol, and as much of their API as unmodified clients ask for. Each host is one by itself.
"""

import base64
import hashlib
import hmac
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from aiohttp import web
from aiohttp.test_utils import RawTestServer

from rig import fake_others
from rig.fake_streams import STREAM_TOKEN, now_ms, serve_stream
from rig.fake_symbols import (
    BINANCE_ACCOUNT,
    BINANCE_SYMBOLS,
    BYBIT_SYMBOL,
    FUTURES_ACCOUNT,
    KRAKEN_ASSETS,
    KRAKEN_SYMBOL,
    KUCOIN_SYMBOL,
    OKX_SYMBOL,
)

API_KEY, SECRET, PASSPHRASE = "real-api-key", "real secret of the exchange", "real passphrase"
_WINDOW_MS = 5_000
_KUCOIN_MONEY = {"id": "1", "currency": "USDT", "balance": "1000.0", "available": "1000.0", "holds": "0"}
NO_KEY = {"code": -2014, "msg": "API-key format invalid."}  # Binance, of a read without a key


@dataclass
class Fake:
    """One that runs, and its only key. `refused` has what was not right, `orders` what was placed.

    `messages` came over its streams.
    """

    name: str
    api_key: str = API_KEY
    secret: str = SECRET
    base_url: str = ""
    seen: list[tuple[str, str, Mapping[str, str]]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    orders: list[Mapping[str, Any]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)


@asynccontextmanager
async def running_fake(
    name: str, api_key: str = API_KEY, secret: str = SECRET, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Fake]:
    """Run an exchange, by its venue's name: one of those below, or one of Binance's hosts."""
    fake = Fake(name, api_key, secret)
    answers: dict[str, Callable[[Fake, web.BaseRequest, str], Any]] = {
        "okx": _okx,
        "bybit": _bybit,
        "kraken": _kraken,
        "kucoin": _kucoin,
        "coinbase": fake_others.coinbase,
        "gate": fake_others.gate,
        "bitget": fake_others.bitget,
    }
    answer = answers.get(name, _binance)

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        body = (await request.read()).decode()
        fake.seen.append((request.method, request.path_qs, dict(request.headers)))
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await serve_stream(fake, request)
        said = answer(fake, request, body)
        return web.json_response(said, status=401 if said == NO_KEY else 200)

    server = RawTestServer(handle)
    await server.start_server(ssl=tls)
    try:
        fake.base_url = f"https://localhost:{server.port}" if tls else f"http://127.0.0.1:{server.port}"
        yield fake
    finally:
        await server.close()


def _okx(fake: Fake, request: web.BaseRequest, body: str) -> dict[str, Any]:
    path = request.path.removeprefix("/api/v5/")
    if path.startswith(("public/", "market/")):
        known: dict[str, Any] = {
            "public/time": [{"ts": str(now_ms())}],
            "public/instruments": [OKX_SYMBOL] if request.query.get("instType") == "SPOT" else [],
            "market/ticker": [{"instId": OKX_SYMBOL["instId"], "last": "66000", "ts": str(now_ms())}],
        }
        return _okx_ok(known.get(path, []))
    head = request.headers
    message = f"{head['OK-ACCESS-TIMESTAMP']}{request.method}{request.raw_path}{body}"
    signature = base64.b64encode(hmac.digest(fake.secret.encode(), message.encode(), "sha256")).decode()
    if (head["OK-ACCESS-KEY"], head["OK-ACCESS-PASSPHRASE"]) != (fake.api_key, PASSPHRASE):
        return _refused(fake, "another key", {"code": "50111", "msg": "Invalid OK-ACCESS-KEY", "data": []})
    if head["OK-ACCESS-SIGN"] != signature:
        return _refused(fake, message, {"code": "50113", "msg": "Invalid Sign", "data": []})
    if request.method == "POST":
        asked = json.loads(body)
        fake.orders += asked if isinstance(asked, list) else [asked]
        return _okx_ok([{"ordId": "812", "clOrdId": "", "sCode": "0", "sMsg": "", "tag": ""}])
    money = {"ccy": "USDT", "eq": "1000", "availBal": "1000", "availEq": "1000", "frozenBal": "0"}
    answers: dict[str, Any] = {
        "account/balance": [{"uTime": str(now_ms()), "totalEq": "1000", "details": [money]}],
        "account/config": [{"acctLv": "1", "posMode": "net_mode", "uid": "1", "perm": "read_only,trade"}],
    }
    return _okx_ok(answers.get(path, []))


def _okx_ok(data: list[Any]) -> dict[str, Any]:
    return {"code": "0", "msg": "", "data": data}


def _refused(fake: Fake, why: str, answer: dict[str, Any]) -> dict[str, Any]:
    fake.refused.append(why)
    return answer


def _bybit(fake: Fake, request: web.BaseRequest, body: str) -> dict[str, Any]:
    path, head = request.path, request.headers
    answers: dict[str, Any] = {
        "/v5/market/instruments-info": {"category": "spot", "list": [BYBIT_SYMBOL]},
        "/v5/account/info": {"unifiedMarginStatus": 6, "marginMode": "REGULAR_MARGIN"},
        "/v5/user/query-api": {"uta": 1, "unified": 0, "readOnly": 0, "permissions": {}},
        "/v5/asset/coin/query-info": {"rows": []},
        "/v5/account/wallet-balance": {
            "list": [{"accountType": "UNIFIED", "coin": [{"coin": "USDT", "walletBalance": "1000.0"}]}]
        },
        "/v5/order/create": {"orderId": "812", "orderLinkId": ""},
    }
    if not path.startswith("/v5/market/"):
        query = request.raw_path.partition("?")[2]
        stamped = head["X-BAPI-TIMESTAMP"] + head["X-BAPI-API-KEY"] + head["X-BAPI-RECV-WINDOW"]
        message = f"{stamped}{query}{body}"
        if head["X-BAPI-API-KEY"] != fake.api_key:
            return _refused(fake, "another key", {"retCode": 10003, "retMsg": "API key is invalid."})
        if head["X-BAPI-SIGN"] != hmac.new(fake.secret.encode(), message.encode(), "sha256").hexdigest():
            return _refused(fake, message, {"retCode": 10004, "retMsg": "Error sign"})
        if abs(int(head["X-BAPI-TIMESTAMP"]) - now_ms()) > _WINDOW_MS:
            return _refused(fake, message, {"retCode": 10002, "retMsg": "invalid request, timestamp"})
        if path == "/v5/order/create":
            fake.orders.append(json.loads(body))
    return {"retCode": 0, "retMsg": "OK", "result": answers.get(path, {"list": []}), "time": now_ms()}


def _kraken(fake: Fake, request: web.BaseRequest, body: str) -> dict[str, Any]:
    path = request.path
    answers: dict[str, Any] = {
        "/0/public/Time": {"unixtime": now_ms() // 1000},
        "/0/public/Assets": KRAKEN_ASSETS,
        "/0/public/AssetPairs": {"XXBTZUSD": KRAKEN_SYMBOL},
        "/0/private/BalanceEx": {"ZUSD": {"balance": "1000.0", "hold_trade": "0.0"}},
        "/0/private/AddOrder": {"descr": {"order": "buy 0.001 XBTUSD @ limit 65000.0"}, "txid": ["O812"]},
    }
    if path.startswith("/0/private/"):
        form = {name: texts[0] for name, texts in parse_qs(body).items()}
        digest = hashlib.sha256(f"{form['nonce']}{body}".encode()).digest()
        mac = hmac.digest(base64.b64decode(fake.secret), path.encode() + digest, "sha512")
        if request.headers["API-Key"] != fake.api_key:
            return _refused(fake, "another key", {"error": ["EAPI:Invalid key"]})
        if request.headers["API-Sign"] != base64.b64encode(mac).decode():
            return _refused(fake, body, {"error": ["EAPI:Invalid signature"]})
        if path == "/0/private/AddOrder":
            fake.orders.append(form)
    return {"error": [], "result": answers.get(path, {})}


def _kucoin(fake: Fake, request: web.BaseRequest, body: str) -> dict[str, Any]:
    path, head = request.path, request.headers
    server = {"endpoint": "wss://ws-api-spot.kucoin.com/", "protocol": "websocket", "encrypt": True}
    server |= {"pingInterval": 18000, "pingTimeout": 10000}
    answers: dict[str, Any] = {
        "/api/v1/timestamp": now_ms(),
        "/api/v2/symbols": [KUCOIN_SYMBOL],
        "/api/v1/bullet-private": {"token": STREAM_TOKEN, "instanceServers": [server]},
        "/api/v1/orders": {"orderId": "812"},
        "/api/v1/hf/orders": {"orderId": "812"},
        "/api/v1/accounts": [_KUCOIN_MONEY | {"type": request.query.get("type", "main")}],
    }
    if "KC-API-KEY" in head:
        message = f"{head['KC-API-TIMESTAMP']}{request.method}{request.raw_path}{body}"
        right = base64.b64encode(hmac.digest(fake.secret.encode(), message.encode(), "sha256")).decode()
        if (head["KC-API-KEY"], head["KC-API-SIGN"]) != (fake.api_key, right):
            return _refused(fake, message, {"code": "400005", "msg": "Invalid KC-API-SIGN"})
        if path in ("/api/v1/orders", "/api/v1/hf/orders"):
            fake.orders.append(json.loads(body))
    return {"code": "200000", "data": answers.get(path, [])}


# The paths of each host of Binance.
_BINANCE_HOSTS = {
    "binance": ("/api/", "/sapi/"),
    "binanceusdm": ("/fapi/", "/futures/"),
    "binancecoinm": ("/dapi/", "/futures/"),
    "binance-papi": ("/papi/",),
}


def _binance(fake: Fake, request: web.BaseRequest, body: str) -> Any:
    path = request.path
    if not path.startswith(_BINANCE_HOSTS[fake.name]):
        return _refused(fake, f"{path} is of another host", {"code": -1, "msg": "no such path"})
    whole = request.raw_path.partition("?")[2] or body
    if "signature=" in whole:
        return _binance_signed(fake, request, whole)
    if path.endswith("/exchangeInfo"):
        symbols = BINANCE_SYMBOLS[path.split("/")[1]]
        return {"timezone": "UTC", "rateLimits": [], "exchangeFilters": [], "symbols": symbols}
    if path.endswith("/account"):
        return NO_KEY
    return {"serverTime": now_ms()} if path.endswith("/time") else []


def _binance_signed(fake: Fake, request: web.BaseRequest, whole: str) -> Any:
    path = request.path
    message, _, given = whole.rpartition("&signature=")
    values = {name: texts[0] for name, texts in parse_qs(message).items()}
    if request.headers["X-MBX-APIKEY"] != fake.api_key:
        return _refused(fake, "another key", {"code": -2008, "msg": "Invalid Api-Key ID."})
    if given != hmac.new(fake.secret.encode(), message.encode(), hashlib.sha256).hexdigest():
        return _refused(fake, message, {"code": -1022, "msg": "Signature for this request is not valid."})
    if abs(int(values["timestamp"]) - now_ms()) > _WINDOW_MS:
        return _refused(fake, message, {"code": -1021, "msg": "Timestamp is outside of the recvWindow."})
    if path.endswith("/order") and request.method == "POST":
        fake.orders.append(values)
        return _binance_order(values)
    if path.endswith("/account"):
        return BINANCE_ACCOUNT if path.startswith("/api/") else FUTURES_ACCOUNT
    return []


def _binance_order(order: Mapping[str, str]) -> dict[str, Any]:
    given = {name: order.get(name) for name in ("symbol", "side", "type", "timeInForce", "price")}
    return {
        **{name: value for name, value in given.items() if value is not None},
        "orderId": 812,
        "orderListId": -1,
        "clientOrderId": order.get("newClientOrderId", "x"),
        "transactTime": now_ms(),
        "origQty": order.get("quantity", "0"),
        "executedQty": "0",
        "cummulativeQuoteQty": "0",
        "status": "NEW",
        "fills": [],
    }
