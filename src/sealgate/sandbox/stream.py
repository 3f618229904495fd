"""The open streams and what is sent to them. Pure: a stream's other end is behind three functions."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Literal

from sealgate.sandbox.clock import Moment, iso
from sealgate.sandbox.market import plain
from sealgate.sandbox.models.streams import Channel, OrderUpdate
from sealgate.sandbox.models.trading import OpenOrder
from sealgate.sandbox.records import Order

STREAM_PATH = "/v1/stream"
ORDERS: Channel = "orders"

GOING_AWAY, POLICY_VIOLATION, SERVICE_RESTART = 1001, 1008, 1012  # codes of RFC 6455 and its registry


@dataclass(slots=True, eq=False)
class Stream:
    """One open stream: the key that has logged in, and the channels it follows.

    `send` takes a text, `close` a code and a reason; `vanish` ends the connection without a close frame.
    """

    send: Callable[[str], None]
    close: Callable[[int, str], None]
    vanish: Callable[[], None]
    api_key: str = ""
    address: str = ""
    channels: set[Channel] = field(default_factory=set)


class Streams:
    """All open streams. Changes of orders are noted as they happen, and published once they are saved."""

    def __init__(self) -> None:
        self._open: set[Stream] = set()
        self._noted: list[tuple[str, OrderUpdate]] = []

    def enter(self, stream: Stream) -> None:
        """Take in a stream that has been opened."""
        self._open.add(stream)

    def leave(self, stream: Stream) -> None:
        """Forget a stream that has ended."""
        self._open.discard(stream)

    def placed(self, order: Order, now: Moment) -> None:
        """Note an order that rests."""
        self._note(order, "open", now)

    def canceled(self, order: Order, now: Moment) -> None:
        """Note an order that was taken off the book."""
        self._note(order, "canceled", now)

    def filled(self, left: Order, size: Decimal, price: Decimal, now: Moment) -> None:
        """Note a fill. `left` is the order as it is after it."""
        self._note(left, "open" if left.size else "filled", now, (size, price))

    def filled_at_once(self, order: Order, price: Decimal, now: Moment) -> None:
        """Note an order that never rested."""
        self.filled(replace(order, size=Decimal(0), filled=order.size), order.size, price, now)

    def _note(
        self,
        order: Order,
        status: Literal["open", "filled", "canceled"],
        now: Moment,
        fill: tuple[Decimal, Decimal] | None = None,
    ) -> None:
        update = OrderUpdate(
            **show_order(order).model_dump(),
            status=status,
            fill_size=plain(fill[0]) if fill else None,
            fill_price=plain(fill[1]) if fill else None,
            updated_at=iso(now.server_ms),
        )
        self._noted.append((order.address, update))

    def publish(self, is_live: Callable[[str], bool]) -> None:
        """Close the streams of keys that are no longer good, and send the others what has been noted."""
        noted, self._noted = self._noted, []
        for stream in tuple(self._open):
            if stream.api_key and not is_live(stream.api_key):
                stream.close(POLICY_VIOLATION, "Invalid API key")
                self.leave(stream)
            elif ORDERS in stream.channels:
                for address, update in noted:
                    if address == stream.address:
                        stream.send(f'{{"channel":"{ORDERS}","data":{update.model_dump_json()}}}')

    def end_all(self, code: int | None = None, reason: str = "") -> int:
        """End all streams, without a code by letting them vanish; return how many there were."""
        ended = tuple(self._open)
        self._open.clear()
        for stream in ended:
            if code is None:
                stream.vanish()
            else:
                stream.close(code, reason)
        return len(ended)


def show_order(order: Order) -> OpenOrder:
    """Show an order to its owner."""
    return OpenOrder(
        order_id=order.order_id,
        symbol=order.symbol,
        side="buy" if order.is_buy else "sell",
        size=plain(order.size),
        filled_size=plain(order.filled),
        price=plain(order.price),
        client_order_id=order.client_order_id,
        created_at=iso(order.created_ms),
    )
