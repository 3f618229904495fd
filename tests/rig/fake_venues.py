"""Exchanges that check each signature, in code that shares nothing with the gateway.

They know one symbol, and as much of their API as unmodified clients ask for.
"""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from aiohttp import web
from aiohttp.test_utils import RawTestServer

API_KEY, SECRET, PASSPHRASE = "real-api-key", "real secret of the exchange", "real passphrase"
_WINDOW_MS = 5_000


@dataclass
class Fake:
    """One that runs. `refused` has the reasons why signatures were not right, `orders` what was placed."""

    base_url: str = ""
    seen: list[tuple[str, str, Mapping[str, str]]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    orders: list[Mapping[str, Any]] = field(default_factory=list)


@asynccontextmanager
async def running_fake(name: str) -> AsyncIterator[Fake]:
    """Run an exchange: "okx" or "binance"."""
    fake = Fake()
    answer = {"okx": _okx, "binance": _binance}[name]

    async def handle(request: web.BaseRequest) -> web.Response:
        body = (await request.read()).decode()
        fake.seen.append((request.method, request.path_qs, dict(request.headers)))
        return web.json_response(answer(fake, request, body))

    async with RawTestServer(handle) as server:
        fake.base_url = f"http://127.0.0.1:{server.port}"
        yield fake


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _okx(fake: Fake, request: web.BaseRequest, body: str) -> dict[str, Any]:
    path = request.path.removeprefix("/api/v5/")
    if path.startswith(("public/", "market/")):
        is_spot = path == "public/instruments" and request.query.get("instType") == "SPOT"
        return _okx_ok([{"ts": str(now_ms())}] if path == "public/time" else [_OKX_SYMBOL] if is_spot else [])
    head = request.headers
    message = f"{head['OK-ACCESS-TIMESTAMP']}{request.method}{request.raw_path}{body}"
    signature = base64.b64encode(hmac.digest(SECRET.encode(), message.encode(), "sha256")).decode()
    if (head["OK-ACCESS-KEY"], head["OK-ACCESS-PASSPHRASE"]) != (API_KEY, PASSPHRASE):
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


def _binance(fake: Fake, request: web.BaseRequest, body: str) -> Any:
    path = request.path
    open_to_all = {
        "/api/v3/time": {"serverTime": now_ms()},
        "/api/v3/exchangeInfo": {
            "timezone": "UTC",
            "serverTime": now_ms(),
            "rateLimits": [],
            "exchangeFilters": [],
            "symbols": [_BINANCE_SYMBOL],
        },
    }
    whole = request.raw_path.partition("?")[2] or body
    if path in open_to_all or "signature=" not in whole:
        return open_to_all.get(path, [])
    message, _, given = whole.rpartition("&signature=")
    values = {name: texts[0] for name, texts in parse_qs(message).items()}
    if request.headers["X-MBX-APIKEY"] != API_KEY:
        return _refused(fake, "another key", {"code": -2008, "msg": "Invalid Api-Key ID."})
    if given != hmac.new(SECRET.encode(), message.encode(), hashlib.sha256).hexdigest():
        return _refused(fake, message, {"code": -1022, "msg": "Signature for this request is not valid."})
    if abs(int(values["timestamp"]) - now_ms()) > _WINDOW_MS:
        return _refused(fake, message, {"code": -1021, "msg": "Timestamp is outside of the recvWindow."})
    if path == "/api/v3/order" and request.method == "POST":
        fake.orders.append(values)
        return _binance_order(values)
    return _BINANCE_ACCOUNT if path == "/api/v3/account" else []


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


_OKX_SYMBOL = {
    "instType": "SPOT",
    "instId": "BTC-USDT",
    "baseCcy": "BTC",
    "quoteCcy": "USDT",
    "state": "live",
    "tickSz": "0.1",
    "lotSz": "0.00000001",
    "minSz": "0.00001",
    "alias": "",
    "category": "1",
    "ctMult": "",
    "ctType": "",
    "ctVal": "",
    "ctValCcy": "",
    "expTime": "",
    "lever": "10",
    "listTime": "1548133413000",
    "optType": "",
    "settleCcy": "",
    "stk": "",
    "uly": "",
    "instFamily": "",
    "maxLmtSz": "9999999999",
    "maxMktSz": "1000000",
    "maxLmtAmt": "20000000",
    "maxMktAmt": "1000000",
    "maxTwapSz": "9999999999",
    "maxIcebergSz": "9999999999",
    "maxTriggerSz": "9999999999",
    "maxStopSz": "1000000",
    "ruleType": "normal",
}
_BINANCE_SYMBOL = {
    "symbol": "BTCUSDT",
    "status": "TRADING",
    "baseAsset": "BTC",
    "quoteAsset": "USDT",
    "baseAssetPrecision": 8,
    "quotePrecision": 8,
    "quoteAssetPrecision": 8,
    "baseCommissionPrecision": 8,
    "quoteCommissionPrecision": 8,
    "orderTypes": ["LIMIT", "LIMIT_MAKER", "MARKET", "STOP_LOSS_LIMIT", "TAKE_PROFIT_LIMIT"],
    "icebergAllowed": True,
    "ocoAllowed": True,
    "otoAllowed": True,
    "opoAllowed": True,
    "quoteOrderQtyMarketAllowed": True,
    "allowTrailingStop": True,
    "cancelReplaceAllowed": True,
    "amendAllowed": True,
    "pegInstructionsAllowed": True,
    "isSpotTradingAllowed": True,
    "isMarginTradingAllowed": False,
    "filters": [
        {"filterType": "PRICE_FILTER", "minPrice": "0.01", "maxPrice": "1000000.00", "tickSize": "0.01"},
        {"filterType": "LOT_SIZE", "minQty": "0.00001", "maxQty": "9000.0", "stepSize": "0.00001"},
        {"filterType": "MARKET_LOT_SIZE", "minQty": "0.0", "maxQty": "100.0", "stepSize": "0.0"},
        {
            "filterType": "NOTIONAL",
            "minNotional": "5.0",
            "applyMinToMarket": True,
            "maxNotional": "9000000.0",
            "applyMaxToMarket": False,
            "avgPriceMins": 5,
        },
        {"filterType": "MAX_NUM_ORDERS", "maxNumOrders": 200},
    ],
    "permissions": [],
    "permissionSets": [["SPOT"]],
    "defaultSelfTradePreventionMode": "NONE",
    "allowedSelfTradePreventionModes": ["NONE"],
}
_BINANCE_ACCOUNT = {
    "makerCommission": 10,
    "takerCommission": 10,
    "buyerCommission": 0,
    "sellerCommission": 0,
    "commissionRates": {"maker": "0.001", "taker": "0.001", "buyer": "0", "seller": "0"},
    "canTrade": True,
    "canWithdraw": True,
    "canDeposit": True,
    "brokered": False,
    "requireSelfTradePrevention": False,
    "preventSor": False,
    "updateTime": 1,
    "accountType": "SPOT",
    "balances": [{"asset": "USDT", "free": "1000.0", "locked": "0.0"}],
    "permissions": ["SPOT"],
    "uid": 1,
}
