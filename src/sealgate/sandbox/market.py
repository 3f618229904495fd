"""The small deterministic market: what is listed, and at which price. Only PUT /_sandbox/market moves one.

Every row of the catalogue that depends on a symbol has one here that deserves it.
"""

from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

from sealgate.sandbox.models.trading import SpotSymbolInfo, SymbolInfo
from sealgate.sandbox.records import Price
from sealgate.sandbox.store import Store

MIN_NOTIONAL = Decimal(10)
LARGEST_EXPONENT = 18
DEPLOYER_PREFIXES = ("xyz:", "cash:", "vntl:")


@dataclass(frozen=True, slots=True)
class Symbol:
    """One perpetual market."""

    name: str
    tick: Decimal
    size_decimals: int
    max_leverage: int
    mark: Decimal
    is_halted: bool = False
    is_listed: bool = True
    only_isolated: bool = False

    @property
    def needs_transfer(self) -> bool:
        """Whether it is a deployer market, which needs a one-time transfer in the app."""
        return self.name.startswith(DEPLOYER_PREFIXES)

    def info(self) -> SymbolInfo:
        """Show it."""
        return SymbolInfo(
            symbol=self.name,
            tick_size=plain(self.tick),
            size_decimals=self.size_decimals,
            min_notional=plain(MIN_NOTIONAL),
            maxLeverage=self.max_leverage,
            mark_price=plain(self.mark),
            is_halted=self.is_halted,
            only_isolated=self.only_isolated,
        )


@dataclass(frozen=True, slots=True)
class Pair:
    """One spot pair; everything is quoted in USDC."""

    name: str
    base: str
    tick: Decimal
    size_decimals: int
    mark: Decimal

    def info(self) -> SpotSymbolInfo:
        """Show it."""
        return SpotSymbolInfo(
            symbol=self.name,
            base=self.base,
            quote="USDC",
            tick_size=plain(self.tick),
            size_decimals=self.size_decimals,
            mark_price=plain(self.mark),
        )


_SYMBOLS = (
    Symbol("BTC", Decimal("0.5"), 5, 40, Decimal(66000)),
    Symbol("ETH", Decimal("0.1"), 4, 25, Decimal(3300)),
    Symbol("SOL", Decimal("0.01"), 2, 20, Decimal(150)),
    Symbol("MEME", Decimal("0.0001"), 0, 3, Decimal("0.25"), only_isolated=True),
    Symbol("FROZEN", Decimal("0.01"), 2, 10, Decimal(20), is_halted=True),
    Symbol("GONE", Decimal("0.01"), 2, 10, Decimal(5), is_listed=False),
    Symbol("xyz:GOLD", Decimal("0.1"), 3, 10, Decimal(2400)),
    Symbol("cash:EUR", Decimal("0.0001"), 1, 20, Decimal("1.1")),
    Symbol("vntl:SPACE", Decimal("0.01"), 2, 5, Decimal(180)),
)
_PAIRS = (
    Pair("ETH/USDC", "ETH", Decimal("0.1"), 4, Decimal(3300)),
    Pair("SOL/USDC", "SOL", Decimal("0.01"), 2, Decimal(150)),
)


class Market:
    """Everything that is listed, at today's prices. The prices that were set are kept in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reset()
        for price in store.load(Price):
            self._set(price)

    def reset(self) -> None:
        """Go back to the first prices; the store must have forgotten the others."""
        self.symbols = {symbol.name: symbol for symbol in _SYMBOLS}
        self.pairs = {pair.name: pair for pair in _PAIRS}

    def set_price(self, name: str, mark: Decimal) -> None:
        """Move a price."""
        price = Price(name, mark)
        self._store.save(price)
        self._set(price)

    def _set(self, price: Price) -> None:
        if (symbol := self.symbols.get(price.symbol)) is not None:
            self.symbols[price.symbol] = replace(symbol, mark=price.mark)
        elif (pair := self.pairs.get(price.symbol)) is not None:
            self.pairs[price.symbol] = replace(pair, mark=price.mark)


def parse_amount(value: str | float) -> Decimal | None:
    """Read a positive decimal number of sane size; None for anything else."""
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    if not amount.is_finite() or amount <= 0:
        return None
    exponent = int(amount.as_tuple().exponent)
    return amount if max(abs(amount.adjusted()), abs(exponent)) <= LARGEST_EXPONENT else None


def plain(amount: Decimal) -> str:
    """Write a number without exponent and without idle zeros."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
