"""The tables of the journal, as `prepare` makes them."""

# 1 had no orders, 2 no halts, 3 not who halted and why, 4 not what was sent, 5 no policies, 6 counted unsent
VERSION = 7

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
SHELF = "CASE WHEN head IS NOT NULL THEN 0 WHEN digest IS NULL THEN 1 ELSE 2 END"  # see `Shelf`

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
CREATE TABLE IF NOT EXISTS nonces (place TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS halts ({", ".join((_HALTS, *_HALTED_BY))}) STRICT;
CREATE TABLE IF NOT EXISTS orders ({", ".join(map(" ".join, ORDERS.items()))}) STRICT;
CREATE INDEX IF NOT EXISTS orders_in_doubt ON orders (sent_ms) WHERE {IN_DOUBT};
CREATE INDEX IF NOT EXISTS orders_settled ON orders ({SHELF}, bot) WHERE {SETTLED};
{_COUNTED}"""

# What later versions added to tables of earlier ones.
ADDED = {
    "halts": _HALTED_BY,
    "orders": tuple(f"{name} {ORDERS[name]}" for name in ("sent_body", "counted")),
}
