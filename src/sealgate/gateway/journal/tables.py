"""The tables of the journal, as `prepare` makes them."""

VERSION = 5  # 1 had no orders, 2 no halts, 3 not who halted and why, 4 not what was sent

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
SHELF = "CASE WHEN head IS NOT NULL THEN 0 WHEN digest IS NULL THEN 1 ELSE 2 END"  # see `Shelf`

_HALTS = "bot TEXT, key TEXT, since_ms INTEGER NOT NULL"
_HALTED_BY = ("uid INTEGER", "pid INTEGER", "reason TEXT NOT NULL DEFAULT ''")

SCHEMA = f"""
CREATE TABLE IF NOT EXISTS learned (subject TEXT PRIMARY KEY, limits TEXT NOT NULL, at REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS nonces (place TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS halts ({", ".join((_HALTS, *_HALTED_BY))}) STRICT;
CREATE TABLE IF NOT EXISTS orders ({", ".join(map(" ".join, ORDERS.items()))}) STRICT;
CREATE INDEX IF NOT EXISTS orders_in_doubt ON orders (sent_ms) WHERE {IN_DOUBT};
CREATE INDEX IF NOT EXISTS orders_settled ON orders ({SHELF}, bot) WHERE {SETTLED};
"""

# What later versions added to tables of earlier ones.
ADDED = {"halts": _HALTED_BY, "orders": (f"sent_body {ORDERS['sent_body']}",)}
