"""Policies: hard rules for a bot's orders, which hold even if the bot is faulty.

An order passes only if it can be read completely and every rule of each policy allows it. A bot may have two
policies at an exchange: one for all exchanges, and one for this exchange. Amounts are decimals, compared
exactly and by absolute value. Orders that passed count within any 60 s and any 24 h, separately for each
exchange.
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_UP, Context, Decimal, InvalidOperation
from typing import NamedTuple

from sealgate.errors import Refusal
from sealgate.http.headers import Head
from sealgate.http.target import Target
from sealgate.machine.findings import listed
from sealgate.orders.prices import Prices
from sealgate.venues.order_terms import (
    OrderShape,
    OrderTerms,
    UnreadableError,
    read_orders,
)
from sealgate.venues.routes import Auth, Route

# Size x price has at most 160 digits. A sum of amounts more than 400 digits apart is never rounded down.
EXACT = Context(prec=400, rounding=ROUND_UP, traps=[InvalidOperation])

Amounts = Decimal | Mapping[str, Decimal]  # one amount for all symbols, or amounts by symbol


class PolicyError(Exception):
    """An order may not pass. `rule` is the setting's name, `body` or `route`; `str()` is the cause."""

    def __init__(self, rule: str, why: str) -> None:
        super().__init__(why)
        self.rule = rule


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings of one policy; None: no such rule. `name` is its table below `[bots.NAME]`."""

    symbols: frozenset[str] | None = None
    max_size: Amounts | None = None
    max_notional: Decimal | None = None
    max_notional_per_day: Decimal | None = None
    max_orders_per_minute: int | None = None
    max_orders_per_day: int | None = None
    reduce_only: bool = False
    observe: bool = False
    name: str = "policy"

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that are set."""
        return tuple(name for name in RULES if getattr(self, name))

    @property
    def value_rule(self) -> str | None:
        """The rule that needs the value of each order, None if there is none."""
        if self.max_notional is not None:
            return "max_notional"
        return None if self.max_notional_per_day is None else "max_notional_per_day"

    @property
    def named_symbols(self) -> frozenset[str]:
        """The symbols that it allows; empty if it allows any."""
        sizes = self.max_size if isinstance(self.max_size, Mapping) else {}
        return self.symbols or frozenset(sizes)

    def lacks(self, shape: OrderShape | None) -> str | None:
        """Return a rule that cannot be judged for orders of this shape, None if all can be.

        It is `route` if there is no shape.
        """
        if shape is None:
            return "route"
        if shape.symbol is None and (self.symbols is not None or isinstance(self.max_size, Mapping)):
            return "max_size" if self.symbols is None else "symbols"
        if shape.size is None and self.max_size is not None:
            return "max_size"
        if self.value_rule is not None:
            has_price = shape.symbol is not None or shape.side is not None
            if shape.size is None or shape.in_contracts or not has_price:
                return self.value_rule
        return "reduce_only" if self.reduce_only and shape.reduce_only is None else None


_DAY_S = 86400.0
_COUNTS = {"max_orders_per_minute": 60.0, "max_orders_per_day": _DAY_S}  # of orders, and their spans
RULES = ("symbols", "max_size", "max_notional", "max_notional_per_day", *_COUNTS, "reduce_only")
_UNSIGNED = (Auth.KEY, Auth.OPEN)
ALWAYS = ("body", "route")  # rules that every policy has


def is_judged(route: Route) -> bool:
    """Return whether policies judge the requests of a route.

    They do not judge reads, cancels named in the venue's file, and unsigned requests, such as the start of a
    user stream: no exchange accepts an unsigned order, unless the file states how to read it.
    """
    is_unsigned = route.auth in _UNSIGNED and route.order is None
    return not (route.is_read or route.is_cancel or is_unsigned)


LastPrice = Callable[[str], Decimal | None]  # of a symbol

_NO_PRICE = (
    "every order except a limit buy is valued at the last market price, but the gateway has no price of this "
    "symbol from the last hour, or could not read the last reply with one; let a bot read the exchange's "
    "prices through the gateway"
)


def judge(policy: Policy, orders: Iterable[OrderTerms], last_price: LastPrice) -> Decimal:
    """Return the total value of orders. Raises PolicyError unless each of them may pass.

    It is 0 for a policy without a rule on value; `Usage` checks the totals over time.
    """
    total = Decimal()
    for order in orders:
        # 1. The symbol is on the list.
        if policy.symbols is not None and order.symbol not in policy.symbols:
            raise PolicyError("symbols", "the order's symbol is not on this list")

        # 2. The size is within its maximum.
        if policy.max_size is not None:
            most = policy.max_size
            if not isinstance(most, Decimal):  # faster than a test for Mapping
                if order.symbol is None or order.symbol not in most:
                    raise PolicyError("max_size", "it has no entry for the order's symbol")
                most = most[order.symbol]
            if _size(order) > most:
                raise PolicyError("max_size", f"the size is above {most:f}")

        # 3. The value is within its maximum.
        if (rule := policy.value_rule) is not None:
            value = EXACT.multiply(_size(order), _highest_price(order, last_price, rule))
            if policy.max_notional is not None and value > policy.max_notional:
                raise PolicyError("max_notional", f"size x price is above {policy.max_notional:f}")
            total = EXACT.add(total, value)

        # 4. It reduces a position, if it must.
        if policy.reduce_only and not order.reduces:
            raise PolicyError("reduce_only", "the order is not marked as reduce-only")
    return total


def _highest_price(order: OrderTerms, last_price: LastPrice, rule: str) -> Decimal:
    """Return the price at which to value an order. Raises PolicyError of `rule` if none is known."""
    # Only a limit buy states a highest price: a sell executes at its price or above, a market order at any.
    price = order.price
    if price is not None and order.is_capped:
        return price
    if (last := last_price(order.symbol or "")) is None:
        raise PolicyError(rule, _NO_PRICE)
    return last if price is None else max(price, last)


def _size(order: OrderTerms) -> Decimal:
    """Return the size. Raises PolicyError without one: to some exchanges, none or zero means everything."""
    if not order.size:
        raise PolicyError("body", "the order has no size")
    return order.size


class Used(NamedTuple):
    """A request's use of its bot's policies: the number of orders, and their total value, `notional`."""

    orders: int
    notional: Decimal = Decimal()


class _Window:
    """The amount that passed within a span: orders, or their value.

    The span has 8640 parts, and all orders in a part are dated by its latest one. So the memory of a busy bot
    is bounded, and its orders count too long by up to 10 s per day, never too short.
    """

    def __init__(self, span_s: float) -> None:
        self._span_s, self._part_s = span_s, span_s / 8640
        self._parts: OrderedDict[float, tuple[float, Decimal]] = OrderedDict()  # latest time, amount
        self._total, self._latest = Decimal(), -math.inf

    def count(self, now: float) -> Decimal:
        """Return the amount that passed within the span."""
        while self._parts and next(iter(self._parts.values()))[0] <= now - self._span_s:
            self._total = EXACT.subtract(self._total, self._parts.popitem(last=False)[1][1])
        if not self._parts:
            self._total = Decimal()  # drop rounding errors of sums
        return self._total

    def add(self, at: float, amount: Decimal) -> None:
        """Count an amount; one older than the latest gets the date of the latest."""
        at = max(at, self._latest)
        self._latest = at
        part = at // self._part_s
        if part not in self._parts:
            self.count(at)  # forgets old parts, even if `count` is never called
        _, before = self._parts.get(part, (at, Decimal()))
        self._parts[part] = at, EXACT.add(before, amount)
        self._total = EXACT.add(self._total, amount)


class Usage:
    """A bot's use of its policies at an exchange, and how often each rule refused an order.

    It survives changes of the policies. `now` is monotonic.
    """

    def __init__(self) -> None:
        self._orders = {rule: _Window(span_s) for rule, span_s in _COUNTS.items()}
        self._notional = _Window(_DAY_S)
        self._waiting = Used(0)
        self.refusals: Counter[str] = Counter()

    def check(self, policy: Policy, asked: Used, now: float) -> None:
        """Raise PolicyError if a rule leaves no room for these orders.

        Waiting orders count as well, or the orders of many minutes could be sent at once.
        """
        waiting = self._waiting
        for rule, window in self._orders.items():
            most: int | None = getattr(policy, rule)
            if most is not None and (so_far := window.count(now) + waiting.orders) + asked.orders > most:
                raise PolicyError(rule, f"{so_far} of {most} orders passed within {_span(rule)}")
        if (limit := policy.max_notional_per_day) is not None:
            worth = EXACT.add(self._notional.count(now), waiting.notional)
            if EXACT.add(worth, asked.notional) > limit:
                told = f"{worth:.9g} of {limit:f} passed within a day, which leaves too little for the order"
                raise PolicyError("max_notional_per_day", told)

    def begin(self, used: Used) -> None:
        """Count orders as passed, until `ended`."""
        self._waiting = Used(
            self._waiting.orders + used.orders, EXACT.add(self._waiting.notional, used.notional)
        )

    def ended(self, used: Used, sent_at: float | None, *, is_refused: bool = False) -> None:
        """Date orders by their last attempt; None: they were never sent, and no longer count.

        Orders refused by the exchange count as sent, with a value of 0.
        """
        self.begin(Used(-used.orders, used.notional.copy_negate()))
        if sent_at is not None:
            self.restore(sent_at, Used(used.orders) if is_refused else used)

    def restore(self, at: float, used: Used) -> None:
        """Count orders sent at `at`; call it for earlier ones first."""
        for window in self._orders.values():
            window.add(at, Decimal(used.orders))
        if used.notional:
            self._notional.add(at, used.notional)


def words(policy: Policy) -> str:
    """Return the policy in one sentence."""
    size, symbols = policy.max_size, policy.named_symbols
    may = "reduce-only orders" if policy.reduce_only else "orders"
    parts = [f"{may} in {listed(sorted(symbols)) if symbols else 'any symbol'}"]
    if isinstance(size, Mapping):
        parts.append(f"of at most {listed(sorted(f'{most:f} {name}' for name, most in size.items()))}")
    elif size is not None:
        parts.append(f"of at most {size:f}")
    if policy.max_notional is not None:
        parts.append(f"worth at most {policy.max_notional:f}")
    if policy.max_notional_per_day is not None:
        parts.append(f"together worth at most {policy.max_notional_per_day:f} a day")
    parts += [
        f"at most {most} {_span(rule)}" for rule in _COUNTS if (most := getattr(policy, rule)) is not None
    ]
    text = ", ".join(parts)
    return f"would be held to {text}; nothing is refused (observe)" if policy.observe else f"may send {text}"


def _span(rule: str) -> str:
    return f"a {rule.rpartition('_')[2]}"


class Passed(NamedTuple):
    """An order that passed: its use of policies, and why a policy in dry run would have refused it.

    `used` is None where it does not count.
    """

    used: Used | None
    observed: str | None = None


class Guard:
    """The policies of a bot at one exchange; its `usage` and the prices survive a reload."""

    def __init__(self, policies: Sequence[Policy], usage: Usage, prices: Prices) -> None:
        self.policies = policies
        self.usage = usage
        self._prices = prices
        self._enforces = not all(policy.observe for policy in policies)

    def admit(self, route: Route, target: Target, head: Head, body: bytes, now: float) -> Passed:
        """Admit a request that all policies allow, else raise Refusal `policy_refused`.

        Pass the result to `Usage.ended`. A request that only a policy in dry run would refuse passes; if all
        policies are in dry run, it does not count either, as if it had been refused.
        """
        used, observed = Used(0), None
        for policy in self.policies:
            try:
                shape = _judgeable(policy, route, target)
                orders = read_orders(shape, target.query, body, head)
                worth = judge(policy, orders, lambda symbol: self._prices.last(symbol, now))
                asked = Used(len(orders), worth)
                self.usage.check(policy, asked, now)
            except UnreadableError as error:
                rule, why = "body", f"the order cannot be judged: {error}"
            except PolicyError as error:
                rule, why = error.rule, str(error)
            else:
                used = max(used, asked)  # both see the same orders, but one may have no rule on value
                continue
            self.usage.refusals[rule] += 1
            told = f"{policy.name}.{rule}: {why}."
            if not policy.observe:
                raise Refusal("policy_refused", told)
            observed = observed or f"Not refused, because {policy.name}.observe is set: {told}"
        if observed is not None and not self._enforces:
            return Passed(None, observed)
        self.usage.begin(used)
        return Passed(used, observed)


def _judgeable(policy: Policy, route: Route, target: Target) -> OrderShape:
    """Return the shape of a route's orders. Raises PolicyError if it lacks what the policy needs."""
    if route.order is None:  # name the path, because the log calls every unknown route `other`
        raise PolicyError("route", f"the venue's file does not describe orders to {target.shown}")
    if (lacking := policy.lacks(route.order)) is not None:
        raise PolicyError(lacking, "the venue's file does not say where the orders of this route state it")
    return route.order


@dataclass(frozen=True, slots=True)
class Checks:
    """Extra checks that only some requests need.

    `prices` learn from its reply. `valid_ms` is how long an order may be executed after its head was read; 0:
    as long as its timestamp allows. `trade_if` is what the body must state because the bot lacks `keys`.
    """

    guard: Guard | None = None
    prices: Prices | None = None
    valid_ms: int = 0
    trade_if: OrderShape | None = None


class Counted(NamedTuple):
    """Orders that a bot sent to an exchange in one second of its time, epoch seconds."""

    bot: str
    exchange: str
    at_s: int
    orders: int
    notional: Decimal


class PolicyMemory:
    """State that survives a reload: each bot's use of its policies at each exchange, and the prices."""

    def __init__(self) -> None:
        self._usage: dict[tuple[str, str], Usage] = {}
        self._undated: dict[str, list[Counted]] = {}  # by exchange
        self.prices: dict[str, Prices] = {}

    def remember(self, earlier: Iterable[Counted]) -> None:
        """Remember the orders of an earlier run, the oldest first.

        They count once their exchange's time is known: this machine's clock may be days off at a start.
        """
        for one in earlier:
            self._undated.setdefault(one.exchange, []).append(one)

    def is_undated(self, exchange: str) -> bool:
        """Whether remembered orders to an exchange still wait for its time."""
        return exchange in self._undated

    def date(self, exchange: str, server_now: float, now: float) -> None:
        """Count an exchange's remembered orders, each at the end of its second, so never too short."""
        for one in self._undated.pop(exchange, ()):
            age_s = max(0.0, server_now - one.at_s - 1)
            self.usage(one.bot, exchange).restore(now - age_s, Used(one.orders, one.notional))

    def usage(self, bot: str, exchange: str) -> Usage:
        """Return a bot's use of its policies at an exchange."""
        return self._usage.setdefault((bot, exchange), Usage())

    def guard(self, bot: str, policies: Sequence[Policy], exchange: str, place: str) -> Guard:
        """Return the guard for a bot's policies at an exchange; `place` identifies its prices."""
        usage = self.usage(bot, exchange)
        for rule in (*(rule for policy in policies for rule in policy.rules), *ALWAYS):
            usage.refusals.setdefault(rule, 0)  # so that a metric shows the first one as a step
        return Guard(policies, usage, self.prices.setdefault(place, Prices()))
