import json
from dataclasses import asdict

from sealgate.core.doubts import Doubt, JournalStatus

DOUBT = Doubt(
    id="a1-1",
    request_id="mine",
    bot="grid",
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


def test_the_status_page_can_show_it() -> None:
    status = JournalStatus(1, (DOUBT,), None, is_refusing=False)
    shown = json.loads(json.dumps(asdict(status)))
    assert shown["in_doubt"] == 1
    assert Doubt(**shown["doubts"][0]) == DOUBT
