"""What a disk can do to a journal that still opens."""

import sqlite3
from contextlib import closing
from pathlib import Path

_EMPTY_LEAF = b"\x0a\0\0\0\0"  # the file format of SQLite, section 1.6


def empty_index(file: Path, name: str) -> None:
    """Make an index an empty page, as a write that went astray could: a look-up by it finds nothing."""
    with closing(sqlite3.connect(file)) as database:
        (page,) = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    with file.open("r+b") as raw:
        raw.seek((page - 1) * size)
        raw.write(_EMPTY_LEAF + size.to_bytes(2, "big") + b"\0")


def damage(file: Path) -> None:
    """Write nonsense over all but the header."""
    size = file.stat().st_size
    with file.open("r+b") as raw:
        raw.seek(100)
        raw.write(b"\xff" * (size - 100))
