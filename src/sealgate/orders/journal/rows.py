"""The rows of `orders`: an order as it was sent, and how it ended.

Every request that is not a read counts as an order. Its complete row is written each time: as `sent` before
the first byte of each attempt, and with its ending after the last one. So a failed write can simply be
repeated later, and one statement serves all. No secret is stored. The body of an order is stored until its
result is known, and its reply only if an Idempotency-Key may request it again.
"""

import json
from typing import NamedTuple

from sealgate.orders.idempotency import Kept, Name
from sealgate.orders.journal.schema import ORDER_COLUMNS
from sealgate.orders.outcome import LARGEST_BODY, BotReply, Conclusion, Ending, is_remembered
from sealgate.venues.routes import Lane

# The states of a row are these two and the conclusions. `sent` means in doubt at the next start.
SENT, LOOKED_UP = "sent", "looked_up"
UNKNOWN = Conclusion.UNKNOWN.value
_LARGEST_SENT = 4096  # bytes; a typical order has a few hundred
_STATE = list(ORDER_COLUMNS).index("state")
_EXCHANGE = list(ORDER_COLUMNS).index("exchange")

Row = tuple[str | int | bytes | None, ...]
Ended = tuple[str, str, str, str, str, int, int | None, str | None, bytes | None, int]


class Order(NamedTuple):
    """An order as its latest attempt was signed; times are epoch ms.

    `id` is the gateway's own and unique, `request_id` the bot's if it sent one. `digest` is that of
    orders/idempotency.py, None without an Idempotency-Key. `sent_ms`, `timestamp_ms` (which was signed) and
    `fence_ms` are on the exchange's clock. `counted` is its number of orders for the bot's policies, 0
    without policies, and `notional` their value. `sent_body` is None if it was too large.
    """

    id: str
    request_id: str
    bot: str
    exchange: str
    key: str
    method: str
    route: str
    lane: Lane
    target: str
    idempotency_key: str | None
    digest: str | None
    timestamp_ms: int
    fence_ms: int
    attempts: int
    sent_ms: int
    counted: int = 0
    notional: str = "0"
    sent_body: bytes | None = None


def kept_body(body: bytes) -> bytes | None:
    """Return the body of an order for its row, None if it is too large for a single order."""
    return body if len(body) <= _LARGEST_SENT else None


def sent_row(order: Order) -> Row:
    """Return the row of an order before it is sent."""
    return (*order, SENT, None, None, None, None)


def settled_row(order: Order, ending: Ending, settled_ms: int) -> Row:
    """Return the row of an order that ended at `settled_ms`, by `Ages`."""
    # 1. An Idempotency-Key that may be used again needs no digest.
    if order.digest is not None and not is_remembered(ending):
        order = order._replace(digest=None)
    # 2. The reply is stored if the Idempotency-Key may request it, unless it is too large.
    reply = ending.reply
    status, head, body = None if reply is None else reply.status, None, None
    if reply is not None and order.digest is not None and len(reply.body) <= LARGEST_BODY:
        # ASCII, because a phrase may hold surrogates, which only JSON can escape.
        pairs = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in reply.fields]
        head, body = json.dumps([reply.phrase, pairs]), reply.body
    # 3. The body is stored for a person while the result of the order is unknown.
    sent_body = order.sent_body if ending.conclusion is Conclusion.UNKNOWN else None
    return (*order[:-1], sent_body, ending.conclusion.value, status, settled_ms, head, body)


def is_sent(row: Row) -> bool:
    """Return whether a row is an intent, not an ending."""
    return row[_STATE] == SENT


def is_unknown(row: Row) -> bool:
    """Return whether a row marks its order as in doubt."""
    return row[_STATE] == UNKNOWN


def exchange_of(row: Row) -> str:
    """Return the exchange of a row's order."""
    return str(row[_EXCHANGE])


def read_kept(ended: Ended, now_ms: int) -> Kept:
    """Return the memory of an Idempotency-Key from its row; `now_ms` is by `Ages`.

    Raises ValueError for a row that `settled_row` cannot have written: SQLite has no check sums.
    """
    bot, exchange, key, digest, state, fence_ms, status, head, body, settled_ms = ended
    try:
        conclusion = Conclusion.UNKNOWN if state in (SENT, LOOKED_UP) else Conclusion(state)
        reply = None if head is None else _read_reply(status, head, body)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("a row of the orders is damaged") from error
    ending, age_s = Ending(conclusion, fence_ms, reply), max(0, now_ms - settled_ms) / 1000
    return Kept(Name(bot, exchange, key), digest, ending, age_s)


def _read_reply(status: int | None, head: str, body: bytes | None) -> BotReply:
    phrase, pairs = json.loads(head)
    if status is None or body is None or not isinstance(phrase, str):
        raise ValueError
    fields = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs)
    return BotReply(status, phrase, fields, body)
