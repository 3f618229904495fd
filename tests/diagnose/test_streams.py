"""`sealgate check --streams`, with an exchange that answers by a script: what is sent, and what is told."""

import contextlib
import gzip
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import WSMsgType, web

from rig.ports import free_port
from rig.proxies import running_proxy
from rig.setups import Setup, a_setup, lines_of, sandbox_setup
from sealgate.machine.system import System

SECRET = "correct-horse-battery-staple-0123456789"
HEAD = """name = "mine"
title = "Mine"
words = ["/msg"]
[signing]
message = "{timestamp}{path}"
[signing.headers]
X-KEY = "{api_key}"
X-SIGN = "{signature}"
X-PASS = "{passphrase}"
[clock]
path = "/time"
[reads]
signed = "/account"
[[routes]]
match = "GET /account"
[[replies]]
at = "/code"
is = "10002"
means = "timestamp"
kind = "wrong_time"
[[replies]]
at = "/code"
is = "10003"
means = "signature"
kind = "wrong_sign"
[limits]
stream_opens = "1000/1s"
[environments.test]
streams = { "stream.mine.example" = "test.mine.example:9443" }
"""
LOGIN = """
[[streams]]
host = "stream.mine.example"
paths = ["/private"]
[[streams.messages]]
when = { "/op" = "login" }
login = true
signs = "LOGIN{host}{path}{timestamp}"
puts = { "/key" = "{api_key}", "/pass" = "{passphrase}", "/time" = "{timestamp}", "/sign" = "{signature}" }
"""
REPLY = """
[streams.messages.reply]
when = { "/op" = "login" }
limited = { "/code" = 429 }
done = { "/code" = 0 }
"""
HANDSHAKE = """
[[streams]]
host = "stream.mine.example"
paths = ["/signed/{account}"]
[streams.handshake]
signs = "{timestamp}{path}"
headers = { X-KEY = "{api_key}", X-TIME = "{timestamp}", X-SIGN = "{signature}" }
query = { key = "{api_key}" }
path = "/signed/{uid}"
"""
CHALLENGE = """
[[streams]]
host = "stream.mine.example"
paths = ["/private"]
[[streams.messages]]
when = { "/op" = "challenge" }
puts = { "/key" = "{api_key}" }
[[streams.messages]]
when = { "/op" = "subscribe", "/signed" = "*" }
login = true
message = '{"op":"subscribe","feed":"fills","signed":""}'
signs = "{challenge}"
puts = { "/key" = "{api_key}", "/signed" = "{signature}" }
reply = { when = { "/op" = ["subscribed", "error"] }, done = { "/op" = "subscribed" } }
[streams.challenge]
when = { "/op" = "challenge" }
at = "/text"
message = '{"op":"challenge"}'
"""

React = Callable[[web.WebSocketResponse, str], Awaitable[None]]


@dataclass(repr=False)
class Exchange:
    """The exchange: `opened` are the upgrades, `sent` all messages, `ends` how each stream was closed."""

    react: React | None = None
    refusal: web.Response | None = None  # instead of an upgrade
    greets: Callable[[web.WebSocketResponse], Awaitable[None]] | None = None
    account: tuple[int, str] = (200, "{}")
    opened: list[web.Request] = field(default_factory=list)
    sent: list[Any] = field(default_factory=list)
    ends: list[int | None] = field(default_factory=list)
    url: str = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/time":
            return web.json_response({"time": int(System().wall() * 1000)})
        if request.path == "/account":
            status, text = self.account
            return web.Response(status=status if "X-SIGN" in request.headers else 401, text=text)
        self.opened.append(request)
        if self.refusal is not None:
            return self.refusal
        stream = web.WebSocketResponse()
        await stream.prepare(request)
        if self.greets is not None:
            await self.greets(stream)
        async for message in stream:
            self.sent.append(message.data)
            if message.type is WSMsgType.TEXT and self.react is not None:
                await self.react(stream, message.data)
        self.ends.append(stream.close_code)
        return stream

    @property
    def logins(self) -> list[dict[str, Any]]:
        return [json.loads(text) for text in self.sent]


def answers(**members: Any) -> React:
    """Return a script that answers each message so; a member that is "$x" is that of the message."""

    async def react(stream: web.WebSocketResponse, text: str) -> None:
        got = json.loads(text)
        said = {
            name: got[one[1:]] if isinstance(one, str) and one.startswith("$") else one
            for name, one in members.items()
        }
        await stream.send_json({"op": "login", **said})

    return react


@contextlib.asynccontextmanager
async def running(folder: Path, venue: str = LOGIN + REPLY) -> AsyncIterator[tuple[Setup, Exchange]]:
    """Run an exchange, and yield it with a set-up for it."""
    exchange = Exchange(react=answers(code=0))
    app = web.Application()
    app.router.add_get("/{path:.*}", exchange.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    address = "{}:{}".format(*runner.addresses[0][:2])
    exchange.url = f"ws://{address}"
    try:
        setup = a_setup(folder, f"http://{address}")
        setup.has(VENUE=str(setup.write("mine.toml", HEAD + venue)), UPSTREAM__STREAMS=exchange.url)
        setup.has_key("main", "ak-public-1", SECRET)
        setup.has(KEYS__MAIN__PASSPHRASE=f"file:{setup.write('phrase', 'a phrase of the key')}")
        setup.hidden.append("a phrase of the key")
        yield setup, exchange
    finally:
        await runner.cleanup()


def has_second_key(setup: Setup) -> None:
    """Add a second key, and a bot for each."""
    setup.has_key("second", "ak-public-2", SECRET)
    setup.has(KEYS__SECOND__PASSPHRASE=f"file:{setup.folder / 'phrase'}")
    for name, key in (("grid", "main"), ("news", "second")):
        token = setup.write(f"{name}.token", f"a-token-as-long-as-those-of-this-program-are-{name}")
        setup.has(**{f"BOTS__{name.upper()}__TOKEN": f"file:{token}", f"BOTS__{name.upper()}__KEY": key})


def last(output: str, level: str, area: str = "keys.main") -> str:
    """Return the last line with a level and an area, which is about the stream."""
    return lines_of(output, f"{level}  {area}")[-1]


async def test_the_sandbox_says_yes(tmp_path: Path) -> None:
    async with sandbox_setup(tmp_path) as setup:
        setup.has(UPSTREAM__STREAMS=setup.environ["SEALGATE_BASE_URL"].replace("http", "ws"))
        result = await setup.check("--streams")
    assert result.exit_code == 0
    assert "the login on stream.example.com/v1/stream is accepted (" in last(result.stdout, "ok")
    assert "not tried" not in result.stdout


async def test_one_login_is_sent_and_nothing_else(tmp_path: Path) -> None:
    async with running(tmp_path) as (setup, exchange):
        has_second_key(setup)
        result = await setup.check("--streams")
        assert result.exit_code == 0
        first, second = exchange.logins
        assert (first["op"], first["key"], second["key"]) == ("login", "ak-public-1", "ak-public-2")
        signed = f"LOGINstream.mine.example/private{first['time']}".encode()
        assert first["sign"] == hmac.digest(SECRET.encode(), signed, "sha256").hex()
        assert exchange.ends == [1000, 1000]
        assert {request.path_qs for request in exchange.opened} == {"/private"}
    for alias in ("main", "second"):
        line = last(result.stdout, "ok", f"keys.{alias}")
        assert "the login on stream.mine.example/private is accepted (" in line


async def test_without_the_option_no_stream_is_opened_and_that_is_said(tmp_path: Path) -> None:
    async with running(tmp_path) as (setup, exchange):
        result = await setup.check()
        assert (result.exit_code, exchange.opened) == (0, [])
        [line] = lines_of(result.stdout, "ok  streams")
        assert line.endswith("not tried: --streams logs in once with each key")
        assert lines_of((await setup.check("--offline", "--streams")).stdout, "ok  streams") == []


async def test_where_no_stream_has_a_login_that_is_said(tmp_path: Path) -> None:
    async with running(tmp_path, '[[streams]]\nhost = "stream.mine.example"\n') as (setup, exchange):
        assert lines_of((await setup.check()).stdout, "ok  streams") == []
        [line] = lines_of((await setup.check("--streams")).stdout, "ok  streams")
        assert "not tried: no stream has a login: they are public, or opened with a token" in line
        assert exchange.opened == []


async def test_where_there_is_none_for_the_kind_of_key_that_is_said(tmp_path: Path) -> None:
    async with running(tmp_path, LOGIN + 'kinds = ["rsa"]\n') as (setup, _):
        line = last((await setup.check("--streams")).stdout, "ok")
        assert "not tried on a stream: the venue's file has no login for hmac keys" in line


async def test_the_host_is_that_of_the_environment(tmp_path: Path) -> None:
    async with running(tmp_path) as (setup, exchange):
        setup.has(ENVIRONMENT="test")
        line = last((await setup.check("--streams")).stdout, "ok")
        assert "the login on test.mine.example:9443/private is accepted" in line
        [login] = exchange.logins
        signed = f"LOGINtest.mine.example:9443/private{login['time']}".encode()
        assert login["sign"] == hmac.digest(SECRET.encode(), signed, "sha256").hex()


async def test_a_proxy_leads_to_streams_too(tmp_path: Path) -> None:
    async with running(tmp_path) as (setup, exchange), running_proxy("http") as proxy:
        setup.has(UPSTREAM__PROXY=proxy.url)
        assert "is accepted (" in last((await setup.check("--streams")).stdout, "ok")
        assert len(exchange.logins) == 1
        assert len(proxy.asked) > 1


async def test_a_refused_login_is_told_in_the_exchanges_words_without_what_is_secret(tmp_path: Path) -> None:
    async with running(tmp_path) as (setup, exchange):
        exchange.react = answers(code=7, msg="$sign", key="$key", phrase="$pass")
        result = await setup.check("--streams")
        [login] = exchange.logins
        assert result.exit_code == 1
        assert "the login on stream.mine.example/private was refused, …" in last(result.stdout, "fail")
        assert login["sign"] not in result.stdout
        assert "ak-public-1" not in result.stdout
        # The signed read is accepted, so that neither key nor secret is to blame.
        assert "possible: the key lacks what this stream needs" in result.stdout
        assert "possible: the stream and the key belong to different environments or regions" in result.stdout
        assert "key or its secret is wrong" not in result.stdout
        # A message without words is told as it is.
        exchange.react = answers(code=7)
        line = last((await setup.check("--streams")).stdout, "fail")
        assert 'was refused, {"op":"login","code":7}' in line


async def test_what_the_venues_rules_know_of_a_refusal_is_its_cause(tmp_path: Path) -> None:
    async with running(tmp_path) as (setup, exchange):
        exchange.react = answers(code=10002, msg="Timestamp for this request is outside of the window.")
        line = last((await setup.check("--streams")).stdout, "fail")
        assert "probably the exchange checks timestamps against another clock than /time shows" in line
        # What an accepted read speaks against is not blamed.
        exchange.react = answers(code=10003, msg="Error sign.")
        assert "which can mean:" in last((await setup.check("--streams")).stdout, "fail")
        exchange.account = 401, '{"code": 10003, "msg": "Error sign."}'
        line = last((await setup.check("--streams")).stdout, "fail")
        assert "most likely the secret belongs to another key, or was replaced" in line
        exchange.react = answers(code=7, msg="no")
        line = last((await setup.check("--streams")).stdout, "fail")
        assert (
            "most likely the key or its secret is wrong; fix the key's signed read first (keys.main above)"
            in line
        )


async def test_a_refusal_for_the_limit_ends_it(tmp_path: Path) -> None:
    async with running(tmp_path) as (setup, exchange):
        has_second_key(setup)
        exchange.react = answers(code=429, msg="too many logins")
        line = last((await setup.check("--streams")).stdout, "warn")
        assert (
            "was refused because of the rate limit, too many logins; the check stopped here; wait a while"
            in line
        )
        assert len(exchange.opened) == 1
        exchange.refusal = web.Response(status=429, text='{"msg": "slow down"}')
        line = last((await setup.check("--streams")).stdout, "warn")
        assert "was refused because of the rate limit, 429 slow down" in line
        assert len(exchange.opened) == 2


async def test_an_upgrade_that_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as (setup, exchange):
        exchange.refusal = web.Response(status=403, text='{"msg": "ak-public-1 is not known"}')
        line = last((await setup.check("--streams")).stdout, "fail")
        assert "the login on stream.mine.example/private was refused, 403 … is not known" in line
        assert exchange.sent == []


async def test_an_exchange_that_hangs_up(tmp_path: Path) -> None:
    async def closes(stream: web.WebSocketResponse, _: str) -> None:
        await stream.close(code=4001, message=b"bad signature")

    async def vanishes(stream: web.WebSocketResponse, _: str) -> None:
        assert stream._req is not None
        assert stream._req.transport is not None
        stream._req.transport.abort()

    async with running(tmp_path) as (setup, exchange):
        exchange.react = closes
        line = last((await setup.check("--streams")).stdout, "fail")
        assert "was refused, it closed the stream: 4001 bad signature" in line
        exchange.react = vanishes
        line = last((await setup.check("--streams")).stdout, "fail")
        assert "was refused, it closed the connection without a reason" in line


async def test_what_cannot_be_reached(tmp_path: Path) -> None:
    async with running(tmp_path) as (setup, _):
        setup.has(UPSTREAM__STREAMS=f"ws://127.0.0.1:{free_port()}")
        line = last((await setup.check("--streams")).stdout, "fail")
        assert "the login on stream.mine.example/private is not possible: cannot connect to 127.0.0.1" in line
        assert line.endswith("check the network, environment and upstream.streams")


async def test_other_messages_pings_and_compressed_ones_are_no_reply(tmp_path: Path) -> None:
    async def reacts(stream: web.WebSocketResponse, _: str) -> None:
        await stream.ping(b"are you there")
        await stream.send_str("hello")
        await stream.send_bytes(b"\xff\xfe")
        await stream.send_json({"op": "ping", "code": 1})
        await stream.send_bytes(gzip.compress(b'{"op": "login", "code": 0}'))

    async with running(tmp_path) as (setup, exchange):
        exchange.react = reacts
        assert "is accepted (" in last((await setup.check("--streams")).stdout, "ok")


async def test_no_answer_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sealgate.diagnose.streams._REPLY_S", 0.05)
    monkeypatch.setattr("sealgate.diagnose.streams._CLOSING_S", 0.05)
    async with running(tmp_path) as (setup, exchange):
        exchange.react = answers(op="news")
        line = last((await setup.check("--streams")).stdout, "fail")
        assert 'was not answered; the last message is {"op":"news"}; look at the exchange' in line
        exchange.react = None
        assert "private was not answered; look at" in last((await setup.check("--streams")).stdout, "fail")


async def test_where_the_file_does_not_say_what_answers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, LOGIN) as (setup, exchange):
        exchange.react = answers(ok=True)
        result = await setup.check("--streams")
        line = last(result.stdout, "warn")
        assert "does not describe the reply; the reply is {" in line
        assert result.exit_code == 0
        monkeypatch.setattr("sealgate.diagnose.streams._REPLY_S", 0.05)
        exchange.react = None
        assert "no reply arrived; compare" in last((await setup.check("--streams")).stdout, "warn")


async def test_a_signed_handshake(tmp_path: Path) -> None:
    async def closes(stream: web.WebSocketResponse) -> None:
        await stream.close(code=4003, message=b"no such user")

    async with running(tmp_path, HANDSHAKE) as (setup, exchange):
        line = last((await setup.check("--streams")).stdout, "fail")
        assert "cannot be made: the path has a uid; set keys.main.uid" in line
        setup.has(KEYS__MAIN__UID="77")
        line = last((await setup.check("--streams")).stdout, "ok")
        assert "the signed handshake on stream.mine.example/signed/{account} is accepted (" in line
        [request] = exchange.opened
        assert request.path_qs == "/signed/77?key=ak-public-1"
        signed = f"{request.headers['X-TIME']}/".encode()
        assert request.headers["X-SIGN"] == hmac.digest(SECRET.encode(), signed, "sha256").hex()
        assert exchange.sent == []
        exchange.greets = closes
        line = last((await setup.check("--streams")).stdout, "fail")
        assert "was refused, it closed the stream: 4003 no such user" in line
        exchange.refusal = web.Response(status=401, text=request.headers["X-SIGN"])
        assert "was refused, 401 " in last((await setup.check("--streams")).stdout, "fail")


async def test_a_challenge_is_asked_for_and_signed(tmp_path: Path) -> None:
    async def reacts(stream: web.WebSocketResponse, text: str) -> None:
        got = json.loads(text)
        said = {"text": "what to sign"} if got["op"] == "challenge" else {}
        await stream.send_json({"op": {"subscribe": "subscribed"}.get(got["op"], got["op"]), **said})

    async def refuses(stream: web.WebSocketResponse, _: str) -> None:
        await stream.send_json({"op": "subscribed"})
        await stream.send_json({"op": "error", "msg": "no such key"})

    async with running(tmp_path, CHALLENGE) as (setup, exchange):
        exchange.react = reacts
        assert "is accepted (" in last((await setup.check("--streams")).stdout, "ok")
        asked, login = exchange.logins
        assert asked == {"op": "challenge", "key": "ak-public-1"}
        signed = hmac.digest(SECRET.encode(), b"what to sign", "sha256").hex()
        assert login == {"op": "subscribe", "feed": "fills", "signed": signed, "key": "ak-public-1"}
        exchange.react = refuses
        assert "was refused, no such key" in last((await setup.check("--streams")).stdout, "fail")
        assert len(exchange.logins) == 3


async def test_it_is_there_for_programs_too(tmp_path: Path) -> None:
    async with running(tmp_path) as (setup, exchange):
        exchange.react = answers(code=7, msg="no")
        document = json.loads((await setup.check("--streams", "--json")).stdout)
    found = [one for one in document["findings"] if one["text"].startswith("the login on ")]
    assert [(one["area"], one["level"], len(one["causes"])) for one in found] == [("keys.main", "fail", 2)]


async def test_openings_are_paced_as_the_exchange_wants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    async def sleep(_: System, seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(System, "sleep", sleep)
    async with running(tmp_path) as (setup, _):
        has_second_key(setup)
        setup.has(LIMITS__STREAM_OPENS="1/60s")
        await setup.check("--streams")
    first, second = waits
    assert first == 0
    assert 30 < second <= 60
