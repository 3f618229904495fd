"""The journal's file and tables: readable by its owner only, checked before use, locked by one gateway."""

import errno
import fcntl
import os
import shlex
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sealgate.machine.paths import WRITABLE_BY_OTHERS, foreign, is_trusted, way_fault

# 1 had no orders, 2 no halts, 3 not who halted and why, 4 not what was sent, 5 no policies, 6 counted unsent,
# 7 had no prices
VERSION = 8

# The columns of `orders`: first those of `Order`, in its order, then how it ended.
ORDERS = {
    "id": "TEXT PRIMARY KEY",
    "request_id": "TEXT NOT NULL",
    "bot": "TEXT NOT NULL",
    "key": "TEXT NOT NULL",
    "method": "TEXT NOT NULL",
    "route": "TEXT NOT NULL",
    "lane": "TEXT NOT NULL",
    "target": "TEXT NOT NULL",
    "idempotency_key": "TEXT",
    "digest": "TEXT",
    "timestamp_ms": "INTEGER NOT NULL",
    "fence_ms": "INTEGER NOT NULL",
    "attempts": "INTEGER NOT NULL",
    "sent_ms": "INTEGER NOT NULL",
    "counted": "INTEGER NOT NULL DEFAULT 0",
    "sent_body": "BLOB",
    "state": "TEXT NOT NULL",
    "status": "INTEGER",
    "settled_ms": "INTEGER",
    "head": "TEXT",
    "body": "BLOB",
}
# The states are literals, because only so does SQLite use the indices.
IN_DOUBT = "state = 'unknown'"
SETTLED = "state NOT IN ('sent', 'unknown')"
SETTLED_KIND = "CASE WHEN head IS NOT NULL THEN 0 WHEN digest IS NULL THEN 1 ELSE 2 END"  # see `SettledKind`

_PID_BYTES = 20
_HALTS = "bot TEXT, key TEXT, since_ms INTEGER NOT NULL"
_HALTED_BY = ("uid INTEGER", "pid INTEGER", "reason TEXT NOT NULL DEFAULT ''")

# How many orders each bot sent under a policy, by second: a row counts at its `sent_ms`, but for `not_sent`.
# Triggers count, so that an order is in the file and counted in one transaction, and once.
_COUNTED = """
CREATE TABLE IF NOT EXISTS counted (
    bot TEXT, at_s INTEGER, orders INTEGER NOT NULL, PRIMARY KEY (bot, at_s)
) STRICT, WITHOUT ROWID;
DROP TRIGGER IF EXISTS orders_are_counted;
CREATE TRIGGER orders_are_counted AFTER INSERT ON orders WHEN NEW.counted > 0 BEGIN
    DELETE FROM counted WHERE bot = NEW.bot AND at_s < NEW.sent_ms / 1000 - 86400;
    INSERT INTO counted SELECT NEW.bot, NEW.sent_ms / 1000, NEW.counted WHERE NEW.state <> 'not_sent'
        ON CONFLICT (bot, at_s) DO UPDATE SET orders = orders + excluded.orders;
END;
CREATE TRIGGER IF NOT EXISTS counts_follow_orders AFTER UPDATE ON orders WHEN NEW.counted > 0
    AND (NEW.sent_ms <> OLD.sent_ms OR NEW.state = 'not_sent' OR OLD.state = 'not_sent')
BEGIN
    UPDATE counted SET orders = orders - OLD.counted
        WHERE OLD.state <> 'not_sent' AND bot = OLD.bot AND at_s = OLD.sent_ms / 1000;
    INSERT INTO counted SELECT NEW.bot, NEW.sent_ms / 1000, NEW.counted WHERE NEW.state <> 'not_sent'
        ON CONFLICT (bot, at_s) DO UPDATE SET orders = orders + excluded.orders;
END;
"""

SCHEMA = f"""
CREATE TABLE IF NOT EXISTS learned (subject TEXT PRIMARY KEY, limits TEXT NOT NULL, at REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS prices (
    exchange TEXT, symbol TEXT, price TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (exchange, symbol)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS nonces (place TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS halts ({", ".join((_HALTS, *_HALTED_BY))}) STRICT;
CREATE TABLE IF NOT EXISTS orders ({", ".join(map(" ".join, ORDERS.items()))}) STRICT;
CREATE INDEX IF NOT EXISTS orders_in_doubt ON orders (sent_ms) WHERE {IN_DOUBT};
CREATE INDEX IF NOT EXISTS orders_settled ON orders ({SETTLED_KIND}, bot) WHERE {SETTLED};
{_COUNTED}"""

# What later versions added to tables of earlier ones.
ADDED = {
    "halts": _HALTED_BY,
    "orders": tuple(f"{name} {ORDERS[name]}" for name in ("sent_body", "counted")),
}


LOCK_WAIT_S = 2.0  # for another writer: the memory of the limits, `sealgate orders --settle`
_WAL_BYTES = 4 * 1024**2  # what the write-ahead log is cut to once it is checkpointed
_INCREMENTAL = 2
MODE = 0o600

_BESIDE = ("", "-wal", "-shm", "-lock")  # the file itself, SQLite's two, and `lock_file`
_NO_UTF_8 = "Could not decode"  # what Python says of a text, and repeats it
_PRIMARY = 0xFF  # of SQLite's extended error codes
_FIXES = {
    sqlite3.SQLITE_CORRUPT: "move it away, and look up the latest orders at the exchange",
    sqlite3.SQLITE_NOTADB: "name another file, or move it away",
    sqlite3.SQLITE_FULL: "free space on that disk",
    # SQLite says this of a full disk, too, if there is no room for the log beside the file.
    sqlite3.SQLITE_IOERR: "free space on that disk, or look after it",
    sqlite3.SQLITE_BUSY: "stop the program that holds it open",
}


_FIX_NEWER = (
    "start the newer Sealgate that made it; a new file would know none of its orders and Idempotency-Keys"
)


class JournalMovedError(Exception):
    """The file that a gateway had opened is no longer in its place. `str()` is the cause."""


class JournalError(Exception):
    """The file cannot be used as a journal. `str()` is one line: cause and fix."""

    def __init__(self, file: Path, cause: object, fix: str) -> None:
        super().__init__(f"journal.file {file}: {cause}; {fix}")


def connect(file: Path) -> sqlite3.Connection:
    """Open a file that is there. Raises sqlite3.Error.

    It makes none: an empty one in the place of one that was moved away would forget what that one knows.
    """
    database = sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, timeout=LOCK_WAIT_S)
    try:
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only before the first table
        if database.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
            raise sqlite3.OperationalError("write-ahead logging does not work there")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
    except sqlite3.Error:
        database.close()
        raise
    return database


def connect_to_look(file: Path) -> sqlite3.Connection:
    """Open a file that is there so that nothing changes in it or beside it. Raises sqlite3.Error."""
    # Without a write-ahead log nobody has it open; else to read it would leave an empty one behind.
    how = "mode=ro" if file.with_name(f"{file.name}-wal").exists() else "immutable=1"
    return sqlite3.connect(f"{file.absolute().as_uri()}?{how}", uri=True, timeout=LOCK_WAIT_S)


def prepare(file: Path) -> None:
    """Make or check the file before it is first used. Raises JournalError."""
    with as_journal_error(file):
        check_way(file)
        _check_writers(file)
        with suppress(FileExistsError):  # one that exists is not opened: closing it would drop SQLite's locks
            os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE))
        if file.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with closing(connect(file)) as database:
            check_sound(database, file)
            _make_tables(database)
        file.chmod(MODE)


@contextmanager
def as_journal_error(file: Path) -> Iterator[None]:
    """Turn what the disk or SQLite say into a JournalError."""
    try:
        yield
    except sqlite3.Error as error:
        if isinstance(error, sqlite3.DataError) or str(error).startswith(_NO_UTF_8):
            raise _damaged(file) from None
        code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
        raise JournalError(file, error, _FIXES.get(code, "choose a writable path of its own")) from None
    except OSError as error:
        raise JournalError(file, (error.strerror or str(error)).lower(), "choose a writable path") from None


def check_made(database: sqlite3.Connection, file: Path) -> None:
    """Raise JournalError where the tables are not those of this version, or damaged.

    The check is the thorough one, of indices too (about a second for a large file): one that lost rows would
    hide orders in doubt.
    """
    if (version := _version(database)) != VERSION:
        raise JournalError(
            file, f"made by another version ({version})", "start `sealgate serve` with it once"
        )
    _check_damage(database, file, "integrity_check(1)")


class Identity:
    """Which file it is that a gateway uses, whatever comes into its place later. Raises JournalError."""

    def __init__(self, file: Path) -> None:
        self._file = file
        with as_journal_error(file):
            self._first = file.stat()

    def check(self) -> None:
        """Raise JournalMovedError where the file was moved or removed, OSError where nobody can say."""
        try:
            is_same = os.path.samestat(self._first, self._file.stat())
        except FileNotFoundError:
            raise JournalMovedError("the file was moved away or deleted") from None
        if not is_same:
            raise JournalMovedError("another file is in its place")


def check_way(file: Path) -> None:
    """Refuse a path on which others could put another file in the journal's place. Raises JournalError."""
    if (fault := way_fault(file, may_be_sticky=False)) is not None:
        raise JournalError(file, *fault)


def _check_writers(file: Path) -> None:
    """Refuse files that others may have written: a halt lifted in them, or an order settled, is believed."""
    for part in (file.with_name(f"{file.name}{suffix}") for suffix in _BESIDE):
        if not part.exists():
            continue
        found, name = part.stat(), shlex.quote(os.fspath(part))
        if not is_trusted(found.st_uid):
            fix = f"chown {os.geteuid()} {name} if you trust what is in it, else move it away"
            raise JournalError(file, f"{part.name} {foreign(found.st_uid)}", fix)
        if found.st_mode & WRITABLE_BY_OTHERS and stat.S_ISREG(found.st_mode):
            cause = f"others may write to {part.name} (mode {stat.S_IMODE(found.st_mode):04o})"
            fix = f"chmod 600 {name} if you trust what is in it, else move it away"
            raise JournalError(file, cause, fix)


def check_sound(database: sqlite3.Connection, file: Path) -> int:
    """Return the version of a file that is whole. Raises JournalError where it is not, or not ours."""
    version = _version(database)
    if version not in range(VERSION + 1):
        raise JournalError(file, f"made by another version ({version})", _FIX_NEWER)
    _check_damage(database, file, "quick_check(1)")
    return version


def _check_damage(database: sqlite3.Connection, file: Path, pragma: str) -> None:
    (found,) = database.execute(f"PRAGMA {pragma}").fetchone()
    if found != "ok":
        raise _damaged(file)


def _damaged(file: Path) -> JournalError:
    return JournalError(file, "damaged", _FIXES[sqlite3.SQLITE_CORRUPT])


def _version(database: sqlite3.Connection) -> int:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    return int(version)


def _make_tables(database: sqlite3.Connection) -> None:
    if database.execute("PRAGMA auto_vacuum").fetchone() != (_INCREMENTAL,):
        database.execute("VACUUM")  # a file of version 1 can give space back only after this
    database.executescript(
        f"BEGIN; {_missing_columns(database)} {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;"
    )


def _missing_columns(database: sqlite3.Connection) -> str:
    """Return the script that adds what the tables of an earlier version lack."""
    script = ""
    for table, columns in ADDED.items():
        known = {name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")}
        missing = (column for column in columns if known and column.split()[0] not in known)
        script += "".join(f"ALTER TABLE {table} ADD COLUMN {column};" for column in missing)
    return script


class Lock:
    """Held by the one gateway that uses a journal, until it ends in whatever way.

    Raises JournalError where another has it, or where it cannot be had.

    SQLite holds POSIX locks on the journal, and closing any other descriptor of the same file would drop
    those.
    """

    def __init__(self, file: Path) -> None:
        with as_journal_error(file):
            self._descriptor = os.open(lock_file(file), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE)
        try:
            self._take(file)
        except BaseException:
            self.release()
            raise

    def _take(self, file: Path) -> None:
        if not _try_lock(file, self._descriptor, fcntl.LOCK_EX):
            process = _holder(self._descriptor)
            who = "another gateway uses it" if process is None else f"another gateway (pid {process}) uses it"
            raise JournalError(
                file,
                who,
                "stop that one, or give each a file of its own, and one limits.redis if they share a key",
            )
        with suppress(OSError):  # a full disk; the number is for people alone
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, b"%d\n" % os.getpid(), 0)

    def release(self) -> None:
        """Let another have it."""
        os.close(self._descriptor)


def is_in_use(file: Path) -> bool:
    """Ask whether a gateway has the journal at this moment. Raises OSError, or JournalError."""
    with _looking_at_lock(file) as descriptor:
        return descriptor is not None and not _try_lock(file, descriptor, fcntl.LOCK_SH)


def process_that_uses(file: Path) -> int | None:
    """Return the process that has the journal at this moment, None if none has, or its number is not known.

    Raises OSError, or JournalError.
    """
    with _looking_at_lock(file) as descriptor:
        is_used = descriptor is not None and not _try_lock(file, descriptor, fcntl.LOCK_SH)
        return _holder(descriptor) if descriptor is not None and is_used else None


@contextmanager
def _looking_at_lock(file: Path) -> Iterator[int | None]:
    """Open the lock of a journal for reading, None if there is none."""
    try:
        descriptor = os.open(lock_file(file), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> int | None:
    """Return the process that is named in a lock that is held, None if it names none.

    A gateway in another container may have the number of this process.
    """
    text = os.pread(descriptor, _PID_BYTES, 0).strip()
    return int(text) if text.isdigit() and int(text) != os.getpid() else None


def lock_file(file: Path) -> Path:
    """Return where the lock of a journal is."""
    return file.with_name(f"{file.name}-lock")


def _try_lock(file: Path, descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:  # ENOLCK and others, mostly of a network disk
        cause = f"it cannot be locked: {str(error.strerror).lower()}"
        raise JournalError(file, cause, "choose a path on a disk of this machine") from None
    return True
