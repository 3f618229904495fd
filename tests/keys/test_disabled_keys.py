"""A key that the exchange does not take is left in peace, and comes back by itself.

It is one only once the gateway's own signed read was refused, too: a bot's request neither disables a key nor
tries it.
"""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from rig.bot import request
from rig.key_reads import hold, look_after
from rig.station import KEY, Station, running_station
from rig.upstream import Act, Received, Upstream, hold_until, say
from rig.wire import OK, reply
from sealgate.orders.halts import Scope

READ = request()
CANCEL = request(b"DELETE", b"/v1/trade/order/1")
ORDER = request(b"POST", b"/v1/trade/order", body=b"{}")
TIME = request(target=b"/v1/trade/time")
INVALID = reply(b"401 Unauthorized", b'{"detail":"Invalid API key"}')
ADDRESS = reply(b"403 Forbidden", b'{"detail":"IP 203.0.113.7 not in API key whitelist"}')
PROBE = b"/v1/trade/symbols/list"
BOTS: dict[str, Any] = {
    "keys": {"main": KEY, "alt": {**KEY, "api_key": "ak-public-2"}},
    "bots": {"grid": {"token": "env:GRID", "keys": ["main", "alt"]}},
}
ENVIRON = {"EXCHANGE_SECRET": "s3cret", "GRID": "grid-token"}


def read(key: str) -> bytes:
    target = b"/v1/trade/user/0xabc/positions"
    return request(b"GET", target, b"Authorization: Bearer grid-token", f"X-Gateway-Key: {key}".encode())


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the gateway look after its keys all the time."""
    monkeypatch.setattr("sealgate.request.key_care._LOOK_S", 0.01)


def is_active(station: Station) -> bool:
    return station.gateway.status().keys[0].is_active


async def disable(station: Station) -> None:
    """Have the gateway's own read refused: the exchange refuses all from here on, until a test says else."""
    station.upstream.otherwise = say(INVALID)
    assert (await station.ask(ORDER)).status == 401
    await station.until(lambda: not is_active(station))


@pytest.mark.usefixtures("quickly")
@pytest.mark.parametrize("refusal", [INVALID, ADDRESS])
async def test_it_is_told_by_the_exchange_and_once_that_is_confirmed_by_the_gateway(
    upstream: Upstream, refusal: bytes
) -> None:
    upstream.otherwise = say(refusal)
    async with running_station(upstream) as station:
        first = await station.ask(ORDER)
        assert (first.status, first.reason) == (int(refusal[9:12]), None)
        await station.until(lambda: not is_active(station))
        assert [received.target for received in upstream.received] == [b"/v1/trade/order", PROBE]
        for message in (ORDER, CANCEL, READ):
            again = await station.ask(message)
            assert (again.status, again.reason, again.outcome) == (503, "key_disabled", "not_sent")
            assert 1 <= int(again.text("Retry-After") or 0) <= 5
        assert (await station.ask(TIME)).status == 200  # which needs no key
        assert "the key main is disabled" in station.gateway.status().not_ready[0]
    assert len(upstream.received) == 2


async def test_no_order_is_held_up_by_a_path_on_which_a_good_key_is_called_invalid(
    upstream: Upstream,
) -> None:
    """Kraken does so. Between two such replies are 1.4 s, which pass for the gateway's care alone."""
    invalid = reply(b"200 OK", b'{"error":["EAPI:Invalid key"]}')
    accepted = reply(b"200 OK", b'{"error":[],"result":{}}')
    upstream.script = lambda received: say(invalid if received.target.endswith(b"Earn/Status") else accepted)
    clock, environ = {"path": "/v1/trade/time", "field": "/serverTime"}, {"EXCHANGE_SECRET": "c2VjcmV0"}
    form = b"Content-Type: application/x-www-form-urlencoded"
    order = request(b"POST", b"/0/private/AddOrder", form, body=b"pair=XBTUSD&volume=1")
    status = request(b"POST", b"/0/private/Earn/Status", form)
    answers = []
    async with running_station(upstream, environ, venue="kraken", clock=clock) as station:
        for _ in range(16):
            assert (await station.ask(status)).status == 200
            await look_after(station, 1)
            answers += [await station.ask(order) for _ in range(4)]
        assert is_active(station)
    assert [answer.outcome for answer in answers] == ["done"] * 64
    assert [received.target for received in upstream.received].count(b"/0/private/AddOrder") == 64
    assert b"/0/private/Balance" in [received.target for received in upstream.received]


@pytest.mark.usefixtures("quickly")
async def test_while_the_gateways_own_read_is_out_requests_pass(upstream: Upstream) -> None:
    go = asyncio.Event()
    upstream.answers.extend([say(INVALID), hold_until(go, say(INVALID))])
    async with running_station(upstream) as station:
        assert (await station.ask(ORDER)).status == 401
        await upstream.until_received(2)
        assert upstream.received[1].target == PROBE
        for message in (ORDER, CANCEL):
            assert (await station.ask(message)).status == 200
        go.set()


ECHO = b'{"request":"Invalid API key, IP 203.0.113.7 not in API key whitelist","detail":"%s"}'


@pytest.mark.parametrize(
    "refusal",
    [
        reply(b"401 Unauthorized", ECHO % b"Invalid HMAC signature"),
        reply(b"401 Unauthorized", b"<p>Invalid API key</p>"),
        reply(b"403 Forbidden", b"IP 203.0.113.7 not in API key whitelist"),
    ],
)
async def test_what_a_reply_repeats_of_the_request_says_nothing_of_the_key(
    upstream: Upstream, refusal: bytes
) -> None:
    """An error's message is its `detail`; the rest may be the text of whoever sent the request."""
    upstream.answers.append(say(refusal))
    async with running_station(upstream) as station:
        assert (await station.ask(ORDER)).status == int(refusal[9:12])
        assert station.gateway.status().keys[0].is_active
        assert (await station.ask(ORDER)).status == 200
    assert len(upstream.received) == 2


@pytest.mark.usefixtures("quickly")
async def test_other_keys_go_on(upstream: Upstream) -> None:
    upstream.script = lambda received: say(OK if b"ak-public-2" in received.raw else INVALID)
    async with running_station(upstream, ENVIRON, **BOTS) as station:
        assert (await station.ask(read("main"))).status == 401
        await station.until(lambda: not is_active(station))
        assert (await station.ask(read("main"))).reason == "key_disabled"
        assert (await station.ask(read("alt"))).status == 200
        assert station.gateway.status().not_ready == ()


@pytest.mark.usefixtures("quickly")
async def test_those_that_wait_are_refused_and_those_under_way_are_answered(upstream: Upstream) -> None:
    go, refuse = asyncio.Event(), asyncio.Event()

    def script(received: Received) -> Act:
        if received.target == PROBE:
            return hold_until(refuse, say(INVALID))
        return hold_until(go, say(OK)) if len(upstream.received) == 1 else say(INVALID)

    upstream.script = script
    async with (
        running_station(upstream, upstream={"max_connections": 3}) as station,
        station.bot() as slow,
        station.bot() as waiting,
    ):
        await slow.send(ORDER)
        await upstream.until_received(1)
        assert (await station.ask(ORDER)).status == 401
        await upstream.until_received(3)  # the gateway's own read
        hold(station)
        await waiting.send(ORDER)
        await station.until(lambda: station.gateway.handler.inflight == 2)
        refuse.set()
        answer = await waiting.reply(b"POST")
        assert (answer.reason, answer.outcome) == ("key_disabled", "not_sent")
        go.set()
        assert (await slow.reply(b"POST")).status == 200
        assert not is_active(station)  # it was sent before


@pytest.mark.usefixtures("quickly")
async def test_it_comes_back_by_itself(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealgate.keys.key_health.FIRST_GAP_S", 0.02)
    upstream.answers.extend([say(INVALID)] * 4)
    with capture_logs() as logs:
        async with running_station(upstream) as station:
            assert (await station.ask(ORDER)).status == 401
            await station.until(lambda: not is_active(station))
            await station.until(lambda: is_active(station))
            assert (await station.ask(ORDER)).status == 200
    told = [one["event"] for one in logs if one["event"].startswith("key_")]
    assert told == ["key_disabled", "key_still_disabled", "key_still_disabled", "key_enabled"]
    assert [received.target for received in upstream.received[1:5]] == [PROBE] * 4


@pytest.mark.usefixtures("quickly")
async def test_resuming_uses_it_at_once(upstream: Upstream) -> None:
    async with running_station(upstream) as station:
        await disable(station)
        assert (await station.ask(ORDER)).reason == "key_disabled"
        upstream.otherwise = None
        await station.gateway.resume(Scope())
        assert (await station.ask(ORDER)).status == 200


async def test_resuming_one_key_uses_no_other(upstream: Upstream) -> None:
    async with running_station(upstream, ENVIRON, **BOTS) as station:
        station.disable_key()
        await station.gateway.resume(Scope(None, "alt"))
        assert (await station.ask(read("main"))).reason == "key_disabled"
        await station.gateway.resume(Scope(None, "main"))
        assert (await station.ask(read("main"))).status == 200


async def test_a_session_that_is_refused_says_nothing_of_the_key(upstream: Upstream) -> None:
    keys = {"main": {**KEY, "session": "env:SESSION"}}
    bots = {"grid": {"token": "env:GRID", "may": ["read", "trade", "keys"]}}
    environ = {**ENVIRON, "SESSION": "session-1"}
    upstream.answers.append(say(INVALID))
    async with running_station(upstream, environ, keys=keys, bots=bots) as station:
        fields = b"Authorization: Bearer grid-token"
        assert (await station.ask(request(b"GET", b"/v1/trade/api-keys", fields))).status == 401
        assert station.gateway.status().keys[0].is_active
