"""Whom a file's content can be trusted to come from: its owner, and who else may write to its folder.

One rule for sockets, secrets and the journal: who may write to a folder can replace what is in it.
"""

import os
import shlex
import stat
from pathlib import Path

WRITABLE_BY_OTHERS = 0o022


def is_trusted(owner: int) -> bool:
    """Return whether a file of this user is ours or root's."""
    return owner in {os.geteuid(), 0}


def foreign(owner: int) -> str:
    """Return what is wrong with an owner who is not trusted, as it follows a file's name."""
    return f"belongs to user {owner}, neither this one nor root"


def folder_fault(folder: Path) -> tuple[str, str] | None:
    """Return why others could replace what is in a folder, and how to mend it; None where they cannot.

    In a sticky folder, such as /tmp, only the owner of an entry can replace it. Raises OSError.
    """
    found = folder.stat()
    name = shlex.quote(os.fspath(folder))
    if not is_trusted(found.st_uid):
        return f"its folder {name} {foreign(found.st_uid)}", "use a folder of this user"
    if found.st_mode & WRITABLE_BY_OTHERS and not found.st_mode & stat.S_ISVTX:
        mode = f"{stat.S_IMODE(found.st_mode):04o}"
        return f"others may write to its folder {name} (mode {mode})", f"chmod go-w {name}"
    return None
