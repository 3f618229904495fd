"""The secrets that `config init` needs: in a file of the user's, from standard input, or typed unseen."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from sealgate.cli.questions import ask_unseen, name_of
from sealgate.keys.files import SecretError, wipe
from sealgate.keys.key_texts import is_der
from sealgate.keys.signer import KeyMaterial, signer_of
from sealgate.keys.sources import read_secret
from sealgate.keys.wrong_secrets import not_a_secret
from sealgate.machine.system import random_token
from sealgate.machine.terminal import leave_with_error
from sealgate.venues.venue import Venue

STDIN = "-"
_MOST_BYTES = 64 * 1024
_LONGEST_PATH = 1024
_KEY_FILES = (".pem", ".key", ".der", ".json")

# What is wrong with a secret and what to do, None if nothing is.
SecretFault = Callable[[bytes], str | None]


def _anything(_: bytes) -> None:
    """Find nothing wrong."""


class SecretAnswers:
    """Where each secret is. `files` are those to write; `missing` are options that nobody set."""

    def __init__(self, file: Path, given: Mapping[str, str], *, asks: bool, is_forced: bool) -> None:
        if [*given.values()].count(STDIN) > 1:
            raise click.UsageError("Only one option can be -: standard input holds one secret.")
        self.files: dict[Path, bytes] = {}
        self.missing: list[str] = []
        self._file, self._given, self._asks, self._is_forced = file, given, asks, is_forced

    def reference(
        self,
        option: str,
        question: str,
        name: str,
        fault: SecretFault = _anything,
        *,
        may_be_file: bool = False,
    ) -> str:
        """Return the reference to a secret: to a file that is there, or to one of this name.

        `may_be_file`: the answer may also be the path of a file. "" if nobody can be asked.
        """
        given = self._given.get(name_of(option))
        # 1. In a file, which stays where it is.
        if given not in (None, STDIN):
            try:
                content, reference = self._in_place(str(given))
            except SecretError as error:
                leave_with_error(f"{option}: {error}")
            if (wrong := fault(content)) is not None:
                leave_with_error(f"{option}: {wrong}")
            return reference
        if given is None and not self._asks:
            self.missing.append(option)
            return ""
        file = self._file.with_name(name)
        if os.path.lexists(file) and not self._is_forced:
            fix = f"use it with {option} {file}, or replace it with --force"
            leave_with_error(f"{file} exists already and was not changed; {fix}")
        # 2. From standard input.
        if given == STDIN:
            content = _from_stdin(option)
            if (wrong := fault(content)) is not None:
                leave_with_error(f"{option}: {wrong}")
            self.files[file] = _as_stored(content)
            return f"file:{name}"
        # 3. Asked for.
        return self._asked(question, file, fault, may_be_file=may_be_file)

    def token(self, bot: str) -> str:
        """Make the token of a new bot, and return its reference."""
        self.files[self._file.with_name(f"{bot}.token")] = f"{random_token()}\n".encode()
        return f"file:{bot}.token"

    def content(self, reference: str) -> bytes:
        """Return what a reference of this run leads to, b"" for none."""
        path = self._file.parent / reference.removeprefix("file:")
        if not reference or path in self.files:
            return self.files.get(path, b"").removesuffix(b"\n")
        return _read(reference.removeprefix("file:"))

    def forget(self, reference: str) -> None:
        """Do not write what a reference leads to: it was wrong."""
        self.files.pop(self._file.parent / reference.removeprefix("file:"), None)

    def _asked(self, question: str, file: Path, fault: SecretFault, *, may_be_file: bool) -> str:
        while True:
            answer = ask_unseen(question)
            path = _path_in(answer) if may_be_file else ""
            try:
                content, reference = self._in_place(path) if path else (answer, f"file:{file.name}")
                wrong = fault(content) if content else "is empty; paste it again"
            except SecretError as error:
                wrong = str(error)
            if wrong is None:
                break
            click.echo(f"  {wrong}")
        click.echo(f"  read {'a private key' if b'PRIVATE KEY' in content else f'{len(content)} characters'}")
        if not path:
            self.files[file] = _as_stored(content)
        return reference

    def _in_place(self, path: str) -> tuple[bytes, str]:
        """Return what a file of the user's holds, and its reference. Raises SecretError."""
        is_found = self._file.absolute().parent == Path.cwd() or path.startswith(("/", "~"))
        return _read(path), f"file:{path if is_found else Path(path).absolute()}"


def fault_of_secret(venue: Venue, content: bytes, api_keys: Mapping[str, str], opening: bytes) -> str | None:
    """Return why a text cannot be the secret of a key of the venue, None if it can.

    `api_keys` are those of the configuration, by alias; `opening` is the passphrase of a private key.
    """
    secret, passphrase = bytearray(content), bytearray(opening)
    try:
        if (fault := not_a_secret(secret, api_keys)) is not None:
            return "; ".join(fault)
        signer_of(venue, KeyMaterial("", secret, secret_passphrase=passphrase or None))
    except ValueError as error:
        return str(error)
    finally:
        wipe(secret)
        wipe(passphrase)
    return None


def _read(path: str) -> bytes:
    return bytes(read_secret(f"file:{path}", os.environ))


def _from_stdin(option: str) -> bytes:
    """Return standard input without its last line end."""
    if sys.stdin.isatty():
        text = f"{option} {STDIN}: standard input is a terminal; leave the option out to be asked."
        raise click.UsageError(text)
    content = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if not content.strip():
        leave_with_error(f"{option}: standard input is empty; write the secret to it")
    if len(content) > _MOST_BYTES:
        leave_with_error(f"{option}: standard input is larger than a secret; write only the secret to it")
    return content if is_der(bytearray(content)) else content.removesuffix(b"\n").removesuffix(b"\r")


def _as_stored(content: bytes) -> bytes:
    return content if is_der(bytearray(content)) else content + b"\n"


def _path_in(answer: bytes) -> str:
    """Return the path that was typed in the place of a private key, "" if it is no path."""
    text = answer.decode("utf-8", "replace")
    if not text.isprintable() or len(text) > _LONGEST_PATH:
        return ""
    try:
        is_there = Path(text).expanduser().is_file()
    except (OSError, RuntimeError):
        is_there = False
    return text if is_there or text.startswith(("~/", "./", "../")) or text.endswith(_KEY_FILES) else ""
