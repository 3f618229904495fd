"""10,000 orders against an oracle of the policy that shares nothing with it: none passes that may not."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from random import Random  # noqa: TID251 - by a seed that Hypothesis draws

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rig.odd_orders import NUMBERS, OddOrder, json_order, parameter_order
from rig.policy_oracle import Limits, may_pass_json, may_pass_parameters
from sealgate.http.headers import Head
from sealgate.orders.policy import Amounts, Policy, PolicyError, judge
from sealgate.venues.order_terms import OrderShape, UnreadableError, read_orders

JSON = OrderShape(
    symbol=("symbol",),
    size=("size",),
    price=("price",),
    reduce_only=("reduce_only",),
    side=("side",),
    buys=frozenset({"buy"}),
    trigger=("trigger",),
)
PARAMETERS = replace(JSON, is_json=False, in_query=True)
PRICES = {"BTC": Decimal(60000), "ETH": Decimal("0.5")}


def amounts(limit: Fraction | Mapping[str, Fraction]) -> Amounts:
    if isinstance(limit, Fraction):
        return Decimal(limit.numerator) / Decimal(limit.denominator)
    return {name: Decimal(one.numerator) / Decimal(one.denominator) for name, one in limit.items()}


HALF, MOST = Fraction(1, 2), Fraction(10000)


def limits_of(random: Random) -> Limits:
    return Limits(
        symbols=random.choice((None, frozenset({"BTC", "ETH"}))),
        max_size=random.choice((None, HALF, {"BTC": HALF, "ETH": Fraction(100)})),
        max_notional=random.choice((None, None, MOST, HALF)),
        reduce_only=not random.randrange(4),
        prices={name: Fraction(price) for name, price in PRICES.items()},
    )


def policy_of(limit: Limits) -> Policy:
    return Policy(
        symbols=limit.symbols,
        max_size=None if limit.max_size is None else amounts(limit.max_size),
        max_notional=None if limit.max_notional is None else Decimal(str(float(limit.max_notional))),
        reduce_only=limit.reduce_only,
    )


def passes(policy: Policy, shape: OrderShape, order: OddOrder) -> bool:
    kept = {} if order.content_type is None else {b"content-type": order.content_type.encode()}
    before = bytes(order.body)
    try:
        judge(policy, read_orders(shape, order.query, order.body, Head(kept, b"")), PRICES.get)
    except (UnreadableError, PolicyError):
        return False
    assert order.body == before
    return True


AT_ONCE = 25
seeds = st.integers(0, 2**64)


@pytest.mark.slow
@settings(max_examples=140)
@given(seeds)
@example(17086605)  # nested 2,000 deep
def test_no_order_in_a_json_body_passes_that_may_not(seed: int) -> None:
    random = Random(seed)
    for _ in range(AT_ONCE):
        limit, order = limits_of(random), json_order(random)
        if passes(policy_of(limit), JSON, order):
            assert may_pass_json(limit, order.body, order.query, order.content_type), (limit, order)


@pytest.mark.slow
@settings(max_examples=60)
@given(seeds)
def test_no_order_in_a_query_or_a_form_passes_that_may_not(seed: int) -> None:
    random = Random(seed)
    for _ in range(AT_ONCE):
        limit, order = limits_of(random), parameter_order(random)
        if passes(policy_of(limit), PARAMETERS, order):
            assert may_pass_parameters(limit, order.body, order.query), (limit, order)


def test_many_of_the_generated_orders_pass() -> None:
    """Else the two above would hold nothing."""
    random = Random(1)
    for make, shape in ((json_order, JSON), (parameter_order, PARAMETERS)):
        passed = sum(passes(policy_of(limits_of(random)), shape, make(random)) for _ in range(500))
        assert 50 <= passed <= 250


plain_numbers = st.decimals(-1000, 1000, allow_nan=False, places=6).map(str) | st.sampled_from(NUMBERS[:10])


@given(
    seeds,
    st.sampled_from(("BTC", "ETH", "DOGE")),
    plain_numbers,
    plain_numbers,
    st.sampled_from(("buy", "sell")),
)
def test_every_ordinary_order_passes_that_may(
    seed: int, symbol: str, size: str, price: str, side: str
) -> None:
    random = Random(seed)
    limit, truth = limits_of(random), random.choice(("true", "false"))
    body = (
        f'{{"symbol": "{symbol}", "size": "{size}", "price": {price}, "side": "{side}", '
        f'"reduce_only": {truth}}}'
    ).encode()
    order = OddOrder(body, None, "application/json")
    assert passes(policy_of(limit), JSON, order) == may_pass_json(limit, body, None, None)
