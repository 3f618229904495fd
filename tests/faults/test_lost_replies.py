"""What a lost reply means: every fault with a read and with an order, over real sockets.

A read goes again, stamped and signed anew; an order never, and its outcome is `unknown` as soon as a byte of
it may have arrived. A part of a reply never passes as the whole.
"""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rig.bot import met, request, told
from rig.held_memory import counting_held
from rig.station import Station, running_station
from rig.tls import Authority
from rig.upstream import (
    Act,
    Upstream,
    Wire,
    running_upstream,
    say,
    say_and_abort,
    say_and_close,
    say_and_reset,
    say_and_stall,
)
from rig.wire import OK, chunked, reply
from sealgate.machine.system import System

READ = request()
ORDERS = {
    "POST": request(b"POST", b"/v1/trade/order", body=b'{"id":"1"}'),
    "PUT": request(b"PUT", b"/v1/trade/order/1", body=b'{"id":"1"}'),
    "PATCH": request(b"PATCH", b"/v1/trade/order/1", body=b'{"id":"1"}'),
    "DELETE": request(b"DELETE", b"/v1/trade/order/1"),
}
CLOSE_DELIMITED = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nall of it"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


async def test_a_deadline_ends_the_attempt_under_way(station: Station) -> None:
    station.upstream.otherwise = say_and_stall()
    answer = await station.ask(
        request(b"POST", b"/v1/trade/order", b"X-Gateway-Deadline-Ms: 200", body=b"{}")
    )
    assert told(answer) == (504, "unknown", "upstream_timeout")
    assert len(station.upstream.received) == 1


@pytest.mark.parametrize("message", [READ, ORDERS["POST"]], ids=["GET", "POST"])
async def test_no_time_at_all_sends_nothing(station: Station, message: bytes) -> None:
    hurried = message.replace(b"Host:", b"X-Gateway-Deadline-Ms: 0\r\nHost:", 1)
    answer = await station.ask(hurried)
    assert told(answer) == (504, "not_sent", "deadline_exceeded")
    assert station.upstream.received == []


# act -> status, outcome of a read, outcome of an order; sent once each and passed back as it is.
WHOLE: dict[str, tuple[Act, int, str, str]] = {
    "with a length": (say(OK), 200, "done", "done"),
    "with a length, then aborted": (say_and_abort(OK), 200, "done", "done"),
    "close-delimited and empty": (say_and_close(b"HTTP/1.1 200 OK\r\n\r\n"), 200, "done", "done"),
    "HTTP/1.0": (say_and_close(b"HTTP/1.0 200 OK\r\n\r\nold"), 200, "done", "done"),
    "no content": (say(b"HTTP/1.1 204 No Content\r\n\r\n"), 204, "done", "done"),
    "a phrase in UTF-8": (say(reply("200 für dich ✓".encode())), 200, "done", "done"),
    "a phrase in Latin-1": (say(reply(b"200 f\xfcr dich")), 200, "done", "done"),
    "a status nobody knows": (say(reply(b"799 Whatever", b"x")), 799, "refused", "unknown"),
}


@pytest.mark.parametrize(("act", "status", "of_read", "of_order"), WHOLE.values(), ids=WHOLE)
async def test_a_whole_reply(station: Station, act: Act, status: int, of_read: str, of_order: str) -> None:
    station.upstream.otherwise = act
    assert told(await station.ask(READ)) == (status, of_read, None)
    for order in ORDERS.values():
        assert told(await station.ask(order)) == (status, of_order, None)
    assert len(station.upstream.received) == 5


TRAILED = reply(b"200 OK", b"{}") + b"junk"

# A whole reply, though something is wrong with it or behind it: raw, status, body; is the connection kept?
ODD: dict[str, tuple[bytes, int, bytes, bool]] = {
    "junk behind a length": (TRAILED, 200, b"{}", False),
    "no content, with a body of no stated length": (b"HTTP/1.1 204 No\r\n\r\n{}", 204, b"", False),
    "not modified, with the length of what it would be": (
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n",
        304,
        b"",
        True,
    ),
    "200 fields": (reply(b"200 OK", b"{}", *(b"X-%d: v" % at for at in range(200))), 200, b"{}", True),
    "line ends of one byte": (reply(b"200 OK", b"{}").replace(b"\r\n", b"\n"), 200, b"{}", True),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
async def test_a_reply_that_is_whole_is_passed_on_whatever_comes_behind_it(
    station: Station, odd: tuple[bytes, int, bytes, bool]
) -> None:
    raw, status, body, is_kept = odd
    station.upstream.answers.append(say(raw))
    answer = await station.ask(ORDERS["POST"])
    assert (*told(answer), answer.body) == (status, "done", None, body)
    assert told(await station.ask(ORDERS["PUT"])) == (200, "done", None)
    first, second = station.upstream.received
    assert (first.connection == second.connection) is is_kept


@pytest.mark.parametrize("raw", [OK, CHUNKED + chunked(b"{}")], ids=["with a length", "chunked"])
async def test_a_head_request_that_is_answered_with_a_body(station: Station, raw: bytes) -> None:
    station.upstream.answers.append(say(raw))
    answer = await station.ask(request(b"HEAD"))
    assert met(answer) == (200, "done", None, 1)
    assert told(await station.ask(ORDERS["POST"])) == (200, "done", None)
    first, second = station.upstream.received
    assert first.connection != second.connection


async def test_what_comes_unasked_on_an_idle_connection_answers_nobody(station: Station) -> None:
    """Some servers write a 408 before they close an idle connection; it is no reply to the next order."""
    upstream = station.upstream
    unasked = reply(b"408 Request Timeout", b"unasked")
    answered, said = asyncio.Event(), asyncio.Event()

    async def answer_twice(wire: Wire) -> None:
        await wire.write(OK)
        await answered.wait()
        await wire.write(unasked)
        said.set()

    upstream.answers.extend([answer_twice, say(OK)])
    assert told(await station.ask(READ)) == (200, "done", None)
    answered.set()
    await said.wait()
    answer = await station.ask(ORDERS["POST"])
    assert told(answer) == (200, "done", None)
    assert upstream.receipts(b"/v1/trade/order") == 1
    assert upstream.received[-1].connection != upstream.received[0].connection


# Nothing was sent.


@pytest.fixture
def dns(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that makes the next name look-ups fail."""
    failures = 0
    genuine = socket.getaddrinfo

    def getaddrinfo(host: str, *rest: Any, **more: Any) -> Any:
        nonlocal failures
        if host == "localhost" and more.get("flags") == socket.AI_ADDRCONFIG and failures:
            failures -= 1
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return genuine(host, *rest, **more)

    def fail(count: int) -> None:
        nonlocal failures
        failures = count

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return fail


class Named(Upstream):
    """The same upstream, by a name that must be looked up."""

    @property
    def base_url(self) -> str:
        return super().base_url.replace("127.0.0.1", "localhost")


@pytest.mark.parametrize("message", [READ, ORDERS["POST"]], ids=["GET", "POST"])
async def test_a_name_that_cannot_be_looked_up_at_first(
    upstream: Upstream, dns: Callable[[int], None], message: bytes
) -> None:
    async def tell_the_time(wire: Wire) -> None:
        await wire.write(upstream.time_reply(b"Connection: close"))
        await wire.close()

    upstream.time = tell_the_time
    named = Named(port=upstream.port)
    async with running_station(named, upstream={"warm": False}) as station:
        dns(2)
        answer = await station.ask(message)
        assert told(answer) == (200, "done", None)
        assert len(upstream.received) == 1
        assert (await station.outcomes.until(1)).resends[:1] == ("unreachable",)


LARGE = b"x" * 600_000


async def test_a_large_reply_cut_inside_tls_does_not_look_whole(authority: Authority, tmp_path: Path) -> None:
    async with (
        running_upstream(authority.server_context()) as upstream,
        running_station(upstream, upstream={"ca_file": authority.write(tmp_path)}) as station,
    ):
        upstream.answers.extend(
            [say_and_abort(CLOSE_DELIMITED + LARGE), say_and_close(CLOSE_DELIMITED + LARGE)]
        )
        assert not (await station.ask(READ)).is_whole
        whole = await station.ask(READ)
        assert whole.is_whole
        assert whole.body == b"all of it" + LARGE


# What cannot be learned from a reply ------------------------------------------------------------------------


class Fault:
    """Raises, once, in the turn of the loop in which a reply is looked at."""

    def __init__(self) -> None:
        self.is_due = False

    def strike(self) -> None:
        if self.is_due:
            self.is_due = False
            raise OverflowError

    def after(self, act: Act) -> Act:
        """Be due as soon as a request has arrived."""

        async def answer(wire: Wire) -> None:
            self.is_due = True
            await act(wire)

        return answer


async def test_a_fault_of_ours_after_the_first_byte_leaves_it_unknown(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault, others = Fault(), set[asyncio.Task[Any] | None]([None])

    class FaultyHost(System):
        def now(self) -> float:
            if asyncio.current_task() not in others:  # that of the request, which looks at the reply
                fault.strike()
            return super().now()

    monkeypatch.setattr("sealgate.server.gateway.System", FaultyHost)
    upstream.answers.append(fault.after(say(OK)))
    order = request(b"POST", b"/v1/trade/order", b"Idempotency-Key: k", body=b"{}")
    async with running_station(upstream) as station:
        others |= asyncio.all_tasks()  # the clock's, above all
        assert told(await station.ask(order)) == (500, "unknown", "internal_error")
        assert told(await station.ask(order)) == (500, "unknown", "internal_error")
    assert len(upstream.received) == 1


LARGE_BODY = 300_000
LET_GO = {
    "reset before it is read": (say_and_reset(), b"60000"),
    "cut while it is held": (say_and_close(reply(b"200 OK", b"x" * LARGE_BODY)[:200_000]), b"60000"),
    "late": (say_and_stall(), b"300"),
}


@pytest.mark.parametrize(("fault", "deadline_ms"), LET_GO.values(), ids=LET_GO)
async def test_an_order_whose_reply_is_lost_is_let_go_at_once(
    station: Station, fault: Act, deadline_ms: bytes
) -> None:
    """With its body, and not when the collector runs, which may be much later."""
    deadline = b"X-Gateway-Deadline-Ms: " + deadline_ms
    raw = request(b"POST", b"/v1/trade/order", deadline, body=b"x" * LARGE_BODY)
    station.upstream.early = lambda line: fault if line.startswith(b"POST") else None
    with counting_held() as held:
        for _ in range(6):
            assert (await station.ask(raw)).outcome == "unknown"
        await station.until_all_hung_up()
        kept = held()
    assert kept < 4 * LARGE_BODY
