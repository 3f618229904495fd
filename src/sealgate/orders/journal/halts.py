"""The table of halts. All functions may raise sqlite3.Error."""

import sqlite3
from dataclasses import astuple

from sealgate.orders.halts import Halt, Halts, Origin, Scope

_INSERT = "INSERT INTO halts (since_ms, bot, key, exchange, uid, pid, reason) VALUES (?, ?, ?, ?, ?, ?, ?)"


def read_halts(database: sqlite3.Connection) -> Halts:
    """Return the halts in force, the oldest first."""
    rows = database.execute(
        "SELECT since_ms, bot, key, exchange, uid, pid, reason FROM halts ORDER BY since_ms"
    )
    return Halts(*(Halt(Scope(*row[1:4]), row[0], Origin(*row[4:])) for row in rows))


def write_halts(database: sqlite3.Connection, halts: Halts) -> None:
    """Replace the stored halts by those now in force.

    They are synced immediately: a power cut must not lift a halt.
    """
    rows = [(halt.since_ms, *astuple(halt.scope), *astuple(halt.origin)) for halt in halts]
    database.execute("PRAGMA synchronous = FULL")
    try:
        with database:
            database.execute("DELETE FROM halts")
            database.executemany(_INSERT, rows)
    finally:
        database.execute("PRAGMA synchronous = NORMAL")
