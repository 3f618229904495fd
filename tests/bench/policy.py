"""What a policy costs an order, in microseconds: read, judged and counted, beside a plain read of JSON."""

import argparse
import json
import timeit
from collections.abc import Callable
from decimal import Decimal
from itertools import count

from sealgate.core.headers import Head
from sealgate.core.order_terms import OrderShape
from sealgate.core.policy import Policy, PolicyMemory
from sealgate.core.routes import RouteRow, RouteTable
from sealgate.core.target import parse_target

SHAPE = OrderShape(symbol=("symbol",), size=("size",), price=("price",), reduce_only=("reduceOnly",))
ROUTE = RouteTable([RouteRow("POST", "/order", order=SHAPE)]).find("POST", "/order")
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
    b'{"symbol":"BTC","side":"buy","size":"0.1%04d","price":"6%04d.5","reduceOnly":true,'
    b'"client_order_id":"c-%d"}'
)


def fastest_us(call: Callable[[], object], times: int) -> float:
    return min(timeit.repeat(call, number=times, repeat=7)) / times * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=20_000, help="of each round")
    options = parser.parse_args()
    guard = PolicyMemory().guard("grid", POLICY, "")
    numbers = count()

    def body() -> bytes:
        number = next(numbers)
        return ORDER % (number % 8999, number % 9999, number)

    def admitted() -> object:
        return guard.admit(ROUTE, TARGET, HEAD, body(), next(numbers) * 1e-3)

    made = fastest_us(body, options.orders)
    print(f"a policy: {fastest_us(admitted, options.orders) - made:.1f} us per order, no two alike")
    print(f"json.loads of it: {fastest_us(lambda: json.loads(body()), options.orders) - made:.1f} us")


if __name__ == "__main__":
    main()
