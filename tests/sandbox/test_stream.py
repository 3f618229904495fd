"""The stream: what is signed, who may send what, which updates come, and how a stream fails."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from websockets.frames import Frame, Opcode
from websockets.streams import StreamReader

from sandbox.client import BUY, Bot, bot_at_sandbox
from sealgate.sandbox.clock import iso
from sealgate.sandbox.server import running_sandbox
from sealgate.sandbox.stream import Stream as Opened
from sealgate.sandbox.stream import Streams
from sealgate.sandbox.websocket import text_frame

PATH = "/v1/stream"
REST = "65000.0"  # below the mark price: it stays on the book
CROSS = "66500.0"


@dataclass(frozen=True)
class Stream:
    """A bot's end of a stream."""

    bot: Bot
    ws: aiohttp.ClientWebSocketResponse

    async def receive(self) -> Any:
        return json.loads(await self.ws.receive_str())

    async def ask(self, op: str, **members: Any) -> Any:
        await self.ws.send_json({"op": op, **members})
        return await self.receive()

    def login_args(self, *, at_ms: int = 0, secret: str = "", path: str = PATH) -> dict[str, Any]:
        at_ms = at_ms or self.bot.system.wall_ms()
        key = (secret or self.bot.key.secret).encode()
        signature = hmac.new(key, f"{at_ms}GET{path}".encode(), hashlib.sha256).hexdigest()
        return {"api_key": self.bot.key.api_key, "timestamp": at_ms, "signature": signature}

    async def login(self, **options: Any) -> Any:
        return await self.ask("login", args=self.login_args(**options))

    async def follow(self) -> None:
        """Log in and subscribe, which must succeed."""
        assert (await self.login())["success"] is True
        assert (await self.ask("subscribe", channel="orders"))["success"] is True

    async def update(self) -> Any:
        message = await self.receive()
        assert message["channel"] == "orders", message
        return message["data"]

    async def end(self) -> tuple[aiohttp.WSMsgType, int | None]:
        """Wait for the end of the stream: the type of what ends it, and the code."""
        message = await self.ws.receive()
        return message.type, self.ws.close_code


@asynccontextmanager
async def open_stream(bot: Bot) -> AsyncIterator[Stream]:
    async with bot.http.ws_connect(bot.sandbox.base_url + PATH) as ws:
        yield Stream(bot, ws)


@asynccontextmanager
async def stream_at_sandbox(**settings: Any) -> AsyncIterator[Stream]:
    async with bot_at_sandbox(**settings) as bot, open_stream(bot) as stream:
        yield stream


async def _strike(bot: Bot, **fault: Any) -> None:
    answer = await bot.control("PUT", "faults", {"faults": [fault]})
    assert answer.status == 200, answer


def brief(update: Any) -> tuple[Any, ...]:
    names = ("order_id", "status", "size", "filled_size", "fill_size", "fill_price")
    return tuple(update[name] for name in names)


class TestLogin:
    async def test_it_is_signed_as_a_get_request_for_the_stream(self) -> None:
        async with stream_at_sandbox() as stream:
            assert await stream.login() == {
                "op": "login",
                "status": 200,
                "success": True,
                "data": {"user_address": stream.bot.address},
            }

    async def test_the_timestamp_may_be_a_text(self) -> None:
        async with stream_at_sandbox() as stream:
            args = stream.login_args()
            reply = await stream.ask("login", id=7, args=args | {"timestamp": str(args["timestamp"])})
            assert (reply["id"], reply["success"]) == (7, True)

    async def test_a_signature_over_something_else_is_refused(self) -> None:
        async with stream_at_sandbox() as stream:
            for options in ({"path": "/v1/stream/"}, {"path": "/stream"}, {"secret": "another"}):
                assert await stream.login(**options) == {
                    "op": "login",
                    "status": 401,
                    "success": False,
                    "detail": "Invalid HMAC signature",
                    "timestamp": iso(stream.bot.system.wall_ms()),
                }

    @pytest.mark.parametrize("off_ms", [-5001, 5001])
    async def test_the_window_is_that_of_requests(self, off_ms: int) -> None:
        async with stream_at_sandbox() as stream:
            now_ms = stream.bot.system.wall_ms()
            detail = f"Timestamp outside recv_window (5000ms). Server time: {now_ms}"
            assert (await stream.login(at_ms=now_ms + off_ms))["detail"] == detail
            nearer_ms = off_ms - off_ms // abs(off_ms)
            assert (await stream.login(at_ms=now_ms + nearer_ms))["success"] is True

    @pytest.mark.parametrize("absent", ["api_key", "timestamp", "signature"])
    async def test_all_three_must_be_there(self, absent: str) -> None:
        async with stream_at_sandbox() as stream:
            args = stream.login_args()
            del args[absent]
            assert (await stream.ask("login", args=args))["detail"] == "Missing API key auth headers"

    async def test_revoked_expired_and_unknown_keys_are_invalid(self) -> None:
        async with bot_at_sandbox() as bot:
            revoked, expiring = await bot.create(), await bot.create(expires_days=1)
            await bot.app("DELETE", f"/api-keys/{revoked['api_key']}")
            bot.system.advance(86_400)
            for created in (revoked, expiring, {"api_key": "unknown", "api_secret": "x"}):
                async with open_stream(bot.using(created)) as stream:
                    assert (await stream.login())["detail"] == "Invalid API key"

    async def test_the_whitelist_holds(self) -> None:
        async with bot_at_sandbox() as bot:
            created = await bot.create(ip_whitelist=["10.0.0.0/8"])
            async with open_stream(bot.using(created)) as stream:
                reply = await stream.login()
                assert (reply["status"], reply["detail"]) == (403, "IP 127.0.0.1 not in API key whitelist")

    async def test_options_of_signatures_hold(self) -> None:
        async with stream_at_sandbox(signature_encoding="HEX") as stream:
            args = stream.login_args()
            assert (await stream.ask("login", args=args))["success"] is False
            args["signature"] = args["signature"].upper()
            assert (await stream.ask("login", args=args))["success"] is True


class TestPermissions:
    async def test_nothing_but_a_ping_passes_without_a_login(self) -> None:
        async with stream_at_sandbox() as stream:
            now_ms = stream.bot.system.wall_ms()
            assert (await stream.ask("ping"))["data"] == {"server_time": now_ms}
            for message in ({"op": "subscribe", "channel": "orders"}, {"op": "order.place", "args": BUY}):
                reply = await stream.ask(**message)
                assert (reply["status"], reply["detail"]) == (401, "Missing API key auth headers")

    async def test_each_message_needs_its_permission(self) -> None:
        async with bot_at_sandbox() as bot:
            for permission, is_reader in (("read", True), ("trade", False)):
                created = await bot.create(permissions=[permission])
                async with open_stream(bot.using(created)) as stream:
                    assert (await stream.login())["success"] is True
                    assert (await stream.ask("subscribe", channel="orders"))["success"] is is_reader
                    order = await stream.ask("order.place", args=BUY)
                    if is_reader:
                        assert (order["status"], order["detail"]) == (403, "API key lacks 'trade' permission")
                    else:
                        assert order["status"] == 200

    async def test_the_stream_of_a_revoked_key_is_closed(self) -> None:
        async with bot_at_sandbox() as bot:
            created = await bot.create()
            async with open_stream(bot.using(created)) as stream:
                await stream.follow()
                await bot.app("DELETE", f"/api-keys/{created['api_key']}")
                assert await stream.end() == (aiohttp.WSMsgType.CLOSE, 1008)

    async def test_an_order_of_a_key_that_has_expired_is_refused(self) -> None:
        async with bot_at_sandbox() as bot:
            created = await bot.create(expires_days=1)
            async with open_stream(bot.using(created)) as stream:
                assert (await stream.login())["success"] is True
                bot.system.advance(86_400)
                assert (await stream.ask("order.place", args=BUY))["detail"] == "Invalid API key"
                assert (await stream.ask("ping"))["success"] is True
                assert await stream.end() == (aiohttp.WSMsgType.CLOSE, 1008)

    async def test_another_users_address_is_refused(self) -> None:
        async with stream_at_sandbox() as stream:
            await stream.login()
            reply = await stream.ask("order.place", args=BUY | {"user_address": "0x00"})
            assert (reply["status"], reply["detail"]) == (403, "Address mismatch")


class TestOrders:
    async def test_they_are_answered_as_by_http(self) -> None:
        async with stream_at_sandbox() as stream:
            await stream.login()
            placed = await stream.ask("order.place", id="a", args=BUY | {"client_order_id": "mine"})
            order_id = placed["data"]["order_id"]
            assert placed == {
                "op": "order.place",
                "id": "a",
                "status": 200,
                "success": True,
                "data": {"order_id": order_id, "status": "open", "client_order_id": "mine"},
            }
            change = {"order_id": order_id, "price": "64000", "size": "0.002"}
            modified = (await stream.ask("order.modify", id="b", args=change))["data"]
            reply = await stream.ask("order.cancel", id="c", args={"order_id": modified["order_id"]})
            assert reply["data"]["status"] == "canceled"
            gone = await stream.ask("order.cancel", id="d", args={"order_id": order_id})
            assert (gone["id"], gone["status"], gone["success"]) == ("d", 400, False)
            assert gone["detail"] == "Order was never placed, already canceled, or filled"

    async def test_errors_are_those_of_the_catalogue(self) -> None:
        async with stream_at_sandbox() as stream:
            await stream.login()
            assert (await stream.ask("order.place", args=BUY | {"price": "65000.1"}))["detail"] == (
                "Price must be divisible by 0.5"
            )
            invalid = await stream.ask("order.place", args={"symbol": "BTC"})
            assert invalid["status"] == 422
            assert ["body", "side"] in [one["loc"] for one in invalid["detail"]]

    async def test_they_count_against_the_limit_of_their_key_and_nothing_else_does(self) -> None:
        settings = {"limit_kind": "fixed_from_first", "limit_requests": 2, "limit_window_s": 60.0}
        async with stream_at_sandbox(**settings) as stream:
            await stream.follow()
            assert (await stream.bot.get("/symbols/list")).status == 200
            await stream.ask("order.place", id=1, args=BUY)
            assert (await stream.receive())["id"] == 1
            refused = await stream.ask("order.place", id=2, args=BUY)
            assert (refused["status"], refused["retry_after"]) == (429, "60")
            assert (await stream.ask("ping"))["status"] == 200

    async def test_they_are_in_the_journal(self) -> None:
        async with stream_at_sandbox() as stream:
            args = stream.login_args()
            await stream.ask("login", args=args)
            text = json.dumps({"op": "order.place", "id": 1, "args": BUY})
            await stream.ws.send_str(text)
            order_id = (await stream.receive())["data"]["order_id"]
            opened, login, order = await stream.bot.journal()
            assert (opened["method"], opened["target"], opened["status"]) == ("GET", PATH, 101)
            assert (login["method"], login["target"]) == ("WS", f"{PATH}/login")
            assert login["headers"]["X-SERVICE-SIGNATURE"] == args["signature"]
            assert order["headers"] == {"X-SERVICE-APIKEY": args["api_key"]}
            assert order["target"] == f"{PATH}/order.place"
            assert order["body_sha256"] == hashlib.sha256(text.encode()).hexdigest()
            assert (order["verdict"], order["executed"], order["order_id"]) == ("ok", True, order_id)


class TestUpdates:
    async def test_of_orders_by_http(self) -> None:
        async with stream_at_sandbox() as stream:
            await stream.follow()
            bot = stream.bot
            order_id = (await bot.order(price=REST, size="0.003", client_order_id="mine")).body["order_id"]
            at = iso(bot.system.wall_ms())
            assert await stream.update() == {
                "order_id": order_id,
                "symbol": "BTC",
                "side": "buy",
                "size": "0.003",
                "filled_size": "0",
                "price": "65000",
                "client_order_id": "mine",
                "created_at": at,
                "status": "open",
                "fill_size": None,
                "fill_price": None,
                "updated_at": at,
            }
            bot.system.advance(2)
            await bot.control("PUT", "market", {"order_id": order_id, "fill": "0.001"})
            update = await stream.update()
            assert update["updated_at"] == iso(bot.system.wall_ms())
            assert brief(update) == (order_id, "open", "0.002", "0.001", "0.001", "65000")
            await bot.control("PUT", "market", {"symbol": "BTC", "price": "64000"})
            assert brief(await stream.update()) == (order_id, "filled", "0", "0.003", "0.002", "65000")

    async def test_of_an_order_that_fills_at_once(self) -> None:
        async with stream_at_sandbox() as stream:
            await stream.follow()
            order_id = (await stream.bot.order(price=CROSS)).body["order_id"]
            assert brief(await stream.update()) == (order_id, "filled", "0", "0.001", "0.001", "66000")

    async def test_of_a_modified_and_a_canceled_order(self) -> None:
        async with stream_at_sandbox() as stream:
            await stream.follow()
            bot = stream.bot
            old = (await bot.order()).body["order_id"]
            await stream.update()
            change = {"order_id": old, "price": "64000", "size": "0.002"}
            new = (await bot.post("/order/modify", change)).body["order_id"]
            assert brief(await stream.update())[:2] == (old, "canceled")
            assert brief(await stream.update())[:3] == (new, "open", "0.002")
            await bot.signed("DELETE", f"/order/{new}")
            assert brief(await stream.update())[:3] == (new, "canceled", "0.002")

    async def test_of_a_modification_that_was_refused_there_is_none(self) -> None:
        async with stream_at_sandbox() as stream:
            await stream.follow()
            order_id = (await stream.bot.order()).body["order_id"]
            await stream.update()
            change = {"order_id": order_id, "price": "64000", "size": "10000"}
            assert (await stream.bot.post("/order/modify", change)).detail == "Insufficient margin"
            assert (await stream.ask("ping", id="next"))["id"] == "next"

    async def test_of_closed_positions_and_spot_orders(self) -> None:
        async with stream_at_sandbox() as stream:
            await stream.follow()
            bot = stream.bot
            await bot.order(price=CROSS)
            await stream.update()
            await bot.post("/position/close", {"symbol": "BTC"})
            update = await stream.update()
            assert (update["side"], update["status"], update["fill_size"]) == ("sell", "filled", "0.001")
            await bot.post("/spot/order", {"symbol": "ETH/USDC", "side": "buy", "size": "1"})
            update = await stream.update()
            assert (update["symbol"], update["side"], update["fill_price"]) == ("ETH/USDC", "buy", "3300")

    async def test_an_order_on_the_stream_gets_both(self) -> None:
        async with stream_at_sandbox() as stream:
            await stream.follow()
            update = await stream.ask("order.place", id=1, args=BUY)
            reply = await stream.receive()
            assert update["data"]["order_id"] == reply["data"]["order_id"]

    async def test_they_reach_each_stream_of_the_account_and_no_other(self) -> None:
        async with bot_at_sandbox() as bot, open_stream(bot) as one, open_stream(bot) as two:
            other = await bot.other_user()
            other = other.using(await other.create())
            async with open_stream(other) as foreign, open_stream(bot) as silent:
                for stream in (one, two, foreign):
                    await stream.follow()
                await silent.login()
                order_id = (await bot.order()).body["order_id"]
                assert [(await stream.update())["order_id"] for stream in (one, two)] == [order_id] * 2
                for stream in (foreign, silent):
                    assert (await stream.ask("ping"))["op"] == "ping"

    async def test_they_end_with_the_subscription(self) -> None:
        async with stream_at_sandbox() as stream:
            await stream.follow()
            reply = await stream.ask("unsubscribe", channel="orders", id="x")
            assert (reply["id"], reply["data"]) == ("x", {"channels": []})
            await stream.bot.order()
            assert (await stream.ask("ping"))["op"] == "ping"

    async def test_an_unknown_channel_is_invalid(self) -> None:
        async with stream_at_sandbox() as stream:
            await stream.login()
            reply = await stream.ask("subscribe", channel="trades")
            assert (reply["status"], reply["detail"][0]["loc"]) == (422, ["body", "channel"])


class TestMessages:
    @pytest.mark.parametrize(
        "text", ["", "{", "[]", '{"id": 1}', '{"op": "A"}', '{"op": "ping", "more": 1}', '{"op": "\\ud800"}']
    )
    async def test_one_that_cannot_be_read_is_answered(self, text: str) -> None:
        async with stream_at_sandbox() as stream:
            await stream.ws.send_str(text)
            reply = await stream.receive()
            assert (reply["status"], "op" in reply) == (422, False)
            assert (await stream.ask("ping"))["success"] is True

    async def test_an_unknown_op_is_not_found(self) -> None:
        async with stream_at_sandbox() as stream:
            reply = await stream.ask("withdraw", id=1)
            assert (reply["op"], reply["id"], reply["status"]) == ("withdraw", 1, 404)

    async def test_unknown_members_are_ignored_by_option(self) -> None:
        async with stream_at_sandbox(unknown_fields="ignore") as stream:
            assert (await stream.ask("ping", more=1))["success"] is True

    async def test_bytes_close_the_stream(self) -> None:
        async with stream_at_sandbox() as stream:
            await stream.ws.send_bytes(b"{}")
            assert await stream.end() == (aiohttp.WSMsgType.CLOSE, 1003)

    async def test_one_that_is_too_large_closes_the_stream(self) -> None:
        async with stream_at_sandbox(max_body_bytes=100) as stream:
            await stream.ws.send_str(" " * 101)
            assert await stream.end() == (aiohttp.WSMsgType.CLOSE, 1009)

    async def test_without_an_upgrade_the_path_says_what_it_is(self) -> None:
        async with bot_at_sandbox() as bot:
            answer = await bot.send("GET", PATH)
            bot.check(answer, 426, "This is a WebSocket")
            assert answer.headers["Upgrade"] == "websocket"
            assert (await bot.send("POST", f"{PATH}/ping", b"{}")).status == 404

    @pytest.mark.parametrize("size", [0, 125, 126, 0xFFFF, 0x10000])
    def test_frames_of_any_size_are_read_by_the_library(self, size: int) -> None:
        text = "é" * (size // 2) + "a" * (size % 2)
        reader = StreamReader()
        reader.feed_data(text_frame(text))
        with pytest.raises(StopIteration) as ended:
            next(Frame.parse(reader.read_exact, mask=False))
        frame = ended.value.value
        assert (frame.opcode, frame.fin, frame.data.decode()) == (Opcode.TEXT, True, text)
        assert next(reader.at_eof(), None) is None


class TestFaults:
    async def test_a_delayed_reply_does_not_hold_up_the_next(self) -> None:
        async with stream_at_sandbox() as stream:
            await stream.login()
            await _strike(stream.bot, kind="delay", delay_s=2.5, match="WS */order.place")
            assert (await stream.ask("order.place", args=BUY))["status"] == 200
            assert stream.bot.system.slept == [2.5]

    @pytest.mark.parametrize("executed", [False, True])
    async def test_a_status_instead_of_the_reply(self, *, executed: bool) -> None:
        async with stream_at_sandbox() as stream:
            await stream.login()
            await _strike(
                stream.bot, kind="status", status=502, executed=executed, match=f"WS {PATH}/order.*"
            )
            reply = await stream.ask("order.place", id=1, args=BUY)
            assert (reply["id"], reply["status"], reply["detail"]) == (1, 502, "Injected fault")
            assert (await stream.bot.journal())[-1]["executed"] is executed

    @pytest.mark.parametrize("executed", [False, True])
    async def test_silence_leaves_the_stream_open(self, *, executed: bool) -> None:
        async with stream_at_sandbox() as stream:
            await stream.login()
            await _strike(stream.bot, kind="silence", executed=executed, match="WS */order.place", next=1)
            await stream.ws.send_json({"op": "order.place", "id": 1, "args": BUY})
            assert (await stream.ask("order.place", id=2, args=BUY))["id"] == 2
            orders = (await stream.bot.get(f"/user/{stream.bot.address}/openOrders")).body["orders"]
            assert len(orders) == 1 + executed

    @pytest.mark.parametrize(
        ("kind", "executed"), [("reset_before", False), ("reset_after", True), ("cut", True), ("stall", True)]
    )
    async def test_a_stream_that_ends_in_place_of_a_reply(self, kind: str, *, executed: bool) -> None:
        async with stream_at_sandbox() as stream:
            await stream.login()
            await _strike(stream.bot, kind=kind, match="WS */order.place")
            await stream.ws.send_json({"op": "order.place", "args": BUY})
            kind_of_end, code = await stream.end()
            assert kind_of_end in {aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR}
            assert code in {None, 1006}
            assert (await stream.bot.journal())[-1]["executed"] is executed

    async def test_an_opening_that_is_refused(self) -> None:
        async with bot_at_sandbox() as bot:
            await _strike(bot, kind="status", status=503, match=f"GET {PATH}")
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await bot.http.ws_connect(bot.sandbox.base_url + PATH)
            assert refused.value.status == 503

    @pytest.mark.parametrize("kind", ["reset_before", "reset_after", "silence"])
    async def test_an_opening_that_is_not_answered(self, kind: str) -> None:
        async with bot_at_sandbox() as bot:
            await _strike(bot, kind=kind, match=f"GET {PATH}")
            with pytest.raises(aiohttp.ClientError):
                await bot.http.ws_connect(bot.sandbox.base_url + PATH)

    @pytest.mark.parametrize("kind", ["cut", "stall"])
    async def test_a_stream_that_vanishes_once_it_is_open(self, kind: str) -> None:
        async with bot_at_sandbox() as bot:
            await _strike(bot, kind=kind, delay_s=30, match=f"GET {PATH}")
            async with open_stream(bot) as stream:
                assert (await stream.end())[1] in {None, 1006}

    async def test_a_limit_refuses_openings(self) -> None:
        async with stream_at_sandbox(limit_kind="fixed_from_first", limit_requests=1) as stream:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await stream.bot.http.ws_connect(stream.bot.sandbox.base_url + PATH)
            assert refused.value.status == 429
            assert (await stream.ask("ping"))["success"] is True

    async def test_an_open_stream_holds_no_place_under_a_concurrency_limit(self) -> None:
        async with stream_at_sandbox(limit_kind="concurrency", limit_requests=1) as stream:
            await stream.login()
            assert (await stream.bot.order()).status == 200


class TestEnds:
    async def test_they_vanish_or_are_closed_as_the_control_call_says(self) -> None:
        async with bot_at_sandbox() as bot:
            async with open_stream(bot) as one, open_stream(bot) as two:
                assert (await bot.control("DELETE", "streams")).body == {"ended": 2}
                for stream in (one, two):
                    assert await stream.end() == (aiohttp.WSMsgType.CLOSED, 1006)
            async with open_stream(bot) as stream:
                assert (await bot.control("DELETE", "streams?code=1013")).body == {"ended": 1}
                assert await stream.end() == (aiohttp.WSMsgType.CLOSE, 1013)

    async def test_a_reset_closes_them(self) -> None:
        async with stream_at_sandbox() as stream:
            await stream.follow()
            await stream.bot.control("POST", "reset")
            assert await stream.end() == (aiohttp.WSMsgType.CLOSE, 1012)

    async def test_the_end_of_the_sandbox_closes_them(self) -> None:
        async with aiohttp.ClientSession() as http:
            async with running_sandbox() as sandbox:
                ws = await http.ws_connect(sandbox.base_url + PATH)
            message = await ws.receive()
            assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, 1001)

    async def test_a_bot_that_does_not_read_is_cut_off(self, monkeypatch: pytest.MonkeyPatch) -> None:
        opened: list[Opened] = []
        left = asyncio.Event()
        monkeypatch.setattr(Streams, "enter", lambda _, state: opened.append(state))
        monkeypatch.setattr(Streams, "leave", lambda *_: left.set())
        async with stream_at_sandbox():
            for _ in range(100):
                opened[0].send("x" * (1 << 20))  # nothing is read until this has ended
            await left.wait()
