"""Trading: shapes that spec.md does not show. Amounts are decimal strings; plain numbers are taken too."""

from typing import Annotated, Literal

from pydantic import Field

from sealgate.sandbox.models.wire import Wire

# A malformed amount is a 400 of the catalogue ("Order has invalid price"), so any string passes validation.
Amount = Annotated[
    Annotated[str, Field(max_length=80)] | int | float,
    Field(description="a decimal number, best as a string"),
]
Symbol = Annotated[str, Field(max_length=64)]
Side = Literal["buy", "sell"]
OrderId = Annotated[int, Field(ge=1, le=2**53)]
Address = Annotated[str, Field(max_length=100, description="must be the key's own address (rule 8)")]


class ServerTime(Wire):
    """Reply of GET /time."""

    server_time: int = Field(description="milliseconds since 1970")


class SymbolInfo(Wire):
    """One perpetual market."""

    symbol: str
    tick_size: str
    size_decimals: int
    min_notional: str
    maxLeverage: int  # noqa: N815 - spec.md writes it so
    mark_price: str
    is_halted: bool
    only_isolated: bool


class SymbolList(Wire):
    """Reply of GET /symbols/list."""

    symbols: list[SymbolInfo]


class SpotSymbolInfo(Wire):
    """One spot pair."""

    symbol: str
    base: str
    quote: str
    tick_size: str
    size_decimals: int
    mark_price: str


class SpotSymbolList(Wire):
    """Reply of GET /spot/symbols/list."""

    symbols: list[SpotSymbolInfo]


class PlaceOrder(Wire):
    """Body of POST /order."""

    symbol: Symbol
    side: Side
    size: Amount
    price: Amount
    client_order_id: Annotated[str, Field(max_length=64)] | None = None
    user_address: Address | None = None


class OrderReply(Wire):
    """An order was placed, replaced or canceled."""

    order_id: int
    status: Literal["open", "filled", "canceled"]
    client_order_id: str | None


class ModifyOrder(Wire):
    """Body of POST /order/modify: the order gets a new id, the old one is dead."""

    order_id: OrderId
    price: Amount
    size: Amount
    user_address: Address | None = None


class CancelOrder(Wire):
    """Body of POST /order/cancel."""

    order_id: OrderId
    user_address: Address | None = None


class OpenOrdersQuery(Wire):
    """Query of GET /user/{address}/openOrders."""

    symbol: Symbol | None = None
    limit: Annotated[int, Field(ge=1, le=10_000)] | None = None


class OpenOrder(Wire):
    """One resting order."""

    order_id: int
    symbol: str
    side: Side
    size: str = Field(description="what is left of it")
    filled_size: str
    price: str
    client_order_id: str | None
    created_at: str


class OpenOrders(Wire):
    """Reply of GET /user/{address}/openOrders, oldest first."""

    orders: list[OpenOrder]


class Position(Wire):
    """One open position; `size` is negative for a short one."""

    symbol: str
    size: str
    mark_price: str
    leverage: int
    is_cross: bool


class Positions(Wire):
    """Reply of GET /user/{addr}/positions."""

    positions: list[Position]


class ClosePosition(Wire):
    """Body of POST /position/close; omit `size` for a full close."""

    symbol: Symbol
    size: Amount | None = None
    user_address: Address | None = None


class ClosedPosition(Wire):
    """Reply of POST /position/close."""

    order_id: int
    closed_size: str
    left_size: str


class SetLeverage(Wire):
    """Body of POST /leverage."""

    symbol: Symbol
    leverage: Annotated[int, Field(ge=1)]
    is_cross: bool = True
    user_address: Address | None = None


class LeverageReply(Wire):
    """Reply of POST /leverage, as it now stands."""

    symbol: str
    leverage: int
    is_cross: bool


class SpotOrder(Wire):
    """Body of POST /spot/order; it fills at once, at the mark price."""

    symbol: Symbol
    side: Side
    size: Amount
    user_address: Address | None = None


class SpotBalance(Wire):
    """Reply of GET /spot/balance/{address}."""

    balances: dict[str, str]


class Deposit(Wire):
    """Body of POST /deposit (in the app only)."""

    amount: Amount


class Withdraw(Wire):
    """Body of POST /withdraw (in the app only)."""

    amount: Amount
    nonce: int
    signature: Annotated[str, Field(max_length=200, description="stand-in for EIP-712, see the docs")]


class WalletReply(Wire):
    """Reply of both."""

    usdc: str
    next_nonce: int
