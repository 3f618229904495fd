"""Logins that are made of a venue's file alone; what an exchange wants, by documents or ccxt, stands here."""

import json
from typing import Any

import pytest

from sealgate.venues.json_edit import text_at
from sealgate.venues.key_kinds import Kind, Signer
from sealgate.venues.sealer import KeyTexts
from sealgate.venues.stream_logins import LoginPlan, find_login, first_message, has_login
from sealgate.venues.stream_sealer import Moment, StreamSealer
from sealgate.venues.templates import names_in
from sealgate.venues.venue import Venue
from venues.through import FILES, named, venue_of

MOMENT = Moment(1_790_000_000_123, b"77", "C")
MS, S, ISO = 1_790_000_000_123, 1_790_000_000, "2026-09-21T14:13:20"
OKX = {"op": "login", "args": [{"apiKey": "K", "passphrase": "P", "timestamp": str(S), "sign": "SIG"}]}
HITBTC = {
    "method": "login",
    "params": {"type": "HS256", "api_key": "K", "timestamp": MS, "signature": "SIG"},
}
BINANCE = {
    "id": 1,
    "method": "account.status",
    "params": {"apiKey": "K", "timestamp": MS, "signature": "SIG"},
}
WOO = {"event": "auth", "params": {"apikey": "K", "timestamp": str(MS), "sign": "SIG"}}
ORDERLY = {"event": "auth", "params": {"orderly_key": "ed25519:K", "timestamp": str(MS), "sign": "SIG"}}
BYBIT = {"op": "auth", "args": ["K", str(MS + 10_000), "SIG"]}
GATE = {
    "time": S,
    "channel": "spot.login",
    "event": "api",
    "payload": {"req_id": "u", "timestamp": str(S), "api_key": "K", "signature": "SIG"},
}
DERIBIT = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "public/auth",
    "params": {
        "grant_type": "client_signature",
        "scope": "connection",
        "client_id": "K",
        "timestamp": MS,
        "signature": "SIG",
        "nonce": "u",
        "data": "",
    },
}
HTX = {"signatureMethod": "HmacSHA256", "signatureVersion": "2.1", "timestamp": ISO, "signature": "SIG"}
HTX_SWAP = {"SignatureMethod": "HmacSHA256", "SignatureVersion": "2", "Timestamp": ISO, "Signature": "SIG"}
APEX = (
    '{"type":"login","topics":["ws_zk_accounts_v3"],"httpMethod":"GET","requestPath":"/ws/accounts",'
    '"apiKey":"K","passphrase":"P",'
    f'"timestamp":"{MS}","signature":"SIG"}}'
)
COINBASE = {"type": "subscribe", "channel": "user"}
BACKPACK = {"method": "SUBSCRIBE", "params": ["account.orderUpdate"]}
EXPECTED: dict[str, tuple[str, Any]] = {
    "apex": (
        "quote.omni.apex.exchange/realtime_private",
        {
            "op": "login",
            "args": [APEX],
        },
    ),
    "ascendex": (
        "ascendex.com/api/pro/v2/stream",
        {"op": "auth", "t": MS, "key": "K", "sig": "SIG"},
    ),
    "backpack:ed25519": (
        "ws.backpack.exchange/",
        {**BACKPACK, "signature": ["K", "SIG", str(MS), "5000"]},
    ),
    "bequant": ("api.bequant.io/api/3/ws/trading", HITBTC),
    "binance": ("ws-api.binance.com/ws-api/v3", BINANCE),
    "binance:ed25519": ("ws-api.binance.com/ws-api/v3", BINANCE | {"method": "session.logon"}),
    "binance:rsa": ("ws-api.binance.com/ws-api/v3", BINANCE),
    "binancecoinm": ("ws-dapi.binance.com/ws-dapi/v1", BINANCE),
    "binanceus": ("ws-api.binance.us/ws-api/v3", BINANCE),
    "binanceusdm": ("ws-fapi.binance.com/ws-fapi/v1", BINANCE),
    "bitfinex": (
        "api.bitfinex.com/ws/2",
        {"event": "auth", "apiKey": "K", "authNonce": 77, "authPayload": "AUTH77", "authSig": "SIG"},
    ),
    "bitflyer": (
        "ws.lightstream.bitflyer.com/json-rpc",
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "auth",
            "params": {"api_key": "K", "timestamp": MS, "nonce": "u", "signature": "SIG"},
        },
    ),
    "bitget": ("ws.bitget.com/v2/ws/private", OKX),
    "bithumb": ("ws-api.bithumb.com/websocket/v2/private", None),
    "bitmart": ("ws-manager-compress.bitmart.com/user", {"op": "login", "args": ["K", str(MS), "SIG"]}),
    "bitmart-futures": (
        "openapi-ws-v2.bitmart.com/user",
        {"action": "access", "args": ["K", str(MS), "SIG", "web"]},
    ),
    "bitmex": ("www.bitmex.com/realtime", None),
    "bitopro": ("stream.bitopro.com/ws/v1/pub/auth/account-balance", None),
    "bitvavo": (
        "ws.bitvavo.com/v2",
        {"action": "authenticate", "key": "K", "timestamp": MS, "signature": "SIG"},
    ),
    "blofin": (
        "openapi.blofin.com/ws/private",
        {
            "op": "login",
            "args": [{"apiKey": "K", "passphrase": "P", "timestamp": str(MS), "nonce": "u", "sign": "SIG"}],
        },
    ),
    "btcmarkets": (
        "socket.btcmarkets.net/v2",
        {
            "messageType": "subscribe",
            "channels": ["orderChange", "heartbeat"],
            "key": "K",
            "timestamp": str(MS),
            "signature": "SIG",
        },
    ),
    "btcturk": (
        "ws-feed-pro.btcturk.com/",
        [114, {"type": 114, "publicKey": "K", "timestamp": MS, "nonce": 3000, "signature": "SIG"}],
    ),
    "btse": ("ws.btse.com/ws/spot", {"op": "authKeyExpires", "args": ["K", str(MS), "SIG"]}),
    "bybit": ("stream.bybit.com/v5/private", BYBIT),
    "bybit:rsa": ("stream.bybit.com/v5/private", BYBIT),
    "bybiteu": ("stream.bybit.eu/v5/private", BYBIT),
    "bybitid": ("stream.bybit.id/v5/private", BYBIT),
    "bydfi": (
        "stream.bydfi.com/v1/public/fapi",
        {"id": 1, "method": "LOGIN", "params": {"apiKey": "K", "timestamp": str(MS), "sign": "SIG"}},
    ),
    "cex": (
        "ws.cex.io/ws",
        {"e": "auth", "auth": {"key": "K", "timestamp": str(S), "signature": "SIG"}},
    ),
    "coinbase": (
        "advanced-trade-ws.coinbase.com/",
        {**COINBASE, "api_key": "K", "timestamp": str(S), "signature": "SIG"},
    ),
    "coinbase:es256": ("advanced-trade-ws.coinbase.com/", {**COINBASE, "jwt": "SIG"}),
    "coinbase:ed25519": ("advanced-trade-ws.coinbase.com/", {**COINBASE, "jwt": "SIG"}),
    "coinbaseexchange": (
        "ws-direct.exchange.coinbase.com/",
        {
            "type": "subscribe",
            "channels": ["user"],
            "product_ids": ["BTC-USD"],
            "key": "K",
            "passphrase": "P",
            "timestamp": str(S),
            "signature": "SIG",
        },
    ),
    "coinbaseinternational": ("www.deribit.com/ws/api/v2", DERIBIT),
    "coincheck": (
        "stream.coincheck.com/",
        {"type": "login", "access_key": "K", "access_nonce": "77", "access_signature": "SIG"},
    ),
    "cryptocom": (
        "stream.crypto.com/exchange/v1/user",
        {"id": 1, "method": "public/auth", "api_key": "K", "nonce": str(MS), "sig": "SIG"},
    ),
    "delta": (
        "socket.delta.exchange/",
        {"type": "auth", "payload": {"api-key": "K", "timestamp": str(S), "signature": "SIG"}},
    ),
    "deribit": ("www.deribit.com/ws/api/v2", DERIBIT),
    "digifinex": (
        "openapi.digifinex.com/ws/v1/",
        {"id": 1, "method": "server.auth", "params": ["K", str(MS), "SIG"]},
    ),
    "exmo": (
        "ws-api.exmo.com/v1/private",
        {"id": 1, "method": "login", "api_key": "K", "nonce": 77, "sign": "SIG"},
    ),
    "fmfwio": ("api.fmfw.io/api/3/ws/trading", HITBTC),
    "gate": ("api.gateio.ws/ws/v4/", GATE),
    "gateeu": ("api.gateeu.com/ws/v4/", GATE),
    "gemini": ("api.gemini.com/v1/order/events", None),
    "hitbtc": ("api.hitbtc.com/api/3/ws/trading", HITBTC),
    "hollaex": ("api.hollaex.com/stream", None),
    "htx": (
        "api.huobi.pro/ws/v2",
        {"action": "req", "ch": "auth", "params": {"authType": "api", "accessKey": "K", **HTX}},
    ),
    "htx-swap": (
        "api.hbdm.vn/linear-swap-notification",
        {"op": "auth", "type": "api", "AccessKeyId": "K", **HTX_SWAP},
    ),
    "krakenfutures": (
        "futures.kraken.com/ws/v1",
        {
            "event": "subscribe",
            "feed": "open_positions",
            "api_key": "K",
            "original_challenge": "C",
            "signed_challenge": "SIG",
        },
    ),
    "mexc-contract": (
        "contract.mexc.com/edge",
        {"method": "login", "param": {"apiKey": "K", "reqTime": str(MS), "signature": "SIG"}},
    ),
    "modetrade:ed25519": ("ws-private-evm.orderly.org", ORDERLY),
    "myokx": ("wseea.okx.com/ws/v5/private", OKX),
    "ndax": (
        "api.ndax.io/WSGateway",
        {
            "m": 0,
            "i": 0,
            "n": "AuthenticateUser",
            "o": '{"APIKey":"K","UserId":"U","Nonce":"77","Signature":"SIG"}',
        },
    ),
    "okx": ("ws.okx.com/ws/v5/private", OKX),
    "okxus": ("wsus.okx.com/ws/v5/private", OKX),
    "phemex": ("ws.phemex.com/", {"id": 1, "method": "user.auth", "params": ["API", "K", "SIG", S + 120]}),
    "poloniex": (
        "ws.poloniex.com/ws/private",
        {
            "event": "subscribe",
            "channel": ["auth"],
            "params": {
                "key": "K",
                "signTimestamp": str(MS),
                "signatureMethod": "HmacSHA256",
                "signatureVersion": "2",
                "signature": "SIG",
            },
        },
    ),
    "service": (
        "stream.example.com/v1/stream",
        {"op": "login", "args": {"api_key": "K", "timestamp": str(MS), "signature": "SIG"}},
    ),
    "upbit": ("api.upbit.com/websocket/v1/private", None),
    "weex": ("ws-spot.weex.com/v3/ws/private", None),
    "weex-contract": ("ws-contract.weex.com/v3/ws/private", None),
    "woo": ("wss.woox.io", WOO),
    "woo-v1": ("wss.woox.io", WOO),
    "woofipro:ed25519": ("ws-private-evm.orderly.org", ORDERLY),
}


def login_of(venue: Venue, kind: Kind) -> LoginPlan:
    plan = find_login(venue, "", kind)
    assert isinstance(plan, LoginPlan), plan
    return plan


def sent_by(venue: Venue, plan: LoginPlan, kind: Kind) -> Any:
    """Return the message of a plan as it is sent, with SIG for the signature; None where there is none."""
    signer = Signer(kind, lambda _: b"\x05" * 32, b"")
    sealer = StreamSealer(
        venue.sealer(KeyTexts("K", "P", "U"), signer, "https://x.example"), plan.host, plan.path
    )
    rule = plan.rule
    if rule is None:
        assert plan.stream.handshake is not None
        made = sealer.handshake(plan.stream.handshake, MOMENT)
        assert all({**made.headers, **made.query}.values())
        return None
    text = first_message(rule, "u")
    assert plan.stream.find(plan.stream.clear(text), kind)[0] is rule
    assert rule.signing is not None
    sent = sealer.sign(text, rule.signing, rule.drops, MOMENT)
    late = [place for place, put in rule.signing.puts if names_in(put.text) & rule.signing.late]
    for place in late:
        value = text_at(sent, place)
        assert value
        if not value.startswith("["):  # a list that has the signature among other things
            sent = sent.replace(value, "SIG")
    return json.loads(sent)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_login_has_what_the_exchange_wants(name: str) -> None:
    venue, kind = named(name.partition(":")[0]), Kind(name.partition(":")[2] or "hmac")
    address, message = EXPECTED[name]
    plan = login_of(venue, kind)
    assert f"{plan.host}{plan.path}" == address
    sent = sent_by(venue, plan, kind)
    if name.startswith("backpack"):
        assert sent["signature"][1]
        sent["signature"][1] = "SIG"
    assert sent == message


def test_each_venue_with_a_login_has_one_for_each_kind_of_key() -> None:
    for venue in map(venue_of, FILES):
        for kind in venue.schemes if any(map(has_login, venue.streams)) else ():
            assert sent_by(venue, login_of(venue, kind), kind) or not login_of(venue, kind).rule
            assert {venue.name, f"{venue.name}:{kind}"} & EXPECTED.keys(), venue.name
