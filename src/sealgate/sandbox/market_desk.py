"""The market's calls: what is listed; and under /_sandbox, prices that move and orders that fill."""

from collections.abc import Iterator
from decimal import Decimal

from sealgate.sandbox.account import ZERO, Account, Accounts
from sealgate.sandbox.catalogue import ApiError
from sealgate.sandbox.clock import Moment
from sealgate.sandbox.market import Market, plain
from sealgate.sandbox.message import Call
from sealgate.sandbox.models.control import Fill, FillOrder, MarketChange, MarketReply, SetPrice
from sealgate.sandbox.models.trading import SpotSymbolList, SymbolList
from sealgate.sandbox.models.wire import Nothing
from sealgate.sandbox.orders import checked_price, checked_size, fills, listed
from sealgate.sandbox.records import Order
from sealgate.sandbox.stream import Streams
from sealgate.sandbox.validation import invalid_field


class MarketDesk:
    """Shows the market, and moves it."""

    def __init__(self, market: Market, accounts: Accounts, streams: Streams) -> None:
        self._market = market
        self._accounts = accounts
        self._streams = streams

    def symbols(self, _: Call[Nothing]) -> SymbolList:
        """List perpetual markets."""
        return SymbolList(symbols=[one.info() for one in self._market.symbols.values() if one.is_listed])

    def pairs(self, _: Call[Nothing]) -> SpotSymbolList:
        """List spot pairs."""
        return SpotSymbolList(symbols=[pair.info() for pair in self._market.pairs.values()])

    def change(self, call: Call[MarketChange]) -> MarketReply:
        """Set a price, which fills the resting orders that it reaches; or fill an order, or part of it."""
        change, now = call.input.root, call.now
        return self._fill(change, now) if isinstance(change, FillOrder) else self._set_price(change, now)

    def _set_price(self, change: SetPrice, now: Moment) -> MarketReply:
        pair = self._market.pairs.get(change.symbol)
        listed_one = pair or listed(self._market, change.symbol)
        price = checked_price(change.price, listed_one.tick)
        self._market.set_price(change.symbol, price)
        moved = ZERO if pair else price - listed_one.mark
        filled = [
            self._filled(account, order, order.size, now)
            for account in self._accounts
            for order in self._follow(account, change.symbol, moved)
        ]
        return MarketReply(symbol=change.symbol, mark_price=plain(price), fills=filled)

    def _follow(self, account: Account, symbol: str, moved: Decimal) -> Iterator[Order]:
        """Let an account gain or lose by a move, and yield its orders that the price has reached."""
        account.usdc += account.positions.get(symbol, ZERO) * moved
        for order in [one for one in account.orders.values() if one.symbol == symbol]:
            if fills(self._market, order):
                yield order

    def _fill(self, change: FillOrder, now: Moment) -> MarketReply:
        account, order = self._find(change.order_id)
        symbol = self._market.symbols[order.symbol]
        size = order.size
        if change.fill is not None:
            size = checked_size(change.fill, symbol.size_decimals)
        if size > order.size:
            raise invalid_field("body", "fill", message=f"Of this order {plain(order.size)} is left")
        fill = self._filled(account, order, size, now)
        return MarketReply(symbol=symbol.name, mark_price=plain(symbol.mark), fills=[fill])

    def _find(self, order_id: int) -> tuple[Account, Order]:
        for account in self._accounts:
            if (order := account.orders.get(order_id)) is not None:
                return account, order
        raise ApiError("order_gone")

    def _filled(self, account: Account, order: Order, size: Decimal, now: Moment) -> Fill:
        left = account.fill(order, size)
        self._streams.filled(left, size, order.price, now)
        return Fill(order_id=order.order_id, size=plain(size), left=plain(left.size))
