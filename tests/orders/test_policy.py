"""What a policy lets pass, by setting, and what it counts."""

import gzip
import tracemalloc
from decimal import Decimal

import pytest

from sealgate.config.venues import built_in_venue
from sealgate.errors import Refusal
from sealgate.http.headers import Head
from sealgate.http.target import parse_target
from sealgate.observe.status import policy_status
from sealgate.orders.policy import (
    Counted,
    Guard,
    Passed,
    Policy,
    PolicyError,
    PolicyMemory,
    Usage,
    Used,
    is_judged,
    judge,
    words,
)
from sealgate.orders.prices import Prices
from sealgate.venues.order_terms import OrderShape, OrderTerms, PriceShape
from sealgate.venues.routes import Auth, CustomRoute, Lane, Permission, Route, RouteRow, RouteTable

D = Decimal
PRICES = {"BTC": D(60000)}


def order(
    symbol: str | None = "BTC", size: str | None = "0.1", price: str | None = "100", *, is_capped: bool = True
) -> OrderTerms:
    amount, limit = (None if text is None else D(text) for text in (size, price))
    return OrderTerms(symbol, amount, limit, reduces=False, is_capped=is_capped and price is not None)


def rule_of(policy: Policy, *orders: OrderTerms) -> str | None:
    try:
        judge(policy, orders or (order(),), PRICES.get)
    except PolicyError as error:
        return error.rule
    return None


@pytest.mark.parametrize(
    ("policy", "terms", "rule"),
    [
        (Policy(symbols=frozenset({"BTC"})), order(), None),
        (Policy(symbols=frozenset({"BTC"})), order("btc"), "symbols"),
        (Policy(symbols=frozenset({"BTC"})), order(None), "symbols"),
        (Policy(max_size=D("0.1")), order(), None),
        (Policy(max_size=D("0.1")), order(size="0.10000000000000000000000000001"), "max_size"),
        (Policy(max_size=D("0.1")), order(size=None), "body"),
        (Policy(max_size=D("0.1")), order(size="0"), "body"),
        (Policy(max_size={"BTC": D("0.1")}), order(), None),
        (Policy(max_size={"BTC": D("0.1")}), order("ETH", "0.01"), "max_size"),
        (Policy(max_size={"BTC": D("0.1")}), order(None), "max_size"),
        (Policy(max_notional=D(10)), order(), None),
        (Policy(max_notional=D(10)), order(price="100.0000000000000000000000000000000001"), "max_notional"),
        (Policy(max_notional=D(6000)), order(price=None), None),
        (Policy(max_notional=D(5999)), order(price=None), "max_notional"),
        (Policy(max_notional=D(5999)), order("ETH", price=None), "max_notional"),
        (Policy(max_notional=D(5999)), order(None, price=None), "max_notional"),
        (Policy(max_notional=D(6000)), order(is_capped=False), None),
        (Policy(max_notional=D(5999)), order(is_capped=False), "max_notional"),
        (Policy(max_notional=D(6000)), order(price="60001", is_capped=False), "max_notional"),
        (Policy(max_notional=D(9999)), order("ETH", is_capped=False), "max_notional"),
        (Policy(max_notional_per_day=D(1)), order(), None),
        (Policy(max_notional_per_day=D(1)), order("ETH", price=None), "max_notional_per_day"),
        (Policy(max_notional_per_day=D(1)), order(size=None), "body"),
        (Policy(reduce_only=True), order(), "reduce_only"),
        (Policy(reduce_only=True), OrderTerms(None, None, None, reduces=True), None),
        (Policy(), order(None, None, None), None),
    ],
)
def test_each_setting_refuses_what_it_says(policy: Policy, terms: OrderTerms, rule: str | None) -> None:
    assert rule_of(policy, terms) == rule


def test_one_bad_order_of_a_batch_is_enough() -> None:
    assert rule_of(Policy(max_size=D(1)), order(), order(size="2"), order()) == "max_size"


def test_what_orders_are_worth_together() -> None:
    policy = Policy(max_notional_per_day=D(1))
    sell = order(size="0.5", price="60001", is_capped=False)
    assert judge(policy, (order(), order(price=None), sell), PRICES.get) == D(10 + 6000) + D("30000.5")
    assert judge(Policy(max_size=D(1)), (order(),), PRICES.get) == 0


FULL = OrderShape(symbol=("s",), size=("q",), price=("p",), reduce_only=("r",))
NOTHING = OrderShape()


@pytest.mark.parametrize(
    ("policy", "shape", "rule"),
    [
        (Policy(max_orders_per_day=1), None, "route"),
        (Policy(max_orders_per_day=1), NOTHING, None),
        (Policy(symbols=frozenset({"BTC"})), NOTHING, "symbols"),
        (Policy(max_size=D(1)), NOTHING, "max_size"),
        (Policy(max_size={"BTC": D(1)}), OrderShape(size=("q",)), "max_size"),
        (Policy(max_size=D(1)), OrderShape(size=("q",)), None),
        (Policy(max_notional=D(1)), NOTHING, "max_notional"),
        (
            Policy(max_notional=D(1)),
            OrderShape(symbol=("s",), size=("q",), in_contracts=True),
            "max_notional",
        ),
        (Policy(max_notional=D(1)), OrderShape(size=("q",), price=("p",)), "max_notional"),
        (Policy(max_notional=D(1)), OrderShape(size=("q",), side=("b",), buys=frozenset({"b"})), None),
        (Policy(max_notional_per_day=D(1)), NOTHING, "max_notional_per_day"),
        (Policy(reduce_only=True), NOTHING, "reduce_only"),
        (Policy(frozenset({"BTC"}), {"BTC": D(1)}, D(1), D(1), 1, 1, reduce_only=True), FULL, None),
    ],
)
def test_what_a_policy_cannot_judge_is_known_before(
    policy: Policy, shape: OrderShape | None, rule: str | None
) -> None:
    assert policy.lacks(shape) == rule


def test_a_policy_judges_all_but_reads_and_named_cancels() -> None:
    rows = (
        RouteRow("POST", "/order/cancel", lane=Lane.CANCEL),
        RouteRow("POST", "/order"),
        RouteRow("DELETE", "/keys", needs=Permission.KEYS),
    )
    custom = (
        CustomRoute("POST", "/query", needs=Permission.READ),
        CustomRoute("DELETE", "/order/{id}", lane=Lane.CANCEL),
        CustomRoute("POST", "/order/cancel", cost=2.0),
    )
    table = RouteTable(rows, custom)
    judged = {
        asked: is_judged(table.find(*asked.split()))
        for asked in (
            *("GET /order", "POST /query", "POST /order/cancel"),
            *(
                *("POST /order", "POST /orders", "POST /x/cancel", "DELETE /order/1"),
                *("DELETE /x", "DELETE /keys"),
            ),
        )
    }
    assert [asked for asked, is_so in judged.items() if not is_so] == [
        "GET /order",
        "POST /query",
        "POST /order/cancel",
        "DELETE /order/1",  # which the configuration names as a cancel
    ]
    assert not is_judged(RouteTable(rows).find("POST", "/order/cancel"))
    by_key = RouteTable(
        (
            RouteRow("POST", "/listenKey", auth=Auth.KEY),
            RouteRow("POST", "/buy", auth=Auth.KEY, order=OrderShape()),
            RouteRow("POST", "/quote", auth=Auth.OPEN),
        )
    )
    assert not is_judged(by_key.find("POST", "/listenKey"))
    assert not is_judged(by_key.find("POST", "/quote"))
    assert is_judged(by_key.find("POST", "/buy"))
    demoted = RouteTable(rows, (CustomRoute("POST", "/order/cancel", lane=Lane.ORDER),))
    assert is_judged(demoted.find("POST", "/order/cancel"))


MINUTE_S, DAY_S = 60.0, 86400.0
MINUTE, DAY = Policy(max_orders_per_minute=3), Policy(max_orders_per_day=3)


def begin(usage: Usage, policy: Policy, orders: int, at: float, worth: str = "0") -> Used:
    used = Used(orders, D(worth))
    usage.check(policy, used, at)
    usage.begin(used)
    return used


def send(usage: Usage, policy: Policy, orders: int, at: float, worth: str = "0") -> None:
    usage.ended(begin(usage, policy, orders, at, worth), at)


@pytest.mark.parametrize(("policy", "span_s"), [(MINUTE, MINUTE_S), (DAY, DAY_S)])
def test_so_many_orders_pass_within_any_span(policy: Policy, span_s: float) -> None:
    usage = Usage()
    for at in (0.0, 10.0, 20.0):
        send(usage, policy, 1, at)
    with pytest.raises(PolicyError, match="3 of 3 orders") as refused:
        begin(usage, policy, 1, span_s - 0.001)
    assert refused.value.rule == policy.rules[0]
    send(usage, policy, 1, span_s)
    with pytest.raises(PolicyError):
        begin(usage, policy, 1, span_s + 9)


def test_a_batch_counts_each_of_its_orders() -> None:
    usage = Usage()
    send(usage, MINUTE, 2, 0.0)
    with pytest.raises(PolicyError):
        begin(usage, MINUTE, 2, 1.0)
    begin(usage, MINUTE, 1, 1.0)


def test_what_was_never_sent_counts_no_more() -> None:
    usage = Usage()
    kept, sent = begin(usage, DAY, 1, 0.0), begin(usage, DAY, 2, 1.0)
    usage.ended(kept, None)
    with pytest.raises(PolicyError, match="2 of 3"):
        begin(usage, DAY, 2, 2.0)
    usage.ended(sent, None)
    begin(usage, DAY, 3, 3.0)


def test_an_order_counts_while_it_waits_and_for_the_span_from_when_it_was_sent() -> None:
    usage = Usage()
    early, late = begin(usage, MINUTE, 1, 0.0), begin(usage, MINUTE, 2, 0.0)
    with pytest.raises(PolicyError, match="3 of 3"):
        begin(usage, MINUTE, 1, 10 * MINUTE_S)
    usage.ended(late, 600.0)
    usage.ended(early, 590.0)  # its reply took longer: it counts as long as those that were sent after it
    with pytest.raises(PolicyError, match="3 of 3"):
        begin(usage, MINUTE, 1, 659.0)
    begin(usage, MINUTE, 3, 660.0)


def test_an_order_whose_reply_came_late_shortens_no_others_count() -> None:
    usage = Usage()
    early, late = begin(usage, DAY, 1, 0.0), begin(usage, DAY, 2, 0.0)
    usage.ended(late, 9.0)
    usage.ended(early, 1.0)
    with pytest.raises(PolicyError, match="3 of 3"):
        begin(usage, DAY, 1, DAY_S + 5.0)


def test_what_passed_before_a_restart_counts() -> None:
    usage = Usage()
    usage.restore(-DAY_S + 1, Used(2))
    usage.restore(-5.0, Used(1))
    with pytest.raises(PolicyError):
        begin(usage, DAY, 1, 0.0)
    begin(usage, DAY, 2, 1.0)


def test_many_orders_take_bounded_room_and_none_is_forgotten_early() -> None:
    usage, policy, times = Usage(), Policy(max_orders_per_minute=10**9), list[float]()
    now = 0.0
    for step in range(30_000):
        now += 0.004 if step % 7 else 0.02
        send(usage, policy, 1, now)
        times.append(now)
        if not step % 500:
            exact = sum(at > now - MINUTE_S for at in times)
            with pytest.raises(PolicyError):
                begin(usage, Policy(max_orders_per_minute=exact), 1, now)
            send(usage, Policy(max_orders_per_minute=exact + 11), 1, now)
            times.append(now)


def test_a_flood_of_orders_takes_bounded_room() -> None:
    usage = Usage()
    tracemalloc.start()
    try:
        for number in range(10_000):
            send(usage, Policy(), 1, 0.0001 * number)
        assert tracemalloc.get_traced_memory()[0] < 500_000
    finally:
        tracemalloc.stop()


def test_orders_that_nothing_limits_take_bounded_room() -> None:
    usage = Usage()
    tracemalloc.start()
    try:
        for minute in range(10_000):
            send(usage, Policy(), 1, 60.0 * minute)
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_policy_in_a_sentence() -> None:
    policy = Policy(frozenset({"ETH", "BTC"}), D("0.5"), D("1E+4"), D("5E+4"), 60, 2000, reduce_only=True)
    assert policy.rules == (
        *("symbols", "max_size", "max_notional", "max_notional_per_day"),
        *("max_orders_per_minute", "max_orders_per_day", "reduce_only"),
    )
    assert words(policy) == (
        "may send reduce-only orders in BTC and ETH, of at most 0.5, worth at most 10000, "
        "together worth at most 50000 a day, at most 60 a minute, at most 2000 a day"
    )
    observed = Policy(max_size={"SOL": D(5), "ETH": D(2), "BTC": D(1)}, observe=True)
    assert words(observed) == (
        "would be held to orders in BTC, ETH and SOL, of at most 1 BTC, 2 ETH and 5 SOL; "
        "nothing is refused (observe)"
    )
    assert words(Policy(frozenset({"BTC"}))) == "may send orders in BTC"
    assert words(Policy(max_size=D(1))) == "may send orders in any symbol, of at most 1"


TARGET = parse_target("/v1/trade/order", "/v1/trade")
ROUTE = RouteTable(
    (RouteRow("POST", "/order", order=OrderShape(symbol=("s",), size=("q",), price=("p",))),)
).find("POST", "/order")
OTHER = RouteTable(()).find("POST", "/order")
SIDED = OrderShape(symbol=("s",), size=("q",), price=("p",), side=("b",), buys=frozenset({"buy"}))
VALUED = RouteTable((RouteRow("POST", "/order", order=SIDED),)).find("POST", "/order")


def admitted(guard: Guard, body: bytes, route: Route = ROUTE) -> Passed:
    return guard.admit(route, TARGET, Head({}, b""), body, 0.0)


@pytest.mark.parametrize(
    ("policy", "body", "route", "detail"),
    [
        (Policy(max_size=D(1)), b'{"q": 2}', ROUTE, "policy.max_size: the size is above 1."),
        (Policy(max_size=D(1)), b"{", ROUTE, "policy.body: the order cannot be judged: the body is not JSON"),
        (
            Policy(max_size=D(1)),
            b"{}",
            OTHER,
            "policy.route: the venue's file does not describe orders to /v1/trade/order.",
        ),
        (Policy(reduce_only=True), b"{}", ROUTE, "policy.reduce_only: the venue's file does not say"),
    ],
)
def test_a_refusal_names_the_setting(policy: Policy, body: bytes, route: Route, detail: str) -> None:
    guard = PolicyMemory().guard("grid", (policy,), "x", "x https")
    with pytest.raises(Refusal) as refused:
        admitted(guard, body, route)
    assert (refused.value.slug, refused.value.reason.status) == ("policy_refused", 403)
    assert refused.value.detail.startswith(detail)
    rule = detail.partition(":")[0].removeprefix("policy.")
    assert guard.usage.refusals[rule] == 1


def test_a_policy_that_observes_lets_pass_what_it_counts() -> None:
    guard = PolicyMemory().guard("grid", (Policy(max_size=D(1), observe=True),), "x", "x https")
    told = "Not refused, because policy.observe is set: policy.max_size: the size is above 1."
    assert admitted(guard, b'{"q": 2}') == Passed(None, told)
    assert admitted(guard, b'{"q": 1}') == Passed(Used(1))
    (status,) = policy_status("spot", {"grid": guard})
    assert (status.bot, status.exchange, status.is_observing) == ("grid", "spot", True)
    assert status.refusals == {"max_size": 1, "body": 0, "route": 0}


ONE_A_DAY = Policy(max_orders_per_day=1)


def test_a_new_policy_of_a_bot_goes_on_counting_at_its_exchange_and_counts_anew_at_another() -> None:
    memory = PolicyMemory()
    admitted(memory.guard("grid", (ONE_A_DAY,), "x", "x https"), b"{}")
    with pytest.raises(Refusal):
        admitted(memory.guard("grid", (ONE_A_DAY,), "x", "x moved"), b"{}")
    admitted(memory.guard("grid", (ONE_A_DAY,), "y", "y https"), b"{}")
    admitted(memory.guard("maker", (ONE_A_DAY,), "x", "x https"), b"{}")


OWN = Policy(max_size=D(5), max_orders_per_day=2, name="policies.spot")


def guard_of(*policies: Policy) -> Guard:
    return PolicyMemory().guard("grid", policies, "spot", "spot https")


def outcome_of(guard: Guard, size: int) -> str:
    try:
        passed = admitted(guard, b'{"q": %d, "s": "BTC", "p": 9}' % size)
    except Refusal as refused:
        return refused.detail
    return passed.observed or "passed"


def test_of_two_policies_both_must_allow_an_order() -> None:
    guard = guard_of(Policy(max_size=D(9)), OWN)
    assert outcome_of(guard, 10) == "policy.max_size: the size is above 9."
    assert outcome_of(guard, 6) == "policies.spot.max_size: the size is above 5."
    assert [outcome_of(guard, 5) for _ in range(2)] == ["passed", "passed"]
    assert outcome_of(guard, 5) == "policies.spot.max_orders_per_day: 2 of 2 orders passed within a day."
    assert guard.usage.refusals == {"max_size": 2, "max_orders_per_day": 1, "body": 0, "route": 0}
    (status,) = policy_status("spot", {"grid": guard})
    assert status.words == (
        "may send orders in any symbol, of at most 9; "
        "may send orders in any symbol, of at most 5, at most 2 a day"
    )
    assert not status.is_observing


@pytest.mark.parametrize("is_first", [True, False])
def test_one_of_two_policies_may_only_observe(*, is_first: bool) -> None:
    """What it would refuse passes, and counts: the other one lets it be sent."""
    observing = Policy(max_size=D(1), observe=True, name="policies.spot")
    enforcing = Policy(max_size=D(5), max_orders_per_day=2)
    guard = guard_of(*((observing, enforcing) if is_first else (enforcing, observing)))
    assert outcome_of(guard, 6) == "policy.max_size: the size is above 5."
    assert outcome_of(guard, 2) == (
        "Not refused, because policies.spot.observe is set: policies.spot.max_size: the size is above 1."
    )
    assert outcome_of(guard, 1) == "passed"
    assert outcome_of(guard, 1).startswith("policy.max_orders_per_day: 2 of 2 orders")


def test_two_policies_that_observe_refuse_nothing_and_the_first_to_object_is_told() -> None:
    first, second = (Policy(max_size=D(most), observe=True, name=f"p{most}") for most in (2, 1))
    guard = guard_of(first, second)
    assert outcome_of(guard, 3).startswith("Not refused, because p2.observe is set: p2.max_size")
    assert outcome_of(guard, 2).startswith("Not refused, because p1.observe is set: p1.max_size")
    assert admitted(guard, b'{"q": 3}').used is None
    assert admitted(guard, b'{"q": 1}').used == Used(1)


def test_an_order_is_valued_where_one_of_two_policies_asks_for_it() -> None:
    day = Policy(max_notional_per_day=D(60), name="policies.spot")
    for policies in ((Policy(max_size=D(9)), day), (day, Policy(max_size=D(9)))):
        guard = guard_of(*policies)
        head = Head({}, b"")
        body = b'{"q": 5, "s": "BTC", "p": 9, "b": "buy"}'
        assert guard.admit(VALUED, TARGET, head, body, 0.0).used == Used(1, D(45))
        with pytest.raises(Refusal, match=r"policies\.spot\.max_notional_per_day: 45 of 60 passed"):
            guard.admit(VALUED, TARGET, head, body, 0.0)


BINANCE = RouteTable(built_in_venue("binance").routes)
SPOT = "symbol=BTCUSDT&side=BUY&type=LIMIT&quantity={}&price={}"


@pytest.mark.parametrize(
    ("path", "text", "rule"),
    [
        ("/api/v3/order", SPOT.format("0.1", "50000"), None),
        ("/api/v3/order", SPOT.format("0.6", "100"), "max_size"),
        ("/api/v3/order", SPOT.format("0.3", "50000"), "max_notional"),
        ("/api/v3/order", SPOT.format("0.1", "1") + "&quoteOrderQty=9000", "body"),
        ("/api/v3/order", SPOT.format("0.1", "1") + "&quantity=9", "body"),
        ("/dapi/v1/order", SPOT.format("0.1", "50000"), "max_notional"),
        ("/fapi/v1/batchOrders", "batchOrders=%5B%5D", "route"),
        ("/api/v3/order/cancelReplace", SPOT.format("0.1", "50000"), None),
    ],
)
@pytest.mark.parametrize("is_form", [True, False])
def test_orders_of_binance_are_judged_in_form_or_query(
    path: str, text: str, rule: str | None, *, is_form: bool
) -> None:
    policy = Policy(frozenset({"BTCUSDT"}), D("0.5"), D(10000))
    guard, body = PolicyMemory().guard("grid", (policy,), "x", "x https"), text.encode() if is_form else b""
    target = parse_target(path if is_form else f"{path}?{text}", "")
    try:
        passed = guard.admit(BINANCE.find("POST", path), target, Head({}, b""), body, 0.0)
        assert passed.used is not None
        assert passed.used.orders == 1
    except Refusal as refused:
        assert refused.detail.startswith(f"policy.{rule}: ")  # noqa: PT017 - or it is admitted
    assert sum(guard.usage.refusals.values()) == (rule is not None)


LIST, ONE = ("/prices", b""), ("/price?s=BTC", b"")
SYMBOL_PRICE = PriceShape(("s",), ("p",))


def says(price: int, symbol: str = "BTC") -> bytes:
    return b'{"s": "%b", "p": "%d"}' % (symbol.encode(), price)


def test_prices_are_those_of_the_exchange_that_said_them() -> None:
    memory = PolicyMemory()
    policy = Policy(max_notional=D(10))
    guard, other = (memory.guard("grid", (policy,), name, f"{name} https") for name in "xy")
    with pytest.raises(Refusal, match="no price of this symbol"):
        admitted(guard, b'{"s": "BTC", "q": 1}')
    memory.prices["x https"].learn(LIST, SYMBOL_PRICE, says(5), now=0.0)
    assert admitted(guard, b'{"s": "BTC", "q": 2}')
    with pytest.raises(Refusal, match="no price of this symbol"):
        admitted(other, b'{"s": "BTC", "q": 1}')


def test_the_last_price_counts_whatever_its_request_and_its_coding() -> None:
    prices = Prices()
    assert prices.last("BTC", 0.0) is None
    prices.learn(LIST, SYMBOL_PRICE, b'[{"s": "BTC", "p": 5}, {"s": "ETH", "p": 1}]', now=0.0)
    prices.learn(ONE, SYMBOL_PRICE, says(6), now=0.0)
    assert (prices.last("BTC", 0.0), prices.last("ETH", 0.0)) == (D(6), D(1))
    prices.learn(ONE, SYMBOL_PRICE, says(7), now=0.0)
    prices.learn(LIST, SYMBOL_PRICE, gzip.compress(b'[{"s": "BTC", "p": 8}]'), b"gzip", now=0.0)
    assert (prices.last("BTC", 0.0), prices.last("ETH", 0.0)) == (D(8), D(1))
    prices.learn(ONE, SYMBOL_PRICE, b"", now=0.0)  # as the reply to a HEAD
    assert prices.last("BTC", 0.0) == D(8)
    assert prices.new_faults() == []


LONG = b" " * 300_000


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (None, None),
        (LONG + says(9), None),
        (gzip.compress(LONG + says(9)), b"gzip"),
        (b"packed", b"br"),
        (b"<html>", None),
    ],
)
@pytest.mark.parametrize("is_asked_between", [True, False])
def test_a_reply_that_cannot_be_read_takes_back_what_its_request_said(
    body: bytes | None, coding: bytes | None, *, is_asked_between: bool
) -> None:
    prices = Prices()
    prices.learn(ONE, SYMBOL_PRICE, says(1, "ETH"), now=0.0)
    prices.learn(LIST, SYMBOL_PRICE, says(5), now=0.0)
    if is_asked_between:
        assert prices.last("BTC", 0.0) == D(5)
        prices.learn(LIST, SYMBOL_PRICE, says(6), now=0.0)
    prices.learn(LIST, SYMBOL_PRICE, body, coding, now=0.0)
    assert (prices.last("BTC", 0.0), prices.last("ETH", 0.0)) == (None, D(1))
    assert (prices.new_faults(), prices.new_faults()) == (["/prices"], [])
    prices.learn(LIST, SYMBOL_PRICE, body, coding, now=0.0)
    assert (prices.last("BTC", 0.0), prices.new_faults()) == (None, [])
    prices.learn(LIST, SYMBOL_PRICE, says(7), now=0.0)
    assert prices.last("BTC", 0.0) == D(7)


def test_a_reply_that_is_too_long_brings_no_older_price_of_another_request_back() -> None:
    prices = Prices()
    prices.learn(ONE, SYMBOL_PRICE, says(5), now=0.0)
    assert prices.last("BTC", 0.0) == D(5)
    prices.learn(LIST, SYMBOL_PRICE, says(6), now=0.0)
    prices.learn(LIST, SYMBOL_PRICE, None, now=0.0)
    assert prices.last("BTC", 0.0) is None


def test_replies_with_prices_take_bounded_room_while_no_order_asks() -> None:
    prices = Prices()
    tracemalloc.start()
    try:
        for number in range(300):
            prices.learn((f"/{number}", b""), SYMBOL_PRICE, says(number) + b" " * 10_000, now=0.0)
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()
    assert prices.last("BTC", 0.0) == D(299)


def test_prices_take_bounded_room_and_those_that_are_read_again_stay() -> None:
    prices = Prices()
    for number in range(10_020):
        prices.learn((f"/{number}", b""), SYMBOL_PRICE, says(1, f"S{number}"), now=0.0)
        if not number % 1000:
            prices.learn(("/0", b""), SYMBOL_PRICE, says(2, "S0"), now=0.0)
    assert [prices.last(name, 0.0) for name in ("S0", "S20", "S21")] == [D(2), None, D(1)]
    for number in range(1, 41):
        prices.learn((f"/{number}", b""), SYMBOL_PRICE, None, now=0.0)
    assert prices.last("S0", 0.0) == D(2)
    assert len(prices.new_faults()) == 16


def test_a_price_is_trusted_for_an_hour() -> None:
    memory = PolicyMemory()
    guard, prices = (
        memory.guard("grid", (Policy(max_notional=D(10)),), "x", "x https"),
        memory.prices["x https"],
    )
    prices.learn(LIST, SYMBOL_PRICE, says(5), now=100.0)
    assert prices.last("BTC", 3700.0) == D(5)
    assert prices.last("BTC", 3700.1) is None
    order = b'{"s": "BTC", "q": 1}'
    assert guard.admit(ROUTE, TARGET, Head({}, b""), order, 3700.0)
    with pytest.raises(Refusal, match="from the last hour"):
        guard.admit(ROUTE, TARGET, Head({}, b""), order, 3701.0)


def test_prices_that_orders_asked_for_outlive_a_restart_with_their_age() -> None:
    prices, later = Prices(), Prices()
    prices.learn(LIST, SYMBOL_PRICE, b'[{"s": "BTC", "p": 5}, {"s": "ETH", "p": 1}]', now=100.0)
    assert prices.kept(150.0) == {}
    assert (prices.last("BTC", 150.0), prices.last("XRP", 150.0)) == (D(5), None)
    assert prices.kept(160.0) == {"BTC": ("5", 60.0)}
    prices.learn(ONE, SYMBOL_PRICE, says(1, "XRP"), now=155.0)
    assert prices.kept(160.0) == {"BTC": ("5", 60.0), "XRP": ("1", 5.0)}
    later.restore(
        {**prices.kept(160.0), "OLD": ("7", 4000.0), "BAD": ("x", 0.0), "SOON": ("8", -9.0)}, 1000.0
    )
    found = {symbol: later.last(symbol, 1000.0) for symbol in ("BTC", "OLD", "BAD", "SOON", "ETH")}
    assert found == {"BTC": D(5), "OLD": None, "BAD": None, "SOON": D(8), "ETH": None}
    assert later.last("SOON", 4601.0) is None  # its age is not below zero
    later.learn(LIST, SYMBOL_PRICE, says(6), now=1001.0)
    assert later.last("BTC", 1001.0) == D(6)


def test_a_price_is_fresh_for_a_minute_and_a_reply_is_looked_into_only_where_none_is() -> None:
    prices = Prices()
    assert not prices.is_fresh("BTC", 100.0)
    prices.learn(LIST, SYMBOL_PRICE, says(5), now=100.0)
    assert prices.is_fresh("BTC", 159.9)
    prices.learn(LIST, SYMBOL_PRICE, says(6), now=159.0)
    assert prices.is_fresh("BTC", 160.0)
    assert not prices.is_fresh("BTC", 219.0)


def test_symbols_that_orders_asked_for_take_bounded_room_and_the_latest_stay() -> None:
    prices = Prices()
    for number in range(80):
        assert prices.last(f"S{number}", 0.0) is None
        prices.last("S0", 0.0)
    assert (len(prices.wanted), "S0" in prices.wanted, "S79" in prices.wanted) == (50, True, True)


@pytest.mark.parametrize(
    ("server_now", "is_full"), [(1000.0, True), (1005.0, True), (87_000.0, True), (88_000.0, False)]
)
def test_what_an_earlier_run_sent_counts_by_the_exchanges_clock(server_now: float, is_full: bool) -> None:
    memory = PolicyMemory()
    memory.remember([Counted("grid", "spot", 1000, 2, D(7)), Counted("grid", "perp", 1000, 1, D(9))])
    assert [memory.is_undated(name) for name in ("spot", "perp", "other")] == [True, True, False]
    memory.date("spot", server_now, 5.0)
    memory.date("spot", server_now, 6.0)
    assert [memory.is_undated(name) for name in ("spot", "perp")] == [False, True]
    usage, policy = memory.usage("grid", "spot"), Policy(max_orders_per_day=2)
    if is_full:
        with pytest.raises(PolicyError, match="2 of 2 orders"):
            begin(usage, policy, 1, 7.0)
        with pytest.raises(PolicyError, match="7 of 7 passed"):
            begin(usage, Policy(max_notional_per_day=D(7)), 1, 7.0, "0.001")
    else:
        begin(usage, policy, 1, 7.0)
    begin(memory.usage("grid", "perp"), ONE_A_DAY, 1, 7.0)


A_DAY = Policy(max_notional_per_day=D(100))


def test_what_orders_of_a_day_are_worth_together_is_bounded() -> None:
    usage = Usage()
    send(usage, A_DAY, 1, 0.0, "60")
    send(usage, A_DAY, 2, 10.0, "39.5")
    with pytest.raises(
        PolicyError, match=r"^99\.5 of 100 passed within a day, which leaves too little"
    ) as refused:
        begin(usage, A_DAY, 1, DAY_S - 1, "0.50000000000000000000000000000000001")
    assert refused.value.rule == "max_notional_per_day"
    send(usage, A_DAY, 1, DAY_S - 1, "0.5")
    send(usage, A_DAY, 1, DAY_S, "60")


def test_orders_that_wait_are_worth_something_those_that_the_exchange_refused_are_not() -> None:
    usage, both = Usage(), Policy(max_notional_per_day=D(100), max_orders_per_day=3)
    waiting = begin(usage, both, 1, 0.0, "100")
    with pytest.raises(PolicyError, match="100 of 100 passed"):
        begin(usage, both, 1, 1.0, "1")
    usage.ended(waiting, 2.0, is_refused=True)
    refused = begin(usage, both, 1, 3.0, "100")
    usage.ended(refused, None)
    send(usage, both, 1, 4.0, "100")
    with pytest.raises(PolicyError, match="100 of 100 passed"):
        begin(usage, both, 1, 5.0, "1")
    send(usage, both, 1, 5.0, "0")
    with pytest.raises(PolicyError, match="3 of 3 orders"):  # a refused one is an order that was sent
        begin(usage, both, 1, 6.0, "0")


def test_amounts_that_lie_too_far_apart_for_a_sum_are_rounded_up() -> None:
    usage = Usage()
    send(usage, A_DAY, 1, 0.0, "1")
    send(usage, A_DAY, 1, 0.0, "1e-9999")
    with pytest.raises(PolicyError):
        begin(usage, A_DAY, 1, 1.0, "99")
    send(usage, A_DAY, 1, DAY_S + 20, "100")
