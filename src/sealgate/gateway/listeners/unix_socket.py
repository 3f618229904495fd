"""A Unix socket that lets in exactly who belongs there: mode, owner and folder are right before it listens.

The folder matters as much as the socket: who may write there can put another socket in its place, to which
bots would then send their tokens.
"""

import contextlib
import errno
import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from sealgate.gateway.bots.peer import process_of
from sealgate.gateway.listeners.listening import BACKLOG
from sealgate.gateway.platform.ownership import folder_fault
from sealgate.gateway.platform.start import StartError

_NOT_US = 0o177  # the umask of a socket with mode 0600
_MODE_OF_GROUPS_SOCKET = 0o660
_MODE_OF_OUR_FOLDER = 0o700
_MODE_OF_GROUPS_FOLDER = 0o710  # the group passes through, and sees nothing else


class UnixSocket:
    """A listening socket, and its path as long as that leads to it."""

    def __init__(self, path: Path, sock: socket.socket) -> None:
        self.path = path
        self.sock = sock
        self._node = _node(path)

    def remove(self) -> None:
        """Remove the path, unless it leads to another program's socket by now."""
        with contextlib.suppress(OSError):
            if _node(self.path) == self._node:
                self.path.unlink()


def bind_unix(path: Path, setting: str, group: int | None = None) -> UnixSocket:
    """Listen with mode 0600, or 0660 for a group. Raises StartError naming the setting.

    A socket that a dead program left there is removed; nothing else is. A folder that is not there is made
    for us alone, or for us and the group.
    """
    try:
        if not path.parent.exists():
            _make_folder(path.parent, group)
        _check_folder(path)
        with _only_one(path):
            _remove_stale(path, setting)
            return _bound(path, group)
    except OSError as error:
        fix = "add this user to the group" if error.errno == errno.EPERM else f"set {setting} to another path"
        raise StartError(f"{_cannot(path)}: {(error.strerror or str(error)).lower()}; {fix}") from None


def check_place(path: Path, setting: str) -> None:
    """Look whether `bind_unix` could have a path; change nothing. Raises StartError naming the setting."""
    if path.parent.exists():
        _check_folder(path)
    _is_stale(path, setting)


def _make_folder(folder: Path, group: int | None) -> None:
    folder.mkdir(mode=_MODE_OF_OUR_FOLDER)
    if group is not None:
        os.chown(folder, -1, group)
    folder.chmod(_MODE_OF_OUR_FOLDER if group is None else _MODE_OF_GROUPS_FOLDER)  # whatever the umask was


def _check_folder(path: Path) -> None:
    """Refuse a folder in which others could replace the socket; in a sticky one, as /tmp, they cannot."""
    if (fault := folder_fault(path.parent)) is not None:
        cause, fix = fault
        own = f"name {path.parent / 'sealgate' / path.name}, whose folder is then made"
        raise StartError(f"{_cannot(path)}: {cause}; {fix}, or {own}")


@contextlib.contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """Let two gateways that start at once not remove each other's socket."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise StartError(f"{_cannot(path)}: another gateway is starting there right now; try again") from None
    finally:
        os.close(folder)


def _remove_stale(path: Path, setting: str) -> None:
    """Make room. A link is never followed: bind(2) does not, and neither does this."""
    if _is_stale(path, setting):
        path.unlink()


def _is_stale(path: Path, setting: str) -> bool:
    """Whether a dead program's socket is there. Raises StartError where anything else is."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(found.st_mode):
        raise StartError(
            f"{_cannot(path)}: something else is there; remove it, or set {setting} to another path"
        )
    if found.st_uid != os.geteuid():
        raise StartError(
            f"{_cannot(path)}: a socket of user {found.st_uid} is there; ask that user to remove it"
        )
    if (who := _who_listens(path)) is not None:
        cause = f"{who} listens there, most likely another gateway"
        raise StartError(f"{_cannot(path)}: {cause}; stop it, or set {setting} to another path")
    return True


def _who_listens(path: Path) -> str | None:
    """Return who, in words, None where nobody does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        code = probe.connect_ex(os.fspath(path))
        process = process_of(probe) if code == 0 else None
    if code == errno.ECONNREFUSED:
        return None
    return "another program" if process is None else f"another program (process {process})"


def _bound(path: Path, group: int | None) -> UnixSocket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        previous = os.umask(_NOT_US)
        try:
            sock.bind(os.fspath(path))
        finally:
            os.umask(previous)
        bound = UnixSocket(path, sock)
        try:
            if group is not None:  # the group first, so that no other one is let in meanwhile
                os.chown(path, -1, group, follow_symlinks=False)
                path.chmod(_MODE_OF_GROUPS_SOCKET)
            sock.listen(BACKLOG)
        except BaseException:
            bound.remove()
            raise
    except BaseException:
        sock.close()
        raise
    return bound


def _node(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_dev, found.st_ino


def _cannot(path: Path) -> str:
    return f"cannot listen on {path}"
