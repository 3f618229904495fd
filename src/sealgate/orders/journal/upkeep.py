"""Upkeep of the journal's file: sync it, and keep it small."""

import sqlite3
from dataclasses import dataclass

from sealgate.orders.journal import orders
from sealgate.orders.journal.shedding import Shedding

_PRUNED_AT_ONCE = 100  # rows per transaction
_MOST_TURNS = 40  # per call, so that no order waits for long


@dataclass(frozen=True, slots=True)
class Keeping:
    """How long to keep settled orders, how large the file may become, and whether a faulty disk stops orders.

    `must_be_written` refuses orders that cannot be journalled.
    """

    longest_s: float
    most_bytes: int
    must_be_written: bool = True


def look_after(database: sqlite3.Connection, keeping: Keeping, now_s: float) -> None:
    """Sync the file, and delete rows that are too old or too many; `now_s` is by `Ages`.

    May raise sqlite3.Error.
    """
    checkpoint(database)
    too_old_ms = int((now_s - keeping.longest_s) * 1000)
    shedding: Shedding | None = None
    for _ in range(_MOST_TURNS):
        if orders.prune(database, too_old_ms, _PRUNED_AT_ONCE):
            continue
        if orders.used_bytes(database) <= keeping.most_bytes:
            return
        if shedding is None:
            shedding = Shedding(orders.count_settled(database), orders.doubts_by_bot(database))
        if (shed := shedding.next()) is None:
            return
        orders.drop(database, *shed)


def checkpoint(database: sqlite3.Connection) -> None:
    """Move rows from the log into the file, and sync it. May raise sqlite3.Error."""
    database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
