"""spec.md, "Endpoints"."""

from sandbox.client import Bot
from sandbox.statements.resources import expires_at_is_iso, permissions_are_listed, whitelist_is_listed
from sandbox.statements.sessions import passkey_works_once
from sandbox.statements.table import Part

endpoints = Part("Endpoints")


@endpoints.states("All bodies are JSON.")
async def replies_are_json(bot: Bot) -> None:
    answers = [await bot.get("/time"), await bot.session("GET", "/api-keys"), await bot.get("/nowhere")]
    assert {answer.headers["Content-Type"] for answer in answers} == {"application/json"}


endpoints.repeats("The step-up token travels in the `X-PASSKEY-TOKEN` header.", passkey_works_once)


@endpoints.states("POST /api-keys: label is optional.")
async def create_without_label(bot: Bot) -> None:
    assert (await bot.create())["label"] == ""


@endpoints.states('POST /api-keys: permissions default to `["read"]`.')
async def create_defaults_to_read(bot: Bot) -> None:
    assert (await bot.create())["permissions"] == ["read"]


endpoints.repeats("POST /api-keys: permissions may be `read` and/or `trade`.", permissions_are_listed)


endpoints.repeats(
    "POST /api-keys: ip_whitelist takes IPs and CIDR blocks of both families.", whitelist_is_listed
)


@endpoints.states("POST /api-keys: omitting ip_whitelist gives unrestricted access.")
async def create_without_whitelist(bot: Bot) -> None:
    assert (await bot.create())["ip_whitelist"] == []


endpoints.repeats("POST /api-keys: expires_days N expires the key after N days.", expires_at_is_iso)


@endpoints.states("POST /api-keys: omitting expires_days means no expiration.")
async def create_without_expiry(bot: Bot) -> None:
    mine = bot.using(await bot.create())
    bot.system.advance(20 * 365 * 86_400)
    assert (await mine.get("/symbols/list")).status == 200


@endpoints.states("POST /api-keys: expires_days is an integer.")
async def expires_days_is_an_integer(bot: Bot) -> None:
    answer = await bot.app("POST", "/api-keys", {"expires_days": "30"})
    assert (answer.status, answer.detail[0]["loc"]) == (422, ["body", "expires_days"])


@endpoints.states("GET /api-keys replies 200 with an object whose `keys` is an array of records.")
async def list_has_keys(bot: Bot) -> None:
    answer = await bot.session("GET", "/api-keys")
    assert (answer.status, set(answer.body), type(answer.body["keys"])) == (200, {"keys"}, list)


@endpoints.states("GET /api-keys lists the session's own keys only.")
async def list_is_of_one_user(bot: Bot) -> None:
    other = await bot.other_user()
    assert await other.records() == {}


@endpoints.states("PATCH /api-keys/{api_key}: label is the new label.")
async def update_label(bot: Bot) -> None:
    answer = await bot.app("PATCH", f"/api-keys/{bot.key.api_key}", {"label": "new"})
    assert answer.body["updated_fields"] == ["label"]
    assert (await bot.records())[bot.key.api_key]["label"] == "new"


@endpoints.states("PATCH /api-keys/{api_key}: permissions is the new permissions list, in force at once.")
async def update_permissions(bot: Bot) -> None:
    answer = await bot.app("PATCH", f"/api-keys/{bot.key.api_key}", {"permissions": ["read"]})
    assert answer.body["updated_fields"] == ["permissions"]
    bot.check(await bot.order(), 403, "API key lacks 'trade' permission")


@endpoints.states("PATCH /api-keys/{api_key}: ip_whitelist is the new whitelist, in force at once.")
async def update_whitelist(bot: Bot) -> None:
    answer = await bot.app("PATCH", f"/api-keys/{bot.key.api_key}", {"ip_whitelist": ["10.0.0.1"]})
    assert answer.body["updated_fields"] == ["ip_whitelist"]
    bot.check(await bot.get("/symbols/list"), 403, "IP 127.0.0.1 not in API key whitelist")


@endpoints.states("PATCH /api-keys/{api_key}: an empty ip_whitelist removes the restriction.")
async def update_removes_whitelist(bot: Bot) -> None:
    mine = bot.using(await bot.create(ip_whitelist=["10.0.0.1"]))
    assert (await mine.get("/symbols/list")).status == 403
    await bot.app("PATCH", f"/api-keys/{mine.key.api_key}", {"ip_whitelist": []})
    assert (await mine.get("/symbols/list")).status == 200


@endpoints.states("PATCH /api-keys/{api_key}: every field is optional.")
async def update_nothing(bot: Bot) -> None:
    answer = await bot.app("PATCH", f"/api-keys/{bot.key.api_key}", {})
    assert (answer.status, answer.body["updated_fields"]) == (200, [])


@endpoints.states("PATCH /api-keys/{api_key} replies with success, api_key and updated_fields.")
async def update_reply(bot: Bot) -> None:
    change = {"label": "x", "permissions": ["trade"], "ip_whitelist": ["127.0.0.1"]}
    answer = await bot.app("PATCH", f"/api-keys/{bot.key.api_key}", change)
    assert answer.body == {
        "success": True,
        "api_key": bot.key.api_key,
        "updated_fields": ["label", "permissions", "ip_whitelist"],
    }


@endpoints.states("PATCH /api-keys/{api_key}: updated_fields names the fields changed, not the fields sent.")
async def update_lists_changes_only(bot: Bot) -> None:
    change = {"label": "ready-made", "permissions": ["read"]}
    answer = await bot.app("PATCH", f"/api-keys/{bot.key.api_key}", change)
    assert answer.body["updated_fields"] == ["permissions"]


@endpoints.states("DELETE /api-keys/{api_key} replies with success and message.")
async def revoke_reply(bot: Bot) -> None:
    answer = await bot.app("DELETE", f"/api-keys/{bot.key.api_key}")
    assert answer.body == {"success": True, "message": f"API key {bot.key.api_key} revoked"}


@endpoints.states("DELETE /api-keys/all replies with success and revoked_count.")
async def revoke_all_reply(bot: Bot) -> None:
    assert (await bot.app("DELETE", "/api-keys/all")).body == {"success": True, "revoked_count": 1}


@endpoints.states("DELETE /api-keys/all needs no body and is no key named `all`.")
async def all_is_no_key(bot: Bot) -> None:
    await bot.app("DELETE", "/api-keys/all")
    assert (await bot.app("DELETE", "/api-keys/all")).body["revoked_count"] == 0


@endpoints.states("GET /api-keys/{api_key}/audit replies with api_key, audit and count.")
async def audit_reply(bot: Bot) -> None:
    log = await bot.audit(bot.key.api_key)
    assert (set(log), log["api_key"]) == ({"api_key", "audit", "count"}, bot.key.api_key)


@endpoints.states("GET /api-keys/{api_key}/audit: count is the number of entries.")
async def audit_counts(bot: Bot) -> None:
    await bot.app("PATCH", f"/api-keys/{bot.key.api_key}", {"label": "x"})
    log = await bot.audit(bot.key.api_key)
    assert (log["count"], len(log["audit"])) == (2, 2)


async def _audit_after_updates(bot: Bot, updates: int, query: str) -> int:
    for n in range(updates):
        await bot.app("PATCH", f"/api-keys/{bot.key.api_key}", {"label": str(n)})
    return int((await bot.audit(bot.key.api_key, query))["count"])


@endpoints.states("GET /api-keys/{api_key}/audit: limit is 20 by default.")
async def audit_limit_default(bot: Bot) -> None:
    assert await _audit_after_updates(bot, 25, "") == 20


@endpoints.states("GET /api-keys/{api_key}/audit: limit is the number of entries to return.")
async def audit_limit(bot: Bot) -> None:
    assert await _audit_after_updates(bot, 5, "?limit=3") == 3


@endpoints.states("GET /api-keys/{api_key}/audit: limit is 100 at most (assumed: more is a 422).")
async def audit_limit_max(bot: Bot) -> None:
    path = f"/api-keys/{bot.key.api_key}/audit"
    answers = [await bot.session("GET", f"{path}?limit={n}") for n in (100, 101)]
    assert [answer.status for answer in answers] == [200, 422]


@endpoints.states(
    "GET /api-keys/{api_key}/audit: by option a limit above 100 counts as 100.", audit_over_max="clamp"
)
async def audit_limit_clamped(bot: Bot) -> None:
    assert await _audit_after_updates(bot, 101, "?limit=200") == 100


@endpoints.states("GET /time returns the server time, for clock sync.", skew_ms=1234)
async def time_is_the_servers(bot: Bot) -> None:
    answer = await bot.send("GET", "/v1/trade/time")
    assert answer.body == {"server_time": bot.system.wall_ms() + 1234}


@endpoints.states("/user/handshake obtains a session token.")
async def handshake_grants_a_session(bot: Bot) -> None:
    body = f'{{"user_address": "{bot.address}"}}'.encode()
    answer = await bot.send("POST", "/v1/trade/user/handshake", body)
    headers = {"Authorization": f"Bearer {answer.body['session_token']}"}
    assert (await bot.send("GET", "/v1/trade/api-keys", headers=headers)).status == 200


@endpoints.states("GET /symbols/list returns valid symbols, tick size, min notional and `maxLeverage`.")
async def symbols_are_described(bot: Bot) -> None:
    symbols = {found["symbol"]: found for found in (await bot.get("/symbols/list")).body["symbols"]}
    btc = symbols["BTC"]
    assert (btc["tick_size"], btc["min_notional"], btc["maxLeverage"]) == ("0.5", "10", 40)


@endpoints.states("GET /symbols/list does not name delisted symbols.")
async def delisted_symbols_are_gone(bot: Bot) -> None:
    symbols = (await bot.get("/symbols/list")).body["symbols"]
    assert "GONE" not in {found["symbol"] for found in symbols}


@endpoints.states("GET /spot/symbols/list returns valid spot pairs.")
async def pairs_are_listed(bot: Bot) -> None:
    pairs = (await bot.get("/spot/symbols/list")).body["symbols"]
    assert {pair["symbol"] for pair in pairs} == {"ETH/USDC", "SOL/USDC"}


@endpoints.states("GET /spot/symbols is the other spelling of it.")
async def pairs_have_two_spellings(bot: Bot) -> None:
    assert (await bot.get("/spot/symbols")).body == (await bot.get("/spot/symbols/list")).body


@endpoints.states("GET /user/{addr}/positions shows open positions.")
async def positions_are_shown(bot: Bot) -> None:
    await bot.order(side="sell", size="0.002", price="60000")
    (position,) = (await bot.get(f"/user/{bot.address}/positions")).body["positions"]
    assert (position["symbol"], position["size"]) == ("BTC", "-0.002")


@endpoints.states("GET /user/{address}/openOrders shows open orders.")
async def open_orders_are_shown(bot: Bot) -> None:
    placed = await bot.order()
    (order,) = (await bot.get(f"/user/{bot.address}/openOrders")).body["orders"]
    assert (order["order_id"], order["price"], order["size"]) == (placed.body["order_id"], "65000", "0.001")


@endpoints.states("GET /spot/balance/{address} shows the spot balance.")
async def balance_is_shown(bot: Bot) -> None:
    await bot.post("/spot/order", {"symbol": "SOL/USDC", "side": "buy", "size": "2"})
    answer = await bot.get(f"/spot/balance/{bot.address}")
    assert answer.body["balances"] == {"USDC": "999700", "ETH": "10", "SOL": "2"}


@endpoints.states("POST /order/modify replaces an order and returns a new order ID.")
async def modify_gives_a_new_id(bot: Bot) -> None:
    old = (await bot.order()).body["order_id"]
    answer = await bot.post("/order/modify", {"order_id": old, "price": "64000", "size": "0.002"})
    (order,) = (await bot.get(f"/user/{bot.address}/openOrders")).body["orders"]
    assert answer.body["order_id"] != old
    assert (order["order_id"], order["price"]) == (answer.body["order_id"], "64000")
