"""What a bot may say over a stream with rules: logins are signed, and nothing is sent that may not be."""

import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import unused_port

from rig.stream_lab import API_KEY, SECRET, TOKENS, Lab, closed_as, running_lab
from rig.stream_venue import HOST
from rig.wire import until


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    async with running_lab(tmp_path) as lab:
        yield lab


async def test_a_login_gets_the_key_the_time_and_the_signature(lab: Lab) -> None:
    stream = await lab.open(bot="EYE")
    await stream.send_str('{"op":"login", "key":"dummy","time":1,"sign":"dummy", "own": 1.0}')
    assert await stream.receive_json() == {"op": "login", "ok": True}
    [text] = lab.exchange.messages
    sent = json.loads(text)
    signed = hmac.new(SECRET.encode(), f"{sent['time']}LOGIN{HOST}".encode(), hashlib.sha256).hexdigest()
    assert text == f'{{"op":"login", "key":"{API_KEY}","time":{sent["time"]},"sign":"{signed}", "own": 1.0}}'
    assert [one.is_logged_in for one in lab.gateway.streams.statuses()] == [True]
    assert lab.gateway.streams.desk.tally.logins == {("lab", "main", "ok"): 1}
    await stream.close()


async def test_a_login_that_failed(lab: Lab) -> None:
    stream = await lab.open()
    await stream.send_json({"op": "login", "fails": True})
    assert await stream.receive_json() == {"op": "login", "ok": False}
    assert [one.is_logged_in for one in lab.gateway.streams.statuses()] == [False]
    assert lab.gateway.streams.desk.tally.logins == {("lab", "main", "failed"): 1}
    await stream.close()


async def test_members_that_the_file_drops_do_not_go_on(lab: Lab) -> None:
    stream = await lab.open()
    await stream.send_json({"op": "login", "url": f"ws://grid:{TOKENS['GRID']}@127.0.0.1/x"})
    await stream.receive_json()
    assert TOKENS["GRID"] not in lab.exchange.messages[0]
    await stream.close()


async def test_a_challenge_is_kept_and_signed(lab: Lab) -> None:
    stream = await lab.open(f"/{HOST}/challenge")
    await stream.send_json({"op": "challenge", "key": "dummy"})
    assert await stream.receive_json() == {"op": "challenge", "text": "what-to-sign"}
    await stream.send_json({"op": "subscribe", "sign": "dummy"})
    await stream.receive_json()
    sign = hmac.new(SECRET.encode(), b"what-to-sign", hashlib.sha256).hexdigest()
    assert list(map(json.loads, lab.exchange.messages)) == [
        {"op": "challenge", "key": API_KEY},
        {"op": "subscribe", "sign": sign},
    ]
    await stream.close()


async def test_a_challenge_that_has_not_come_is_not_signed(lab: Lab) -> None:
    stream = await lab.open(f"/{HOST}/challenge")
    await stream.send_json({"op": "subscribe"})
    code, reason = closed_as(await stream.receive())
    assert (code, reason.partition(":")[0]) == (1008, "bad_request")
    assert lab.exchange.texts("subscribe") == []


async def test_a_login_waits_for_the_clock_and_then_gives_up(tmp_path: Path) -> None:
    tables = {"base_url": f"http://127.0.0.1:{unused_port()}", "limits": {"max_wait": 0.05}}
    async with running_lab(tmp_path, waits=False, **tables) as lab:
        stream = await lab.open()
        await stream.send_json({"op": "login"})
        code, reason = closed_as(await stream.receive())
        assert (code, reason.partition(":")[0]) == (1008, "clock_unsynced")
        assert lab.exchange.messages == []


ORDER = {"op": "order.place", "id": "1", "args": {"symbol": "BTC", "size": "1"}}
TWICE = '{"op":"ping","op":"order.place","id":"1"}'


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps(ORDER), id="an order"),
        pytest.param(json.dumps({"op": "order.cancel"}), id="a cancel"),
        pytest.param(TWICE, id="a member twice"),
        pytest.param('{"op":"order.place","op":"ping"}', id="a member twice, the harmless one last"),
        pytest.param('{"\\u006fp":"ping"}', id="an escape in a name"),
        pytest.param('{"op":"ping","OP":"order.place"}', id="another case"),
        pytest.param('{"op":"ping","o_p":"order.place"}', id="a mark"),
        pytest.param('{"op":"ping"}{"op":"order.place"}', id="two values"),
        pytest.param('{"op":"ping"}\n{"op":"order.place"}', id="two lines"),
        pytest.param('[{"op":"order.place"}]', id="a list"),
        pytest.param('{"op":["order.place"]}', id="a list of calls"),
        pytest.param('{"op":{"op":"order.place"}}', id="an object"),
        pytest.param('"{\\"op\\":\\"order.place\\"}"', id="JSON in a text"),
        pytest.param("\ufeff" + json.dumps(ORDER), id="a byte order mark"),
        pytest.param("{'op':'order.place'}", id="single quotes"),
        pytest.param('{"op":"order.place",}', id="a comma too many"),
        pytest.param('{/**/"op":"order.place"}', id="a comment"),
        pytest.param("{op:'order.place'}", id="a bare name"),
        pytest.param('{"op":"order.place","x":NaN}', id="no number"),
        pytest.param('{"op":"order.place "}', id="a space"),
        pytest.param('{"op":" order.place"}', id="a space before"),
        pytest.param('{"op":"ORDER.PLACE"}', id="capitals"),
        pytest.param('{"op":"order.place\\u0000"}', id="a NUL"),
        pytest.param('{"op":"order\\u2024place"}', id="another dot"),
        pytest.param('{"op":null,"method":"order.place"}', id="another member"),
        pytest.param('{"type":"order.place"}', id="no op"),
        pytest.param("", id="nothing"),
        pytest.param("order.place", id="a word"),
        pytest.param("ping order.place", id="more than a word"),
        pytest.param('{"op":"subscribe","args":[],"Op":"order.place"}', id="begins as a subscription"),
        pytest.param("[" * 60_000 + "]" * 60_000, id="too deep"),
        pytest.param('{"op":"withdraw"}', id="a withdrawal"),
        pytest.param('{"op":"basic"}', id="what nobody may send"),
        pytest.param('{"op":"login","arms":4}', id="a login that arms"),
    ],
)
async def test_a_bot_that_may_only_read_sends_no_order_in_any_spelling(lab: Lab, text: str) -> None:
    stream = await lab.open(bot="EYE")
    await stream.send_str(text)
    code, reason = closed_as(await stream.receive())
    assert (code, reason.partition(":")[0]) in {(1008, "bot_forbidden"), (1008, "bad_request")}
    await until(lambda: bool(lab.exchange.closed))
    assert lab.exchange.messages in ([], [("CLOSE", 1001)])


@pytest.mark.parametrize(
    "data", [json.dumps({"op": "ping"}).encode(), json.dumps(ORDER).encode(), b"\x00\xff"]
)
async def test_binary_messages_are_not_sent_where_text_is_read(lab: Lab, data: bytes) -> None:
    stream = await lab.open()
    await stream.send_bytes(data)
    assert closed_as(await stream.receive())[0] == 1008
    assert lab.exchange.texts("order.place") == []


@pytest.mark.parametrize(
    ("bot", "message", "passes"),
    [
        ("EYE", {"op": "subscribe", "to": "x"}, True),
        ("EYE", {"op": "subscription.new"}, False),
        ("GRID", {"op": "something.else"}, True),
        ("GRID", {"op": "withdraw"}, False),
        ("GRID", {"op": "account.withdrawal"}, False),
        ("GRID", [{"op": "create_api_key"}], False),
        ("BOSS", {"op": "account.withdrawal"}, True),
        ("TIED", {"op": "something.else"}, False),
    ],
)
async def test_what_nobody_named_needs_trade_or_keys(lab: Lab, bot: str, message: Any, passes: bool) -> None:
    stream = await lab.open(bot=bot)
    await stream.send_json(message)
    if passes:
        assert await stream.receive_json() == message
        await stream.close()
    else:
        assert closed_as(await stream.receive())[0] == 1008
        assert json.dumps(message) not in lab.exchange.messages


async def test_a_bare_text_that_the_file_names_passes(lab: Lab) -> None:
    stream = await lab.open(bot="EYE")
    await stream.send_str("ping")
    assert await stream.receive_str() == "ping"
    await stream.close()


@pytest.mark.parametrize("path", [f"/{HOST}/private", f"/{HOST}/public/x"])
async def test_the_bots_own_token_goes_to_no_exchange(lab: Lab, path: str) -> None:
    stream = await lab.open(path)
    await stream.send_json({"op": "subscribe", "as": TOKENS["GRID"]})
    code, reason = closed_as(await stream.receive())
    assert (code, reason.partition(":")[0]) == (1008, "bot_forbidden")
    assert TOKENS["GRID"] not in reason
    await until(lambda: bool(lab.exchange.closed))
    assert TOKENS["GRID"] not in str(lab.exchange.messages)
