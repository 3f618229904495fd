"""`Idempotency-Key` from end to end: the same key is answered with the first reply, and sent once."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from rig.acts import Act, drip, hold_until, say, say_and_close, say_and_reset, say_and_stall
from rig.bot import Reply, request
from rig.faults import whole
from rig.key_reads import hold
from rig.station import Station, running_station
from rig.upstream import Upstream
from rig.wire import OK, reply

TARGET = b"/v1/trade/order"
BODY = b'{"id":"1"}'
GZIPPED = bytes.fromhex("1f8b08000000000002ffab5632525600be0e0f6d06000000")
NOTES = (b"x-gateway-request-id", b"x-gateway-attempts", b"x-gateway-queue-ms", b"x-gateway-replayed")


def order(key: str = "k-1", body: bytes = BODY, *fields: bytes, method: bytes = b"POST") -> bytes:
    return request(method, TARGET, f"Idempotency-Key: {key}".encode(), *fields, body=body)


def as_told(answer: Reply) -> tuple[object, ...]:
    """Return all of a reply but what is of the asking itself: its own id, attempts and wait."""
    fields = [field for field in answer.fields if field[0].lower() not in NOTES]
    return answer.head.line, fields, answer.body, answer.is_whole


# act -> the outcome that is told, first and again
KEPT: Mapping[str, tuple[Act, str]] = {
    "done": (say(OK), "done"),
    "compressed": (say(reply(b"200 OK", GZIPPED, b"Content-Encoding: gzip")), "done"),
    "a field in Latin-1 and one twice": (say(reply(b"200 OK", b"x", b"X-A: \xfc", b"X-A: 2")), "done"),
    "refused": (say(reply(b"400 Bad Request", b'{"detail":"no"}')), "refused"),
    "a server error": (say(reply(b"503 Service Unavailable", b"x")), "unknown"),
    "lost": (say_and_reset(), "unknown"),
}


@pytest.mark.parametrize(("act", "outcome"), KEPT.values(), ids=KEPT)
async def test_the_first_reply_comes_again(station: Station, act: Act, outcome: str) -> None:
    station.upstream.answers.append(act)
    message = order()
    first = await station.ask(message)
    assert first.outcome == outcome
    again = await station.ask(message)
    assert again.attempts == 0
    assert (first.text("X-Gateway-Replayed"), again.text("X-Gateway-Replayed")) == (None, "true")
    if first.reason is None:
        assert as_told(again) == as_told(first)
    else:
        assert (again.status, again.outcome, again.reason) == (first.status, outcome, first.reason)
        assert again.text("X-Gateway-Fence-Ms") == first.text("X-Gateway-Fence-Ms")
    assert len(station.upstream.received) == 1


async def test_while_the_first_is_under_way(station: Station) -> None:
    upstream, go = station.upstream, asyncio.Event()
    upstream.answers.append(hold_until(go, say(OK)))
    first = asyncio.ensure_future(station.ask(order()))
    await upstream.until_received(1)
    stamp = upstream.received[0].head.value(b"X-SERVICE-TIMESTAMP")
    answer = await station.ask(order())
    assert (answer.status, answer.reason, answer.outcome) == (409, "in_flight", "unknown")
    fence_ms = int(answer.text("X-Gateway-Fence-Ms") or 0)
    assert int(stamp or 0) + 5000 <= fence_ms < int(stamp or 0) + 6000
    go.set()
    assert as_told(await station.ask(order())) == as_told(await first)
    assert len(upstream.received) == 1


async def test_while_the_first_waits_in_line(station: Station) -> None:
    """Nothing is signed yet, and so there is no fence to tell."""
    let_go = hold(station)
    first = asyncio.ensure_future(station.ask(order()))
    await station.until(lambda: station.waiting() == 1)
    answer = await station.ask(order())
    assert (answer.status, answer.reason, answer.outcome) == (409, "in_flight", "unknown")
    let_go()
    assert (await first).outcome == "done"
    assert station.upstream.receipts(TARGET) == 1


OTHERS: Mapping[str, bytes] = {
    "another body": order(body=b'{"id":"2"}'),
    "another method": order(method=b"PUT"),
    "another target": request(b"POST", TARGET + b"/2", b"Idempotency-Key: k-1", body=BODY),
    "a query": request(b"POST", TARGET + b"?a=1", b"Idempotency-Key: k-1", body=BODY),
}


@pytest.mark.parametrize("is_under_way", [False, True], ids=["afterwards", "meanwhile"])
async def test_a_key_for_another_request(station: Station, *, is_under_way: bool) -> None:
    upstream, go = station.upstream, asyncio.Event()
    upstream.answers.append(hold_until(go, say(OK)))
    first = asyncio.ensure_future(station.ask(order()))
    await upstream.until_received(1)
    if not is_under_way:
        go.set()
        await first
    for other in OTHERS.values():
        answer = await station.ask(other)
        assert (answer.status, answer.reason, answer.outcome) == (422, "key_reused", "not_sent")
    go.set()
    assert (await first).outcome == "done"
    assert len(upstream.received) == 1


# What was not executed for sure may be asked for again with the same key.


async def test_what_was_not_sent_is_forgotten(station: Station) -> None:
    door = station.upstream.door
    door.shut()
    station.upstream.cut_all()
    answer = await station.ask(order())
    assert (answer.outcome, answer.reason) == ("not_sent", "upstream_unreachable")
    door.reopen()
    assert (await station.ask(order())).outcome == "done"
    assert len(station.upstream.received) == 1


# A lost connection to the gateway cannot double an order.


async def test_a_bot_that_was_gone_gets_the_reply_when_it_comes_again(station: Station) -> None:
    upstream, go = station.upstream, asyncio.Event()
    upstream.answers.append(hold_until(go, say(whole(b"the first"))))
    async with station.bot() as bot:
        await bot.send(order())
        await upstream.until_received(1)
        bot.hang_up()
    await station.until_all_hung_up()
    assert (await station.ask(order())).reason == "in_flight"
    go.set()
    await station.until(lambda: station.gateway.handler.inflight == 0)
    answer = await station.ask(order())
    assert (answer.status, answer.body, answer.outcome) == (200, b"the first", "done")
    assert len(upstream.received) == 1


async def test_a_bot_that_was_gone_while_its_large_reply_was_passed_on(station: Station) -> None:
    """Its head said 200, but whether the rest would have come nobody looked at."""
    station.upstream.answers.append(say_and_stall(whole(b"x" * 1_000_000)[:-1]))
    async with station.bot() as bot:
        await bot.send(order())
        assert b"200" in await bot.line()
        bot.hang_up()
    outcome = await station.outcomes.until(1)
    assert (outcome.has_hung_up, outcome.conclusion, outcome.broken) == (True, "unknown", None)
    again = await station.ask(order())
    assert (again.status, again.outcome, again.reason) == (502, "unknown", "upstream_broken")
    assert len(station.upstream.received) == 1


async def test_a_bot_that_hangs_up_at_any_moment(station: Station) -> None:
    """After every number of bytes of the request, and then it sends the whole once more."""
    message = order("k-0")
    for sent in range(0, len(message) + 1, 7):
        whole_one = order(f"k-{sent}")
        async with station.bot() as bot:
            await bot.send(whole_one[: sent + len(whole_one) - len(message)])
            bot.hang_up()
        await station.until_all_hung_up()
        await station.until(lambda: station.gateway.handler.inflight == 0)
        assert (await station.ask(whole_one)).outcome == "done"
    assert len(station.upstream.received) == len(range(0, len(message) + 1, 7))


async def test_many_that_ask_at_once_with_one_key(station: Station) -> None:
    answers = await asyncio.gather(*(station.ask(order()) for _ in range(20)))
    assert {answer.reason for answer in answers} <= {None, "in_flight"}
    assert {answer.outcome for answer in answers if answer.reason is None} == {"done"}
    assert len(station.upstream.received) == 1


# Without a kept reply the key is spent all the same.

LARGE = reply(b"200 OK", b"x" * 300_000)
SPENT: Mapping[str, tuple[Act, str]] = {
    "too large to keep": (say(LARGE), "done"),
    "large, and cut": (say_and_close(LARGE[:-1]), "unknown"),
}


@pytest.mark.parametrize(("act", "outcome"), SPENT.values(), ids=SPENT)
async def test_a_key_whose_reply_is_not_kept(upstream: Upstream, act: Act, outcome: str) -> None:
    upstream.answers.append(act)
    async with running_station(upstream) as station:
        await station.ask(order())
        await station.until(lambda: station.gateway.handler.inflight == 0)
        answer = await station.ask(order())
        assert (answer.status, answer.reason, answer.outcome) == (502, "upstream_broken", outcome)
    assert len(upstream.received) == 1


@pytest.mark.parametrize("act", [say_and_stall(), drip(OK[:30])], ids=["stalled", "dripping"])
async def test_a_key_whose_reply_never_came(upstream: Upstream, act: Act) -> None:
    upstream.answers.append(act)
    async with running_station(upstream, upstream={"total_timeout": 0.3}) as station:
        for _ in range(2):
            answer = await station.ask(order())
            assert (answer.status, answer.reason, answer.outcome) == (504, "upstream_timeout", "unknown")
    assert len(upstream.received) == 1


# The restart.


OVER_A_RESTART = ("done", "compressed", "a field in Latin-1 and one twice", "refused", "lost")


@pytest.mark.parametrize(("act", "outcome"), [KEPT[name] for name in OVER_A_RESTART], ids=OVER_A_RESTART)
async def test_the_first_reply_comes_again_after_a_restart(
    upstream: Upstream, tmp_path: Path, act: Act, outcome: str
) -> None:
    upstream.answers.append(act)
    journal = {"file": str(tmp_path / "journal.db")}
    async with running_station(upstream, journal=journal) as station:
        first = await station.ask(order())
    async with running_station(upstream, journal=journal) as station:
        again = await station.ask(order())
        if first.reason is None:
            assert as_told(again) == as_told(first)
        assert (again.outcome, again.text("X-Gateway-Replayed")) == (outcome, "true")
        assert (await station.ask(OTHERS["another body"])).reason == "key_reused"
    assert len(upstream.received) == 1


async def test_the_exchange_does_not_see_the_key(station: Station) -> None:
    await station.ask(order())
    assert station.upstream.received[0].head.value(b"Idempotency-Key") is None
