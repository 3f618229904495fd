"""Positions and leverage: list, close, set."""

from collections.abc import Callable

from sealgate.sandbox.account import ZERO, Account, Accounts, Margin
from sealgate.sandbox.catalogue import ApiError
from sealgate.sandbox.market import Symbol, plain
from sealgate.sandbox.message import Call
from sealgate.sandbox.models.trading import (
    ClosedPosition,
    ClosePosition,
    LeverageReply,
    Position,
    Positions,
    SetLeverage,
)
from sealgate.sandbox.models.wire import Nothing
from sealgate.sandbox.orders import checked_size, listed
from sealgate.sandbox.records import Order
from sealgate.sandbox.settings import SandboxSettings
from sealgate.sandbox.stream import Streams


class PositionDesk:
    """The calls on positions."""

    def __init__(
        self, accounts: Accounts, settings: SandboxSettings, next_id: Callable[[], int], streams: Streams
    ) -> None:
        self._accounts = accounts
        self._streams = streams
        self._rejects_cross = settings.cross_on_isolated == "reject"
        self._next_id = next_id

    def list_positions(self, call: Call[Nothing]) -> Positions:
        """List open positions."""
        account = self._accounts.of(call.address)
        names = [name for name, size in account.positions.items() if size]
        return Positions(positions=[_position(account, name) for name in names])

    def close(self, call: Call[ClosePosition]) -> ClosedPosition:
        """Close a position at the mark price, all of it unless a size is given."""
        account = self._accounts.of(call.address)
        symbol = listed(account.market, call.input.symbol)
        held = account.positions[symbol.name]
        if not held:
            raise ApiError("no_position")
        size = abs(held)
        if call.input.size is not None:
            size = checked_size(call.input.size, symbol.size_decimals)
        if size > abs(held):
            raise ApiError("size_exceeds")
        account.positions[symbol.name] = held - size if held > 0 else held + size
        left = account.positions[symbol.name]
        order = Order(
            order_id=self._next_id(),
            address=call.address,
            symbol=symbol.name,
            is_buy=held < 0,
            size=size,
            filled=ZERO,
            price=symbol.mark,
            client_order_id=None,
            created_ms=call.now.server_ms,
        )
        self._streams.filled_at_once(order, symbol.mark, call.now)
        return ClosedPosition(order_id=order.order_id, closed_size=plain(size), left_size=plain(left))

    def set_leverage(self, call: Call[SetLeverage]) -> LeverageReply:
        """Set the leverage of a symbol."""
        account = self._accounts.of(call.address)
        body = call.input
        symbol = listed(account.market, body.symbol)
        if body.leverage > symbol.max_leverage:
            raise ApiError("leverage_exceeds")
        is_cross = self._allowed_cross(symbol, wants_cross=body.is_cross)
        if account.needed(symbol.name, body.leverage, ZERO, ZERO) > account.usdc:
            raise ApiError("margin_short")
        account.margins[symbol.name] = Margin(body.leverage, is_cross)
        return LeverageReply(symbol=symbol.name, leverage=body.leverage, is_cross=is_cross)

    def _allowed_cross(self, symbol: Symbol, *, wants_cross: bool) -> bool:
        """spec.md, Leverage: "the backend corrects this automatically" - or refuses, by option."""
        if wants_cross and symbol.only_isolated and self._rejects_cross:
            raise ApiError("cross_refused")
        return wants_cross and not symbol.only_isolated


def _position(account: Account, name: str) -> Position:
    margin = account.margin(name)
    return Position(
        symbol=name,
        size=plain(account.positions[name]),
        mark_price=plain(account.market.symbols[name].mark),
        leverage=margin.leverage,
        is_cross=margin.is_cross,
    )
