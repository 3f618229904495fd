"""Secrets from where references say they are: `file:`, `env:`, `cmd:`, `systemd:`, `keyring:`.

A secret is read into a bytearray, which its user wipes once the HMAC state is built. A str or bytes object
could not be wiped: it would stay in memory, and in a core dump, until the allocator happens to reuse the
place. The environment and the keyring have only strings to give, which is why files are the better source.

No error here repeats what was read.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from sealgate.config.references import parse_reference, split_command, split_entry
from sealgate.keys.files import (
    MAX_BYTES,
    SecretError,
    checked,
    read_all,
    read_credential,
    read_file,
    wipe,
)

COMMAND_TIMEOUT_S = 10.0
_BY_HAND = "run it by hand as this user to see what it says, and name the variables that it needs in cmd_env"
# What any program may need of the environment, where other secrets may be. `cmd_env` adds to it.
_ENVIRONMENT = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
)


def read_command(text: str, environ: Mapping[str, str], cmd_env: Sequence[str] = ()) -> bytearray:
    """Read what a program prints; `cmd_env` are further variables that it gets. Raises SecretError."""
    reference = f"cmd:{text}"
    reader, writer = os.pipe()
    try:
        try:
            _run(reference, split_command(text), writer, _narrowed(environ, cmd_env))
        finally:
            os.close(writer)
        # A process that the program left behind may still hold the pipe open: no waiting for its end.
        os.set_blocking(reader, False)
        return read_all(reference, reader)
    finally:
        os.close(reader)


def _narrowed(environ: Mapping[str, str], cmd_env: Sequence[str]) -> dict[str, str]:
    names = (*_ENVIRONMENT, *cmd_env)
    whole = frozenset(names)
    beginnings = tuple(name.removesuffix("*") for name in names if name.endswith("*"))
    return {name: text for name, text in environ.items() if name in whole or name.startswith(beginnings)}


def _run(reference: str, arguments: list[str], output: int, environ: dict[str, str]) -> None:
    """Run a program with its output into a pipe, which nobody reads before it ends.

    So the output never becomes a bytes object; a program that prints more than the pipe holds (64 KiB on
    Linux) blocks and runs into the time-out. What it complains of is not read at all: a password manager may
    repeat there what it was asked for, and `sh -x` does.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - the operator's own command, without a shell
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.DEVNULL,
            env=environ,
            start_new_session=True,
        )
    except OSError as error:
        raise SecretError(
            reference, f"cannot be run: {error.strerror}", "correct the program's name"
        ) from None
    with process:
        _wait(reference, process)
    if process.returncode != 0:
        cause = f"ended with exit code {process.returncode}"
        raise SecretError(reference, cause, _BY_HAND)


def _wait(reference: str, process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(timeout=COMMAND_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        cause = f"did not end within {COMMAND_TIMEOUT_S:g} s, or printed more than a secret"
        raise SecretError(
            reference, cause, "make it print only the secret, without asking anything"
        ) from None


__all__ = ["MAX_BYTES", "SecretError", "read_secret", "wipe"]


def read_secret(reference: str, environ: Mapping[str, str], cmd_env: Sequence[str] = ()) -> bytearray:
    """Read the secret that a reference names; the caller wipes it after use.

    `file:` takes a path, relative to the working directory unless it is absolute; `env:` a variable of
    `environ`; `cmd:` a program with arguments, run without a shell, which gets what any program needs of
    `environ`, and what `cmd_env` names; `systemd:` the name of a credential; `keyring:`
    service and name of an entry. One line end at the end of a file or of a program's output is not part of
    it. Raises SecretError.
    """
    try:
        scheme, _, rest = parse_reference(reference).partition(":")
    except ValueError as error:
        raise SecretError("secret", *str(error).split("; ", 1)) from None
    return read_command(rest, environ, cmd_env) if scheme == "cmd" else _READERS[scheme](rest, environ)


def _read_environment(name: str, environ: Mapping[str, str]) -> bytearray:
    reference = f"env:{name}"
    if name not in environ:
        raise SecretError(reference, "the variable is not set", f"set {name}")
    return checked(reference, bytearray(environ[name], "utf-8", "surrogateescape"))


def _read_keyring(text: str, _environ: Mapping[str, str]) -> bytearray:
    reference = f"keyring:{text}"
    try:
        import keyring  # noqa: PLC0415 - an extra that may not be installed
    except ImportError:
        fix = f"install keyring, 25 or later, into {sys.prefix}, or use another source"
        raise SecretError(reference, "the package keyring is not installed", fix) from None
    service, name = split_entry(text)
    try:
        found = keyring.get_password(service, name)
        secret = None if found is None else bytearray(found, "utf-8")
    except Exception as error:  # noqa: BLE001 - each backend has errors of its own
        cause = f"the keyring cannot be read ({type(error).__name__})"
        raise SecretError(reference, cause, "unlock it, and see what `keyring diagnose` says") from None
    if secret is None:
        raise SecretError(reference, "the keyring has no such entry", f"keyring set {service} {name}")
    return checked(reference, secret)


_READERS: dict[str, Callable[[str, Mapping[str, str]], bytearray]] = {
    "file": read_file,
    "env": _read_environment,
    "systemd": read_credential,
    "keyring": _read_keyring,
}
