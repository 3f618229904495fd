"""The table of halts: what a person stopped stays stopped over a restart.

It is rewritten whole each time, and synced: a power cut must not let orders go that were halted.
"""

from contextlib import closing
from dataclasses import astuple
from pathlib import Path

from sealgate.core.halts import Halt, Halts, Origin, Scope
from sealgate.gateway.journal.file import connect, told

_COLUMNS = "bot, key, since_ms, uid, pid, reason"  # the last three are those of `Origin`, in its order


class HaltsTable:
    """The table in a file that `prepare` made; each call opens it.

    Raises JournalError where that is not possible.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self) -> Halts:
        """Return the halts that stand."""
        with told(self._file), closing(connect(self._file)) as database:
            rows = database.execute(f"SELECT {_COLUMNS} FROM halts ORDER BY since_ms")  # noqa: S608 - a constant
            return Halts(
                *(Halt(Scope(bot, key), since_ms, Origin(*origin)) for bot, key, since_ms, *origin in rows)
            )

    def write(self, halts: Halts) -> None:
        """Write the halts that stand; when this returns, they outlive a power cut."""
        rows = [(halt.scope.bot, halt.scope.key, halt.since_ms, *astuple(halt.origin)) for halt in halts]
        with told(self._file), closing(connect(self._file)) as database:
            database.execute("PRAGMA synchronous = FULL")
            with database:
                database.execute("DELETE FROM halts")
                database.executemany(
                    f"INSERT INTO halts ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",  # noqa: S608 - a constant
                    rows,
                )
