"""References to secrets: where a secret is, as configuration may say it. It never holds the secret itself.

No error here repeats what was written: where a reference was expected, people paste the secret.
"""

import re
import shlex

_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LATER = frozenset({"systemd", "keyring"})

_FORMS = "file:/path, env:NAME or cmd:program arguments"


def parse_reference(value: object) -> str:
    """Check the form of a reference, without a look at what it refers to."""
    scheme, colon, rest = value.partition(":") if isinstance(value, str) else ("", "", "")
    if colon and scheme in _LATER:
        raise ValueError(f"uses {scheme}:, which this version does not have; write {_FORMS}")
    if not colon or scheme not in _CHECKS:
        raise ValueError(f"is no reference to a secret; put the secret elsewhere and write {_FORMS}")
    _CHECKS[scheme](rest)
    return f"{scheme}:{rest}"


def split_command(text: str) -> list[str]:
    """Split the text of a `cmd:` into program and arguments, as a shell would, without one."""
    try:
        arguments = shlex.split(text)
    except ValueError:
        raise ValueError("has an open quote after cmd:; close it") from None
    if not arguments or not arguments[0]:
        raise ValueError("names no program after cmd:; write cmd:program arguments")
    return arguments


def _check_file(path: str) -> None:
    if not path or not path.isprintable():
        raise ValueError("names no file after file:; write file:/path")


def _check_environment(name: str) -> None:
    if _ENVIRONMENT_NAME.fullmatch(name) is None:
        raise ValueError("names no variable after env:; write env:NAME")


def _check_command(text: str) -> None:
    split_command(text)


_CHECKS = {"file": _check_file, "env": _check_environment, "cmd": _check_command}
