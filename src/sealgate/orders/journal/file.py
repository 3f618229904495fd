"""The journal's file: readable only by its owner, checked before use, and never recreated by accident."""

import errno
import os
import shlex
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sealgate.machine.paths import WRITABLE_BY_OTHERS, foreign, is_trusted, way_fault
from sealgate.orders.journal.schema import SCHEMA, VERSION

MODE = 0o600
LOCK_WAIT_S = 2.0  # for other writers: `sealgate orders --settle`, `sealgate sign`
_WAL_BYTES = 4 * 1024**2  # the size of the write-ahead log after a checkpoint
_BESIDE = ("", "-wal", "-shm", "-lock")  # the file itself, SQLite's two, and `lock.lock_file`

_NO_UTF_8 = "Could not decode"  # the beginning of Python's message for text that is not UTF-8
_PRIMARY = 0xFF  # of SQLite's extended error codes
_MOVE_AWAY = "move it away, and look up the latest orders at the exchange"
_FIXES = {
    sqlite3.SQLITE_CORRUPT: _MOVE_AWAY,
    sqlite3.SQLITE_NOTADB: "name another file, or move it away",
    sqlite3.SQLITE_FULL: "free space on that disk",
    # SQLite also reports this for a full disk without room for the log.
    sqlite3.SQLITE_IOERR: "free space on that disk, or repair it",
    sqlite3.SQLITE_BUSY: "stop the program that holds it open",
}
_FIX_VERSION = (
    "start the version of Sealgate that created it; a new file would lack its orders and Idempotency-Keys"
)
_FIX_MOVED = (
    "put the same file back; or look up the latest orders at the exchange and restart the gateway, which then"
    " has no record of earlier orders and Idempotency-Keys"
)


class JournalError(Exception):
    """The file cannot be used as a journal. `str()` is one line: the file, the cause and the fix."""

    def __init__(self, file: Path, cause: object, fix: str) -> None:
        super().__init__(f"journal.file {file}: {cause}; {fix}")
        self.cause = str(cause)
        self.fix = fix


@contextmanager
def as_journal_error(file: Path) -> Iterator[None]:
    """Turn an error of the disk or of SQLite into a JournalError."""
    try:
        yield
    except sqlite3.Error as error:
        if isinstance(error, sqlite3.DataError) or str(error).startswith(_NO_UTF_8):
            raise JournalError(file, "damaged", _MOVE_AWAY) from None
        code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
        raise JournalError(file, error, _FIXES.get(code, "choose another writable path")) from None
    except OSError as error:
        raise JournalError(file, (error.strerror or str(error)).lower(), "choose a writable path") from None


def connect(file: Path) -> sqlite3.Connection:
    """Open an existing file. Raises sqlite3.Error.

    It creates no file: a new one in place of a file that was moved away would have no orders and no
    Idempotency-Keys. Any thread may use the connection, but only one at a time.
    """
    database = sqlite3.connect(
        f"{file.absolute().as_uri()}?mode=rw", uri=True, timeout=LOCK_WAIT_S, check_same_thread=False
    )
    try:
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")  # has an effect only before the first table
        if database.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
            raise sqlite3.OperationalError("write-ahead logging does not work there")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        # An automatic checkpoint would delay an order's transaction: see `upkeep`.
        database.execute("PRAGMA wal_autocheckpoint = 0")
    except sqlite3.Error:
        database.close()
        raise
    return database


def connect_to_look(file: Path) -> sqlite3.Connection:
    """Open an existing file without changing anything in it or beside it. Raises sqlite3.Error."""
    # Without a write-ahead log, no process has the file open; "immutable" keeps SQLite from creating one.
    how = "mode=ro" if file.with_name(f"{file.name}-wal").exists() else "immutable=1"
    return sqlite3.connect(f"{file.absolute().as_uri()}?{how}", uri=True, timeout=LOCK_WAIT_S)


def prepare(file: Path) -> None:
    """Create the file, or check it thoroughly, before a gateway uses it. Raises JournalError."""
    with as_journal_error(file):
        check_way(file)
        _check_writers(file)
        with suppress(FileExistsError):  # never open an existing file: closing it would drop SQLite's locks
            os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE))
        if file.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with closing(connect(file)) as database:
            if is_empty(database):
                database.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
            check_sound(database, file)
        file.chmod(MODE)


def is_empty(database: sqlite3.Connection) -> bool:
    """Return whether a file has no table yet. Raises sqlite3.Error."""
    return database.execute("SELECT 1 FROM sqlite_schema").fetchone() is None


def check_sound(database: sqlite3.Connection, file: Path, pragma: str = "integrity_check") -> None:
    """Raise JournalError unless the file is an undamaged journal of this version; may raise sqlite3.Error.

    The default check takes about a second for a large file, because it compares indices with their tables: an
    index that lost rows would hide orders in doubt. `quick_check` skips that.
    """
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version == 0:  # an empty file, and most files of other programs
        raise JournalError(file, "it is not a journal", "start the gateway once, or name another file")
    if version != VERSION:
        raise JournalError(file, f"created by another version ({version})", _FIX_VERSION)
    if database.execute(f"PRAGMA {pragma}(1)").fetchone() != ("ok",):
        raise JournalError(file, "damaged", _MOVE_AWAY)


class Identity:
    """The identity of the file that a gateway has opened. Raises JournalError if it cannot be determined.

    A file that was moved away is not recreated: the next start would have no Idempotency-Keys, and a bot that
    repeats a request would place its order twice.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        with as_journal_error(file):
            self._opened = file.stat()

    def check(self) -> None:
        """Raise JournalError if another file, or none, is in its place now; may raise OSError."""
        try:
            is_same = os.path.samestat(self._opened, self._file.stat())
        except FileNotFoundError:
            raise JournalError(self._file, "the file was moved away or deleted", _FIX_MOVED) from None
        if not is_same:
            raise JournalError(self._file, "another file is in its place", _FIX_MOVED)


def check_way(file: Path) -> None:
    """Refuse a path where other users could replace the journal. Raises JournalError."""
    if (fault := way_fault(file, may_be_sticky=False)) is not None:
        raise JournalError(file, *fault)


def _check_writers(file: Path) -> None:
    """Refuse files that other users may have written: the gateway trusts their halts and settled orders."""
    for part in (file.with_name(f"{file.name}{suffix}") for suffix in _BESIDE):
        if not part.exists():
            continue
        found, name = part.stat(), shlex.quote(os.fspath(part))
        if not is_trusted(found.st_uid):
            fix = f"chown {os.geteuid()} {name} if you trust its content, otherwise move it away"
            raise JournalError(file, f"{part.name} {foreign(found.st_uid)}", fix)
        if found.st_mode & WRITABLE_BY_OTHERS and stat.S_ISREG(found.st_mode):
            cause = f"others may write to {part.name} (mode {stat.S_IMODE(found.st_mode):04o})"
            fix = f"chmod 600 {name} if you trust its content, otherwise move it away"
            raise JournalError(file, cause, fix)
