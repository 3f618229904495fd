"""Policies: hard limits on a bot's orders that no fault of the bot can lift.

An order passes only if all of it was read and every rule of the policy allows it. Amounts are decimals,
compared exactly and by absolute value. Orders that passed count within any 60 s and any 24 h.
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal, InvalidOperation
from typing import NamedTuple

from sealgate.errors import Refusal
from sealgate.http.headers import Head
from sealgate.http.target import Target
from sealgate.orders.prices import Prices
from sealgate.venues.order_terms import (
    OrderShape,
    OrderTerms,
    UnreadableError,
    read_orders,
)
from sealgate.venues.routes import Auth, Route

_EXACT = Context(prec=400, traps=[InvalidOperation])  # size x price has at most 160 digits

Amounts = Decimal | Mapping[str, Decimal]  # one for all symbols, or by symbol


class PolicyError(Exception):
    """An order may not pass. `rule` is the setting's name, `body` or `route`; `str()` gives the cause."""

    def __init__(self, rule: str, why: str) -> None:
        super().__init__(why)
        self.rule = rule


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings of `[bots.NAME.policy]`; None: no such rule."""

    symbols: frozenset[str] | None = None
    max_size: Amounts | None = None
    max_notional: Decimal | None = None
    max_orders_per_minute: int | None = None
    max_orders_per_day: int | None = None
    reduce_only: bool = False
    observe: bool = False

    @property
    def rules(self) -> tuple[str, ...]:
        """The settings that refuse something."""
        return tuple(name for name in RULES if getattr(self, name))

    @property
    def named_symbols(self) -> frozenset[str]:
        """The symbols that it names; empty if it allows any."""
        sizes = self.max_size if isinstance(self.max_size, Mapping) else {}
        return self.symbols or frozenset(sizes)

    def lacks(self, shape: OrderShape | None) -> str | None:
        """Return the setting that cannot be judged of orders of this shape, None if all can.

        It is `route` if there is no shape.
        """
        if shape is None:
            return "route"
        if shape.symbol is None and (self.symbols is not None or isinstance(self.max_size, Mapping)):
            return "max_size" if self.symbols is None else "symbols"
        if shape.size is None and self.max_size is not None:
            return "max_size"
        if self.max_notional is not None:
            has_price = shape.symbol is not None or shape.side is not None
            if shape.size is None or shape.in_contracts or not has_price:
                return "max_notional"
        return "reduce_only" if self.reduce_only and shape.reduce_only is None else None


_LIMITS = {"max_orders_per_minute": 60.0, "max_orders_per_day": 86400.0}  # and their spans in seconds
RULES = ("symbols", "max_size", "max_notional", *_LIMITS, "reduce_only")
_UNSIGNED = (Auth.KEY, Auth.OPEN)
ALWAYS = ("body", "route")  # rules that every policy has


def is_judged(route: Route) -> bool:
    """Ask whether a policy judges the requests of a route.

    It does not judge reads, cancels that the venue's file names, and unsigned requests, such as the start of
    a stream of reports: no exchange accepts an unsigned order, unless the file states how to read it.
    """
    is_unsigned = route.auth in _UNSIGNED and route.order is None
    return not (route.is_read or route.is_cancel or is_unsigned)


LastPrice = Callable[[str], Decimal | None]  # of a symbol

_NO_PRICE = (
    "every order except a limit buy is valued at the last market price, but the gateway has no price of this "
    "symbol from the last hour, or could not read the last reply with one; let a bot read the exchange's "
    "prices through the gateway"
)


def judge(policy: Policy, orders: Iterable[OrderTerms], last_price: LastPrice) -> None:
    """Raise PolicyError unless each order may pass; how many there were is for `Usage`."""
    for order in orders:
        # 1. The symbol is on the list.
        if policy.symbols is not None and order.symbol not in policy.symbols:
            raise PolicyError("symbols", "the order's symbol is not on this list")

        # 2. The size is within its maximum.
        if policy.max_size is not None:
            most = policy.max_size
            if not isinstance(most, Decimal):  # quicker than to ask for a Mapping
                if order.symbol is None or order.symbol not in most:
                    raise PolicyError("max_size", "it has no entry for the order's symbol")
                most = most[order.symbol]
            if _size(order) > most:
                raise PolicyError("max_size", f"the size is above {most:f}")

        # 3. The value is within its maximum.
        if policy.max_notional is not None:
            value = _EXACT.multiply(_size(order), _highest_price(order, last_price))
            if value > policy.max_notional:
                raise PolicyError("max_notional", f"size x price is above {policy.max_notional:f}")

        # 4. It reduces a position, if it must.
        if policy.reduce_only and not order.reduces:
            raise PolicyError("reduce_only", "the order is not marked as reduce-only")


def _highest_price(order: OrderTerms, last_price: LastPrice) -> Decimal:
    """Return the price by which an order is valued. Raises PolicyError if none is known."""
    # Only a limit buy has a highest price of its own: a sell executes at its price or above, a market order
    # at any.
    price = order.price
    if price is not None and order.is_capped:
        return price
    if (last := last_price(order.symbol or "")) is None:
        raise PolicyError("max_notional", _NO_PRICE)
    return last if price is None else max(price, last)


def _size(order: OrderTerms) -> Decimal:
    """Return the size. Raises PolicyError without one: some exchanges take none, or zero, for everything."""
    if not order.size:
        raise PolicyError("body", "the order has no size")
    return order.size


class Passed(NamedTuple):
    """`orders` orders, sent at time `at`."""

    at: float
    orders: int


class _Window:
    """How many orders passed within a span.

    The span has 8640 parts, and all orders of a part count as of its latest one. So a busy bot needs bounded
    memory, and its orders count by up to 10 s of a day too long, never too short.
    """

    def __init__(self, span_s: float) -> None:
        self._span_s, self._part_s = span_s, span_s / 8640
        self._parts: OrderedDict[float, list[float]] = OrderedDict()  # [time of the latest order, how many]
        self._total, self._latest = 0, -math.inf

    def count(self, now: float) -> int:
        """Return how many orders passed within the span."""
        while self._parts and next(iter(self._parts.values()))[0] <= now - self._span_s:
            self._total -= int(self._parts.popitem(last=False)[1][1])
        return self._total

    def add(self, at: float, orders: int) -> None:
        """Count orders; those that are older than the latest are dated as that one."""
        at = max(at, self._latest)
        self._latest = at
        part = at // self._part_s
        counted = self._parts.get(part)
        if counted is None:
            self.count(at)  # forgets what is over, even if nobody asks
            self._parts[part] = [at, orders]
        else:
            counted[0] = at
            counted[1] += orders
        self._total += orders


class Usage:
    """What a bot has used of its policy, and how often each rule refused an order; it outlives the policy."""

    def __init__(self) -> None:
        self._windows = {rule: _Window(span_s) for rule, span_s in _LIMITS.items()}
        self._waiting = 0
        self.refusals: Counter[str] = Counter()

    def count(self, policy: Policy, orders: int, now: float) -> int:
        """Let so many orders pass until `ended`, or raise PolicyError; `now` never goes back.

        Orders that wait count as well, or those of many minutes could be sent at once.
        """
        for rule, window in self._windows.items():
            most: int | None = getattr(policy, rule)
            if most is not None and (so_far := window.count(now) + self._waiting) + orders > most:
                raise PolicyError(rule, f"{so_far} of {most} orders passed within {_span(rule)}")
        self._waiting += orders
        return orders

    def ended(self, orders: int, sent_at: float | None) -> None:
        """Date so many orders by when they were last sent; None: never, so that they no longer count."""
        self._waiting -= orders
        if sent_at is not None:
            self.restore((Passed(sent_at, orders),))

    def restore(self, earlier: Iterable[Passed]) -> None:
        """Count orders that passed, the oldest first."""
        for at, orders in earlier:
            for window in self._windows.values():
                window.add(at, orders)


def words(policy: Policy) -> str:
    """Return what a bot may order, in one sentence."""
    size, symbols = policy.max_size, policy.named_symbols
    may = "reduce-only orders" if policy.reduce_only else "orders"
    parts = [f"{may} in {_listed(symbols) if symbols else 'any symbol'}"]
    if isinstance(size, Mapping):
        parts.append(f"of at most {_listed(f'{most:f} {name}' for name, most in size.items())}")
    elif size is not None:
        parts.append(f"of at most {size:f}")
    if policy.max_notional is not None:
        parts.append(f"worth at most {policy.max_notional:f}")
    parts += [
        f"at most {most} {_span(rule)}" for rule in _LIMITS if (most := getattr(policy, rule)) is not None
    ]
    text = ", ".join(parts)
    return f"would be held to {text}; nothing is refused (observe)" if policy.observe else f"may send {text}"


def _span(rule: str) -> str:
    return f"a {rule.rpartition('_')[2]}"


def _listed(names: Iterable[str]) -> str:
    *others, last = sorted(names)
    return f"{', '.join(others)} and {last}" if others else last


class Guard:
    """A bot's policy in force; its `usage` and the prices outlive it."""

    def __init__(self, policy: Policy, usage: Usage, prices: Prices) -> None:
        self.policy = policy
        self.usage = usage
        self._prices = prices

    def admit(self, route: Route, target: Target, head: Head, body: bytes, now: float) -> int | str:
        """Let a request pass, or raise Refusal `policy_refused`.

        Return how many orders it has, for `Usage.ended`; or why it would be refused, if the policy only
        observes.
        """
        try:
            shape = _judgeable(self.policy, route, target)
            orders = read_orders(shape, target.query, body, head)
            judge(self.policy, orders, lambda symbol: self._prices.last(symbol, now))
            return self.usage.count(self.policy, len(orders), now)
        except UnreadableError as error:
            rule, why = "body", f"the order cannot be judged: {error}"
        except PolicyError as error:
            rule, why = error.rule, str(error)
        self.usage.refusals[rule] += 1
        refusal = f"policy.{rule}: {why}."
        if self.policy.observe:
            return f"Not refused, as policy.observe is set: {refusal}"
        raise Refusal("policy_refused", refusal)


def _judgeable(policy: Policy, route: Route, target: Target) -> OrderShape:
    """Return how a route's orders are read. Raises PolicyError if the policy needs more than is read."""
    if route.order is None:  # with the path, because the log names every unknown route `other`
        raise PolicyError("route", f"the venue's file does not say how orders to {target.shown} are read")
    if (lacking := policy.lacks(route.order)) is not None:
        raise PolicyError(lacking, "the venue's file does not say where the orders of this route state it")
    return route.order


@dataclass(frozen=True, slots=True)
class Checks:
    """Extra checks that only some requests need.

    `prices` learn from its reply. `valid_ms` is how long after its head was read an order may be executed, 0:
    as long as its timestamp allows. `trade_if` is what the body must state, because the bot lacks `keys`.
    """

    guard: Guard | None = None
    prices: Prices | None = None
    valid_ms: int = 0
    trade_if: OrderShape | None = None


@dataclass(slots=True, eq=False)
class PolicyMemory:
    """What outlives a reload: what each bot has used of its policy, and the prices of each exchange.

    `undated` are the orders of an earlier run, the oldest first: the bot, the exchange's epoch second, how
    many. They count once the exchange's time is known: this machine's clock may be days off at a start.
    """

    undated: list[tuple[str, int, int]] = field(default_factory=list)
    usage: dict[str, Usage] = field(default_factory=dict)
    prices: dict[str, Prices] = field(default_factory=dict)

    def date(self, server_now: float, now: float) -> None:
        """Count the undated orders, each as of the end of its second: too long rather than too short."""
        for bot, at_s, orders in self.undated:
            age_s = max(0.0, server_now - at_s - 1)
            self.usage.setdefault(bot, Usage()).restore((Passed(now - age_s, orders),))
        self.undated = []

    def guard(self, bot: str, policy: Policy, exchange: str) -> Guard:
        """Put a bot's policy in force."""
        usage = self.usage.setdefault(bot, Usage())
        for rule in (*policy.rules, *ALWAYS):
            usage.refusals.setdefault(rule, 0)  # so that a metric shows the first one as a step
        return Guard(policy, usage, self.prices.setdefault(exchange, Prices()))
