"""A key that no bot has had accepted is tried by one signed read, some seconds after the start."""

from typing import Any

from rig.bot import request
from rig.key_reads import look_after
from rig.station import ENVIRON, KEY, running_station
from rig.upstream import Upstream, say
from rig.wire import reply

PROBE = b"/v1/trade/symbols/list"
INVALID = reply(b"401 Unauthorized", b'{"detail":"Invalid API key"}')


async def test_each_key_is_tried_unless_a_bot_has_had_it_accepted(upstream: Upstream) -> None:
    tables: dict[str, Any] = {
        "keys": {"main": KEY, "alt": {**KEY, "api_key": "ak-public-2"}},
        "bots": {"grid": {"token": "env:GRID", "keys": ["main", "alt"]}},
    }
    fields = (b"Authorization: Bearer grid-token", b"X-Gateway-Key: main")
    async with running_station(
        upstream, {**ENVIRON, "GRID": "grid-token"}, tries_keys=True, **tables
    ) as station:
        assert (await station.ask(request(b"GET", PROBE, *fields))).status == 200
        upstream.otherwise = say(INVALID)
        for alias in ("main", "alt"):
            await look_after(station, 5, alias)
        assert [key.is_active for key in station.gateway.status().keys] == [True, False]
        assert b"ak-public-2" in upstream.received[1].raw
    assert len(upstream.received) == 2


async def test_it_waits_until_the_gateway_is_ready(upstream: Upstream) -> None:
    upstream.time = say(reply(b"503 Service Unavailable", b""))
    async with running_station(upstream, synced=False, tries_keys=True) as station:
        await look_after(station, 60)
        assert upstream.received == []
        assert station.gateway.services.untried == {("service", "main")}


async def test_it_is_not_tried_while_the_gateway_ends(upstream: Upstream) -> None:
    async with running_station(upstream, tries_keys=True) as station:
        await station.gateway.drain()
        await look_after(station, 60)
    assert upstream.received == []
