"""New files for their owner alone: all of them, whole and on the disk, or none."""

import contextlib
import errno
import os
import stat
from collections.abc import Collection, Mapping
from pathlib import Path

_MODE = 0o600
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def write_files(
    files: Mapping[Path, bytes], replaced: Collection[Path] = (), as_before: Path | None = None
) -> None:
    """Write files with mode 0600; each of the `replaced` takes the place of another.

    The one that is `as_before` has the mode of the regular file that it replaces.

    No symbolic link is followed. Raises OSError, of which FileExistsError: then no file was made, and none
    replaced. Only where the last of several that are replaced fails, the others are new already.
    """
    drafts = {file: file.with_name(f".{file.name}.{os.getpid()}.new") for file in files}
    placed: list[Path] = []
    try:
        # 1. Whole under other names: a full disk must not cost what is there, nor leave a part.
        for file, content in files.items():
            mode = _mode_of(file) if file == as_before else _MODE
            try:
                _write(drafts[file], content, mode)
            except OSError as error:
                error.filename = str(file)  # nobody knows the draft
                raise
        # 2. The new ones, whose names must be free; then those that replace others, which is done at once.
        for file in sorted(files, key=replaced.__contains__):
            if file in replaced:
                drafts[file].replace(file)
            else:
                _place(drafts[file], file, files[file])
                placed.append(file)
    except BaseException:  # Ctrl-C, too
        for file in placed:
            file.unlink(missing_ok=True)
        raise
    finally:
        for draft in drafts.values():
            with contextlib.suppress(OSError):
                draft.unlink()


def _mode_of(file: Path) -> int:
    """Return the mode of a regular file, 0600 where there is none: that of a link says nothing."""
    try:
        mode = file.lstat().st_mode
    except FileNotFoundError:
        return _MODE
    return stat.S_IMODE(mode) & 0o777 if stat.S_ISREG(mode) else _MODE


def _place(draft: Path, file: Path, content: bytes) -> None:
    """Give a draft its name, if that is free."""
    try:
        os.link(draft, file)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _write(file, content, _MODE)  # a file system without links


def _write(file: Path, content: bytes, mode: int) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            os.fchmod(descriptor, mode)  # whatever the umask takes away
            stream.write(content)
            stream.flush()
            os.fsync(descriptor)
    except BaseException:
        file.unlink(missing_ok=True)
        raise
