"""A scripted exchange on WebSocket, what arrives there, and what a venue's file makes of what a bot sends."""

import asyncio
import hmac
import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from typing import Any

from aiohttp import WSMsgType, web

from rig.wire import PATIENCE_S
from sealgate.keys.signer import KeyMaterial, sealer_of
from sealgate.venues.conditions import holds
from sealgate.venues.key_kinds import Kind
from sealgate.venues.stream_sealer import Moment, StreamSealer
from sealgate.venues.streams import MessageRule, Stream, find_stream, plain_host
from sealgate.venues.venue import Venue
from venues.private_keys import from_base64, key_of, public_of, verifies
from venues.stream_bots import Key
from venues.stream_calls import Login

# Headers of the way from one program to the next, and of the program.
_OF_THE_WAY = re.compile(r"host|connection|upgrade|sec-websocket-.*|accept(-.*)?|user-agent")


@dataclass
class Arrived:
    """One stream as it reached the exchange. `raw` is all of it as it came, `host` what the bot dialed."""

    path: str
    query: dict[str, Any]
    headers: dict[str, Any]
    messages: list[str] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    host: str = ""

    @property
    def tree(self) -> dict[str, Any]:
        """What is compared: all that is JSON is read."""
        headers = {name: text for name, text in self.headers.items() if not _OF_THE_WAY.fullmatch(name)}
        parts = {"path": self.path, "query": self.query, "headers": headers, "messages": self.messages}
        return {name: opened(part) for name, part in parts.items()}

    def tokens(self) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield of each JWT the algorithm, what is signed, and the signature."""
        for found in _JWT.finditer(" ".join(map(str, (*self.headers.values(), *self.messages)))):
            yield opened(found[0])["header"]["alg"], found[1].encode(), from_base64(found[4])


@dataclass(repr=False)
class ScriptedExchange:
    """A running server: it keeps what comes, and answers as a row says."""

    login: Login
    port: int = 0
    streams: list[Arrived] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # by REST
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    def forget(self) -> None:
        """Begin anew."""
        self.streams, self.asked = [], []

    async def until_enough(self) -> None:
        """Wait until the row's messages have come."""

        def is_enough() -> bool:
            return bool(self.streams) and len(self.streams[0].messages) >= self.login.sends

        try:
            async with asyncio.timeout(PATIENCE_S), self._news:
                await self._news.wait_for(is_enough)
        except TimeoutError:
            raise AssertionError(f"all that came: {self.streams} {self.asked}") from None

    @property
    def stream(self) -> Arrived:
        """The stream that was opened."""
        (only,) = self.streams
        return only

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Serve one request, which may be an upgrade."""
        head = f"{request.method} {request.raw_path} {request.raw_headers}"
        if request.headers.get("Upgrade", "").lower() != "websocket":
            self.asked.append(head + await request.text())
            answer = self.login.rest.get(request.path)
            return web.json_response(answer, status=404 if answer is None else 200)
        headers = _named((name.lower(), text) for name, text in request.headers.items())
        stream = Arrived(request.rel_url.raw_path, _named(request.query.items()), headers, raw=[head])
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async with self._news:
            self.streams.append(stream)
            self._news.notify_all()
        if self.login.greeting:
            await socket.send_str(self.login.greeting)
        async for message in socket:
            stream.raw.append(str(message.data))
            if message.type is WSMsgType.TEXT:
                async with self._news:
                    stream.messages.append(message.data)
                    self._news.notify_all()
                for reply in self.login.replies[len(stream.messages) - 1 : len(stream.messages)]:
                    await socket.send_str(filled(reply, message.data))
        return socket


def _named(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return what has each name: a text, or a list of several."""
    found: dict[str, list[str]] = {}
    for name, text in pairs:
        found.setdefault(name, []).append(text)
    return {name: texts if len(texts) > 1 else texts[0] for name, texts in found.items()}


def filled(reply: str, message: str) -> str:
    """Put what stands in a message where a reply has "$/pointer"."""
    return re.sub(r'"\$(/[^"]*)"', lambda found: json.dumps(at(opened(message), found[1])), reply)


@asynccontextmanager
async def scripted_exchange(login: Login) -> AsyncIterator[ScriptedExchange]:
    """Run an exchange that answers as a row says."""
    exchange = ScriptedExchange(login)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", exchange.serve)
    runner = web.AppRunner(app, shutdown_timeout=0, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    exchange.port = runner.addresses[0][1]
    try:
        yield exchange
    finally:
        await runner.cleanup()


@dataclass
class Tap:
    """A way to a server on this machine: `got` is all that came from there."""

    port: int
    got: bytearray = field(default_factory=bytearray)


@asynccontextmanager
async def tapped(port: int) -> AsyncIterator[Tap]:
    """Stand between a bot and a port."""
    tap = Tap(0)

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                kept += data
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_there, to_there = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pass_on(reader, to_there, bytearray()), pass_on(from_there, writer, tap.got))

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        tap.port = server.sockets[0].getsockname()[1]
        yield tap


_JWT = re.compile(r"((ey[\w-]+)\.([\w-]+))\.([\w-]+)")


def opened(value: Any) -> Any:
    """Read all JSON in texts, bare or in base64; of a JWT its header and its claims."""
    if isinstance(value, dict):
        return {name: opened(one) for name, one in value.items()}
    if isinstance(value, list):
        return [opened(one) for one in value]
    return _opened_text(value) if isinstance(value, str) else value


def _opened_text(text: str) -> Any:
    with suppress(ValueError):
        if found := _JWT.fullmatch(text.removeprefix("Bearer ")):
            return {"header": json.loads(from_base64(found[2])), "claims": json.loads(from_base64(found[3]))}
        if text.startswith(("{", "[")):
            return opened(json.loads(text))
        if text.startswith("ey"):
            return json.loads(from_base64(text))
    return text


def at(tree: Any, pointer: str) -> Any:
    """Return what stands at a JSON pointer. Raises KeyError or IndexError."""
    for step in pointer.split("/")[1:]:
        tree = tree[int(step)] if isinstance(tree, list) else tree[step]
    return tree


def put(tree: Any, pointer: str, value: Any) -> None:
    """Replace what stands at a JSON pointer."""
    parent, _, last = pointer.rpartition("/")
    inside = at(tree, parent)
    inside[int(last) if isinstance(inside, list) else last] = value


def times_of(login: Login, tree: Any) -> dict[int, int]:
    """Return what ccxt's clock has to say for the times in a tree, in ms, by the number of the message."""
    found = {}
    for pointer in login.clock:
        written = at(tree, pointer)
        if login.unit == "iso":
            ms = int(datetime.fromisoformat(f"{written}+00:00").timestamp()) * 1000
        else:
            ms = int(written) * (1000 if login.unit == "s" else 1)
        found[login.index_of(pointer)] = ms - login.ahead_s * 1000
    return found


def is_signed_by(arrived: Arrived, login: Login, key: Key, owner: str) -> bool:
    """Ask whether the signatures of all JWTs in what arrived are a key's."""
    return all(
        hmac.digest(key.secret.encode(), message, "sha256") == signature
        if algorithm == "HS256"
        else verifies(public_of(key_of(login.kind, owner)), message, signature)
        for algorithm, message, signature in arrived.tokens()
    )


def stream_of(venue: Venue, came: Arrived) -> Stream:
    """Return what a venue's file says of a stream."""
    stream = find_stream(venue.streams, plain_host(came.host), came.path)
    assert stream is not None, f"{venue.name}.toml has no [[streams]] for {came.host}{came.path}"
    return stream


def rule_of(stream: Stream, message: str, kind: str) -> MessageRule | None:
    """Return the rule of a message for a key of this kind, None if it is passed on as it is."""
    return stream.find(stream.clear(message), Kind(kind))[0] if stream.is_read else None


def signed_by_file(venue: Venue, login: Login, key: Key, came: Arrived, now_ms: int) -> Arrived:
    """Return what reaches the exchange of what a bot sent, by the venue's file alone."""
    stream = stream_of(venue, came)
    material = KeyMaterial(key.api_key, bytearray(key.secret.encode()), key.passphrase, key.uid)
    own = sealer_of(venue, material, venue.base_url)
    sealer = StreamSealer(own, plain_host(came.host), came.path)
    moment = Moment(now_ms, f"{now_ms}".encode())
    sent = Arrived(came.path, dict(came.query), dict(came.headers))
    if stream.handshake is not None:
        signed = sealer.handshake(stream.handshake, moment)
        sent.headers |= {name.lower(): text for name, text in signed.headers.items()}
        sent.query |= signed.query
        sent.path = signed.path or sent.path
    for message, reply in zip_longest(came.messages, login.replies[: len(came.messages)], fillvalue="0"):
        rule = rule_of(stream, message, login.kind)
        sent.messages.append(
            message if rule is None else sealer.sign(message, rule.signing, rule.drops, moment)
        )
        document = json.loads(filled(reply, message))
        if stream.challenge is not None and holds(stream.challenge.when, document):
            moment = moment._replace(challenge=at(document, stream.challenge.at))
    return sent
