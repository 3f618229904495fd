"""Who could replace the file at a path: one rule for sockets, secrets and the journal.

The owner of a folder or a link decides what is found there, and so does everybody who may write to it.
So the file's folder, the links on the way and their folders must belong to this user or root, and nobody else
may write to them.
"""

import contextlib
import grp
import os
import pwd
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

WRITABLE_BY_OTHERS = 0o022
_WRITABLE_BY_ALL = 0o002
_MOUNT_FIX = "change that where it is mounted from"
_MOST_LINKS = 40  # as the kernel counts, path_resolution(7)


def is_trusted(owner: int) -> bool:
    """Return whether a file of this user is ours or root's."""
    return owner in {os.geteuid(), 0}


def foreign(owner: int) -> str:
    """Return what is wrong with an owner who is not trusted, as it follows a file's name."""
    return f"belongs to user {owner}, neither this one nor root"


def way_fault(path: str | Path, *, may_be_sticky: bool = True) -> tuple[str, str] | None:
    """Return why others could replace the file that a path leads to, and the fix; None if they cannot.

    Parts of the path that do not exist, or cannot be read, are left to whoever opens the file.
    """
    for link, owner in _links(path):
        if not is_trusted(owner):
            return f"leads through {link}, a link that {foreign(owner)}", "name the file itself"
        if (fault := _fault_of_parent(link, may_be_sticky=may_be_sticky)) is not None:
            return fault
    return _fault_of_parent(Path(os.path.realpath(path)), may_be_sticky=may_be_sticky)


def folder_fault(folder: Path, *, may_be_sticky: bool = True) -> tuple[str, str] | None:
    """Return why others could replace a file in a folder, and the fix; None if they cannot. Raises OSError.

    In a sticky folder such as /tmp, others can replace only their own files. They can still create files, so
    the journal, which SQLite accompanies with files that come and go, must not be in one.
    """
    found = folder.stat()
    name = shlex.quote(os.fspath(folder))
    is_read_only = bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    if not is_trusted(found.st_uid):
        fix = _MOUNT_FIX if is_read_only else "use a folder of this user"
        return f"its folder {name} {foreign(found.st_uid)}", fix
    is_sticky = bool(found.st_mode & stat.S_ISVTX)
    if found.st_mode & WRITABLE_BY_OTHERS and not (is_sticky and may_be_sticky) and not _is_lent(found):
        mode = f"{stat.S_IMODE(found.st_mode):04o}"
        fix = "use a folder of this user"
        if not is_sticky:
            command = f"chmod go-w {name}"
            fix = command if found.st_uid == os.geteuid() else f"{fix}, or {command} as root"
        cause = f"others may write to its folder {name} (mode {mode})"
        return cause, _MOUNT_FIX if is_read_only else fix
    return None


def _fault_of_parent(entry: Path, *, may_be_sticky: bool) -> tuple[str, str] | None:
    with contextlib.suppress(OSError):
        return folder_fault(entry.parent, may_be_sticky=may_be_sticky)
    return None


def _is_lent(found: os.stat_result) -> bool:
    """Return whether root lends a folder to our private group, as Kubernetes does for fsGroup.

    That is root:GROUP with the setgid bit (2770, 2775).
    """
    is_for_group = bool(found.st_mode & stat.S_ISGID) and not found.st_mode & _WRITABLE_BY_ALL
    return found.st_uid == 0 and is_for_group and _is_private(found.st_gid)


def _is_private(group: int) -> bool:
    """Return whether this process is in a group of which the account database knows no other member.

    Such a group has no name, as in a container, or the name of our account. The members of any other group
    are not certain: a directory service does not list accounts by their primary group.
    """
    if group not in {os.getegid(), *os.getgroups()}:
        return False
    with contextlib.suppress(KeyError):
        named = grp.getgrgid(group)
        try:
            account = pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            return False
        return named.gr_name == account and set(named.gr_mem) <= {account}
    return all(one.pw_uid == os.geteuid() for one in pwd.getpwall() if one.pw_gid == group)


def _links(path: str | Path) -> Iterator[tuple[Path, int]]:
    """Yield every link on the way with its owner. What cannot be looked at is left to open()."""
    here, ahead = Path("/"), [*reversed(Path(path).absolute().parts[1:])]
    links = 0
    with contextlib.suppress(OSError):
        while ahead and links < _MOST_LINKS:
            part = ahead.pop()
            here = here.parent if part == ".." else here / part
            if not stat.S_ISLNK((found := here.lstat()).st_mode):
                continue
            yield here, found.st_uid
            links += 1
            target = here.readlink()
            here = Path("/") if target.is_absolute() else here.parent
            ahead += reversed(target.parts[target.is_absolute() :])
