"""An order as a row of its table. An order is whatever is not a read.

State `sent` is under way while its gateway lives; at the next start it is in doubt, as `unknown` is. No
secret is kept, the body of an order only until it is known how that ended, and its reply only where an
Idempotency-Key may ask for it again.
"""

import json
from typing import NamedTuple

from sealgate.core.endings import LARGEST_BODY, BotReply, Ending, is_remembered
from sealgate.core.outcome import Conclusion
from sealgate.core.routes import Lane
from sealgate.gateway.journal.tables import ORDERS

SENT, LOOKED_UP = "sent", "looked_up"
UNKNOWN = Conclusion.UNKNOWN.value

# What reading raises of a reply that is damaged; SQLite has no check sums.
BAD_REPLY = (ValueError, TypeError, AttributeError, RecursionError)

_LARGEST_SENT = 4096  # bytes; an order has a few hundred
_STATE = list(ORDERS).index("state")

Row = tuple[str | int | bytes | None, ...]


class Order(NamedTuple):
    """An order as its latest attempt was signed; times are epoch ms.

    `id` is the gateway's own and unique, `request_id` the bot's where it sent one. `digest` is the one of
    core/replays.py, None without an Idempotency-Key. `sent_ms` is by this host's clock, `timestamp_ms` and
    `fence_ms` are by the exchange's. `counted` is how many orders it is to its bot's policy, 0 without one.
    `sent_body` is None where it was too large.
    """

    id: str
    request_id: str
    bot: str
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
    sent_body: bytes | None = None


def kept_body(body: bytes) -> bytes | None:
    """Return the body of an order for its row, None where it is too large to be one order's."""
    return body if len(body) <= _LARGEST_SENT else None


def sent_row(order: Order) -> Row:
    """Return the row of an order that is about to be sent."""
    return (*order, SENT, None, None, None, None)


def settled_row(order: Order, ending: Ending, settled_ms: int) -> Row:
    """Return the row of an order that ended; one whose key is forgotten keeps no digest.

    What was sent is kept for a person only while nobody knows what became of it.
    """
    if order.digest is not None and not is_remembered(ending):
        order = order._replace(digest=None)
    reply = ending.reply
    status = reply.status if reply else None
    is_kept = order.digest is not None and reply is not None and len(reply.body) <= LARGEST_BODY
    head, body = (_head(reply), reply.body) if reply and is_kept else (None, None)
    sent_body = order.sent_body if ending.conclusion is Conclusion.UNKNOWN else None
    return (*order[:-1], sent_body, ending.conclusion.value, status, settled_ms, head, body)


def is_sent(row: Row) -> bool:
    """Ask whether a row is an intent, and not an ending."""
    return row[_STATE] == SENT


def is_unknown(row: Row) -> bool:
    """Ask whether a row puts its order in doubt."""
    return row[_STATE] == UNKNOWN


def _head(reply: BotReply) -> str:
    """Return phrase and fields as ASCII; a phrase may hold surrogates, which only JSON can escape."""
    pairs = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in reply.fields]
    return json.dumps([reply.phrase, pairs])


def read_reply(status: int | None, head: str, body: bytes | None) -> BotReply:
    """Return the reply that a row has. Raises one of BAD_REPLY where it is none that `settled_row` wrote."""
    phrase, pairs = json.loads(head)
    if status is None or body is None or not isinstance(phrase, str):
        raise ValueError
    encoded = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs)
    return BotReply(status, phrase, encoded, body)
