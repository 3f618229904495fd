"""The bots' listener: aiohttp's low-level server, with our answers where it cannot parse a request.

aiohttp would echo the bad header into its error page and log it, and would leave an idle connection open for
an hour; both are replaced here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong

from sealgate.errors import Refusal
from sealgate.gateway.replies import Written

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
OnMalformed = Callable[[Refusal], bytes]

_LINE_BYTES = 8190
_FIELDS = 128
_IDLE_S = 75.0  # longer than the usual client keeps an idle connection
_LINGER_S = 2.0


class _Connection(web.RequestHandler):
    """One connection of a bot."""

    def __init__(self, server: "BotServer", **settings: Any) -> None:
        super().__init__(server, **settings)
        self._on_malformed = server.on_malformed
        self.on_hang_up: Callable[[], None] | None = None

    def connection_lost(self, exc: BaseException | None) -> None:
        """Tell who serves this connection that nobody waits any more."""
        super().connection_lost(exc)
        if self.on_hang_up is not None:
            self.on_hang_up()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is not HTTP: one problem document, then the connection closes.

        aiohttp also comes here where the handler itself failed. What was sent by then is not known here, so
        nothing is claimed: the connection is cut.
        """
        if status != HTTPStatus.BAD_REQUEST:
            if request.transport is not None:
                request.transport.abort()
            return Written(keep_alive=False)
        too_long = isinstance(exc, LineTooLong) or "Too many" in (message or "")
        slug = "headers_too_large" if too_long else "bad_request"
        refusal = Refusal(slug, "A line or the header is too long." if too_long else "This is not HTTP/1.1.")
        return Written(keep_alive=False, late=self._on_malformed(refusal))


def on_hang_up(request: web.BaseRequest, call: Callable[[], None] | None) -> None:
    """Have `call` made when the bot of this request hangs up; None: no more."""
    if isinstance(request.protocol, _Connection):
        request.protocol.on_hang_up = call


class BotServer(web.Server):
    """Accepts connections and hands each request to `handler`.

    `on_malformed` gets what could not be parsed and returns the reply's bytes.
    """

    def __init__(self, handler: Handler, on_malformed: OnMalformed) -> None:
        super().__init__(handler)
        self.on_malformed = on_malformed

    def __call__(self) -> web.RequestHandler:
        """Make the protocol of a new connection."""
        return _Connection(
            self,
            loop=asyncio.get_running_loop(),
            access_log=None,
            auto_decompress=False,
            keepalive_timeout=_IDLE_S,
            lingering_time=_LINGER_S,
            max_line_size=_LINE_BYTES,
            max_field_size=_LINE_BYTES,
            max_headers=_FIELDS,
        )
