"""PUT /_sandbox/market: prices move, and resting orders fill, whole or in part."""

from typing import Any

import pytest

from sandbox.client import Bot, bot_at_sandbox

OPEN = "open"


async def _rest(bot: Bot, **changes: Any) -> int:
    """Place a buy of 1 BTC at 60000, which rests 6000 below the price."""
    answer = await bot.order(**({"size": "1", "price": "60000"} | changes))
    assert answer.body["status"] == OPEN, answer
    return int(answer.body["order_id"])


async def _market(bot: Bot, **change: Any) -> dict[str, Any]:
    answer = await bot.control("PUT", "market", change)
    assert answer.status == 200, answer
    return dict(answer.body)


async def _open_orders(bot: Bot) -> list[dict[str, Any]]:
    return list((await bot.get(f"/user/{bot.address}/openOrders")).body["orders"])


async def _positions(bot: Bot) -> dict[str, str]:
    answer = await bot.get(f"/user/{bot.address}/positions")
    return {one["symbol"]: one["size"] for one in answer.body["positions"]}


async def _usdc(bot: Bot) -> str:
    """Give the whole of it, that which serves as margin too."""
    state = await bot.control("PATCH", f"users/{bot.address}", {})
    return str(state.body["usdc"])


async def test_a_price_fills_the_resting_orders_that_it_reaches() -> None:
    async with bot_at_sandbox() as bot:
        reached, missed = await _rest(bot), await _rest(bot, price="59000")
        sell = await _rest(bot, side="sell", price="67000", size="0.5")
        assert await _market(bot, symbol="BTC", price="59500") == {
            "symbol": "BTC",
            "mark_price": "59500",
            "fills": [{"order_id": reached, "size": "1", "left": "0"}],
        }
        assert [one["order_id"] for one in await _open_orders(bot)] == [missed, sell]
        assert await _positions(bot) == {"BTC": "1"}
        symbols = (await bot.get("/symbols/list")).body["symbols"]
        assert {one["symbol"]: one["mark_price"] for one in symbols}["BTC"] == "59500"


async def test_new_orders_go_by_the_new_price() -> None:
    async with bot_at_sandbox() as bot:
        await _market(bot, symbol="BTC", price="60000")
        assert (await bot.order(size="1", price="60000")).body["status"] == "filled"


async def test_a_moved_price_settles_gains_and_losses_at_once() -> None:
    async with bot_at_sandbox(usdc=100_000) as bot:
        bought = await _rest(bot, size="0.5")
        await _market(bot, symbol="BTC", price="59000")
        assert await _usdc(bot) == "99500", "bought half a coin at 60000, which is worth 59000"
        await _market(bot, symbol="BTC", price="61000")
        assert await _usdc(bot) == "100500"
        await bot.post("/position/close", {"symbol": "BTC"})
        await _market(bot, symbol="BTC", price="70000")
        assert await _usdc(bot) == "100500"
        assert bought not in [one["order_id"] for one in await _open_orders(bot)]


async def test_the_price_of_a_spot_pair_moves_alone() -> None:
    async with bot_at_sandbox(usdc=10_000) as bot:
        moved = await _market(bot, symbol="ETH/USDC", price="1000")
        assert moved == {"symbol": "ETH/USDC", "mark_price": "1000", "fills": []}
        await bot.post("/spot/order", {"symbol": "ETH/USDC", "side": "sell", "size": "1"})
        assert (await bot.get(f"/spot/balance/{bot.address}")).body["balances"]["USDC"] == "11000"


async def test_an_order_is_filled_in_parts() -> None:
    async with bot_at_sandbox() as bot:
        order_id = await _rest(bot, size="2")
        later = await _rest(bot)
        part = await _market(bot, order_id=order_id, fill="0.5")
        assert part["fills"] == [{"order_id": order_id, "size": "0.5", "left": "1.5"}]
        first, second = await _open_orders(bot)
        assert (first["order_id"], first["size"], first["filled_size"]) == (order_id, "1.5", "0.5")
        assert (second["order_id"], second["size"], second["filled_size"]) == (later, "1", "0")
        assert await _positions(bot) == {"BTC": "0.5"}
        rest = await _market(bot, order_id=order_id)
        assert rest["fills"] == [{"order_id": order_id, "size": "1.5", "left": "0"}]
        assert [one["order_id"] for one in await _open_orders(bot)] == [later]
        assert await _positions(bot) == {"BTC": "2"}
        gone = await bot.signed("DELETE", f"/order/{order_id}")
        bot.check(gone, 400, "Order was never placed, already canceled, or filled")


async def test_an_order_that_is_partly_filled_holds_margin_for_what_is_left() -> None:
    """6000 USDC at leverage 10 carry a resting order of 60000, or a position of one coin at that price."""
    async with bot_at_sandbox(usdc=6600) as bot:
        order_id = await _rest(bot)
        await _market(bot, order_id=order_id, fill="0.5")
        await bot.signed("DELETE", f"/order/{order_id}")
        # 6600 and 3000 of the fill at a better price, less 3300 of margin for half a coin at 66000.
        assert (await bot.get(f"/spot/balance/{bot.address}")).body["balances"]["USDC"] == "6300"


WRONG = [
    ({"symbol": "NONE", "price": "1"}, 400, "Symbol 'NONE' is not supported"),
    ({"symbol": "GONE", "price": "1"}, 400, "Symbol 'GONE' is not supported"),
    ({"symbol": "BTC", "price": "60000.3"}, 400, "Price must be divisible by 0.5"),
    ({"symbol": "BTC", "price": "-1"}, 400, "Order has invalid price"),
    ({"order_id": 999_999}, 400, "Order was never placed, already canceled, or filled"),
    ({"order_id": 1, "fill": "0.000001"}, 400, "Order has invalid size"),
    ({"order_id": 1, "fill": "0"}, 400, "Order has invalid size"),
]


@pytest.mark.parametrize(("change", "status", "detail"), WRONG, ids=[str(row[0]) for row in WRONG])
async def test_a_move_that_cannot_be(change: dict[str, Any], status: int, detail: str) -> None:
    async with bot_at_sandbox() as bot:
        assert await _rest(bot) == 1
        bot.check(await bot.control("PUT", "market", change), status, detail)
        assert [one["size"] for one in await _open_orders(bot)] == ["1"]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"symbol": "BTC"},
        {"symbol": "BTC", "price": "1", "order_id": 1},
        {"fill": "1"},
        {"order_id": 1, "fill": "1.5"},
    ],
    ids=str,
)
async def test_a_move_that_is_none(change: dict[str, Any]) -> None:
    async with bot_at_sandbox() as bot:
        await _rest(bot)
        assert (await bot.control("PUT", "market", change)).status == 422
        assert [one["size"] for one in await _open_orders(bot)] == ["1"]
