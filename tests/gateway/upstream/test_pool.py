"""How a request gets a connection: within its time, and its own until it gives it back."""

import asyncio
import socket

from sealgate.core.attempts import Failure, FailureKind
from sealgate.core.routes import Lane
from sealgate.gateway.upstream.destination import Destination
from sealgate.gateway.upstream.pool import Upstream

LONG_S = 30.0


async def test_the_place_and_the_handshake_end_in_the_one_time() -> None:
    """The place comes when most of the time is over, and then nobody says a word of TLS."""
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"https://127.0.0.1:{silent.getsockname()[1]}"
        upstream = Upstream(Destination(address, LONG_S, LONG_S, 1))
        assert upstream._slots.enter_at_once(Lane.READ)
        began = loop.time()
        loop.call_at(began + 0.45, upstream._slots.leave, Lane.READ)
        async with asyncio.timeout_at(began + 0.9):
            failure = await upstream.connect(Lane.READ, 0.5)
        await upstream.close()
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.CONNECT_TIMEOUT
