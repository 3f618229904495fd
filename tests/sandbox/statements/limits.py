"""spec.md, "Limits" and "Versioning"."""

import json

from sandbox.client import PREFIX, Bot
from sandbox.statements.refusals import key_limit
from sandbox.statements.signing import prefix_is_not_signed
from sandbox.statements.table import Part
from sealgate.sandbox.wallet import wallet_signature

limits = Part("Limits")
versioning = Part("Versioning")


limits.repeats("10 API keys per user: the tenth is created, the eleventh is not.", key_limit)


@limits.states("The limit counts keys of one user.")
async def ten_keys_each(bot: Bot) -> None:
    for _ in range(9):
        await bot.create()
    other = await bot.other_user()
    assert (await other.app("POST", "/api-keys", {})).status == 200


@limits.states("A revoked key frees its place (assumed).")
async def revoked_keys_free_places(bot: Bot) -> None:
    for _ in range(9):
        await bot.create()
    await bot.app("DELETE", f"/api-keys/{bot.key.api_key}")
    assert (await bot.app("POST", "/api-keys", {})).status == 200


@limits.states("By option revoked keys keep their places.", revoked_use_slots=True)
async def revoked_keys_keep_places(bot: Bot) -> None:
    for _ in range(9):
        await bot.create()
    await bot.app("DELETE", "/api-keys/all")
    assert (await bot.app("POST", "/api-keys", {})).status == 400


@limits.states("Minimum order notional: $10 passes.")
async def ten_dollars(bot: Bot) -> None:
    assert (await bot.order(symbol="SOL", size="0.1", price="100")).status == 200


@limits.states("Minimum order notional: less than $10 does not.")
async def nine_dollars_99(bot: Bot) -> None:
    answer = await bot.order(symbol="SOL", size="0.1", price="99.99")
    bot.check(answer, 400, "Order must have minimum value of $10")


@limits.states("Minimum deposit: $5 passes.")
async def five_dollars(bot: Bot) -> None:
    answer = await bot.app("POST", "/deposit", {"amount": "5"})
    assert (answer.status, answer.body["usdc"]) == (200, "1000005")


@limits.states("A withdrawal of what is there passes.")
async def withdraw_all(bot: Bot) -> None:
    signature = wallet_signature(bot.address, "1000000", 0)
    body = {"amount": "1000000", "nonce": 0, "signature": signature}
    assert (await bot.app("POST", "/withdraw", body)).body["usdc"] == "0"


@limits.states(
    "Handshake retry wait: 10 to 15 seconds after a 429, and then it passes.", handshake_requests=1
)
async def handshake_wait(bot: Bot) -> None:
    body = json.dumps({"user_address": bot.address}).encode()
    path = f"{PREFIX}/user/handshake"
    await bot.send("POST", path, body)
    refused = await bot.send("POST", path, body)
    wait_s = int(refused.headers["Retry-After"])
    assert 10 <= wait_s <= 15
    bot.system.advance(9.9)
    assert (await bot.send("POST", path, body)).status == 429
    bot.system.advance(wait_s - 9.9)
    assert (await bot.send("POST", path, body)).status == 200


@limits.states(
    "Rate limit wait: the duration in `Retry-After`.",
    limit_kind="fixed",
    limit_requests=2,
    limit_window_s=60.0,
)
async def rate_limit_wait(bot: Bot) -> None:
    statuses = [(await bot.get("/symbols/list")).status for _ in range(2)]
    refused = await bot.get("/symbols/list")
    wait_s = int(refused.headers["Retry-After"])
    bot.system.advance(wait_s - 1)
    statuses.append((await bot.get("/symbols/list")).status)
    bot.system.advance(1)
    statuses.append((await bot.get("/symbols/list")).status)
    assert statuses == [200, 200, 429, 200]


@versioning.states("Paths carry the version segment `/v1/trade`: without it there is nothing.")
async def no_path_without_version(bot: Bot) -> None:
    for target in ("/time", "/v2/trade/time", "/v1/time", "/V1/trade/time"):
        bot.check(await bot.send("GET", target), 404, "Not found")


versioning.repeats("The segment is excluded from the path in the signed message.", prefix_is_not_signed)
