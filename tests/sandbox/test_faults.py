"""Faults on purpose, seen through real sockets, and what the journal says about them."""

import asyncio
from typing import Any

import aiohttp
import pytest

from sandbox.client import Bot, ManualHost, bot_at_sandbox
from sealgate.sandbox.faults import FaultPlan
from sealgate.sandbox.models.control import Fault, Faults
from sealgate.sandbox.system import System


async def _strike(bot: Bot, **fault: Any) -> None:
    answer = await bot.control("PUT", "faults", {"faults": [fault]})
    assert answer.status == 200, answer


async def _open_orders(bot: Bot) -> int:
    await bot.control("DELETE", "faults")
    return len((await bot.get(f"/user/{bot.address}/openOrders")).body["orders"])


BROKEN = [
    ("reset_before", aiohttp.ClientOSError, 0, "fault", False),
    ("reset_after", aiohttp.ClientOSError, 200, "ok", True),
    ("cut", aiohttp.ClientPayloadError, 200, "ok", True),
    ("stall", aiohttp.ClientPayloadError, 200, "ok", True),
]


@pytest.mark.parametrize(
    ("kind", "error", "status", "verdict", "executed"), BROKEN, ids=[row[0] for row in BROKEN]
)
async def test_broken_replies(
    kind: str, error: type[Exception], status: int, verdict: str, *, executed: bool
) -> None:
    async with bot_at_sandbox() as bot:
        await _strike(bot, kind=kind)
        with pytest.raises(error):
            await bot.order()
        (line,) = await bot.journal()
        assert (line["fault"], line["status"], line["verdict"], line["executed"]) == (
            kind,
            status,
            verdict,
            executed,
        )
        assert await _open_orders(bot) == int(executed)


@pytest.mark.parametrize("executed", [False, True], ids=["before execution", "after execution"])
async def test_a_status_instead_of_the_reply(*, executed: bool) -> None:
    async with bot_at_sandbox() as bot:
        await _strike(bot, kind="status", status=502, executed=executed)
        bot.check(await bot.order(), 502, "Injected fault")
        (line,) = await bot.journal()
        assert (line["status"], line["executed"]) == (502, executed)
        assert await _open_orders(bot) == int(executed)


async def test_a_delay_comes_after_execution() -> None:
    async with bot_at_sandbox() as bot:
        await _strike(bot, kind="delay", delay_s=2.5)
        assert (await bot.order()).status == 200
        assert bot.system.slept == [2.5]


@pytest.mark.parametrize(("delay_s", "verdict"), [(4.9, "ok"), (5.1, "timestamp_outside")])
async def test_a_late_request_is_judged_when_it_arrives(delay_s: float, verdict: str) -> None:
    async with bot_at_sandbox() as bot:
        await _strike(bot, kind="late", delay_s=delay_s)
        await bot.order()
        (line,) = await bot.journal()
        assert (line["fault"], line["verdict"], line["executed"]) == ("late", verdict, verdict == "ok")


async def test_a_delayed_reply_holds_its_place_under_a_concurrency_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asleep, awake = asyncio.Event(), asyncio.Event()

    async def sleep(_: ManualHost, __: float) -> None:
        asleep.set()
        await awake.wait()

    monkeypatch.setattr(ManualHost, "sleep", sleep)
    async with bot_at_sandbox() as bot:
        await bot.control("PUT", "limit", {"kind": "concurrency", "requests": 1})
        await _strike(bot, kind="delay", match="POST *")
        held = asyncio.create_task(bot.order())
        await asleep.wait()
        assert (await bot.get("/symbols/list")).status == 429
        awake.set()
        assert (await held).status == 200
        assert (await bot.get("/symbols/list")).status == 200


async def test_a_stall_lasts_as_long_as_it_says() -> None:
    async with bot_at_sandbox() as bot:
        await _strike(bot, kind="stall", delay_s=7)
        with pytest.raises(aiohttp.ClientPayloadError):
            await bot.order()
        assert bot.system.slept == [7]


async def test_a_match_spares_other_requests() -> None:
    async with bot_at_sandbox() as bot:
        await _strike(bot, kind="status", match="POST /v1/trade/order")
        assert [(await bot.order()).status, (await bot.get("/symbols/list")).status] == [503, 200]


async def test_control_calls_are_spared() -> None:
    async with bot_at_sandbox() as bot:
        await _strike(bot, kind="reset_before")
        assert (await bot.control("GET", "journal")).body == {"entries": []}


async def test_delete_ends_all_faults() -> None:
    async with bot_at_sandbox() as bot:
        await _strike(bot, kind="reset_before")
        assert (await bot.control("DELETE", "faults")).body == {"seed": None, "faults": []}
        assert (await bot.order()).status == 200


MATCHES = [
    ("", True),
    ("*", True),
    ("GET *", False),
    ("DELETE /v1/trade/order/{order_id}", True),
    ("DELETE /v1/trade/order/{id}", True),
    ("DELETE /v1/trade/order/7", True),
    ("DELETE /v1/trade/order/8", False),
    ("* /v1/trade/*", True),
    ("/v1/trade/order/7", False),
]


@pytest.mark.parametrize(("pattern", "strikes"), MATCHES, ids=[row[0] or "empty" for row in MATCHES])
def test_match(pattern: str, *, strikes: bool) -> None:
    plan = FaultPlan(Faults(faults=[Fault(kind="cut", match=pattern)]), System().dice(1))
    found = plan.strike("DELETE", "/v1/trade/order/{order_id}", "/v1/trade/order/7")
    assert (found is not None) == strikes


def _course(seed: int) -> list[str | None]:
    faults = [Fault(kind="cut", probability=0.3), Fault(kind="delay", probability=0.5)]
    plan = FaultPlan(Faults(faults=faults), System().dice(seed))
    struck = (plan.strike("GET", "/x", "/x") for _ in range(200))
    return [fault.kind if fault else None for fault in struck]


def test_a_seed_repeats_the_whole_course() -> None:
    assert _course(7) == _course(7)
    assert _course(7) != _course(8)
    assert set(_course(7)) == {"cut", "delay", None}


async def test_a_fault_strikes_the_next_requests_and_no_more() -> None:
    async with bot_at_sandbox() as bot:
        await _strike(bot, kind="status", match="POST /v1/trade/order", next=2)
        statuses = [(await bot.order()).status]
        statuses += [(await bot.get("/symbols/list")).status]
        statuses += [(await bot.order()).status for _ in range(2)]
        assert statuses == [503, 200, 503, 200]


async def test_faults_that_are_used_up_make_room_for_the_ones_behind_them() -> None:
    async with bot_at_sandbox() as bot:
        faults = [{"kind": "status", "status": status, "next": 1} for status in (500, 502)]
        await bot.control("PUT", "faults", {"faults": faults})
        assert [(await bot.order()).status for _ in range(3)] == [500, 502, 200]
        await bot.control("PUT", "faults", {"faults": faults})
        assert [(await bot.order()).status for _ in range(3)] == [500, 502, 200], "they count anew"


async def test_a_fault_strikes_none_or_some() -> None:
    async with bot_at_sandbox() as bot:
        none = {"faults": [{"kind": "status", "next": 0}]}
        assert (await bot.control("PUT", "faults", none)).status == 422
