"""What is passed on, in which order, and how a stream ends."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import WSMsgType, web
from websockets.frames import Frame, Opcode

from rig.bot import bot_at
from rig.stream_lab import TOKENS, Lab, closed_as, running_lab
from rig.stream_venue import HOST
from rig.wire import PATIENCE_S, until

PUBLIC = f"/{HOST}/public/x"


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    async with running_lab(tmp_path) as lab:
        yield lab


async def test_text_and_binary_pass_both_ways_in_order(lab: Lab) -> None:
    stream = await lab.open(PUBLIC)
    sent: list[str | bytes] = []
    for number in range(200):
        data = f"{number} ".encode() + os.urandom(number * 37 % 1000)
        if number % 3:
            await stream.send_bytes(data)
            sent.append(data)
        else:
            await stream.send_str(data.hex())
            sent.append(data.hex())
    came = [(await stream.receive()).data for _ in sent]
    assert came == sent == lab.exchange.messages
    await stream.close()


async def test_large_messages_pass(lab: Lab) -> None:
    stream = await lab.open(PUBLIC)
    large = "x" * 900_000
    await stream.send_str(large)
    assert await stream.receive_str() == large
    await stream.close()


@pytest.mark.parametrize("from_bot", [True, False])
async def test_pings_and_pongs_pass(lab: Lab, *, from_bot: bool) -> None:
    async def react(stream: web.WebSocketResponse, data: Any) -> None:
        del data
        await stream.ping(b"are you there")

    lab.exchange.react = react
    stream = await lab.open(PUBLIC, autoping=False)
    if from_bot:
        await stream.ping(b"hello")
        await lab.exchange.until(lambda: ("PING", b"hello") in lab.exchange.messages)
    else:
        await stream.send_str("ping me")
        message = await stream.receive()
        assert (message.type, message.data) == (WSMsgType.PING, b"are you there")
        await stream.pong(b"are you there")
        await lab.exchange.until(lambda: ("PONG", b"are you there") in lab.exchange.messages)
    await stream.close()


@pytest.mark.parametrize(("code", "reason"), [(1000, ""), (1001, "off"), (3333, "own"), (4999, "é")])
async def test_the_close_of_a_bot_reaches_the_exchange(lab: Lab, code: int, reason: str) -> None:
    stream = await lab.open(PUBLIC)
    await stream.close(code=code, message=reason.encode())
    await lab.exchange.until(lambda: bool(lab.exchange.closed))
    assert lab.exchange.closed[0][0] == code
    await until(lambda: len(lab.gateway.streams) == 0)


async def test_the_close_of_the_exchange_reaches_the_bot(lab: Lab) -> None:
    stream = await lab.open(PUBLIC)
    await stream.send_json({"op": "bye"})
    assert closed_as(await stream.receive()) == (4001, "bye")
    await until(lambda: len(lab.gateway.streams) == 0)


async def test_an_exchange_that_vanishes_is_1012(lab: Lab) -> None:
    stream = await lab.open(PUBLIC)
    await stream.send_json({"op": "vanish"})
    code, reason = closed_as(await stream.receive())
    assert (code, reason.partition(":")[0]) == (1012, "upstream_broken")
    await until(lambda: len(lab.gateway.streams) == 0)


UPGRADE = (
    f"GET {PUBLIC} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    f"X-Gateway-Token: {TOKENS['GRID']}\r\n\r\n"
).encode()


async def test_a_bot_that_vanishes_closes_the_exchange(lab: Lab) -> None:
    reader, writer = await asyncio.open_connection(*lab.address)
    writer.write(UPGRADE)
    assert b"101 Switching" in await reader.readuntil(b"\r\n\r\n")
    writer.transport.abort()
    await lab.exchange.until(lambda: bool(lab.exchange.closed))
    assert lab.exchange.closed[0][0] == 1001
    await until(lambda: len(lab.gateway.streams) == 0)


async def test_bytes_behind_an_upgrade_that_was_not_answered_open_nothing(lab: Lab) -> None:
    async with bot_at(*lab.address) as bot:
        reply = await bot.ask(UPGRADE + b"\x81\x80\x00\x00\x00\x00")
    assert b" 400 " in reply.raw.partition(b"\r\n")[0]
    assert lab.exchange.opened == []


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(Frame(Opcode.TEXT, b"\xff", fin=True), 1007, id="no UTF-8"),
        pytest.param(Frame(Opcode.CONT, b"x", fin=True), 1002, id="a continuation of nothing"),
        pytest.param(Frame(Opcode.TEXT, b"x", fin=True, rsv1=True), 1002, id="a reserved bit"),
        pytest.param(Frame(Opcode.TEXT, b"x" * 2_000_000, fin=True), 1009, id="too large"),
    ],
)
async def test_what_is_no_message_closes_the_stream(lab: Lab, data: Frame, code: int) -> None:
    reader, writer = await asyncio.open_connection(*lab.address)
    writer.write(UPGRADE)
    await reader.readuntil(b"\r\n\r\n")
    writer.write(Frame.serialize(data, mask=True) if not data.rsv1 else _with_reserved_bit(data))
    async with asyncio.timeout(PATIENCE_S):
        head = await reader.readexactly(4)
    assert (head[0], int.from_bytes(head[2:4], "big")) == (0x88, code)
    writer.close()
    await until(lambda: len(lab.gateway.streams) == 0)
    assert [one for one in lab.exchange.messages if not isinstance(one, tuple)] == []


def _with_reserved_bit(frame: Frame) -> bytes:
    raw = Frame(frame.opcode, frame.data, fin=True).serialize(mask=True)
    return bytes([raw[0] | 0x40]) + raw[1:]


@pytest.mark.parametrize("opcode", [Opcode.TEXT, Opcode.PING, Opcode.CONT])
async def test_a_bot_that_sends_much_leaves_others_their_turn(lab: Lab, opcode: Opcode) -> None:
    reader, writer = await asyncio.open_connection(*lab.address)
    writer.write(UPGRADE)
    await reader.readuntil(b"\r\n\r\n")
    count, messages, turns = 5000, 5000, 0
    flood = Frame(opcode, b"", fin=opcode is not Opcode.CONT).serialize(mask=True) * count
    if opcode is Opcode.CONT:
        messages = 1
        flood = Frame(Opcode.TEXT, b"x", fin=False).serialize(mask=True) + flood
        flood += Frame(Opcode.CONT, b"").serialize(mask=True)
    writer.write(flood)
    while len(lab.exchange.messages) < messages:
        await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop
        turns += 1
    assert turns > count / (100 if opcode is Opcode.CONT else 8)
    writer.transport.abort()


async def test_fragments_are_joined(lab: Lab) -> None:
    reader, writer = await asyncio.open_connection(*lab.address)
    writer.write(UPGRADE)
    await reader.readuntil(b"\r\n\r\n")
    for opcode, data, fin in (
        (Opcode.TEXT, b"on", False),
        (Opcode.PING, b"!", True),
        (Opcode.CONT, b"e", True),
    ):
        writer.write(Frame(opcode, data, fin=fin).serialize(mask=True))
    await lab.exchange.until(lambda: lab.exchange.messages == [("PING", b"!"), "one"])
    writer.transport.abort()


async def test_a_bot_that_does_not_read_holds_the_exchange_back(lab: Lab) -> None:
    """What the gateway holds of a fast stream is bounded: the exchange cannot get rid of more."""
    passed = 0
    is_blocked = asyncio.Event()

    async def react(stream: web.WebSocketResponse, data: Any) -> None:
        nonlocal passed
        del data
        try:
            async with asyncio.timeout(PATIENCE_S):
                while passed < 20_000:
                    sending = asyncio.ensure_future(stream.send_bytes(b"x" * 10_000))
                    done, _ = await asyncio.wait([sending], timeout=0.3)
                    if not done:
                        is_blocked.set()
                        await sending
                    passed += 1
        except (ConnectionError, TimeoutError):
            pass

    lab.exchange.react = react
    reader, writer = await asyncio.open_connection(*lab.address, limit=1024)
    writer.write(UPGRADE)
    await reader.readuntil(b"\r\n\r\n")
    writer.write(Frame(Opcode.TEXT, b"go", fin=True).serialize(mask=True))
    await is_blocked.wait()
    assert passed * 10_000 < 30_000_000  # the system's buffers have most of it
    other = await lab.open(f"/{HOST}/private")
    await other.close()
    writer.transport.abort()


async def test_a_drain_leaves_streams_their_time_and_says_goodbye(tmp_path: Path) -> None:
    async with running_lab(tmp_path, listen={"tcp": "127.0.0.1:0", "drain": 0.2}) as lab:
        stream = await lab.open()
        draining = asyncio.ensure_future(lab.gateway.drain())
        await until(lambda: lab.gateway.is_draining)
        await stream.send_json({"op": "order.cancel", "id": "1"})
        assert (await stream.receive_json())["id"] == "1"
        assert closed_as(await stream.receive()) == (1001, "draining: the gateway is shutting down")
        await draining
        assert lab.exchange.closed[0][0] == 1001


async def test_a_drain_refuses_orders(tmp_path: Path) -> None:
    async with running_lab(tmp_path, listen={"tcp": "127.0.0.1:0", "drain": 5.0}) as lab:
        stream = await lab.open()
        draining = asyncio.ensure_future(lab.gateway.drain())
        await until(lambda: lab.gateway.is_draining)
        await stream.send_json({"op": "order.place", "id": "1"})
        code, reason = closed_as(await stream.receive())
        assert (code, reason.partition(":")[0]) == (1008, "draining")
        await draining


async def reload(lab: Lab, **tables: Any) -> None:
    """Reload with other tables."""
    lab.configs.append(lab.configs[-1].with_tables(**tables))
    await lab.gateway.reloader.reload("a test")


async def test_a_reload_keeps_streams_and_gives_them_what_the_bot_may_now(lab: Lab) -> None:
    stream = await lab.open()
    bots = dict(lab.configs[0].bots)
    await reload(lab, bots={**bots, "grid": bots["grid"].model_copy(update={"may": ("read",)})})
    await stream.send_json({"op": "ping"})
    assert await stream.receive_json() == {"op": "ping"}
    await stream.send_json({"op": "order.place", "id": "1"})
    assert closed_as(await stream.receive())[0] == 1008
    assert lab.exchange.texts("order.place") == []


async def test_a_reload_closes_the_streams_of_a_bot_that_is_gone(lab: Lab) -> None:
    gone, stays = await lab.open(), await lab.open(bot="EYE")
    bots = {name: bot for name, bot in lab.configs[0].bots.items() if name != "grid"}
    await reload(lab, bots=bots)
    code, reason = closed_as(await gone.receive())
    assert (code, "the bot grid is gone" in reason) == (1012, True)
    await stays.send_json({"op": "ping"})
    assert json.loads(await stays.receive_str()) == {"op": "ping"}
    await stays.close()


async def test_a_reload_closes_the_streams_whose_token_is_replaced(lab: Lab) -> None:
    stream, stays = await lab.open(), await lab.open(bot="TIED")
    bots = dict(lab.configs[0].bots)
    grid, eye = bots["grid"], bots["eye"]
    bots["grid"] = grid.model_copy(update={"token": eye.token})
    bots["eye"] = eye.model_copy(update={"token": grid.token})
    await reload(lab, bots=bots)
    code, reason = closed_as(await stream.receive(timeout=PATIENCE_S))
    assert (code, "token or the address of the bot grid is no longer valid" in reason) == (1012, True)
    await stays.send_json({"op": "ping"})
    assert await stays.receive_json() == {"op": "ping"}
    await stays.close()


async def test_a_reload_closes_the_streams_whose_key_is_replaced(lab: Lab) -> None:
    stream, public = await lab.open(), await lab.open(PUBLIC)
    keys = lab.configs[0].keys
    await reload(lab, keys={"main": keys["main"].model_copy(update={"api_key": "another-key"})})
    code, reason = closed_as(await stream.receive())
    assert (code, "the key main has been replaced" in reason) == (1012, True)
    await public.send_str("still there")
    assert await public.receive_str() == "still there"
    await public.close()
    again = await lab.open()
    await again.send_json({"op": "login"})
    await again.receive_json()
    assert lab.exchange.texts("login")[-1]["key"] == "another-key"
    await again.close()


async def test_a_reload_closes_the_streams_of_an_exchange_with_another_address(lab: Lab) -> None:
    stream = await lab.open()
    address = lab.configs[0].base_url
    assert address is not None
    await reload(lab, base_url=replace(address, host="localhost"))
    code, reason = closed_as(await stream.receive())
    assert (code, "has another address" in reason) == (1012, True)


async def test_messages_are_counted(lab: Lab) -> None:
    stream = await lab.open(PUBLIC)
    for _ in range(3):
        await stream.send_str("x")
        await stream.receive_str()
    [status] = lab.gateway.streams.statuses()
    assert (status.bot, status.stream, status.is_logged_in) == ("grid", f"{HOST}/public/**", None)
    assert (status.to_bot.messages, status.to_exchange.messages) == (3, 3)
    await stream.close()
    await until(lambda: len(lab.gateway.streams) == 0)
    counts = {labels[2]: one.messages for labels, one in lab.gateway.streams.traffic().items()}
    assert counts == {"to_bot": 3, "to_exchange": 3}
