"""Spot: pairs, orders that fill at once, balances."""

from collections.abc import Callable

from sealgate.sandbox.account import ZERO, Accounts
from sealgate.sandbox.catalogue import ApiError
from sealgate.sandbox.market import MIN_NOTIONAL, plain
from sealgate.sandbox.message import Call
from sealgate.sandbox.models.trading import OrderReply, SpotBalance, SpotOrder
from sealgate.sandbox.models.wire import Nothing
from sealgate.sandbox.orders import checked_size
from sealgate.sandbox.records import Order
from sealgate.sandbox.stream import Streams


class SpotDesk:
    """The spot calls."""

    def __init__(self, accounts: Accounts, next_id: Callable[[], int], streams: Streams) -> None:
        self._accounts = accounts
        self._streams = streams
        self._next_id = next_id

    def order(self, call: Call[SpotOrder]) -> OrderReply:
        """Buy or sell spot."""
        account = self._accounts.of(call.address)
        pair = account.market.pairs.get(call.input.symbol)
        if pair is None:
            raise ApiError("spot_unknown")
        size = checked_size(call.input.size, pair.size_decimals)
        value = size * pair.mark
        if value < MIN_NOTIONAL:
            raise ApiError("below_minimum")
        is_buy = call.input.side == "buy"
        has, wants = (account.free(), value) if is_buy else (account.tokens[pair.base], size)
        if wants > has:
            raise ApiError("spot_short")
        sign = 1 if is_buy else -1
        account.tokens[pair.base] += sign * size
        account.usdc -= sign * value
        order = Order(
            order_id=self._next_id(),
            address=call.address,
            symbol=pair.name,
            is_buy=is_buy,
            size=size,
            filled=ZERO,
            price=pair.mark,
            client_order_id=None,
            created_ms=call.now.server_ms,
        )
        self._streams.filled_at_once(order, pair.mark, call.now)
        return OrderReply(order_id=order.order_id, status="filled", client_order_id=None)

    def balance(self, call: Call[Nothing]) -> SpotBalance:
        """Show the spot balance."""
        account = self._accounts.of(call.address)
        tokens = {pair.base: plain(account.tokens[pair.base]) for pair in account.market.pairs.values()}
        return SpotBalance(balances={"USDC": plain(account.free()), **tokens})
