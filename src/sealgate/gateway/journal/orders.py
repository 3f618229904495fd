"""The table of orders. An order is whatever is not a read.

A row is written whole each time: as `sent` before the first byte of each attempt, and with its ending after
the last one. So a write that failed is simply done again later, and the same statement serves all.

State `sent` is under way while its gateway lives; at the next start it is in doubt, as `unknown` is. Rows in
doubt are never pruned; `looked_up` is what a person makes of them. Neither secrets nor bodies of requests are
kept, and replies only where an Idempotency-Key may ask for them again.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from enum import IntEnum
from typing import NamedTuple

from sealgate.core.doubts import Doubt
from sealgate.core.outcome import Conclusion
from sealgate.core.replays import LARGEST_BODY, Ending, Kept, Name, StoredReply, is_remembered
from sealgate.core.routes import Lane

SENT, LOOKED_UP = "sent", "looked_up"
UNKNOWN = Conclusion.UNKNOWN.value

ALL = -1  # SQLite's LIMIT without a limit

Row = tuple[str | int | bytes | None, ...]


class Shelf(IntEnum):
    """What a settled row is worth, least first; the numbers are those of the index `orders_settled`."""

    REPLIES = 0
    KEYLESS = 1
    KEYED = 2


class Order(NamedTuple):
    """An order as its latest attempt was signed; times are epoch ms.

    `id` is the gateway's own and unique, `request_id` the bot's where it sent one. `digest` is the one of
    core/replays.py, None without an Idempotency-Key. `sent_ms` is by this host's clock, `timestamp_ms` and
    `fence_ms` are by the exchange's.
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


_COLUMNS = (*Order._fields, "state", "status", "settled_ms", "head", "body")
_CHANGING = ("digest", "timestamp_ms", "fence_ms", "attempts", "sent_ms", *_COLUMNS[len(Order._fields) :])
_STATE = _COLUMNS.index("state")
_WRITE = (
    f"INSERT INTO orders ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608 - ours
    f" ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _CHANGING)}"
)
# The states are literals, because only so does SQLite use the index of those in doubt.
_DOUBTS = (
    f"SELECT {', '.join(field.name for field in fields(Doubt))} FROM orders"  # noqa: S608 - our own names
    " WHERE state = 'unknown' ORDER BY sent_ms LIMIT ?"
)
_ALL_DOUBTS = _DOUBTS.replace("state = 'unknown'", "state IN ('sent', 'unknown')")
_PRUNE = """
DELETE FROM orders WHERE rowid IN (
    SELECT rowid FROM (
        SELECT rowid, settled_ms FROM orders WHERE state NOT IN ('sent', 'unknown') ORDER BY rowid LIMIT ?
    ) WHERE settled_ms < ?
)
"""
_SHELF = "CASE WHEN head IS NOT NULL THEN 0 WHEN digest IS NULL THEN 1 ELSE 2 END"
_SETTLED = "state NOT IN ('sent', 'unknown')"
_COUNTS = f"SELECT {_SHELF}, bot, count(*) FROM orders WHERE {_SETTLED} GROUP BY 1, 2"  # noqa: S608 - ours
_OLDEST = f"SELECT rowid FROM orders WHERE {_SETTLED} AND {_SHELF} = ? AND bot = ? ORDER BY rowid LIMIT ?"  # noqa: S608 - ours
_DROP = f"DELETE FROM orders WHERE rowid IN ({_OLDEST})"  # noqa: S608 - ours
_LEAN = ", ".join(("rowid", *(name for name in _COLUMNS if name not in {"head", "body"})))
_READ_LEAN = f"SELECT {_LEAN} FROM orders WHERE rowid IN ({_OLDEST})"  # noqa: S608 - ours
_WRITE_LEAN = f"INSERT INTO orders ({_LEAN}) VALUES ({', '.join('?' * (len(_COLUMNS) - 1))})"  # noqa: S608 - ours
_REPLAYS = """
SELECT bot, idempotency_key, digest, state, fence_ms, status, head, body, coalesce(settled_ms, sent_ms)
FROM orders WHERE rowid IN (
    SELECT number FROM (
        SELECT rowid AS number, row_number() OVER (PARTITION BY bot ORDER BY rowid DESC) AS place
        FROM orders WHERE digest IS NOT NULL AND coalesce(settled_ms, sent_ms) >= ?
    ) WHERE place <= ?
) ORDER BY rowid DESC
"""


def sent_row(order: Order) -> Row:
    """Return the row of an order that is about to be sent."""
    return (*order, SENT, None, None, None, None)


def settled_row(order: Order, ending: Ending, settled_ms: int) -> Row:
    """Return the row of an order that ended; one whose key is forgotten keeps no digest."""
    if order.digest is not None and not is_remembered(ending):
        order = order._replace(digest=None)
    reply = ending.reply
    status = reply.status if reply else None
    is_kept = order.digest is not None and reply is not None and len(reply.body) <= LARGEST_BODY
    head, body = (_head(reply), reply.body) if reply and is_kept else (None, None)
    return (*order, ending.conclusion.value, status, settled_ms, head, body)


def is_sent(row: Row) -> bool:
    """Ask whether a row is an intent, and not an ending."""
    return row[_STATE] == SENT


def is_unknown(row: Row) -> bool:
    """Ask whether a row puts its order in doubt."""
    return row[_STATE] == UNKNOWN


def write(database: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Write rows, later ones over earlier ones, in one transaction. Raises sqlite3.Error."""
    with database:
        database.executemany(_WRITE, rows)


def recover(database: sqlite3.Connection) -> None:
    """Put in doubt what an earlier run of the gateway had under way when it ended."""
    with database:
        database.execute("UPDATE orders SET state = ? WHERE state = ?", (UNKNOWN, SENT))


def newest_s(database: sqlite3.Connection) -> float | None:
    """Return when the newest row was written, epoch seconds."""
    (newest_ms,) = database.execute("SELECT max(coalesce(settled_ms, sent_ms)) FROM orders").fetchone()
    return None if newest_ms is None else newest_ms / 1000


def count_in_doubt(database: sqlite3.Connection) -> int:
    """Return how many orders are in doubt."""
    (count,) = database.execute("SELECT count(*) FROM orders WHERE state = 'unknown'").fetchone()
    return int(count)


def in_doubt(database: sqlite3.Connection, most: int, *, is_left_alone: bool = False) -> tuple[Doubt, ...]:
    """Return the oldest orders in doubt. Where no gateway runs, these are also those that were under way."""
    rows = database.execute(_ALL_DOUBTS if is_left_alone else _DOUBTS, (most,))
    return tuple(Doubt(*row) for row in rows)


def settle(database: sqlite3.Connection, ids: Iterable[str], wall_ms: int) -> None:
    """Take orders out of doubt that a person looked up."""
    statement = "UPDATE orders SET state = ?, settled_ms = ? WHERE id = ? AND state IN (?, ?)"
    with database:
        database.executemany(statement, [(LOOKED_UP, wall_ms, one, UNKNOWN, SENT) for one in ids])


def prune(database: sqlite3.Connection, before_ms: int, most: int) -> int:
    """Delete those of the `most` oldest settled orders that were settled before then; return how many."""
    with database:
        count = database.execute(_PRUNE, (most, before_ms)).rowcount
    if count:
        _give_back(database)
    return count


def count_settled(database: sqlite3.Connection) -> Iterator[tuple[Shelf, str, int]]:
    """Return how many settled rows each bot has on each shelf; as fast as the index is read."""
    for shelf, bot, count in database.execute(_COUNTS):
        yield Shelf(shelf), bot, count


def doubts_by_bot(database: sqlite3.Connection) -> dict[str, int]:
    """Return how many orders in doubt each bot has."""
    return dict(database.execute("SELECT bot, count(*) FROM orders WHERE state = 'unknown' GROUP BY bot"))


def drop(database: sqlite3.Connection, shelf: Shelf, bot: str, most: int) -> None:
    """Delete the `most` oldest settled rows that a bot has on a shelf."""
    with database:
        database.execute(_DROP, (shelf, bot, most))
    _give_back(database)


def drop_replies(database: sqlite3.Connection, bot: str, most: int) -> None:
    """Drop the replies of the `most` oldest settled rows of a bot that have one; the rows stay.

    They are deleted and written anew in their places: an UPDATE that makes a row smaller leaves the room of
    it to its page, where nothing will use it.
    """
    chosen = (Shelf.REPLIES, bot, most)
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
    """Return what is known of Idempotency-Keys since then, the newest first, of each bot at most so many."""
    for bot, key, content, state, fence_ms, status, head, body, at_ms in database.execute(
        _REPLAYS, (since_ms, most)
    ):
        conclusion = Conclusion.UNKNOWN if state in (SENT, LOOKED_UP) else Conclusion(state)
        reply = None if head is None else _reply(status, head, body)
        age_s = max(0, wall_ms - at_ms) / 1000
        yield Kept(Name(bot, key), content, Ending(conclusion, fence_ms, reply), age_s)


def _head(reply: StoredReply) -> str:
    """Return phrase and fields as ASCII; a phrase may hold surrogates, which only JSON can escape."""
    pairs = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in reply.fields]
    return json.dumps([reply.phrase, pairs])


def _reply(status: int, head: str, body: bytes) -> StoredReply:
    phrase, pairs = json.loads(head)
    encoded = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs)
    return StoredReply(status, phrase, encoded, body)
