"""More exchanges for `fake_venues`: Coinbase, Gate and Bitget, with one symbol each."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from rig.fake_streams import now_ms

if TYPE_CHECKING:
    from aiohttp import web

    from rig.fake_venues import Fake

_WINDOW_S = 60
_GATE_SYMBOL = {
    "id": "BTC_USDT",
    "base": "BTC",
    "quote": "USDT",
    "fee": "0.2",
    "amount_precision": 6,
    "precision": 1,
    "trade_status": "tradable",
    "min_base_amount": "0.00001",
}
_BITGET_SYMBOL = {
    "symbol": "BTCUSDT",
    "baseCoin": "BTC",
    "quoteCoin": "USDT",
    "minTradeAmount": "0",
    "takerFeeRate": "0.001",
    "makerFeeRate": "0.001",
    "pricePrecision": "2",
    "quantityPrecision": "6",
    "quotePrecision": "8",
    "status": "online",
}
_COINBASE_PRODUCT = {
    "product_id": "BTC-USD",
    "price": "66000",
    "base_increment": "0.00000001",
    "quote_increment": "0.01",
    "price_increment": "0.01",
    "base_min_size": "0.00000001",
    "base_max_size": "3400",
    "quote_min_size": "1",
    "quote_max_size": "150000000",
    "status": "online",
    "product_type": "SPOT",
    "base_currency_id": "BTC",
    "quote_currency_id": "USD",
}


def gate(fake: Fake, request: web.BaseRequest, body: str) -> Any:
    """Answer as Gate does (API v4)."""
    path, head = request.path.removeprefix("/api/v4"), request.headers
    if "KEY" in head:
        query = request.raw_path.partition("?")[2]
        digest = hashlib.sha512(body.encode()).hexdigest()
        message = f"{request.method}\n{request.path}\n{query}\n{digest}\n{head['Timestamp']}"
        right = hmac.new(fake.secret.encode(), message.encode(), "sha512").hexdigest()
        if (head["KEY"], head["SIGN"]) != (fake.api_key, right):
            fake.refused.append(message)
            return {"label": "INVALID_SIGNATURE", "message": "Signature mismatch"}
    answers: dict[str, Any] = {
        "/spot/time": {"server_time": now_ms()},
        "/spot/currency_pairs": [_GATE_SYMBOL],
        "/spot/accounts": [{"currency": "USDT", "available": "1000.0", "locked": "0"}],
    }
    if (request.method, path) == ("POST", "/spot/orders"):
        fake.orders.append(json.loads(body))
        return {"id": "812", "status": "open", **json.loads(body)}
    return answers.get(path, [])


def bitget(fake: Fake, request: web.BaseRequest, body: str) -> Any:
    """Answer as Bitget does (API v2)."""
    path, head = request.path.removeprefix("/api/v2"), request.headers
    if "ACCESS-KEY" in head:
        message = f"{head['ACCESS-TIMESTAMP']}{request.method}{request.raw_path}{body}"
        digest = hmac.digest(fake.secret.encode(), message.encode(), "sha256")
        if (head["ACCESS-KEY"], head["ACCESS-SIGN"]) != (fake.api_key, base64.b64encode(digest).decode()):
            fake.refused.append(message)
            return {"code": "40009", "msg": "sign signature error", "data": None}
    money = {"coin": "USDT", "available": "1000.0", "frozen": "0", "locked": "0"}
    answers: dict[str, Any] = {
        "/public/time": {"serverTime": str(now_ms())},
        "/spot/public/symbols": [_BITGET_SYMBOL],
        "/spot/account/assets": [money],
        "/spot/trade/place-order": {"orderId": "812", "clientOid": ""},
    }
    if path == "/spot/trade/place-order":
        fake.orders.append(json.loads(body))
    if path.startswith("/api/v3/"):  # of unified accounts, and this is none
        return {"code": "40404", "msg": "Request URL NOT FOUND"}
    return {"code": "00000", "msg": "success", "requestTime": 1, "data": answers.get(path, [])}


def coinbase(fake: Fake, request: web.BaseRequest, body: str) -> Any:
    """Answer as Coinbase does (Advanced Trade); the secret is an ECDSA key in PEM."""
    path, head = request.path.removeprefix("/api/v3/brokerage"), request.headers
    if "Authorization" in head:
        token = head["Authorization"].removeprefix("Bearer ")
        if not _is_signed(fake, token, f"{request.method} {head['Host']}{request.path}"):
            fake.refused.append(token)
            return {"error": "unauthorized"}
    account = {
        "uuid": "1",
        "name": "USD",
        "currency": "USD",
        "available_balance": {"value": "1000.0", "currency": "USD"},
        "hold": {"value": "0", "currency": "USD"},
        "type": "ACCOUNT_TYPE_FIAT",
        "active": True,
    }
    answers: dict[str, Any] = {
        "/time": {"epochMillis": str(now_ms())},
        "/market/products": {"products": [_COINBASE_PRODUCT]},
        "/accounts": {"accounts": [account], "has_next": False, "cursor": ""},
        "/v2/accounts": {"data": [{"type": "fiat", "balance": {"amount": "1000.0", "currency": "USD"}}]},
    }
    if (request.method, path) == ("POST", "/orders"):
        fake.orders.append(json.loads(body))
        return {"success": True, "success_response": {"order_id": "812", "product_id": "BTC-USD"}}
    return answers.get(path, {"data": []} if request.path.startswith("/v2/") else {})


def _is_signed(fake: Fake, token: str, uri: str) -> bool:
    """Ask whether a token is the key's, signed now for this request."""
    signed, _, signature = token.rpartition(".")
    head, claims = (json.loads(_decoded(part)) for part in signed.split("."))
    key = load_pem_private_key(fake.secret.encode(), password=None)
    assert isinstance(key, EllipticCurvePrivateKey)
    raw = _decoded(signature)
    numbers = (int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    try:
        key.public_key().verify(encode_dss_signature(*numbers), signed.encode(), ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    is_now = abs(claims["nbf"] - now_ms() / 1000) < _WINDOW_S
    return is_now and (head["kid"], claims["uri"]) == (fake.api_key, uri)


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
