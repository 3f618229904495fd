"""A secret's bytes go straight into memory that can be wiped; what cannot be had is one kind of error."""

import os

from sealgate.config.references import split_command

MAX_BYTES = 64 * 1024


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
    """Read what is there, straight into memory that can be wiped, and drop one line end.

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
                    reference, f"is larger than {MAX_BYTES} bytes", "let it hold only the secret"
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
        raise SecretError(reference, "holds nothing but white space", "put the secret there")
    return secret


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
