"""The control calls: limit and clock at run time, users, the journal."""

import hashlib
import json
from pathlib import Path

import pytest

from sandbox.client import BUY, Bot, ManualHost, bot_at_sandbox
from sealgate.sandbox.clock import ServerClock


async def _statuses(bot: Bot, count: int) -> list[int]:
    return [(await bot.get("/symbols/list")).status for _ in range(count)]


async def test_the_limit_changes_at_run_time_and_goes_back() -> None:
    async with bot_at_sandbox(limit_kind="fixed", limit_requests=3) as bot:
        put = await bot.control("PUT", "limit", {"kind": "sliding_log", "requests": 1, "window_s": 60})
        assert (put.body["kind"], put.body["requests"]) == ("sliding_log", 1)
        assert await _statuses(bot, 2) == [200, 429]
        assert (await bot.control("DELETE", "limit")).body["requests"] == 3
        assert await _statuses(bot, 4) == [200, 200, 200, 429]


async def test_costs_count_at_run_time() -> None:
    async with bot_at_sandbox() as bot:
        limit = {"kind": "fixed", "requests": 5, "costs": {"POST /v1/trade/order": 2}}
        await bot.control("PUT", "limit", limit)
        assert [(await bot.order()).status for _ in range(3)] == [200, 200, 429]
        assert await _statuses(bot, 2) == [200, 429]


async def test_time_and_strangers_do_not_spend_a_keys_limit() -> None:
    async with bot_at_sandbox(limit_kind="fixed", limit_requests=2) as bot:
        ghost = bot.using({"api_key": "ghost", "api_secret": "x"})
        assert await _statuses(ghost, 3) == [401, 401, 429]
        assert await _statuses(bot, 3) == [200, 200, 429]


@pytest.mark.parametrize(
    ("by", "expected"), [("ip", [200, 200, 429]), ("all", [200, 200, 429])], ids=["ip", "all"]
)
async def test_keys_share_a_limit_by_option(by: str, expected: list[int]) -> None:
    async with bot_at_sandbox(limit_by=by) as bot:
        second = bot.using(await bot.create())
        await bot.control("PUT", "limit", {"kind": "fixed", "requests": 2})
        assert [*await _statuses(bot, 1), *await _statuses(second, 2)] == expected


async def test_the_clock_steps_drifts_and_goes_back() -> None:
    async with bot_at_sandbox(skew_ms=10) as bot:

        async def ahead_ms() -> int:
            server_time = (await bot.send("GET", "/v1/trade/time")).body["server_time"]
            return int(server_time) - bot.system.wall_ms()

        seen = [await ahead_ms()]
        await bot.control("PUT", "clock", {"skew_ms": -500, "drift_ppm": 1000})
        seen.append(await ahead_ms())
        bot.system.advance(100)
        seen.append(await ahead_ms())
        await bot.control("DELETE", "clock")
        seen.append(await ahead_ms())
        assert seen == [10, -500, -400, 10]


async def test_the_date_header_is_of_the_same_clock() -> None:
    async with bot_at_sandbox(skew_ms=3_600_000) as bot:
        answers = [await bot.get("/time"), await bot.get("/nowhere")]
        assert {answer.headers["Date"] for answer in answers} == {"Wed, 18 May 2033 04:33:20 GMT"}


def test_drift_starts_from_where_it_was_set() -> None:
    clock = ServerClock(skew_ms=50, drift_ppm=-100, since_s=1000)
    assert [clock.moment(0, at_s).server_ms for at_s in (1000, 1010, 2000)] == [50, 49, -50]


async def test_the_journal_shows_what_was_received() -> None:
    async with bot_at_sandbox(skew_ms=40) as bot:
        body = json.dumps(BUY).encode()
        headers = bot.signing_headers("POST", "/order", body, at_ms=bot.system.wall_ms() + 40)
        placed = await bot.send("POST", "/v1/trade/order?x=%2C", body, headers)
        (line,) = await bot.journal()
        assert headers.items() <= line.pop("headers").items()
        assert line == {
            "n": 1,
            "at_ms": bot.system.wall_ms(),
            "server_ms": bot.system.wall_ms() + 40,
            "method": "POST",
            "target": "/v1/trade/order?x=%2C",
            "body_sha256": hashlib.sha256(body).hexdigest(),
            "client_ip": "127.0.0.1",
            "status": 200,
            "verdict": "ok",
            "fault": None,
            "executed": True,
            "order_id": placed.body["order_id"],
        }


async def test_the_journal_holds_refusals_and_strange_paths_and_no_control_calls() -> None:
    async with bot_at_sandbox(limit_kind="fixed", limit_requests=2) as bot:
        await bot.send("GET", "/elsewhere")
        await bot.send("GET", "/v1/trade/symbols/list")
        await bot.send("GET", "/v1/trade/time")
        lines = [(line["verdict"], line["executed"]) for line in await bot.journal()]
        assert lines == [("not_found", False), ("headers_missing", False), ("rate_limited", False)]


async def test_the_journal_goes_on_since() -> None:
    async with bot_at_sandbox() as bot:
        await _statuses(bot, 5)
        answers = [await bot.control("GET", f"journal?since={n}") for n in (0, 3, 5, 99)]
        assert [[line["n"] for line in answer.body["entries"]] for answer in answers] == [
            [1, 2, 3, 4, 5],
            [4, 5],
            [],
            [],
        ]


async def test_order_ids_are_never_given_twice() -> None:
    async with bot_at_sandbox() as bot:
        first = [(await bot.order()).body["order_id"] for _ in range(3)]
        await bot.signed("DELETE", f"/order/{first[-1]}")
        assert (await bot.order()).body["order_id"] > max(first)


async def test_unknown_users_and_keys_are_404() -> None:
    async with bot_at_sandbox() as bot:
        bot.check(await bot.control("PATCH", "users/0x0", {}), 404, "User not found")
        bot.check(await bot.control("PATCH", "keys/x", {"recv_window_ms": 1}), 404, "API key not found")
        body = b'{"user_address": "0x0"}'
        bot.check(await bot.send("POST", "/v1/trade/user/handshake", body), 404, "User not found")


async def _reset(bot: Bot) -> int:
    answer = await bot.control("POST", "reset")
    assert answer.status == 200, answer
    return int(answer.body["since"])


async def _disturb(bot: Bot) -> None:
    """Change whatever a test can change."""
    await bot.order()
    await bot.order(size="0.5", price="66000")
    await bot.post("/leverage", {"symbol": "SOL", "leverage": 3})
    await bot.control("PUT", "market", {"symbol": "BTC", "price": "70000"})
    await bot.control("PATCH", f"users/{bot.address}", {"traded": False, "transferred": True, "usdc": 5})
    await bot.create(label="another")
    await bot.control("PATCH", f"keys/{bot.key.api_key}", {"recv_window_ms": 1})
    await bot.app("DELETE", "/api-keys/all")
    await bot.control("PUT", "key_system", {"available": False})
    await bot.control("PUT", "clock", {"skew_ms": 3_600_000})
    await bot.control("PUT", "limit", {"kind": "fixed", "requests": 1, "window_s": 1000})
    await bot.control("PUT", "faults", {"faults": [{"kind": "status"}]})


async def _state(bot: Bot) -> dict[str, object]:
    """Show whatever a test can change, without changing it."""
    user = await bot.control("PATCH", f"users/{bot.address}", {})
    paths = ("/time", "/symbols/list", f"/user/{bot.address}/openOrders", f"/user/{bot.address}/positions")
    shown = {path: (await bot.get(path)).body for path in (*paths, f"/spot/balance/{bot.address}")}
    records = {name: {**one, "last_used_at": ""} for name, one in (await bot.records()).items()}
    return {**shown, "user": user.body, "keys": records, "audit": await bot.audit(bot.key.api_key)}


async def test_a_reset_puts_all_back_to_the_start() -> None:
    """The credentials that were printed are good again, whatever was done to them."""
    async with bot_at_sandbox() as bot:
        before = await _state(bot)
        await _disturb(bot)
        await _reset(bot)
        assert await _state(bot) == before
        assert (await bot.order()).status == 200


async def test_a_reset_forgets_users_and_empties_the_journal() -> None:
    async with bot_at_sandbox() as bot:
        other = await bot.other_user()
        await _statuses(bot, 3)
        since = await _reset(bot)
        assert await bot.journal() == []
        await _statuses(bot, 1)
        assert [line["n"] for line in await bot.journal()] == [since + 1]
        gone = await bot.control("PATCH", f"users/{other.address}", {})
        assert (gone.status, (await other.session("GET", "/api-keys")).status) == (404, 401)


async def test_order_ids_go_on_after_a_reset() -> None:
    async with bot_at_sandbox() as bot:
        before = (await bot.order()).body["order_id"]
        await _reset(bot)
        assert (await bot.order()).body["order_id"] > before


async def test_a_reset_holds_in_the_file_too(tmp_path: Path) -> None:
    """What the file had at the start stays: users, keys and sessions. Accounts are as new."""
    host, db = ManualHost(), str(tmp_path / "s.db")
    orders: list[list[object]] = []
    for is_reset in (False, True, False):
        async with bot_at_sandbox(db=db, system=host) as bot:
            orders.append((await bot.get(f"/user/{bot.address}/openOrders")).body["orders"])
            await bot.create(label="another")
            await bot.order()
            if is_reset:
                await _reset(bot)
            labels = [record["label"] for record in (await bot.records()).values()]
    assert [len(found) for found in orders] == [0, 1, 0]
    assert labels == ["ready-made", "another", "another"]
