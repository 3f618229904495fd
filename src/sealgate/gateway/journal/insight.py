"""A look into a journal that changes nothing in it, whether a gateway runs or not: for `sealgate check`."""

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from sealgate.core.limits.memory import Snapshot
from sealgate.gateway.journal import orders
from sealgate.gateway.journal.file import check_sound, connect_to_look, told
from sealgate.gateway.journal.learned import read_learned
from sealgate.gateway.journal.lock import is_in_use
from sealgate.gateway.journal.nonces import read_marks
from sealgate.gateway.journal.tables import VERSION


@dataclass(frozen=True, slots=True)
class Insight:
    """What a journal holds; `limits` by subject, aged to the moment of the look.

    The limits of the `unread` are there, but damaged. `nonces` are the marks of nonces.py, by place.
    """

    in_doubt: int
    is_in_use: bool
    limits: Mapping[str, Snapshot]
    unread: tuple[str, ...] = ()
    nonces: Mapping[str, int] = field(default_factory=dict)


def look_into(file: Path, subjects: Iterable[str], wall: float) -> Insight | None:
    """Read a journal that is there, None where an older version made it; `wall` is epoch seconds.

    `subjects` are those whose limits are wanted. Raises JournalError.
    """
    with told(file), closing(connect_to_look(file)) as database:
        if check_sound(database, file) != VERSION:
            return None
        in_use = is_in_use(file)
        doubts = orders.in_doubt(database, orders.ALL, is_left_alone=not in_use)
        limits: dict[str, Snapshot] = {}
        unread: list[str] = []
        for subject in subjects:
            try:
                limits[subject] = read_learned(database, subject, wall)
            except sqlite3.DataError:
                unread.append(subject)
        return Insight(len(doubts), in_use, limits, tuple(unread), read_marks(database))
