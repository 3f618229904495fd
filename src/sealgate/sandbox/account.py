"""What a user has: USDC, tokens, positions, resting orders. In memory, and stored after each request."""

import logging
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal

from sealgate.sandbox.market import Market
from sealgate.sandbox.records import Holdings, Order
from sealgate.sandbox.store import Store

ZERO = Decimal(0)
DEFAULT_LEVERAGE = 10

logger = logging.getLogger("sealgate.sandbox")


@dataclass(slots=True)
class Margin:
    """How a user trades one symbol."""

    leverage: int
    is_cross: bool


def _zeros() -> defaultdict[str, Decimal]:
    return defaultdict(Decimal)


@dataclass(slots=True)
class Account:
    """One user's holdings. `positions` are signed sizes; `resting` is the notional of open orders.

    Each move of a price settles the gains and losses of positions in USDC at once. `changed` has the ids of
    the orders whose record in the store is out of date.
    """

    address: str
    market: Market
    usdc: Decimal
    has_transferred: bool = False
    next_nonce: int = 0
    orders: dict[int, Order] = field(default_factory=dict)
    positions: defaultdict[str, Decimal] = field(default_factory=_zeros)
    resting: defaultdict[str, Decimal] = field(default_factory=_zeros)
    tokens: defaultdict[str, Decimal] = field(default_factory=_zeros)
    margins: dict[str, Margin] = field(default_factory=dict)
    changed: set[int] = field(default_factory=set)

    def margin(self, symbol: str) -> Margin:
        """Give the leverage in force; the default is capped by what the symbol allows."""
        listed = self.market.symbols[symbol]
        default = Margin(min(DEFAULT_LEVERAGE, listed.max_leverage), not listed.only_isolated)
        return self.margins.setdefault(symbol, default)

    def rest(self, order: Order) -> None:
        """Put an order on the book."""
        self.orders[order.order_id] = order
        self.resting[order.symbol] += order.notional
        self.changed.add(order.order_id)

    def take_off(self, order_id: int) -> Order:
        """Take an order off the book."""
        order = self.orders.pop(order_id)
        self.resting[order.symbol] -= order.notional
        self.changed.add(order_id)
        return order

    def fill(self, order: Order, size: Decimal) -> Order:
        """Fill a resting order, or part of it, at its own price; return what is left of it."""
        left = replace(order, size=order.size - size, filled=order.filled + size)
        self.resting[order.symbol] -= size * order.price
        self.changed.add(order.order_id)
        if left.size:
            self.orders[order.order_id] = left
        else:
            del self.orders[order.order_id]
        bought = size if order.is_buy else -size
        self.positions[order.symbol] += bought
        self.usdc += bought * (self.market.symbols[order.symbol].mark - order.price)
        return left

    def needed(self, symbol: str, leverage: int, extra_resting: Decimal, extra_position: Decimal) -> Decimal:
        """Margin that all symbols would need, if this one's leverage, orders or position were to change."""
        rest = sum((self._used(name) for name in self._held() if name != symbol), ZERO)
        position = abs(self.positions[symbol] + extra_position) * self.market.symbols[symbol].mark
        return rest + (self.resting[symbol] + extra_resting + position) / leverage

    def free(self) -> Decimal:
        """USDC that no margin holds."""
        return self.usdc - sum((self._used(name) for name in self._held()), ZERO)

    def holdings(self) -> Holdings:
        """Return all but the orders as a record."""
        return Holdings(
            self.address,
            self.usdc,
            self.has_transferred,
            self.next_nonce,
            tuple((name, str(size)) for name, size in self.positions.items() if size),
            tuple((name, str(amount)) for name, amount in self.tokens.items()),
            tuple((name, margin.leverage, margin.is_cross) for name, margin in self.margins.items()),
        )

    def restore(self, kept: Holdings) -> None:
        """Take up what `holdings` returned."""
        self.usdc, self.has_transferred, self.next_nonce = kept.usdc, kept.has_transferred, kept.next_nonce
        self.positions.update((name, Decimal(size)) for name, size in kept.positions)
        self.tokens.update((name, Decimal(amount)) for name, amount in kept.tokens)
        self.margins.update((name, Margin(leverage, is_cross)) for name, leverage, is_cross in kept.margins)

    def _held(self) -> set[str]:
        return {*self.positions, *self.resting}

    def _used(self, symbol: str) -> Decimal:
        position = abs(self.positions[symbol]) * self.market.symbols[symbol].mark
        return (self.resting[symbol] + position) / self.margin(symbol).leverage


class Accounts:
    """All accounts; one is opened when first looked at."""

    def __init__(self, usdc: int, market: Market, store: Store) -> None:
        self._usdc = usdc
        self._market = market
        self._store = store
        self._accounts: dict[str, Account] = {}
        self._touched: set[str] = set()
        self._saved = {kept.address: kept for kept in store.load(Holdings)}
        for kept in self._saved.values():
            self.of(kept.address).restore(kept)
        for order in sorted(store.load(Order), key=lambda order: order.order_id):
            self.of(order.address).rest(order)
        for account in self._accounts.values():
            account.changed.clear()

    def __iter__(self) -> Iterator[Account]:
        """Give those that were ever opened, to be changed."""
        self._touched.update(self._accounts)
        return iter(self._accounts.values())

    def of(self, address: str) -> Account:
        """Give a user's account, to be changed."""
        self._touched.add(address)
        if address not in self._accounts:
            account = Account(address, self._market, Decimal(self._usdc))
            account.tokens["ETH"] = Decimal(10)
            self._accounts[address] = account
        return self._accounts[address]

    def save(self) -> None:
        """Write what has changed; what cannot be written is logged, and tried again with the next change."""
        touched = [self._accounts[address] for address in self._touched]
        if self._store.is_file:  # else nobody will ever read it
            try:
                self._write(touched)
            except sqlite3.Error as error:
                logger.warning("What users have could not be saved: %s", error)
                return
        for account in touched:
            account.changed.clear()
        self._touched.clear()

    def _write(self, touched: Iterable[Account]) -> None:
        holdings = [account.holdings() for account in touched]
        changed = [kept for kept in holdings if kept != self._saved.get(kept.address)]
        ids = [(account, order_id) for account in touched for order_id in account.changed]
        resting = [account.orders[order_id] for account, order_id in ids if order_id in account.orders]
        gone = [order_id for account, order_id in ids if order_id not in account.orders]
        if changed or ids:
            self._store.save_account((*changed, *resting), gone)
        self._saved.update((kept.address, kept) for kept in changed)

    def reset(self) -> None:
        """Close all accounts; the store must have forgotten them."""
        self._accounts.clear()
        self._touched.clear()
        self._saved.clear()
