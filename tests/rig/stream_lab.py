"""An exchange with streams, scripted, and a gateway in front of it: a venue of the tests' own."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType, web

from rig.station import Outcomes
from rig.stream_venue import HOST, VENUE
from rig.wire import PATIENCE_S
from sealgate.config import Config
from sealgate.machine.system import System
from sealgate.server.gateway import Gateway, running_gateway

SECRET = "the real secret of the lab"
API_KEY = "the-real-key"
TOKENS = {
    "SECRET": SECRET,
    "GRID": "token-of-grid-0123456789",
    "EYE": "token-of-eye-01234567890",
    "TIED": "token-of-tied-0123456789",
    "BOSS": "token-of-boss-0123456789",
}

React = Callable[[web.WebSocketResponse, Any], Awaitable[None]]


@dataclass(repr=False)
class Exchange:
    """The exchange. `opened` are the handshakes, `messages` all that came, `closed` how each stream ended."""

    url: str = ""
    react: React | None = None
    opened: list[web.Request] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)
    closed: list[tuple[int | None, str]] = field(default_factory=list)
    answer: Callable[[], web.Response] | None = None  # instead of a stream
    asked_for_time: int = 0
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    def texts(self, op: str) -> list[dict[str, Any]]:
        """Return the messages of a kind."""
        found = [json.loads(one) for one in self.messages if isinstance(one, str) and one.startswith("{")]
        return [one for one in found if one.get("op") == op]

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for something that came."""
        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(is_so)

    async def _note(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serve the time, or a stream."""
        if request.path == "/time":
            self.asked_for_time += 1
            return web.json_response({"time": int(System().wall() * 1000)})
        self.opened.append(request)
        if self.answer is not None:
            return self.answer()
        stream = web.WebSocketResponse(autoping=False, protocols=("one", "two"))
        await stream.prepare(request)
        await self._note()
        async for message in stream:
            is_data = message.type in (WSMsgType.TEXT, WSMsgType.BINARY)
            self.messages.append(message.data if is_data else (message.type.name, message.data))
            await self._note()
            if is_data:
                await (self.react or _react)(stream, message.data)
        self.closed.append((stream.close_code, str(getattr(stream, "close_message", ""))))
        await self._note()
        return stream


async def _react(stream: web.WebSocketResponse, data: Any) -> None:
    """Answer as an exchange does; what asks for nothing comes back."""
    try:
        message = json.loads(data)
    except ValueError:
        message = data
    op = message.get("op", "") if isinstance(message, dict) else ""
    if op == "login":
        await stream.send_json({"op": "login", "ok": not message.get("fails", False)})
    elif op.startswith("order."):
        if (status := message.get("status", 200)) is not None:
            told = {name: message[name] for name in ("wait", "error") if name in message}
            await stream.send_json({"op": op, "id": message.get("id"), "status": status, **told})
    elif op == "challenge":
        await stream.send_json({"op": op, "text": "what-to-sign"})
    elif op == "bye":
        await stream.close(code=4001, message=b"bye")
    elif op == "vanish":
        transport = stream._req.transport if stream._req is not None else None
        assert transport is not None
        transport.abort()
    elif isinstance(data, str):
        await stream.send_str(data)
    else:
        await stream.send_bytes(data)


@dataclass(repr=False)
class Lab:
    """The running gateway, its exchange, and a client."""

    gateway: Gateway
    exchange: Exchange
    outcomes: Outcomes
    _client: ClientSession
    configs: list[Config]

    @property
    def address(self) -> tuple[str, int]:
        """Host and port where bots connect."""
        return self.gateway.address.host, self.gateway.address.port

    @property
    def url(self) -> str:
        """Where bots connect."""
        return f"http://{self.gateway.address}"

    async def open(
        self, path: str = f"/{HOST}/private", bot: str = "GRID", **options: Any
    ) -> ClientWebSocketResponse:
        """Open a stream. Raises WSServerHandshakeError where the gateway refuses it."""
        headers = {"X-Gateway-Token": TOKENS[bot], **options.pop("headers", {})} if bot else {}
        stream: ClientWebSocketResponse = await self._client.ws_connect(
            f"{self.url}{path}", headers=headers, **options
        )
        return stream

    async def refused(self, path: str, bot: str = "GRID", **headers: str) -> tuple[int, str, str]:
        """Return status, reason and detail of an upgrade that is refused."""
        offer = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
            **({"X-Gateway-Token": TOKENS[bot]} if bot else {}),
            **headers,
        }
        async with self._client.get(f"{self.url}{path}", headers=offer) as reply:
            text = await reply.text()
            is_own = "X-Gateway-Error" in reply.headers
            return (
                reply.status,
                reply.headers.get("X-Gateway-Error", ""),
                (json.loads(text)["detail"] if is_own else text),
            )


@contextlib.asynccontextmanager
async def running_lab(folder: Path, *, waits: bool = True, **tables: Any) -> AsyncIterator[Lab]:
    """Run a lab whose venue's file is in a folder; `tables` are merged over the configuration.

    It `waits` until its clock is synced.
    """
    exchange = Exchange()
    app = web.Application()
    app.router.add_get("/{path:.*}", exchange.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = "{}:{}".format(*runner.addresses[0][:2])
    exchange.url = f"http://{address}"
    file = folder / "lab.toml"
    file.write_text(VENUE)
    tree: dict[str, Any] = {
        "venue": str(file),
        "base_url": exchange.url,
        "listen": {"tcp": "127.0.0.1:0", "drain": 0.0},
        "admin": {"tcp": "127.0.0.1:0"},
        "upstream": {"streams": f"ws://{address}"},
        "keys": {"main": {"api_key": API_KEY, "secret": "env:SECRET", "uid": "77"}},
        "bots": {
            "grid": {"token": "env:GRID", "may": ["read", "trade"]},
            "eye": {"token": "env:EYE", "may": ["read"]},
            "boss": {"token": "env:BOSS", "may": ["read", "trade", "keys"]},
            "tied": {"token": "env:TIED", "may": ["read", "trade"], "policy": {"max_size": "2"}},
        },
    }
    for name, settings in tables.items():
        tree[name] = {**tree.get(name, {}), **settings} if isinstance(settings, dict) else settings
    outcomes = Outcomes()
    configs = [Config.model_validate(tree)]
    try:
        async with (
            running_gateway(configs[0], (outcomes,), TOKENS, load=lambda: configs[-1]) as gateway,
            ClientSession() as client,
        ):
            if waits:
                await gateway.wait_until_ready(PATIENCE_S)
            yield Lab(gateway, exchange, outcomes, client, configs)
    finally:
        await runner.cleanup()


def closed_as(message: Any) -> tuple[int, str]:
    """Return code and reason of a close frame that a client received."""
    assert message.type is WSMsgType.CLOSE, message
    return message.data, message.extra
