"""A gateway whose exchange closes one pool: what its status, metrics and page say meanwhile."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from observe.test_exposition import counts, figures
from rig.bot import request
from rig.station import Station, running_station
from rig.upstream import Upstream, say
from rig.wire import reply
from sealgate.observe.metrics import Metrics
from sealgate.observe.pools import PoolState, closed_in_words
from sealgate.observe.status import State, Status, state

VENUE = """
name = "pooled"
like = "service"
[[limits.pools]]
name = "weight"
scope = "address"
known = ["1000/1s"]
[[limits.pools]]
name = "orders"
lanes = ["order"]
known = ["100/10s"]
[["replies+"]]
kind = "too_many_orders"
advice = "Send fewer orders."
at = "/code"
is = ["-1015"]
means = "limited"
wait_s = 900
pool = "orders"
"""
ORDER = request(b"POST", b"/v1/trade/order", b"X-Gateway-Deadline-Ms: 900", body=b"{}")
TOO_MANY = reply(b"429 Too Many Requests", b'{"code": -1015, "detail": "Too many new orders"}')


@pytest.fixture
async def pooled(upstream: Upstream, tmp_path: Path) -> AsyncIterator[Station]:
    file = tmp_path / "pooled.toml"
    file.write_text(VENUE)
    async with running_station(upstream, venue=str(file)) as station:
        yield station


def told(status: Status) -> State:
    return state(status, is_failing=False, is_refusing=False)


async def test_published_limits_are_told_before_the_first_request(pooled: Station) -> None:
    found = figures(Metrics(pooled.gateway.status).snapshot()().decode())
    assert counts(found, "limit_requests") == {
        ("pooled", "", "weight", "1s"): 1000,
        ("pooled", "main", "orders", "10s"): 100,
    }


async def test_orders_are_closed_and_the_key_is_not_paused(pooled: Station) -> None:
    pooled.upstream.answers.append(say(TOO_MANY))
    refused = await pooled.ask(ORDER)
    assert (refused.status, refused.reason) == (429, "rate_limited")
    assert (await pooled.ask(request())).status == 200  # a read
    status = pooled.gateway.status()
    (key,) = status.keys
    assert [(one.pool, one.state) for one in key.pools] == [
        ("orders", PoolState.CLOSED),
        ("weight", PoolState.OPEN),
    ]
    assert closed_in_words(key.pools) == "orders: closed for 15 min; cancels and reads go on"
    assert (key.pause_s, told(status)) == (0.0, State.A_POOL_CLOSED)
    found = figures(Metrics(pooled.gateway.status).snapshot()().decode())
    assert counts(found, "pause_seconds") == {("pooled", "main"): 0}
    assert counts(found, "pool_pause_seconds")["pooled", "main", "orders"] > 890
