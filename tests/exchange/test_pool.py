"""How a request gets a connection: within its time, and its own until it gives it back."""

import asyncio
import socket

import pytest

from rig.compiled import needs_sources
from rig.connections import LONG_S, ask, ask_on, connected, connections_to, running_server
from sealgate.exchange.answer import Answer
from sealgate.exchange.destination import Destination
from sealgate.exchange.failure import Failure, FailureKind
from sealgate.exchange.idle_connections import IdleLife
from sealgate.exchange.pool import Upstream
from sealgate.venues.routes import Lane


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


@needs_sources
async def test_a_fault_of_ours_with_a_reply_makes_room_for_another_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    async with running_server() as server, connections_to(server.port, most=1) as upstream:
        with monkeypatch.context() as patch:
            patch.setattr(IdleLife, "answered", fail)
            with pytest.raises(ZeroDivisionError):
                await ask(upstream)
        assert isinstance(await ask(upstream), Answer)


@pytest.mark.parametrize("is_taken", [True, False], ids=["taken", "connected"])
async def test_a_connection_that_is_held_does_not_rest(*, is_taken: bool) -> None:
    """The journal may take longer than a connection may lie idle."""
    async with running_server() as server, connections_to(server.port, keep_alive_s=0.1) as upstream:
        held, other = await connected(upstream), await connected(upstream)
        held.release()
        assert held is (upstream.take(Lane.ORDER) if is_taken else await connected(upstream))
        other.release()
        await upstream._has_changed.wait()  # the other's rest is over, which began later
        assert isinstance(await ask_on(held, upstream), Answer)
        upstream._has_changed.clear()
        await upstream._has_changed.wait()  # back in the pool it rests again
        assert (held.is_usable, upstream._idle) == (False, [])
