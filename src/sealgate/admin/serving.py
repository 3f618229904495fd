"""How the applications are served: by aiohttp, but its own error pages repeat the line that they are about.

Those come before any middleware, so that the fixed header fields are set here as well.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

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


class _Connection(web.RequestHandler):
    __slots__ = ()

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
        return super().handle_error(request, status, exc, said)

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send a reply, whoever made it."""
        if isinstance(resp, web.HTTPExpectationFailed):
            resp.text = "expectation refused\n"
        if not resp.prepared:  # a stream has them already
            resp.headers.update(HEADERS)
        return await super().finish_response(request, resp, start_time)


@contextlib.asynccontextmanager
async def running_app(app: web.Application) -> AsyncIterator[Callable[[], asyncio.Protocol]]:
    """Run an application as long as the block lasts; yield what makes the protocol of each connection."""
    runner = web.AppRunner(app)
    await runner.setup()
    manager, loop = runner.server, asyncio.get_running_loop()
    assert manager is not None  # noqa: S101 - it is there once it is set up
    try:
        yield lambda: _Connection(manager, loop=loop)
    finally:
        await runner.cleanup()
