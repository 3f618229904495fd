"""What a policy costs an order, in microseconds, and what it costs the bots that have none."""

import argparse
import json
import timeit
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import count

from sealgate.http.headers import Head, HeaderRules
from sealgate.http.target import parse_target
from sealgate.keys.bot import Bot
from sealgate.orders.policy import Policy, PolicyMemory
from sealgate.request.admission import Rules, authorise
from sealgate.venues.order_terms import OrderShape, PriceShape
from sealgate.venues.routes import Permission, RouteRow, RouteTable

SHAPE = OrderShape(
    symbol=("symbol",),
    size=("size",),
    price=("price",),
    reduce_only=("reduceOnly",),
    side=("side",),
    buys=frozenset({"buy"}),
)
PRICES = PriceShape(("symbol",), ("price",))
ROUTES = RouteTable([RouteRow("POST", "/order", order=SHAPE), RouteRow("GET", "/prices", prices=PRICES)])
POLICY = Policy(
    symbols=frozenset({"BTC", "ETH"}),
    max_size={"BTC": Decimal("0.9")},
    max_notional=Decimal(100_000),
    max_orders_per_minute=10**9,
    max_orders_per_day=10**9,
    reduce_only=True,
)
HEAD = Head({b"content-type": b"application/json"}, b"Accept: */*\r\nUser-Agent: bot/1.0\r\n")
TARGET = parse_target("/v1/trade/order", "/v1/trade")
ORDER = (
    b'{"symbol":"BTC","side":"%b","size":"0.1%04d","price":"6%04d.5","reduceOnly":true,'
    b'"client_order_id":"c-%d"}'
)
FREE = Bot("free", ("main",), frozenset({Permission.READ, Permission.TRADE}))


_EACH = 50  # calls of a round: a millisecond


def fastest_us(call: Callable[[], object], times: int) -> float:
    """Return the least of many short rounds, in which nothing else ran."""
    each = min(_EACH, times)
    return min(timeit.repeat(call, number=each, repeat=max(1, times // each))) / each * 1e6


def price_list(symbols: int) -> bytes:
    rows = [{"symbol": f"S{number}", "price": f"{number}.5"} for number in range(1, symbols)]
    return json.dumps([{"symbol": "BTC", "price": "60000.5"}, *rows]).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=20_000, help="in all rounds of a row")
    times = parser.parse_args().orders
    memory = PolicyMemory()
    guard, prices, numbers = memory.guard("grid", (POLICY,), "", ""), memory.prices[""], count()
    route = ROUTES.find("POST", "/order")

    def body(side: bytes = b"buy") -> bytes:
        number = next(numbers)
        return ORDER % (side, number % 8999, number % 9999, number)

    def admit(side: bytes = b"buy") -> object:
        return guard.admit(route, TARGET, HEAD, body(side), next(numbers) * 1e-3)

    prices.learn(("", b""), PRICES, price_list(50), now=0.0)
    made = fastest_us(body, times)
    print("of a bot with a policy of all rules, no two orders alike:")
    for side in (b"buy", b"sell"):
        print(f"  a {side.decode()}: {fastest_us(partial(admit, side), times) - made:.1f} us")
    print(f"  json.loads of one: {fastest_us(lambda: json.loads(body()), times) - made:.1f} us")
    for symbols in (50, 2500):
        replied = price_list(symbols)

        def admit_first(replied: bytes = replied) -> object:
            prices.learn(("", b""), PRICES, replied, now=0.0)
            return admit(b"sell")

        first = fastest_us(admit_first, max(1, times // symbols)) - made
        print(f"  the first sell behind a new list of {symbols} prices: {first:.0f} us")

    without = Rules("/v1/trade", frozenset(), {}, None, ROUTES, HeaderRules(()), 10**6)
    beside = replace(without, policies=memory, guards={"grid": guard}, prices=prices)
    print("of a bot without one, where no bot has one, and where another bot has:")
    for method, path in (("POST", "/order"), ("GET", "/prices")):
        alone, besides = (
            fastest_us(partial(authorise, FREE, method, f"/v1/trade{path}", HEAD, rules), times)
            for rules in (without, beside)
        )
        print(f"  a new head of {method} {path} is admitted in {alone:.2f} and {besides:.2f} us")
    replied = price_list(2500)
    learned = fastest_us(lambda: prices.learn(("", b""), PRICES, replied, now=0.0), times)
    print(f"  each reply to GET /prices, here of 2500 prices: 0 and {learned:.2f} us")


if __name__ == "__main__":
    main()
