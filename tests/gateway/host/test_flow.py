import asyncio

import pytest

from rig.compiled import needs_sources
from sealgate.gateway.host.flow import Flow

pytestmark = needs_sources


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


class Connection(Flow):
    """Notes what is parsed."""

    def __init__(self) -> None:
        super().__init__(asyncio.get_running_loop())
        self.parsed: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        self.parsed.append(data)


async def turn_of_the_loop() -> None:
    passed = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(passed.set_result, None)
    await passed


@pytest.fixture
async def made() -> tuple[Connection, Transport]:
    connection, transport = Connection(), Transport()
    connection.connection_made(transport)
    return connection, transport


async def test_it_is_read_until_somebody_wants_it_held(made: tuple[Connection, Transport]) -> None:
    connection, transport = made
    assert connection.is_read
    connection.pause_reading()
    assert (connection.is_read, transport.is_read) == (False, False)
    connection.resume_reading()
    assert (connection.is_read, transport.is_read) == (True, True)
    assert connection.parsed == [b""]  # what was fed before goes on


async def test_at_the_end_of_a_body_nothing_is_parsed_anew(made: tuple[Connection, Transport]) -> None:
    connection, _ = made
    connection.resume_reading(resume_parser=False)
    connection.pause_reading()
    connection.resume_reading(resume_parser=False)
    assert connection.is_read
    assert connection.parsed == []


async def test_it_is_read_again_when_neither_wants_it_held(made: tuple[Connection, Transport]) -> None:
    connection, transport = made
    connection.hold()
    connection.pause_reading()
    connection.let_go()
    assert not transport.is_read
    connection.hold()
    connection.resume_reading()
    assert not transport.is_read
    connection.let_go()
    assert transport.is_read


async def test_a_transport_that_closes_cannot_be_held(made: tuple[Connection, Transport]) -> None:
    connection, transport = made
    transport.is_closing_already = True
    connection.hold()
    connection.let_go()
    assert connection.is_read


async def test_who_writes_waits_while_the_other_end_does_not_read(made: tuple[Connection, Transport]) -> None:
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


async def test_who_waits_to_write_hears_of_the_end(made: tuple[Connection, Transport]) -> None:
    connection, _ = made
    connection.pause_writing()
    waiting = asyncio.ensure_future(connection.drain())
    await turn_of_the_loop()
    connection.connection_lost(None)
    assert connection.connected is False
    with pytest.raises(ConnectionResetError):
        await waiting
    with pytest.raises(ConnectionResetError):
        await connection.drain()
