"""The table of orders: an order is whatever is not a read. State `sent` is in doubt at the next start.

A row is written whole each time: as `sent` before the first byte of each attempt, and with its ending after
the last one. So a write that failed is simply done again later, and the same statement serves all. Rows in
doubt are never pruned. No secret is kept, the body of an order only until it is known how that ended, and its
reply only where an Idempotency-Key may ask for it again.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from enum import IntEnum
from typing import NamedTuple

from sealgate.orders.doubts import Doubt, Terms, read_terms
from sealgate.orders.idempotency import Kept, Name
from sealgate.orders.journal.file import IN_DOUBT, ORDERS, SETTLED, SETTLED_KIND
from sealgate.orders.outcome import LARGEST_BODY, BotReply, Conclusion, Ending, is_remembered
from sealgate.venues.routes import Lane

SENT, LOOKED_UP = "sent", "looked_up"
UNKNOWN = Conclusion.UNKNOWN.value

# What reading raises of a reply that is damaged; SQLite has no check sums.
BAD_REPLY = (ValueError, TypeError, AttributeError, RecursionError)

_LARGEST_SENT = 4096  # bytes; an order has a few hundred
_STATE = list(ORDERS).index("state")

Row = tuple[str | int | bytes | None, ...]
ALL = -1  # SQLite's LIMIT without a limit
_COLUMNS = tuple(ORDERS)
_TOLD = [field.name for field in fields(Doubt) if field.name not in Terms._fields]
_DOUBTS = f"SELECT sent_body, {', '.join(_TOLD)} FROM orders WHERE {IN_DOUBT} ORDER BY sent_ms LIMIT ?"
_ALL_DOUBTS = _DOUBTS.replace(IN_DOUBT, f"NOT {SETTLED}")
_PRUNE = f"""
DELETE FROM orders WHERE rowid IN (
    SELECT rowid FROM (
        SELECT rowid, settled_ms FROM orders WHERE {SETTLED} ORDER BY rowid LIMIT ?
    ) WHERE settled_ms < ?
)
"""
_DOUBTS_COUNT = f"SELECT count(*) FROM orders WHERE {IN_DOUBT}"
_DOUBTS_BY_BOT = f"SELECT bot, count(*) FROM orders WHERE {IN_DOUBT} GROUP BY bot"
_COUNTS = f"SELECT {SETTLED_KIND}, bot, count(*) FROM orders WHERE {SETTLED} GROUP BY 1, 2"
_OLDEST = (
    f"SELECT rowid FROM orders WHERE {SETTLED} AND {SETTLED_KIND} = ? AND bot = ? ORDER BY rowid LIMIT ?"
)
_DROP = f"DELETE FROM orders WHERE rowid IN ({_OLDEST})"
# Without `counted`: what is written anew has been counted for its bot's policy already.
_LEAN_COLUMNS = ("rowid", *(name for name in _COLUMNS if name not in {"head", "body", "counted"}))
_LEAN = ", ".join(_LEAN_COLUMNS)
_READ_LEAN = f"SELECT {_LEAN} FROM orders WHERE rowid IN ({_OLDEST})"
_WRITE_LEAN = f"INSERT INTO orders ({_LEAN}) VALUES ({', '.join('?' * len(_LEAN_COLUMNS))})"
_REPLAYS = """
SELECT bot, idempotency_key, digest, state, fence_ms, status, head, body, settled_ms
FROM orders WHERE rowid IN (
    SELECT number FROM (
        SELECT rowid AS number, row_number() OVER (PARTITION BY bot ORDER BY rowid DESC) AS place
        FROM orders WHERE digest IS NOT NULL AND settled_ms >= ?
    ) WHERE place <= ?
) ORDER BY rowid DESC
"""


class Order(NamedTuple):
    """An order as its latest attempt was signed; times are epoch ms.

    `id` is the gateway's own and unique, `request_id` the bot's where it sent one. `digest` is the one of
    orders/idempotency.py, None without an Idempotency-Key. `sent_ms`, `timestamp_ms`, which was signed, and
    `fence_ms` are by the exchange's clock. `counted` is how many orders it is to its bot's policy, 0 without
    one. `sent_body` is None where it was too large.
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


# ruff: noqa: S608 - the statements are put together of our own names alone


class SettledKind(IntEnum):
    """What a settled row is worth, least first; the numbers are those of the index `orders_settled`."""

    REPLIES = 0
    KEYLESS = 1
    KEYED = 2


_CHANGING = (
    "digest",
    "timestamp_ms",
    "fence_ms",
    "attempts",
    "sent_ms",
    "sent_body",
    *_COLUMNS[len(Order._fields) :],
)
_WRITE = (
    f"INSERT INTO orders ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
    f" ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _CHANGING)}"
)


def write(database: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Write rows, later ones over earlier ones, in one transaction. Raises sqlite3.Error."""
    with database:
        database.executemany(_WRITE, rows)


def recover(database: sqlite3.Connection, settled_ms: int) -> None:
    """Put in doubt what an earlier run of the gateway had under way when it ended, from then on."""
    with database:
        # Earlier versions left those in doubt without a time.
        statement = "UPDATE orders SET state = ?, settled_ms = ? WHERE settled_ms IS NULL"
        database.execute(statement, (UNKNOWN, settled_ms))


def newest_s(database: sqlite3.Connection) -> float | None:
    """Return when the newest row was settled, epoch seconds as `Ages` counts them."""
    (newest_ms,) = database.execute("SELECT max(settled_ms) FROM orders").fetchone()
    return None if newest_ms is None else newest_ms / 1000


def passed(database: sqlite3.Connection) -> Iterator[tuple[str, int, int]]:
    """Return (bot, the exchange's epoch second, orders) of what was sent under policies, the oldest first."""
    yield from database.execute("SELECT bot, at_s, orders FROM counted WHERE orders > 0 ORDER BY at_s")


def count_in_doubt(database: sqlite3.Connection) -> int:
    """Return how many orders are in doubt."""
    (count,) = database.execute(_DOUBTS_COUNT).fetchone()
    return int(count)


def in_doubt(database: sqlite3.Connection, most: int, *, is_left_alone: bool = False) -> tuple[Doubt, ...]:
    """Return the oldest orders in doubt. Where no gateway runs, these are also those that were under way."""
    rows = database.execute(_ALL_DOUBTS if is_left_alone else _DOUBTS, (most,))
    target_at = _TOLD.index("target")
    return tuple(Doubt(*row, **read_terms(body, row[target_at])._asdict()) for body, *row in rows)


def settle(database: sqlite3.Connection, ids: Iterable[str], wall_ms: int) -> None:
    """Take orders out of doubt that a person looked up; `wall_ms` counts in a file without a settled one."""
    statement = (
        "UPDATE orders SET state = ?, settled_ms = ?, sent_body = NULL WHERE id = ? AND state IN (?, ?)"
    )
    with database:
        newest = newest_s(database)
        settled_ms = wall_ms if newest is None else int(newest * 1000)
        database.executemany(statement, [(LOOKED_UP, settled_ms, one, UNKNOWN, SENT) for one in ids])


def prune(database: sqlite3.Connection, before_ms: int, most: int) -> int:
    """Delete those of the `most` oldest settled orders that were settled before then; return how many."""
    with database:
        count = database.execute(_PRUNE, (most, before_ms)).rowcount
    if count:
        _give_back(database)
    return count


def count_settled(database: sqlite3.Connection) -> Iterator[tuple[SettledKind, str, int]]:
    """Return how many settled rows each bot has on each kind; as fast as the index is read."""
    for kind, bot, count in database.execute(_COUNTS):
        yield SettledKind(kind), bot, count


def doubts_by_bot(database: sqlite3.Connection) -> dict[str, int]:
    """Return how many orders in doubt each bot has."""
    return dict(database.execute(_DOUBTS_BY_BOT))


def drop(database: sqlite3.Connection, kind: SettledKind, bot: str, most: int) -> None:
    """Delete the `most` oldest settled rows that a bot has on a kind."""
    with database:
        database.execute(_DROP, (kind, bot, most))
    _give_back(database)


def drop_replies(database: sqlite3.Connection, bot: str, most: int) -> None:
    """Drop the replies of the `most` oldest settled rows of a bot that have one; the rows stay.

    They are deleted and written anew in their places: an UPDATE that makes a row smaller leaves the room of
    it to its page, where nothing will use it.
    """
    chosen = (SettledKind.REPLIES, bot, most)
    with database:
        rows = database.execute(_READ_LEAN, chosen).fetchall()
        database.execute(_DROP, chosen)
        database.executemany(_WRITE_LEAN, rows)
    _give_back(database)


def _give_back(database: sqlite3.Connection) -> None:
    # As a script, because `execute` stops at its first row, which has no columns: after one page.
    database.executescript("PRAGMA incremental_vacuum")


def used_bytes(database: sqlite3.Connection) -> int:
    """Return how much of the file holds anything."""
    (count,) = database.execute(
        "SELECT page_count - freelist_count FROM pragma_page_count, pragma_freelist_count"
    ).fetchone()
    (size,) = database.execute("PRAGMA page_size").fetchone()
    return int(count * size)


def kept_replays(database: sqlite3.Connection, since_ms: int, most: int, wall_ms: int) -> Iterator[Kept]:
    """Return what is known of Idempotency-Keys since then, the newest first, of each bot at most so many.

    Raises sqlite3.DataError where a row is none that a gateway wrote.
    """
    for bot, key, content, *ended, at_ms in database.execute(_REPLAYS, (since_ms, most)):
        try:
            ending = _read_ending(*ended)
        except BAD_REPLY:
            raise sqlite3.DataError("a row of the orders is damaged") from None
        yield Kept(Name(bot, key), content, ending, max(0, wall_ms - at_ms) / 1000)


def _read_ending(
    state: str, fence_ms: int, status: int | None, head: str | None, body: bytes | None
) -> Ending:
    conclusion = Conclusion.UNKNOWN if state in (SENT, LOOKED_UP) else Conclusion(state)
    return Ending(conclusion, fence_ms, None if head is None else read_reply(status, head, body))
