"""aiohttp's HTTP server, told to leave bodies as they came and to fail in the stated shape."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage
from aiohttp.web_protocol import RequestHandler

from sealgate.sandbox.catalogue import ApiError
from sealgate.sandbox.message import Reply

Serve = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
Refuse = Callable[[ApiError], Reply]

KEEPALIVE_S = 75.0

logger = logging.getLogger("sealgate.sandbox")


class _Connection(RequestHandler):
    """A connection whose errors are JSON with `detail` and `timestamp`, and repeat nothing of the input."""

    __slots__ = ("_refuse",)

    def __init__(self, server: "Server", refuse: Refuse) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            auto_decompress=False,
            keepalive_timeout=KEEPALIVE_S,
            # It would say 204 of a request whose connection a fault has reset.
            access_log=None,  # type: ignore[arg-type] # aiohttp asks whether there is one
        )
        self._refuse = refuse

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = HTTPStatus.INTERNAL_SERVER_ERROR,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - it would echo the input
    ) -> web.StreamResponse:
        """Answer what could not be read as HTTP, and end the connection."""
        if request.writer.output_size > 0:
            raise ConnectionError("part of a reply has been sent already")
        is_bad = isinstance(exc, BadHttpMessage | web.RequestPayloadError) or status == HTTPStatus.BAD_REQUEST
        has_gone = isinstance(exc, ConnectionError)
        if not is_bad and not has_gone:
            logger.error("a request failed: %r", exc)
        response = to_response(self._refuse(ApiError("bad_http" if is_bad else "internal")))
        response.force_close()
        return response


class Server(web.Server):
    """Makes such connections."""

    def __init__(self, serve: Serve, refuse: Refuse) -> None:
        super().__init__(serve)
        self._refuse = refuse

    def __call__(self) -> RequestHandler:
        """Make the handler of a new connection."""
        return _Connection(self, self._refuse)


def to_response(reply: Reply) -> web.Response:
    """Put a reply into aiohttp's words."""
    return web.Response(
        body=reply.body, status=reply.status, headers=reply.headers, content_type="application/json"
    )
