"""Many bots, many orders and every fault at once: what the bots were told must fit what was received.

Each order has an id of its own in its target, and the upstream keeps every receipt (hazards, section 2).
"""

import asyncio
from collections.abc import Iterable

import pytest

from rig.bot import Reply, request
from rig.history import check_history
from rig.station import API_KEY, SECRET, Station, running_station
from rig.upstream import (
    Act,
    Received,
    Upstream,
    drip,
    say,
    say_and_close,
    say_and_reset,
    say_and_stall,
)
from rig.wire import OK, reply
from sealgate.core.outcome import Outcome

METHODS = (b"POST", b"PUT", b"PATCH", b"DELETE")
BOTS, ORDERS_EACH = 6, 40
TARGET = b"/v1/trade/order/"
# outcome -> how often it was received, without the receipts that a 429 answered
EXPECTED = {"not_sent": (0, 0), "unknown": (0, 1), "done": (1, 1), "refused": (1, 1)}
PAUSE = say(reply(b"429 Too Many Requests", b"{}", b"Retry-After: 0.02"))
FAULTS: tuple[Act, ...] = (
    say_and_close(),
    say_and_reset(),
    say_and_close(b"HTTP/1.1 200 OK\r\nConte"),
    say_and_close(OK[:-1]),
    say_and_reset(b"HTTP/1.1 200 OK\r\n\r\npart"),
    say(b"garbage\r\n\r\n"),
    say_and_stall(),
    drip(b"HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n" + b"x" * 90_000),
    say(reply(b"500 Internal Server Error", b"{}")),
    say(reply(b"400 Bad Request", b"{}")),
    PAUSE,
)


class Trouble:
    """A script that answers one request in three with a fault, each fault in its turn."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, _: Received) -> Act:
        """Return the act for the next request."""
        self._count += 1
        turn, rest = divmod(self._count, 3)
        return say(OK) if rest else FAULTS[turn % len(FAULTS)]


def order(method: bytes, order_id: str) -> bytes:
    return request(
        method, TARGET + order_id.encode(), f"X-Gateway-Request-Id: {order_id}".encode(), body=b"{}"
    )


async def trade(station: Station, name: int) -> dict[str, Reply]:
    """Send a bot's orders one after the other, each whatever became of the one before."""
    ids = [f"{name}-{number}" for number in range(ORDERS_EACH)]
    return {
        order_id: await station.ask(order(METHODS[turn % 4], order_id)) for turn, order_id in enumerate(ids)
    }


def check_told(told: dict[str, Reply], outcomes: Iterable[Outcome], received: Iterable[Received]) -> None:
    """Check each order's outcome against its receipts; a 429 is the one reason for a further one."""
    receipts = dict.fromkeys(told, 0)
    for request_ in received:
        receipts[request_.target.removeprefix(TARGET).decode()] += 1  # KeyError: no bot sent this
    pauses = {outcome.request_id: outcome.resends.count("rate_limited") for outcome in outcomes}
    assert pauses.keys() == told.keys()
    for order_id, answer in told.items():
        assert answer.is_whole
        least, most = EXPECTED[answer.outcome or ""]
        assert least <= receipts[order_id] - pauses[order_id] <= most


async def test_what_bots_are_told_fits_what_was_received(upstream: Upstream) -> None:
    upstream.script = Trouble()
    async with running_station(upstream, upstream={"total_timeout": 0.3}) as station:
        told: dict[str, Reply] = {}
        for part in await asyncio.gather(*(trade(station, name) for name in range(BOTS))):
            told.update(part)
    check_told(told, station.outcomes.all, upstream.received)
    check_history(upstream.received, SECRET, API_KEY)
    for outcome in ("done", "refused", "unknown"):
        assert sum(answer.outcome == outcome for answer in told.values()) >= 5
    assert any("rate_limited" in outcome.resends for outcome in station.outcomes.all)


async def test_the_check_sees_a_second_receipt(station: Station) -> None:
    told = {"1": await station.ask(order(b"DELETE", "1"))}
    (received,) = station.upstream.received
    check_told(told, station.outcomes.all, [received])
    for wrong in ([], [received, received]):
        with pytest.raises(AssertionError):
            check_told(told, station.outcomes.all, wrong)
