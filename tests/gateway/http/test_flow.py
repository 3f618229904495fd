"""The flow of bytes on a connection, and of a body on it, with a transport that notes whether it is read."""

import asyncio

import pytest

from sealgate.gateway.http.flow import BODY_BYTES, Body, Flow


class Transport(asyncio.Transport):
    """Notes whether it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read = True
        self.is_closing_already = False

    def pause_reading(self) -> None:
        if self.is_closing_already:
            raise RuntimeError("closing")
        self.is_read = False

    def resume_reading(self) -> None:
        if self.is_closing_already:
            raise RuntimeError("closing")
        self.is_read = True


async def turn_of_the_loop() -> None:
    passed = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(passed.set_result, None)
    await passed


@pytest.fixture
async def made() -> tuple[Flow, Transport]:
    connection, transport = Flow(asyncio.get_running_loop()), Transport()
    connection.connection_made(transport)
    return connection, transport


async def test_it_is_read_unless_somebody_holds_it(made: tuple[Flow, Transport]) -> None:
    connection, transport = made
    connection.hold("one")
    connection.hold("another")
    connection.hold("one")
    assert (connection.is_read, transport.is_read) == (False, False)
    connection.let_go("one")
    assert (connection.is_read, transport.is_read) == (False, False)
    connection.let_go("nobody")
    connection.let_go("another")
    assert (connection.is_read, transport.is_read) == (True, True)


async def test_a_transport_that_closes_cannot_be_held(made: tuple[Flow, Transport]) -> None:
    connection, transport = made
    transport.is_closing_already = True
    connection.hold("one")
    connection.let_go("one")
    assert connection.is_read


async def test_a_writer_waits_while_the_other_end_does_not_read(made: tuple[Flow, Transport]) -> None:
    connection, _ = made
    await connection.drain()
    connection.pause_writing()
    first, gone, last = (asyncio.ensure_future(connection.drain()) for _ in range(3))
    await turn_of_the_loop()
    gone.cancel()
    await turn_of_the_loop()
    assert (first.done(), gone.cancelled(), last.done()) == (False, True, False)
    connection.resume_writing()
    await asyncio.gather(first, last)


async def test_a_writer_that_waits_learns_of_the_end(made: tuple[Flow, Transport]) -> None:
    connection, _ = made
    connection.pause_writing()
    waiting = asyncio.ensure_future(connection.drain())
    await turn_of_the_loop()
    connection.connection_lost(None)
    assert connection.transport is None
    with pytest.raises(ConnectionResetError):
        await waiting
    with pytest.raises(ConnectionResetError):
        await connection.drain()


async def test_a_body_is_read_as_it_comes(made: tuple[Flow, Transport]) -> None:
    body = Body(made[0])
    body.feed(b"a")
    body.feed(b"b")
    assert (await body.read(), body.is_whole) == (b"ab", False)
    reading = asyncio.ensure_future(body.read())
    await turn_of_the_loop()
    assert not reading.done()
    body.feed(b"c")
    assert await reading == b"c"
    ending = asyncio.ensure_future(body.read())
    await turn_of_the_loop()
    body.end()
    assert await ending == await body.read() == b""
    assert body.is_read


@pytest.mark.parametrize("whole", [b"", b"abc"])
async def test_a_body_that_came_whole(made: tuple[Flow, Transport], whole: bytes) -> None:
    body = Body(made[0], whole)
    assert (body.is_whole, body.is_read) == (True, not whole)
    assert (body.take(), body.is_read, await body.read()) == (whole, True, b"")


async def test_a_body_that_nobody_reads_holds_its_connection(made: tuple[Flow, Transport]) -> None:
    """Until it is read; another holder is none of its business."""
    connection, transport = made
    body = Body(connection)
    body.feed(bytes(BODY_BYTES))
    assert transport.is_read
    body.feed(b"a")
    assert (transport.is_read, len(body.take())) == (False, BODY_BYTES + 1)
    assert transport.is_read
    connection.hold("another")
    body.feed(bytes(BODY_BYTES + 1))
    body.take()
    assert not transport.is_read


async def test_a_body_that_fails_gives_what_came_before(made: tuple[Flow, Transport]) -> None:
    body = Body(made[0])
    body.feed(b"a")
    body.fail(ConnectionResetError("first"))
    body.fail(ConnectionResetError("second"))
    assert await body.read() == b"a"
    for _ in range(2):
        with pytest.raises(ConnectionResetError, match="first"):
            await body.read()


async def test_a_reader_that_waits_learns_of_the_failure(made: tuple[Flow, Transport]) -> None:
    body = Body(made[0])
    reading = asyncio.ensure_future(body.read())
    await turn_of_the_loop()
    body.fail(ConnectionResetError())
    with pytest.raises(ConnectionResetError):
        await reading


async def test_a_body_that_is_whole_cannot_fail_any_more(made: tuple[Flow, Transport]) -> None:
    body = Body(made[0], b"a")
    body.fail(ConnectionResetError())
    assert (await body.read(), await body.read()) == (b"a", b"")
