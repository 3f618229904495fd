"""What is remembered of orders at two exchanges: halts, used keys, doubts and policies, each at its own."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rig.bot import Reply, request
from rig.two_exchanges import GRID, Two, two_exchanges
from rig.upstream import hold_until, say, say_and_close
from rig.verdicts import judged
from rig.wire import OK, reply
from sealgate.orders.halts import Scope

if TYPE_CHECKING:
    from sealgate.config import Config

SPOT, PERP = b"spot", b"perp"
NO = say(reply(b"400 Bad Request", b'{"detail": "no"}'))


def order(exchange: bytes, *fields: bytes, size: str = "1", method: bytes = b"POST", **more: Any) -> bytes:
    body = json.dumps({"symbol": "BTC", "side": "buy", "size": size, "price": "100"} | more).encode()
    target = b"/%b/v1/trade/order" % exchange
    return request(method, target, GRID, b"Content-Type: application/json", *fields, body=body)


def key(name: str) -> bytes:
    return f"Idempotency-Key: {name}".encode()


async def reasons(two: Two, *messages: bytes) -> list[str | None]:
    return [(await two.ask(message)).reason for message in messages]


async def test_a_halt_at_one_exchange_stops_no_order_at_the_other() -> None:
    async with two_exchanges() as two:
        await two.gateway.halt(Scope(exchange="spot"))
        assert await reasons(two, order(SPOT), order(PERP)) == ["halted", None]
        refused = await two.ask(order(SPOT))
        assert refused.outcome == "not_sent"
        assert "(all bots at spot)" in refused.document()["detail"]
        assert "`sealgate resume --exchange spot`" in refused.document()["detail"]
        reads = request(b"GET", b"/spot/v1/trade/order", GRID)
        assert await reasons(two, reads) == [None]
        await two.gateway.resume(Scope(exchange="perp"))
        assert await reasons(two, order(SPOT)) == ["halted"]
        await two.gateway.resume(Scope(exchange="spot"))
        assert await reasons(two, order(SPOT)) == [None]


async def test_a_halt_without_an_exchange_is_for_all() -> None:
    async with two_exchanges() as two:
        await two.gateway.halt(Scope("grid"))
        assert await reasons(two, order(SPOT), order(PERP)) == ["halted", "halted"]


async def test_a_halt_refuses_what_waits_for_its_exchange_and_nothing_else() -> None:
    go = asyncio.Event()
    async with two_exchanges(upstream={"max_connections": 1}) as two:
        for upstream in (two.spot, two.perp):
            upstream.answers.append(hold_until(go, say(OK)))
        first = [asyncio.ensure_future(two.ask(order(name))) for name in (SPOT, PERP)]
        await asyncio.gather(two.spot.until_received(1), two.perp.until_received(1))
        waiting = [asyncio.ensure_future(two.ask(order(name))) for name in (SPOT, PERP)]
        await two.until(lambda: two.gateway.handler.inflight == 4)
        assert (await two.gateway.halt(Scope(exchange="spot"))).refused == 1
        assert (await waiting[0]).reason == "halted"
        go.set()
        assert [(await one).status for one in (*first, waiting[1])] == [200, 200, 200]


async def test_a_halt_at_one_exchange_survives_a_restart(tmp_path: Path) -> None:
    journal = {"file": str(tmp_path / "journal.db")}
    async with two_exchanges(journal=journal) as two:
        await two.gateway.halt(Scope("grid", exchange="perp"))
    async with two_exchanges(journal=journal) as two:
        assert await reasons(two, order(SPOT), order(PERP)) == [None, "halted"]


async def test_a_journal_that_moves_to_another_machine_knows_the_same(tmp_path: Path) -> None:
    """As docs/operating.md has it: all files that begin with its name, copied after the gateway has ended."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir(0o700)
    new.mkdir(0o700)
    async with two_exchanges(journal={"file": str(old / "journal.db")}) as two:
        assert await reasons(two, order(SPOT, key("k-1"))) == [None]
        await two.gateway.halt(Scope(exchange="perp"))
    for file in old.glob("journal.db*"):
        shutil.copy2(file, new)
    async with two_exchanges(journal={"file": str(new / "journal.db")}) as two:
        assert await reasons(two, order(SPOT, key("k-1")), order(PERP)) == [None, "halted"]
        assert two.spot.received == []


async def test_a_resume_uses_the_keys_of_its_exchange_again() -> None:
    async with two_exchanges() as two:
        now = two.gateway.system.now()
        for backend in two.gateway.generation.backends.values():
            for live_key in backend.exchange.live_keys.values():
                live_key.breaker.conclude(judged(401, b'{"detail":"Invalid API key"}'), now)
        assert await reasons(two, order(SPOT), order(PERP)) == ["key_disabled", "key_disabled"]
        resumed = await two.gateway.resume(Scope(exchange="spot"))
        assert [one.words for one in resumed.keys] == ["key main at spot"]
        assert await reasons(two, order(SPOT), order(PERP)) == [None, "key_disabled"]


@pytest.mark.parametrize("restarts", [False, True])
async def test_the_same_key_at_two_exchanges_is_two_orders(tmp_path: Path, *, restarts: bool) -> None:
    journal = {"file": str(tmp_path / "journal.db")}

    async def place(two: Two) -> list[Reply]:
        return [await two.ask(order(name, key("k-1"))) for name in (SPOT, PERP)]

    async with two_exchanges(journal=journal) as two:
        two.spot.otherwise, two.perp.otherwise = (say(reply(b"200 OK", name)) for name in (SPOT, PERP))
        first = await place(two)
        again = first if restarts else await place(two)
        received = len(two.spot.received), len(two.perp.received)
    if restarts:
        async with two_exchanges(journal=journal) as two:
            again = await place(two)
            assert (two.spot.received, two.perp.received) == ([], [])
    assert received == (1, 1)
    assert [(one.body, one.text("X-Gateway-Replayed")) for one in first] == [(SPOT, None), (PERP, None)]
    assert [one.body for one in again] == [SPOT, PERP]
    assert [one.text("X-Gateway-Replayed") for one in again] == ["true", "true"]


async def test_orders_in_doubt_without_a_journal_are_counted_by_exchange() -> None:
    async with two_exchanges() as two:
        two.perp.otherwise = say_and_close(b"")
        for name in (SPOT, PERP, PERP):
            await two.ask(order(name))
        assert two.gateway.books.status.by_exchange == {"perp": 2}
        assert two.gateway.books.status.in_doubt == 2


def bots(policy: dict[str, Any] | None = None, **policies: dict[str, Any]) -> dict[str, Any]:
    grid = {"token": "env:GRID", "keys": ["main", "swap"], "policy": policy or {}, "policies": policies}
    return {"grid": grid, "cash": {"token": "env:SPOT_ONLY", "key": "main", "policy": {"max_size": "1"}}}


def refused_by(answer: Reply) -> str:
    """Return the setting that refused an order, "" where it passed."""
    return "" if answer.reason is None else str(answer.document()["detail"]).partition(": ")[0]


async def place(two: Two, *messages: bytes) -> list[str]:
    return [refused_by(await two.ask(message)) for message in messages]


async def test_a_policy_counts_at_each_exchange_by_itself_over_restarts_and_reloads(tmp_path: Path) -> None:
    tables: dict[str, Any] = {
        "bots": bots({"max_orders_per_day": 2}),
        "journal": {"file": str(tmp_path / "journal.db")},
    }
    full = "policy.max_orders_per_day"
    async with two_exchanges(**tables) as two:
        assert await place(two, order(SPOT), order(SPOT), order(SPOT), order(PERP)) == ["", "", full, ""]
        assert await two.gateway.reloader.reload("the test") == ()
        assert await place(two, order(SPOT)) == [full]
    async with two_exchanges(**tables) as two:
        assert await place(two, order(PERP), order(SPOT), order(PERP)) == ["", full, full]
        counts = {(one.bot, one.exchange): one.refusals for one in two.gateway.status().policies}
        assert {
            place: found["max_orders_per_day"] for place, found in counts.items() if place[0] == "grid"
        } == {
            ("grid", "spot"): 1,
            ("grid", "perp"): 1,
        }


async def test_a_policy_guards_only_exchanges_where_its_bot_has_a_key() -> None:
    async with two_exchanges(bots=bots({"max_size": "1"})) as two:
        guarded = {(one.exchange, one.bot) for one in two.gateway.status().policies}
        assert guarded == {("spot", "grid"), ("perp", "grid"), ("spot", "cash")}


async def test_a_policy_of_one_exchange_holds_there_in_addition() -> None:
    own: dict[str, Any] = {
        "spot": {"symbols": ["BTC"], "max_size": "5"},
        "perp": {"max_size": "1", "observe": True},
    }
    async with two_exchanges(bots=bots({"max_size": "3"}, **own)) as two:
        assert await place(two, order(SPOT, size="4"), order(PERP, size="4")) == ["policy.max_size"] * 2
        assert await place(two, order(SPOT, symbol="ETH"), order(PERP, symbol="ETH")) == [
            "policies.spot.symbols",
            "",
        ]
        assert await place(two, order(SPOT, size="3"), order(PERP, size="3")) == ["", ""]
        outcome = await two.outcomes.until(6)
        assert (outcome.exchange, outcome.reason) == ("perp", None)
        assert (outcome.detail or "").startswith(
            "Not refused, because policies.perp.observe is set: policies.perp.max_size"
        )


async def test_what_a_bots_orders_of_a_day_are_worth_is_bounded_at_each_exchange(tmp_path: Path) -> None:
    """A buy of 1 is worth 100, as it says itself."""
    policy = {"max_notional_per_day": "350"}
    tables: dict[str, Any] = {"bots": bots(policy), "journal": {"file": str(tmp_path / "journal.db")}}
    full = "policy.max_notional_per_day"
    async with two_exchanges(**tables) as two:
        two.spot.answers.extend([say(OK), NO, say_and_close(b"")])
        # Done, refused by the exchange, unknown: 200 are spent.
        assert [(await two.ask(order(SPOT))).outcome for _ in range(3)] == ["done", "refused", "unknown"]
        assert await place(two, order(SPOT, size="2"), order(PERP, size="3")) == [full, ""]
        await two.gateway.halt(Scope())
        assert (await two.ask(order(SPOT))).reason == "halted"
        await two.gateway.resume(Scope())
        two.spot.answers.append(say(reply(b"429 Too Many Requests", b"{}", b"Retry-After: 0.01")))
        assert (await two.ask(order(SPOT))).attempts == 2
        assert await place(two, order(SPOT, size="0.51")) == [full]
    async with two_exchanges(**tables) as two:
        assert await place(two, order(SPOT, size="0.51"), order(PERP, size="0.51")) == [full, full]
        assert await place(two, order(SPOT, size="0.5"), order(PERP, size="0.5")) == ["", ""]
        await two.gateway.reloader.reload("the test")
        assert await place(two, order(SPOT, size="0.01"), order(PERP, size="0.01")) == [full, full]


async def test_orders_that_wait_are_worth_something() -> None:
    go = asyncio.Event()
    async with two_exchanges(bots=bots({"max_notional_per_day": "100"})) as two:
        two.spot.answers.append(hold_until(go, NO))
        waits = asyncio.ensure_future(two.ask(order(SPOT)))
        await two.spot.until_received(1)
        assert await place(two, order(SPOT, size="0.1")) == ["policy.max_notional_per_day"]
        go.set()
        assert (await waits).outcome == "refused"
        assert await place(two, order(SPOT)) == [""]


async def test_prices_are_those_of_the_exchange_itself() -> None:
    symbols = request(b"GET", b"/spot/v1/trade/symbols/list", GRID)
    prices = b'{"symbols": [{"symbol": "BTC", "mark_price": "50000"}]}'
    async with two_exchanges(bots=bots({"max_notional": "10000"})) as two:
        for upstream in (two.spot, two.perp):  # the gateway's own reads learn nothing
            upstream.otherwise = say(reply(b"200 OK", b"{}"))
        two.spot.answers.append(say(reply(b"200 OK", prices)))
        await two.ask(symbols)
        market: dict[str, Any] = {"price": None, "size": "0.1"}
        assert await place(two, order(SPOT, **market), order(PERP, **market)) == ["", "policy.max_notional"]


async def test_a_reload_that_takes_an_exchange_away_and_back_forgets_nothing(tmp_path: Path) -> None:
    tables: dict[str, Any] = {
        "bots": bots({"max_orders_per_day": 1}),
        "journal": {"file": str(tmp_path / "journal.db")},
    }
    wanted: list[Config] = []
    async with two_exchanges(load=lambda: wanted[-1], **tables) as two:
        whole = two.gateway.config
        alone = whole.with_tables(
            exchanges={"spot": whole.exchanges["spot"]},
            keys={"main": whole.keys["main"]},
            bots={"grid": whole.bots["grid"].model_copy(update={"keys": ("main",)})},
        )
        two.perp.answers.append(say_and_close(b""))
        first = await two.ask(order(PERP, key("k-1")))
        assert first.outcome == "unknown"
        await two.gateway.halt(Scope(exchange="perp"))
        wanted.append(alone)
        await two.gateway.reloader.reload("the test")
        await two.until(lambda: two.gateway.books.status.in_doubt == 1)
        journal = two.gateway.status().journal
        assert ([doubt.exchange for doubt in journal.doubts], journal.by_exchange) == (["perp"], {"perp": 1})
        wanted.append(whole)
        await two.gateway.reloader.reload("the test")
        assert [halt.exchange for halt in two.gateway.status().halts] == ["perp"]
        assert await place(two, order(PERP), order(SPOT)) == ["policy.max_orders_per_day", ""]
        again = await two.ask(order(PERP, key("k-1")))
        assert (again.outcome, again.text("X-Gateway-Replayed")) == ("unknown", "true")
        assert again.text("X-Gateway-Fence-Ms") == first.text("X-Gateway-Fence-Ms")
        assert two.perp.receipts(b"/v1/trade/order") == 1
