"""A request that carries no time waits for no clock."""

from rig.bot import request
from rig.compiled import needs_sources
from rig.station import KEY, running_station
from rig.upstream import Upstream

pytestmark = needs_sources


async def test_an_order_without_a_time_is_sent_before_the_clock_is_known(upstream: Upstream) -> None:
    async with (
        running_station(
            upstream, synced=False, venue="luno", keys={"main": KEY}, clock={"path": "/nowhere"}
        ) as station,
        station.bot() as bot,
    ):
        assert station.gateway.status().clock.offset_s is None
        reply = await bot.ask(request(b"POST", b"/api/1/postorder", body=b"volume=1"))
        assert reply.status == 200
        assert b"Authorization: Basic" in upstream.received[-1].raw
