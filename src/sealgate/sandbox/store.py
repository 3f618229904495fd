"""SQLite, in WAL mode: what must survive a kill -9. A write is durable when `save` returns.

The file holds API secrets, so it is created readable by its owner only.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass, fields
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from sealgate.sandbox.records import AuditEntry, Holdings, Key, Order, Price, Session, User

SCHEMA_VERSION = 2
LOCK_WAIT_S = 0.5

# What each version of the schema added to the one before it.
SCHEMA = (
    """
CREATE TABLE users (address TEXT PRIMARY KEY, onboarded INTEGER NOT NULL, traded INTEGER NOT NULL) STRICT;
CREATE TABLE keys (
    api_key TEXT PRIMARY KEY, address TEXT NOT NULL REFERENCES users, secret TEXT NOT NULL,
    label TEXT NOT NULL, permissions TEXT NOT NULL, ip_whitelist TEXT NOT NULL, created_ms INTEGER NOT NULL,
    expires_ms INTEGER, last_used_ms INTEGER, recv_window_ms INTEGER NOT NULL, is_revoked INTEGER NOT NULL
) STRICT;
CREATE TABLE sessions (
    token_sha256 TEXT PRIMARY KEY, address TEXT NOT NULL, expires_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE audit (
    n INTEGER PRIMARY KEY AUTOINCREMENT, api_key TEXT NOT NULL REFERENCES keys, action TEXT NOT NULL,
    ip_address TEXT NOT NULL, created_ms INTEGER NOT NULL, details TEXT NOT NULL
) STRICT;
CREATE INDEX audit_by_key ON audit (api_key, n);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
""",
    """
CREATE TABLE holdings (
    address TEXT PRIMARY KEY REFERENCES users, usdc TEXT NOT NULL, has_transferred INTEGER NOT NULL,
    next_nonce INTEGER NOT NULL, positions TEXT NOT NULL, tokens TEXT NOT NULL, margins TEXT NOT NULL
) STRICT;
CREATE TABLE orders (
    order_id INTEGER PRIMARY KEY, address TEXT NOT NULL REFERENCES users, symbol TEXT NOT NULL,
    is_buy INTEGER NOT NULL, size TEXT NOT NULL, filled TEXT NOT NULL, price TEXT NOT NULL,
    client_order_id TEXT, created_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE prices (symbol TEXT PRIMARY KEY, mark TEXT NOT NULL) STRICT;
""",
)

Record = User | Key | Session | AuditEntry | Order | Holdings | Price
R = TypeVar("R", bound=Record)


class StoreError(Exception):
    """The database cannot be used; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    write: str
    lists: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    amounts: frozenset[str] = frozenset()


def _replacing(record: type[Record], name: str) -> str:
    # Not INSERT OR REPLACE: that deletes the old row first and would orphan what refers to it.
    names = [field.name for field in fields(record)]
    marks = ", ".join("?" * len(names))
    changes = ", ".join(f"{column} = excluded.{column}" for column in names[1:])
    return f"INSERT INTO {name} VALUES ({marks}) ON CONFLICT DO UPDATE SET {changes}"  # noqa: S608 - our own names


# Each after those that it refers to.
TABLES: Mapping[type, _Table] = {
    User: _Table("users", _replacing(User, "users"), flags=frozenset({"onboarded", "traded"})),
    Key: _Table(
        "keys",
        _replacing(Key, "keys"),
        lists=frozenset({"permissions", "ip_whitelist"}),
        flags=frozenset({"is_revoked"}),
    ),
    Session: _Table("sessions", _replacing(Session, "sessions")),
    AuditEntry: _Table("audit", "INSERT INTO audit VALUES (nullif(?, 0), ?, ?, ?, ?, ?)"),
    Order: _Table(
        "orders",
        _replacing(Order, "orders"),
        flags=frozenset({"is_buy"}),
        amounts=frozenset({"size", "filled", "price"}),
    ),
    Holdings: _Table(
        "holdings",
        _replacing(Holdings, "holdings"),
        lists=frozenset({"positions", "tokens", "margins"}),
        flags=frozenset({"has_transferred"}),
        amounts=frozenset({"usdc"}),
    ),
    Price: _Table("prices", _replacing(Price, "prices"), amounts=frozenset({"mark"})),
}


class Store:
    """The database. `path` empty keeps everything in memory."""

    def __init__(self, path: str = "") -> None:
        self.is_file = bool(path)
        self._db = _open(path)
        self._prepare(path)

    def _prepare(self, path: str) -> None:
        try:
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")  # its readers keep copies in memory
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA foreign_keys = ON")
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version < SCHEMA_VERSION:
                added = " ".join(SCHEMA[version:])
                self._db.executescript(
                    f"BEGIN IMMEDIATE; {added} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
                )
        except sqlite3.Error as error:
            self.close()
            raise StoreError(f"{path}: {_why_unusable(error)}") from error
        if version > SCHEMA_VERSION:
            self.close()
            raise StoreError(
                f"{path}: has schema {version}, this program knows {SCHEMA_VERSION};"
                " use the program that made it, or another file"
            )

    def save(self, *records: Record) -> None:
        """Insert or replace records, all or none; durable on return."""
        with self._db:
            self._write(records)

    def save_account(self, records: Iterable[Order | Holdings], gone: Iterable[int]) -> None:
        """Insert or replace records and delete the orders with the ids `gone`, all or nothing."""
        with self._db:
            self._write(records)
            self._db.executemany("DELETE FROM orders WHERE order_id = ?", [(one,) for one in gone])

    def replace_all(self, records: Iterable[Record]) -> None:
        """Keep only these records, each listed after those it refers to. No number is given again."""
        with self._db:
            for table in reversed(list(TABLES.values())):
                self._db.execute(f"DELETE FROM {table.name}")  # noqa: S608 - our own names
            self._write(records)

    def _write(self, records: Iterable[Record]) -> None:
        for record in records:
            self._db.execute(TABLES[type(record)].write, [_encode(value) for value in astuple(record)])

    def load(self, kind: type[R]) -> list[R]:
        """Read all records of a kind."""
        table = TABLES[kind]
        names = [field.name for field in fields(kind)]
        rows = self._db.execute(f"SELECT {', '.join(names)} FROM {table.name}")  # noqa: S608 - our own names
        return [kind(**_decode(table, dict(zip(names, row, strict=True)))) for row in rows]

    def audit(self, api_key: str, limit: int, order: str) -> list[AuditEntry]:
        """Read a key's audit entries, `newest` or `oldest` first."""
        direction = {"newest": "DESC", "oldest": "ASC"}[order]
        rows = self._db.execute(
            f"SELECT * FROM audit WHERE api_key = ? ORDER BY n {direction} LIMIT ?",  # noqa: S608 - see above
            (api_key, limit),
        )
        return [AuditEntry(*row) for row in rows]

    def reserve(self, name: str, count: int) -> int:
        """Reserve numbers that are never given again; returns the first of `count`, from 1."""
        with self._db:
            (value,) = self._db.execute(
                "INSERT INTO counters VALUES (?, ?)"
                " ON CONFLICT DO UPDATE SET value = value + excluded.value RETURNING value",
                (name, count),
            ).fetchone()
        return int(value) - count + 1

    def close(self) -> None:
        """Close it; everything saved is on disk already."""
        self._db.close()


def _open(path: str) -> sqlite3.Connection:
    if not path:
        return sqlite3.connect(":memory:")
    try:
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        return sqlite3.connect(Path(path), timeout=LOCK_WAIT_S)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"{path}: cannot be opened: {_why_closed(Path(path), error)}") from error


def _why_closed(path: Path, error: OSError | sqlite3.Error) -> str:
    """Return cause and fix where a file cannot be opened."""
    if path.is_dir():
        return "it is a folder; name a file in it"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}; make it, or name a file in another one"
    cause = os.strerror(error.errno).lower() if isinstance(error, OSError) and error.errno else str(error)
    return f"{cause}; name a file in a folder that you may write"


def _why_unusable(error: sqlite3.Error) -> str:
    """Return cause and fix where a file was opened and is of no use."""
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
        return (
            "locked by another program, as a sandbox does while it runs; stop that one, or name another file"
        )
    return f"cannot be used as a database: {error}; name another file"


def _encode(value: object) -> object:
    if isinstance(value, Decimal):
        return str(value)
    return json.dumps(value) if isinstance(value, tuple) else value


def _decode(table: _Table, row: dict[str, Any]) -> dict[str, Any]:
    for name in table.lists:
        values = json.loads(str(row[name]))
        row[name] = tuple(tuple(value) if isinstance(value, list) else value for value in values)
    for name in table.flags:
        row[name] = bool(row[name])
    for name in table.amounts:
        row[name] = Decimal(row[name])
    return row
