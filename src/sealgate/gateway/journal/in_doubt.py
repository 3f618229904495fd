"""Where a person settles orders in doubt: another process opens the journal of a gateway, running or not.

While a gateway runs, what it has under way is not in doubt; after its end it is. WAL lets both have the file.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from sealgate.core.doubts import Doubt
from sealgate.gateway.journal import orders
from sealgate.gateway.journal.file import JournalError, check_made, connect, told
from sealgate.gateway.journal.lock import is_in_use


class OrdersInDoubt:
    """The orders in doubt, oldest first, and the way to take them off."""

    def __init__(self, database: sqlite3.Connection, *, is_in_use: bool) -> None:
        self._database = database
        self.doubts = orders.in_doubt(database, orders.ALL, is_left_alone=not is_in_use)

    def settle(self, chosen: Sequence[Doubt], wall_ms: int) -> None:
        """Take orders off at that time, which a running gateway notices within a second."""
        orders.settle(self._database, [doubt.id for doubt in chosen], wall_ms)


@contextmanager
def orders_in_doubt(file: Path) -> Iterator[OrdersInDoubt]:
    """Open a journal that a gateway has made. Raises JournalError: a damaged one may hide orders in doubt."""
    if not file.is_file():
        raise JournalError(file, "there is no such file yet", "start the gateway once, or correct the path")
    with told(file), closing(connect(file)) as database:
        check_made(database, file)
        yield OrdersInDoubt(database, is_in_use=is_in_use(file))
