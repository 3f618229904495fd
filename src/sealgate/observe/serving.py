"""How the applications are served: by aiohttp, within bounds of our own.

Connections take descriptors, of which the bots' side has its share reserved. aiohttp's error pages repeat the
line that they are about, and come before any middleware, so the fixed header fields are set here as well.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import structlog
from aiohttp import web

# All that a page may load is its own.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Server": "sealgate",
}


BACKLOG = 16  # connections that the kernel accepts ahead of us: each is a descriptor, if only for a moment
_FIELDS = (
    64  # of a head: fewer than aiohttp takes, as each may hold 8 KB before anything is known of the sender
)
_MOST_BYTES = 64 * 1024  # that come before a reply; a request here has no body, and one head is far smaller
_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    b"too many connections\n"
)

log = structlog.get_logger("sealgate.admin")


def _let_go(error: BaseException | None) -> None:
    """Drop the frames that an error came through: they hold it, and the request, until the collector runs."""
    if error is not None:
        error.__traceback__ = None


class _Connection(web.RequestHandler):
    __slots__ = ("_came", "_most", "_server")

    def __init__(self, server: web.Server, most: int, head_timeout_s: float) -> None:
        loop = asyncio.get_running_loop()
        # aiohttp's keep-alive time also ends a connection without a first request, and half a head.
        super().__init__(server, loop=loop, keepalive_timeout=head_timeout_s, max_headers=_FIELDS)
        self._server = server
        self._most = most
        self._came = 0  # bytes since the latest reply

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Serve it, unless there are too many."""
        if len(self._server.connections) < self._most:
            super().connection_made(transport)
            return
        log.warning("admin_connections_full", most=self._most, fix="find out who holds them open")
        transport.set_protocol(asyncio.Protocol())
        if isinstance(transport, asyncio.WriteTransport):
            transport.write(_TOO_MANY)
        transport.close()

    def data_received(self, data: bytes) -> None:
        """Parse; whoever sends on and on without waiting for a reply is cut, as all of it would be held."""
        self._came += len(data)
        if self._came > _MOST_BYTES:
            self.force_close()
        else:
            super().data_received(data)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the page of what is no HTTP, or of a failure; `message` may hold what came."""
        if exc is not None and not message:
            context = {"message": "a page of the admin address failed", "exception": exc}
            asyncio.get_running_loop().call_exception_handler(context)
        said = "this is not HTTP/1.1\n" if message else None
        reply = super().handle_error(request, status, exc, said)
        _let_go(exc)
        return reply

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send a reply, whoever made it."""
        self._came = 0
        if isinstance(resp, web.HTTPExpectationFailed):
            resp.text = "expectation refused\n"
        if isinstance(resp, web.HTTPException):
            _let_go(resp)
        if not resp.prepared:  # a stream has them already
            resp.headers.update(HEADERS)
        return await super().finish_response(request, resp, start_time)


@contextlib.asynccontextmanager
async def running_app(
    app: web.Application, most: int, head_timeout_s: float
) -> AsyncIterator[Callable[[], asyncio.Protocol]]:
    """Run an application as long as the block lasts; yield what makes the protocol of each connection.

    There are at most `most` of them, and each is closed that for `head_timeout_s` brings no request.
    """
    runner = web.AppRunner(app)
    await runner.setup()
    server = runner.server
    assert server is not None  # noqa: S101 - it is there once it is set up
    try:
        yield lambda: _Connection(server, most, head_timeout_s)
    finally:
        await runner.cleanup()
