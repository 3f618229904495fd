"""An order in doubt."""

from sealgate.orders.doubts import Doubt

DOUBT = Doubt(
    id="a1-1",
    request_id="mine",
    bot="grid",
    exchange="spot",
    key="main",
    method="POST",
    route="/order",
    target="/v1/trade/order",
    idempotency_key=None,
    timestamp_ms=1_790_000_000_000,
    fence_ms=1_790_000_005_000,
    attempts=1,
    sent_ms=1_790_000_000_012,
)
