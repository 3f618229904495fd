"""The statements on the table of orders. All functions may raise sqlite3.Error."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

from sealgate.orders.doubts import Doubt, Terms, read_terms
from sealgate.orders.idempotency import Kept
from sealgate.orders.journal.counts import count_row
from sealgate.orders.journal.rows import LOOKED_UP, SENT, UNKNOWN, Order, Row, read_kept
from sealgate.orders.journal.schema import IN_DOUBT, ORDER_COLUMNS, SETTLED, SETTLED_KIND
from sealgate.orders.journal.shedding import SettledKind

# ruff: noqa: S608 - the statements are assembled only from our own names

ALL = -1  # SQLite's LIMIT without a limit

# Columns rewritten at each attempt and at the end; all others keep their first value.
_CHANGING = (
    *("digest", "timestamp_ms", "fence_ms", "attempts", "sent_ms", "sent_body"),
    *list(ORDER_COLUMNS)[len(Order._fields) :],
)
_WRITE = (
    f"INSERT INTO orders ({', '.join(ORDER_COLUMNS)}) VALUES ({', '.join('?' * len(ORDER_COLUMNS))})"
    f" ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _CHANGING)}"
)

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
_OLDEST = (
    f"SELECT rowid FROM orders WHERE {SETTLED} AND {SETTLED_KIND} = ? AND bot = ? ORDER BY rowid LIMIT ?"
)
_DROP = f"DELETE FROM orders WHERE rowid IN ({_OLDEST})"
_LEAN_COLUMNS = ("rowid", *(name for name in ORDER_COLUMNS if name not in {"head", "body"}))
_LEAN = ", ".join(_LEAN_COLUMNS)
_READ_LEAN = f"SELECT {_LEAN} FROM orders WHERE rowid IN ({_OLDEST})"
_WRITE_LEAN = f"INSERT INTO orders ({_LEAN}) VALUES ({', '.join('?' * len(_LEAN_COLUMNS))})"
_REPLAYS = """
SELECT bot, exchange, idempotency_key, digest, state, fence_ms, status, head, body, settled_ms
FROM orders WHERE rowid IN (
    SELECT number FROM (
        SELECT rowid AS number,
            row_number() OVER (PARTITION BY bot, exchange ORDER BY rowid DESC) AS place
        FROM orders WHERE digest IS NOT NULL AND settled_ms >= ?
    ) WHERE place <= ?
) ORDER BY rowid DESC
"""


def write(database: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Write rows in one transaction; later ones replace earlier ones."""
    with database:
        for row in rows:
            count_row(database, row)
            database.execute(_WRITE, row)


def recover(database: sqlite3.Connection, settled_ms: int) -> None:
    """Mark orders that an earlier run had in flight as in doubt, dated `settled_ms`."""
    with database:
        statement = "UPDATE orders SET state = ?, settled_ms = ? WHERE state = ?"
        database.execute(statement, (UNKNOWN, settled_ms, SENT))


def newest_s(database: sqlite3.Connection) -> float | None:
    """Return the date of the newest settled row, in epoch seconds by `Ages`."""
    (newest_ms,) = database.execute("SELECT max(settled_ms) FROM orders").fetchone()
    return None if newest_ms is None else newest_ms / 1000


def count_in_doubt(database: sqlite3.Connection) -> Counter[str]:
    """Return the number of orders in doubt at each exchange."""
    statement = f"SELECT exchange, count(*) FROM orders WHERE {IN_DOUBT} GROUP BY exchange"
    return Counter(dict(database.execute(statement)))


def in_doubt(database: sqlite3.Connection, most: int, *, is_left_alone: bool = False) -> tuple[Doubt, ...]:
    """Return the oldest orders in doubt; if no gateway is running, including orders that were in flight."""
    rows = database.execute(_ALL_DOUBTS if is_left_alone else _DOUBTS, (most,))
    target_at = _TOLD.index("target")
    return tuple(Doubt(*row, **read_terms(body, row[target_at])._asdict()) for body, *row in rows)


def settle(database: sqlite3.Connection, ids: Iterable[str], wall_ms: int) -> None:
    """Settle orders that a person has looked up; `wall_ms` dates the first settled row of a file."""
    statement = (
        "UPDATE orders SET state = ?, settled_ms = ?, sent_body = NULL WHERE id = ? AND state IN (?, ?)"
    )
    with database:
        newest = newest_s(database)
        settled_ms = wall_ms if newest is None else int(newest * 1000)
        database.executemany(statement, [(LOOKED_UP, settled_ms, one, UNKNOWN, SENT) for one in ids])


def prune(database: sqlite3.Connection, before_ms: int, most: int) -> int:
    """Delete, of the `most` oldest settled orders, those settled before `before_ms`; return their number."""
    with database:
        count = database.execute(_PRUNE, (most, before_ms)).rowcount
    if count:
        _give_back(database)
    return count


def count_settled(database: sqlite3.Connection) -> dict[SettledKind, Counter[str]]:
    """Return the number of settled rows of each bot, by kind; it reads only the index."""
    counts = {kind: Counter[str]() for kind in SettledKind}
    statement = f"SELECT {SETTLED_KIND}, bot, count(*) FROM orders WHERE {SETTLED} GROUP BY 1, 2"
    for kind, bot, count in database.execute(statement):
        counts[SettledKind(kind)][bot] = count
    return counts


def doubts_by_bot(database: sqlite3.Connection) -> Counter[str]:
    """Return the number of orders in doubt of each bot."""
    statement = f"SELECT bot, count(*) FROM orders WHERE {IN_DOUBT} GROUP BY bot"
    return Counter(dict(database.execute(statement)))


def drop(database: sqlite3.Connection, kind: SettledKind, bot: str, most: int) -> None:
    """Delete the `most` oldest settled rows of a bot and kind; of REPLIES, delete only the replies.

    A row that loses its reply is deleted and reinserted: after an UPDATE that shrinks a row, nothing would
    use the free room in its page.
    """
    chosen = (kind, bot, most)
    with database:
        lean_rows = database.execute(_READ_LEAN, chosen).fetchall() if kind is SettledKind.REPLIES else []
        database.execute(_DROP, chosen)
        database.executemany(_WRITE_LEAN, lean_rows)
    _give_back(database)


def _give_back(database: sqlite3.Connection) -> None:
    # As a script, because `execute` stops at the first row (without columns), after one page.
    database.executescript("PRAGMA incremental_vacuum")


def used_bytes(database: sqlite3.Connection) -> int:
    """Return how many bytes of the file are in use."""
    (count,) = database.execute(
        "SELECT page_count - freelist_count FROM pragma_page_count, pragma_freelist_count"
    ).fetchone()
    (size,) = database.execute("PRAGMA page_size").fetchone()
    return int(count * size)


def kept_replays(database: sqlite3.Connection, since_ms: int, most: int, now_ms: int) -> Iterator[Kept]:
    """Return the Idempotency-Keys settled since then, the newest first.

    At most `most` are returned for each bot at each exchange. Raises sqlite3.DataError for a damaged row.
    """
    for row in database.execute(_REPLAYS, (since_ms, most)):
        try:
            yield read_kept(row, now_ms)
        except ValueError as error:
            raise sqlite3.DataError(str(error)) from None
