"""spec.md, "Resources and their fields" and "States and transitions"."""

import re

from sandbox.client import Bot
from sandbox.statements.signing import key_must_not_be_revoked
from sandbox.statements.table import Part

resources = Part("Resources and their fields")
states = Part("States and transitions")

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@resources.states("A key record has exactly the eight fields stated.")
async def record_fields(bot: Bot) -> None:
    record = (await bot.records())[bot.key.api_key]
    assert set(record) == {
        "api_key",
        "label",
        "permissions",
        "ip_whitelist",
        "created_at",
        "expires_at",
        "last_used_at",
        "is_active",
    }


@resources.states("api_key is used in paths and in the `X-SERVICE-APIKEY` header.")
async def api_key_names_the_key(bot: Bot) -> None:
    mine = bot.using(await bot.create(label="second"))
    assert (await mine.get("/symbols/list")).status == 200
    assert (await bot.audit(mine.key.api_key))["api_key"] == mine.key.api_key


@resources.states("label is a string: a descriptive label.")
async def label_is_kept(bot: Bot) -> None:
    created = await bot.create(label="grid ✓")
    assert (await bot.records())[created["api_key"]]["label"] == "grid ✓"


@resources.states("permissions is an array of strings, each `read` or `trade`.")
async def permissions_are_listed(bot: Bot) -> None:
    for wanted in (["read"], ["trade"], ["read", "trade"]):
        created = await bot.create(permissions=wanted)
        assert created["permissions"] == wanted
        assert (await bot.records())[created["api_key"]]["permissions"] == wanted


@resources.states("ip_whitelist lists the allowed IP addresses or CIDR blocks.")
async def whitelist_is_listed(bot: Bot) -> None:
    blocks = ["10.0.0.1", "192.168.0.0/16", "::1", "2001:db8::/32"]
    created = await bot.create(ip_whitelist=blocks)
    assert created["ip_whitelist"] == blocks
    assert (await bot.records())[created["api_key"]]["ip_whitelist"] == blocks


@resources.states("An empty ip_whitelist means unrestricted.", client_ip_header="X-Test-Ip")
async def empty_whitelist_is_unrestricted(bot: Bot) -> None:
    mine = bot.using(await bot.create(ip_whitelist=[]))
    assert (await mine.get("/symbols/list", headers={"X-Test-Ip": "203.0.113.9"})).status == 200


@resources.states("An absent ip_whitelist means unrestricted.", client_ip_header="X-Test-Ip")
async def absent_whitelist_is_unrestricted(bot: Bot) -> None:
    mine = bot.using(await bot.create())
    assert (await mine.get("/symbols/list", headers={"X-Test-Ip": "2001:db8::1"})).status == 200


@resources.states("created_at is an ISO 8601 UTC timestamp.")
async def created_at_is_iso(bot: Bot) -> None:
    record = (await bot.records())[bot.key.api_key]
    assert record["created_at"] == "2033-05-18T03:33:20.000Z"


@resources.states("expires_at is an ISO 8601 UTC timestamp.")
async def expires_at_is_iso(bot: Bot) -> None:
    created = await bot.create(expires_days=30)
    record = (await bot.records())[created["api_key"]]
    assert created["expires_at"] == record["expires_at"] == "2033-06-17T03:33:20.000Z"


@resources.states("last_used_at is the ISO 8601 UTC timestamp of last use.")
async def last_used_at_follows_use(bot: Bot) -> None:
    bot.system.advance(1)
    await bot.get("/symbols/list")
    bot.system.advance(1)
    await bot.get("/symbols/list")
    record = (await bot.records())[bot.key.api_key]
    assert record["last_used_at"] == "2033-05-18T03:33:22.000Z"


@resources.states("last_used_at is of use: a refused signature is none.")
async def refused_requests_are_no_use(bot: Bot) -> None:
    forger = bot.using({"api_key": bot.key.api_key, "api_secret": "wrong"})
    await forger.get("/symbols/list")
    assert (await bot.records())[bot.key.api_key]["last_used_at"] is None


@resources.states("is_active is a boolean: whether the key is active.")
async def is_active_says_so(bot: Bot) -> None:
    gone = await bot.create()
    await bot.app("DELETE", f"/api-keys/{gone['api_key']}")
    records = await bot.records()
    assert (records[bot.key.api_key]["is_active"], records[gone["api_key"]]["is_active"]) == (True, False)


@resources.states("The secret is never part of the key record.")
async def no_secret_in_the_list(bot: Bot) -> None:
    answer = await bot.session("GET", "/api-keys")
    assert bot.key.secret not in str(answer.body)


@resources.states("The create response has exactly the eight fields stated.")
async def create_fields(bot: Bot) -> None:
    assert set(await bot.create()) == {
        "api_key",
        "api_secret",
        "label",
        "permissions",
        "ip_whitelist",
        "created_at",
        "expires_at",
        "message",
    }


@resources.states("api_secret is returned only in the create response and never retrievable again.")
async def the_secret_is_shown_once(bot: Bot) -> None:
    created = await bot.create(label="once")
    api_key = created["api_key"]
    answers = [
        await bot.session("GET", "/api-keys"),
        await bot.session("GET", f"/api-keys/{api_key}/audit"),
        await bot.app("PATCH", f"/api-keys/{api_key}", {"label": "twice"}),
        await bot.app("DELETE", f"/api-keys/{api_key}"),
        await bot.control("GET", "journal"),
    ]
    assert [created["api_secret"] in str(answer.body) for answer in answers] == [False] * 5


@resources.states("message is a string: a reminder to save the secret.")
async def message_reminds(bot: Bot) -> None:
    assert "save the api_secret" in (await bot.create())["message"].lower()


resources.repeats("last_used_at and is_active are not part of the create response.", create_fields)


@resources.states("An audit entry has exactly the four fields stated.")
async def audit_fields(bot: Bot) -> None:
    (entry,) = (await bot.audit(bot.key.api_key))["audit"]
    assert set(entry) == {"action", "ip_address", "created_at", "details"}


@resources.states("The audit action of a creation is `key_created`.")
async def audit_names_creation(bot: Bot) -> None:
    assert [entry["action"] for entry in (await bot.audit(bot.key.api_key))["audit"]] == ["key_created"]


@resources.states("ip_address is the IP address associated with the action.", client_ip_header="X-Test-Ip")
async def audit_has_the_address(bot: Bot) -> None:
    headers = {
        "Authorization": f"Bearer {bot.session_token}",
        "X-PASSKEY-TOKEN": await bot.passkey(),
        "X-Test-Ip": "203.0.113.9",
    }
    created = await bot.send("POST", "/v1/trade/api-keys", b"{}", headers)
    (entry,) = (await bot.audit(created.body["api_key"]))["audit"]
    assert entry["ip_address"] == "203.0.113.9"


@resources.states("created_at of an audit entry is an ISO 8601 UTC timestamp.")
async def audit_has_the_time(bot: Bot) -> None:
    (entry,) = (await bot.audit(bot.key.api_key))["audit"]
    assert ISO.fullmatch(entry["created_at"])


@resources.states("details is human-readable text of the action.")
async def audit_has_details(bot: Bot) -> None:
    created = await bot.create(label="grid")
    (entry,) = (await bot.audit(created["api_key"]))["audit"]
    assert entry["details"] == "API key 'grid' created"


@resources.states("The audit log records updates.")
async def audit_records_updates(bot: Bot) -> None:
    await bot.app("PATCH", f"/api-keys/{bot.key.api_key}", {"label": "new"})
    newest = (await bot.audit(bot.key.api_key))["audit"][0]
    assert (newest["action"], newest["details"]) == ("key_updated", "Changed label")


@resources.states("The audit log records revocations.")
async def audit_records_revocations(bot: Bot) -> None:
    await bot.app("DELETE", f"/api-keys/{bot.key.api_key}")
    assert (await bot.audit(bot.key.api_key))["audit"][0]["action"] == "key_revoked"


@resources.states("The audit log does not record per-request API traffic.")
async def audit_ignores_traffic(bot: Bot) -> None:
    await bot.order()
    assert (await bot.audit(bot.key.api_key))["count"] == 1


@states.states("Create leads to active.")
async def created_is_active(bot: Bot) -> None:
    created = await bot.create()
    assert (await bot.records())[created["api_key"]]["is_active"] is True


@states.states("Update leads from active to active.")
async def updated_stays_active(bot: Bot) -> None:
    await bot.app("PATCH", f"/api-keys/{bot.key.api_key}", {"label": "new"})
    assert (await bot.records())[bot.key.api_key]["is_active"] is True


states.repeats("Revoke leads from active to revoked.", is_active_says_so)


@states.states("Revocation is permanent: no update brings a key back.")
async def revoked_stays_revoked(bot: Bot) -> None:
    path = f"/api-keys/{bot.key.api_key}"
    await bot.app("DELETE", path)
    answers = [await bot.app("PATCH", path, {"label": "back"}), await bot.app("DELETE", path)]
    assert [answer.status for answer in answers] == [404, 404]
    assert (await bot.records())[bot.key.api_key]["is_active"] is False


states.repeats(
    "Later requests signed with a revoked key fail with 401 Invalid API key.", key_must_not_be_revoked
)


@states.states("Revoke all revokes every active key of the user.")
async def revoke_all_takes_every_key(bot: Bot) -> None:
    await bot.create()
    await bot.app("DELETE", "/api-keys/all")
    assert {record["is_active"] for record in (await bot.records()).values()} == {False}


@states.states("Revoke all carries the number revoked: the active ones.")
async def revoke_all_counts_active_keys(bot: Bot) -> None:
    gone = await bot.create()
    await bot.app("DELETE", f"/api-keys/{gone['api_key']}")
    await bot.create()
    answer = await bot.app("DELETE", "/api-keys/all")
    assert answer.body["revoked_count"] == 2


@states.states("Revoke all leaves other users' keys alone.")
async def revoke_all_is_of_one_user(bot: Bot) -> None:
    other = await bot.other_user()
    await other.create()
    answer = await other.app("DELETE", "/api-keys/all")
    assert (answer.body["revoked_count"], (await bot.get("/symbols/list")).status) == (1, 200)


@states.states("Revoke all is recorded in the audit log of each key.")
async def revoke_all_is_audited(bot: Bot) -> None:
    second = await bot.create()
    await bot.app("DELETE", "/api-keys/all")
    actions = [
        (await bot.audit(api_key))["audit"][0]["action"] for api_key in (bot.key.api_key, second["api_key"])
    ]
    assert actions == ["key_revoked", "key_revoked"]


@states.states("An expired key is refused (assumed: as if it did not exist, and no longer active).")
async def expired_keys_sign_nothing(bot: Bot) -> None:
    mine = bot.using(await bot.create(expires_days=1))
    bot.system.advance(86_400 - 1)
    assert (await mine.get("/symbols/list")).status == 200
    await bot.control("PUT", "clock", {"skew_ms": 1000})
    at_ms = bot.system.wall_ms() + 1000
    assert (await mine.get("/symbols/list", at_ms=at_ms)).detail == "Invalid API key"


@states.states("A key of another user cannot be touched.")
async def keys_belong_to_their_user(bot: Bot) -> None:
    other = await bot.other_user()
    path = f"/api-keys/{bot.key.api_key}"
    answers = [
        await other.app("PATCH", path, {"label": "mine"}),
        await other.app("DELETE", path),
        await other.session("GET", f"{path}/audit"),
    ]
    assert [(answer.status, answer.detail) for answer in answers] == [(404, "API key not found")] * 3
