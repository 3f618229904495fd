"""Files that the configuration names. "" is none.

A relative path is relative to the working directory. Those of a configuration file are relative to its
folder, which stands before them when they get here.

A `~/` is the home of the user that the gateway runs as, as no shell is there to expand it.
"""

import grp
import os
import ssl
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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


def parse_ca_file(value: object) -> Path | None:
    """Check that a file of CA certificates is there; "" is the system's own store."""
    if value == "":
        return None
    file = _file(value)
    if file is None:
        raise ValueError("is not a file that exists; name a PEM file of CA certificates")
    try:
        ssl.create_default_context(cafile=file)
    except ssl.SSLError:
        raise ValueError("holds no certificate; name a PEM file of CA certificates") from None
    return file


def parse_pem_file(value: object) -> Path | None:
    """Check that a PEM file is there; the listener looks into it."""
    if value == "":
        return None
    file = _file(value)
    if file is None:
        raise ValueError("is not a file that exists; name a PEM file")
    return file


def parse_journal_file(value: object) -> Path | None:
    """Check that the folder of the journal is there; "" keeps none."""
    if value == "":
        return None
    file = _path(value)
    with _looking():
        is_possible = file is not None and file.parent.is_dir() and not file.is_dir()
    if file is None or not is_possible:
        raise ValueError("is not a file in a folder that exists; make the folder, name a file in it")
    return file


def parse_socket(value: object) -> Path | None:
    """Check the path of a Unix socket."""
    if value == "":
        return None
    path = _path(value)
    if path is None or not str(path).isprintable() or not path.name:
        raise ValueError('is not the path of a socket; write "/run/sealgate/bots.sock"')
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES:
        raise ValueError(
            f"is longer than a socket's path may be ({SOCKET_PATH_BYTES} bytes); choose a shorter one"
        )
    return path


def parse_admin_socket(value: object) -> Path | str | None:
    """Check the path of the admin socket; "" is its default place, "off" is none."""
    return OFF if value == OFF else parse_socket(value)


def parse_group(value: object) -> int | None:
    """Return the number of a group that is named, or of one that is given by its number."""
    if value == "":
        return None
    try:
        return grp.getgrnam(str(value)).gr_gid
    except KeyError:
        pass
    if isinstance(value, bool) or not str(value).isdecimal():
        raise ValueError("is not a group on this machine; name one that exists, or write its number")
    return int(str(value))


def _file(value: object) -> Path | None:
    """Return the file that a value names, None where there is none. Raises ValueError as `_looking` does."""
    file = _path(value)
    with _looking():
        return file if file is not None and file.is_file() else None


@contextmanager
def _looking() -> Iterator[None]:
    """Make a mistake in the configuration of what this user may not look at: commands may go on with one."""
    try:
        yield
    except PermissionError:
        raise ValueError("is in a folder closed to this user; act as the gateway's user") from None


def _path(value: object) -> Path | None:
    return Path(expand_home(str(value))) if isinstance(value, str | Path) else None
