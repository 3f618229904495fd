"""spec.md, "Errors": orders, positions, leverage, deposit and withdrawal, spot."""

from typing import Any

from sandbox.client import Bot
from sandbox.statements.limits import nine_dollars_99
from sandbox.statements.table import Part
from sealgate.sandbox.wallet import wallet_signature

executions = Part("Errors: orders, positions, leverage, deposit and withdrawal, spot")

GONE = "Order was never placed, already canceled, or filled"


@executions.states("Orders 400: Price must be divisible by {tick}.")
async def off_tick(bot: Bot) -> None:
    bot.check(await bot.order(price="65000.3"), 400, "Price must be divisible by 0.5")


executions.repeats("Orders 400: Order must have minimum value of $10.", nine_dollars_99)


@executions.states("Orders 400: Order has invalid size, where it has more decimals than the symbol.")
async def invalid_sizes(bot: Bot) -> None:
    for size in ("0.0010001", "0", "-1", "NaN", "1e-19", 10**60):
        bot.check(await bot.order(size=size), 400, "Order has invalid size")


@executions.states("Orders 400: Order has invalid price, where it is zero, negative or malformed.")
async def invalid_prices(bot: Bot) -> None:
    for price in (
        "0",
        "-1",
        "",
        "abc",
        "1,000",
        "NaN",
        "Infinity",
        "0x10",
        "1e-30",
        "1e999999",
        -3,
        0.0,
        1e300,
    ):
        bot.check(await bot.order(price=price), 400, "Order has invalid price")


@executions.states("Orders 400: Symbol 'XYZ' is not supported, where it is not listed.")
async def symbol_unlisted(bot: Bot) -> None:
    bot.check(await bot.order(symbol="XYZ"), 400, "Symbol 'XYZ' is not supported")


@executions.states("Orders 400: Symbol 'XYZ' is not supported, where it is delisted.")
async def symbol_delisted(bot: Bot) -> None:
    bot.check(await bot.order(symbol="GONE"), 400, "Symbol 'GONE' is not supported")


@executions.states("Orders 400: Trading is halted.")
async def symbol_halted(bot: Bot) -> None:
    bot.check(await bot.order(symbol="FROZEN", price="20", size="1"), 400, "Trading is halted")


@executions.states("Orders 400: Insufficient margin to place order.")
async def margin_short_to_place(bot: Bot) -> None:
    answer = await bot.order(size="200")
    bot.check(answer, 400, "Insufficient margin to place order")


@executions.states("Orders 400: Insufficient margin, when an order is modified; the old one stays.")
async def margin_short(bot: Bot) -> None:
    order_id = (await bot.order()).body["order_id"]
    answer = await bot.post("/order/modify", {"order_id": order_id, "price": "65000", "size": "200"})
    bot.check(answer, 400, "Insufficient margin")
    (order,) = (await bot.get(f"/user/{bot.address}/openOrders")).body["orders"]
    assert order["order_id"] == order_id


@executions.states("Orders 400: a stale order ID, replaced by /order/modify, cannot be canceled.")
async def stale_after_modify(bot: Bot) -> None:
    old = (await bot.order()).body["order_id"]
    new = await bot.post("/order/modify", {"order_id": old, "price": "64000", "size": "0.001"})
    bot.check(await bot.post("/order/cancel", {"order_id": old}), 400, GONE)
    assert (await bot.post("/order/cancel", {"order_id": new.body["order_id"]})).status == 200


@executions.states("Orders 400: Order was never placed, so POST /order/cancel is refused.")
async def never_placed(bot: Bot) -> None:
    bot.check(await bot.signed("DELETE", "/order/424242"), 400, GONE)


@executions.states("Orders 400: an order already canceled cannot be canceled again.")
async def already_canceled(bot: Bot) -> None:
    order_id = (await bot.order()).body["order_id"]
    await bot.signed("DELETE", f"/order/{order_id}")
    bot.check(await bot.signed("DELETE", f"/order/{order_id}"), 400, GONE)


@executions.states("Orders 400: an order that was filled cannot be canceled.")
async def already_filled(bot: Bot) -> None:
    answer = await bot.order(price="66000")
    assert answer.body["status"] == "filled"
    bot.check(await bot.post("/order/cancel", {"order_id": answer.body["order_id"]}), 400, GONE)


async def _deployer_order(bot: Bot, symbol: str) -> Any:
    return await bot.order(symbol=symbol, price="1000", size="1")


@executions.states("Orders 409 NEEDS_TRANSFER: deployer markets `xyz:`, `cash:` and `vntl:`.")
async def needs_transfer(bot: Bot) -> None:
    for symbol in ("xyz:GOLD", "cash:EUR", "vntl:SPACE"):
        bot.check(await _deployer_order(bot, symbol), 409, "NEEDS_TRANSFER")


@executions.states("Orders 449 NEEDS_TRANSFER, by option.", needs_transfer_status=449)
async def needs_transfer_449(bot: Bot) -> None:
    bot.check(await _deployer_order(bot, "xyz:GOLD"), 449, "NEEDS_TRANSFER")


@executions.states("The transfer is needed once, before the first trade.")
async def transferred_once(bot: Bot) -> None:
    await bot.control("PATCH", f"users/{bot.address}", {"transferred": True})
    answers = [await _deployer_order(bot, "xyz:GOLD") for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 200]


@executions.states("Positions 404: No open position found.")
async def no_position(bot: Bot) -> None:
    bot.check(await bot.post("/position/close", {"symbol": "BTC"}), 404, "No open position found")


@executions.states("Positions 400: Size exceeds position.")
async def size_exceeds(bot: Bot) -> None:
    await bot.order(price="66000")
    answer = await bot.post("/position/close", {"symbol": "BTC", "size": "0.002"})
    bot.check(answer, 400, "Size exceeds position")


@executions.states("Positions: omit size for a full close.")
async def full_close(bot: Bot) -> None:
    await bot.order(price="66000")
    answer = await bot.post("/position/close", {"symbol": "BTC"})
    assert (answer.body["closed_size"], answer.body["left_size"]) == ("0.001", "0")
    assert (await bot.get(f"/user/{bot.address}/positions")).body == {"positions": []}


@executions.states("Leverage 400: Leverage exceeds maximum, above the symbol's maxLeverage.")
async def leverage_exceeds(bot: Bot) -> None:
    assert (await bot.post("/leverage", {"symbol": "BTC", "leverage": 40})).status == 200
    answer = await bot.post("/leverage", {"symbol": "BTC", "leverage": 41})
    bot.check(answer, 400, "Leverage exceeds maximum")


@executions.states("Leverage 400: Cross margin is not allowed, by option.", cross_on_isolated="reject")
async def cross_refused(bot: Bot) -> None:
    body = {"symbol": "MEME", "leverage": 2, "is_cross": True}
    bot.check(await bot.post("/leverage", body), 400, "Cross margin is not allowed")


@executions.states("Leverage: the backend corrects cross margin on an isolated-only symbol automatically.")
async def cross_corrected(bot: Bot) -> None:
    answer = await bot.post("/leverage", {"symbol": "MEME", "leverage": 2, "is_cross": True})
    assert answer.body == {"symbol": "MEME", "leverage": 2, "is_cross": False}


@executions.states("Leverage: the client may send `is_cross` false.", cross_on_isolated="reject")
async def isolated_passes(bot: Bot) -> None:
    body = {"symbol": "MEME", "leverage": 2, "is_cross": False}
    assert (await bot.post("/leverage", body)).status == 200


@executions.states("Deposit 400: Below minimum deposit.")
async def deposit_small(bot: Bot) -> None:
    bot.check(await bot.app("POST", "/deposit", {"amount": "4.99"}), 400, "Below minimum deposit")


async def _withdraw(bot: Bot, amount: str, nonce: int, signature: str) -> Any:
    return await bot.app("POST", "/withdraw", {"amount": amount, "nonce": nonce, "signature": signature})


@executions.states("Withdrawal 400: Insufficient balance for withdrawal.")
async def balance_short(bot: Bot) -> None:
    signature = wallet_signature(bot.address, "1000001", 0)
    answer = await _withdraw(bot, "1000001", 0, signature)
    bot.check(answer, 400, "Insufficient balance for withdrawal")


@executions.states("Withdrawal 400: Invalid withdrawal signature, where the signature is wrong.")
async def withdrawal_forged(bot: Bot) -> None:
    bot.check(await _withdraw(bot, "1", 0, "0x00"), 400, "Invalid withdrawal signature")


@executions.states("Withdrawal 400: Invalid withdrawal signature, where the nonce does not match.")
async def withdrawal_replayed(bot: Bot) -> None:
    signature = wallet_signature(bot.address, "1", 0)
    assert (await _withdraw(bot, "1", 0, signature)).body == {"usdc": "999999", "next_nonce": 1}
    bot.check(await _withdraw(bot, "1", 0, signature), 400, "Invalid withdrawal signature")


@executions.states("Spot 400: Spot symbol not found.")
async def spot_unknown(bot: Bot) -> None:
    answer = await bot.post("/spot/order", {"symbol": "BTC", "side": "buy", "size": "1"})
    bot.check(answer, 400, "Spot symbol not found")


@executions.states("Spot 400: Insufficient spot balance, where there are not enough tokens for a sell.")
async def spot_short(bot: Bot) -> None:
    answer = await bot.post("/spot/order", {"symbol": "ETH/USDC", "side": "sell", "size": "10.0001"})
    bot.check(answer, 400, "Insufficient spot balance")
