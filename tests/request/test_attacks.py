"""What once got through: bots and upstreams that misbehave in ways that no single rule foresaw."""

import asyncio
import contextlib
from typing import Any

import pytest

from rig.bot import request
from rig.compiled import needs_sources
from rig.station import Station, running_station
from rig.upstream import Act, Received, Upstream, Wire, hold_until, say, say_and_close, say_and_stall
from rig.wire import OK, chunked, let_pass, reply
from sealgate.venues.routes import Lane

READ = request()
ORDER = request(b"POST", b"/v1/trade/order", body=b'{"id":"1"}')
CANCEL = request(b"DELETE", b"/v1/trade/order/1")
LARGE = reply(b"200 OK", b"x" * 64_000_000)  # more than all buffers on the way hold


async def test_a_bot_that_is_gone_while_there_is_no_connection(upstream: Upstream) -> None:
    """Its order is not sent when one becomes free, and the record says so."""
    go = asyncio.Event()
    upstream.answers.append(hold_until(go, say(OK)))
    async with running_station(upstream, upstream={"max_connections": 1}) as station:
        first = asyncio.ensure_future(station.ask(READ))
        await upstream.until_received(1)
        async with station.bot() as bot:
            await bot.send(ORDER)
            await station.until(lambda: station.gateway.generation.exchange.upstream.waiting(Lane.ORDER) == 1)
            bot.hang_up()
        outcome = await station.outcomes.until(1)
        go.set()
        assert (await first).status == 200
        assert (await station.ask(READ)).status == 200
    assert (outcome.has_hung_up, outcome.conclusion, outcome.attempts) == (True, "not_sent", 0)
    assert [item.method for item in upstream.received] == [b"GET", b"GET"]


async def test_slow_reads_leave_room_for_orders_and_cancels(upstream: Upstream) -> None:
    def stall_reads(received: Received) -> Act:
        return say_and_stall() if received.method == b"GET" else say(OK)

    upstream.script = stall_reads
    async with running_station(upstream, upstream={"max_connections": 8}) as station:
        reads = [asyncio.ensure_future(station.ask(READ)) for _ in range(12)]
        await upstream.until_received(6)
        await station.until(lambda: station.gateway.generation.exchange.upstream.waiting(Lane.READ) == 6)
        assert (await station.ask(ORDER)).status == 200
        assert (await station.ask(CANCEL)).status == 200
        for read in reads:
            read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)


async def test_a_bot_that_does_not_read_gives_its_connection_back(upstream: Upstream) -> None:
    upstream.answers.append(say(LARGE))
    async with running_station(upstream, upstream={"max_connections": 1}) as station, station.bot() as bot:
        await bot.send(READ)
        await upstream.until_received(1)
        assert (await station.ask(READ)).status == 200  # which waits for the connection
        assert (await station.outcomes.until(2)).status == 200
        assert station.outcomes.all[0].broken == "the bot does not read it"


async def test_a_bot_that_does_not_read_is_given_the_time_of_a_request(upstream: Upstream) -> None:
    upstream.answers.append(say(LARGE))
    async with running_station(upstream, upstream={"total_timeout": 3.0}) as station, station.bot() as bot:
        await bot.send(READ)
        outcome = await station.outcomes.until(1)
        assert outcome.broken in ("the bot does not read it", "it took too long")


async def test_a_cut_reply_is_reset_for_http_1_0(station: Station) -> None:
    """Where the end of the connection is the end of the body, only a reset can say that it is none."""
    go = asyncio.Event()

    async def cut(wire: Wire) -> None:
        await wire.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await wire.write(chunked(b"x" * 1_000_000)[:-5])
        await go.wait()
        wire.reset()

    station.upstream.answers.append(cut)
    async with station.bot() as bot:
        await bot.send(READ.replace(b"HTTP/1.1", b"HTTP/1.0"))
        first = await bot.line()  # so it is being streamed
        go.set()
        answer = await bot.reply(first=first)
    assert (answer.ends_by, answer.is_whole) == ("close", False)


async def test_a_fault_after_the_order_went_out_claims_nothing(station: Station) -> None:
    """No answer at all is the truth; "not sent" would double the order."""

    class Faulty:
        def __init__(self, real: Any) -> None:
            self._real = real

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

        def write(self, _: bytes) -> None:
            raise ValueError("made up")

    async with station.bot() as bot:
        await station.until(lambda: bool(station.gateway.server.connections))
        (connection,) = station.gateway.server.connections
        transport: Any = Faulty(connection.transport)
        connection.transport = transport
        await bot.send(ORDER)
        with contextlib.suppress(ConnectionResetError):
            assert await bot.rest() == b""
    assert len(station.upstream.received) == 1


@pytest.mark.parametrize("server_ms", [b"0000000000001", b"9999999999999"])
async def test_a_401_that_states_an_absurd_time_moves_no_clock(station: Station, server_ms: bytes) -> None:
    detail = b'{"detail":"Timestamp outside recv_window (5000ms). Server time: %b"}' % server_ms
    before = station.gateway.generation.exchange.clock.server_now()
    station.upstream.answers.extend([say(reply(b"401 Unauthorized", detail))] * 2)
    await station.ask(ORDER)
    assert abs(station.gateway.generation.exchange.clock.server_now() - before) < 60
    assert station.gateway.status().clock.steps == 0


async def test_the_time_is_not_asked_for_by_every_bot_that_waits_for_it(upstream: Upstream) -> None:
    upstream.time = say(reply(b"429 Too Many Requests", b"{}", b"Retry-After: 60"))
    async with running_station(upstream, synced=False) as station:
        for _ in range(20):
            answer = await station.ask(request(b"GET", b"/v1/trade/x", b"X-Gateway-Deadline-Ms: 5"))
            assert answer.reason == "clock_unsynced"
    assert len(upstream.asked_time) == 1


async def test_equal_orders_of_one_millisecond_carry_different_signatures(station: Station) -> None:
    await asyncio.gather(*(station.ask(ORDER) for _ in range(20)))
    signatures = {item.head.value(b"X-SERVICE-SIGNATURE") for item in station.upstream.received}
    assert len(signatures) == len(station.upstream.received) == 20


@needs_sources
async def test_a_connection_that_comes_too_late_is_given_back(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was sent, the record says so, and the next request gets the connection."""
    async with running_station(upstream, upstream={"max_connections": 1}) as station:
        connections = station.gateway.generation.exchange.upstream
        connect = connections.connect

        async def dawdle(lane: Lane, timeout_s: float, *_: float, **__: bool) -> object:
            line = await connect(lane, 5.0)
            await let_pass(timeout_s + 0.01)
            return line

        with monkeypatch.context() as patch:
            patch.setattr(connections, "take", lambda *_, **__: None)
            patch.setattr(connections, "connect", dawdle)
            for _ in range(3):
                late = await station.ask(
                    request(b"POST", b"/v1/trade/order", b"X-Gateway-Deadline-Ms: 30", body=b"")
                )
                assert (late.reason, late.outcome, late.attempts) == ("deadline_exceeded", "not_sent", 0)
        assert upstream.received == []
        assert (await station.ask(ORDER)).status == 200


async def test_a_trailer_does_not_reach_the_next_bot(upstream: Upstream) -> None:
    """The parser of aiohttp would put it into the head of the next reply on the same connection."""
    trailed = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Trail: of-the-first\r\n\r\n"
    )
    upstream.answers.extend([say(trailed), say(OK)])
    async with running_station(upstream, upstream={"max_connections": 1}) as station:
        first, second = await station.ask(READ), await station.ask(READ)
    assert (first.status, first.body, second.status) == (200, b"ok", 200)
    assert b"of-the-first" not in first.raw + second.raw
    assert upstream.received[0].connection == upstream.received[1].connection


async def test_part_of_a_second_reply_does_not_reach_the_next_bot(upstream: Upstream) -> None:
    """What came behind a reply must not become the beginning of the next one."""
    begun = OK + b"HTTP/1.1 200 OK\r\nX-Of: the-first\r\nContent-Le"
    upstream.answers.extend([say(begun), say(b"ngth: 2\r\n\r\nno")])
    async with running_station(upstream, upstream={"max_connections": 1}) as station:
        first, second = await station.ask(ORDER), await station.ask(ORDER)
    assert first.status == 200
    assert (second.status, second.outcome) == (502, "unknown")
    assert b"the-first" not in second.raw


@pytest.mark.parametrize("is_pipelined", [False, True], ids=["another bot", "pipelined"])
@pytest.mark.parametrize("stray", [1, 2])
async def test_a_second_reply_in_one_piece_answers_nobody(
    upstream: Upstream, stray: int, *, is_pipelined: bool
) -> None:
    unasked, own = reply(b"200 OK", b"of the first"), reply(b"200 OK", b"its own")
    upstream.answers.extend([say(OK + stray * unasked), say(own)])
    async with (
        running_station(upstream, upstream={"max_connections": 1}) as station,
        station.bot() as bot,
        station.bot() as other,
    ):
        next_bot = bot if is_pipelined else other
        await bot.send(ORDER * 2 if is_pipelined else ORDER)
        assert (await bot.reply()).status == 200
        if not is_pipelined:
            await other.send(ORDER)
        assert (await next_bot.reply()).body == b"its own"
    first, second = upstream.received
    assert first.connection != second.connection


async def test_a_large_reply_to_a_bot_that_is_gone_gives_its_place_back(upstream: Upstream) -> None:
    go = asyncio.Event()
    upstream.answers.extend([hold_until(go, say(LARGE)), say(OK)])
    async with running_station(upstream, upstream={"max_connections": 1}) as station:
        async with station.bot() as bot:
            await bot.send(ORDER)
            await upstream.until_received(1)
            bot.hang_up()
        await station.until_all_hung_up()
        go.set()
        await station.outcomes.until(1)
        assert (await station.ask(ORDER)).status == 200


async def test_reads_cannot_crowd_out_the_key_of_an_order(upstream: Upstream) -> None:
    """Nor can large replies: a key that is gone could be used for a second order."""
    keyed = request(b"POST", b"/v1/trade/order", b"Idempotency-Key: k", body=b"{}")
    large = say(reply(b"200 OK", b"x" * 250_000))
    async with running_station(upstream) as station:
        assert (await station.ask(keyed)).status == 200
        for method in (b"GET", b"PUT"):
            for number in range(300):
                upstream.answers.append(large)
                target, key = b"/v1/trade/x", b"Idempotency-Key: %b-%d" % (method, number)
                async with station.bot() as bot:
                    await bot.send(request(method, target, key, body=b"" if method == b"PUT" else None))
                    assert (await bot.reply(method)).status == 200
        assert (await station.ask(keyed)).outcome == "done" or (await station.ask(keyed)).reason
    assert upstream.receipts(b"/v1/trade/order") == 1


async def test_requests_behind_a_body_in_two_pieces_are_all_parsed(upstream: Upstream) -> None:
    """The parser counts one that was taken before its body was whole for ever."""
    async with running_station(upstream) as station, station.bot() as bot:
        await bot.send(ORDER[:-4])
        await station.until(lambda: station.gateway.handler.inflight == 1)
        await bot.send(ORDER[-4:])
        assert (await bot.reply(b"POST")).status == 200
        await bot.send(READ * 9)
        for _ in range(9):
            assert (await bot.reply()).status == 200


@pytest.mark.parametrize("count", [4095, 4096, 4097, 4098])
async def test_a_reply_in_thousands_of_chunks_ends_where_it_ends(upstream: Upstream, count: int) -> None:
    """The parser is paused for their number, and once more after it went on."""
    go = asyncio.Event()
    begun = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * count

    async def in_two_pieces(wire: Wire) -> None:
        await wire.write(begun)
        await go.wait()
        await wire.write(b"1\r\ny\r\n0\r\n\r\n")

    upstream.answers.append(in_two_pieces)
    async with running_station(upstream) as station:
        asked = asyncio.ensure_future(station.ask(ORDER))
        await upstream.until_received(1)
        await let_pass(0.05)  # the first piece has come; where it has not, the test shows nothing
        go.set()
        answer = await asked
    assert (answer.status, answer.outcome, answer.body) == (200, "done", b"x" * count + b"y")


@pytest.mark.parametrize("count", [4096, 4097, 4098])
async def test_after_an_order_in_thousands_of_chunks_comes_the_next(upstream: Upstream, count: int) -> None:
    long = request(b"POST", b"/v1/trade/order", b"Transfer-Encoding: chunked") + b"1\r\nx\r\n" * count
    async with running_station(upstream) as station, station.bot() as bot:
        await bot.send(long)
        await station.until(lambda: station.gateway.handler.inflight == 1)
        answer = await bot.ask(b"0\r\n\r\n")
        assert answer.status == 200
        if not answer.closes:
            assert (await bot.ask(ORDER)).status == 200
    assert upstream.received[0].body == b"x" * count


@pytest.mark.parametrize("size", [10, 200_000, 400_000, 900_000])
async def test_a_trailer_of_a_large_body_reaches_no_other_request(upstream: Upstream, size: int) -> None:
    trailed = request(b"POST", b"/v1/trade/order", b"Transfer-Encoding: chunked") + (
        b"%x\r\n%b\r\n0\r\nIdempotency-Key: planted\r\nX-Evil: 1\r\n\r\n" % (size, b"x" * size)
    )
    async with running_station(upstream) as station, station.bot() as bot:
        await bot.send(trailed + READ)
        assert [(await bot.reply(method)).status for method in (b"POST", b"GET")] == [200, 200]
    assert [received.method for received in upstream.received] == [b"POST", b"GET"]
    assert all(b"evil" not in received.raw.lower() for received in upstream.received)


LENGTH = b"18446744073709551615"  # one that the parser takes for none


async def test_a_length_that_the_parser_takes_for_none(upstream: Upstream) -> None:
    upstream.answers.append(say(b"HTTP/1.1 200 OK\r\nContent-Length: " + LENGTH + b"\r\n\r\n"))
    bad = request(b"POST", b"/v1/trade/order", b"Content-Length: " + LENGTH)
    async with running_station(upstream) as station:
        answer = await station.ask(ORDER)
        assert (answer.status, answer.outcome, answer.reason) == (502, "unknown", "upstream_broken")
        async with station.bot() as bot:
            refused = await bot.ask(bad)
            assert (refused.status, refused.closes) == (400, True)
            assert await bot.rest() == b""


async def test_a_head_that_is_cut_is_no_reply(station: Station) -> None:
    """As many bytes of it came as the body was to have, and behind them three more."""
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: 33\r\n\r\n" + b"x" * 33
    station.upstream.answers.extend([say(whole), say_and_close(whole[:36])])
    assert (await station.ask(ORDER)).body == b"x" * 33
    answer = await station.ask(ORDER)
    assert (answer.status, answer.outcome, answer.reason) == (502, "unknown", "upstream_broken")


async def test_behind_a_large_request_that_is_refused_comes_the_next(station: Station) -> None:
    """What nobody read of it holds the connection."""
    async with station.bot() as bot:
        refused = await bot.ask(request(b"POST", b"/v1/elsewhere", body=b"x" * 80_000))
        assert refused.reason == "outside_prefix"
        assert refused.closes or (await bot.ask(READ)).status == 200
