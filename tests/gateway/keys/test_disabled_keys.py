"""A key that the exchange does not take is left in peace, and comes back by itself."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from rig.bot import request
from rig.station import KEY, Station, running_station
from rig.upstream import Upstream, hold_until, say
from rig.wire import OK, reply
from sealgate.core.halts import Scope
from sealgate.core.key_breaker import BreakerState, KeyFault

READ = request()
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


@pytest.mark.parametrize("refusal", [INVALID, ADDRESS])
async def test_it_is_told_once_by_the_exchange_and_then_by_the_gateway(
    upstream: Upstream, refusal: bytes
) -> None:
    upstream.otherwise = say(refusal)
    async with running_station(upstream) as station:
        first = await station.ask(ORDER)
        assert (first.status, first.reason) == (int(refusal[9:12]), None)
        for message in (ORDER, READ):
            again = await station.ask(message)
            assert (again.status, again.reason, again.outcome) == (503, "key_disabled", "not_sent")
            assert 1 <= int(again.text("Retry-After") or 0) <= 5
        assert (await station.ask(TIME)).status == 200  # which needs no key
        status = station.gateway.status()
        assert not status.keys[0].is_active
        assert "the key main is disabled" in status.not_ready[0]
    assert len(upstream.received) == 1


ECHO = b'{"request":"Invalid API key, IP 203.0.113.7 not in API key whitelist","detail":"%s"}'


@pytest.mark.parametrize(
    "refusal",
    [
        reply(b"401 Unauthorized", ECHO % b"Invalid HMAC signature"),
        reply(b"401 Unauthorized", ECHO % b"Invalid or expired session token"),
        reply(b"403 Forbidden", ECHO % b"Address mismatch"),
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


async def test_other_keys_go_on(upstream: Upstream) -> None:
    upstream.script = lambda received: say(OK if b"ak-public-2" in received.raw else INVALID)
    async with running_station(upstream, ENVIRON, **BOTS) as station:
        assert (await station.ask(read("main"))).status == 401
        assert (await station.ask(read("main"))).reason == "key_disabled"
        assert (await station.ask(read("alt"))).status == 200
        assert station.gateway.status().not_ready == ()


async def test_those_that_wait_are_refused_and_those_under_way_are_answered(upstream: Upstream) -> None:
    go, refuse = asyncio.Event(), asyncio.Event()
    upstream.answers.extend([hold_until(go, say(OK)), hold_until(refuse, say(INVALID))])
    async with (
        running_station(upstream, upstream={"max_connections": 3}) as station,
        station.bot() as slow,
        station.bot() as waiting,
    ):
        await slow.send(ORDER)
        await upstream.until_received(1)
        refused = asyncio.ensure_future(station.ask(ORDER))
        await upstream.until_received(2)
        await waiting.send(ORDER)
        await station.until(lambda: station.gateway.handler.inflight == 3)
        refuse.set()
        assert (await refused).status == 401
        answer = await waiting.reply(b"POST")
        assert (answer.reason, answer.outcome) == ("key_disabled", "not_sent")
        go.set()
        assert (await slow.reply(b"POST")).status == 200
        assert not station.gateway.status().keys[0].is_active  # it was sent before


async def test_it_comes_back_by_itself(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealgate.core.key_breaker.FIRST_GAP_S", 0.02)
    monkeypatch.setattr("sealgate.gateway.runtime.key_care._LOOK_S", 0.01)
    upstream.answers.extend([say(INVALID)] * 3)
    with capture_logs() as logs:
        async with running_station(upstream) as station:
            assert (await station.ask(ORDER)).status == 401
            await station.until(lambda: station.gateway.status().keys[0].is_active)
            assert (await station.ask(ORDER)).status == 200
    told = [one["event"] for one in logs if one["event"].startswith("key_")]
    assert told == ["key_disabled", "key_still_disabled", "key_still_disabled", "key_enabled"]
    assert [received.target for received in upstream.received[1:4]] == [PROBE] * 3


async def test_an_order_that_is_halted_is_no_trial(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealgate.gateway.runtime.key_care._LOOK_S", 3600.0)
    async with running_station(upstream) as station:
        breaker = station.gateway.generation.live_keys["main"].breaker
        breaker.state = due = BreakerState(KeyFault.INVALID)
        await station.gateway.halt(Scope())
        assert (await station.ask(ORDER)).reason == "halted"
        assert breaker.state is due
        assert (await station.ask(READ)).status == 200
        assert station.gateway.status().keys[0].is_active


async def test_resuming_uses_it_at_once(upstream: Upstream) -> None:
    upstream.answers.append(say(INVALID))
    async with running_station(upstream) as station:
        assert (await station.ask(ORDER)).status == 401
        assert (await station.ask(ORDER)).reason == "key_disabled"
        await station.gateway.resume(Scope())
        assert (await station.ask(ORDER)).status == 200


async def test_a_session_that_is_refused_says_nothing_of_the_key(upstream: Upstream) -> None:
    keys = {"main": {**KEY, "session": "env:SESSION"}}
    bots = {"grid": {"token": "env:GRID", "may": ["read", "trade", "keys"]}}
    environ = {**ENVIRON, "SESSION": "session-1"}
    upstream.answers.append(say(INVALID))
    async with running_station(upstream, environ, keys=keys, bots=bots) as station:
        fields = b"Authorization: Bearer grid-token"
        assert (await station.ask(request(b"GET", b"/v1/trade/api-keys", fields))).status == 401
        assert station.gateway.status().keys[0].is_active


async def test_the_end_of_a_key_is_read_from_the_list(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealgate.gateway.runtime.key_care._LOOK_S", 0.01)
    monkeypatch.setattr("sealgate.gateway.runtime.key_care._FIRST_READ_S", 0.01)
    listed = b'{"keys":[{"api_key":"ak-public-1","expires_at":"2031-01-31T12:00:00Z","is_active":true}]}'
    upstream.otherwise = say(reply(b"200 OK", listed))
    keys = {"main": {**KEY, "session": "env:SESSION"}}
    environ = {"EXCHANGE_SECRET": "s3cret", "SESSION": "session-1"}
    async with running_station(upstream, environ, tries_keys=True, keys=keys) as station:
        await station.until(lambda: station.gateway.status().keys[0].expires_at is not None)
        assert station.gateway.status().keys[0].expires_at == 1_927_627_200.0
        await station.until(
            lambda: len(upstream.received) > 1
        )  # the try waits for the clock, the list need not
    asked, probe = sorted(upstream.received, key=lambda seen: seen.target != b"/v1/trade/api-keys")
    assert (probe.target, asked.target) == (PROBE, b"/v1/trade/api-keys")
    assert b"Authorization: Bearer session-1" in asked.raw


async def test_a_station_is_not_disturbed_by_an_ordinary_401(station: Station) -> None:
    station.upstream.answers.append(say(reply(b"401 Unauthorized", b'{"detail":"Invalid HMAC signature"}')))
    assert (await station.ask(ORDER)).status == 401
    assert (await station.ask(ORDER)).status == 200
