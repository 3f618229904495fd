"""A summary of a journal for `sealgate check`, whether a gateway is using it or not."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from sealgate.limits.snapshots import Snapshot
from sealgate.orders.journal import orders
from sealgate.orders.journal.file import as_journal_error, check_sound, connect_to_look, is_empty
from sealgate.orders.journal.learned import read_limits
from sealgate.orders.journal.lock import user_of
from sealgate.orders.journal.nonces import read_marks


@dataclass(frozen=True, slots=True)
class Insight:
    """The content of a journal; `limits` by the places of pools, aged to the time of reading.

    The limits at the `unread` places exist, but are damaged. `nonces` are the marks of nonces.py, by place.
    """

    in_doubt: int
    is_in_use: bool
    limits: Mapping[str, Snapshot]
    unread: tuple[str, ...] = ()
    nonces: Mapping[str, int] = field(default_factory=dict)


def look_into(file: Path, exchanges: Iterable[str], wall: float) -> Insight | None:
    """Read an existing journal; return None if it is empty. `wall` is epoch seconds. Raises JournalError.

    `exchanges` are the addresses of the exchanges whose limits to read.
    """
    with as_journal_error(file), closing(connect_to_look(file)) as database:
        if is_empty(database):
            return None
        check_sound(database, file, "quick_check")
        is_in_use = user_of(file) is not None
        doubts = orders.in_doubt(database, orders.ALL, is_left_alone=not is_in_use)
        limits: dict[str, Snapshot] = {}
        damaged: dict[str, str] = {}
        for exchange in exchanges:
            kept, unread = read_limits(database, exchange, wall)
            limits.update(kept)
            damaged.update(unread)
        return Insight(len(doubts), is_in_use, limits, tuple(damaged), read_marks(database))
