"""The server's side of a connection: its bounds and its order, with a handler of our own and real sockets."""

import asyncio
import asyncio.trsock
import contextlib
import errno
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from rig.bot import Bot, bot_at, request
from rig.held_memory import counting_held
from rig.slow import deaf_bot
from rig.wire import PATIENCE_S, let_pass
from sealgate.errors import Refusal
from sealgate.http.head_memory import HeadMemory
from sealgate.http.parser import RequestHead
from sealgate.http.places import Places
from sealgate.http.server import Incoming, ServerConnection, Service
from sealgate.request.bots import BotServer

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
SHORT_S = 0.02
LONG_S = 30.0
LARGE = 20_000_000  # more than the kernel takes on behalf of who does not read


def malformed(refusal: Refusal) -> bytes:
    status = refusal.reason.status
    return (
        f"HTTP/1.1 {status} X\r\nX-Gateway-Error: {refusal.slug}\r\nX-Detail: {refusal.detail}\r\n"
        "Content-Length: 0\r\nConnection: close\r\n\r\n"
    ).encode()


async def answer(incoming: Incoming) -> bool:
    incoming.connection.write(OK)
    return incoming.may_stay


SERVICE = Service(answer, malformed, head_timeout_s=LONG_S, idle_s=LONG_S)


@contextlib.asynccontextmanager
async def running(
    service: Service, max_connections: int = 10, room: int = 10
) -> AsyncIterator[tuple[BotServer, int]]:
    server = BotServer(service, max_connections, room)
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    try:
        yield server, listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        await server.close(LONG_S)
        await until(lambda: all(one.transport is None for one in server.connections))


@contextlib.asynccontextmanager
async def one_bot(**changes: Any) -> AsyncIterator[Bot]:
    """Connect a bot to a server whose service differs in this."""
    async with running(replace(SERVICE, **changes)) as (_, port), bot_at("127.0.0.1", port) as bot:
        yield bot


async def test_only_a_head_that_waited_behind_another_says_since_when() -> None:
    times, came_at, is_open = iter((7.0, 8.0, 9.0)), list[float](), asyncio.Event()

    async def note(incoming: Incoming) -> bool:
        came_at.append(incoming.read_at)
        await is_open.wait()
        return await answer(incoming)

    service = replace(SERVICE, handle=note, now=lambda: next(times))
    async with running(service) as (_, port), bot_at("127.0.0.1", port) as bot:
        await bot.send(request() + request())
        await until(lambda: len(came_at) == 1)
        is_open.set()
        assert [(await bot.reply(b"GET")).status for _ in range(2)] == [200, 200]
    assert came_at == [0.0, 7.0]


async def test_others_have_their_turns_between_requests_that_are_answered_at_once() -> None:
    waits, served, is_open = 0, 0, asyncio.Event()

    async def count(incoming: Incoming) -> bool:
        nonlocal waits, served
        waits += 1
        await is_open.wait()
        served += 1
        return await answer(incoming)

    async with one_bot(handle=count) as bot:
        await bot.send(request() * 200)
        await until(lambda: waits == 1)
        is_open.set()
        turns = 0
        while served < 200:
            await let_pass(0)
            turns += 1
    assert turns > 20


CRUMBS = {
    "tiny chunks": b"1\r\nx\r\n" * 30_000,
    "hardly any body": (b"1;" + b"a" * 15_000 + b"\r\nx\r\n") * 12,
}


@pytest.mark.parametrize("crumbs", CRUMBS.values(), ids=CRUMBS)
async def test_others_have_their_turns_while_a_body_that_is_dear_to_parse_is_read(crumbs: bytes) -> None:
    turns, bodies = 0, list[bytes]()

    async def read(incoming: Incoming) -> bool:
        parts = []
        while part := await incoming.body.read():
            parts.append(part)
        bodies.append(b"".join(parts))
        return await answer(incoming)

    async with running(replace(SERVICE, handle=read)) as (server, port), bot_at("127.0.0.1", port) as bot:
        await until(lambda: len(server.connections) == 1)
        (connection,) = server.connections
        chunked = request(b"POST", b"/", b"Transfer-Encoding: chunked").replace(b"Content-Length: 0\r\n", b"")
        connection.data_received(chunked + crumbs[:100_000])
        connection.data_received(crumbs[100_000:] + b"0\r\n\r\n" + request())
        while len(bodies) < 2:
            await let_pass(0)
            turns += 1
        assert [(await bot.reply(b"POST")).status, (await bot.reply(b"GET")).status] == [200, 200]
        assert bodies == [b"x" * crumbs.count(b"x"), b""]
        assert connection.is_reading
    assert turns > 4


async def test_an_idle_connection_is_closed() -> None:
    async with one_bot(idle_s=SHORT_S) as bot:
        assert (await bot.ask(request())).status == 200
        assert await bot.rest() == b""


async def test_a_connection_that_says_nothing_is_closed() -> None:
    async with one_bot(head_timeout_s=SHORT_S) as bot:
        assert await bot.rest() == b""


async def test_a_head_that_drips_is_told_so() -> None:
    async with one_bot(head_timeout_s=SHORT_S) as bot:
        await bot.send(b"GET /v1/trade/x HTTP/1.1\r\nHost: loc")
        answer = await bot.reply()
        assert (answer.status, answer.reason) == (408, "body_timeout")
        assert await bot.rest() == b""


async def test_half_a_head_that_is_there_at_once_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the connection's task has run for the first time."""
    made = ServerConnection.connection_made

    def made_with_half_a_head(self: ServerConnection, transport: asyncio.BaseTransport) -> None:
        made(self, transport)
        self.data_received(b"GET /v1/trade/x HTTP/1.1\r\nHost: loc")

    monkeypatch.setattr(ServerConnection, "connection_made", made_with_half_a_head)
    async with one_bot(head_timeout_s=SHORT_S) as bot:
        answer = await bot.reply()
        assert (answer.status, answer.reason) == (408, "body_timeout")


async def test_dripping_does_not_buy_time() -> None:
    """The time runs from the first byte of a head, not from the latest."""
    async with one_bot(head_timeout_s=SHORT_S) as bot:
        await bot.send(b"GET / HTTP/1.1\r\nA: ")
        drip = asyncio.ensure_future(bot.drip(b"a", SHORT_S / 10))
        assert (await bot.reply()).status == 408
        drip.cancel()


async def read_and_answer(incoming: Incoming) -> bool:
    """Answer as the gateway does: the reply says whether it is the last."""
    while await incoming.body.read():
        pass
    incoming.connection.write(
        OK if incoming.may_stay else OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    )
    return incoming.may_stay


GET = request()
POST = request(b"POST", body=b"x" * 10)
CHUNKED = request(b"POST", b"/v1/trade/x", b"Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n\r\n"
TRAILED = CHUNKED[:-2] + b"A: 1\r\n\r\n"
HALF_HEAD = GET[:20]
# Pieces that end in half a head, behind requests.
HALF_BEHIND = {
    "a request under way": [GET, HALF_HEAD],
    "a request": [GET + HALF_HEAD],
    "a body": [POST + HALF_HEAD],
    "the end of a body": [POST[:-5], POST[-5:] + HALF_HEAD],
    "a body in two pieces": [POST[:-5], POST[-5:], HALF_HEAD],
    "chunks": [CHUNKED + HALF_HEAD],
    "the end of chunks": [CHUNKED[:-3], CHUNKED[-3:] + HALF_HEAD],
    "half a head": [GET + HALF_HEAD[:5], HALF_HEAD[5:]],
    "several requests": [GET + POST + HALF_HEAD],
}


@pytest.mark.parametrize("pieces", HALF_BEHIND.values(), ids=HALF_BEHIND)
async def test_half_a_head_behind_a_request_has_no_longer_than_another(pieces: list[bytes]) -> None:
    """Its time begins when the requests before it are answered, for nobody waits for it sooner."""
    go = asyncio.Event()

    async def wait_and_answer(incoming: Incoming) -> bool:
        await go.wait()
        return await read_and_answer(incoming)

    service = replace(SERVICE, handle=wait_and_answer, head_timeout_s=10 * SHORT_S)
    async with running(service) as (_, port), bot_at("127.0.0.1", port) as bot:
        for piece in pieces:
            await bot.send(piece)
            await let_pass(SHORT_S)
        go.set()
        for _ in range(b"".join(pieces).count(b" HTTP/1.1\r\n")):
            assert (await bot.reply()).status == 200
        answer = await bot.reply()
        assert (answer.status, answer.reason) == (408, "body_timeout")
        assert await bot.rest() == b""


async def test_a_large_head_that_began_behind_a_request_is_read_to_its_end() -> None:
    """More of it than is taken in behind a request is there when it is its turn, and the rest comes then."""
    go = asyncio.Event()

    async def wait_and_answer(incoming: Incoming) -> bool:
        await go.wait()
        return await answer(incoming)

    large = request(b"GET", b"/v1/trade/x", *[b"X-%d: " % number + b"x" * 7500 for number in range(8)])
    async with one_bot(handle=wait_and_answer) as bot:
        await bot.send(GET)
        await let_pass(SHORT_S)
        await bot.send(large[:-100])
        await let_pass(SHORT_S)
        go.set()
        assert (await bot.reply()).status == 200
        await let_pass(SHORT_S)
        await bot.send(large[-100:])
        assert (await bot.reply()).status == 200


@pytest.mark.parametrize("most_bytes", [0, 10_000], ids=["parsed", "remembered"])
async def test_behind_an_empty_line_and_a_request_it_may_rest(most_bytes: int) -> None:
    memory = HeadMemory[RequestHead](most_bytes)

    async def answer_and_remember(incoming: Incoming) -> bool:
        memory.put(incoming.head)
        return await answer(incoming)

    service = replace(
        SERVICE,
        handle=answer_and_remember,
        memory=lambda: memory,
        head_timeout_s=25 * SHORT_S,
        idle_s=25 * SHORT_S,
    )
    async with running(service) as (_, port), bot_at("127.0.0.1", port) as bot:
        assert (await bot.ask(GET)).status == 200
        await bot.send(b"\r\n")
        await let_pass(SHORT_S)
        assert (await bot.ask(GET)).status == 200
        assert await bot.rest() == b"", "closed without a word"


@pytest.mark.parametrize("raw", [GET, POST, CHUNKED], ids=["no body", "body", "chunks"])
async def test_after_whole_requests_it_may_rest(raw: bytes) -> None:
    service = replace(SERVICE, handle=read_and_answer, idle_s=25 * SHORT_S)
    async with running(service) as (_, port), bot_at("127.0.0.1", port) as bot:
        await bot.send_in_pieces(raw, 3)
        assert (await bot.reply()).status == 200
        assert await bot.rest() == b"", "closed without a word"


OFFER = (b"Connection: Upgrade", b"Upgrade: h2c")
LIKE_A_REQUEST = b'{"note":"\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"}'
OFFERS = {
    "no body": request(b"GET", b"/v1/trade/x", *OFFER),
    "a body like a request": request(b"POST", b"/v1/trade/x", *OFFER, body=LIKE_A_REQUEST),
    "chunks like a request": request(b"POST", b"/v1/trade/x", b"Transfer-Encoding: chunked", *OFFER)
    + b"%x\r\n%b\r\n0\r\n\r\n" % (len(LIKE_A_REQUEST), LIKE_A_REQUEST),
}


# What comes behind a request under way -> of each of its own replies the status, and whether it is the last.
BEHIND = {
    "an offer and a request": (OFFERS["no body"] + GET, [(200, False)] * 2),
    "an offer in chunks and chunks": (OFFERS["chunks like a request"] + CHUNKED, [(200, False)] * 2),
    "a body with trailers and a request": (TRAILED + GET, [(200, False)] * 2),
    "CONNECT and a request": (request(b"CONNECT", b"localhost:443") + GET, [(200, True)]),
    "chunks of HTTP/1.0": (CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0") + GET, [(200, True)]),
    "no HTTP": (b"\x16\x03\x01 nonsense\r\n\r\n" + GET, [(400, True)]),
}


@pytest.mark.parametrize(("behind", "expected"), BEHIND.values(), ids=BEHIND)
async def test_what_comes_behind_a_request_is_answered_in_its_turn(
    behind: bytes, expected: list[tuple[int, bool]]
) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def wait_and_answer(incoming: Incoming) -> bool:
        begun.set()
        await go.wait()
        return await read_and_answer(incoming)

    service = replace(SERVICE, handle=wait_and_answer)
    async with running(service) as (_, port), bot_at("127.0.0.1", port) as bot:
        await bot.send(GET)
        await begun.wait()
        await bot.send(behind)
        await let_pass(SHORT_S)
        go.set()
        replies = [await bot.reply() for _ in range(1 + len(expected))]
        assert [(answer.status, answer.closes) for answer in replies] == [(200, False), *expected]
        if expected[-1][1]:
            assert await bot.rest() == b""


class Wire(asyncio.Transport):
    """A transport without a socket: it counts replies, and notes whether it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.replies = 0
        self.is_read = True

    def write(self, data: Any) -> None:
        self.replies += bytes(data).count(OK)

    def is_closing(self) -> bool:
        return False

    def can_write_eof(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True


async def until(is_so: Callable[[], bool]) -> None:
    """Return when it is so; where no socket is waited for, a turn of the loop is enough for each step."""
    for _ in range(1000):
        if is_so():
            return
        await let_pass(0)
    raise AssertionError("it never is")


async def served_of(pieces: list[tuple[bytes, int]], number: int) -> list[tuple[str, bytes]]:
    """Return targets and bodies as they are served; behind each piece the loop turns so many times."""
    seen: list[tuple[str, bytes]] = []
    memory = HeadMemory[RequestHead]()

    async def note(incoming: Incoming) -> bool:
        parts: list[bytes] = []
        while part := await incoming.body.read():
            parts.append(part)
        seen.append((incoming.head.target, b"".join(parts)))
        memory.put(incoming.head)
        return await answer(incoming)

    wire = Wire()
    service, places = (
        replace(SERVICE, handle=note, memory=lambda: memory),
        Places(1, Refusal("queue_full", "")),
    )
    connection = ServerConnection(service, set(), places)
    connection.connection_made(wire)
    for piece, turns in pieces:
        connection.data_received(piece)
        for _ in range(turns):
            await let_pass(0)
        await until(lambda: wire.is_read)
    await until(lambda: wire.replies >= number)
    connection.connection_lost(None)
    assert connection.task is not None
    await connection.task
    return seen


@given(st.data())
def test_each_request_is_served_once_and_in_order_however_it_comes(data: st.DataObject) -> None:
    """Alone, from memory, in pieces or many in a piece, and while others are served."""
    kinds = data.draw(
        st.lists(st.sampled_from(["same", "body", "chunks", "offer", "get"]), min_size=1, max_size=12)
    )
    made, expected, inside = [], [], list[int]()
    for number, kind in enumerate(kinds):
        target, body = b"/v1/trade/x", b"%06d" % number
        fields: tuple[bytes, ...] = (b"Connection: Upgrade", b"Upgrade: h2c") if kind == "offer" else ()
        if kind == "get":
            target, body = b"/v1/trade/%d" % number, b""
            made.append(request(b"GET", target))
        elif kind == "chunks":
            head = request(b"POST", target, b"Transfer-Encoding: chunked")
            made.append(head + b"6\r\n%b\r\n0\r\nX-T: 1\r\n\r\n" % body)
        elif kind == "body":  # which looks like another request
            inner = request(b"POST", target, body=body)
            at = len(b"".join(made)) + len(request(b"POST", target, body=inner)) - len(inner)
            inside += [at, at + len(inner)]
            body = inner
            made.append(request(b"POST", target, body=body))
        else:
            made.append(request(b"POST", target, *fields, body=body))
        expected.append((target.decode(), body))
    whole = b"".join(made)
    ends = list(accumulate(len(one) for one in made))
    joined = data.draw(st.sets(st.sampled_from(ends + inside)))
    anywhere = data.draw(st.sets(st.integers(1, len(whole)), max_size=8))
    cuts = [0, *sorted({*ends, *inside} - joined | anywhere | {len(whole)})]
    pieces = [(whole[one:two], data.draw(st.integers(0, 5))) for one, two in pairwise(cuts)]
    assert asyncio.run(served_of(pieces, len(made))) == expected


@pytest.mark.parametrize(
    ("max_connections", "room", "bound"),
    [
        pytest.param(2, 2, "listen.max_connections connections open", id="configured"),
        pytest.param(1000, 2, "as its limit of open files (ulimit -n) allows", id="granted"),
    ],
)
async def test_one_connection_too_many_is_told_so(max_connections: int, room: int, bound: str) -> None:
    async with running(SERVICE, max_connections, room) as (server, port):
        async with bot_at("127.0.0.1", port) as first, bot_at("127.0.0.1", port) as second:
            assert (await first.ask(request())).status == (await second.ask(request())).status == 200
            async with bot_at("127.0.0.1", port) as third:
                refused = await third.reply()
                assert (refused.status, refused.reason) == (503, "queue_full")
                assert bound in (refused.text("X-Detail") or "")
                assert await third.rest() == b""
            assert (await first.ask(request())).status == 200
            while len(server.connections) > 2:
                await let_pass(0)
        async with bot_at("127.0.0.1", port) as fourth:
            assert (await fourth.ask(request())).status == 200


@pytest.mark.parametrize("sent", [0, 10, len(request()) - 1])
async def test_where_places_run_short_who_is_silent_for_the_longest_gives_its_place_up(sent: int) -> None:
    async with (
        running(SERVICE, 2) as (server, port),
        bot_at("127.0.0.1", port) as first,
        bot_at("127.0.0.1", port) as second,
    ):
        await first.send(request()[:sent])
        await second.send(request()[:sent])
        while len(server.places) < 2:
            await let_pass(0)
        async with bot_at("127.0.0.1", port) as third:
            assert (await third.ask(request())).status == 200
            assert await first.rest() == b""
            await second.send(request()[sent:])
            assert (await second.reply()).status == 200


async def test_a_first_request_that_is_served_keeps_its_place() -> None:
    has_come, is_open = asyncio.Event(), asyncio.Event()

    async def slow(incoming: Incoming) -> bool:
        has_come.set()
        await is_open.wait()
        return await answer(incoming)

    async with running(replace(SERVICE, handle=slow), 1) as (_, port), bot_at("127.0.0.1", port) as bot:
        await bot.send(request())
        await has_come.wait()
        async with bot_at("127.0.0.1", port) as another:
            assert (await another.reply()).reason == "queue_full"
        is_open.set()
        assert (await bot.reply()).status == 200


async def test_a_stranger_that_was_refused_gives_its_place_up() -> None:
    has_come, is_open = asyncio.Event(), asyncio.Event()

    async def refuse(incoming: Incoming) -> bool:
        if incoming.head.target == "/stranger":
            incoming.connection.take_no_more()
            has_come.set()
            await is_open.wait()
        return await answer(incoming)

    async with running(replace(SERVICE, handle=refuse), 1) as (_, port):
        async with bot_at("127.0.0.1", port) as stranger:
            await stranger.send(request(target=b"/stranger"))
            await has_come.wait()
            async with bot_at("127.0.0.1", port) as bot:
                assert (await bot.ask(request())).status == 200
            assert await stranger.rest() == b""
        is_open.set()


async def test_a_fault_of_the_handler_cuts_the_connection() -> None:
    async def fail(_: Incoming) -> bool:
        raise ValueError("made up")

    async with one_bot(handle=fail) as bot:
        await bot.send(request())
        with contextlib.suppress(ConnectionResetError):
            assert await bot.rest() == b""


async def test_a_bot_that_resets_before_its_body_is_read_is_no_fault() -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def refuse(_: Incoming) -> bool:
        begun.set()
        await go.wait()
        return False

    with capture_logs() as logs:
        async with running(replace(SERVICE, handle=refuse)) as (server, port):
            async with bot_at("127.0.0.1", port) as bot:
                await bot.send(request(b"POST", body=b"x" * 300_000))
                await begun.wait()
                bot.reset()
            go.set()
            while server.connections:
                await let_pass(0)
    assert logs == []


async def test_a_connection_whose_options_cannot_be_set_is_served_and_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is so on macOS where the other end has closed it."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    async def fail(incoming: Incoming) -> bool:
        incoming.connection.write(OK)
        raise ZeroDivisionError

    monkeypatch.setattr(asyncio.trsock.TransportSocket, "setsockopt", refuse)
    with capture_logs() as logs:
        async with one_bot(handle=fail) as bot:
            await bot.send(request())
            with contextlib.suppress(ConnectionResetError):
                await bot.rest()
    assert [line["event"] for line in logs] == ["connection_failed"]


async def test_a_bot_that_asks_on_and_never_reads_is_cut() -> None:
    """It has as long to read a reply as to send a head; the next request is not served before."""
    served = list[str]()

    async def pour(incoming: Incoming) -> bool:
        served.append(incoming.head.target)
        incoming.connection.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LARGE + bytes(LARGE))
        return True

    async with running(replace(SERVICE, handle=pour, head_timeout_s=SHORT_S)) as (server, port):
        with deaf_bot(("127.0.0.1", port), request() * 2) as bot:
            async with asyncio.timeout(PATIENCE_S):
                while not served or server.connections:
                    await let_pass(SHORT_S / 10)
            assert await bot.read_all() < LARGE
    assert len(served) == 1


async def test_what_comes_as_the_time_ends_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """The alarm may ring before who serves has its turn: a bot that was cut off then gets no answer."""
    received, served = ServerConnection.data_received, list[str]()

    def received_too_late(self: ServerConnection, data: bytes) -> None:
        received(self, data)
        self._time_is_over()

    async def note(incoming: Incoming) -> bool:
        served.append(incoming.head.target)
        return await answer(incoming)

    monkeypatch.setattr(ServerConnection, "data_received", received_too_late)
    async with one_bot(handle=note) as bot:
        await bot.send(request())
        assert await bot.rest() == b""
    assert served == []


async def test_half_heads_are_let_go_with_their_connections() -> None:
    """At once, and not when the collector runs, which may be much later."""
    half = b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: %b\r\n" % (at, b"x" * 8000) for at in range(8))
    async with running(SERVICE) as (server, port):
        with counting_held() as held:
            for _ in range(10):
                async with bot_at("127.0.0.1", port) as bot:
                    await bot.send(half)
                    while not any(one._parser.is_in_head for one in server.connections):
                        await let_pass(0)
                while server.connections:
                    await let_pass(0)
            kept = held()
    assert kept < 5 * len(half)


ENDLESS = b"X-More: %b\r\n" % (b"x" * 8000)
WRONG = {
    "a head without end": b"GET / HTTP/1.1\r\n" + ENDLESS * 9,
    "a field without end": b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000,
    "no HTTP": b"GET / HTTP/1.1\r\n" + ENDLESS * 7 + b"\0" * 8000,
    "a trailer without end": (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + ENDLESS * 9),
}


async def kept_of(handle: Callable[[Incoming], Awaitable[bool]], raw: bytes) -> int:
    """Return how many bytes stay of ten connections that send this, without a run of the collector."""
    async with running(replace(SERVICE, handle=handle)) as (server, port):
        with counting_held() as held:
            for _ in range(10):
                async with bot_at("127.0.0.1", port) as bot:
                    await bot.send(raw)
                    with contextlib.suppress(ConnectionResetError):
                        assert await bot.rest()
                while server.connections:
                    await let_pass(0)
            return held()


@pytest.mark.parametrize("raw", WRONG.values(), ids=WRONG)
async def test_what_is_refused_is_let_go_with_its_connection(raw: bytes) -> None:
    async def read(incoming: Incoming) -> bool:
        try:
            return await read_and_answer(incoming)
        except Refusal as refusal:
            incoming.connection.write(malformed(refusal.with_traceback(None)))
            return False

    assert await kept_of(read, raw) < 2 * len(raw)


async def test_a_strangers_body_is_let_go_with_its_connection() -> None:
    async def refuse(incoming: Incoming) -> bool:
        incoming.release()
        incoming.connection.take_no_more()
        incoming.connection.write(malformed(Refusal("bot_unauthenticated", "made up")))
        return False

    raw = request(b"POST", b"/v1/trade/order", b"Content-Length: 1000000") + b"x" * 60_000
    assert await kept_of(refuse, raw) < 2 * len(raw)


async def test_a_body_that_nobody_reads_is_let_go_with_its_connection() -> None:
    async def refuse(incoming: Incoming) -> bool:
        incoming.connection.write(malformed(Refusal("ambiguous_target", "made up")))
        return False

    raw = request(b"POST", b"/v1/trade/order", b"Content-Length: 1000000") + b"x" * 200_000
    assert await kept_of(refuse, raw) < len(raw)


async def test_closing_lets_a_reply_out_and_cuts_who_waits_for_ever() -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def slow(incoming: Incoming) -> bool:
        begun.set()
        await go.wait()
        return await answer(incoming)

    async with (
        running(replace(SERVICE, handle=slow)) as (server, port),
        bot_at("127.0.0.1", port) as bot,
        bot_at("127.0.0.1", port) as idle,
    ):
        await bot.send(request())
        await begun.wait()
        closing = asyncio.ensure_future(server.close(LONG_S))
        assert await idle.rest() == b""
        go.set()
        assert (await bot.reply()).status == 200
        await closing


async def test_closing_lets_out_what_a_bot_has_not_read_yet() -> None:
    body = b"x" * 16_000_000  # more than the system keeps for a reader
    served = asyncio.Event()

    async def last(incoming: Incoming) -> bool:
        incoming.connection.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        served.set()
        return False

    async with running(replace(SERVICE, handle=last)) as (server, port), bot_at("127.0.0.1", port) as bot:
        await bot.send(request() + request())  # what is behind the last may still be on its way
        await served.wait()
        await until(lambda: all(one.task is None or one.task.done() for one in server.connections))
        closing = asyncio.ensure_future(server.close(LONG_S))
        assert len((await bot.reply()).body) == len(body)
    await closing
