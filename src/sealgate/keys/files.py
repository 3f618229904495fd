"""Secrets in files: whose file it must be, and who must not be able to read or replace it.

What is checked is what is read: the file is opened once. Links are followed, as Kubernetes changes a secret
by swapping one (`NAME -> ..data/NAME`, `..data -> a dated folder`, all root's). `platform/paths.py` has the
rule for the way to the file.
"""

import contextlib
import os
import shlex
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from sealgate.config.references import split_command
from sealgate.keys.key_texts import is_der
from sealgate.machine.paths import foreign, is_trusted, way_fault

MAX_BYTES = 64 * 1024
_FORBIDDEN_BITS = 0o077
_GROUP_READ = 0o040
_MOUNT_FIX = "mount it with mode 0440 and a group of this user (Kubernetes: fsGroup; Docker: gid)"


class SecretError(Exception):
    """A secret cannot be had. `str()` is one line: the reference, the cause and the fix.

    Of a `cmd:` only the program is named, as its arguments may hold a password of their own.
    """

    def __init__(self, reference: str, cause: str, fix: str) -> None:
        super().__init__(f"{_without_arguments(reference)}: {cause}; {fix}")


def _without_arguments(reference: str) -> str:
    scheme, _, text = reference.partition(":")
    return f"cmd:{split_command(text)[0]}" if scheme == "cmd" else reference


def wipe(buffer: bytearray) -> None:
    """Overwrite a secret in place."""
    buffer[:] = bytes(len(buffer))


def read_all(reference: str, descriptor: int) -> bytearray:
    """Read what is there, straight into memory that can be wiped, and drop one line end of a text.

    Raises SecretError where it is empty, blank or larger than MAX_BYTES, or cannot be read.
    """
    buffer = bytearray(MAX_BYTES + 1)
    with memoryview(buffer) as view:
        length = 0
        try:
            while count := _read_into(descriptor, view[length:]):
                length += count
            if length > MAX_BYTES:
                raise SecretError(
                    reference, f"is larger than {MAX_BYTES} bytes", "store only the secret in it"
                )
            return checked(reference, bytearray(view[: _end(buffer, length)]))
        except OSError as error:
            fix = "check the disk, or name another file"
            raise SecretError(reference, f"cannot be read: {error.strerror}", fix) from None
        finally:
            view[:] = bytes(len(view))


def checked(reference: str, secret: bytearray) -> bytearray:
    """Return a secret that is one. Raises SecretError where nothing, or nothing but blanks, was stored."""
    if not secret:
        raise SecretError(reference, "is empty", "put the secret there")
    if secret.isspace():
        raise SecretError(reference, "contains only white space", "put the secret there")
    return secret


def _read_into(descriptor: int, view: memoryview) -> int:
    try:
        return os.readv(descriptor, [view])
    except BlockingIOError:
        return 0


def _end(buffer: bytearray, length: int) -> int:
    """Return where the secret ends: before one last line end, LF or CR LF, which DER does not have."""
    if is_der(buffer, length):
        return length
    for line_end in (b"\r\n", b"\n"):
        if buffer.endswith(line_end, 0, length):
            return length - len(line_end)
    return length


def read_file(path: str, _environ: Mapping[str, str]) -> bytearray:
    """Read `file:PATH`. Raises SecretError."""
    reference = f"file:{path}"
    with opened(reference, path) as descriptor:
        return read_all(reference, descriptor)


def read_credential(name: str, environ: Mapping[str, str]) -> bytearray:
    """Read `systemd:NAME`, which LoadCredential= or its like put there for this service alone."""
    reference = f"systemd:{name}"
    folder = environ.get("CREDENTIALS_DIRECTORY")
    if not folder:
        fix = (
            f"give the service LoadCredential={name}:FILE (or LoadCredentialEncrypted=), and start a command "
            f"by hand with systemd-run --pipe --wait -p LoadCredential={name}:FILE"
        )
        raise SecretError(reference, "systemd hands no credentials to this process", fix)
    with _descriptor(reference, str(Path(folder, name))) as descriptor:
        _check_credential(reference, os.fstat(descriptor))
        return read_all(reference, descriptor)


@contextlib.contextmanager
def opened(reference: str, path: str) -> Iterator[int]:
    """Open a secret file that only this user, or root, can read and choose. Raises SecretError."""
    _check_way(reference, path)
    with _descriptor(reference, path) as descriptor:
        is_read_only = bool(os.fstatvfs(descriptor).f_flag & os.ST_RDONLY)
        check_file(reference, path, os.fstat(descriptor), is_read_only=is_read_only)
        yield descriptor


@contextlib.contextmanager
def _descriptor(reference: str, path: str) -> Iterator[int]:
    """Open a file; O_NONBLOCK keeps a named pipe from holding up the start."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        raise SecretError(
            reference, f"there is no file {Path(path).absolute()}", "create it, or correct the path"
        ) from None
    except OSError as error:
        fix = "correct the path, or let this user read the file"
        raise SecretError(reference, f"cannot be opened: {error.strerror}", fix) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def check_file(reference: str, path: str, found: os.stat_result, *, is_read_only: bool = False) -> None:
    """Refuse what others could read or could have put there. On a read-only mount no chmod is advised."""
    name = shlex.quote(path)
    if not stat.S_ISREG(found.st_mode):
        raise SecretError(reference, "is not a regular file", "name a file that holds only the secret")
    if not is_trusted(found.st_uid):
        raise SecretError(reference, foreign(found.st_uid), f"chown {os.geteuid()} {name}")
    if found.st_mode & _FORBIDDEN_BITS and not _is_mounted_for_our_group(found):
        cause = f"is open to others (mode {stat.S_IMODE(found.st_mode):04o})"
        lend = f"chgrp {os.getegid()} {name} && chmod 440 {name}"
        fix = f"chmod 600 {name}" if found.st_uid == os.geteuid() else lend
        raise SecretError(reference, cause, _MOUNT_FIX if is_read_only else fix)
    if found.st_size > MAX_BYTES:
        raise SecretError(
            reference, f"is larger than {MAX_BYTES} bytes", "name a file that holds only the secret"
        )


def _is_mounted_for_our_group(found: os.stat_result) -> bool:
    """Whether root lends it to one of our groups for reading, as Docker and Kubernetes mount secrets."""
    lent = found.st_mode & _FORBIDDEN_BITS == _GROUP_READ
    return lent and found.st_uid == 0 and found.st_gid in {os.getegid(), *os.getgroups()}


def _check_credential(reference: str, found: os.stat_result) -> None:
    """Allow what systemd does: an access list for the user, whose mask appears as the group's bits."""
    if not stat.S_ISREG(found.st_mode):
        cause = "is not a regular file"
    elif not is_trusted(found.st_uid):
        cause = foreign(found.st_uid)
    elif found.st_mode & (_FORBIDDEN_BITS & ~_GROUP_READ):
        cause = f"is open to others (mode {stat.S_IMODE(found.st_mode):04o})"
    else:
        return
    fix = "unset CREDENTIALS_DIRECTORY and start it by systemd"
    raise SecretError(reference, f"{cause}, so systemd did not make it", fix)


def _check_way(reference: str, path: str) -> None:
    """Refuse a path on which others could choose what is read. What is not there is left to open()."""
    if (fault := way_fault(path)) is not None:
        raise SecretError(reference, *fault)
