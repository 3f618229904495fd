"""What a row of `orders` says: an order as it was sent, and how it ended.

An order is whatever is not a read. Its row is written whole each time: as `sent` before the first byte of
each attempt, and with its ending after the last one. So a write that failed is simply done again later, and
one statement serves all. No secret is kept, the body of an order only until it is known how it ended, and its
reply only where an Idempotency-Key may ask for it again.
"""

import json
from typing import NamedTuple

from sealgate.orders.idempotency import Kept, Name
from sealgate.orders.journal.schema import ORDER_COLUMNS
from sealgate.orders.outcome import LARGEST_BODY, BotReply, Conclusion, Ending, is_remembered
from sealgate.venues.routes import Lane

# The states of a row are those two and the conclusions. `sent` is in doubt at the next start.
SENT, LOOKED_UP = "sent", "looked_up"
UNKNOWN = Conclusion.UNKNOWN.value
_LARGEST_SENT = 4096  # bytes; an order has a few hundred
_STATE = list(ORDER_COLUMNS).index("state")
_EXCHANGE = list(ORDER_COLUMNS).index("exchange")

Row = tuple[str | int | bytes | None, ...]
Ended = tuple[str, str, str, str, str, int, int | None, str | None, bytes | None, int]


class Order(NamedTuple):
    """An order as its latest attempt was signed; times are epoch ms.

    `id` is the gateway's own and unique, `request_id` the bot's where it sent one. `digest` is the one of
    orders/idempotency.py, None without an Idempotency-Key. `sent_ms`, `timestamp_ms`, which was signed, and
    `fence_ms` are by the exchange's clock. `counted` is how many orders it is to its bot's policies, 0
    without any, and `notional` what they are worth. `sent_body` is None where it was too large.
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
    """Return the body of an order for its row, None where it is too large to be one order's."""
    return body if len(body) <= _LARGEST_SENT else None


def sent_row(order: Order) -> Row:
    """Return the row of an order that is about to be sent."""
    return (*order, SENT, None, None, None, None)


def settled_row(order: Order, ending: Ending, settled_ms: int) -> Row:
    """Return the row of an order that ended at `settled_ms`, by `Ages`."""
    # 1. A key that may be used again needs no digest.
    if order.digest is not None and not is_remembered(ending):
        order = order._replace(digest=None)
    # 2. The reply is kept where the key may ask for it, if it is not too large.
    reply = ending.reply
    status, head, body = None if reply is None else reply.status, None, None
    if reply is not None and order.digest is not None and len(reply.body) <= LARGEST_BODY:
        # ASCII, because a phrase may hold surrogates, which only JSON can escape.
        pairs = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in reply.fields]
        head, body = json.dumps([reply.phrase, pairs]), reply.body
    # 3. What was sent is kept for a person, while nobody knows what became of it.
    sent_body = order.sent_body if ending.conclusion is Conclusion.UNKNOWN else None
    return (*order[:-1], sent_body, ending.conclusion.value, status, settled_ms, head, body)


def is_sent(row: Row) -> bool:
    """Ask whether a row is an intent, and not an ending."""
    return row[_STATE] == SENT


def is_unknown(row: Row) -> bool:
    """Ask whether a row puts its order in doubt."""
    return row[_STATE] == UNKNOWN


def exchange_of(row: Row) -> str:
    """Return the exchange of a row's order."""
    return str(row[_EXCHANGE])


def read_kept(ended: Ended, now_ms: int) -> Kept:
    """Return what an Idempotency-Key is remembered by; `now_ms` is by `Ages`.

    Raises ValueError where `settled_row` wrote no such row: SQLite has no check sums.
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
