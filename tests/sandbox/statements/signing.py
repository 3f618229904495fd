"""spec.md, "API-key request signing"."""

import json

from sandbox.client import BUY, PREFIX, Bot
from sandbox.statements.table import Part

signing = Part("API-key request signing")

ORDER = json.dumps(BUY).encode()
ORDER_PATH = f"{PREFIX}/order"


async def _without(bot: Bot, name: str) -> None:
    headers = bot.signing_headers("GET", "/symbols/list")
    del headers[name]
    answer = await bot.send("GET", f"{PREFIX}/symbols/list", headers=headers)
    bot.check(answer, 401, "Missing API key auth headers")


@signing.states("X-SERVICE-APIKEY is required.")
async def api_key_is_required(bot: Bot) -> None:
    await _without(bot, "X-SERVICE-APIKEY")


@signing.states("X-SERVICE-TIMESTAMP is required.")
async def timestamp_is_required(bot: Bot) -> None:
    await _without(bot, "X-SERVICE-TIMESTAMP")


@signing.states("X-SERVICE-SIGNATURE is required.")
async def signature_is_required(bot: Bot) -> None:
    await _without(bot, "X-SERVICE-SIGNATURE")


@signing.states("The three headers are found whatever their case.")
async def header_names_have_no_case(bot: Bot) -> None:
    headers = {name.lower(): value for name, value in bot.signing_headers("GET", "/symbols/list").items()}
    assert (await bot.send("GET", f"{PREFIX}/symbols/list", headers=headers)).status == 200


@signing.states("X-SERVICE-TIMESTAMP is in milliseconds, not seconds.")
async def seconds_are_no_timestamp(bot: Bot) -> None:
    seconds = str(bot.system.wall_ms() // 1000)
    headers = bot.headers_for(seconds, f"{seconds}GET/symbols/list".encode())
    answer = await bot.send("GET", f"{PREFIX}/symbols/list", headers=headers)
    said = f"Timestamp outside recv_window (5000ms). Server time: {bot.system.wall_ms()}"
    bot.check(answer, 401, said)


@signing.states("X-SERVICE-SIGNATURE is an HMAC-SHA256 (checked against openssl's in the vectors test).")
async def a_good_signature_passes(bot: Bot) -> None:
    assert (await bot.order()).status == 200


@signing.states("Rule 1: the timestamp is signed.")
async def timestamp_is_signed(bot: Bot) -> None:
    headers = bot.signing_headers("GET", "/symbols/list")
    headers["X-SERVICE-TIMESTAMP"] = str(bot.system.wall_ms() + 1)
    answer = await bot.send("GET", f"{PREFIX}/symbols/list", headers=headers)
    bot.check(answer, 401, "Invalid HMAC signature")


@signing.states("Rule 1: the METHOD is signed.")
async def method_is_signed(bot: Bot) -> None:
    headers = bot.signing_headers("GET", "/order", ORDER)
    bot.check(await bot.send("POST", ORDER_PATH, ORDER, headers), 401, "Invalid HMAC signature")


@signing.states("Rule 1: the METHOD is signed in capitals.")
async def method_is_in_capitals(bot: Bot) -> None:
    headers = bot.signing_headers("post", "/order", ORDER)
    bot.check(await bot.send("POST", ORDER_PATH, ORDER, headers), 401, "Invalid HMAC signature")


@signing.states("Rule 1: the path is signed.")
async def path_is_signed(bot: Bot) -> None:
    headers = bot.signing_headers("GET", "/spot/symbols/list")
    answer = await bot.send("GET", f"{PREFIX}/symbols/list", headers=headers)
    bot.check(answer, 401, "Invalid HMAC signature")


@signing.states("Rule 1: the body is signed.")
async def body_is_signed(bot: Bot) -> None:
    headers = bot.signing_headers("POST", "/order", ORDER)
    other = ORDER.replace(b"0.001", b"0.002")
    bot.check(await bot.send("POST", ORDER_PATH, other, headers), 401, "Invalid HMAC signature")


@signing.states("Rule 1: the parts are concatenated in this order, with nothing between.")
async def parts_stand_in_order(bot: Bot) -> None:
    timestamp = str(bot.system.wall_ms())
    orders = [
        f"GET{timestamp}/symbols/list",
        f"{timestamp}\nGET\n/symbols/list",
        f"{timestamp}/symbols/listGET",
    ]
    for message in orders:
        headers = bot.headers_for(timestamp, message.encode())
        answer = await bot.send("GET", f"{PREFIX}/symbols/list", headers=headers)
        bot.check(answer, 401, "Invalid HMAC signature")


@signing.states("Rule 2: the path in the message excludes the `/v1/trade` prefix.")
async def prefix_is_not_signed(bot: Bot) -> None:
    headers = bot.signing_headers("GET", f"{PREFIX}/symbols/list")
    answer = await bot.send("GET", f"{PREFIX}/symbols/list", headers=headers)
    bot.check(answer, 401, "Invalid HMAC signature")


@signing.states("The path is signed as it was sent, escapes and all.")
async def path_is_signed_raw(bot: Bot) -> None:
    escaped = "/user/%30" + bot.address[1:] + "/positions"
    assert (await bot.get(escaped)).status == 200


@signing.states("The query is no part of the path (assumed; an option signs it).")
async def query_is_not_signed(bot: Bot) -> None:
    assert (await bot.get(f"/user/{bot.address}/openOrders?symbol=BTC&limit=5")).status == 200


@signing.states("By option the query is signed too.", signed_target="path_and_query")
async def query_is_signed_by_option(bot: Bot) -> None:
    target = f"/user/{bot.address}/openOrders?symbol=BTC"
    timestamp = str(bot.system.wall_ms())
    headers = bot.headers_for(timestamp, f"{timestamp}GET{target}".encode())
    assert (await bot.send("GET", PREFIX + target, headers=headers)).status == 200
    bot.check(await bot.get(target), 401, "Invalid HMAC signature")


@signing.states("Rule 3: the body signed is the exact body sent.")
async def odd_spacing_is_kept(bot: Bot) -> None:
    body = json.dumps(BUY, indent=3).encode() + b"\n "
    headers = bot.signing_headers("POST", "/order", body)
    assert (await bot.send("POST", ORDER_PATH, body, headers)).status == 200


@signing.states("Rule 3: re-serialising the body between signing and sending breaks the signature.")
async def reserialised_bodies_break(bot: Bot) -> None:
    headers = bot.signing_headers("POST", "/order", ORDER)
    respaced = json.dumps(BUY, separators=(",", ":")).encode()
    bot.check(await bot.send("POST", ORDER_PATH, respaced, headers), 401, "Invalid HMAC signature")


@signing.states("A compressed body is signed as it was sent, compressed.")
async def compressed_bodies_stay_compressed(bot: Bot) -> None:
    body = b"\x1f\x8b no gzip at all"
    headers = bot.signing_headers("POST", "/order", body) | {"Content-Encoding": "gzip"}
    answer = await bot.send("POST", ORDER_PATH, body, headers)
    assert (answer.status, answer.detail[0]["type"]) == (422, "json_invalid")


async def _at(bot: Bot, off_ms: int) -> int:
    return (await bot.get("/symbols/list", at_ms=bot.system.wall_ms() + off_ms)).status


@signing.states("Rule 4: a timestamp within recv_window passes, at both edges.")
async def inside_the_window(bot: Bot) -> None:
    assert [await _at(bot, off_ms) for off_ms in (-5000, 0, 5000)] == [200, 200, 200]


@signing.states("Rule 4: a timestamp 1 ms too old is refused.")
async def too_old(bot: Bot) -> None:
    assert await _at(bot, -5001) == 401


@signing.states("Rule 4: a timestamp 1 ms too far in the future is refused.")
async def too_early(bot: Bot) -> None:
    assert await _at(bot, 5001) == 401


@signing.states("Rule 4: the window is around server time, not the client's.", skew_ms=-60_000)
async def window_is_around_server_time(bot: Bot) -> None:
    assert [await _at(bot, off_ms) for off_ms in (0, -60_000)] == [401, 200]


@signing.states("Rule 4: recv_window is 5000 ms by default.")
async def window_default(bot: Bot) -> None:
    answer = await bot.get("/symbols/list", at_ms=bot.system.wall_ms() - 9000)
    assert "recv_window (5000ms)" in answer.detail


@signing.states("Rule 4: recv_window is configurable per key.")
async def window_per_key(bot: Bot) -> None:
    other = bot.using(await bot.create())
    await bot.control("PATCH", f"keys/{bot.key.api_key}", {"recv_window_ms": 100})
    assert [await _at(bot, -101), await _at(bot, -100), await _at(other, -101)] == [401, 200, 200]


@signing.states("Rule 4: a client clock more than 5 seconds off is refused in a larger window too.")
async def five_seconds_whatever_the_window(bot: Bot) -> None:
    await bot.control("PATCH", f"keys/{bot.key.api_key}", {"recv_window_ms": 60_000})
    assert [await _at(bot, off_ms) for off_ms in (-5000, 5000)] == [200, 200]
    for off_ms in (-5001, 5001):
        answer = await bot.get("/symbols/list", at_ms=bot.system.wall_ms() + off_ms)
        bot.check(answer, 401, "Invalid timestamp")


@signing.states("Rule 4: by option a larger recv_window wins over the 5 seconds.", clock_limit_ms=0)
async def larger_windows_by_option(bot: Bot) -> None:
    await bot.control("PATCH", f"keys/{bot.key.api_key}", {"recv_window_ms": 60_000})
    assert [await _at(bot, -60_000), await _at(bot, -60_001)] == [200, 401]


@signing.states("Rule 5: the key must exist.")
async def key_must_exist(bot: Bot) -> None:
    ghost = bot.using({"api_key": "ghost", "api_secret": bot.key.secret})
    bot.check(await ghost.get("/symbols/list"), 401, "Invalid API key")


@signing.states("Rule 5: the key must not be revoked.")
async def key_must_not_be_revoked(bot: Bot) -> None:
    gone = bot.using(await bot.create())
    await bot.app("DELETE", f"/api-keys/{gone.key.api_key}")
    bot.check(await gone.get("/symbols/list"), 401, "Invalid API key")


async def _from(bot: Bot, client_ip: str) -> int:
    return (await bot.get("/symbols/list", headers={"X-Test-Ip": client_ip})).status


@signing.states("Rule 6: with an ip_whitelist the request IP must be in it.", client_ip_header="X-Test-Ip")
async def whitelist_binds(bot: Bot) -> None:
    mine = bot.using(await bot.create(ip_whitelist=["203.0.113.9"]))
    assert [await _from(mine, "203.0.113.9"), await _from(mine, "203.0.113.10")] == [200, 403]


@signing.states("Rule 6: a CIDR block holds its whole range.", client_ip_header="X-Test-Ip")
async def whitelist_takes_blocks(bot: Bot) -> None:
    mine = bot.using(await bot.create(ip_whitelist=["10.1.0.0/16", "192.0.2.1"]))
    addresses = ["10.1.0.0", "10.1.255.255", "10.2.0.0", "192.0.2.1"]
    assert [await _from(mine, address) for address in addresses] == [200, 200, 403, 200]


@signing.states("Rule 6: IPv6 addresses and blocks work alike.", client_ip_header="X-Test-Ip")
async def whitelist_takes_ipv6(bot: Bot) -> None:
    mine = bot.using(await bot.create(ip_whitelist=["2001:db8::/32", "::1"]))
    addresses = ["2001:DB8:0:0::7", "0:0:0:0:0:0:0:1", "2001:db9::1", "127.0.0.1"]
    assert [await _from(mine, address) for address in addresses] == [200, 200, 403, 403]


@signing.states("Rule 6: an IPv4 client seen through IPv6 is the IPv4 client.", client_ip_header="X-Test-Ip")
async def whitelist_knows_mapped_addresses(bot: Bot) -> None:
    mine = bot.using(await bot.create(ip_whitelist=["203.0.113.9"]))
    assert await _from(mine, "::ffff:203.0.113.9") == 200


@signing.states("Rule 7: reading needs `read`.")
async def reading_needs_read(bot: Bot) -> None:
    mine = bot.using(await bot.create(permissions=["trade"]))
    bot.check(await mine.get("/symbols/list"), 403, "API key lacks 'read' permission")


@signing.states("Rule 7: trading needs `trade`.")
async def trading_needs_trade(bot: Bot) -> None:
    mine = bot.using(await bot.create(permissions=["read"]))
    bot.check(await mine.order(), 403, "API key lacks 'trade' permission")


@signing.states("Rule 8: the address in the path must be the key's.")
async def path_address_must_match(bot: Bot) -> None:
    other = await bot.other_user()
    bot.check(await bot.get(f"/user/{other.address}/openOrders"), 403, "Address mismatch")


@signing.states("Rule 8: the user_address in the body must be the key's.")
async def body_address_must_match(bot: Bot) -> None:
    other = await bot.other_user()
    bot.check(await bot.order(user_address=other.address), 403, "Address mismatch")


@signing.states("Rule 8: the own address passes, in any case of its letters (assumed).")
async def own_address_matches(bot: Bot) -> None:
    shouted = "0x" + bot.address[2:].upper()
    assert (await bot.order(user_address=shouted)).status == 200
    assert (await bot.get(f"/user/{shouted}/positions")).status == 200


@signing.states("Of several faults the first in the documented order is named.", client_ip_header="X-Test-Ip")
async def checks_have_an_order(bot: Bot) -> None:
    mine = bot.using(await bot.create(permissions=["trade"], ip_whitelist=["10.0.0.1"]))
    target = f"{PREFIX}/user/0x0/positions"
    headers = {"X-SERVICE-APIKEY": "ghost"}
    said = []
    for mend in (
        {"X-SERVICE-TIMESTAMP": "1", "X-SERVICE-SIGNATURE": "x"},
        {"X-SERVICE-APIKEY": mine.key.api_key},
        mine.signing_headers("GET", "/wrong"),
        mine.signing_headers("GET", "/user/0x0/positions"),
        {"X-Test-Ip": "10.0.0.1"},
    ):
        said.append((await bot.send("GET", target, headers=headers)).detail)
        headers |= mend
    said.append((await bot.send("GET", target, headers=headers)).detail)
    assert said == [
        "Missing API key auth headers",
        "Invalid API key",
        f"Timestamp outside recv_window (5000ms). Server time: {bot.system.wall_ms()}",
        "Invalid HMAC signature",
        "IP 127.0.0.1 not in API key whitelist",
        "API key lacks 'read' permission",
    ]


@signing.states("By option the signature is checked before the timestamp.", check_first="signature")
async def signature_first_by_option(bot: Bot) -> None:
    headers = bot.headers_for("1", b"wrong")
    answer = await bot.send("GET", f"{PREFIX}/symbols/list", headers=headers)
    bot.check(answer, 401, "Invalid HMAC signature")
