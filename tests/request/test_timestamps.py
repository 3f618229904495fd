"""Signing waits for the exchange's time, and follows it when it was wrong."""

import asyncio
from typing import Any

import pytest

from rig.backends import only
from rig.bot import met, request
from rig.history import check_seal
from rig.station import API_KEY, SECRET, Station, running_station
from rig.upstream import Act, Received, Upstream, Wire, hold_until, say, say_and_stall
from rig.wire import OK, reply
from sealgate.exchange.clock import BURST

READ = request()
ORDER = request(b"POST", b"/v1/trade/order", body=b'{"id":"1"}')
CANCEL = request(b"DELETE", b"/v1/trade/order/1")
MESSAGES = {"read": READ, "order": ORDER, "cancel": CANCEL}


def outside(upstream: Upstream) -> bytes:
    detail = b"Timestamp outside recv_window (5000ms). Server time: %d" % upstream.now_ms()
    return reply(b"401 Unauthorized", b'{"detail":"%b"}' % detail)


def strict(upstream: Upstream) -> Any:
    """Return a script that judges the timestamp as the exchange does."""

    def judge(received: Received) -> Act:
        stamp = int(received.head.value(b"X-SERVICE-TIMESTAMP") or 0)
        return say(OK if abs(received.at_ms - stamp) < 5000 else outside(upstream))

    return judge


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
@pytest.mark.parametrize("step_ms", [-86_400_000, 6_000])
async def test_a_refused_timestamp_is_made_good_once(station: Station, message: bytes, step_ms: int) -> None:
    upstream = station.upstream
    upstream.script = strict(upstream)
    assert met(await station.ask(message)) == (200, "done", None, 1)
    # The samples of the start must not reveal the step before the request does.
    await station.until(lambda: len(upstream.asked_time) >= BURST)
    upstream.skew_ms = step_ms
    assert met(await station.ask(message)) == (200, "done", None, 2)
    assert met(await station.ask(message)) == (200, "done", None, 1)
    assert len(upstream.received) == 4
    for received in (upstream.received[0], *upstream.received[2:]):
        check_seal(received, SECRET, API_KEY)
    assert station.gateway.status().clock.steps >= 1


async def begin_to_ask_the_time(station: Station, answer: Act) -> None:
    """Let the keeper ask for the time, and be answered so."""
    upstream = station.upstream
    await station.until(lambda: len(upstream.asked_time) >= BURST)
    asked, upstream.time = len(upstream.asked_time), answer
    only(station.gateway.generation).exchange.clock.due.set()
    await station.until(lambda: len(upstream.asked_time) > asked)
    upstream.time = None


async def test_a_reading_that_was_under_way_when_a_step_came_out_is_no_resync(station: Station) -> None:
    """It may be of the time before: the order would be refused once more, and that be passed on."""
    upstream, go = station.upstream, asyncio.Event()
    upstream.script = strict(upstream)
    await begin_to_ask_the_time(station, hold_until(go, say(upstream.time_reply())))
    upstream.skew_ms = 3_600_000
    asked = asyncio.ensure_future(station.ask(ORDER))
    await station.until(lambda: station.gateway.status().clock.refusals == 1)
    go.set()
    assert met(await asked) == (200, "done", None, 2)
    assert station.gateway.status().clock.steps == 1


@pytest.mark.parametrize("step_ms", [-60_000, 86_400_000])
async def test_what_a_refusal_states_moves_no_clock_that_the_time_does_not_confirm(
    station: Station, step_ms: int
) -> None:
    """Its text may be anybody's; a signature for tomorrow could be kept and used then."""
    upstream, go = station.upstream, asyncio.Event()
    await begin_to_ask_the_time(station, hold_until(go, say(upstream.time_reply())))
    detail = b"Timestamp outside recv_window (5000ms). Server time: %d" % (upstream.now_ms() + step_ms)
    upstream.answers.append(say(reply(b"401 Unauthorized", b'{"detail":"%b"}' % detail)))
    asked = asyncio.ensure_future(station.ask(ORDER))
    await station.until(lambda: station.gateway.status().clock.refusals == 1)
    assert met(await station.ask(READ)) == (200, "done", None, 1)
    go.set()
    assert met(await asked) == (200, "done", None, 2)
    for received in upstream.received:
        stamp = int(received.head.value(b"X-SERVICE-TIMESTAMP") or 0)
        assert abs(received.at_ms - stamp) < 5000
    assert station.gateway.status().clock.steps == 0


async def test_a_timestamp_refusal_that_a_429_follows_and_the_other_way_round(station: Station) -> None:
    upstream = station.upstream
    pause = say(reply(b"429 Too Many Requests", b"{}", b"Retry-After: 0.05"))
    upstream.answers.extend([say(outside(upstream)), pause, say(outside(upstream))])
    assert met(await station.ask(ORDER)) == (401, "refused", None, 3)


async def test_signing_waits_for_the_first_sample(upstream: Upstream) -> None:
    go = asyncio.Event()

    async def tell(wire: Wire) -> None:
        await go.wait()
        await wire.write(upstream.time_reply())

    upstream.time, upstream.skew_ms = tell, 7_200_000
    upstream.script = strict(upstream)
    async with running_station(upstream, synced=False) as station:
        asked = [asyncio.ensure_future(station.ask(message)) for message in MESSAGES.values()]
        await station.until(lambda: station.gateway.handler.inflight == 3)
        assert "clock not synchronized" in station.gateway.status().not_ready[0]
        assert upstream.received == []
        go.set()
        for answer in await asyncio.gather(*asked):
            assert met(answer) == (200, "done", None, 1)
        assert station.gateway.status().not_ready == ()
    assert len(upstream.received) == 3
    for received in upstream.received:
        check_seal(received, SECRET, API_KEY)


async def test_without_a_time_nothing_is_signed(upstream: Upstream) -> None:
    upstream.time = say_and_stall()
    hurried = ORDER.replace(b"Host:", b"X-Gateway-Deadline-Ms: 200\r\nHost:", 1)
    async with running_station(upstream, synced=False) as station:
        assert met(await station.ask(hurried)) == (503, "not_sent", "clock_unsynced", 0)
    assert upstream.received == []


async def test_without_a_time_the_hosts_clock_serves_where_that_is_allowed(upstream: Upstream) -> None:
    upstream.time = say(reply(b"404 Not Found", b"{}"))
    async with running_station(upstream, synced=False, clock={"required": False, "grace": 0.05}) as station:
        assert met(await station.ask(ORDER)) == (200, "done", None, 1)
    check_seal(upstream.received[0], SECRET, API_KEY)


async def test_the_time_itself_needs_no_clock(upstream: Upstream) -> None:
    upstream.time = hold_until(asyncio.Event(), say(OK))
    async with running_station(upstream, synced=False) as station:
        await station.until(lambda: len(upstream.asked_time) == 1)
        upstream.time = None
        answer = await station.ask(request(target=b"/v1/trade/time"))
        assert met(answer) == (200, "done", None, 1)
    names = {name.lower() for name, _ in upstream.asked_time[-1].fields}
    assert names == {b"host"}
