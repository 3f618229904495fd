"""How ccxt.pro logs in on the streams of each venue, row by row.

A new row is an entry of `LOGINS`: `call` makes ccxt.pro send what is signed, `sends` messages in all, and
`clock` is where the time stands in them. Its name is that of the venue's file, then :KIND for a further kind
of key, and a word where the venue has several.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Exchange = Any  # one of ccxt.pro's, which has no types


@dataclass(frozen=True)
class Login:
    """One way in. Pointers lead into `Arrived.tree`: /path, /query/NAME, /headers/name, /messages/0/args/1.

    They also lead into JSON that is a text, bare or in base64, and into the `header` and `claims` of a JWT.
    """

    exchange: str  # the class of ccxt.pro
    call: Callable[[Exchange], Any]
    clock: tuple[str, ...] = ()  # where the time of each signature is, or its nonce
    unit: str = "ms"  # or s, iso
    ahead_s: int = 0  # by so much ccxt writes it later than its clock is
    uuid: str = ""  # where a text is that is drawn for each signature
    sends: int = 1  # messages
    greeting: str = ""  # what the exchange says first
    replies: tuple[str, ...] = ()  # to each message in turn; "$/id" is what stands in the message there
    rest: Mapping[str, Any] = field(default_factory=dict)  # what is answered to REST before, by path
    own: tuple[str, ...] = ()  # what a bot makes of its own clock, and the gateway leaves
    own_in: str = ""  # how the first of these stands in what is signed
    drops: tuple[str, ...] = ()  # what the gateway takes out
    leaves_out: tuple[str, ...] = ()  # headers of ccxt's that are no part of the login
    proof: str = "header"  # how the bot proves itself to the gateway: or address, listen
    kind: str = "hmac"
    secret: str = (
        "raw"  # or base64, where ccxt decodes it; of private keys a name of FORMS in private_keys.py
    )
    api_key: str = ""  # how keys begin
    options: Mapping[str, Any] = field(default_factory=dict)  # ccxt's
    before_gateway: Mapping[str, Any] = field(default_factory=dict)  # ccxt's, for the sake of the gateway

    def moved(self, exchange: str) -> "Login":
        """Return the same for another class of ccxt.pro that inherits it."""
        return replace(self, exchange=exchange)

    def index_of(self, pointer: str) -> int:
        """Return the number of the message to which a pointer leads, 0 for the handshake."""
        _, part, place, *_ = f"{pointer}/".split("/")
        return int(place) if part == "messages" else 0


SPOT, LINEAR, INVERSE = "BTC/USDT", "BTC/USDT:USDT", "BTC/USD:BTC"


def _market(name: str, symbol: str) -> Mapping[str, Any]:
    """Return what ccxt knows of a market that it has loaded."""
    pair, _, settle = symbol.partition(":")
    base, quote = pair.split("/")
    market: dict[str, Any] = {
        "id": name,
        "lowercaseId": name.lower(),
        "symbol": symbol,
        "active": True,
        "type": "spot",
        "spot": True,
        "base": base,
        "baseId": base,
        "quote": quote,
        "quoteId": quote,
        "info": {"orderTypes": ["LIMIT"]},
        "precision": {"amount": 0.0001, "price": 0.01},
    }
    if settle:
        market |= {"type": "swap", "spot": False, "swap": True, "contract": True, "contractSize": 1}
        market |= {"settle": settle, "settleId": settle}
        market |= {"linear": settle == quote, "inverse": settle == base}
    return market


MARKETS = (_market("BTCUSDT", SPOT), _market("BTC-USDT", LINEAR), _market("BTC-USD", INVERSE))


def orders(exchange: Exchange) -> Any:
    return exchange.watch_orders()


def orders_of(symbol: str, **params: Any) -> Callable[[Exchange], Any]:
    return lambda exchange: exchange.watch_orders(symbol, params=params)


def balance(exchange: Exchange) -> Any:
    return exchange.watch_balance()


def place(symbol: str, **params: Any) -> Callable[[Exchange], Any]:
    return lambda exchange: exchange.create_order_ws(symbol, "limit", "buy", 3, 65000.5, params)


_BYBIT = Login(
    "bybit",
    orders,
    clock=("/messages/0/args/1",),
    ahead_s=10,
    sends=2,
    replies=('{"op":"auth","success":true,"conn_id":"c1"}',),
    options={"unifiedMarginStatus": 6, "enableUnifiedMargin": True, "enableUnifiedAccount": True},
)
_BYBIT_TRADE = replace(
    _BYBIT,
    call=place(SPOT),
    own=("/messages/1/header/X-BAPI-TIMESTAMP",),
    replies=('{"op":"auth","retCode":0,"retMsg":"OK","connId":"c1"}',),
)
_OKX = Login(
    "okx",
    orders,
    clock=("/messages/0/args/0/timestamp",),
    unit="s",
    sends=2,
    replies=('{"event":"login","code":"0","msg":"","connId":"a4d3"}',),
)
_BITGET = replace(
    _OKX,
    exchange="bitget",
    replies=('{"event":"login","code":0}',),
    drops=("/messages/0/url",),
    proof="address",
)
_HITBTC = Login(
    "hitbtc",
    orders,
    clock=("/messages/0/params/timestamp",),
    sends=2,
    replies=('{"jsonrpc":"2.0","result":true}',),
    own=("/messages/1/id",),
)
_BINANCE = Login("binance", balance, clock=("/messages/0/params/timestamp",))
_BINANCE_ORDER = replace(_BINANCE, call=place(SPOT))
_BINANCE_KINDS: Mapping[str, Mapping[str, Any]] = {
    "": {},
    ":ed25519": {"kind": "ed25519", "secret": "pem"},
    ":rsa": {"kind": "rsa", "secret": "pem"},
}


def cancel(symbol: str) -> Callable[[Exchange], Any]:
    return lambda exchange: exchange.cancel_order_ws("1234", symbol)


def edit(symbol: str) -> Callable[[Exchange], Any]:
    return lambda exchange: exchange.edit_order_ws("1234", symbol, "limit", "buy", 3, 65000.5)


def fetch_balance(exchange: Exchange) -> Any:
    return exchange.fetch_balance_ws()


def place_in_the_us(exchange: Exchange) -> Any:
    """Place an order at the host of the US, which ccxt does not know for orders over a stream."""
    urls = exchange.urls["api"]["ws"]["ws-api"]
    urls["spot"] = urls["spot"].replace("binance.com", "binance.us")
    return place(SPOT)(exchange)


_GATE = Login("gate", orders, clock=("/messages/0/time",), unit="s")
_GATE_REQUEST = replace(
    _GATE,
    call=place(SPOT),
    clock=("/messages/0/time", "/messages/1/time"),
    sends=2,
    replies=('{"request_id":"$/payload/req_id","header":{"status":"200","channel":"spot.login"},"data":{}}',),
)
_POLONIEX = Login(
    "poloniex",
    orders,
    clock=("/messages/0/params/signTimestamp",),
    sends=2,
    replies=('{"channel":"auth","data":{"success":true,"ts":1}}',),
)
_HTX = Login(
    "htx",
    orders_of(SPOT),
    clock=("/messages/0/params/timestamp",),
    unit="iso",
    sends=2,
    replies=('{"action":"req","code":200,"ch":"auth","data":{}}',),
)
_HTX_SWAP = replace(
    _HTX,
    call=orders_of(LINEAR),
    clock=("/messages/0/Timestamp",),
    replies=('{"op":"auth","type":"api","err-code":0,"ts":1}',),
)
_ORDERLY = Login(
    "woofipro",
    orders,
    clock=("/messages/0/params/timestamp",),
    sends=2,
    replies=('{"event":"auth","success":true,"ts":1}',),
    kind="ed25519",
    secret="seed58",
    api_key="ed25519:",
)
_WOO = replace(_ORDERLY, exchange="woo", kind="hmac", secret="raw", api_key="")
_WEEX = Login("weex", orders, clock=("/headers/access-timestamp",), proof="address")

LOGINS: dict[str, Login] = {
    "apex": Login(
        "apex",
        orders,
        clock=("/messages/0/args/0/timestamp",),
        own=("/query/timestamp",),
    ),
    "backpack": Login(
        "backpack", orders, clock=("/messages/0/signature/2",), kind="ed25519", secret="seed64"
    ),
    "bequant": _HITBTC.moved("bequant"),
    **{f"binance{kind}": replace(_BINANCE, **changes) for kind, changes in _BINANCE_KINDS.items()},
    **{
        f"binance{kind} order": replace(_BINANCE_ORDER, **changes) for kind, changes in _BINANCE_KINDS.items()
    },
    "binance cancel": replace(_BINANCE, call=cancel(SPOT)),
    "binancecoinm balance": replace(_BINANCE, exchange="binancecoinm", call=fetch_balance),
    "binancecoinm cancel": replace(_BINANCE, exchange="binancecoinm", call=cancel(INVERSE)),
    "binancecoinm edit": replace(_BINANCE, exchange="binancecoinm", call=edit(INVERSE)),
    "binanceusdm edit": replace(_BINANCE, exchange="binanceusdm", call=edit(LINEAR)),
    **{
        f"{name}{kind} order": replace(_BINANCE_ORDER, exchange=name, call=call, **changes)
        for name, call in (
            ("binancecoinm", place(INVERSE)),
            ("binanceus", place_in_the_us),
            ("binanceusdm", place(LINEAR)),
        )
        for kind, changes in _BINANCE_KINDS.items()
    },
    "bitfinex": Login("bitfinex", orders, clock=("/messages/0/authNonce",)),
    "bitget": _BITGET,
    "bitget v3": replace(_BITGET, call=lambda exchange: exchange.watch_orders(params={"uta": True})),
    "bithumb": Login(
        "bithumb",
        orders,
        clock=("/headers/authorization/claims/timestamp",),
        uuid="/headers/authorization/claims/nonce",
        before_gateway={"ws": {"token": "the gateway makes it"}},
    ),
    "bitopro": Login(
        "bitopro",
        balance,
        clock=("/headers/x-bitopro-payload/nonce",),
        sends=0,
        leaves_out=("x-bitopro-api",),
        proof="address",
    ),
    "bitvavo": Login(
        "bitvavo",
        orders_of(SPOT),
        clock=("/messages/0/timestamp",),
        sends=2,
        replies=('{"event":"authenticate","authenticated":true}',),
    ),
    "blofin": Login(
        "blofin",
        orders,
        clock=("/messages/0/args/0/timestamp",),
        sends=2,
        replies=('{"event":"login","code":"0","msg":""}',),
        own=("/messages/0/args/0/nonce",),
        own_in="{}",
    ),
    "bybit": _BYBIT,
    "bybit order": _BYBIT_TRADE,
    "bybit cancel": replace(_BYBIT_TRADE, call=cancel(SPOT)),
    "bybit edit": replace(_BYBIT_TRADE, call=edit(LINEAR)),
    "bybiteu": _BYBIT.moved("bybiteu"),
    "bybiteu order": _BYBIT_TRADE.moved("bybiteu"),
    "bybitid": _BYBIT.moved("bybitid"),
    "bybitid order": _BYBIT_TRADE.moved("bybitid"),
    "bydfi": Login("bydfi", orders, clock=("/messages/0/params/timestamp",), proof="listen"),
    "cex": Login(
        "cex",
        balance,
        clock=("/messages/0/auth/timestamp",),
        unit="s",
        sends=2,
        greeting='{"e":"connected"}',
        replies=('{"e":"auth","data":{"ok":"ok"},"ok":"ok","timestamp":1448034593}',),
    ),
    "coinbase": Login("coinbase", orders, clock=("/messages/0/timestamp",), unit="s"),
    "coinbase:es256": Login(
        "coinbase",
        orders,
        clock=("/messages/0/jwt/claims/nbf",),
        unit="s",
        uuid="/messages/0/jwt/header/nonce",
        kind="es256",
        secret="old-pem",
        api_key="organizations/",
    ),
    "coinbaseexchange": Login(
        "coinbaseexchange", orders_of(SPOT), clock=("/messages/0/timestamp",), unit="s", secret="base64"
    ),
    "cryptocom": Login(
        "cryptocom",
        orders,
        clock=("/messages/0/nonce",),
        sends=2,
        replies=('{"id":1,"method":"public/auth","code":0}',),
        own=("/messages/0/id", "/messages/1/nonce"),
        own_in="public/auth{}",
    ),
    "deribit": Login(
        "deribit",
        orders,
        clock=("/messages/0/params/timestamp",),
        sends=2,
        replies=('{"jsonrpc":"2.0","id":"$/id","result":{"access_token":"t","token_type":"bearer"}}',),
        own=("/messages/0/params/nonce",),
        own_in="\n{}\n",
    ),
    "gate": _GATE,
    "gate futures": replace(_GATE, call=orders_of(LINEAR)),
    "gate order": _GATE_REQUEST,
    "gate futures order": replace(_GATE_REQUEST, call=place(LINEAR)),
    "gate cancel": replace(_GATE_REQUEST, call=cancel(SPOT)),
    "gate edit": replace(_GATE_REQUEST, call=edit(SPOT)),
    "gateeu": _GATE.moved("gateeu"),
    "gateeu order": _GATE_REQUEST.moved("gateeu"),
    "gemini": Login("gemini", orders, clock=("/headers/x-gemini-payload/nonce",), sends=0, proof="address"),
    "hitbtc": _HITBTC,
    "hitbtc order": replace(_HITBTC, call=place(SPOT), own=("/messages/1/id",)),
    "hitbtc cancel": replace(_HITBTC, call=cancel(SPOT)),
    "hollaex": Login("hollaex", orders, clock=("/query/api-expires",), unit="s", ahead_s=10),
    "htx": _HTX,
    "htx-swap": _HTX_SWAP,
    "htx-swap inverse": replace(_HTX_SWAP, call=orders_of(INVERSE)),
    "krakenfutures": Login(
        "krakenfutures",
        orders,
        sends=2,
        secret="base64",
        replies=('{"event":"challenge","message":"226aee50-88fc-4618-a42a-34f7709570b2"}',),
    ),
    "mexc-contract": Login("mexc", orders_of(LINEAR), clock=("/messages/0/param/reqTime",)),
    "modetrade": replace(_ORDERLY, exchange="modetrade", secret="orderly"),
    "myokx": _OKX.moved("myokx"),
    "okx": _OKX,
    "okx order": replace(_OKX, call=place(SPOT), own=("/messages/1/id",)),
    "okx single order": replace(_OKX, call=place(SPOT, op="order"), own=("/messages/1/id",)),
    "okx edit": replace(_OKX, call=edit(SPOT), own=("/messages/1/id",)),
    "okx cancel": replace(_OKX, call=cancel(SPOT), own=("/messages/1/id",)),
    "okx business": replace(_OKX, call=lambda exchange: exchange.watch_orders(params={"stop": True})),
    "okxus": _OKX.moved("okxus"),
    "phemex": Login(
        "phemex",
        balance,
        clock=("/messages/0/params/3",),
        unit="s",
        ahead_s=120,
        sends=2,
        replies=('{"error":null,"id":"$/id","result":{"status":"success"}}',),
        own=("/messages/1/id",),
    ),
    "poloniex": _POLONIEX,
    "poloniex order": replace(_POLONIEX, call=place(SPOT), own=("/messages/1/id",)),
    "poloniex cancel": replace(_POLONIEX, call=cancel(SPOT), own=("/messages/1/id",)),
    "upbit": Login(
        "upbit",
        orders,
        uuid="/headers/authorization/claims/nonce",
        own=("/messages/0/0/ticket",),
        before_gateway={"ws": {"token": "the gateway makes it"}},
    ),
    "weex": _WEEX,
    "weex-contract": replace(_WEEX, call=orders_of(LINEAR)),
    "woo": _WOO,
    "woo-v1": _WOO,
    "woofipro": _ORDERLY,
}

# What no row holds, and why: a venue and a kind of key, or a venue and what its file calls the message.
UNHELD: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("ascendex:hmac", "bitflyer:hmac", "bitmart:hmac", "bitmex:hmac", "btcmarkets:hmac"),
            *("delta:hmac", "exmo:hmac"),
        ),
        "ccxt.pro has no such exchange: test_streams_by_documents.py has its login",
    ),
    "service:hmac": "its stream is the sandbox's own, which is asked in test_service_stream.py",
    "bybit:rsa": "ccxt.pro signs streams of bybit with HMAC alone, whatever the key",
    **dict.fromkeys(
        ("btcturk:hmac", "btse:hmac", "coincheck:hmac", "digifinex:hmac", "ndax:hmac"),
        "ccxt.pro has no private stream of it: test_streams_by_documents.py has its login",
    ),
    **dict.fromkeys(
        (
            f"{name} ws-api userDataStream.{call}"
            for name in ("binance", "binancecoinm", "binanceus", "binanceusdm")
            for call in ("start", "stop")
        ),
        "ccxt.pro sends no such request, into which the key is put alone",
    ),
    "fmfwio:hmac": "ccxt.pro has no such exchange; its file is that of hitbtc",
    "coinbaseinternational:hmac": "ccxt.pro sends the secret itself, or a token of another kind of key",
    "coinbase:ed25519": "ccxt.pro signs streams of coinbase with ES256 and HMAC keys alone",
}
