"""Reads that are alike and wait go as one; where a route says so, the reply answers later ones, too."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from rig.acts import pour
from rig.backends import only
from rig.bot import Reply, met, request
from rig.key_reads import hold
from rig.station import ENVIRON, KEY, Station, running_station
from rig.upstream import Upstream, hold_until, say, say_and_close
from rig.wire import reply
from sealgate.keys.key_health import BreakerState, KeyFault

TARGET = b"/v1/trade/user/0xabc/positions"
SYMBOLS = b"/v1/trade/symbols/list"
BOTS = {
    "one": {"token": "env:TOKEN_ONE", "keys": ["main", "other"]},
    "two": {"token": "env:TOKEN_TWO", "keys": ["main", "other"]},
    "blind": {"token": "env:TOKEN_BLIND", "key": "main", "may": ["trade"]},
}
KEYS = {"main": KEY, "other": {**KEY, "api_key": "ak-public-2"}}
TOKENS = {**ENVIRON, **{f"TOKEN_{name.upper()}": f"token-of-{name}" for name in BOTS}}
KEPT = [{"match": f"GET {SYMBOLS.decode()}", "share_s": 60.0}]


def read(bot: str, *fields: bytes, target: bytes = TARGET, body: bytes | None = None) -> bytes:
    return request(b"GET", target, b"Authorization: Bearer token-of-" + bot.encode(), *fields, body=body)


@asynccontextmanager
async def shared_station(upstream: Upstream, /, **tables: Any) -> AsyncIterator[Station]:
    async with running_station(upstream, TOKENS, keys=KEYS, bots=BOTS, **tables) as station:
        yield station


async def asked(station: Station, *messages: bytes) -> list["asyncio.Task[Reply]"]:
    """Send each by a bot of its own, and let them go once all of them wait."""
    let_go, asks = hold(station, "main", "other", ""), []
    for message in messages:
        asks.append(asyncio.create_task(station.ask(message)))
        await station.until(lambda: station.waiting() == len(asks))
    let_go()
    return asks


def ids(*replies: Reply) -> list[str | None]:
    return [one.text("X-Gateway-Shared") for one in replies]


async def test_reads_that_wait_and_are_alike_go_as_one(upstream: Upstream) -> None:
    upstream.otherwise = say(reply(b"200 OK", b'{"positions":[]}'))
    async with shared_station(upstream) as station:
        first, *others = await asyncio.gather(
            *await asked(
                station,
                read("one", b"X-Gateway-Request-Id: first"),
                read("two", b"X-Gateway-Request-Id: second"),
                read("one", b"X-Gateway-Request-Id: third"),
            )
        )
    assert upstream.receipts(TARGET) == 1
    assert met(first) == (200, "done", None, 1)
    assert [met(one) for one in others] == [(200, "done", None, 0)] * 2
    assert {one.body for one in (first, *others)} == {b'{"positions":[]}'}
    assert ids(first, *others) == [None, "first", "first"]
    assert [outcome.shared for outcome in station.outcomes.all] == [None, "first", "first"]


DIFFERENT = {
    "another key": read("two", b"X-Gateway-Key: other"),
    "another format": read("two", b"Accept: text/csv"),
    "another program": read("two", b"User-Agent: another"),
    "another target": read("two", target=TARGET + b"?limit=1"),
    "another field that is passed on": read("two", b"X-Strategy: 2"),
    "a part of it": read("two", b"Range: bytes=0-9"),
    "a condition": read("two", b'If-None-Match: "1"'),
    "a body": read("two", body=b"{}"),
    "without the body": request(b"HEAD", TARGET, b"Authorization: Bearer token-of-two"),
}


@pytest.mark.parametrize("other", DIFFERENT.values(), ids=DIFFERENT)
async def test_reads_that_differ_are_sent_each(upstream: Upstream, other: bytes) -> None:
    async with shared_station(upstream) as station:
        first, second = await asked(station, read("one"), other)
        await upstream.until_received(2)
        assert (await first).attempts == 1
        second.cancel()  # nobody here can read the reply to HEAD
    assert len(upstream.received) == 2


VENUE = """
name = "mine"
title = "Mine"
[signing]
message = "{timestamp}{method}{target}{body}"
[signing.headers]
KEY = "{api_key}"
SIGN = "{signature}"
[[routes]]
match = "GET /public/**"
auth = "open"
"""
PRICE, ACCOUNT = b"/public/price?symbol=BTC", b"/account"


@pytest.fixture
def mine(tmp_path: Path) -> dict[str, Any]:
    """Return the settings of an exchange with reads that need no key."""
    (tmp_path / "mine.toml").write_text(VENUE)
    return {"venue": str(tmp_path / "mine.toml"), "clock": {"path": "/v1/trade/time"}}


def with_key(bot: str, key: str, target: bytes = PRICE) -> bytes:
    return read(bot, b"X-Gateway-Key: " + key.encode(), b"Key: made up by " + bot.encode(), target=target)


async def test_reads_that_need_no_key_go_as_one_for_all_bots_and_keys(
    upstream: Upstream, mine: dict[str, Any]
) -> None:
    async with shared_station(upstream, **mine) as station:
        asks = await asked(station, with_key("one", "main"), with_key("two", "other"))
        first, second = await asyncio.gather(*asks)
        assert (met(first), met(second)) == ((200, "done", None, 1), (200, "done", None, 0))
        assert met(await station.ask(with_key("one", "main"))) == (200, "done", None, 1), "none is kept"
    assert upstream.receipts(PRICE) == 2


async def test_reads_that_need_a_key_are_not_shared_with_those_of_another(
    upstream: Upstream, mine: dict[str, Any]
) -> None:
    async with shared_station(upstream, **mine, limits={"share_open_s": 60.0}) as station:
        for bot, key in (("one", "main"), ("two", "other"), ("two", "main")):
            assert ids(await station.ask(with_key(bot, key, ACCOUNT))) == [None]


async def test_share_open_s_answers_later_reads_of_other_bots_and_keys(
    upstream: Upstream, mine: dict[str, Any]
) -> None:
    limits = {"share_open_s": 60.0}
    async with shared_station(upstream, **mine, limits=limits) as station:
        replies = [await station.ask(with_key(bot, key)) for bot, key in (("one", "main"), ("two", "other"))]
        assert [one.attempts for one in replies] == [1, 0]
        assert ids(replies[1]) == [replies[0].text("X-Gateway-Request-Id")]
        assert met(await station.ask(with_key("blind", "main")))[2] == "bot_forbidden"
    assert upstream.receipts(PRICE) == 1


async def test_orders_are_never_shared(upstream: Upstream) -> None:
    order = request(
        b"POST", b"/v1/trade/order", b"Authorization: Bearer token-of-one", body=b'{"symbol":"BTC"}'
    )
    async with shared_station(upstream) as station:
        for answer in await asyncio.gather(*await asked(station, order, order)):
            assert met(answer) == (200, "done", None, 1)
    assert len(upstream.received) == 2


async def test_who_may_not_read_gets_no_reply_of_those_who_may(upstream: Upstream) -> None:
    async with shared_station(upstream, routes=KEPT) as station:
        assert (await station.ask(read("one", target=SYMBOLS))).status == 200
        refused = await station.ask(read("blind", target=SYMBOLS))
        assert met(refused) == (403, "not_sent", "bot_forbidden", 0)


async def test_a_read_that_others_wait_for_is_finished_also_when_its_bot_hangs_up(upstream: Upstream) -> None:
    go = asyncio.Event()
    upstream.answers.append(hold_until(go, say(reply(b"200 OK", b"{}"))))
    async with shared_station(upstream) as station:
        first, second = await asked(station, read("one"), read("two"))
        await upstream.until_received(1)
        first.cancel()
        await station.until(lambda: len(station.gateway.server.connections) == 1)
        go.set()
        assert met(await second) == (200, "done", None, 0)
    assert len(upstream.received) == 1


async def test_after_a_refusal_for_the_limit_they_wait_once_more_and_go_as_one(upstream: Upstream) -> None:
    upstream.answers.append(say(reply(b"429 Too Many Requests", b"{}", b"Retry-After: 0.2")))
    async with shared_station(upstream) as station:
        one, two = await asyncio.gather(*await asked(station, read("one"), read("two")))
    assert sorted((one.status, two.status)) == [200, 200]
    assert len(upstream.received) == 2
    assert sorted((one.attempts, two.attempts)) in ([0, 2], [1, 1])


async def test_a_refusal_that_is_not_sent_again_is_that_of_all(upstream: Upstream) -> None:
    upstream.answers.append(say(reply(b"429 Too Many Requests", b"{}", b"Retry-After: 0.2")))
    async with shared_station(upstream, limits={"replay_429": "none"}) as station:
        replies = await asyncio.gather(*await asked(station, read("one"), read("two")))
    assert [one.status for one in replies] == [429, 429]
    assert len(upstream.received) == 1


async def test_a_lost_reply_is_lost_for_all_and_they_try_again_as_one(upstream: Upstream) -> None:
    upstream.answers.append(say_and_close(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"))
    async with shared_station(upstream) as station:
        replies = await asyncio.gather(*await asked(station, read("one"), read("two")))
    assert [one.status for one in replies] == [200, 200]
    assert 2 <= len(upstream.received) <= 3


async def test_a_reply_too_large_to_be_held_goes_to_one_and_the_others_are_sent(upstream: Upstream) -> None:
    upstream.otherwise = pour(1_000_000)
    async with shared_station(upstream) as station:
        replies = await asyncio.gather(*await asked(station, read("one"), read("two"), read("two")))
    assert [met(one) for one in replies] == [(200, "done", None, 1)] * 3
    assert {len(one.body) for one in replies} == {1_000_000}
    assert len(upstream.received) == 3


async def test_a_deadline_is_kept_also_by_one_that_goes_along(upstream: Upstream) -> None:
    go = asyncio.Event()
    upstream.answers.append(hold_until(go, say(reply(b"200 OK", b"{}"))))
    async with shared_station(upstream) as station:
        hasty = b"X-Gateway-Deadline-Ms: 400"
        first, second = await asked(station, read("one"), read("two", hasty))
        assert met(await second) == (504, "not_sent", "upstream_timeout", 0)
        go.set()
        assert met(await first) == (200, "done", None, 1)
    assert len(upstream.received) == 1


async def test_the_short_deadline_of_one_is_not_that_of_the_others(upstream: Upstream) -> None:
    never = asyncio.Event()
    upstream.answers.append(hold_until(never, say(b"")))
    async with shared_station(upstream) as station:
        hasty = b"X-Gateway-Deadline-Ms: 400"
        first, second = await asked(station, read("one", hasty), read("two"))
        assert met(await first) == (504, "unknown", "upstream_timeout", 1)
        assert met(await second) == (200, "done", None, 1)
        never.set()


async def test_where_a_route_says_so_a_reply_answers_later_reads(upstream: Upstream) -> None:
    upstream.otherwise = say(reply(b"200 OK", b'["BTC"]'))
    async with shared_station(upstream, routes=KEPT) as station:
        first = await station.ask(read("one", b"X-Gateway-Request-Id: first", target=SYMBOLS))
        later = await station.ask(read("two", target=SYMBOLS))
        assert (met(first), met(later)) == ((200, "done", None, 1), (200, "done", None, 0))
        assert ids(first, later) == [None, "first"]
        assert later.body == b'["BTC"]'
        assert met(await station.ask(read("two", b"X-Gateway-Key: other", target=SYMBOLS)))[3] == 1
        assert met(await station.ask(read("two", target=TARGET)))[3] == 1
        assert upstream.receipts(SYMBOLS) == 2


async def test_one_that_is_under_way_answers_those_that_come_meanwhile(upstream: Upstream) -> None:
    go = asyncio.Event()
    upstream.answers.append(hold_until(go, say(reply(b"404 Not Found", b"{}"))))
    async with shared_station(upstream, routes=KEPT) as station:
        first = asyncio.create_task(station.ask(read("one", target=SYMBOLS)))
        await upstream.until_received(1)
        second = asyncio.create_task(station.ask(read("two", target=SYMBOLS)))
        await station.until(lambda: station.gateway.status().inflight == 2)
        go.set()
        assert [one.status for one in await asyncio.gather(first, second)] == [404, 404]
        assert upstream.receipts(SYMBOLS) == 1
        assert (await station.ask(read("two", target=SYMBOLS))).status == 200  # only a success is kept
    assert upstream.receipts(SYMBOLS) == 2


async def test_without_it_reads_that_need_not_wait_are_sent_each(station: Station) -> None:
    for _ in range(2):
        assert met(await station.ask(request())) == (200, "done", None, 1)
    assert len(station.upstream.received) == 2


async def test_a_read_that_came_to_nothing_answers_nobody(upstream: Upstream) -> None:
    never = asyncio.Event()
    upstream.answers.append(hold_until(never, say(b"")))
    async with shared_station(upstream, routes=KEPT) as station:
        hasty = await station.ask(read("one", b"X-Gateway-Deadline-Ms: 200", target=SYMBOLS))
        assert met(hasty) == (504, "unknown", "upstream_timeout", 1)
        assert met(await station.ask(read("two", target=SYMBOLS))) == (200, "done", None, 1)
        never.set()


async def test_a_key_that_is_disabled_gets_nothing_that_was_kept(upstream: Upstream) -> None:
    async with shared_station(upstream, routes=KEPT) as station:
        assert (await station.ask(read("one", target=SYMBOLS))).status == 200
        only(station.gateway.generation).exchange.live_keys["main"].breaker.state = BreakerState(
            KeyFault.INVALID
        )
        refused = await station.ask(read("two", target=SYMBOLS))
        assert refused.reason == "key_disabled"


async def test_a_reload_forgets_what_was_kept(upstream: Upstream) -> None:
    async with shared_station(upstream, routes=KEPT) as station:
        assert met(await station.ask(read("one", target=SYMBOLS)))[3] == 1
        assert met(await station.ask(read("one", target=SYMBOLS)))[3] == 0
        await station.gateway.reloader.reload("the test")
        assert met(await station.ask(read("one", target=SYMBOLS)))[3] == 1


async def test_reads_from_before_and_after_a_reload_are_sent_each(upstream: Upstream) -> None:
    """Rights may have changed with it."""
    async with shared_station(upstream) as station:
        let_go = hold(station)
        before = asyncio.create_task(station.ask(read("one")))
        await station.until(lambda: station.waiting() == 1)
        await station.gateway.reloader.reload("the test")
        after = asyncio.create_task(station.ask(read("two")))
        await station.until(lambda: station.waiting() == 2)
        let_go()
        assert [met(await one)[3] for one in (before, after)] == [1, 1]
    assert upstream.receipts(TARGET) == 2


async def test_each_has_a_failure_under_its_own_id(upstream: Upstream) -> None:
    upstream.otherwise = say_and_close(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{")
    async with shared_station(upstream) as station:
        names = [b"first", b"second", b"third"]
        replies = await asyncio.gather(
            *await asked(station, *(read("one", b"X-Gateway-Request-Id: " + name) for name in names))
        )
    assert [met(one)[:3] for one in replies] == [(502, "unknown", "upstream_broken")] * 3
    assert [one.text("X-Gateway-Request-Id") for one in replies] == [name.decode() for name in names]
    assert [one.document()["request_id"] for one in replies] == [name.decode() for name in names]
    assert all(int(one.text("X-Gateway-Queue-Ms") or "0") > 0 for one in replies)
    assert sum(one.attempts for one in replies) == upstream.receipts(TARGET)


async def test_a_read_whose_bot_hangs_up_unsent_takes_none_of_those_with_it_along(upstream: Upstream) -> None:
    """It has its turn, and then the only connection is in use."""
    async with one_connection_in_use(upstream) as (station, go):
        first, second = await asked(station, read("one"), read("two"))
        await station.until(lambda: not station.waiting())
        first.cancel()
        await station.until(lambda: len(station.gateway.server.connections) == 2)
        go.set()
        assert met(await second) == (200, "done", None, 1)
    assert upstream.receipts(TARGET) == 1


async def test_a_read_that_is_refused_unsent_takes_none_of_those_with_it_along(upstream: Upstream) -> None:
    async with one_connection_in_use(upstream) as (station, go):
        hasty = b"X-Gateway-Deadline-Ms: 400"
        first, second = await asked(station, read("one", hasty), read("two"))
        assert met(await first) == (503, "not_sent", "queue_full", 0)
        assert ids(await first) == [None]
        go.set()
        assert met(await second) == (200, "done", None, 1)
    assert upstream.receipts(TARGET) == 1


@asynccontextmanager
async def one_connection_in_use(upstream: Upstream) -> AsyncIterator[tuple[Station, asyncio.Event]]:
    """Let a read by another key hold the only connection until the event."""
    go = asyncio.Event()
    upstream.answers.append(hold_until(go, say(reply(b"200 OK", b"{}"))))
    async with shared_station(upstream, upstream={"max_connections": 1}) as station:
        holding = asyncio.create_task(station.ask(read("one", b"X-Gateway-Key: other", target=SYMBOLS)))
        await upstream.until_received(1)
        yield station, go
        assert (await holding).status == 200
