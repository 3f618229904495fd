"""A 429 pauses the key for all its bots: nothing is received before the time that Retry-After states."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from rig.backends import only
from rig.bot import met, request
from rig.history import check_history
from rig.station import API_KEY, ENVIRON, KEY, SECRET, Station, running_station, watch_signing
from rig.upstream import Upstream, say, say_and_close
from rig.wire import reply

READ = request()
ORDER = request(b"POST", b"/v1/trade/order", body=b'{"id":"1"}')
MODIFY = request(b"POST", b"/v1/trade/order/modify", body=b'{"id":"2"}')
CANCEL = request(b"DELETE", b"/v1/trade/order/1")
LIMITED = b'{"detail":"Rate limit exceeded","timestamp":"2026-01-01T00:00:00Z"}'
PAUSE_S = 0.4

BOTS = {
    "one": {"token": "env:TOKEN_ONE", "key": "main"},
    "two": {"token": "env:TOKEN_TWO", "key": "main"},
    "three": {"token": "env:TOKEN_THREE", "key": "other"},
}
KEYS = {"main": KEY, "other": {**KEY, "api_key": "ak-public-2"}}
TOKENS = {**ENVIRON, **{f"TOKEN_{name.upper()}": f"token-of-{name}" for name in BOTS}}


def limited(retry_after: str | None) -> bytes:
    fields = [] if retry_after is None else [f"Retry-After: {retry_after}".encode()]
    return reply(b"429 Too Many Requests", LIMITED, *fields)


def by(bot: str, message: bytes) -> bytes:
    return message.replace(b"\r\n", f"\r\nAuthorization: Bearer token-of-{bot}\r\n".encode(), 1)


async def test_a_pause_holds_for_all_bots_of_the_key_and_for_no_other(upstream: Upstream) -> None:
    upstream.answers.append(say(limited(str(PAUSE_S))))
    async with running_station(upstream, TOKENS, keys=KEYS, bots=BOTS) as station:
        first = asyncio.ensure_future(station.ask(by("one", ORDER)))
        await upstream.until_received(1)
        await station.until(lambda: station.gateway.status().keys[0].pause_s > 0)
        waiting = [
            asyncio.ensure_future(station.ask(by(bot, message)))
            for bot, message in (("two", READ), ("two", CANCEL), ("one", MODIFY))
        ]
        await station.until(lambda: station.waiting() == 4)
        assert met(await station.ask(by("three", READ))) == (200, "done", None, 1)

        assert met(await first) == (200, "done", None, 2)
        for answer in await asyncio.gather(*waiting):
            assert met(answer) == (200, "done", None, 1)

        refused, other, *later = upstream.received
        assert other.head.value(b"X-SERVICE-APIKEY") == b"ak-public-2"
        assert len(later) == 4
        for request_ in later:
            assert request_.at >= refused.at + PAUSE_S
        check_history([refused, *later], SECRET, API_KEY)
        queue_ms = [int(answer.result().text("X-Gateway-Queue-Ms") or 0) for answer in (first, *waiting)]
        assert all(0 < wait <= 20_000 for wait in queue_ms)


class Transport:
    """A connection's transport, whose writes are seen."""

    def __init__(self, real: Any, see: Callable[[bytes], None]) -> None:
        self._real = real
        self._see = see

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def write(self, data: bytes) -> None:
        self._see(data)
        self._real.write(data)


async def test_no_pause_can_begin_between_the_stamp_and_the_write(station: Station) -> None:
    """Another task, which may hear of one, gets no turn between the two."""
    loop = asyncio.get_running_loop()
    events: list[str] = []

    def stamped(_: bytes) -> None:
        events.append("stamp")
        loop.call_soon(events.append, "another task's turn")

    assert met(await station.ask(READ)) == (200, "done", None, 1)  # so there is an idle connection
    for connection in only(station.gateway.generation).exchange.upstream._idle:
        transport: Any = Transport(connection.transport, lambda _: events.append("write"))
        connection.transport = transport
    watch_signing(station, stamped)
    assert met(await station.ask(ORDER)) == (200, "done", None, 1)
    assert events == ["stamp", "write", "another task's turn"]


async def test_what_is_sent_again_is_stamped_after_the_wait(station: Station) -> None:
    station.upstream.answers.extend([say(limited("0.2")), say(limited("0.1"))])
    assert met(await station.ask(ORDER)) == (200, "done", None, 3)
    check_history(station.upstream.received, SECRET, API_KEY)
    stamps = [int(item.head.value(b"X-SERVICE-TIMESTAMP") or 0) for item in station.upstream.received]
    gaps = [later - earlier for earlier, later in pairwise(stamps)]
    assert gaps[0] >= 199
    assert gaps[1] >= 99
    outcome = await station.outcomes.until(1)
    assert (outcome.resends, outcome.times_limited) == (("rate_limited", "rate_limited"), 2)


@pytest.mark.parametrize("message", [READ, ORDER, CANCEL], ids=["read", "order", "cancel"])
async def test_a_pause_longer_than_anybody_may_wait_is_answered_at_once(
    station: Station, message: bytes
) -> None:
    station.upstream.answers.append(say(limited("3600")))
    sent = await station.ask(message)
    assert met(sent) == (429, "refused", "rate_limited", 1)
    for hurry in (message, message.replace(b"Host:", b"X-Gateway-Deadline-Ms: 500\r\nHost:", 1)):
        waited = await station.ask(hurry)
        assert met(waited) == (429, "not_sent", "rate_limited", 0)
        assert 3500 < int(waited.text("Retry-After") or 0) <= 3601
    assert 3500 < int(sent.text("Retry-After") or 0) <= 3601
    assert len(station.upstream.received) == 1


async def test_a_429_whose_body_is_cut_pauses_the_key_all_the_same(station: Station) -> None:
    """It is a lost reply like any other: it does not prove that an order was refused."""
    station.upstream.answers.append(say_and_close(limited("3600")[:-1]))
    assert met(await station.ask(ORDER)) == (502, "unknown", "upstream_broken", 1)
    assert station.gateway.status().keys[0].pause_s > 3500


async def test_the_time_is_forwarded_during_a_pause(station: Station) -> None:
    station.upstream.answers.append(say(limited("3600")))
    await station.ask(ORDER)
    assert met(await station.ask(request(target=b"/v1/trade/time"))) == (200, "done", None, 1)


async def test_a_429_that_is_passed_on_pauses_the_key_all_the_same(upstream: Upstream) -> None:
    upstream.answers.append(say(limited(str(PAUSE_S))))
    async with running_station(upstream, limits={"replay_429": "none"}) as station:
        assert met(await station.ask(ORDER)) == (429, "refused", None, 1)
        assert met(await station.ask(ORDER)) == (200, "done", None, 1)
    refused, later = upstream.received
    assert later.at >= refused.at + PAUSE_S
