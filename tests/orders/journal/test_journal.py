"""What outlives the process, and what a disk that refuses costs, through a whole gateway."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from rig.bot import request
from rig.station import Station, running_station
from rig.upstream import Upstream, say
from rig.wire import OK, PATIENCE_S, reply
from sealgate.orders.journal import journal as journal_module
from sealgate.orders.journal import orders, thread

LIMITED = reply(b"429 Too Many Requests", b"{}", b"Retry-After: 0.2")


async def learn_a_limit(station: Station) -> None:
    """Let three pass and refuse the fourth, until a limit is known."""
    upstream = station.upstream
    while not station.gateway.status().keys[0].limits:
        upstream.answers.extend([say(OK), say(OK), say(OK), say(LIMITED)])
        async with asyncio.timeout(30):
            for _ in range(4):
                await station.ask(request())


def put_a_folder_in_the_place_of(file: Path) -> None:
    for part in file.parent.iterdir():
        part.unlink()
    file.mkdir()


async def test_a_restart_remembers(upstream: Upstream, tmp_path: Path) -> None:
    journal = {"file": str(tmp_path / "journal.db")}
    async with running_station(upstream, journal=journal) as station:
        await learn_a_limit(station)
        (known,) = station.gateway.status().keys[0].limits
    async with running_station(upstream, journal=journal) as station:
        (remembered,) = station.gateway.status().keys[0].limits
    assert remembered.window_s == known.window_s
    assert remembered.seen == known.seen
    assert (remembered.n, remembered.low) == (known.n, known.low)


async def test_a_disk_that_refuses_costs_no_request(upstream: Upstream, tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    with capture_logs() as logs:
        async with running_station(upstream, journal={"file": str(file)}) as station:
            put_a_folder_in_the_place_of(file)
            assert (await station.ask(request())).status == 200
    (told,) = [line for line in logs if line["event"] == "journal_not_written"]
    assert "check journal.file" in told["fix"]


ORDER = request(b"POST", b"/v1/trade/order", body=b"{}")
CANCEL = request(b"DELETE", b"/v1/trade/order/1")


async def test_a_disk_that_hangs_holds_neither_cancel_nor_read_and_orders_not_for_long(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More orders than there are connections wait for it: the others go at once, the orders are refused."""
    answers, write = threading.Event(), orders.write

    def hang(*arguments: Any) -> None:
        answers.wait(PATIENCE_S)
        write(*arguments)

    journal = {"file": str(tmp_path / "journal.db")}
    async with running_station(upstream, journal=journal, upstream={"max_connections": 4}) as station:
        monkeypatch.setattr(orders, "write", hang)
        for module in (thread, journal_module):
            monkeypatch.setattr(module, "HANGS_AFTER_S", 0.7)
        begun = [asyncio.ensure_future(station.ask(ORDER)) for _ in range(8)]
        await station.until(lambda: station.gateway.handler.inflight == len(begun))
        for message in (CANCEL, request()):
            assert (await station.ask(message)).outcome == "done"
        assert not any(order.done() for order in begun)
        for answer in await asyncio.gather(*begun):
            assert (answer.status, answer.reason, answer.outcome) == (503, "halted", "not_sent")
        assert station.gateway.status().not_ready == (
            "the journal cannot be written: the disk does not respond",
        )
        for message in (CANCEL, request()):
            assert (await station.ask(message)).outcome == "done"
        answers.set()
        await station.until(lambda: not station.gateway.status().not_ready)
        assert (await station.ask(ORDER)).outcome == "done"
    assert upstream.receipts(b"/v1/trade/order") == 1
