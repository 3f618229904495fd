"""What a user has: USDC, tokens, positions, resting orders. In memory, as long as the process lives."""

from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal

from sealgate.sandbox.market import SYMBOLS

ZERO = Decimal(0)
DEFAULT_LEVERAGE = 10


@dataclass(frozen=True, slots=True)
class Order:
    """A resting order."""

    order_id: int
    symbol: str
    is_buy: bool
    size: Decimal
    price: Decimal
    client_order_id: str | None
    created_ms: int

    @property
    def notional(self) -> Decimal:
        """Its value at its own price."""
        return self.size * self.price


@dataclass(slots=True)
class Margin:
    """How a user trades one symbol."""

    leverage: int
    is_cross: bool


def _zeros() -> defaultdict[str, Decimal]:
    return defaultdict(Decimal)


@dataclass(slots=True)
class Account:
    """One user's holdings. `positions` are signed sizes; `resting` is the notional of open orders."""

    usdc: Decimal
    has_transferred: bool = False
    next_nonce: int = 0
    orders: dict[int, Order] = field(default_factory=dict)
    positions: defaultdict[str, Decimal] = field(default_factory=_zeros)
    resting: defaultdict[str, Decimal] = field(default_factory=_zeros)
    tokens: defaultdict[str, Decimal] = field(default_factory=_zeros)
    margins: dict[str, Margin] = field(default_factory=dict)

    def margin(self, symbol: str) -> Margin:
        """Give the leverage in force; the default is capped by what the symbol allows."""
        listed = SYMBOLS[symbol]
        default = Margin(min(DEFAULT_LEVERAGE, listed.max_leverage), not listed.only_isolated)
        return self.margins.setdefault(symbol, default)

    def rest(self, order: Order) -> None:
        """Put an order on the book."""
        self.orders[order.order_id] = order
        self.resting[order.symbol] += order.notional

    def take_off(self, order_id: int) -> Order:
        """Take an order off the book."""
        order = self.orders.pop(order_id)
        self.resting[order.symbol] -= order.notional
        return order

    def needed(self, symbol: str, leverage: int, extra_resting: Decimal, extra_position: Decimal) -> Decimal:
        """Margin that all symbols would need, if this one's leverage, orders or position were to change."""
        rest = sum((self._used(name) for name in self._held() if name != symbol), ZERO)
        position = abs(self.positions[symbol] + extra_position) * SYMBOLS[symbol].mark
        return rest + (self.resting[symbol] + extra_resting + position) / leverage

    def free(self) -> Decimal:
        """USDC that no margin holds."""
        return self.usdc - sum((self._used(name) for name in self._held()), ZERO)

    def _held(self) -> set[str]:
        return {*self.positions, *self.resting}

    def _used(self, symbol: str) -> Decimal:
        position = abs(self.positions[symbol]) * SYMBOLS[symbol].mark
        return (self.resting[symbol] + position) / self.margin(symbol).leverage


class Accounts:
    """All accounts; one is opened when first looked at."""

    def __init__(self, usdc: int) -> None:
        self._usdc = usdc
        self._accounts: dict[str, Account] = {}

    def of(self, address: str) -> Account:
        """Give a user's account."""
        if address not in self._accounts:
            account = Account(Decimal(self._usdc))
            account.tokens["ETH"] = Decimal(10)
            self._accounts[address] = account
        return self._accounts[address]
