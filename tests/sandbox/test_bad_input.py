"""Bad input of all kinds: a stated error in the stated shape, never a traceback, never a lost connection."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from sandbox.client import BUY, PREFIX, Bot, bot_at_sandbox

# What is refused changes nothing, so one sandbox will do for all.
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def bot() -> AsyncIterator[Bot]:
    async with bot_at_sandbox() as running:
        yield running


BODIES = [
    ("empty", b""),
    ("half an object", b'{"symbol": "BTC"'),
    ("an array", b"[]"),
    ("null", b"null"),
    ("not UTF-8", b'{"symbol": "\xff"}'),
    ("NUL", b"\x00"),
    ("a wrong type", json.dumps(BUY | {"side": 1}).encode()),
    ("an unknown field", json.dumps(BUY | {"colour": "red"}).encode()),
    ("a number where text is wanted", json.dumps(BUY | {"symbol": 12}).encode()),
    ("an amount that is a list", json.dumps(BUY | {"price": ["65000"]}).encode()),
    ("an amount that is true", json.dumps(BUY | {"size": True}).encode()),
    ("an amount too long", json.dumps(BUY | {"size": "1" * 100}).encode()),
    ("two objects", b"{} {}"),
    ("very deep", b"[" * 100_000),
    ("a lone surrogate", b'{"symbol": "\\ud800"}'),
]


@pytest.mark.parametrize(("name", "body"), BODIES, ids=[row[0] for row in BODIES])
async def test_a_bad_body_is_a_422(bot: Bot, name: str, body: bytes) -> None:
    headers = bot.signing_headers("POST", "/order", body)
    answer = await bot.send("POST", f"{PREFIX}/order", body, headers)
    assert answer.status == 422, (name, answer)
    assert all(set(found) == {"loc", "msg", "type"} for found in answer.detail)
    assert answer.body["timestamp"] == "2033-05-18T03:33:20.000Z"


async def test_unknown_fields_pass_by_option() -> None:
    async with bot_at_sandbox(unknown_fields="ignore") as bot:
        assert (await bot.order(colour="red")).status == 200


GOOD_AMOUNTS = ["65000", "65000.0", "6.5e4", "+65000", " 65000 ", 65000, 65000.5]


@pytest.mark.parametrize("price", GOOD_AMOUNTS, ids=str)
async def test_amounts_in_every_spelling(bot: Bot, price: Any) -> None:
    assert (await bot.order(price=price)).status == 200


UNKNOWN_KEY_CALLS = [
    ("PATCH", "/api-keys/nobody", {"label": "x"}),
    ("DELETE", "/api-keys/nobody", None),
    ("GET", "/api-keys/nobody/audit", None),
    ("DELETE", "/api-keys/%2e%2e", None),
    ("DELETE", "/api-keys/a%2Fb", None),
    ("DELETE", "/api-keys/%ff%00", None),
]


@pytest.mark.parametrize(("method", "target", "value"), UNKNOWN_KEY_CALLS, ids=lambda value: str(value)[:30])
async def test_an_unknown_key_is_a_404(bot: Bot, method: str, target: str, value: Any) -> None:
    bot.check(await bot.app(method, target, value), 404, "API key not found")


PATHS = ["/", "/v1", "/v1/trade", "/v1/trade/", "/v1/trade/order/", "/v1/trade//order", "/v1/trade/order/1/2"]
PATHS += ["/v1/trade/%6frder", "/v1/trade/../trade/order", "/v1/trade/api-keys/", "/_sandbox", "/_sandbox/x"]
PATHS += ["/v1/trade/%75ser/0x0/positions", "/v1/trade/user//positions", "/v1/trade/user/0x0/Positions"]


@pytest.mark.parametrize("path", PATHS)
async def test_an_unknown_path_is_a_404(bot: Bot, path: str) -> None:
    bot.check(await bot.send("POST", path, b"{}"), 404, "Not found")


METHODS = [
    ("PUT", f"{PREFIX}/order", "POST"),
    ("DELETE", f"{PREFIX}/time", "GET, HEAD"),
    ("GET", f"{PREFIX}/order/7", "DELETE"),
    ("OPTIONS", f"{PREFIX}/api-keys", "GET, HEAD, POST"),
    ("TRACE", f"{PREFIX}/api-keys/all", "DELETE"),
    ("GET", "/_sandbox/limit", "DELETE, PUT"),
    ("GET", f"{PREFIX}/user/handshake", "POST"),
]


@pytest.mark.parametrize(("method", "path", "allow"), METHODS, ids=str)
async def test_a_wrong_method_is_a_405_with_allow(bot: Bot, method: str, path: str, allow: str) -> None:
    answer = await bot.send(method, path)
    bot.check(answer, 405, "Method not allowed")
    assert answer.headers["Allow"] == allow


async def test_head_is_answered_as_get_without_a_body(bot: Bot) -> None:
    answer = await bot.signed("HEAD", "/symbols/list")
    assert (answer.status, answer.body) == (200, None)


BIG = 5000


async def test_a_huge_body_is_a_413() -> None:
    async with bot_at_sandbox(max_body_bytes=BIG) as bot:
        bot.check(await bot.send("POST", f"{PREFIX}/order", b"x" * (BIG + 1)), 413, "Request body too large")
        assert [line["verdict"] for line in await bot.journal()] == ["body_too_large"]


async def test_a_huge_chunked_body_is_a_413() -> None:
    async with bot_at_sandbox(max_body_bytes=BIG) as bot:
        chunk = b"%x\r\n%b\r\n" % (BIG + 1, b"x" * (BIG + 1))
        head = f"POST {PREFIX}/order HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        status, body = await _raw(bot, head + chunk + b"0\r\n\r\n")
        assert (status, body["detail"]) == (413, "Request body too large")


async def test_the_largest_body_is_read() -> None:
    async with bot_at_sandbox(max_body_bytes=BIG) as bot:
        body = json.dumps(BUY).encode().ljust(BIG)
        headers = bot.signing_headers("POST", "/order", body)
        assert (await bot.send("POST", f"{PREFIX}/order", body, headers)).status == 200


async def _raw(bot: Bot, data: bytes) -> tuple[int, Any]:
    """Send bytes, read one reply up to the end of the connection or of its body."""
    url = urlsplit(bot.sandbox.base_url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(data)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.partition(b":")[2])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    )
    body = json.loads(await reader.readexactly(length))
    writer.close()
    await writer.wait_closed()
    return int(head.split()[1]), body


async def test_two_signatures_are_none(bot: Bot) -> None:
    headers = bot.signing_headers("GET", "/symbols/list")
    lines = [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"X-Service-Signature: {headers['X-SERVICE-SIGNATURE']}", "Host: x"]
    head = f"GET {PREFIX}/symbols/list HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n"
    status, body = await _raw(bot, head.encode())
    assert (status, body["detail"]) == (401, "Missing API key auth headers")


QUERIES = ["limit=0", "limit=-1", "limit=x", "limit=1.5", "limit=", "limit=" + "9" * 5000, "limit=101"]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query[:20])
async def test_a_bad_query_is_a_422(bot: Bot, query: str) -> None:
    answer = await bot.session("GET", f"/api-keys/{bot.key.api_key}/audit?{query}")
    assert (answer.status, answer.detail[0]["loc"]) == (422, ["query", "limit"])


FIELDS = [
    ("a long label", {"label": "x" * 65}, "label"),
    ("no label", {"label": None}, "label"),
    ("no days", {"expires_days": 0}, "expires_days"),
    ("too many days", {"expires_days": 3651}, "expires_days"),
    ("true days", {"expires_days": True}, "expires_days"),
    ("a permission on its own", {"permissions": "read"}, "permissions"),
    ("an address on its own", {"ip_whitelist": "10.0.0.1"}, "ip_whitelist"),
]


@pytest.mark.parametrize(("name", "fields", "where"), FIELDS, ids=[row[0] for row in FIELDS])
async def test_bad_key_fields_are_a_422(bot: Bot, name: str, fields: dict[str, Any], where: str) -> None:
    answer = await bot.app("POST", "/api-keys", fields)
    assert (answer.status, answer.detail[0]["loc"][:2]) == (422, ["body", where]), name


async def test_a_key_without_permissions_is_a_400(bot: Bot) -> None:
    answer = await bot.app("POST", "/api-keys", {"permissions": []})
    bot.check(answer, 400, "Invalid permission: an empty list. Use 'read' or 'trade'")


CONTROL = [
    ("limit", {}),
    ("limit", {"kind": "leaky"}),
    ("limit", {"kind": "fixed", "requests": 0}),
    ("limit", {"kind": "fixed", "window_s": 0}),
    ("limit", {"kind": "gcra", "costs": {"GET /": -1}}),
    ("clock", {"skew_ms": "fast"}),
    ("clock", {"skew_ms": 10**15}),
    ("faults", {"faults": [{"kind": "fire"}]}),
    ("faults", {"faults": [{"kind": "cut", "probability": 2}]}),
    ("faults", {"faults": [{"kind": "status", "status": 200}]}),
    ("key_system", {}),
    ("limit", {"kind": "gcra", "costs": {"POST /v1/trade/order/*": 2}}),
    ("limit", {"kind": "gcra", "costs": {"POST /v1/trade/ordr": 2}}),
    ("limit", {"kind": "gcra", "costs": {"DELETE /v1/trade/order/{id}": 2}}),
]


@pytest.mark.parametrize(("name", "value"), CONTROL, ids=[f"{row[0]} {row[1]}"[:40] for row in CONTROL])
async def test_bad_control_calls_are_a_422(bot: Bot, name: str, value: dict[str, Any]) -> None:
    assert (await bot.control("PUT", name, value)).status == 422


MISTYPED = [
    "POST /v1/trade/ordr",
    "POST /v1/trade/orders*",
    "PUT /v1/trade/order",
    "post /v1/trade/order",
    "/v1/trade/order",
    "POST v1/trade/order",
    "GET /v1/trade/time?since=1",
    "PUT /_sandbox/limit",
    "DELETE /v1/trade/order/{id}/now",
]
TYPED = [
    "",
    "*",
    "* /v1/trade/order",
    "*order",
    "POST *",
    "HEAD /v1/trade/time",
    "DELETE /v1/trade/order/7",
    "DELETE /v1/trade/order/{id}",
    "GET /v1/trade/user/0x*/openOrders",
    "GET /v1/*/openOrders",
    "GET /v1/**/{address}/*",
]


@pytest.mark.parametrize("match", MISTYPED)
async def test_a_fault_that_could_never_strike_is_a_422(bot: Bot, match: str) -> None:
    faults = [{"kind": "cut", "match": "POST *"}, {"kind": "cut", "match": match}]
    answer = await bot.control("PUT", "faults", {"faults": faults})
    assert (answer.status, answer.detail[0]["loc"]) == (422, ["body", "faults", 1, "match"])
    assert answer.detail[0]["msg"].startswith("fits no call of the exchange; write 'METHOD /path'")


@pytest.mark.parametrize("match", TYPED)
async def test_a_fault_that_can_strike_is_taken(match: str) -> None:
    async with bot_at_sandbox() as bot:
        put = await bot.control("PUT", "faults", {"faults": [{"kind": "cut", "match": match}]})
        assert put.status == 200
