"""The lock that keeps a second gateway from using a journal, and its holder.

It is a separate file: closing any descriptor of the journal itself would drop SQLite's POSIX locks on it.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from sealgate.orders.journal.file import MODE, JournalError, as_journal_error

UNNAMED = 0  # a gateway whose process id is not known
_PID_BYTES = 20
_FIX = "stop the other gateway, or give each its own journal.file, and both one limits.redis if they share "
"an API key"


class Lock:
    """The lock of the gateway that uses a journal, held until `release` or the end of its process.

    Raises JournalError if another gateway holds it, or it cannot be taken.
    """

    def __init__(self, file: Path) -> None:
        with as_journal_error(file):
            self._descriptor = os.open(lock_file(file), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE)
        try:
            is_ours = _try_lock(file, self._descriptor, fcntl.LOCK_EX)
        except JournalError:
            self.release()
            raise
        if not is_ours:
            pid = _pid_in(self._descriptor)
            self.release()
            who = "another gateway" if pid == UNNAMED else f"another gateway (pid {pid})"
            raise JournalError(file, f"{who} uses it", _FIX)
        with suppress(OSError):  # a full disk; the number is only for people
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, b"%d\n" % os.getpid(), 0)

    def release(self) -> None:
        """Release the journal for another gateway."""
        os.close(self._descriptor)


def user_of(file: Path) -> int | None:
    """Return the process id of the gateway that uses a journal, UNNAMED if unknown, None if there is none.

    Raises OSError, or JournalError if the disk does not support locks.
    """
    try:
        descriptor = os.open(lock_file(file), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return None if _try_lock(file, descriptor, fcntl.LOCK_SH) else _pid_in(descriptor)
    finally:
        os.close(descriptor)


def lock_file(file: Path) -> Path:
    """Return the path of a journal's lock."""
    return file.with_name(f"{file.name}-lock")


def _pid_in(descriptor: int) -> int:
    text = os.pread(descriptor, _PID_BYTES, 0).strip()
    # A gateway in another container may have the same process id as this process.
    return int(text) if text.isdigit() and int(text) != os.getpid() else UNNAMED


def _try_lock(file: Path, descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:  # ENOLCK and others, mostly on network disks
        cause = f"it cannot be locked: {str(error.strerror).lower()}"
        raise JournalError(file, cause, "choose a path on a disk of this machine") from None
    return True
