"""What the oracle asks ccxt for, venue by venue."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

# What a bot may ask with: names in no order that a venue could prefer, values that need escapes.
NAMES = ("symbol", "side", "amount", "limit", "ordertype", "zone", "client", "after", "kind")
PLAIN = ("BTCUSDT", "1.50", 7, 0.25, "buy", "a-b_c.d~e", 1000000)
ESCAPED = (*PLAIN, "BTC/USDT", "x y", "a:b,c", "50%", "1+1", "[1]", "größe", 'q"uote')

# A venue's file (and the class of ccxt, where that has another name), its api there, methods and their paths.
# Those behind the gap ccxt has no more: they are signed by 4.5.0, and kept in recorded.json.
_TABLE = """
okx                       private GET account/balance trade/order POST trade/cancel-order trade/order
bitget                    private.spot GET v2/spot/trade/orderInfo POST v2/spot/trade/place-order
weex                      private GET api/v3/order POST api/v3/order DELETE api/v3/order api/v3/order/batch
deepcoin                  private GET deepcoin/account/balances POST deepcoin/trade/order
bybit                     private GET v5/order/realtime POST v5/order/create v5/order/cancel
coinbase                  v3.private GET brokerage/accounts POST brokerage/orders PUT brokerage/portfolios/7
                          v3.private DELETE brokerage/portfolios/7
                          v2.private GET accounts POST accounts DELETE accounts/9
coinbaseexchange          private GET accounts POST conversions DELETE orders orders/5
bitfinex                  private POST auth/r/wallets auth/w/order/submit
bitstamp                  private GET contacts/c7/ travel_rule/contacts/ POST balance/ buy/btcusd/
mexc-contract=mexc        contract.private GET account/assets POST order/submit order/cancel
deribit                   private GET get_positions buy cancel
phemex                    private GET spot/orders POST orders spot/orders PUT orders/replace
                          private DELETE orders/cancel
woo                       v3.private GET trade/orders POST trade/order PUT trade/order DELETE trade/order
woo-v1=woo                v1.private GET client/token POST order DELETE order
bitvavo                   private GET ordersOpen POST order PUT order DELETE order
bitso                     private GET balance POST orders DELETE orders/all PATCH orders/o1
bitrue-futures=bitrue     fapi.v2.private GET openOrders POST order cancel
blofin                    private GET asset/balances POST trade/order
delta                     private GET orders POST orders PUT orders DELETE orders
cex                       private POST do_my_new_order get_my_fee
bitbank                   private GET user/assets user/spot/order POST user/spot/order
coincheck                 private GET accounts accounts/balance POST exchange/orders
                          private DELETE exchange/orders/3
btcmarkets                private GET orders POST orders PUT orders/4 DELETE orders orders/4
bitflyer                  private GET getbalance POST sendchildorder
digifinex-swap=digifinex  private.swap GET account/positions POST trade/order_place
btse                      private GET spot/api/v3.3/order futures/api/v2.3/order
                          private POST spot/api/v3.3/order futures/api/v2.3/order PUT spot/api/v3.3/order
                          private DELETE spot/api/v3.3/order futures/api/v3/order
bydfi                     private GET v1/account/assets POST v1/fapi/trade/place_order
apex                      private GET v3/account v3/fills POST v3/delete-order v3/order
btcturk                   private GET openOrders POST order DELETE order
latoken                   private GET auth/account POST auth/order/place auth/order/cancel
kucoin                    private GET accounts POST hf/orders DELETE hf/orders/9
                          futuresPrivate GET account-overview POST orders DELETE orders/9
gate                      private.spot GET orders POST orders DELETE orders orders/8 PATCH orders/8
                          private.futures GET usdt/accounts POST usdt/orders usdt/positions/x/margin
hitbtc                    private GET spot/balance POST spot/order DELETE spot/order PATCH spot/order/c3
gemini                    private POST v1/order/new v1/balances
krakenfutures             private GET openpositions POST sendorder batchorder PUT leveragepreferences
poloniex                  private GET accounts POST orders PUT orders/2 DELETE orders orders/2
                          swapPrivate GET v3/account/balance POST v3/trade/order DELETE v3/trade/order
xt                        private.spot GET balances POST order withdraw PUT order/7 DELETE open-order
foxbit                    v3.private GET orders POST orders PUT orders/cancel
bitopro                   private GET accounts/balance POST orders/btc PUT orders DELETE orders/all
binance                   private GET openOrders account POST order order/test DELETE order openOrders
                          fapiPrivate GET openOrders POST order PUT order DELETE order
                          dapiPrivate GET openOrders POST order PUT order DELETE order
                          sapi GET margin/account POST asset/transfer
mexc                      spot.private GET openOrders POST order order/test DELETE order PUT userDataStream
bingx                     spot.v1.private GET trade/query POST trade/order trade/cancel
                          swap.v2.private GET user/balance POST trade/order DELETE trade/order
htx                       spot.private GET v1/account/accounts POST v1/order/orders/place
                          v2Private GET account/ledger POST account/transfer
coinsph                   private GET openapi/v1/openOrders POST openapi/v1/order
                          private PUT openapi/v1/userDataStream DELETE openapi/v1/order
kraken                    private POST Balance AddOrder CancelOrder
hashkey                   private GET api/v1/spot/openOrders POST api/v1/spot/order DELETE api/v1/spot/order
toobit                    private GET api/v1/account POST api/v1/spot/order DELETE api/v1/spot/order
bitrue                    spot.v1.private GET openOrders POST order DELETE order
btcbox                    private POST balance trade_add
binanceusdm               fapiPrivate GET openOrders POST order PUT order DELETE order
                          fapiPrivateV2 GET account positionRisk fapiPrivateV3 GET account
binancecoinm              dapiPrivate GET openOrders account POST order PUT order DELETE order
binance-papi=binance      papi GET account um/openOrders POST um/order margin/order PUT um/order cm/order
                          papi DELETE um/order cm/order margin/order
binance-options=binance   eapiPrivate GET account openOrders POST order DELETE order
binanceus                 private GET openOrders account POST order order/test DELETE order openOrders
                          sapi GET asset/query/trading-fee POST otc/quotes
kucoinfutures             futuresPrivate GET account-overview POST orders DELETE orders/9
htx-swap=htx              contract.private GET swap-api/v1/swap_api_trading_status
                          contract.private POST linear-swap-api/v1/swap_order api/v1/contract_order
bybiteu                   private GET v5/order/realtime POST v5/order/create v5/order/cancel
bybitid                   private GET v5/order/realtime POST v5/order/create v5/order/cancel
myokx                     private GET account/balance trade/order POST trade/cancel-order trade/order
okxus                     private GET account/balance trade/order POST trade/cancel-order trade/order
gateeu                    private.spot GET orders POST orders DELETE orders orders/8 PATCH orders/8
fmfwio                    private GET spot/balance POST spot/order DELETE spot/order PATCH spot/order/c3
bequant                   private GET spot/balance POST spot/order DELETE spot/order PATCH spot/order/c3
weex-contract=weex        contractPrivate GET capi/v3/order POST capi/v3/order DELETE capi/v3/order
tokocrypto                private GET open/v1/account/spot open/v1/orders
                          private POST open/v1/orders open/v1/orders/cancel
hollaex                   private GET user/balance orders POST order DELETE order order/all
digifinex                 private.spot GET spot/assets spot/order POST spot/order/new spot/order/cancel
bittrade                  private GET account/accounts order/openOrders POST order/orders/place
                          v2Private GET account/ledger POST account/transfer
paymium                   private GET user user/orders POST user/orders DELETE user/orders/u1
bit2c                     private GET Account/Balance Order/MyOrders POST Order/AddOrder Order/CancelOrder
indodax                   private POST getInfo trade cancelOrder
mercado                   private POST get_account_info place_buy_order cancel_order
ndax                      private GET GetUserAccounts GetOpenOrders POST SendOrder CancelOrder
coinmate                  private POST balances buyLimit cancelOrder
upbit                     private GET accounts orders/open POST orders orders/cancel_and_new
                          private DELETE order orders/uuids
bithumb                   private GET v1/accounts v2/orders/pending POST v2/orders v2/orders/cancel
                          private DELETE v2/order
bithumb-v1=bithumb        private POST info/balance trade/place trade/cancel
bigone                    private GET accounts orders POST orders orders/cancel orders/8/cancel
                          contractPrivate GET accounts POST orders DELETE orders/8
coinbaseinternational     private GET get_positions buy cancel
whitebit                  v4.private POST trade-account/balance order/new order/cancel order/kill-switch
                          v1.private POST account/balance order/new
p2b                       private POST account/balances order/new order/cancel orders
coinspot                  private POST my/balances my/buy v2.private POST my/buy ro/my/balance/x quote/buy/now
zebpay                    private.spot GET v2/ex/orders v2/account/balance POST v2/ex/orders
                          private.spot DELETE v2/ex/order v2/ex/orders/cancelAll
zebpay-swap=zebpay        private.swap GET v1/wallet/balance v1/trade/order POST v1/trade/order
                          private.swap POST v1/trade/addMargin v1/trade/reduceMargin
                          private.swap DELETE v1/trade/order v1/trade/order/all PATCH v1/trade/order
cryptocom                 v1.private POST private/user-balance private/create-order private/cancel-order
                          v1.private POST private/get-order-detail private/create-order-list
independentreserve        private POST GetAccounts GetOpenOrders PlaceLimitOrder CancelOrder
revolutx                  private GET 1.0/balances 1.0/orders/active POST 1.0/orders PUT 1.0/orders/7
                          private DELETE 1.0/orders 1.0/orders/7
woofipro                  v1.private GET client/holding orders POST order client/margin_mode PUT order
                          v1.private DELETE order orders
modetrade                 v1.private GET client/holding orders POST order client/margin_mode PUT order
                          v1.private DELETE order orders
backpack                  private GET api/v1/capital api/v1/order wapi/v1/history/fills
                          private POST api/v1/order api/v1/orders api/v1/borrowLend PATCH api/v1/account
                          private DELETE api/v1/order api/v1/orders
pacifica                  private POST orders/create orders/create_market orders/stop/create orders/cancel
                          private POST orders/cancel_all orders/edit positions/tpsl account/leverage
alpaca                    trader.private GET v2/account v2/orders POST v2/orders PATCH v2/orders/7
                          trader.private DELETE v2/orders v2/orders/7
alpaca-data=alpaca        market.private GET v2/stocks/bars v2/stocks/x/quotes v1beta1/news
                          market.private GET v2/stocks/meta/exchanges v2/stocks/snapshots v2/stocks/trades
bitteam                   private GET trade/api/ccxt/balance trade/api/ccxt/ordersOfUser
                          private POST trade/api/ccxt/ordercreate trade/api/ccxt/cancelorder
luno                      private GET balance listorders POST postorder stoporder DELETE withdrawals/7
                          exchangePrivate GET candles transfers POST move
blockchaincom             private GET accounts orders POST orders DELETE orders orders/7
mudrex                    private GET wallet/funds futures/orders POST futures/x/order wallet/futures/transfer
                          private PATCH futures/orders/7 DELETE futures/orders/7
onetrading                private GET account/balances account/orders POST account/orders
                          private DELETE account/orders account/orders/7
cryptomus                 private GET v2/user-api/exchange/account/balance v2/user-api/exchange/orders
                          private POST v2/user-api/exchange/orders v2/user-api/exchange/orders/market
                          private DELETE v2/user-api/exchange/orders/7
bitbns                    v1 POST currentCoinBalance/BTC placeBuyOrder/BTC cancelOrder/BTC
                          v2 POST orders cancel getordersnew
lbank                     spot.private POST supplement/user_info_account create_order cancel_order
zaif                      private POST get_info2 trade cancel_order
                          tlapi POST get_positions create_position

bitmex                    =private GET order POST order PUT order DELETE order order/all
bitmart                   =private GET spot/v1/wallet POST spot/v2/submit_order
bitmart-futures=bitmart   =private GET contract/private/assets-detail POST contract/private/submit-order
ascendex                  v1.private GET info wallet/transactions
                          v1.private.accountCategory GET balance order/open POST order order/batch
                          v1.private.accountCategory DELETE order order/all
                          v1.private.accountGroup GET cash/balance margin/risk futures/position spot/fee
                          v2.private.accountGroup GET futures/position POST futures/order
                          v2.private.data GET order/hist
coinex                    v2.private GET assets/spot/balance POST spot/order spot/cancel-order
exmo                      =private POST user_info order_create
"""

# A venue of the table, a further kind of key that it takes, and how those are handed out (private_keys.py).
# Of venues that take no HMAC keys, `kind` and `secret` stand in _OTHERWISE.
_FURTHER_KINDS = """
coinbase:es256     old-pem
coinbase:ed25519   pair64
binance:ed25519           pem
binance:rsa               pem
binanceusdm:ed25519       pem
binanceusdm:rsa           old-pem
binancecoinm:ed25519      pem
binancecoinm:rsa          pem
binance-papi:ed25519      pem
binance-papi:rsa          old-pem
binance-options:ed25519   pem
binance-options:rsa       pem
binanceus:ed25519         pem
binanceus:rsa             old-pem
bybit:rsa                 pem
bybiteu:rsa               old-pem
bybitid:rsa               pem
lbank:rsa                 der64
"""


@dataclass(frozen=True)
class Calls:
    """How a class of ccxt is asked: rows of (its api, method, path), parameters drawn from `values`."""

    exchange: str
    rows: tuple[tuple[Any, str, str], ...]
    values: tuple[Any, ...] = ESCAPED
    kind: str = "hmac"
    secret: str = (
        "raw"  # or base64, where ccxt decodes it; of private keys a name of FORMS in private_keys.py
    )
    options: Mapping[str, Any] | None = None
    real_options: Mapping[str, Any] | None = None  # for the real key alone
    api_key: str = "KEY4f0e"
    last: tuple[str, ...] = ()  # parameters that ccxt puts before others; the exchange takes any order
    lists: frozenset[str] = frozenset()  # calls whose parameters are a list of objects
    operations: Mapping[str, str] = field(default_factory=dict)  # by path, where ccxt signs before sign()
    is_token: bool = False  # the secret is what ccxt calls apiKey, and there is no other part


_OTHERWISE: dict[str, dict[str, Any]] = {
    **{name: {"values": PLAIN} for name in ("bybit", "bybiteu", "bybitid", "apex", "hashkey", "coinex")},
    **{
        name: {"secret": "base64"}
        for name in ("coinbaseexchange", "btcmarkets", "btcturk", "krakenfutures", "kraken")
    },
    # In URLs of v2, ccxt leaves out "[1]", which it signs: such a request fails at the exchange, too.
    "coinbase": {"values": tuple(value for value in ESCAPED if value != "[1]")},
    # ccxt signs as a partner of the exchange, too, with the key in it: the file takes that out.
    **{name: {"values": PLAIN, "real_options": {"partner": {}}} for name in ("kucoin", "kucoinfutures")},
    # Lists of orders, which are signed member by member.
    "cryptocom": {"values": (*ESCAPED, ["u", "v"], [{"side": "BUY", "price": "1.5"}, {"b": ["x", "q y"]}])},
    "gemini": {"api_key": "account-KEY4f0e"},
    "bithumb": {"values": (*ESCAPED, ["A1", "b c", "größe"], [{"market": "KRW-BTC", "price": 0.25}])},
    "bigone": {"options": {"exchangeMillisecondsCorrection": 0}},
    "coinbaseinternational": {"options": {"route": "deribit"}},
    "coinbase:es256": {"api_key": "organizations/7e3c5b1e-0000/apiKeys/5d0c2a44-0000"},
    "coinbase:ed25519": {"api_key": "d2efa49a-369c-43d7-a60e-ae26e28853c2"},
    "revolutx": {"kind": "ed25519", "secret": "pem"},
    "woofipro": {"kind": "ed25519", "secret": "seed58"},
    "modetrade": {"kind": "ed25519", "secret": "orderly", "api_key": "ed25519:KEY4f0e"},
    "backpack": {
        "kind": "ed25519",
        "secret": "seed64",
        "values": tuple(value for value in ESCAPED if value != "[1]"),  # as at coinbase
        "lists": frozenset({"POST api/v1/orders"}),
    },
    "pacifica": {
        "kind": "ed25519",
        "secret": "pair58",
        "values": PLAIN,
        "operations": {
            "account/leverage": "update_leverage",
            "orders/cancel": "cancel_order",
            "orders/cancel_all": "cancel_all_orders",
            "orders/create": "create_order",
            "orders/create_market": "create_market_order",
            "orders/edit": "edit_order",
            "orders/stop/create": "create_stop_order",
            "positions/tpsl": "set_position_tpsl",
        },
    },
    "xt": {"options": {"recvWindow": "5000"}},
    "indodax": {"last": ("timestamp", "recvWindow")},
    "mercado": {"last": ("tapi_nonce",)},
    "coinmate": {"last": ("signature",)},
    "lbank": {"last": ("api_key", "sign")},
    "onetrading": {"api_key": "real token 0123456789", "is_token": True},
    "zaif": {"last": ("nonce",)},
}


def _rows(line: str) -> Iterator[tuple[Any, str, str]]:
    joined, *words = line[26:].split()
    api = joined[1:] if joined.startswith("=") else joined.split(".")
    method = ""
    for word in words:
        if word.isupper():
            method = word
        else:
            yield api, method, word


def _venues(table: str) -> Iterator[tuple[str, Calls]]:
    for entry in re.split(r"\n(?=\S)", table):
        name, _, exchange = entry.split()[0].partition("=")
        rows = tuple(row for line in entry.splitlines() for row in _rows(line))
        yield name, Calls(exchange or name, rows, **_OTHERWISE.get(name, {}))


def _further(table: str, venues: Mapping[str, Calls]) -> Iterator[tuple[str, Calls]]:
    for name, form in map(str.split, table.strip().splitlines()):
        venue, _, kind = name.partition(":")
        yield name, replace(venues[venue], kind=kind, secret=form, **_OTHERWISE.get(name, {}))


_NOW, _GONE = (dict(_venues(part)) for part in _TABLE.strip("\n").split("\n\n"))
VENUES: dict[str, Calls] = _NOW | _GONE
GONE = frozenset(_GONE)
OF_EVERY_KIND: dict[str, Calls] = VENUES | dict(
    _further(_FURTHER_KINDS, VENUES)
)  # names such as binance:rsa as well
