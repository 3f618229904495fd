"""Marks that a journal was used here, so that its loss (and that of its halts) is noticed.

Marks are small files: beside the journal, in systemd's state folder, and beside each secret in a file, if the
gateway may write there. Folders in which other users can replace files are ignored.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import structlog

from sealgate.config import Config
from sealgate.machine.paths import way_fault

_MODE = 0o600
WHAT_IS_LOST = "halts, orders in doubt and used Idempotency-Keys"
LOST_FIX = "if you did not remove it, stop the gateway, put the file back, and find out who removed it"

log = structlog.get_logger("sealgate.journal")


def places(config: Config, environ: Mapping[str, str]) -> list[Path]:
    """Return the folders, besides the journal's own, that may have marks."""
    folders = [
        Path(one.removeprefix("file:")).parent
        for one in config.secret_references()
        if one.startswith("file:")
    ]
    return [*map(Path, filter(None, environ.get("STATE_DIRECTORY", "").split(":"))), *folders]


class Marks:
    """The marks of one journal."""

    def __init__(self, file: Path, folders: Iterable[Path]) -> None:
        self._file = file.absolute()
        place = hashlib.sha256(os.fsencode(self._file)).hexdigest()[:8]
        self._name = f".{file.name}-{place}.known"
        self._folders = list(dict.fromkeys(map(os.path.realpath, (self._file.parent, *folders))))

    def lost(self) -> str | None:
        """Return, in words, the journal that was used here before and is missing; None if none is."""
        times = [] if self._file.exists() else [mark.stat().st_mtime for mark in self._found()]
        if not times:
            return None
        last = datetime.fromtimestamp(max(times), UTC).strftime("%Y-%m-%d %H:%M UTC")
        return f"{self._file}, which a gateway last opened on {last}"

    def note(self) -> str | None:
        """Log and return what a missing journal means. Call it before a new journal is created."""
        if (lost := self.lost()) is not None:
            words = f"{lost}, was missing at the start: {WHAT_IS_LOST} are forgotten"
            log.warning("journal_lost", cause=words, fix=LOST_FIX)
            return words
        if not self._file.exists():
            log.info("journal_created", file=str(self._file), forgets="nothing: no earlier one is known")
        return None

    def leave(self) -> None:
        """Leave a mark in each folder that this user may write to; call it once the journal is open."""
        text = (
            f"Sealgate opened its journal {self._file} at the time of this file, and warns at the\n"
            "next start if the journal is gone. Remove this file once you no longer use that journal.\n"
        )
        for mark in self._trusted():
            with contextlib.suppress(OSError):
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
                descriptor = os.open(mark, flags, _MODE)
                try:
                    os.write(descriptor, os.fsencode(text))
                finally:
                    os.close(descriptor)

    def _found(self) -> Iterator[Path]:
        return (mark for mark in self._trusted() if mark.is_file())

    def _trusted(self) -> Iterator[Path]:
        marks = (Path(folder, self._name) for folder in self._folders)
        return (mark for mark in marks if way_fault(mark, may_be_sticky=False) is None)
