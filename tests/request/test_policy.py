"""A bot's policy on real sockets: what passes is what came, what does not is never sent."""

import gzip
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any

import structlog

from rig.acts import Wire, drip, say, say_and_close
from rig.backends import only
from rig.bot import Reply, request, told
from rig.station import ENVIRON, KEY, Station, running_station
from rig.upstream import Upstream
from rig.wire import reply
from sealgate.orders.halts import Scope

TOKENS = {**ENVIRON, "GRID": "token-of-grid", "FREE": "token-of-free"}
GRID, FREE = (b"Authorization: Bearer " + TOKENS[name].encode() for name in ("GRID", "FREE"))
ORDER, MODIFY = b"/v1/trade/order", b"/v1/trade/order/modify"
REFUSED = (403, "not_sent", "policy_refused")


def running(
    upstream: Upstream,
    /,
    journal: Path | None = None,
    tables: Mapping[str, Any] = MappingProxyType({}),
    **policy: Any,
) -> Any:
    bots = {"grid": {"token": "env:GRID", "policy": policy}, "free": {"token": "env:FREE"}}
    kept: dict[str, Any] = {} if journal is None else {"journal": {"file": str(journal)}}
    return running_station(upstream, TOKENS, bots=bots, **kept, **tables)


def order(
    symbol: str = "BTC", size: str = "0.1", *fields: bytes, target: bytes = ORDER, **more: Any
) -> bytes:
    body = json.dumps({"symbol": symbol, "side": "buy", "size": size, "price": "100"} | more).encode()
    return request(b"POST", target, GRID, b"Content-Type: application/json", *fields, body=body)


def rules(station: Station) -> dict[str, int]:
    (policy,) = station.gateway.status().policies
    assert (policy.bot, policy.exchange) == ("grid", "service")
    return {rule: count for rule, count in policy.refusals.items() if count}


def why(answer: Reply) -> str:
    assert told(answer) == REFUSED
    return str(answer.document()["detail"])


async def test_an_order_within_the_policy_passes_and_another_does_not(upstream: Upstream) -> None:
    async with running(upstream, symbols=["BTC"], max_size="0.5") as station:
        assert (await station.ask(order())).status == 200
        assert why(await station.ask(order("DOGE"))).startswith("policy.symbols: ")
        assert why(await station.ask(order(size="0.51"))).startswith("policy.max_size: ")
        assert [told(await station.ask(order(size="5e-1"))), len(upstream.received)] == [
            (200, "done", None),
            2,
        ]
        assert rules(station) == {"symbols": 1, "max_size": 1}
        assert station.outcomes.all[1].reason == "policy_refused"


async def test_a_bot_without_a_policy_may_order_what_it_likes(upstream: Upstream) -> None:
    async with running(upstream, symbols=["BTC"]) as station:
        answer = await station.ask(request(b"POST", ORDER, FREE, body=b"not even JSON"))
        assert told(answer) == (200, "done", None)


async def test_orders_are_counted_and_resends_and_unsent_ones_are_not(upstream: Upstream) -> None:
    async with running(upstream, max_orders_per_minute=3) as station:
        limited = reply(b"429 Too Many Requests", b"{}", b"Retry-After: 0.01")
        upstream.answers.append(say(limited))
        assert (await station.ask(order())).attempts == 2
        await station.gateway.halt(Scope())
        for _ in range(5):
            assert (await station.ask(order())).reason == "halted"
        await station.gateway.resume(Scope())
        again = order("BTC", "0.1", b"Idempotency-Key: k1")
        first, second = await station.ask(again), await station.ask(again)
        assert (first.status, second.text("X-Gateway-Replayed")) == (200, "true")
        assert (await station.ask(order())).status == 200
        assert "3 of 3 orders" in why(await station.ask(order()))


async def test_an_order_in_doubt_counts(upstream: Upstream) -> None:
    upstream.answers.append(say_and_close(b""))
    async with running(upstream, max_orders_per_day=1) as station:
        assert (await station.ask(order())).outcome == "unknown"
        assert why(await station.ask(order())).startswith("policy.max_orders_per_day: ")


async def test_a_restart_with_a_journal_and_a_reload_forget_nothing(
    upstream: Upstream, tmp_path: Path
) -> None:
    file = tmp_path / "journal.db"
    async with running(upstream, file, max_orders_per_day=3) as station:
        await station.ask(order())
        await station.ask(order())
        assert await station.gateway.reloader.reload("the test") == ()
    async with running(upstream, file, max_orders_per_day=3) as station:
        assert (await station.ask(order())).status == 200
        assert "3 of 3 orders" in why(await station.ask(order()))
        await station.gateway.reloader.reload("the test")
        assert "3 of 3 orders" in why(await station.ask(order()))
        assert rules(station) == {"max_orders_per_day": 2}


async def test_a_start_with_this_machines_clock_days_ahead_forgets_no_order(
    upstream: Upstream, tmp_path: Path
) -> None:
    """By the exchange's clock they are of a moment ago, and what is sent now is remembered by it, too."""
    file, two_days_ms = tmp_path / "journal.db", 2 * 86_400_000
    async with running(upstream, file, max_orders_per_day=2) as station:
        assert (await station.ask(order())).status == 200
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE orders SET sent_ms = sent_ms - ?", (two_days_ms,))
        database.execute("UPDATE counted SET at_s = at_s - ?", (two_days_ms // 1000,))
    upstream.skew_ms = -two_days_ms
    async with running(upstream, file, max_orders_per_day=2) as station:
        assert (await station.ask(order())).status == 200
        assert "2 of 2 orders" in why(await station.ask(order()))
    async with running(upstream, file, max_orders_per_day=2) as station:
        assert "2 of 2 orders" in why(await station.ask(order()))


async def test_an_order_waits_for_no_better_clock_than_its_own_key_needs(
    upstream: Upstream, tmp_path: Path
) -> None:
    """Another key's window is so short that no reading will ever be good enough for it."""

    async def slowly(wire: Wire) -> None:
        await drip(upstream.time_reply(), 0.001)(wire)

    file = tmp_path / "journal.db"
    async with running(upstream, file, max_orders_per_day=2) as station:
        assert (await station.ask(order())).status == 200
    upstream.time = slowly
    bots = {"grid": {"token": "env:GRID", "key": "main", "policy": {"max_orders_per_day": 2}}}
    keys = {"main": KEY, "strict": {**KEY, "api_key": "ak-public-2", "recv_window_ms": 1}}
    journal = {"file": str(file)}
    async with running_station(upstream, TOKENS, bots=bots, keys=keys, journal=journal) as station:
        assert only(station.gateway.generation).exchange.clock.not_ready is not None
        assert told(await station.ask(order("BTC", "0.1", b"X-Gateway-Deadline-Ms: 2000"))) == (
            200,
            "done",
            None,
        )
        assert "2 of 2 orders" in why(await station.ask(order()))


async def test_a_market_order_is_measured_by_the_last_price_that_the_exchange_said(
    upstream: Upstream,
) -> None:
    symbols = request(b"GET", b"/v1/trade/symbols/list", FREE)
    prices = reply(b"200 OK", b'{"symbols": [{"symbol": "BTC", "mark_price": "50000"}]}')
    async with running(upstream, max_notional="10000") as station:
        assert "no price of this symbol" in why(await station.ask(order(price=None)))
        upstream.answers.append(say(reply(b"400 Bad Request", prices.partition(b"\r\n\r\n")[2])))
        await station.ask(symbols)
        assert "no price of this symbol" in why(await station.ask(order(price=None)))
        upstream.answers.append(say(prices))
        await station.ask(symbols)
        assert (await station.ask(order(price=None))).status == 200
        assert "above 10000" in why(await station.ask(order(size="0.3", price=None)))
        assert (await station.ask(order(size="0.3", price="30000"))).status == 200


async def test_a_price_is_read_from_a_packed_reply_and_no_bot_gets_one_that_is_not_readable(
    upstream: Upstream,
) -> None:
    """The bot that reads prices need not have a policy, and most libraries ask for a coding."""
    packed = gzip.compress(b'{"symbols": [{"symbol": "BTC", "mark_price": "50000"}]}')
    async with running(upstream, max_notional="10000") as station:
        upstream.answers.append(say(reply(b"200 OK", packed, b"Content-Encoding: gzip")))
        asked = request(b"GET", b"/v1/trade/symbols/list", FREE, b"Accept-Encoding: gzip, deflate, br, zstd")
        assert (await station.ask(asked)).body == packed
        assert upstream.received[0].head.value(b"Accept-Encoding") == b"gzip, deflate"
        assert (await station.ask(order(price=None))).status == 200
        assert "above 10000" in why(await station.ask(order(size="0.3", price=None)))


async def test_a_price_list_that_grew_too_long_is_no_price_and_the_log_says_so_once(
    upstream: Upstream,
) -> None:
    asked = request(b"GET", b"/v1/trade/symbols/list?all=1", FREE)
    one = '{"symbol": "BTC", "mark_price": "50000"}'
    short, long = (b'{"symbols": [%b]}' % ",".join([one] * many).encode() for many in (1, 80_000))
    with structlog.testing.capture_logs() as lines:
        async with running(upstream, max_notional="10000") as station:
            upstream.answers.append(say(reply(b"200 OK", short)))
            await station.ask(asked)
            assert (await station.ask(order(price=None))).status == 200
            for _ in range(3):
                upstream.answers.append(say(reply(b"200 OK", long)))
                assert (await station.ask(asked)).body == long
                assert "could not read the last reply" in why(await station.ask(order(price=None)))
    (told_once,) = (line for line in lines if line["event"] == "prices_not_read")
    assert told_once["path"] == "/v1/trade/symbols/list"


async def test_a_price_from_a_reply_that_is_kept_does_not_replace_a_later_one(upstream: Upstream) -> None:
    """Two reads of the same prices that are not alike, the first of which answers a third one."""
    first, second = (request(b"GET", b"/v1/trade/symbols/list" + query, FREE) for query in (b"", b"?fresh=1"))
    told_price = b'{"symbols": [{"symbol": "BTC", "mark_price": "%d"}]}'
    kept = {"routes": [{"match": "GET /v1/trade/symbols/list", "share_s": 60.0}]}
    async with running(upstream, tables=kept, max_notional="10000") as station:
        upstream.answers.extend(
            [say(reply(b"200 OK", told_price % 50_000)), say(reply(b"200 OK", told_price % 90_000))]
        )
        await station.ask(first)
        await station.ask(second)
        assert (await station.ask(first)).text("X-Gateway-Shared") is not None
        assert "above 10000" in why(await station.ask(order(size="0.15", price=None)))


async def test_a_policy_that_observes_counts_and_refuses_nothing(upstream: Upstream) -> None:
    async with running(upstream, symbols=["BTC"], observe=True) as station:
        for asked in (order("DOGE"), order(target=b"/v1/trade/leverage"), order()):
            assert (await station.ask(asked)).status == 200
        assert rules(station) == {"symbols": 1, "route": 1}
        assert "nothing is refused" in station.gateway.status().policies[0].words
        first = await station.outcomes.until(1)
        assert (first.reason, first.conclusion) == (None, "done")
        assert first.detail == (
            "Not refused, because policy.observe is set: "
            "policy.symbols: the order's symbol is not on this list."
        )


async def test_the_start_says_what_a_bot_may_and_which_routes_that_closes(upstream: Upstream) -> None:
    with structlog.testing.capture_logs() as lines:
        async with running(upstream, symbols=["BTC"], reduce_only=True):
            pass
    (may,) = (line for line in lines if line["event"] == "policy")
    assert may["log_level"] == "error"
    assert may["policy"] == (
        "grid may send reduce-only orders in BTC; no order can pass: the file of service does not say what "
        "reduce_only and symbols could be judged by"
    )
    (closed,) = (line for line in lines if line["event"] == "policy_closes_routes")
    assert closed["policy"] == (
        "closes POST /v1/trade/order (reduce_only), POST /v1/trade/order/modify (symbols), "
        "all trading routes that the venue's file does not name"
    )
