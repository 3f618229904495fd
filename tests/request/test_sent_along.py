"""`upstream.headers`: sent with every request, and never a bot's own."""

from rig.backends import pipeline_of
from rig.bot import request
from rig.station import running_station
from rig.upstream import Upstream
from sealgate.request.own_reads import ask
from sealgate.venues.routes import Lane

HEADERS = {"headers": {"x-simulated-trading": "1", "User-Agent": "desk 7"}}


async def test_each_request_has_them_and_the_gateways_own_too(upstream: Upstream) -> None:
    async with running_station(upstream, upstream=HEADERS) as station:
        await station.ask(request())
        await station.ask(request(b"POST", b"/v1/trade/order", body=b"{}"))
        pipeline = pipeline_of(station.gateway)
        await ask(pipeline, "main", "/v1/trade/symbols/list", Lane.READ, station.gateway.services.system)
    assert len(upstream.received) == 3
    for received in (*upstream.received, *upstream.asked_time):
        assert received.head.value(b"x-simulated-trading") == b"1"
        assert received.head.value(b"User-Agent") == b"desk 7"


async def test_a_bots_own_of_that_name_does_not_pass(upstream: Upstream) -> None:
    own = (b"X-Simulated-Trading: 0", b"x_simulated_trading: 0", b"User-Agent: bot", b"X-Mine: 1")
    async with running_station(upstream, upstream=HEADERS) as station:
        await station.ask(request(b"GET", b"/v1/trade/symbols/list", *own))
    [received] = upstream.received
    named = [
        name for name, _ in received.fields if name.lower().replace(b"_", b"-") == b"x-simulated-trading"
    ]
    assert named == [b"x-simulated-trading"]
    assert received.head.value(b"User-Agent") == b"desk 7"
    assert received.head.value(b"X-Mine") == b"1"
