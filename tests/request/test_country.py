"""An exchange that does not serve the country of the gateway's address: what bots and operators are told."""

import json

from rig.bot import request
from rig.station import running_station
from rig.upstream import Upstream, say
from rig.wire import OK, reply

ORDER = request(b"POST", b"/v1/trade/order", body=b"{}")
BLOCKED = "Service unavailable from a restricted location"
LEGAL = reply(b"451 Unavailable For Legal Reasons", json.dumps({"detail": BLOCKED}).encode())


async def test_bots_and_readiness_say_so_while_the_time_cannot_be_had(upstream: Upstream) -> None:
    upstream.time = say(LEGAL)
    async with running_station(upstream, synced=False) as station:
        await station.until(lambda: "451" in str(station.gateway.status().clock.trouble))
        [reason] = station.gateway.status().not_ready
        order = await station.ask(request(b"GET", b"/v1/trade/x", b"X-Gateway-Deadline-Ms: 3600000"))
    words = f"the exchange does not serve this address (country?): 451 {BLOCKED}"
    assert reason == f"clock not synced: /v1/trade/time: {words}"
    assert (order.reason, order.outcome) == ("clock_unsynced", "not_sent")
    assert words in order.document()["detail"]
    assert order.document()["detail"].endswith("waiting does not help.")
    assert upstream.received == []


async def test_a_bots_own_request_is_refused_in_the_exchanges_words_and_nothing_is_closed(
    upstream: Upstream,
) -> None:
    """It is neither the key's fault nor a limit: once the address is served, all go on at once."""
    upstream.answers.extend([say(LEGAL), say(LEGAL), say(OK)])
    async with running_station(upstream) as station:
        first, second, third = [await station.ask(ORDER) for _ in range(3)]
        [_, _, last] = station.outcomes.all
    for refused in (first, second):
        assert (refused.status, refused.outcome, refused.reason) == (451, "refused", None)
        assert BLOCKED.encode() in refused.body
    assert (third.status, third.outcome) == (200, "done")
    assert last.queue_s < 1.0
