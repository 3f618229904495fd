"""Secrets that a program prints: `cmd:`, run without a shell, bounded in time and size."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping

from sealgate.config.references import split_command
from sealgate.gateway.keys.reading import SecretError, read_all

COMMAND_TIMEOUT_S = 10.0


def read_command(text: str, environ: Mapping[str, str]) -> bytearray:
    """Read what a program prints. Raises SecretError."""
    reference = f"cmd:{text}"
    reader, writer = os.pipe()
    try:
        try:
            _run(reference, split_command(text), writer, environ)
        finally:
            os.close(writer)
        # A process that the program left behind may still hold the pipe open: no waiting for its end.
        os.set_blocking(reader, False)
        return read_all(reference, reader)
    finally:
        os.close(reader)


def _run(reference: str, arguments: list[str], output: int, environ: Mapping[str, str]) -> None:
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
            env=dict(environ),
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
        raise SecretError(reference, cause, "run it by hand as this user, to see what it says")


def _wait(reference: str, process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(timeout=COMMAND_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        cause = f"did not end within {COMMAND_TIMEOUT_S:g} s, or printed more than a secret"
        raise SecretError(
            reference, cause, "make it answer without questions and print only the secret"
        ) from None
