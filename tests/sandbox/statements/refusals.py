"""spec.md, "Errors": key management, authentication, rate limiting, general."""

import json
from typing import Any

from sandbox.client import PREFIX, Bot
from sandbox.statements.endpoints import update_whitelist
from sandbox.statements.service import revoking_all_needs_a_passkey
from sandbox.statements.sessions import late_session_no_entry, no_session_no_entry, wrong_session_no_entry
from sandbox.statements.signing import five_seconds_whatever_the_window, key_must_exist, prefix_is_not_signed
from sandbox.statements.table import Part

refusals = Part("Errors: key management, authentication, rate limiting, general")


@refusals.states("The human-readable message is in the `detail` field, with a `timestamp` field.")
async def errors_have_detail_and_timestamp(bot: Bot) -> None:
    answer = await bot.order(price="0")
    assert answer.body == {"detail": "Order has invalid price", "timestamp": "2033-05-18T03:33:20.000Z"}


@refusals.states("For 422, `detail` is an array of field-level errors.")
async def validation_errors_are_an_array(bot: Bot) -> None:
    answer = await bot.post("/order", {"symbol": 7, "side": "hold", "size": "1", "price": "1"})
    assert answer.status == 422
    assert [found["loc"] for found in answer.detail] == [["body", "symbol"], ["body", "side"]]


@refusals.states("Key management 400: invalid permission value.")
async def invalid_permission(bot: Bot) -> None:
    answer = await bot.app("PATCH", f"/api-keys/{bot.key.api_key}", {"permissions": ["read", "Trade"]})
    bot.check(answer, 400, "Invalid permission: 'Trade'. Use 'read' or 'trade'")


@refusals.states("Key management 400: invalid IP or CIDR.")
async def invalid_whitelist(bot: Bot) -> None:
    for block in ("10.0.0.256", "10.0.0.0/33", "localhost", "", "10.0.0.1/8", "::g"):
        answer = await bot.app("POST", "/api-keys", {"ip_whitelist": [block]})
        bot.check(answer, 400, f"Invalid IP or CIDR: {block!r}")


@refusals.states("Key management 400: maximum key limit reached.")
async def key_limit(bot: Bot) -> None:
    for _ in range(9):
        await bot.create()
    bot.check(await bot.app("POST", "/api-keys", {}), 400, "Maximum key limit reached (10 per user)")


refusals.repeats("Key management 401: missing session token.", no_session_no_entry)


refusals.repeats("Key management 401: expired session token.", late_session_no_entry)


refusals.repeats("Key management 403: passkey step-up failed.", revoking_all_needs_a_passkey)


@refusals.states("Key management 403: trading handshake not completed (for `trade`), on update too.")
async def update_without_handshake(bot: Bot) -> None:
    user = await bot.other_user(traded=False)
    created = await user.create()
    answer = await user.app("PATCH", f"/api-keys/{created['api_key']}", {"permissions": ["trade"]})
    bot.check(answer, 403, "Trading handshake not completed")


@refusals.states("Key management 503: API key system not available.")
async def key_system_down(bot: Bot) -> None:
    await bot.control("PUT", "key_system", {"available": False})
    answers = [await bot.app("POST", "/api-keys", {}), await bot.session("GET", "/api-keys")]
    for answer in answers:
        bot.check(answer, 503, "API key system not available")
    await bot.control("PUT", "key_system", {"available": True})
    assert (await bot.session("GET", "/api-keys")).status == 200


@refusals.states("Authentication 401: Missing API key auth headers, where a signing header is absent.")
async def signing_headers_missing(bot: Bot) -> None:
    bot.check(await bot.send("GET", f"{PREFIX}/symbols/list"), 401, "Missing API key auth headers")


@refusals.states(
    "Authentication 401: Missing API key auth headers, where no Bearer token is on a session path."
)
async def bearer_missing(bot: Bot) -> None:
    bot.check(await bot.get("/api-keys"), 401, "Missing API key auth headers")


refusals.repeats("Authentication 401: Invalid API key.", key_must_exist)


@refusals.states("Authentication 401: Invalid HMAC signature.")
async def invalid_signature(bot: Bot) -> None:
    forger = bot.using({"api_key": bot.key.api_key, "api_secret": "x"})
    bot.check(await forger.order(), 401, "Invalid HMAC signature")


@refusals.states(
    "Authentication 401: Timestamp outside recv_window, with the window and the server time.", skew_ms=250
)
async def timestamp_message(bot: Bot) -> None:
    answer = await bot.get("/symbols/list", at_ms=bot.system.wall_ms() - 6000)
    server_ms = bot.system.wall_ms() + 250
    assert answer.detail == f"Timestamp outside recv_window (5000ms). Server time: {server_ms}"


@refusals.states("Authentication 401: a timestamp that is no number is outside the window.")
async def timestamp_is_a_number(bot: Bot) -> None:
    for timestamp in ("now", "-5", "1e13", "٣", "9" * 40):
        headers = bot.headers_for(timestamp, b"") | {"X-SERVICE-SIGNATURE": "x"}
        answer = await bot.send("GET", f"{PREFIX}/symbols/list", headers=headers)
        assert answer.detail.startswith("Timestamp outside recv_window (5000ms)")


refusals.repeats("Authentication 401: Invalid or expired session token.", wrong_session_no_entry)


@refusals.states("Authentication 403: Address mismatch.")
async def address_mismatch(bot: Bot) -> None:
    bot.check(await bot.get("/spot/balance/0x0"), 403, "Address mismatch")


@refusals.states("Authentication 403: API key lacks 'read' permission.")
async def lacks_read(bot: Bot) -> None:
    mine = bot.using(await bot.create(permissions=["trade"]))
    answer = await mine.get(f"/user/{bot.address}/openOrders")
    bot.check(answer, 403, "API key lacks 'read' permission")


@refusals.states("Authentication 403: API key lacks 'trade' permission.")
async def lacks_trade(bot: Bot) -> None:
    mine = bot.using(await bot.create())
    answer = await mine.signed("DELETE", "/order/1")
    bot.check(answer, 403, "API key lacks 'trade' permission")


refusals.repeats("Authentication 403: IP {client_ip} not in API key whitelist.", update_whitelist)


refusals.repeats("Invalid signature: the signed path includes the /v1/trade prefix.", prefix_is_not_signed)


@refusals.states("Invalid signature: the signed timestamp is in seconds while the header's is not.")
async def digest_with_seconds(bot: Bot) -> None:
    now_ms = bot.system.wall_ms()
    headers = bot.headers_for(str(now_ms), f"{now_ms // 1000}GET/symbols/list".encode())
    answer = await bot.send("GET", f"{PREFIX}/symbols/list", headers=headers)
    bot.check(answer, 401, "Invalid HMAC signature")


refusals.repeats(
    "Invalid timestamp: the client's clock is more than 5 seconds off.", five_seconds_whatever_the_window
)


@refusals.states("Rate limiting 429: Rate limit exceeded.", limit_kind="fixed", limit_requests=1)
async def rate_limited(bot: Bot) -> None:
    await bot.get("/symbols/list")
    bot.check(await bot.get("/symbols/list"), 429, "Rate limit exceeded")


async def _handshakes(bot: Bot, count: int) -> list[Any]:
    body = json.dumps({"user_address": bot.address}).encode()
    return [await bot.send("POST", f"{PREFIX}/user/handshake", body) for _ in range(count)]


@refusals.states("Rate limiting 429: Handshake rate limit.", handshake_requests=2)
async def handshake_limited(bot: Bot) -> None:
    answers = await _handshakes(bot, 3)
    assert [answer.status for answer in answers] == [200, 200, 429]
    bot.check(answers[-1], 429, "Handshake rate limit")


@refusals.states("General 422: the body failed schema validation; see the `detail` array.")
async def validation(bot: Bot) -> None:
    answer = await bot.post("/order", {})
    assert answer.status == 422
    assert [found["loc"][1] for found in answer.detail] == ["symbol", "side", "size", "price"]
    assert {frozenset(found) for found in answer.detail} == {frozenset({"loc", "msg", "type"})}


@refusals.states("General 500: Internal server error.")
async def internal(bot: Bot) -> None:
    await bot.control("PUT", "faults", {"faults": [{"kind": "status", "status": 500}]})
    bot.check(await bot.get("/symbols/list"), 500, "Internal server error")
