"""Secrets from where references say they are: `file:`, `env:`, `cmd:`.

A secret is read into a bytearray, which its user wipes once the HMAC state is built. A str or bytes object
could not be wiped: it would stay in memory, and in a core dump, until the allocator happens to reuse the
place. The environment has only strings to give, which is why files are the better source.

No error here repeats what was read.
"""

import contextlib
import os
import shlex
import signal
import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from sealgate.config.references import parse_reference, split_command

MAX_BYTES = 64 * 1024
COMMAND_TIMEOUT_S = 10.0

_FORBIDDEN_BITS = 0o077
_GROUP_READ = 0o040


class SecretError(Exception):
    """A secret cannot be had. `str()` is one line: the reference, the cause and the fix.

    Of a `cmd:` only the program is named, as its arguments may hold a password of their own.
    """

    def __init__(self, reference: str, cause: str, fix: str) -> None:
        super().__init__(f"{_without_arguments(reference)}: {cause}; {fix}")


def _without_arguments(reference: str) -> str:
    scheme, _, text = reference.partition(":")
    return f"cmd:{split_command(text)[0]}" if scheme == "cmd" else reference


def read_secret(reference: str, environ: Mapping[str, str]) -> bytearray:
    """Read the secret that a reference names; the caller wipes it after use.

    `file:` takes a path, relative to the working directory unless it is absolute; `env:` a variable of
    `environ`; `cmd:` a program with arguments, run without a shell. One line end at the end of a file or of a
    program's output is not part of the secret. Raises SecretError.
    """
    try:
        scheme, _, rest = parse_reference(reference).partition(":")
    except ValueError as error:
        raise SecretError("secret", *str(error).split("; ", 1)) from None
    return _READERS[scheme](rest, environ)


def wipe(buffer: bytearray) -> None:
    """Overwrite a secret in place."""
    buffer[:] = bytes(len(buffer))


def _read_file(path: str, _environ: Mapping[str, str]) -> bytearray:
    reference = f"file:{path}"
    with _opened(reference, path) as descriptor:
        _check_file(reference, path, os.fstat(descriptor))
        return _read_all(reference, descriptor)


@contextlib.contextmanager
def _opened(reference: str, path: str) -> Iterator[int]:
    """Open a file once, so that what is checked is what is read.

    Links are followed, as Kubernetes changes a secret by swapping one; what they lead to is checked.
    O_NONBLOCK keeps a named pipe from holding up the start.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        raise SecretError(
            reference, f"there is no file {Path(path).absolute()}", "correct the path"
        ) from None
    except OSError as error:
        fix = "correct the path, or let this user read the file"
        raise SecretError(reference, f"cannot be opened: {error.strerror}", fix) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _check_file(reference: str, path: str, found: os.stat_result) -> None:
    """Refuse what others could read or could have put there."""
    name = shlex.quote(path)
    if not stat.S_ISREG(found.st_mode):
        raise SecretError(reference, "is not a regular file", "name a file that holds only the secret")
    if found.st_uid not in {os.geteuid(), 0}:
        cause = f"belongs to user {found.st_uid}, neither this one nor root"
        raise SecretError(reference, cause, f"chown {os.geteuid()} {name}")
    if found.st_mode & _FORBIDDEN_BITS and not _is_mounted_for_our_group(found):
        cause = f"is open to others (mode {stat.S_IMODE(found.st_mode):04o})"
        lend = f"chgrp {os.getegid()} {name} && chmod 440 {name}"
        raise SecretError(reference, cause, f"chmod 600 {name}" if found.st_uid == os.geteuid() else lend)
    if found.st_size > MAX_BYTES:
        raise SecretError(
            reference, f"is larger than {MAX_BYTES} bytes", "name a file that holds only the secret"
        )


def _is_mounted_for_our_group(found: os.stat_result) -> bool:
    """Whether root lends it to one of our groups for reading, as Docker and Kubernetes mount secrets."""
    lent = found.st_mode & _FORBIDDEN_BITS == _GROUP_READ
    return lent and found.st_uid == 0 and found.st_gid in {os.getegid(), *os.getgroups()}


def _read_environment(name: str, environ: Mapping[str, str]) -> bytearray:
    reference = f"env:{name}"
    if name not in environ:
        raise SecretError(reference, "the variable is not set", f"set {name}")
    return _not_empty(reference, bytearray(environ[name], "utf-8", "surrogateescape"))


def _read_command(text: str, environ: Mapping[str, str]) -> bytearray:
    reference = f"cmd:{text}"
    reader, writer = os.pipe()
    try:
        try:
            _run(reference, split_command(text), writer, environ)
        finally:
            os.close(writer)
        # A process that the program left behind may still hold the pipe open: no waiting for its end.
        os.set_blocking(reader, False)
        return _read_all(reference, reader)
    finally:
        os.close(reader)


def _run(reference: str, arguments: list[str], output: int, environ: Mapping[str, str]) -> None:
    """Run a program with its output into a pipe, which nobody reads before it ends.

    So the output never becomes a bytes object; a program that prints more than the pipe holds (64 KiB on
    Linux) blocks and runs into the time-out.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - the operator's own command, without a shell
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            env=dict(environ),
            start_new_session=True,
        )
    except OSError as error:
        raise SecretError(
            reference, f"cannot be run: {error.strerror}", "correct the program's name"
        ) from None
    with process:
        complaint = _wait(reference, process)
    if process.returncode != 0:
        cause = f"ended with exit code {process.returncode}{_first_line(complaint)}"
        raise SecretError(reference, cause, "run it by hand as this user")


def _wait(reference: str, process: "subprocess.Popen[bytes]") -> bytes:
    try:
        return process.communicate(timeout=COMMAND_TIMEOUT_S)[1]
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        cause = f"did not end within {COMMAND_TIMEOUT_S:g} s, or printed more than a secret"
        raise SecretError(
            reference, cause, "make it answer without questions and print only the secret"
        ) from None


def _first_line(complaint: bytes) -> str:
    line = complaint.decode(errors="replace").strip().partition("\n")[0]
    printable = "".join(character for character in line if character.isprintable())[:200]
    return f" ({printable})" if printable else ""


def _read_all(reference: str, descriptor: int) -> bytearray:
    """Read what is there, straight into memory that can be wiped, and drop one line end."""
    buffer = bytearray(MAX_BYTES + 1)
    with memoryview(buffer) as view:
        length = 0
        while count := _read_into(descriptor, view[length:]):
            length += count
        try:
            if length > MAX_BYTES:
                raise SecretError(
                    reference, f"is larger than {MAX_BYTES} bytes", "let it hold only the secret"
                )
            return _not_empty(reference, bytearray(view[: _end(buffer, length)]))
        finally:
            view[:] = bytes(len(view))


def _read_into(descriptor: int, view: memoryview) -> int:
    try:
        return os.readv(descriptor, [view])
    except BlockingIOError:
        return 0


def _end(buffer: bytearray, length: int) -> int:
    """Return where the secret ends: before one last line end, LF or CR LF."""
    for line_end in (b"\r\n", b"\n"):
        if buffer.endswith(line_end, 0, length):
            return length - len(line_end)
    return length


def _not_empty(reference: str, secret: bytearray) -> bytearray:
    if not secret:
        raise SecretError(reference, "is empty", "put the secret there")
    return secret


_READERS: dict[str, Callable[[str, Mapping[str, str]], bytearray]] = {
    "file": _read_file,
    "env": _read_environment,
    "cmd": _read_command,
}
