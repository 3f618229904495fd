"""spec.md, "What the service does"."""

from sandbox.client import Bot
from sandbox.statements.table import Part

service = Part("What the service does")


@service.states("An API key has exactly two permission scopes: `read` and `trade`.")
async def both_scopes_are_taken(bot: Bot) -> None:
    created = await bot.create(permissions=["read", "trade"])
    assert created["permissions"] == ["read", "trade"]


@service.states("There is no withdrawal scope.")
async def withdraw_is_no_scope(bot: Bot) -> None:
    answer = await bot.app("POST", "/api-keys", {"permissions": ["withdraw"]})
    bot.check(answer, 400, "Invalid permission: 'withdraw'. Use 'read' or 'trade'")


@service.states("An API key cannot deposit.")
async def no_key_deposits(bot: Bot) -> None:
    bot.check(await bot.post("/deposit", {"amount": "100"}), 401, "Missing API key auth headers")


@service.states("An API key cannot withdraw.")
async def no_key_withdraws(bot: Bot) -> None:
    body = {"amount": "1", "nonce": 0, "signature": "0x"}
    bot.check(await bot.post("/withdraw", body), 401, "Missing API key auth headers")


@service.states("A compromised key can read account data and trade, as by POST /order.")
async def a_key_reads_and_trades(bot: Bot) -> None:
    read = await bot.get(f"/user/{bot.address}/positions")
    traded = await bot.order()
    assert (read.status, traded.status) == (200, 200)


@service.states("Creating is app-only: a plain REST client with a key cannot.")
async def no_key_creates(bot: Bot) -> None:
    bot.check(await bot.post("/api-keys", {}), 401, "Missing API key auth headers")


@service.states("Updating is app-only: a plain REST client with a key cannot.")
async def no_key_updates(bot: Bot) -> None:
    answer = await bot.signed("PATCH", f"/api-keys/{bot.key.api_key}", {})
    bot.check(answer, 401, "Missing API key auth headers")


@service.states("Revoking one key is app-only: a plain REST client with a key cannot.")
async def no_key_revokes(bot: Bot) -> None:
    answer = await bot.signed("DELETE", f"/api-keys/{bot.key.api_key}")
    bot.check(answer, 401, "Missing API key auth headers")


@service.states("Revoking all keys is app-only: a plain REST client with a key cannot.")
async def no_key_revokes_all(bot: Bot) -> None:
    bot.check(await bot.signed("DELETE", "/api-keys/all"), 401, "Missing API key auth headers")


@service.states("Creating needs a passkey step-up on top of the session.")
async def creating_needs_a_passkey(bot: Bot) -> None:
    bot.check(await bot.session("POST", "/api-keys", {}), 403, "Passkey step-up failed")


@service.states("Updating needs a passkey step-up on top of the session.")
async def updating_needs_a_passkey(bot: Bot) -> None:
    answer = await bot.session("PATCH", f"/api-keys/{bot.key.api_key}", {"label": "x"})
    bot.check(answer, 403, "Passkey step-up failed")


@service.states("Revoking one key needs a passkey step-up on top of the session.")
async def revoking_needs_a_passkey(bot: Bot) -> None:
    answer = await bot.session("DELETE", f"/api-keys/{bot.key.api_key}")
    bot.check(answer, 403, "Passkey step-up failed")


@service.states("Revoking all keys needs a passkey step-up on top of the session.")
async def revoking_all_needs_a_passkey(bot: Bot) -> None:
    bot.check(await bot.session("DELETE", "/api-keys/all"), 403, "Passkey step-up failed")


@service.states("Listing keys needs only a session.")
async def listing_needs_only_a_session(bot: Bot) -> None:
    answer = await bot.session("GET", "/api-keys")
    assert (answer.status, len(answer.body["keys"])) == (200, 1)


@service.states("Reading a key's audit log needs only a session.")
async def audit_needs_only_a_session(bot: Bot) -> None:
    answer = await bot.session("GET", f"/api-keys/{bot.key.api_key}/audit")
    assert (answer.status, answer.body["count"]) == (200, 1)


@service.states("Prerequisite for creating a key: onboarding completed.")
async def onboarding_comes_first(bot: Bot) -> None:
    user = await bot.other_user(onboarded=False, traded=True)
    bot.check(await user.app("POST", "/api-keys", {}), 403, "Onboarding not completed")


@service.states("A key with `trade` permission cannot be issued to an account that never traded.")
async def a_trade_comes_before_trade_keys(bot: Bot) -> None:
    user = await bot.other_user(onboarded=True, traded=False)
    answer = await user.app("POST", "/api-keys", {"permissions": ["trade"]})
    bot.check(answer, 403, "Trading handshake not completed")


@service.states("The trade prerequisite binds keys with `trade` only.")
async def a_read_key_needs_no_trade(bot: Bot) -> None:
    user = await bot.other_user(onboarded=True, traded=False)
    assert (await user.create())["permissions"] == ["read"]


@service.states("The prerequisites are met in the app: once met, a key can be issued.")
async def a_met_prerequisite_counts(bot: Bot) -> None:
    user = await bot.other_user(onboarded=False, traded=False)
    await bot.control("PATCH", f"users/{user.address}", {"onboarded": True, "traded": True})
    assert (await user.create(permissions=["trade"]))["permissions"] == ["trade"]
