"""Orders over a stream: the same halts, policies, pools, journal and records as for any request."""

import asyncio
import hashlib
import hmac
import json
import math
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientWebSocketResponse, web

from rig.backends import only
from rig.compiled import needs_sources
from rig.stream_lab import SECRET, Lab, closed_as, running_lab
from rig.stream_venue import HOST
from rig.wire import PATIENCE_S, until
from sealgate.keys.key_health import BreakerState, KeyFault
from sealgate.orders.halts import Scope
from sealgate.orders.outcome import Conclusion, Outcome
from sealgate.venues.routes import Lane

LABEL = f"{HOST}/private"


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    async with running_lab(tmp_path) as lab:
        yield lab


def order(number: int = 1, **members: Any) -> dict[str, Any]:
    return {"op": "order.place", "id": str(number), "args": {"symbol": "BTC", "size": "1"}, **members}


async def ended(lab: Lab, count: int = 1) -> Outcome:
    """Return the record of that order: its stream's opening and other messages have none of its lanes."""

    def orders() -> list[Outcome]:
        return [one for one in lab.outcomes.all if one.lane in (Lane.ORDER, Lane.CANCEL)]

    await until(lambda: len(orders()) >= count)
    return orders()[count - 1]


@pytest.mark.parametrize(
    ("status", "recorded", "conclusion"),
    [
        (200, 200, Conclusion.DONE),
        (400, 400, Conclusion.REFUSED),
        (429, 429, Conclusion.REFUSED),
        (500, 504, Conclusion.UNKNOWN),
    ],
)
async def test_a_reply_settles_an_order(lab: Lab, status: int, recorded: int, conclusion: str) -> None:
    stream = await lab.open()
    await stream.send_json(order(status=status))
    assert (await stream.receive_json())["status"] == status
    record = await ended(lab)
    assert (record.method, record.route, record.lane) == ("WS", f"{LABEL} order.place", "order")
    assert (record.status, record.conclusion, record.attempts, record.bot) == (
        recorded,
        conclusion,
        1,
        "grid",
    )
    assert record.times_limited == (status == 429)
    assert lab.gateway.streams.desk.tally.orders == {("lab", "grid", conclusion): 1}
    await stream.close()


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda stream: stream.send_json({"op": "vanish"}), id="the exchange vanishes"),
        pytest.param(lambda stream: stream.send_json({"op": "bye"}), id="the exchange closes"),
        pytest.param(lambda stream: stream.close(), id="the bot closes"),
        pytest.param(lambda stream: stream.send_str("no message"), id="the gateway closes"),
    ],
)
async def test_what_no_reply_settles_is_unknown_when_the_stream_ends(lab: Lab, end: Any) -> None:
    stream = await lab.open()
    await stream.send_json(order(status=None))
    await lab.exchange.until(lambda: len(lab.exchange.texts("order.place")) == 1)
    await end(stream)
    record = await ended(lab)
    assert (record.conclusion, record.reason) == (Conclusion.UNKNOWN, "upstream_timeout")
    assert lab.gateway.books.status.in_doubt == 1
    await stream.close()


async def test_an_id_may_be_escaped_in_the_reply(lab: Lab) -> None:
    async def react(stream: web.WebSocketResponse, data: str) -> None:
        assert json.loads(data)["id"] == "a/1"
        await stream.send_str('{"id": "a\\/1", "status": 200}')

    lab.exchange.react = react
    stream = await lab.open()
    await stream.send_json({**order(), "id": "a/1"})
    assert (await ended(lab)).conclusion is Conclusion.DONE
    await stream.close()


async def test_an_order_that_is_not_answered_in_time_is_unknown(tmp_path: Path) -> None:
    async with running_lab(tmp_path, upstream={"total_timeout": 0.05}) as lab:
        stream = await lab.open()
        await stream.send_json(order(status=None))
        record = await ended(lab)
        assert (record.conclusion, record.reason) == (Conclusion.UNKNOWN, "upstream_timeout")
        await stream.send_json({"op": "ping"})
        assert await stream.receive_json() == {"op": "ping"}
        await stream.close()


async def test_a_reply_counts_although_the_stream_is_closing(lab: Lab) -> None:
    async def react(stream: web.WebSocketResponse, data: str) -> None:
        message = json.loads(data)
        await lab.exchange.until(lambda: message["op"] == "order.place")
        asyncio.get_running_loop().call_soon(lambda: None)
        await stream.send_json({"id": message["id"], "status": 200})

    lab.exchange.react = react
    stream = await lab.open()
    await stream.send_json(order())
    await stream.send_str("no message")  # the gateway closes for it, right behind the order
    assert (await ended(lab)).conclusion is Conclusion.DONE
    await stream.close()


async def test_an_order_without_an_id_ends_as_unknown_at_once(lab: Lab) -> None:
    stream = await lab.open()
    await stream.send_json({"op": "order.place", "args": {}})
    record = await ended(lab)
    assert (record.conclusion, record.status) == (Conclusion.UNKNOWN, 202)
    await stream.close()


async def test_an_order_without_a_login_says_nothing_of_the_key(lab: Lab) -> None:
    stream = await lab.open()
    for number in range(5):
        await stream.send_json(order(number, status=400, error="no such key"))
        assert (await stream.receive_json())["status"] == 400
        record = await ended(lab, 1 + number)
    assert record.conclusion is Conclusion.REFUSED
    assert record.detail == "the bot has not logged in on this stream"
    breaker = only(lab.gateway.generation).exchange.live_keys["main"].breaker
    assert (breaker.state.doubt, breaker.state.trouble) == (None, None)
    await stream.close()


async def test_a_signed_order(lab: Lab) -> None:
    stream = await lab.open()
    await stream.send_json({"op": "order.signed", "id": 7, "args": {"symbol": "BTC"}})
    await stream.receive_json()
    [sent] = lab.exchange.texts("order.signed")
    signed = hmac.new(SECRET.encode(), f"{sent['time']}BTC".encode(), hashlib.sha256).hexdigest()
    assert sent["sign"] == signed
    assert (await ended(lab)).conclusion is Conclusion.DONE
    await stream.close()


async def refused(stream: ClientWebSocketResponse) -> str:
    """Return the reason for which the gateway closes a stream."""
    code, reason = closed_as(await stream.receive())
    assert code == 1008
    return reason.partition(":")[0]


async def test_a_halt_stops_orders_and_lets_cancels_and_logins_pass(lab: Lab) -> None:
    await lab.gateway.halt(Scope())
    stream = await lab.open()
    for message in ({"op": "login", "arms": 4}, {"op": "order.cancel", "id": "9"}, {"op": "ping"}):
        await stream.send_json(message)
        assert (await stream.receive_json())["op"] == message["op"]
    await stream.send_json(order())
    assert await refused(stream) == "halted"
    record = await ended(lab, 2)
    assert (record.conclusion, record.reason, record.attempts) == (Conclusion.NOT_SENT, "halted", 0)
    assert lab.exchange.texts("order.place") == []


async def test_what_nobody_named_is_stopped_by_a_halt(lab: Lab) -> None:
    await lab.gateway.halt(Scope())
    stream = await lab.open()
    await stream.send_json({"op": "something"})
    assert await refused(stream) == "halted"
    assert lab.exchange.texts("something") == []


async def test_a_halt_stops_an_order_that_waits(lab: Lab) -> None:
    stream = await lab.open()
    await stream.send_json(order(1, status=429))
    await stream.receive_json()
    await stream.send_json(order(2))
    await until(lambda: len(lab.gateway.services.in_flight) == 1)
    await lab.gateway.halt(Scope())
    assert await refused(stream) == "halted"
    assert [one["id"] for one in lab.exchange.texts("order.place")] == ["1"]
    assert (await ended(lab, 2)).conclusion is Conclusion.NOT_SENT


async def test_a_refusal_for_the_limit_holds_back_orders_and_not_cancels(lab: Lab) -> None:
    first, second = await lab.open(), await lab.open()
    await first.send_json(order(1, status=429))
    await first.receive_json()
    await first.send_json(order(2))
    await until(lambda: len(lab.gateway.services.in_flight) == 1)
    await second.send_json({"op": "order.cancel", "id": "3"})
    assert (await second.receive_json())["id"] == "3"
    assert [one["id"] for one in lab.exchange.texts("order.place")] == ["1"]
    assert (await first.receive_json())["id"] == "2"  # in the end it goes, by itself
    await first.close()
    await second.close()


async def test_pings_and_pongs_go_past_an_order_that_waits(lab: Lab) -> None:
    stream = await lab.open()
    await stream.send_json(order(1, status=429))
    await stream.receive_json()
    await stream.send_json(order(2))
    await stream.ping(b"still here")
    await lab.exchange.until(lambda: ("PING", b"still here") in lab.exchange.messages)
    assert [one["id"] for one in lab.exchange.texts("order.place")] == ["1"]
    await stream.close()


async def test_a_message_behind_an_order_that_waits_is_sent_after_it(lab: Lab) -> None:
    stream = await lab.open()
    await stream.send_json(order(1, status=429))
    await stream.receive_json()
    await stream.send_json(order(2))
    await until(lambda: len(lab.gateway.services.in_flight) == 1)
    await stream.send_json({"op": "subscribe"})
    assert [(await stream.receive_json())["op"] for _ in range(2)] == ["order.place", "subscribe"]
    assert [json.loads(one)["op"] for one in lab.exchange.messages[1:]] == ["order.place", "subscribe"]
    await stream.close()


async def test_a_message_that_is_neither_signed_nor_an_order_has_no_record(lab: Lab) -> None:
    stream = await lab.open(bot="EYE")
    await stream.send_json({"op": "subscribe"})
    assert await stream.receive_json() == {"op": "subscribe"}
    await stream.close()
    await lab.outcomes.until(1)
    await until(lambda: len(lab.gateway.streams) == 0)
    assert [one.method for one in lab.outcomes.all] == ["GET"]


async def test_a_subscription_needs_no_key_that_the_exchange_accepts(lab: Lab) -> None:
    stream = await lab.open()
    breaker = only(lab.gateway.generation).exchange.live_keys["main"].breaker
    breaker.state = BreakerState(fault=KeyFault.INVALID, trial_at=math.inf)
    await stream.send_json({"op": "subscribe"})
    assert await stream.receive_json(timeout=PATIENCE_S) == {"op": "subscribe"}
    await stream.send_json(order(1))
    assert await refused(stream) == "key_disabled"


async def test_a_wait_that_a_refusal_states_is_kept(lab: Lab) -> None:
    stream = await lab.open()
    await stream.send_json(order(1, status=429, wait=3600))
    await stream.receive_json()
    await stream.send_json(order(2))
    assert await refused(stream) == "rate_limited"
    assert [one["id"] for one in lab.exchange.texts("order.place")] == ["1"]


async def test_an_order_that_waits_is_not_sent_once_its_bot_is_gone(lab: Lab) -> None:
    stream = await lab.open()
    await stream.send_json(order(1, status=429))
    await stream.receive_json()
    await stream.send_json(order(2))
    await until(lambda: len(lab.gateway.services.in_flight) == 1)
    await stream.close()
    record = await ended(lab, 2)
    assert (record.conclusion, record.attempts) == (Conclusion.NOT_SENT, 0)
    await until(lambda: bool(lab.exchange.closed))
    assert [one["id"] for one in lab.exchange.texts("order.place")] == ["1"]


async def waiting_order(lab: Lab) -> ClientWebSocketResponse:
    """Return a stream on which an order waits: the exchange refused the one before it for the limit."""
    stream = await lab.open()
    await stream.send_json(order(1, status=429, wait=20))
    await stream.receive_json()
    await stream.send_json(order(2))
    await until(lambda: len(lab.gateway.services.in_flight) == 1)
    return stream


@pytest.mark.parametrize(
    ("is_vanished", "closed"),
    [pytest.param(False, 4001, id="closes"), pytest.param(True, 1012, id="vanishes")],
)
async def test_an_order_does_not_wait_for_a_stream_that_the_exchange_ended(
    tmp_path: Path, *, is_vanished: bool, closed: int
) -> None:
    async with running_lab(tmp_path, limits={"max_wait": 60.0}) as lab:
        ends = asyncio.Event()

        async def react(stream: web.WebSocketResponse, data: str) -> None:
            message = json.loads(data)
            await stream.send_json({"id": message["id"], "status": 429, "wait": 20})
            await ends.wait()
            if not is_vanished:
                await stream.close(code=4001)
            elif stream._req is not None and stream._req.transport is not None:
                stream._req.transport.abort()

        lab.exchange.react = react
        stream = await waiting_order(lab)
        ends.set()
        assert closed_as(await stream.receive())[0] == closed
        record = await ended(lab, 2)
        assert (record.conclusion, record.reason) == (Conclusion.NOT_SENT, "upstream_broken")
        await stream.close()
        await until(lambda: len(lab.gateway.streams) == 0)


async def test_an_order_that_waits_is_refused_once_the_gateway_shuts_down(tmp_path: Path) -> None:
    async with running_lab(tmp_path, limits={"max_wait": 60.0}) as lab:
        stream = await waiting_order(lab)
        drain = asyncio.create_task(lab.gateway.drain())
        assert closed_as(await stream.receive())[0] == 1001
        record = await ended(lab, 2)
        assert (record.conclusion, record.reason) == (Conclusion.NOT_SENT, "draining")
        assert [one["id"] for one in lab.exchange.texts("order.place")] == ["1"]
        await drain
        await stream.close()


async def test_an_order_does_not_wait_for_a_stream_that_a_reload_closed(tmp_path: Path) -> None:
    async with running_lab(tmp_path, limits={"max_wait": 60.0}) as lab:
        stream = await waiting_order(lab)
        bots = {name: bot for name, bot in lab.configs[0].bots.items() if name != "grid"}
        lab.configs.append(lab.configs[0].with_tables(bots=bots))
        await lab.gateway.reloader.reload("a test")
        assert closed_as(await stream.receive())[0] == 1012
        record = await ended(lab, 2)
        assert (record.conclusion, record.reason) == (Conclusion.NOT_SENT, "bot_forbidden")
        await stream.close()


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        pytest.param(order(args={"symbol": "BTC", "size": "2.01"}), "policy_refused", id="too large"),
        pytest.param({"op": "order.blind", "id": "1"}, "policy_refused", id="not to be judged"),
        pytest.param(order(args={"symbol": "BTC"}), "policy_refused", id="no size"),
    ],
)
async def test_a_policy_judges_orders_of_streams(lab: Lab, message: dict[str, Any], reason: str) -> None:
    stream = await lab.open(bot="TIED")
    await stream.send_json(order())
    assert (await stream.receive_json())["status"] == 200
    await stream.send_json(message)
    assert await refused(stream) == reason
    assert len(lab.exchange.messages) == 1 or lab.exchange.messages[1] == ("CLOSE", 1001)


@needs_sources
async def test_an_order_that_fails_inside_the_gateway_has_an_end(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bool:
        raise RuntimeError("a fault of our own")

    monkeypatch.setattr(lab.gateway.books, "must_record", fail)
    stream = await lab.open()
    await stream.send_json(order())
    assert await refused(stream) == "internal_error"
    record = await ended(lab)
    assert (record.conclusion, record.reason) == (Conclusion.NOT_SENT, "internal_error")
    assert len(lab.gateway.services.in_flight) == 0
    assert lab.exchange.texts("order.place") == []


@needs_sources
async def test_an_order_that_is_being_recorded_is_refused_for_what_closed_its_stream(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_recording, is_recorded = asyncio.Event(), asyncio.Event()

    async def record(*_: object) -> None:
        is_recording.set()
        await is_recorded.wait()

    monkeypatch.setattr(lab.gateway.books, "must_record", lambda _: True)
    monkeypatch.setattr(lab.gateway.books, "intent", record)
    stream = await lab.open()
    await stream.send_json(order())
    await is_recording.wait()
    bots = {name: bot for name, bot in lab.configs[0].bots.items() if name != "grid"}
    lab.configs.append(lab.configs[0].with_tables(bots=bots))
    await lab.gateway.reloader.reload("a test")
    is_recorded.set()
    record_of_it = await ended(lab)
    assert (record_of_it.conclusion, record_of_it.reason) == (Conclusion.NOT_SENT, "bot_forbidden")
    assert lab.exchange.texts("order.place") == []
    await stream.close()


def rows_of(file: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(file)) as database:
        return database.execute("SELECT method, target, state FROM orders").fetchall()


async def test_an_order_is_in_the_journal_before_its_first_byte(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    async with running_lab(tmp_path, journal={"file": str(file)}) as lab:
        seen: list[list[tuple[Any, ...]]] = []

        async def react(stream: web.WebSocketResponse, data: str) -> None:
            seen.append(rows_of(file))
            await stream.send_json({"id": json.loads(data)["id"], "status": 200})

        lab.exchange.react = react
        stream = await lab.open()
        await stream.send_json(order())
        await stream.receive_json()
        assert seen == [[("WS", f"/{LABEL}", "sent")]]
        await until(lambda: [row[2] for row in rows_of(file)] == ["done"])
        await stream.close()


async def test_an_order_is_not_sent_where_the_journal_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "journal.db"
    async with running_lab(tmp_path, journal={"file": str(file)}) as lab:
        with closing(sqlite3.connect(file)) as database:
            database.execute("DROP TABLE orders")
            database.commit()
        stream = await lab.open()
        await stream.send_json(order())
        assert await refused(stream) == "halted"
        assert lab.exchange.texts("order.place") == []
