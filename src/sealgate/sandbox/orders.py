"""Perpetual orders: place, modify, cancel, list. The checks are rows of the catalogue, in one fixed order.

An order that reaches the mark price fills at once, at the mark price. Any other rests until it is canceled
or filled through PUT /_sandbox/market.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from sealgate.sandbox.account import ZERO, Account, Accounts
from sealgate.sandbox.catalogue import ApiError
from sealgate.sandbox.clock import Moment
from sealgate.sandbox.market import MIN_NOTIONAL, Market, Symbol, parse_amount, plain
from sealgate.sandbox.message import Call
from sealgate.sandbox.models.trading import (
    CancelOrder,
    ModifyOrder,
    OpenOrders,
    OpenOrdersQuery,
    OrderReply,
    PlaceOrder,
)
from sealgate.sandbox.models.wire import Nothing
from sealgate.sandbox.records import Order
from sealgate.sandbox.settings import SandboxSettings
from sealgate.sandbox.stream import Streams, show_order

LARGEST_ORDER_ID_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Wish:
    """What a bot wants, before it is an order."""

    account: Account
    symbol: str
    is_buy: bool
    size: str | float
    price: str | float
    client_order_id: str | None
    now: Moment


class OrderDesk:
    """The order calls. `next_id` gives numbers that are never given again."""

    def __init__(
        self, accounts: Accounts, settings: SandboxSettings, next_id: Callable[[], int], streams: Streams
    ) -> None:
        self._accounts = accounts
        self._transfer_status = settings.needs_transfer_status
        self._next_id = next_id
        self._streams = streams

    def place(self, call: Call[PlaceOrder]) -> OrderReply:
        """Place an order."""
        body = call.input
        account = self._accounts.of(call.address)
        wish = Wish(
            account, body.symbol, body.side == "buy", body.size, body.price, body.client_order_id, call.now
        )
        order = self._checked(wish)
        check_margin(account, order, "margin_short_to_place")
        return self._enter(account, order, call.now)

    def modify(self, call: Call[ModifyOrder]) -> OrderReply:
        """Replace an order by one with a new id; the old one dies only if the new one passes."""
        account = self._accounts.of(call.address)
        old = _open_order(account, call.input.order_id)
        wish = Wish(
            account, old.symbol, old.is_buy, call.input.size, call.input.price, old.client_order_id, call.now
        )
        order = self._checked(wish)
        account.take_off(old.order_id)
        try:
            check_margin(account, order, "margin_short")
        except ApiError:
            account.rest(old)
            raise
        self._streams.canceled(old, call.now)
        return self._enter(account, order, call.now)

    def cancel(self, call: Call[CancelOrder]) -> OrderReply:
        """Cancel an order."""
        return self._cancel(call, call.input.order_id)

    def cancel_by_path(self, call: Call[Nothing]) -> OrderReply:
        """Cancel the order of the path."""
        text = call.params["order_id"]
        is_number = text.isascii() and text.isdigit() and len(text) <= LARGEST_ORDER_ID_DIGITS
        return self._cancel(call, int(text) if is_number else 0)

    def open_orders(self, call: Call[OpenOrdersQuery]) -> OpenOrders:
        """List resting orders."""
        orders = self._accounts.of(call.address).orders.values()
        wanted = [order for order in orders if call.input.symbol in {None, order.symbol}]
        return OpenOrders(orders=[show_order(order) for order in wanted[: call.input.limit]])

    def _cancel(self, call: Call[Any], order_id: int) -> OrderReply:
        account = self._accounts.of(call.address)
        order = account.take_off(_open_order(account, order_id).order_id)
        self._streams.canceled(order, call.now)
        return _reply(order, "canceled")

    def _enter(self, account: Account, order: Order, now: Moment) -> OrderReply:
        """Fill it or put it on the book."""
        if fills(account.market, order):
            account.positions[order.symbol] += signed_size(order)
            self._streams.filled_at_once(order, account.market.symbols[order.symbol].mark, now)
            return _reply(order, "filled")
        account.rest(order)
        self._streams.placed(order, now)
        return _reply(order, "open")

    def _checked(self, wish: Wish) -> Order:
        symbol = self.tradable(wish.symbol, wish.account)
        price = checked_price(wish.price, symbol.tick)
        size = checked_size(wish.size, symbol.size_decimals)
        if size * price < MIN_NOTIONAL:
            raise ApiError("below_minimum")
        return Order(
            order_id=self._next_id(),
            address=wish.account.address,
            symbol=symbol.name,
            is_buy=wish.is_buy,
            size=size,
            filled=ZERO,
            price=price,
            client_order_id=wish.client_order_id,
            created_ms=wish.now.server_ms,
        )

    def tradable(self, name: str, account: Account) -> Symbol:
        """Find a symbol that this account may trade now."""
        symbol = listed(account.market, name)
        if symbol.is_halted:
            raise ApiError("halted")
        if symbol.needs_transfer and not account.has_transferred:
            raise ApiError("needs_transfer", status=self._transfer_status)
        return symbol


def listed(market: Market, name: str) -> Symbol:
    """Find a listed symbol."""
    symbol = market.symbols.get(name)
    if symbol is None or not symbol.is_listed:
        raise ApiError("symbol_unsupported", symbol=name)
    return symbol


def checked_price(value: str | float, tick: Decimal) -> Decimal:
    """Read a price that is positive and on the tick."""
    price = parse_amount(value)
    if price is None:
        raise ApiError("price_invalid")
    if price % tick:
        raise ApiError("off_tick", tick=plain(tick))
    return price


def checked_size(value: str | float, decimals: int) -> Decimal:
    """Read a size that is positive and has no more decimals than the symbol."""
    size = parse_amount(value)
    if size is None or size % Decimal(1).scaleb(-decimals):
        raise ApiError("size_invalid")
    return size


def fills(market: Market, order: Order) -> bool:
    """Whether it reaches the mark price."""
    mark = market.symbols[order.symbol].mark
    return order.price >= mark if order.is_buy else order.price <= mark


def signed_size(order: Order) -> Decimal:
    """Positive for a buy."""
    return order.size if order.is_buy else -order.size


def check_margin(account: Account, order: Order, slug: str) -> None:
    """Refuse an order that needs more USDC than there is; one that shrinks a position always passes."""
    if fills(account.market, order) and abs(account.positions[order.symbol] + signed_size(order)) < abs(
        account.positions[order.symbol]
    ):
        return
    resting, position = (ZERO, signed_size(order)) if fills(account.market, order) else (order.notional, ZERO)
    leverage = account.margin(order.symbol).leverage
    if account.needed(order.symbol, leverage, resting, position) > account.usdc:
        raise ApiError(slug)


def _reply(order: Order, status: Literal["open", "filled", "canceled"]) -> OrderReply:
    return OrderReply(order_id=order.order_id, status=status, client_order_id=order.client_order_id)


def _open_order(account: Account, order_id: int) -> Order:
    order = account.orders.get(order_id)
    if order is None:
        raise ApiError("order_gone")
    return order
