"""Places of a listener: clients that never send a request which is let in keep no bot out."""

import contextlib
import socket

import pytest

from rig.bot import request
from rig.station import ENVIRON, running_station
from rig.upstream import Upstream

MOST = 20
TOKENS = {**ENVIRON, "TOKEN_ONE": "token-of-one"}
BOTS = {"one": {"token": "env:TOKEN_ONE", "key": "main"}}
SIGNED = request().replace(b"\r\n", b"\r\nAuthorization: Bearer token-of-one\r\n", 1)
FORGED = request().replace(b"\r\n", b"\r\nAuthorization: Bearer somebody-else\r\n", 1)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(SIGNED[:-2], id="a request without its end"),
        pytest.param(request(), id="no token"),
        pytest.param(FORGED, id="a wrong token"),
        pytest.param(b"\x16\x03\x01", id="another protocol"),
    ],
)
async def test_strangers_on_all_places_keep_no_bot_out(upstream: Upstream, sent: bytes) -> None:
    listen = {"max_connections": MOST}
    async with running_station(upstream, TOKENS, bots=BOTS, listen=listen) as station:
        where = (station.gateway.address.host, station.gateway.address.port)
        async with station.bot() as staying:
            assert (await staying.ask(SIGNED)).status == 200
            with contextlib.ExitStack() as strangers:
                for _ in range(MOST + 10):
                    strangers.enter_context(socket.create_connection(where)).sendall(sent)
                for _ in range(5):
                    assert (await station.ask(SIGNED)).status == 200
                assert (await staying.ask(SIGNED)).status == 200
