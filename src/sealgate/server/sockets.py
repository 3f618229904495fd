"""Listening sockets: TCP, and Unix sockets that admit exactly one user, or one group.

A Unix socket gets its mode, owner and folder before it listens.
"""

import asyncio
import contextlib
import errno
import fcntl
import os
import socket
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

import structlog

from sealgate.config import Address
from sealgate.config.files import OFF, default_places, why_not_private
from sealgate.machine.paths import way_fault
from sealgate.machine.process import StartError, process_of

BACKLOG = 1024
_RECEIVE_BYTES = 64 * 1024  # that the kernel buffers for a connection; its default is megabytes

_PATIENCE_S = 0.5
# The host name is for the log of the gateway that is asked: this request has a line there as any other has.
_QUESTION = b"TRACE / HTTP/1.1\r\nHost: who-listens.sealgate.invalid\r\nConnection: close\r\n\r\n"
_MARKS = (b"X-Gateway-Error: ", b"use a name of admin.hosts")  # of a gateway's reply, bots' and admin address
_NOT_US = 0o177  # the umask of a socket with mode 0600
_MODE_OF_GROUPS_SOCKET = 0o660
_MODE_OF_OUR_FOLDER = 0o700
_MODE_OF_GROUPS_FOLDER = 0o710  # the group can reach the socket, but not list the folder

log = structlog.get_logger("sealgate.admin")


async def bind(address: Address, setting: str, backlog: int = BACKLOG) -> list[socket.socket]:
    """Return listening sockets. Raises StartError, which names the setting.

    Never with `reuse_port`: another program of this user could then take a share of the connections.
    """
    loop = asyncio.get_running_loop()
    bound: list[socket.socket] = []
    try:
        for family, _, _, _, where in await loop.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM
        ):
            bound.append(socket.create_server(where[:2], family=family, backlog=backlog))
            # Accepted connections inherit this.
            bound[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
            bound[-1].setblocking(False)
    except OSError as error:
        for sock in bound:
            sock.close()
        raise await cannot_listen(address, setting, error) from None
    return bound


async def cannot_listen(address: Address, setting: str, error: OSError) -> StartError:
    """Return the error of an address that cannot be listened on, after a look at who has it."""
    # Python appends the address to `strerror`. The errors of a name's look-up have negative numbers.
    number = error.errno or 0
    cause = os.strerror(number).lower() if number > 0 else error.strerror or str(error)
    fix = f"set {setting} to another address"
    if error.errno == errno.EADDRINUSE:
        cause = "another program listens there"
        if await _is_gateway(address):
            cause = "a Sealgate gateway runs there already"
            fix = f"stop it, or `sealgate reload`; for a second gateway, set {setting} to another address"
    return StartError(f"cannot listen on {address}: {cause}; {fix}")


async def _is_gateway(address: Address) -> bool:
    """Return whether a gateway listens there, by a request that it refuses and never forwards."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            reader, writer = await asyncio.open_connection(address.host, address.port)
            with contextlib.closing(writer):
                writer.write(_QUESTION)
                reply = await reader.read()
    except OSError:
        return False
    return any(mark in reply for mark in _MARKS)


class UnixSocket:
    """A listening socket and its path."""

    def __init__(self, path: Path, sock: socket.socket) -> None:
        self.path = path
        self.sock = sock
        self._node = _node(path)

    def remove(self) -> None:
        """Remove the path, unless it leads to another socket by now."""
        with contextlib.suppress(OSError):
            if _node(self.path) == self._node:
                self.path.unlink()


def bind_unix(path: Path, setting: str, group: int | None = None) -> UnixSocket:
    """Listen with mode 0600, or 0660 for a group. Raises StartError, which names the setting.

    Whoever may write to the folder can replace the socket, and bots would then send their tokens to the new
    one. So the folder is checked like the socket; if it is missing, it is made for us alone, or for us and
    the group. A socket that a dead program left is removed, and nothing else.
    """
    try:
        if not path.parent.exists():
            path.parent.mkdir(mode=_MODE_OF_OUR_FOLDER)
            if group is not None:
                os.chown(path.parent, -1, group)
            path.parent.chmod(
                _MODE_OF_OUR_FOLDER if group is None else _MODE_OF_GROUPS_FOLDER
            )  # umask or not
        _check_folder(path)
        with _only_one(path):
            if _is_stale(path, setting):
                path.unlink()  # a link is never followed: unlink(2) does not, and neither does bind(2)
            return _bound(path, group)
    except OSError as error:
        fix = "add this user to the group" if error.errno == errno.EPERM else f"set {setting} to another path"
        raise StartError(f"{_cannot(path)}: {(error.strerror or str(error)).lower()}; {fix}") from None


def check_place(path: Path, setting: str) -> None:
    """Check whether `bind_unix` could use a path, and change nothing. Raises StartError."""
    if path.parent.exists():
        _check_folder(path)
    _is_stale(path, setting)


def _check_folder(path: Path) -> None:
    """Refuse a folder in which others could replace the socket; in a sticky one, like /tmp, they cannot."""
    if (fault := way_fault(path)) is not None:
        cause, fix = fault
        own = f"use {path.parent / 'sealgate' / path.name}, whose folder the gateway creates"
        raise StartError(f"{_cannot(path)}: {cause}; {fix}, or {own}")


@contextlib.contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """Keep two gateways that start at once from removing each other's socket."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise StartError(f"{_cannot(path)}: another gateway is starting there right now; try again") from None
    finally:
        os.close(folder)


def _is_stale(path: Path, setting: str) -> bool:
    """Return whether a dead program's socket is there. Raises StartError if anything else is."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(found.st_mode):
        raise StartError(f"{_cannot(path)}: it is not a socket; remove it, or set {setting} to another path")
    if found.st_uid != os.geteuid():
        raise StartError(
            f"{_cannot(path)}: a socket of user {found.st_uid} is there; ask that user to remove it"
        )
    if (who := _who_listens(path)) is not None:
        cause = f"{who} listens there, most likely another gateway"
        raise StartError(f"{_cannot(path)}: {cause}; stop it, or set {setting} to another path")
    return True


def _who_listens(path: Path) -> str | None:
    """Return in words who listens at a socket, None if nobody does."""
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


def bind_admin(setting: Path | str | None, environ: Mapping[str, str]) -> UnixSocket | None:
    """Listen where the setting says, else at the default place; None if it is turned off.

    Raises StartError if the place is taken, for example by a second gateway of this user: `sealgate halt`
    would then reach only the first one. If the default place has no folder that is ours alone, no gateway can
    be there: this one starts without an admin socket, and logs it.
    """
    if setting == OFF:
        return None
    if setting is not None:
        return bind_unix(Path(setting), "admin.unix")
    path = _default_place(environ)
    if (trouble := _trouble_with(path.parent)) is None:
        return bind_unix(path, "admin.unix")
    cause = f"cannot listen on {path}: its folder {trouble}; or set admin.unix to another path"
    log.warning("admin_socket_off", cause=cause, missing="the commands halt, resume and reload")
    return None


def check_admin(setting: Path | str | None, environ: Mapping[str, str]) -> None:
    """Check whether `bind_admin` could use its path, and change nothing. Raises StartError."""
    if setting != OFF:
        check_place(_default_place(environ) if setting is None else Path(setting), "admin.unix")


def _default_place(environ: Mapping[str, str]) -> Path:
    return next(path for path in default_places(environ) if path.parent.parent.is_dir())


def _trouble_with(folder: Path) -> str | None:
    """Make the folder if it is missing; return why it is not ours alone, None if it is."""
    with contextlib.suppress(OSError):  # what is wrong with it is reported below
        folder.mkdir(mode=0o700, exist_ok=True)
    try:
        return why_not_private(folder)
    except OSError as error:
        return f"cannot be made: {(error.strerror or str(error)).lower()}"
