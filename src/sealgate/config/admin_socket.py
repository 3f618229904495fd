"""Where the admin socket is: gateway and commands must agree on it without asking each other.

Whoever could put a socket there would get the commands, so its folder must be this user's alone.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

OFF = "off"

_FOR_OTHERS = 0o077


def default_places(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return where the socket may be without a setting, the first choice first.

    A service and a login shell of one user often differ in XDG_RUNTIME_DIR, so who looks for it looks twice.
    """
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    own = Path(f"/tmp/sealgate-{os.geteuid()}/admin.sock")  # noqa: S108 - `why_not_private` checks its folder
    return (Path(runtime, "sealgate", "admin.sock"), own) if Path(runtime).is_absolute() else (own,)


def why_not_private(folder: Path) -> str | None:
    """Return why a folder is not this user's alone, None if it is. Raises OSError where there is none."""
    found = folder.lstat()  # a link is refused: its owner may turn it
    if not stat.S_ISDIR(found.st_mode):
        return "is no folder"
    if found.st_uid != os.geteuid():
        return f"belongs to user {found.st_uid}"
    if found.st_mode & _FOR_OTHERS:
        return f"is open to others (mode {stat.S_IMODE(found.st_mode):04o}); chmod 700 {folder}"
    return None
