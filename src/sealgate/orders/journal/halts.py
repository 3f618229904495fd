"""The table of halts. Each may raise sqlite3.Error."""

import sqlite3
from dataclasses import astuple

from sealgate.orders.halts import Halt, Halts, Origin, Scope


def read_halts(database: sqlite3.Connection) -> Halts:
    """Return the halts that stand, the oldest first."""
    rows = database.execute("SELECT bot, key, since_ms, uid, pid, reason FROM halts ORDER BY since_ms")
    return Halts(*(Halt(Scope(bot, key), since_ms, Origin(*origin)) for bot, key, since_ms, *origin in rows))


def write_halts(database: sqlite3.Connection, halts: Halts) -> None:
    """Write the halts that stand in place of those before.

    They are synced at once: a power cut must not release orders that were halted.
    """
    rows = [(halt.scope.bot, halt.scope.key, halt.since_ms, *astuple(halt.origin)) for halt in halts]
    database.execute("PRAGMA synchronous = FULL")
    try:
        with database:
            database.execute("DELETE FROM halts")
            insert = "INSERT INTO halts (bot, key, since_ms, uid, pid, reason) VALUES (?, ?, ?, ?, ?, ?)"
            database.executemany(insert, rows)
    finally:
        database.execute("PRAGMA synchronous = NORMAL")
