"""Let unmodified client libraries place an order that a gateway refuses, and print what they raise.

`python -m venues.refusal_clients`, in the folder of the tests: a program of its own, as the libraries bring
much along. It reads {"http": {kind: [address, token]}, "https": …} as JSON, and prints a JSON line for each
library, venue and kind: the class of what was raised, None where the library returned the reply, and its
text.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from typing import Any

import gate_api  # type: ignore[import-untyped]
import krakenex  # type: ignore[import-untyped]
from binance.client import Client as BinanceClient  # type: ignore[import-untyped]
from binance_common.configuration import ConfigurationRestAPI
from binance_sdk_spot.rest_api.models import NewOrderSideEnum, NewOrderTypeEnum
from binance_sdk_spot.spot import Spot
from coinbase.rest import RESTClient  # type: ignore[import-untyped]
from kucoin_universal_sdk.api import DefaultClient  # type: ignore[import-untyped]
from kucoin_universal_sdk.generate.spot.order import AddOrderReqBuilder  # type: ignore[import-untyped]
from kucoin_universal_sdk.model import ClientOptionBuilder, TransportOptionBuilder  # type: ignore[import-untyped]
from kucoin_universal_sdk.model.transport_option import Interceptor  # type: ignore[import-untyped]
from okx.Trade import TradeAPI  # type: ignore[import-untyped]
from pybit.unified_trading import HTTP  # type: ignore[import-untyped]

from venues.calls import VENUES
from venues.client_record import AT_VENUES, BY_HTTPS, CCXT, LIBRARIES
from venues.oracle import exchange_with, move
from venues.private_keys import FORMS, key_of

Order = Callable[[], Any]
Place = Callable[[str, dict[str, str]], Order]
_ORDER = re.compile("order|buy|create", re.IGNORECASE)  # in the path of what places one


def ccxt_at(venue: str) -> Place:
    """Return how ccxt's class of a venue places an order, by the method that has it."""
    calls = VENUES[venue]
    rows = [row for row in calls.rows if _ORDER.search(row[2]) and "cancel" not in row[2]]
    api, method, path = next(row for row in rows if row[1] == "POST" or calls.exchange == "deribit")

    def place(address: str, headers: dict[str, str]) -> Order:
        exchange = exchange_with(calls, is_dummy=True)
        exchange.enableRateLimit = False
        exchange.headers = headers
        move(exchange, address)
        return lambda: exchange.request(path, api, method, {"symbol": "BTCUSDT"})

    return place


def by_python_binance(address: str, headers: dict[str, str]) -> Order:
    client = BinanceClient("made-up", "made-up", ping=False)
    client.API_URL = f"{address}/api"
    client.session.headers.update(headers)
    return lambda: client.create_order(symbol="BTCUSDT", side="BUY", type="MARKET", quantity=1)


def by_binance_sdk_spot(address: str, headers: dict[str, str]) -> Order:
    configuration = ConfigurationRestAPI(
        "made-up", "made-up", address, timeout=5_000, custom_headers={**headers}
    )
    api = Spot(config_rest_api=configuration).rest_api
    side, kind = NewOrderSideEnum["BUY"], NewOrderTypeEnum["MARKET"]
    return lambda: api.new_order(symbol="BTCUSDT", side=side, type=kind, quantity=1)


def by_pybit(address: str, headers: dict[str, str]) -> Order:
    session = HTTP(api_key="made-up", api_secret="made-up")
    session.endpoint = address
    session.client.headers.update(headers)
    return lambda: session.place_order(
        category="spot", symbol="BTCUSDT", side="Buy", orderType="Market", qty="1"
    )


def by_python_okx(address: str, headers: dict[str, str]) -> Order:
    api = TradeAPI("made-up", "made-up", "made-up", flag="0", domain=address)
    api.headers.update(headers)
    return lambda: api.place_order(instId="BTC-USDT", tdMode="cash", side="buy", ordType="market", sz="1")


def by_krakenex(address: str, headers: dict[str, str]) -> Order:
    api = krakenex.API("made-up", "bWFkZS11cA==")
    api.uri = address
    api.session.headers.update(headers)
    return lambda: api.query_private("AddOrder", {"pair": "XBTUSD", "type": "buy", "volume": "1"})


class _Proof(Interceptor):  # type: ignore[misc] # of an untyped library
    def __init__(self, headers: dict[str, str]) -> None:
        self._headers = headers

    def before(self, request: Any) -> Any:
        request.headers.update(self._headers)
        return request

    def after(self, request: Any, response: Any, exception: Any) -> Any:
        del request, exception
        return response


def by_kucoin_universal_sdk(address: str, headers: dict[str, str]) -> Order:
    option = ClientOptionBuilder().set_key("made-up").set_secret("made-up").set_passphrase("made-up")
    option = option.set_spot_endpoint(address).set_futures_endpoint(address).set_broker_endpoint(address)
    transport = TransportOptionBuilder().add_interceptor(_Proof(headers)).build()
    api = DefaultClient(option.set_transport_option(transport).build()).rest_service().get_spot_service()
    order = AddOrderReqBuilder().set_symbol("BTC-USDT").set_side("buy").set_type("market").set_size("1")
    return lambda: api.get_order_api().add_order(order.build())


def by_gate_api(address: str, headers: dict[str, str]) -> Order:
    configuration = gate_api.Configuration(host=f"{address}/api/v4", key="made-up", secret="made-up")
    client = gate_api.ApiClient(configuration)
    client.default_headers.update(headers)
    order = gate_api.Order(currency_pair="BTC_USDT", side="buy", amount="1", price="1")
    return lambda: gate_api.SpotApi(client).create_order(order)


def by_coinbase_advanced_py(address: str, headers: dict[str, str]) -> Order:
    secret = FORMS["pem"](key_of("es256", "dummy"))
    client = RESTClient(api_key="made-up", api_secret=secret, base_url=address.partition("://")[2])
    client.session.headers.update(headers)
    return lambda: client.market_order_buy(client_order_id="1", product_id="BTC-USD", quote_size="1")


PLACES: dict[str, Place] = {
    "python-binance": by_python_binance,
    "binance-sdk-spot": by_binance_sdk_spot,
    "pybit": by_pybit,
    "python-okx": by_python_okx,
    "krakenex": by_krakenex,
    "kucoin-universal-sdk": by_kucoin_universal_sdk,
    "gate-api": by_gate_api,
    "coinbase-advanced-py": by_coinbase_advanced_py,
}


def raised_by(order: Order) -> tuple[str | None, str]:
    """Return the class and the text of what an order raises, or None and what it returns."""
    try:
        found = order()
    except Exception as error:  # noqa: BLE001 - whatever it is
        kind = type(error)
        module = "" if kind.__module__ == "builtins" else f"{kind.__module__.partition('.')[0]}."
        return f"{module}{kind.__qualname__}", str(error)
    return None, json.dumps(found, default=str)


def found(doors: dict[str, dict[str, tuple[str, str]]]) -> Iterator[dict[str, Any]]:
    places = [(library, venue, PLACES[library]) for library, venue in LIBRARIES.items()]
    places += [(CCXT, venue, ccxt_at(venue)) for venue in AT_VENUES]
    for library, venue, place in places:
        for kind, (url, token) in doors["https" if library in BY_HTTPS else "http"].items():
            order = place(f"{url}/{venue}", {"X-Gateway-Token": token} if token else {})
            if kind == "deadline":
                for _ in range(2):  # which use the limit up
                    raised_by(order)
            raised, text = raised_by(order)
            yield {"library": library, "venue": venue, "kind": kind, "raised": raised, "text": text}


def main() -> None:
    with redirect_stdout(sys.stderr):
        lines = list(found(json.load(sys.stdin)))
    for line in lines:
        print(json.dumps(line))  # noqa: T201


if __name__ == "__main__":
    main()
