"""The live view: what a viewer gets, and that a slow or greedy one harms nobody."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import pytest
from pytest_aiohttp import AiohttpClient
from structlog.testing import capture_logs

from observe.test_picture import STATUS
from rig.admin import Client, application, live_view, running_admin
from rig.bot import bot_at, request
from rig.hand_host import HandHost
from rig.outcome import ANSWERED, changed
from rig.station import ENVIRON, Station, running_station
from rig.upstream import Upstream, say
from rig.verdicts import upstream_error, verdict
from rig.wire import PATIENCE_S, let_pass, reply
from sealgate.exchange.clock import BURST
from sealgate.machine.system import System
from sealgate.observe.live import Broadcast, Live
from sealgate.observe.metrics import Metrics
from sealgate.observe.status import Status
from sealgate.orders.outcome import Conclusion

BOT = b"Authorization: Bearer token-of-grid"


@pytest.fixture
async def station(upstream: Upstream) -> AsyncIterator[Station]:
    bots = {"grid": {"token": "env:TOKEN", "weight": 3}}
    async with running_station(upstream, {**ENVIRON, "TOKEN": "token-of-grid"}, bots=bots) as running:
        yield running


@pytest.fixture
def live(station: Station) -> Live:
    return live_view(station, weights=lambda: {"grid": 3.0, "maker": 1.0})


class Stream:
    """A viewer's events."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> tuple[str, dict[str, Any]]:
        """Return name and document of the next event."""
        name = ""
        async with asyncio.timeout(PATIENCE_S):
            async for line in self._response.content:
                if line.startswith(b"event: "):
                    name = line[7:].decode().strip()
                if line.startswith(b"data: "):
                    return name, json.loads(line[6:])
        raise EOFError

    async def until(self, key: str) -> dict[str, Any]:
        """Return the first picture whose member is not empty."""
        while True:
            _, event = await self.next()
            if event["now"][key]:
                picture: dict[str, Any] = event["now"]
                return picture


@asynccontextmanager
async def viewing(client: Client) -> AsyncIterator[Stream]:
    async with client.get("/events", read_bufsize=1 << 22) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/event-stream"
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        yield Stream(response)


async def status_of(client: Client) -> dict[str, Any]:
    document: dict[str, Any] = await (await client.get("/status.json")).json()
    return document


async def test_first_the_history_then_each_picture(client: Client) -> None:
    async with viewing(client) as stream:
        name, history = await stream.next()
        assert (name, set(history)) == ("history", {"points", "now"})
        name, event = await stream.next()
        assert (name, set(event)) == ("picture", {"point", "now"})
    async with viewing(client) as later:
        _, history = await later.next()
        assert len(history["points"]) >= 1


async def test_a_step_of_the_exchanges_clock_is_said_to_be_one(station: Station, client: Client) -> None:
    """By the time that somebody looks, the clock is fine again; what counts is what was known then."""
    upstream = station.upstream
    await station.until(lambda: len(upstream.asked_time) >= BURST)
    upstream.skew_ms = 3_600_000
    detail = b"Timestamp outside recv_window (5000ms). Server time: %d" % upstream.now_ms()
    upstream.answers.append(say(reply(b"401 Unauthorized", b'{"detail":"%b"}' % detail)))
    async with viewing(client) as stream:
        with capture_logs() as logs:
            answer = await station.ask(request(b"GET", b"/v1/trade/x", BOT))
            (wrong,) = (await stream.until("errors"))["errors"]
    assert (answer.status, answer.attempts) == (200, 2)
    (told,) = (one for one in logs if one["event"] == "upstream_error")
    for evidence in (wrong["evidence"], told["evidence"]):
        assert evidence.startswith("the exchange's clock stepped by +3600.0 s")
    assert (wrong["over_since_ms"] is None, wrong["advice"]) == (False, "")
    assert told["advice"] == "Nothing to do: the gateway follows the exchange's clock."


async def test_the_status_is_the_same_data(station: Station, client: Client) -> None:
    await station.ask(request(b"GET", b"/v1/trade/x", BOT))
    async with viewing(client) as stream:
        _, event = await stream.next()
    assert (await status_of(client)).keys() == event["now"].keys()


async def test_tasks_that_are_left_behind_show(client: Client) -> None:
    before = (await status_of(client))["tasks"]
    left = [asyncio.ensure_future(asyncio.Event().wait()) for _ in range(50)]
    assert (await status_of(client))["tasks"] > before + 25
    for task in left:
        task.cancel()


async def test_viewers_do_not_hold_up_the_end(station: Station) -> None:
    status = station.gateway.status
    async with asyncio.timeout(PATIENCE_S / 2), AsyncExitStack() as viewers:
        async with running_admin(status, Metrics(status)) as admin:
            viewer = await viewers.enter_async_context(bot_at("127.0.0.1", admin.port))
            await viewer.send(request(target=b"/events"))
            assert (await viewer.line()).startswith(b"HTTP/1.1 200 ")
        await viewer.rest()


def test_a_request_as_the_inspector_lists_it() -> None:
    """What a stranger calls itself is anybody's text."""
    told = changed(
        ANSWERED,
        bot=None,
        client="192.0.2.7",
        user_agent="bot token=canary",
        queue_s=0.25,
        total_s=0.5,
        started=7.0,
    )
    live = Live(status, HandHost())
    live([ANSWERED, told])
    latest, first = live.requests()
    assert (first["id"], first["bot"], first["from"]) == (ANSWERED.request_id, "grid", "")
    assert latest == {
        "id": told.request_id,
        "at_ms": 1_789_999_907_500,
        "bot": "stranger",
        "client": "192.0.2.7",
        "user_agent": "bot token=***",
        "from": "bot token=***, 192.0.2.7",
        "exchange": "spot",
        "key": "main",
        "method": "GET",
        "route": told.route,
        "status": 200,
        "outcome": "done",
        "reason": None,
        "attempts": 1,
        "wait_ms": 250.0,
        "took_ms": 500.0,
    }


def test_an_error_of_the_exchange_is_logged_with_what_explains_it() -> None:
    """What a bot asked for is no warning."""
    kinds = {"signature_invalid": "warning", "off_tick": "info", "internal": "warning"}
    met = tuple(upstream_error(kind, 10.0, clock_error_s=0.002) for kind in kinds)
    with capture_logs() as logs:
        Live(status, System())([changed(ANSWERED, conclusion=Conclusion.REFUSED, upstream_errors=met)])
    assert [(one["kind"], one["log_level"]) for one in logs] == list(kinds.items())
    assert logs[0] == {
        "event": "upstream_error",
        "log_level": "warning",
        "kind": "signature_invalid",
        "exchange": "spot",
        "key": "main",
        "bot": "grid",
        "count": 1,
        "evidence": "clock is fine (±2 ms), the key is known: most likely the secret belongs to another key",
        "advice": verdict("signature_invalid").advice,
        "see": "docs/errors.md#signature_invalid",
    }
    assert logs[1]["evidence"] is None


def test_a_viewer_that_does_not_read_loses_the_oldest() -> None:
    broadcast = Broadcast()
    with broadcast.viewing() as queue:
        for number in range(100):
            broadcast.publish(("picture", str(number)))
        assert queue.qsize() == 4
        assert queue.get_nowait() == ("picture", "96")
    assert broadcast.viewers == 0


def status() -> Status:
    return STATUS


@pytest.fixture
def still() -> Live:
    return Live(status, System())


@pytest.fixture
async def visitor(still: Live, aiohttp_client: AiohttpClient) -> Client:
    return await aiohttp_client(application(status, still))


async def test_where_too_many_look_on_the_next_is_sent_away(
    visitor: Client, still: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealgate.observe.live._MOST_VIEWERS", 1)
    with still.broadcast.viewing():
        reply = await visitor.get("/events")
        assert still.broadcast.viewers == 1
    assert (reply.status, await reply.text()) == (503, "too many viewers\n")


async def test_a_stream_is_no_page_to_look_ahead_at(visitor: Client, still: Live) -> None:
    assert (await visitor.head("/events")).status == 405
    assert still.broadcast.viewers == 0


async def test_a_viewer_that_leaves_is_no_failure(visitor: Client, still: Live) -> None:
    failures: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    reader, writer = await asyncio.open_connection("127.0.0.1", visitor.port)
    writer.write(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    await reader.readuntil(b"event: history")
    writer.close()
    await writer.wait_closed()

    async with asyncio.timeout(5):
        while still.broadcast.viewers:
            still.broadcast.publish(("picture", "{}"))
            await let_pass(0)
    await let_pass(0)
    assert failures == []
