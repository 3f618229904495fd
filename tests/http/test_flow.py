"""The flow of bytes on a connection, and of a body on it, with a transport that notes whether it is read."""

import asyncio

import pytest

from sealgate.http.flow import BODY_BYTES, Body, Flow


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


async def test_a_transport_that_closes_cannot_be_held(made: tuple[Flow, Transport]) -> None:
    connection, transport = made
    transport.is_closing_already = True
    connection.hold("one")
    connection.let_go("one")
    assert connection.is_reading


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
