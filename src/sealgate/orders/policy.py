"""What the orders of a bot may be: hard limits that no fault of the bot can lift.

An order passes only where it was read whole and every rule of the policy says so. Amounts are decimals,
compared exactly and by absolute value. What a policy has let pass counts for any 60 s and any 24 h.
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
from sealgate.venues.order_terms import (
    OrderShape,
    OrderTerms,
    PriceShape,
    UnreadableError,
    read_orders,
    read_price,
    read_prices,
)
from sealgate.venues.replies import unpacked
from sealgate.venues.routes import Auth, Route

_EXACT = Context(prec=400, traps=[InvalidOperation])  # size x price has at most 160 digits

Amounts = Decimal | Mapping[str, Decimal]  # one for all symbols, or by symbol


class PolicyError(Exception):
    """An order that may not pass. `rule` is the setting's name, `body` or `route`; `str()` says why."""

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
        """The symbols that its orders may have, as far as it names any."""
        sizes = self.max_size if isinstance(self.max_size, Mapping) else {}
        return self.symbols or frozenset(sizes)

    def lacks(self, shape: OrderShape | None) -> str | None:
        """Return the setting that cannot be judged where orders have this shape, None if all can.

        It is `route` where there is no shape.
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
    """Ask whether a policy speaks of a route.

    It does not of reads, of cancels that the venue's file names, and of what goes unsigned, as the start of a
    stream of reports: an exchange takes no such order, unless the file says how they are read.
    """
    is_unsigned = route.auth in _UNSIGNED and route.order is None
    return not (route.is_read or route.is_cancel or is_unsigned)


LastPrice = Callable[[str], Decimal | None]  # of a symbol


def judge(policy: Policy, orders: Iterable[OrderTerms], last_price: LastPrice) -> None:
    """Raise PolicyError unless each order may pass; how many there were is for `Usage`."""
    for order in orders:
        if policy.symbols is not None and order.symbol not in policy.symbols:
            raise PolicyError("symbols", "the order's symbol is not on this list")
        if policy.max_size is not None:
            _check_size(policy.max_size, order)
        if policy.max_notional is not None:
            _check_notional(policy.max_notional, order, last_price)
        if policy.reduce_only and not order.reduces:
            raise PolicyError("reduce_only", "the order is not marked as reduce-only")


def _check_size(most: Amounts, order: OrderTerms) -> None:
    if not isinstance(most, Decimal):  # quicker than to ask for a Mapping
        if order.symbol is None or order.symbol not in most:
            raise PolicyError("max_size", "it has no entry for the order's symbol")
        most = most[order.symbol]
    if _size(order) > most:
        raise PolicyError("max_size", f"the size is above {most:f}")


def _check_notional(most: Decimal, order: OrderTerms, last_price: LastPrice) -> None:
    price = order.price
    if price is None or not order.is_capped:
        # A sell executes at its price or higher, a market order at any.
        last = last_price(order.symbol or "")
        if last is None:
            raise PolicyError("max_notional", _NO_PRICE)
        price = last if price is None else max(price, last)
    if _EXACT.multiply(_size(order), price) > most:
        raise PolicyError("max_notional", f"size x price is above {most:f}")


_NO_PRICE = (
    "only a limit buy is measured by its own price; for all others the market's is needed, and no price of "
    "this symbol came through the gateway within the last hour, or the last reply with one could not be "
    "read; let a bot read the exchange's prices through the gateway"
)


def _size(order: OrderTerms) -> Decimal:
    """Return the size; without one, or with zero, some exchanges take it for all that there is."""
    if not order.size:
        raise PolicyError("body", "the order has no size")
    return order.size


class Passed(NamedTuple):
    """So many orders that were sent at `at`."""

    at: float
    orders: int


class _Window:
    """How many orders passed within a span, in parts of it: those of one part count as of the latest of them.

    So a busy bot takes bounded room, and its orders count by up to 10 s of a day too long, never too short.
    """

    def __init__(self, span_s: float) -> None:
        self._span_s, self._part_s = span_s, span_s / 8640
        self._parts: OrderedDict[float, list[float]] = OrderedDict()  # the latest of each part, and how many
        self._total, self._latest = 0, -math.inf

    def count(self, now: float) -> int:
        """Return how many orders passed within the span."""
        while self._parts and next(iter(self._parts.values()))[0] <= now - self._span_s:
            self._total -= int(self._parts.popitem(last=False)[1][1])
        return self._total

    def add(self, at: float, orders: int) -> None:
        """Count orders in; those that are older than the latest count as long as that."""
        at = max(at, self._latest)
        self._latest = at
        part = at // self._part_s
        counted = self._parts.get(part)
        if counted is None:
            self.count(at)  # so that it forgets what is over, also where nobody asks
            self._parts[part] = [at, orders]
        else:
            counted[0] = at
            counted[1] += orders
        self._total += orders


class Usage:
    """What a bot has used of its policy, and how often which rule refused it; it outlives the policy."""

    def __init__(self) -> None:
        self._windows = {rule: _Window(span_s) for rule, span_s in _LIMITS.items()}
        self._under_way = 0
        self.refusals: Counter[str] = Counter()

    def count(self, policy: Policy, orders: int, now: float) -> int:
        """Let so many orders pass, or raise PolicyError; `now` never goes back. Each passes until `ended`.

        Those that wait count for as long as they do: else all of many minutes could go at once.
        """
        for rule, window in self._windows.items():
            most: int | None = getattr(policy, rule)
            if most is not None and (so_far := window.count(now) + self._under_way) + orders > most:
                raise PolicyError(rule, f"{so_far} of {most} orders passed within {_span(rule)}")
        self._under_way += orders
        return orders

    def ended(self, orders: int, sent_at: float | None) -> None:
        """Count so many as of when they were last sent; None: never, so that they count no more."""
        self._under_way -= orders
        if sent_at is not None:
            self.restore((Passed(sent_at, orders),))

    def restore(self, earlier: Iterable[Passed]) -> None:
        """Count what passed, the oldest first."""
        for at, orders in earlier:
            for window in self._windows.values():
                window.add(at, orders)


def words(policy: Policy) -> str:
    """Say what a bot may order, in one sentence."""
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


PriceRequest = tuple[str, bytes]  # target and body


class Prices:
    """The last prices that an exchange's replies had.

    A reply is only kept, unless a later one to the same request replaces it, until an order asks for a price.
    So reads cost nothing more, and the bots that poll prices need not be those that have a policy. A reply
    that cannot be read takes back what its request taught before: nobody knows any more what the price is.
    One that is older than an hour is none. `wanted` are the symbols that orders asked for, the latest last.
    """

    def __init__(self) -> None:
        self._unread: dict[PriceRequest, tuple[PriceShape, bytes | None, bytes | None, float]] = {}
        self._texts: dict[str, tuple[str, PriceRequest, float]] = {}  # the one seen last is the last
        self.wanted: dict[str, None] = {}
        self._faults: dict[PriceRequest, bool] = {}  # whether it was reported

    def learn(
        self,
        request: PriceRequest,
        shape: PriceShape,
        body: bytes | None,
        coding: bytes | None = None,
        *,
        now: float,
    ) -> None:
        """Take in a reply that says that all is well; `coding` is its Content-Encoding.

        `body` is None where it was too long to be held, "" where the reply has none and so says nothing.
        """
        if body == b"":
            return
        if body is not None and len(body) > _LONGEST_PRICES:
            body = None
        replaced = self._unread.get(request)
        if body is None and replaced is not None and replaced[1] is not None:
            self.read()  # so that none that is older still takes its place
        self._unread.pop(request, None)
        self._unread[request] = shape, body, coding, now
        if len(self._unread) > _MOST_UNREAD:
            self.read()

    def last(self, symbol: str, now: float) -> Decimal | None:
        """Return the last price of a symbol for an order, None where there is none that may be trusted."""
        if self._unread:
            self.read()
        if symbol not in self.wanted and len(self.wanted) >= _MOST_WANTED:
            del self.wanted[next(iter(self.wanted))]
        self.wanted.pop(symbol, None)
        self.wanted[symbol] = None
        known = self._texts.get(symbol)
        return None if known is None or now - known[2] > _TRUSTED_S else read_price(known[0])

    def is_fresh(self, symbol: str, now: float) -> bool:
        """Ask whether a price of a symbol came within the last minute."""
        if self._came_at(symbol) <= now - FRESH_S and self._unread:
            self.read()
        return self._came_at(symbol) > now - FRESH_S

    def kept(self, now: float) -> dict[str, tuple[str, float]]:
        """Return the prices that orders asked for, and how many seconds old each is, to outlive a restart."""
        if self._unread and self.wanted:
            self.read()
        return {
            symbol: (self._texts[symbol][0], now - self._texts[symbol][2])
            for symbol in self.wanted
            if symbol in self._texts
        }

    def restore(self, kept: Mapping[str, tuple[str, float]], now: float) -> None:
        """Start from what was kept, before the first reply; what is damaged is never a price."""
        for symbol, (text, age_s) in kept.items():
            self.wanted[symbol] = None
            self._texts[symbol] = text, _KEPT, now - max(0.0, age_s)

    def _came_at(self, symbol: str) -> float:
        known = self._texts.get(symbol)
        return -math.inf if known is None else known[2]

    def new_faults(self) -> list[str]:
        """Return the paths of requests whose replies could not be read, each request once."""
        new = [request for request, is_reported in self._faults.items() if not is_reported]
        self._faults |= dict.fromkeys(new, True)
        return [target.partition("?")[0] for target, _ in new]

    def read(self) -> None:
        """Look for prices in the replies that were only kept so far."""
        for request, (shape, body, coding, came_at) in self._unread.items():
            plain = None if body is None else unpacked(body, coding, _LONGEST_PRICES)
            found = {} if plain is None or len(plain) > _LONGEST_PRICES else read_prices(shape, plain)
            if not found:
                self._texts = {name: one for name, one in self._texts.items() if one[1] != request}
                if len(self._faults) < _MOST_UNREAD:
                    self._faults.setdefault(request, False)
            for symbol, text in found.items():
                self._texts.pop(symbol, None)
                self._texts[symbol] = text, request, came_at
        self._unread.clear()
        for symbol in list(self._texts)[:-_MOST_PRICES]:
            del self._texts[symbol]


_LONGEST_PRICES = 256 * 1024  # bytes, unpacked: 5,000 symbols, which take some milliseconds
_MOST_UNREAD = 16
_MOST_PRICES = 10_000
_MOST_WANTED = 50  # symbols whose prices are read and kept for the orders to come
_TRUSTED_S = 3600.0
# The request of a price that outlived a restart: no reply takes it back, a later one replaces it.
_KEPT = ("", b"")
FRESH_S = 60.0


class Guard:
    """A bot's policy in force; `usage` and `prices` outlive it."""

    def __init__(self, policy: Policy, usage: Usage, prices: Prices) -> None:
        self.policy = policy
        self.usage = usage
        self._prices = prices

    def admit(self, route: Route, target: Target, head: Head, body: bytes, now: float) -> int | str:
        """Let a request pass, or raise Refusal `policy_refused`.

        Return how many orders it has, for `Usage.ended`; why it would be refused, where the policy only
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
    if route.order is None:  # its path is said, as the log calls all that no row names `other`
        raise PolicyError("route", f"the venue's file does not say how orders to {target.shown} are read")
    if (lacking := policy.lacks(route.order)) is not None:
        raise PolicyError(lacking, "the venue's file does not say where the orders of this route state it")
    return route.order


@dataclass(frozen=True, slots=True)
class Checks:
    """What is looked at beyond the rules of all, for the few requests that ask for it.

    `prices` are to learn from its reply. `valid_ms` is how long after its head was read an order may be
    executed, 0: as long as its timestamp says. `trade_if`: what the body must say, as the bot lacks `keys`.
    """

    guard: Guard | None = None
    prices: Prices | None = None
    valid_ms: int = 0
    trade_if: OrderShape | None = None


@dataclass(slots=True, eq=False)
class PolicyMemory:
    """What outlives a reload: what each bot has used of its policy, and the prices of each exchange.

    `undated` is what an earlier run sent, the oldest first: the bot, the exchange's epoch second, how many.
    It counts once the exchange's time is known: this machine's clock may be days off at a start.
    """

    undated: list[tuple[str, int, int]] = field(default_factory=list)
    usage: dict[str, Usage] = field(default_factory=dict)
    prices: dict[str, Prices] = field(default_factory=dict)

    def date(self, server_now: float, now: float) -> None:
        """Count what is undated, each as of the end of its second: too long rather than too short."""
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
