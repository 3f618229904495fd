"""The tables of the journal. Only files of this VERSION are used; no other version was ever released."""

VERSION = 9

# The columns of `orders`: the fields of `rows.Order`, in the same sequence, then the ending.
ORDER_COLUMNS = {
    "id": "TEXT PRIMARY KEY",
    "request_id": "TEXT NOT NULL",
    "bot": "TEXT NOT NULL",
    "exchange": "TEXT NOT NULL",
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
    "notional": "TEXT NOT NULL DEFAULT '0'",
    "sent_body": "BLOB",
    "state": "TEXT NOT NULL",
    "status": "INTEGER",
    "settled_ms": "INTEGER",
    "head": "TEXT",
    "body": "BLOB",
}
# The states are literals: SQLite uses a partial index only if a statement repeats its condition.
IN_DOUBT = "state = 'unknown'"
SETTLED = "state NOT IN ('sent', 'unknown')"
SETTLED_KIND = "CASE WHEN head IS NOT NULL THEN 0 WHEN digest IS NULL THEN 1 ELSE 2 END"  # see `SettledKind`

# `counted` has the number of orders that each bot sent to each exchange under a policy, by second, and their
# total value as a decimal number: see `counts`. In `halts`, NULL means all.
SCHEMA = f"""
CREATE TABLE learned (subject TEXT PRIMARY KEY, limits TEXT NOT NULL, at REAL NOT NULL) STRICT;
CREATE TABLE prices (
    exchange TEXT, symbol TEXT, price TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (exchange, symbol)
) STRICT, WITHOUT ROWID;
CREATE TABLE nonces (place TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT;
CREATE TABLE halts (
    bot TEXT, key TEXT, exchange TEXT, since_ms INTEGER NOT NULL,
    uid INTEGER, pid INTEGER, reason TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE orders ({", ".join(map(" ".join, ORDER_COLUMNS.items()))}) STRICT;
CREATE INDEX orders_in_doubt ON orders (sent_ms) WHERE {IN_DOUBT};
CREATE INDEX orders_settled ON orders ({SETTLED_KIND}, bot) WHERE {SETTLED};
CREATE TABLE counted (
    bot TEXT, exchange TEXT, at_s INTEGER, orders INTEGER NOT NULL, notional TEXT NOT NULL,
    PRIMARY KEY (bot, exchange, at_s)
) STRICT, WITHOUT ROWID;
"""
