"""A reply in chunks of a byte costs far more than its size: others have their turn, and no byte changes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from rig.bot import request
from rig.connections import ask_on, connected, connections_to, running_server, server_turn
from rig.station import Station
from rig.upstream import Upstream, say
from rig.wire import chunked
from sealgate.exchange.answer import Answer
from sealgate.exchange.connection import UpstreamConnection
from sealgate.exchange.failure import Failure

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BODY = bytes(number % 251 for number in range(40_000))
CRUMBS = HEAD + chunked(*(BODY[at : at + 1] for at in range(len(BODY))))
WHOLE = HEAD + chunked(BODY)
FRAMES = HEAD + b"".join(
    b"d05;%b\r\n%b\r\n" % (b"a" * 13_000, BODY[at : at + 3333]) for at in range(0, 39_996, 3333)
)
FRAMES += b"4\r\n%b\r\n0\r\n\r\n" % BODY[39_996:]


@contextlib.asynccontextmanager
async def asked() -> AsyncIterator[tuple[UpstreamConnection, asyncio.Task[Answer | Failure]]]:
    """Ask for something, and answer by hand."""
    async with running_server() as server, connections_to(server.port) as upstream:
        connection = await connected(upstream)
        task = asyncio.ensure_future(ask_on(connection, upstream))
        await server_turn()
        yield connection, task


def lose(connection: UpstreamConnection) -> None:
    """Let the loop say that the connection is lost."""
    transport = connection.transport
    assert transport is not None
    connection.connection_lost(None)
    transport.abort()


async def turns_until(task: asyncio.Task[Answer | Failure]) -> int:
    turns = 0
    while not task.done():
        await server_turn()
        turns += 1
    return turns


@pytest.mark.parametrize(
    ("raw", "least", "most"),
    [(CRUMBS, 5, 30), (FRAMES, 5, 30), (WHOLE, 0, 3)],
    ids=["tiny", "hardly any body", "large"],
)
async def test_others_have_their_turns_while_tiny_chunks_are_read(raw: bytes, least: int, most: int) -> None:
    async with asked() as (connection, task):
        connection.data_received(raw[:100_000])
        connection.data_received(raw[100_000:])  # a loop may have read more by the time that it is held
        assert least <= await turns_until(task) <= most
        answer = task.result()
        assert isinstance(answer, Answer)
        assert answer.body == BODY
        assert connection.is_reading


async def test_a_reply_that_came_whole_is_whole_though_its_connection_is_lost() -> None:
    async with asked() as (connection, task):
        connection.data_received(CRUMBS)
        lose(connection)
        await turns_until(task)
        answer = task.result()
        assert isinstance(answer, Answer)
        assert answer.body == BODY


async def test_one_that_was_cut_is_no_reply() -> None:
    async with asked() as (connection, task):
        connection.data_received(CRUMBS[:-1])
        lose(connection)
        await turns_until(task)
        assert isinstance(task.result(), Failure)


async def test_a_request_that_is_given_up_meanwhile_leaves_nothing_to_be_read() -> None:
    async with asked() as (connection, task):
        connection.data_received(CRUMBS)
        task.cancel()
        await turns_until(task)
        await server_turn()
        assert not connection.is_usable


async def test_what_comes_behind_tiny_chunks_is_no_reply_to_the_next_request() -> None:
    async with asked() as (connection, task):
        connection.data_received(CRUMBS + WHOLE)
        await turns_until(task)
        assert not connection.is_usable


async def test_a_bot_gets_what_was_sent_in_tiny_chunks(station: Station, upstream: Upstream) -> None:
    body = BODY * 20
    upstream.answers.append(say(HEAD + chunked(*(body[at : at + 1] for at in range(len(body))))))
    answer = await station.ask(request())
    assert (answer.status, answer.outcome) == (200, "done")
    assert answer.body == body
