"""spec.md, "Session authentication" and "Passkey step-up"."""

from sandbox.client import PREFIX, Bot
from sandbox.statements.service import listing_needs_only_a_session
from sandbox.statements.table import Part

session = Part("Session authentication")
passkey = Part("Passkey step-up")


session.repeats("The header is `Authorization: Bearer <SESSION_TOKEN>`.", listing_needs_only_a_session)


@session.states("A missing session token gives 401.")
async def no_session_no_entry(bot: Bot) -> None:
    bot.check(await bot.send("GET", f"{PREFIX}/api-keys"), 401, "Missing API key auth headers")


@session.states("Another scheme than Bearer is no session token.")
async def basic_is_no_session(bot: Bot) -> None:
    headers = {"Authorization": f"Basic {bot.session_token}"}
    answer = await bot.send("GET", f"{PREFIX}/api-keys", headers=headers)
    bot.check(answer, 401, "Missing API key auth headers")


@session.states("An invalid session token gives 401.")
async def wrong_session_no_entry(bot: Bot) -> None:
    answer = await bot.send("GET", f"{PREFIX}/api-keys", headers={"Authorization": "Bearer wrong"})
    bot.check(answer, 401, "Invalid or expired session token")


@session.states("An expired session token gives 401.", session_ttl_s=60.0)
async def late_session_no_entry(bot: Bot) -> None:
    bot.system.advance(59)
    assert (await bot.session("GET", "/api-keys")).status == 200
    bot.system.advance(1)
    bot.check(await bot.session("GET", "/api-keys"), 401, "Invalid or expired session token")


@session.states("A session token does not open paths that want a signature.")
async def session_is_no_signature(bot: Bot) -> None:
    answer = await bot.session("GET", f"/user/{bot.address}/positions")
    bot.check(answer, 401, "Missing API key auth headers")


@passkey.states("A failed step-up gives 403.")
async def wrong_passkey_no_entry(bot: Bot) -> None:
    answer = await bot.session("POST", "/api-keys", {}, passkey="wrong")
    bot.check(answer, 403, "Passkey step-up failed")


@passkey.states("It is needed in addition to the session: alone it opens nothing.")
async def passkey_alone_no_entry(bot: Bot) -> None:
    headers = {"X-PASSKEY-TOKEN": await bot.passkey()}
    answer = await bot.send("POST", f"{PREFIX}/api-keys", b"{}", headers)
    bot.check(answer, 401, "Missing API key auth headers")


@passkey.states("A passkey token works once (assumed).")
async def passkey_works_once(bot: Bot) -> None:
    token = await bot.passkey()
    answers = [await bot.session("POST", "/api-keys", {}, passkey=token) for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 403]


@passkey.states("A passkey token is of one user (assumed).")
async def passkey_is_personal(bot: Bot) -> None:
    other = await bot.other_user()
    answer = await other.session("POST", "/api-keys", {}, passkey=await bot.passkey())
    bot.check(answer, 403, "Passkey step-up failed")


@passkey.states("A passkey token expires (assumed).", passkey_ttl_s=30.0)
async def passkey_expires(bot: Bot) -> None:
    token = await bot.passkey()
    bot.system.advance(30)
    answer = await bot.session("POST", "/api-keys", {}, passkey=token)
    bot.check(answer, 403, "Passkey step-up failed")
