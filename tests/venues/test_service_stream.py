"""The default venue's stream, by its file: the sandbox takes what is signed; its replies settle orders."""

import json
from typing import Any

import aiohttp
import pytest

from sandbox.client import BUY, Bot, bot_at_sandbox
from sealgate.config.venues import default_venue
from sealgate.keys.signer import KeyMaterial, sealer_of
from sealgate.venues.key_kinds import Kind
from sealgate.venues.routes import Lane, Permission
from sealgate.venues.stream_sealer import Moment, StreamSealer
from sealgate.venues.streams import MessageRule, find_stream, id_of

HOST, PATH = "stream.example.com", "/v1/stream"


def rule_of(message: Any) -> tuple[MessageRule | None, Permission, Lane]:
    stream = find_stream(default_venue().streams, HOST, PATH)
    assert stream is not None
    rule, route = stream.find(stream.clear(json.dumps(message)), Kind.HMAC)
    return rule, route.needs, route.lane


def signed(message: Any, bot: Bot) -> str:
    """Return a message as the gateway sends it."""
    rule, _, _ = rule_of(message)
    assert rule is not None
    material = KeyMaterial(bot.key.api_key, bytearray(bot.key.secret.encode()))
    sealer = StreamSealer(sealer_of(default_venue(), material, "https://api.example.com"), HOST, PATH)
    return sealer.sign(json.dumps(message), rule.signing, rule.drops, Moment(bot.system.wall_ms(), b""))


async def asked(ws: aiohttp.ClientWebSocketResponse, text: str) -> Any:
    await ws.send_str(text)
    return json.loads(await ws.receive_str())


def meaning(message: Any, reply: Any) -> str:
    """Return what a reply to a message means; "" if it is not about it."""
    rule = rule_of(message)[0]
    assert rule is not None
    assert rule.reply is not None
    is_about = rule.reply.answers(id_of(message, rule.reply.id) if rule.reply.id else None, reply)
    return rule.reply.meaning(reply) if is_about else ""


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"api_key": "", "timestamp": 0, "signature": ""},
        {"api_key": "dummy", "timestamp": "1", "signature": "00"},
    ],
    ids=["absent", "empty", "made up"],
)
async def test_a_login_is_signed(args: Any) -> None:
    login = {"op": "login", "id": 1, "args": args}
    async with bot_at_sandbox() as bot, bot.http.ws_connect(bot.sandbox.base_url + PATH) as ws:
        before = await asked(ws, json.dumps(login))
        assert meaning(login, before) == "refused"
        after = await asked(ws, signed(login, bot))
        assert after["data"] == {"user_address": bot.address}
        assert meaning(login, after) == "done"


async def test_replies_settle_orders() -> None:
    async with bot_at_sandbox() as bot, bot.http.ws_connect(bot.sandbox.base_url + PATH) as ws:
        await asked(ws, signed({"op": "login", "args": {}}, bot))
        await asked(ws, json.dumps({"op": "subscribe", "channel": "orders"}))
        order = {"op": "order.place", "id": "7", "args": BUY}
        update = await asked(ws, signed(order, bot))
        assert meaning(order, update) == ""
        assert meaning(order, json.loads(await ws.receive_str())) == "done"
        invalid = order | {"args": BUY | {"size": "0"}}
        assert meaning(invalid, await asked(ws, signed(invalid, bot))) == "refused"
        assert meaning(order | {"id": "8"}, await asked(ws, signed(invalid, bot))) == ""
        for status, expected in ((429, "limited"), (500, "unknown"), (503, "unknown")):
            fault = {"kind": "status", "status": status, "match": "WS */order.place", "next": 1}
            await bot.control("PUT", "faults", {"faults": [fault]})
            assert meaning(order, await asked(ws, signed(order, bot))) == expected


@pytest.mark.parametrize(
    ("op", "needs", "lane"),
    [
        ("login", "read", "read"),
        ("subscribe", "read", "read"),
        ("ping", "read", "read"),
        ("order.place", "trade", "order"),
        ("order.modify", "trade", "order"),
        ("order.cancel", "trade", "cancel"),
        ("order.other", "trade", "order"),
    ],
)
def test_what_a_message_needs(op: str, needs: str, lane: str) -> None:
    _, found_needs, found_lane = rule_of({"op": op})
    assert (found_needs, found_lane) == (needs, lane)
