"""The lock that keeps a second gateway away from a journal: a file of its own beside it.

SQLite holds POSIX locks on the journal, and closing any other descriptor of the same file would drop those.
"""

import fcntl
import os
from pathlib import Path

from sealgate.gateway.journal.file import MODE, JournalError, told


class Lock:
    """Held by the one gateway that uses a journal, until it ends in whatever way.

    Raises JournalError where another has it, or where it cannot be had.
    """

    def __init__(self, file: Path) -> None:
        with told(file):
            self._descriptor = os.open(lock_file(file), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE)
        try:
            self._take(file)
        except BaseException:
            self.release()
            raise

    def _take(self, file: Path) -> None:
        if not _try_lock(file, self._descriptor, fcntl.LOCK_EX):
            raise JournalError(
                file, "another gateway uses it", "stop that one, or give each a file of its own"
            )

    def release(self) -> None:
        """Let another have it."""
        os.close(self._descriptor)


def is_in_use(file: Path) -> bool:
    """Ask whether a gateway has the journal at this moment. Raises OSError, or JournalError."""
    try:
        descriptor = os.open(lock_file(file), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _try_lock(file, descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def lock_file(file: Path) -> Path:
    """Return where the lock of a journal is."""
    return file.with_name(f"{file.name}-lock")


def _try_lock(file: Path, descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:  # ENOLCK and others, mostly of a network disk
        cause = f"it cannot be locked: {str(error.strerror).lower()}"
        raise JournalError(file, cause, "choose a path on a disk of this machine") from None
    return True
