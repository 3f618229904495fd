"""The lock that keeps a second gateway away from a journal: a file of its own beside it.

SQLite holds POSIX locks on the journal, and closing any other descriptor of the same file would drop those.
"""

import fcntl
import os
from pathlib import Path

from sealgate.gateway.journal.file import MODE, JournalError, told


class Lock:
    """Held by the one gateway that uses a journal, until it ends in whatever way.

    Raises JournalError where another has it.
    """

    def __init__(self, file: Path) -> None:
        with told(file):
            self._descriptor = os.open(lock_file(file), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE)
        if not _try_lock(self._descriptor, fcntl.LOCK_EX):
            os.close(self._descriptor)
            raise JournalError(
                file, "another gateway uses it", "stop that one, or give each a file of its own"
            )

    def release(self) -> None:
        """Let another have it."""
        os.close(self._descriptor)


def is_in_use(file: Path) -> bool:
    """Ask whether a gateway has the journal at this moment."""
    try:
        descriptor = os.open(lock_file(file), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _try_lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def lock_file(file: Path) -> Path:
    """Return where the lock of a journal is."""
    return file.with_name(f"{file.name}-lock")


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
