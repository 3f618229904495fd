"""The shell of sockets around the exchange: read, write down, count, answer, let the fault happen.

`running_sandbox` starts one inside a test's event loop; `sealgate sandbox` uses the same.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field

from aiohttp import web

from sealgate.sandbox.access import parse_ip
from sealgate.sandbox.catalogue import ApiError
from sealgate.sandbox.exchange import Credentials, Exchange
from sealgate.sandbox.journal import Receipt
from sealgate.sandbox.message import Reply, Request
from sealgate.sandbox.mishaps import Mishaps, Struck
from sealgate.sandbox.protocol import Server, to_response
from sealgate.sandbox.settings import SandboxSettings
from sealgate.sandbox.store import Store
from sealgate.sandbox.system import System

SHUTDOWN_S = 0.5


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
        leave = self._exchange.enter(receipt)
        if isinstance(leave, Reply):
            receipt.settle(leave)
            return to_response(leave)
        try:
            return await self._act(raw, request, receipt)
        finally:
            leave()

    async def _act(self, raw: web.BaseRequest, request: Request, receipt: Receipt) -> web.StreamResponse:
        def answer() -> Reply:
            # Not as of its receipt: a fault may have held it up.
            reply = self._exchange.answer(request, self._exchange.conditions.now(), receipt.found)
            receipt.settle(reply)
            return reply

        fault = self._exchange.strike(receipt)
        if fault is None:
            return to_response(answer())
        return await self._mishaps.happen(Struck(raw, receipt, fault, answer))

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
