"""Every fault of the rig by itself, plain and over TLS: what a read and what an order become of it.

The tables of rig/faults.py are what the history check mixes; here each shows what it does.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rig import faults
from rig.backends import only
from rig.bot import met, request, told
from rig.door import Welcome, ignore
from rig.faults import Fault
from rig.history import check_history
from rig.station import API_KEY, SECRET, Station, running_station
from rig.tls import Authority
from rig.upstream import Act, Upstream, hold_until, running_upstream, say
from rig.wire import OK, PATIENCE_S
from sealgate.venues.routes import Lane

READ = request()
ORDERS = {
    method: request(method.encode(), b"/v1/trade/order/1", body=b'{"id":"1"}')
    for method in ("POST", "PUT", "PATCH", "DELETE")
}
BODY = b'{"order":1}'
PATIENT: Mapping[str, Any] = {"total_timeout": PATIENCE_S, "connect_timeout": PATIENCE_S}
HASTY: Mapping[str, Any] = {"total_timeout": 1.5, "connect_timeout": 0.7}  # where the time has to end
Told = tuple[int, str | None, str | None]

DONE: Told = (200, "done", None)
LOST: Told = (502, "unknown", "upstream_broken")
LATE: Told = (504, "unknown", "upstream_timeout")


@pytest.fixture
def timeouts() -> Mapping[str, Any]:
    return PATIENT


@pytest.fixture(params=["plain", "TLS"])
async def station(
    request: pytest.FixtureRequest, authority: Authority, tmp_path: Path, timeouts: Mapping[str, Any]
) -> AsyncIterator[Station]:
    is_tls = request.param == "TLS"
    settings = {**timeouts, "warm": False} | ({"ca_file": authority.write(tmp_path)} if is_tls else {})
    async with (
        running_upstream(authority.server_context() if is_tls else None) as upstream,
        running_station(upstream, upstream=settings, clock={"interval": 3600}) as running,
    ):
        yield running


hasty = pytest.mark.parametrize("timeouts", [HASTY], ids=["hasty"])
# Connecting takes as long as it takes; waiting for the reply has to end.
hasty_reply = pytest.mark.parametrize(
    "timeouts", [{"total_timeout": 0.75, "connect_timeout": PATIENCE_S}], ids=["hasty reply"]
)


def cases(table: Mapping[str, Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("fault", table.values(), ids=table)


async def check_orders(station: Station, act: Act, expected: Told) -> None:
    """Each is received once, whatever comes of it."""
    for order in ORDERS.values():
        station.upstream.answers.append(act)
        before = len(station.upstream.received)
        answer = await station.ask(order)
        assert (told(answer), answer.attempts) == (expected, 1)
        assert len(station.upstream.received) == before + 1
    check_history(station.upstream.received, SECRET, API_KEY)


async def cut_off(station: Station) -> None:
    """Leave no connection to the upstream, nor anything that would open one by itself."""
    await station.until(lambda: len(station.upstream.asked_time) >= 5)
    station.upstream.cut_all()
    await station.until(lambda: not only(station.gateway.generation).exchange.upstream._idle)


@cases({name: fault for name, fault in faults.DONE.items() if "reset" not in name})
async def test_a_whole_reply(station: Station, fault: Fault) -> None:
    station.upstream.answers.append(fault(BODY))
    answer = await station.ask(READ)
    assert (told(answer), answer.body) == (DONE, BODY)
    await check_orders(station, fault(BODY), DONE)


@cases({name: fault for name, fault in faults.DONE.items() if "reset" in name})
async def test_a_whole_reply_and_a_reset(station: Station, fault: Fault) -> None:
    """A reset may overtake what TLS has not unpacked yet."""
    for count, order in enumerate(ORDERS.values(), 1):
        station.upstream.answers.append(fault(BODY))
        answer = await station.ask(order)
        assert (told(answer), answer.body) == (DONE, BODY) or (
            station.upstream.is_tls and told(answer) == LOST
        )
        assert len(station.upstream.received) == count


@cases(faults.REFUSED)
async def test_a_refusal(station: Station, fault: Fault) -> None:
    station.upstream.answers.append(fault(BODY))
    answer = await station.ask(ORDERS["POST"])
    assert (answer.body, answer.outcome, answer.reason) == (BODY, "refused", None)


@cases(faults.SERVER_ERROR)
async def test_a_server_error(station: Station, fault: Fault) -> None:
    for message, outcome in ((READ, "refused"), (ORDERS["DELETE"], "unknown")):
        station.upstream.answers.append(fault(BODY))
        answer = await station.ask(message)
        assert (answer.body, answer.outcome, answer.reason) == (BODY, outcome, None)


@cases(faults.LOST)
async def test_a_lost_reply(station: Station, fault: Fault) -> None:
    station.upstream.answers.extend([fault(BODY), say(OK)])
    answer = await station.ask(READ)
    assert (told(answer), answer.attempts) == (DONE, 2)
    await check_orders(station, fault(BODY), LOST)


@cases(faults.LOST_IN_TLS)
async def test_an_end_that_only_tls_can_tell_from_the_whole(station: Station, fault: Fault) -> None:
    station.upstream.answers.append(fault(BODY))
    answer = await station.ask(ORDERS["POST"])
    assert told(answer) == (LOST if station.upstream.is_tls else DONE)


@hasty_reply
@cases(faults.LATE)
async def test_a_late_reply(station: Station, fault: Fault) -> None:
    station.upstream.otherwise = fault(BODY)
    messages = (READ, ORDERS["POST"], ORDERS["DELETE"])
    assert [met(answer) for answer in await asyncio.gather(*map(station.ask, messages))] == [(*LATE, 1)] * 3
    assert len(station.upstream.received) == 3


@hasty
@cases(faults.CUT_WHILE_PASSED_ON)
async def test_a_reply_that_breaks_off_while_it_is_passed_on(station: Station, fault: Fault) -> None:
    """By then the bot has its head, and so it must see that the body is cut."""
    station.upstream.answers.append(fault(BODY))
    answer = await station.ask(ORDERS["POST"])
    assert not answer.is_whole or answer.outcome == "unknown"
    assert len(station.upstream.received) == 1
    assert (await station.outcomes.until(1)).conclusion == "unknown"


@cases(faults.UNREAD)
async def test_a_request_that_is_not_read(station: Station, fault: Act) -> None:
    station.upstream.unread_acts.append(fault)
    assert told(await station.ask(READ)) == DONE
    for count, order in enumerate(ORDERS.values(), 2):
        station.upstream.unread_acts.append(fault)
        assert told(await station.ask(order)) == LOST
        assert (station.upstream.unread, len(station.upstream.received)) == (count, 1)


@cases(faults.UNREAD)
@pytest.mark.parametrize("order", [ORDERS["POST"], ORDERS["DELETE"]], ids=["POST", "DELETE"])
async def test_the_same_on_a_connection_that_was_idle(station: Station, order: bytes, fault: Act) -> None:
    upstream = station.upstream
    assert told(await station.ask(READ)) == DONE
    connections = upstream.connections
    upstream.unread_acts.append(fault)
    assert told(await station.ask(order)) == LOST
    assert (upstream.connections, len(upstream.received)) == (connections, 1)


@pytest.mark.parametrize(
    ("fault", "timeouts"),
    [(fault, HASTY if fault is ignore else PATIENT) for fault in faults.WELCOMES.values()],
    ids=faults.WELCOMES,
)
async def test_a_connection_that_is_not_to_be_had(station: Station, fault: Welcome) -> None:
    """Under TLS nothing was sent, and it goes again; else it depends on what was written by then."""
    door = station.upstream.door
    for order in (ORDERS["POST"], ORDERS["DELETE"]):
        await cut_off(station)
        before = len(station.upstream.received)
        door.welcomes.append(fault)
        answer = await station.ask(order)
        receipts = len(station.upstream.received) - before
        if station.upstream.is_tls:
            assert (told(answer), receipts) == (DONE, 1)
        else:
            assert told(answer) in ((LATE,) if fault is ignore else (LOST, DONE))
            assert receipts == (answer.outcome == "done")


SHUT: Mapping[str, Told] = {
    "shut": (502, "not_sent", "upstream_unreachable"),
    "block": (504, "not_sent", "upstream_timeout"),
}


@pytest.mark.parametrize("timeouts", [{**HASTY, "connect_timeout": 0.3}], ids=["hasty"])
@pytest.mark.parametrize(("how", "expected"), SHUT.items(), ids=SHUT)
async def test_an_address_where_nobody_answers(station: Station, how: str, expected: Told) -> None:
    door = station.upstream.door
    await cut_off(station)
    getattr(door, how)()
    for message in (READ, ORDERS["POST"]):
        assert told(await station.ask(message)) == expected
    assert station.upstream.received == []
    door.reopen()
    assert told(await station.ask(ORDERS["POST"])) == DONE
    assert len(station.upstream.received) == 1


async def test_connections_that_are_all_in_use(upstream: Upstream) -> None:
    """Nothing was sent of what waits for one, in any lane."""
    upstream.otherwise = hold_until(go := asyncio.Event(), say(OK))
    settings = {"max_connections": 2, "connect_timeout": 20, "total_timeout": 20}
    async with running_station(upstream, upstream=settings) as station:
        lanes = (request(b"POST", b"/v1/trade/order"), READ, request(b"DELETE", b"/v1/trade/order/1"))
        begun = [asyncio.ensure_future(station.ask(message)) for message in lanes * 3]
        places = only(station.gateway.generation).exchange.upstream.most_connections
        await upstream.until_received(places)
        await station.until(
            lambda: (
                sum(map(only(station.gateway.generation).exchange.upstream.waiting, Lane))
                == len(begun) - places
            )
        )
        for message in lanes:
            hurried = message.replace(b"\r\n\r\n", b"\r\nX-Gateway-Deadline-Ms: 300\r\n\r\n")
            assert met(await station.ask(hurried)) == (503, "not_sent", "queue_full", 0)
        assert len(upstream.received) == places
        go.set()
        assert {told(answer) for answer in await asyncio.gather(*begun)} == {DONE}
    assert len(upstream.received) == len(begun)


def for_the_moment(station: Station) -> Iterator[tuple[Act, str]]:
    yield faults.pause(), "rate_limited"
    yield faults.timestamp_refusal(station.upstream.now_ms()), "timestamp"


async def test_a_refusal_for_the_moment_is_sent_again(station: Station) -> None:
    for count, (act, reason) in enumerate(for_the_moment(station), 1):
        station.upstream.answers.append(act)
        answer = await station.ask(ORDERS["POST"])
        assert (told(answer), answer.attempts) == (DONE, 2)
        assert (await station.outcomes.until(count)).resends == (reason,)
        assert len(station.upstream.received) == 2 * count
    check_history(station.upstream.received, SECRET, API_KEY)
