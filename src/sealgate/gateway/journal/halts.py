"""The table of halts: what a person stopped stays stopped over a restart.

It is rewritten whole each time, and synced: a power cut must not let orders go that were halted.
"""

from contextlib import closing
from pathlib import Path

from sealgate.core.halts import Halt, Halts, Scope
from sealgate.gateway.journal.file import connect, told


class HaltsTable:
    """The table in a file that `prepare` made; each call opens it.

    Raises JournalError where that is not possible.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self) -> Halts:
        """Return the halts that stand."""
        with told(self._file), closing(connect(self._file)) as database:
            rows = database.execute("SELECT bot, key, since_ms FROM halts ORDER BY since_ms")
            return Halts(*(Halt(Scope(bot, key), since_ms) for bot, key, since_ms in rows))

    def write(self, halts: Halts) -> None:
        """Write the halts that stand; when this returns, they outlive a power cut."""
        rows = [(halt.scope.bot, halt.scope.key, halt.since_ms) for halt in halts]
        with told(self._file), closing(connect(self._file)) as database:
            database.execute("PRAGMA synchronous = FULL")
            with database:
                database.execute("DELETE FROM halts")
                database.executemany("INSERT INTO halts VALUES (?, ?, ?)", rows)
