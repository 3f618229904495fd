"""The orders that each bot sent to each exchange under its policies, by second. All may raise sqlite3.Error.

An order counts at its `sent_ms`, unless it is `not_sent`. An order refused by the exchange counts as an order
worth 0. It is counted in the transaction that writes its row, and only once, even if the row is rewritten.
"""

import sqlite3
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from operator import itemgetter
from typing import NamedTuple

from sealgate.orders.journal.rows import Row
from sealgate.orders.journal.schema import ORDER_COLUMNS
from sealgate.orders.outcome import Conclusion
from sealgate.orders.policy import EXACT, Counted

_DAY_S = 86_400
_PLACES = {name: place for place, name in enumerate(ORDER_COLUMNS)}
_counted = itemgetter(_PLACES["counted"])
_bot_and_exchange = itemgetter(_PLACES["bot"], _PLACES["exchange"])
_what_counts = itemgetter(*(_PLACES[name] for name in ("sent_ms", "state", "counted", "notional")))

_BEFORE = "SELECT sent_ms, state, counted, notional FROM orders WHERE id = ?"
_SECOND = "SELECT orders, notional FROM counted WHERE bot = ? AND exchange = ? AND at_s = ?"
_PUT = "INSERT OR REPLACE INTO counted (bot, exchange, at_s, orders, notional) VALUES (?, ?, ?, ?, ?)"
_TOO_OLD = "DELETE FROM counted WHERE bot = ? AND exchange = ? AND at_s < ?"
_PASSED = "SELECT bot, exchange, at_s, orders, notional FROM counted WHERE orders > 0 ORDER BY at_s"


class _Share(NamedTuple):
    """The contribution of one row to its second."""

    at_s: int
    orders: int
    notional: Decimal


def count_row(database: sqlite3.Connection, row: Row) -> None:
    """Count an order's row, which will replace the file's present row of this order."""
    if not _counted(row):
        return
    found = database.execute(_BEFORE, (row[_PLACES["id"]],)).fetchone()
    before, now = None if found is None else _share(*found), _share(*_what_counts(row))
    if before == now:
        return
    who = _bot_and_exchange(row)
    if before is not None:
        taken_back = _Share(before.at_s, -before.orders, before.notional.copy_negate())
        _add(database, who, taken_back)
    if now is not None:
        _add(database, who, now)


def _share(sent_ms: int, state: str, orders: int, notional: str) -> _Share | None:
    """Return the contribution of a row, None if the order was not sent."""
    if state == Conclusion.NOT_SENT:
        return None
    return _Share(sent_ms // 1000, orders, Decimal(0 if state == Conclusion.REFUSED else notional))


def _add(database: sqlite3.Connection, who: tuple[str, str], share: _Share) -> None:
    found = database.execute(_SECOND, (*who, share.at_s)).fetchone()
    if found is None:  # the first row of a second
        database.execute(_TOO_OLD, (*who, share.at_s - _DAY_S))
    orders, notional = found or (0, "0")
    total = str(EXACT.add(Decimal(notional), share.notional))
    database.execute(_PUT, (*who, share.at_s, orders + share.orders, total))


def passed(database: sqlite3.Connection) -> Iterator[Counted]:
    """Return the orders sent under policies, the oldest first. Raises sqlite3.DataError for a damaged row."""
    for bot, exchange, at_s, orders, notional in database.execute(_PASSED):
        try:
            yield Counted(bot, exchange, at_s, orders, Decimal(notional))
        except InvalidOperation:
            raise sqlite3.DataError("the counts of orders under policies are damaged") from None
