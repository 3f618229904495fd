"""Files named in the configuration.

A relative path is relative to the working directory. Paths in a configuration file are relative to the
file's folder, which has been prepended by the time they are checked.

`~/` is the home directory of the gateway's user; no shell expands it.
"""

import grp
import os
import ssl
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

OFF = "off"

_FOR_OTHERS = 0o077
# sun_path of unix(7), without the zero at its end.
SOCKET_PATH_BYTES = (104 if sys.platform == "darwin" else 108) - 1


def default_places(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the default paths of the socket, the first choice first.

    A service and a login shell of one user often differ in XDG_RUNTIME_DIR, so clients try both.
    """
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    own = Path(f"/tmp/sealgate-{os.geteuid()}/admin.sock")  # noqa: S108 - `why_not_private` checks its folder
    return (Path(runtime, "sealgate", "admin.sock"), own) if Path(runtime).is_absolute() else (own,)


def why_not_private(folder: Path) -> str | None:
    """Return why a folder is not private to this user, or None if it is. Raises OSError if it is missing.

    Another user who could put a socket there would receive the commands.
    """
    found = folder.lstat()  # a link is refused: its owner may redirect it
    if not stat.S_ISDIR(found.st_mode):
        return "is not a folder"
    if found.st_uid != os.geteuid():
        return f"belongs to user {found.st_uid}"
    if found.st_mode & _FOR_OTHERS:
        return f"is open to others (mode {stat.S_IMODE(found.st_mode):04o}); chmod 700 {folder}"
    return None


def expand_home(path: str) -> str:
    """Return a path with `~/` replaced; raise ValueError with the cause and the fix."""
    if not path.startswith("~"):
        return path
    expanded = os.path.expanduser(path) if path.startswith("~/") else path  # noqa: PTH111 - text is wanted
    if expanded.startswith("~"):
        raise ValueError("begins with a ~ that is not a home directory here; write the whole path")
    return expanded


def from_folder(path: str, folder: Path) -> str:
    """Return a path from a configuration file in this folder, relative to the working directory."""
    return path if not path or path.startswith("~") or folder == Path() else str(folder / path)


def check_ca_file(file: Path) -> Path:
    """Check that a file of CA certificates exists and contains one."""
    _check(Path.is_file, file, "is not a file that exists; name a PEM file of CA certificates")
    try:
        ssl.create_default_context(cafile=file)
    except ssl.SSLError:
        raise ValueError("contains no certificate; name a PEM file of CA certificates") from None
    return file


def check_pem_file(file: Path) -> Path:
    """Check that a PEM file exists; the listener checks its content."""
    _check(Path.is_file, file, "is not a file that exists; name a PEM file")
    return file


def check_journal_file(file: Path) -> Path:
    """Check that the journal's folder exists."""
    _check(
        lambda path: path.parent.is_dir() and not path.is_dir(),
        file,
        "is not a file in an existing folder; create the folder, and name a file in it",
    )
    return file


def _check(condition: Callable[[Path], bool], file: Path, words: str) -> None:
    """Raise ValueError for a file that does not exist, or that this user may not look at."""
    try:
        if condition(file):
            return
    except PermissionError:
        raise ValueError(
            "is in a folder that this user may not read; run the command as the gateway's user"
        ) from None
    except OSError:  # an impossible file name
        pass
    raise ValueError(words)


def check_socket(path: Path) -> Path:
    """Check the path of a Unix socket."""
    if not str(path).isprintable() or not path.name:
        raise ValueError('is not the path of a socket; write "/run/sealgate/bots.sock"')
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES:
        raise ValueError(
            f"is longer than a socket's path may be ({SOCKET_PATH_BYTES} bytes); choose a shorter one"
        )
    return path


def group_number(group: str | int) -> int:
    """Return the number of a group, given by name or number. Raises ValueError."""
    try:
        return grp.getgrnam(str(group)).gr_gid
    except KeyError:
        if not str(group).isdecimal():
            raise ValueError from None
        return int(group)
