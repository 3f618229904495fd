"""A journal in this process, and orders for it."""

import contextlib
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

from sealgate.machine.system import System
from sealgate.orders.journal import Journal, Keeping, Order, orders
from sealgate.orders.journal.file import connect, prepare
from sealgate.orders.journal.rows import Row
from sealgate.orders.outcome import BotReply, Conclusion, Ending
from sealgate.venues.routes import Lane

KEEPING = Keeping(longest_s=3600.0, most_bytes=10**8)


ORDER = Order(
    id="a1-1",
    request_id="mine",
    bot="grid",
    exchange="spot",
    key="main",
    method="POST",
    route="/order",
    lane=Lane.ORDER,
    target="/v1/trade/order?x=1",
    idempotency_key="k-1",
    digest="d" * 64,
    timestamp_ms=1_790_000_000_000,
    fence_ms=1_790_000_005_000,
    attempts=1,
    sent_ms=1_790_000_000_012,
)


REPLY = BotReply(201, "Cre\udcffated", ((b"Content-Type", b"text/\xe9"),), b"\x00\xff")


DONE = Ending(Conclusion.DONE, ORDER.fence_ms, REPLY)


UNKNOWN = Ending(Conclusion.UNKNOWN, ORDER.fence_ms)


def order(number: int) -> Order:
    return ORDER._replace(id=f"a1-{number}", idempotency_key=None, digest=None)


@contextlib.asynccontextmanager
async def running_journal(file: Path, keeping: Keeping = KEEPING) -> AsyncIterator[Journal]:
    journal = Journal(file, keeping, System())
    try:
        yield journal
    finally:
        await journal.close()


def leave_behind(file: Path, *rows: Row) -> None:
    """Write rows as a gateway did that was killed."""
    prepare(file)
    with closing(connect(file)) as database:
        orders.write(database, rows)
