"""Secrets from where references say they are: `file:`, `env:`, `cmd:`, `systemd:`, `keyring:`.

A secret is read into a bytearray, which its user wipes once the HMAC state is built. A str or bytes object
could not be wiped: it would stay in memory, and in a core dump, until the allocator happens to reuse the
place. The environment and the keyring have only strings to give, which is why files are the better source.

No error here repeats what was read.
"""

import sys
from collections.abc import Callable, Mapping

from sealgate.config.references import parse_reference, split_entry
from sealgate.gateway.keys.command import read_command
from sealgate.gateway.keys.files import read_credential, read_file
from sealgate.gateway.keys.reading import MAX_BYTES, SecretError, checked, wipe

__all__ = ["MAX_BYTES", "SecretError", "read_secret", "wipe"]


def read_secret(reference: str, environ: Mapping[str, str]) -> bytearray:
    """Read the secret that a reference names; the caller wipes it after use.

    `file:` takes a path, relative to the working directory unless it is absolute; `env:` a variable of
    `environ`; `cmd:` a program with arguments, run without a shell; `systemd:` the name of a credential;
    `keyring:` service and name of an entry. One line end at the end of a file or of a program's output is not
    part of the secret. Raises SecretError.
    """
    try:
        scheme, _, rest = parse_reference(reference).partition(":")
    except ValueError as error:
        raise SecretError("secret", *str(error).split("; ", 1)) from None
    return _READERS[scheme](rest, environ)


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
    "cmd": read_command,
    "systemd": read_credential,
    "keyring": _read_keyring,
}
