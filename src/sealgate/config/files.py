"""Files that the configuration names.

A relative path is relative to the working directory. Those of a configuration file are relative to its
folder, which stands before them when they are checked.

A `~/` is the home of the user that the gateway runs as, as no shell is there to expand it.
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
    """Return where the socket may be without a setting, the first choice first.

    A service and a login shell of one user often differ in XDG_RUNTIME_DIR, so who looks for it looks twice.
    """
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    own = Path(f"/tmp/sealgate-{os.geteuid()}/admin.sock")  # noqa: S108 - `why_not_private` checks its folder
    return (Path(runtime, "sealgate", "admin.sock"), own) if Path(runtime).is_absolute() else (own,)


def why_not_private(folder: Path) -> str | None:
    """Return why a folder is not this user's alone, None if it is. Raises OSError where there is none.

    Whoever could put a socket there would get the commands.
    """
    found = folder.lstat()  # a link is refused: its owner may turn it
    if not stat.S_ISDIR(found.st_mode):
        return "is no folder"
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
        raise ValueError("begins with a ~ that names no home directory here; write the whole path")
    return expanded


def from_folder(path: str, folder: Path) -> str:
    """Return a path of a configuration file in this folder, as it is seen from the working directory."""
    return path if not path or path.startswith("~") or folder == Path() else str(folder / path)


def check_ca_file(file: Path) -> Path:
    """Check that a file of CA certificates is there, and has one."""
    _check(Path.is_file, file, "is not a file that exists; name a PEM file of CA certificates")
    try:
        ssl.create_default_context(cafile=file)
    except ssl.SSLError:
        raise ValueError("holds no certificate; name a PEM file of CA certificates") from None
    return file


def check_pem_file(file: Path) -> Path:
    """Check that a PEM file is there; the listener looks into it."""
    _check(Path.is_file, file, "is not a file that exists; name a PEM file")
    return file


def check_journal_file(file: Path) -> Path:
    """Check that the folder of the journal is there."""
    _check(
        lambda path: path.parent.is_dir() and not path.is_dir(),
        file,
        "is not a file in a folder that exists; make the folder, name a file in it",
    )
    return file


def _check(condition: Callable[[Path], bool], file: Path, words: str) -> None:
    """Make mistakes of the configuration of a file that is not there, or that this user may not look at."""
    try:
        if condition(file):
            return
    except PermissionError:
        raise ValueError("is in a folder closed to this user; act as the gateway's user") from None
    except OSError:  # no file can have this name
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
    """Return the number of a group that is named, or given by its number. Raises ValueError."""
    try:
        return grp.getgrnam(str(group)).gr_gid
    except KeyError:
        if not str(group).isdecimal():
            raise ValueError from None
        return int(group)
