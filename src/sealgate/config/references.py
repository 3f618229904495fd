"""References to secrets. The configuration holds these, never the secrets themselves.

No error here repeats the value, unless it is the name of a file: people paste the secret in place of a
reference.
"""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

from sealgate.config.files import expand_home, from_folder

_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CREDENTIAL = re.compile(r"(?!\.\.?$)[!-.0-~]{1,255}")  # one file name (systemd.exec(5), LoadCredential=)

_FORMS = "file:/path, env:NAME, cmd:program arguments, systemd:NAME or keyring:SERVICE/NAME"


def parse_reference(value: str) -> str:
    """Check the form of a reference, not its target, and return it with `~/` expanded."""
    scheme, colon, rest = value.partition(":")
    if colon and scheme in _CHECKS:
        return f"{scheme}:{_CHECKS[scheme](rest)}"
    if _is_file(value):
        raise ValueError(f'is a file\'s name, not a reference to a secret; write "file:{value}"')
    raise ValueError(f"is not a reference to a secret; put the secret elsewhere and write {_FORMS}")


def _is_file(text: str) -> bool:
    """Whether a file with this name exists; False also for an impossible name."""
    try:
        return text.isprintable() and Path(expand_home(text)).is_file()
    except (OSError, ValueError):
        return False


def reference_from_folder(value: str, folder: Path) -> str:
    """Return a reference from a configuration file in this folder, relative to the working directory."""
    path = value.removeprefix("file:")
    return value if path == value else f"file:{from_folder(path, folder)}"


def mask_arguments(value: str) -> str:
    """Mask the arguments of a `cmd:`, which may be secret."""
    if not value.startswith("cmd:"):
        return value
    program, *arguments = split_command(value.removeprefix("cmd:"))
    return f"cmd:{program} …" if arguments else value


def split_command(text: str) -> list[str]:
    """Split the text of a `cmd:` into program and arguments as a shell would, without running a shell."""
    try:
        arguments = shlex.split(text)
    except ValueError:
        raise ValueError("has an open quote after cmd:; close it") from None
    if not arguments or not arguments[0]:
        raise ValueError("names no program after cmd:; write cmd:program arguments")
    return arguments


def split_entry(text: str) -> tuple[str, str]:
    """Split the text of a `keyring:` into service and name; the service may contain slashes."""
    service, slash, name = text.rpartition("/")
    if not slash or not service or not name or not text.isprintable():
        raise ValueError("names no entry after keyring:; write keyring:SERVICE/NAME")
    return service, name


def _file(path: str) -> str:
    if not path or not path.isprintable():
        raise ValueError("names no file after file:; write file:/path")
    return expand_home(path)


def _environment(name: str) -> str:
    if _ENVIRONMENT_NAME.fullmatch(name) is None:
        raise ValueError("names no variable after env:; write env:NAME")
    return name


def _credential(name: str) -> str:
    if _CREDENTIAL.fullmatch(name) is None:
        raise ValueError("names no credential after systemd:; write systemd:NAME, as in LoadCredential=")
    return name


def _unchanged(check: Callable[[str], object]) -> Callable[[str], str]:
    """Return a function that checks a text and returns it unchanged."""

    def checked(text: str) -> str:
        check(text)
        return text

    return checked


_CHECKS: dict[str, Callable[[str], str]] = {
    "file": _file,
    "env": _environment,
    "cmd": _unchanged(split_command),
    "systemd": _credential,
    "keyring": _unchanged(split_entry),
}
