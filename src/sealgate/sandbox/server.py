"""The shell of sockets around the exchange: read, write down, count, answer, let the fault happen.

`running_sandbox` starts one inside a test's event loop; `sealgate sandbox` uses the same.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from typing import TypeVar

from aiohttp import web

from sealgate.sandbox.access import parse_ip
from sealgate.sandbox.catalogue import ApiError
from sealgate.sandbox.exchange import Credentials, Exchange
from sealgate.sandbox.journal import Receipt
from sealgate.sandbox.lines import HttpLine, Line
from sealgate.sandbox.message import Reply, Request
from sealgate.sandbox.mishaps import Mishaps, Struck
from sealgate.sandbox.protocol import Server, to_response
from sealgate.sandbox.settings import SandboxSettings
from sealgate.sandbox.store import Store
from sealgate.sandbox.stream import GOING_AWAY, STREAM_PATH
from sealgate.sandbox.stream_desk import read_message, reply_text, to_request
from sealgate.sandbox.system import System
from sealgate.sandbox.websocket import OPENED, MessageLine, OpeningLine, WebSocket

SHUTDOWN_S = 0.5

Sent = TypeVar("Sent")


class Shell:
    """Serves one exchange."""

    def __init__(self, exchange: Exchange, settings: SandboxSettings, system: System) -> None:
        self._exchange = exchange
        self._settings = settings
        self._mishaps = Mishaps(exchange.refuse, system.sleep)

    async def serve(self, raw: web.BaseRequest) -> web.StreamResponse:
        """Serve one request, top to bottom."""
        body = await self._read_body(raw)
        request = Request(raw.method, raw.raw_path, raw.headers, body or b"", self._client_ip(raw))
        receipt = self._exchange.receive(request)
        if body is None:
            return self._too_large(receipt)
        if receipt is None:
            return to_response(self._exchange.answer(request, self._exchange.conditions.now()))
        if request.path == STREAM_PATH and web.WebSocketResponse().can_prepare(raw):
            return await self._serve_stream(raw, receipt)
        return await self._take(HttpLine(raw), receipt, lambda: self._answer(request, receipt))

    async def _serve_stream(self, raw: web.BaseRequest, receipt: Receipt) -> web.StreamResponse:
        client_ip, most = receipt.request.client_ip, self._settings.max_body_bytes
        websocket = WebSocket(raw, client_ip, self._exchange.streams, self._hear, most)
        response = await self._take(OpeningLine(raw, websocket), receipt, lambda: OPENED)
        await websocket.ended()
        return response

    async def _hear(self, websocket: WebSocket, text: str) -> None:
        try:
            message = read_message(text, self._settings.unknown_fields)
        except ApiError as error:
            websocket.send(reply_text(None, self._exchange.refuse(error)))
            return
        request = to_request(websocket.state, message, text, websocket.client_ip)
        receipt = self._exchange.write_down(request)
        await self._take(MessageLine(websocket, message), receipt, lambda: self._answer(request, receipt))

    def _answer(self, request: Request, receipt: Receipt) -> Reply:
        # Not as of its receipt: a fault may have held it up.
        return self._exchange.answer(request, self._exchange.conditions.now(), receipt.found)

    async def _take(self, line: Line[Sent], receipt: Receipt, answer: Callable[[], Reply]) -> Sent:
        """Count a request, have it answered, and let the fault happen that strikes it."""

        def settled() -> Reply:
            reply = answer()
            receipt.settle(reply)
            return reply

        leave = self._exchange.enter(receipt)
        if isinstance(leave, Reply):
            receipt.settle(leave)
            return await line.whole(leave)
        try:
            fault = self._exchange.strike(receipt)
            if fault is None:
                return await line.whole(settled())
            return await self._mishaps.happen(Struck(line, receipt, fault, settled))
        finally:
            leave()

    async def _read_body(self, raw: web.BaseRequest) -> bytes | None:
        """Read the body as it was sent, still encoded; None if it is too large."""
        limit = self._settings.max_body_bytes
        if (raw.content_length or 0) > limit:
            return None
        if raw.headers.get("Expect", "").lower() == "100-continue":
            await raw.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            raw.writer.output_size = 0  # as aiohttp does: no part of the reply has been sent
        body = bytearray()
        async for chunk in raw.content.iter_any():
            body += chunk
            if len(body) > limit:
                return None
        return bytes(body)

    def _client_ip(self, raw: web.BaseRequest) -> str:
        named = raw.headers.get(self._settings.client_ip_header) if self._settings.client_ip_header else None
        text = (named or raw.remote or "").strip()
        return str(parse_ip(text) or text)

    def _too_large(self, receipt: Receipt | None) -> web.StreamResponse:
        reply = self._exchange.refuse(ApiError("body_too_large"))
        if receipt:
            receipt.settle(reply)
        response = to_response(reply)
        response.force_close()
        return response


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A running sandbox: where it is and the ready-made user."""

    base_url: str
    api_key: str
    api_secret: str = field(repr=False)
    session_token: str = field(repr=False)
    user_address: str
    exchange: Exchange = field(repr=False)

    @property
    def streams_url(self) -> str:
        """Return `base_url` as a WebSocket is opened there."""
        return f"ws{self.base_url.removeprefix('http')}"


@asynccontextmanager
async def running_sandbox(
    settings: SandboxSettings | None = None,
    *,
    listen: tuple[str, int] = ("127.0.0.1", 0),
    db: str = "",
    system: System | None = None,
) -> AsyncIterator[Sandbox]:
    """Run a sandbox until the block ends; port 0 is a free one.

    `db` names the database file, empty keeps all in memory. Raises `StoreError` for a file that cannot be
    used and `OSError` for an address that cannot be listened on.
    """
    settings, system = settings or SandboxSettings(), system or System()
    with closing(Store(db)) as store:
        exchange = Exchange(settings, system, store)
        shell = Shell(exchange, settings, system)
        runner = web.ServerRunner(Server(shell.serve, exchange.refuse), shutdown_timeout=SHUTDOWN_S)
        try:
            await runner.setup()
            for sock in await _listening(*listen):
                await web.SockSite(runner, sock).start()
            yield _describe(exchange, exchange.make_credentials(), runner.addresses[0])
        finally:
            exchange.streams.end_all(GOING_AWAY, "the sandbox ends")
            await runner.cleanup()
            exchange.flush()


async def _listening(name: str, port: int) -> list[socket.socket]:
    """Return a socket for each address of a name. asyncio's own errors have no number from Python 3.13 on."""
    found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    with ExitStack() as ends:
        bound = [
            ends.enter_context(socket.create_server(where[:2], family=family))
            for family, _, _, _, where in found
        ]
        ends.pop_all()
    return bound


def _describe(exchange: Exchange, credentials: Credentials, address: tuple[object, ...]) -> Sandbox:
    name = f"[{address[0]}]" if ":" in str(address[0]) else address[0]
    return Sandbox(
        base_url=f"http://{name}:{address[1]}",
        api_key=credentials.api_key,
        api_secret=credentials.api_secret,
        session_token=credentials.session_token,
        user_address=credentials.user_address,
        exchange=exchange,
    )
