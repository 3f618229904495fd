"""The streams of `fake_venues`: each checks what is signed, and pushes an order that was filled."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from rig.fake_venues import Fake

STREAM_TOKEN = "token-that-rest-hands-out"
_WINDOW_MS = 5_000


@dataclass
class _Stream:
    """One that is open."""

    fake: "Fake"
    path: str
    is_logged_in: bool = False

    def check(self, *, is_right: bool, why: str) -> bool:
        """Note what is not right."""
        if not is_right:
            self.fake.refused.append(why)
        return is_right

    def hmac(self, message: str) -> bytes:
        return hmac.digest(self.fake.secret.encode(), message.encode(), "sha256")


async def serve_stream(fake: "Fake", request: web.BaseRequest) -> web.WebSocketResponse:
    """Answer what comes on one stream."""
    answers: dict[str, Callable[[_Stream, Any], Iterator[Any]]] = {
        "bybit": _bybit,
        "okx": _okx,
        "binance": _binance,
        "kucoin": _kucoin,
    }
    socket, stream = web.WebSocketResponse(), _Stream(fake, request.path)
    await socket.prepare(request)
    if fake.name == "kucoin":
        stream.check(is_right=request.query["token"] == STREAM_TOKEN, why="another token")
        await socket.send_json({"id": "1", "type": "welcome"})
    async for message in socket:
        fake.messages.append(message.data)
        for reply in answers[fake.name](stream, json.loads(message.data)):
            await socket.send_json(reply)
    return socket


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _bybit(stream: _Stream, message: Any) -> Iterator[Any]:
    op = message["op"]
    if op == "auth":
        api_key, expires, signature = message["args"]
        right = stream.hmac(f"GET/realtime{expires}").hex()
        stream.is_logged_in = stream.check(
            is_right=(api_key, signature) == (stream.fake.api_key, right) and int(expires) > now_ms(),
            why=f"login {message}",
        )
        if stream.path == "/v5/trade":
            code = 0 if stream.is_logged_in else 10004
            yield {"retCode": code, "retMsg": "OK", "op": "auth", "connId": "1"}
        else:
            yield {"success": stream.is_logged_in, "ret_msg": "", "op": "auth", "conn_id": "1"}
    elif op == "subscribe":
        stream.check(is_right=stream.is_logged_in, why="a subscription before the login")
        yield {"success": True, "ret_msg": "", "op": op, "conn_id": "1", "req_id": message.get("req_id", "")}
        yield {"topic": "order", "id": "1", "creationTime": now_ms(), "data": [_BYBIT_ORDER]}
    elif op == "order.create":
        stream.check(is_right=stream.is_logged_in, why="an order before the login")
        stream.fake.orders += message["args"]
        data = {"orderId": "812", "orderLinkId": ""}
        yield {"reqId": message["reqId"], "retCode": 0, "retMsg": "OK", "op": op, "data": data}


_BYBIT_ORDER = {
    "symbol": "BTCUSDT",
    "orderId": "811",
    "orderLinkId": "",
    "side": "Buy",
    "orderType": "Limit",
    "price": "64000",
    "qty": "0.001",
    "avgPrice": "64000",
    "leavesQty": "0",
    "cumExecQty": "0.001",
    "cumExecValue": "64",
    "cumExecFee": "0.01",
    "orderStatus": "Filled",
    "timeInForce": "GTC",
    "category": "spot",
    "createdTime": "1790000000000",
    "updatedTime": "1790000000001",
}


def _okx(stream: _Stream, message: Any) -> Iterator[Any]:
    op = message["op"]
    if op == "login":
        (given,) = message["args"]
        right = base64.b64encode(stream.hmac(f"{given['timestamp']}GET/users/self/verify")).decode()
        stream.is_logged_in = stream.check(
            is_right=(given["apiKey"], given["sign"]) == (stream.fake.api_key, right)
            and abs(int(given["timestamp"]) * 1000 - now_ms()) < _WINDOW_MS,
            why=f"login {message}",
        )
        yield {
            "event": "login" if stream.is_logged_in else "error",
            "code": "0" if stream.is_logged_in else "60007",
            "msg": "",
            "connId": "1",
        }
    elif op == "subscribe":
        stream.check(is_right=stream.is_logged_in, why="a subscription before the login")
        (asked,) = message["args"]
        yield {"event": "subscribe", "arg": asked, "connId": "1"}
        yield {"arg": {**asked, "uid": "1"}, "data": [_OKX_ORDER]}
    elif op in ("order", "batch-orders"):
        stream.check(is_right=stream.is_logged_in, why="an order before the login")
        stream.fake.orders += message["args"]
        data = [{"clOrdId": "", "ordId": "812", "tag": "", "sCode": "0", "sMsg": ""}]
        yield {"id": message["id"], "op": op, "code": "0", "msg": "", "data": data}


_OKX_ORDER = {
    "instType": "SPOT",
    "instId": "BTC-USDT",
    "ordId": "811",
    "clOrdId": "",
    "side": "buy",
    "px": "64000",
    "sz": "0.001",
    "ordType": "limit",
    "accFillSz": "0.001",
    "avgPx": "64000",
    "state": "filled",
    "fee": "-0.01",
    "feeCcy": "USDT",
    "cTime": "1790000000000",
    "uTime": "1790000000001",
}


def _binance(stream: _Stream, message: Any) -> Iterator[Any]:
    method, params = message["method"], dict(message.get("params", {}))
    if method == "userDataStream.unsubscribe":
        yield {"id": message["id"], "status": 200, "result": {}}
        return
    given = params.pop("signature")
    texts = {name: str(one).lower() if isinstance(one, bool) else str(one) for name, one in params.items()}
    text = "&".join(f"{name}={texts[name]}" for name in sorted(texts))
    right = hmac.new(stream.fake.secret.encode(), text.encode(), hashlib.sha256).hexdigest()
    stream.check(
        is_right=(params["apiKey"], given) == (stream.fake.api_key, right)
        and abs(params["timestamp"] - now_ms()) < _WINDOW_MS,
        why=f"request {message}",
    )
    if method == "userDataStream.subscribe.signature":
        yield {"id": message["id"], "status": 200, "result": {"subscriptionId": 0}}
        yield {"subscriptionId": 0, "event": _BINANCE_ORDER}
    elif method == "order.place":
        stream.fake.orders.append(params)
        placed = {"symbol": "BTCUSDT", "orderId": 812, "orderListId": -1, "clientOrderId": "x"}
        yield {"id": message["id"], "status": 200, "result": {**placed, "transactTime": now_ms()}}


_BINANCE_ORDER = {
    "e": "executionReport",
    "E": 1790000000001,
    "s": "BTCUSDT",
    "c": "x",
    "S": "BUY",
    "o": "LIMIT",
    "f": "GTC",
    "q": "0.001",
    "p": "64000",
    "P": "0",
    "F": "0",
    "g": -1,
    "C": "",
    "x": "TRADE",
    "X": "FILLED",
    "r": "NONE",
    "i": 811,
    "l": "0.001",
    "z": "0.001",
    "L": "64000",
    "n": "0",
    "N": None,
    "T": 1790000000001,
    "t": 5,
    "w": False,
    "m": False,
    "O": 1790000000000,
    "Z": "64",
    "Y": "64",
}


def _kucoin(stream: _Stream, message: Any) -> Iterator[Any]:
    if message["type"] == "subscribe":
        stream.check(is_right=message["privateChannel"], why="a public subscription")
        yield {"id": message["id"], "type": "ack"}
        yield {
            "type": "message",
            "topic": message["topic"],
            "subject": "orderChange",
            "channelType": "private",
            "data": _KUCOIN_ORDER,
        }


_KUCOIN_ORDER = {
    "symbol": "BTC-USDT",
    "orderType": "limit",
    "side": "buy",
    "orderId": "811",
    "type": "filled",
    "orderTime": 1790000000000,
    "size": "0.001",
    "filledSize": "0.001",
    "price": "64000",
    "clientOid": "",
    "remainSize": "0",
    "status": "done",
    "ts": 1790000000001000000,
}
