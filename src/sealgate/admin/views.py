"""The live page, its files, its stream, and the errors of the exchange: what people look at."""

import contextlib

from aiohttp import web
from aiohttp_sse import sse_response

from sealgate.admin.assets import load_assets
from sealgate.admin.broadcast import TooManyViewersError
from sealgate.admin.errors_page import errors_page
from sealgate.admin.live import Live
from sealgate.admin.serving import HEADERS

_RETRY_MS = 1000  # after which a page that lost its stream asks again


def view_routes(live: Live) -> list[web.RouteDef]:
    """Return the pages for people."""
    views = _Views(live)
    return [
        web.get("/", views.index),
        web.get("/page/{name:.+}", views.asset),
        web.get("/errors", views.errors),
        web.get("/events", views.events, allow_head=False),
        web.get("/requests.json", views.requests),
    ]


class _Views:
    def __init__(self, live: Live) -> None:
        self._live = live
        self._assets = load_assets()

    async def index(self, _: web.Request) -> web.Response:
        return self._asset("index.html")

    async def asset(self, request: web.Request) -> web.Response:
        return self._asset(request.match_info["name"])

    def _asset(self, name: str) -> web.Response:
        if name not in self._assets:
            raise web.HTTPNotFound
        asset = self._assets[name]
        return web.Response(body=asset.body, headers={"Content-Type": asset.media_type})

    async def errors(self, _: web.Request) -> web.Response:
        return web.Response(text=errors_page(self._live.judge()), content_type="text/html")

    async def requests(self, _: web.Request) -> web.Response:
        return web.json_response({"requests": self._live.requests()})

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Send the history, then each picture, until the viewer goes or the gateway ends."""
        try:
            with self._live.broadcast.viewing() as queue:
                async with sse_response(request, headers=HEADERS) as stream:
                    with contextlib.suppress(ConnectionResetError):  # the viewer has gone
                        await stream.send(self._live.history(), event="history", retry=_RETRY_MS)
                        while (event := await queue.get()) is not None:
                            await stream.send(event[1], event=event[0])
        except TooManyViewersError:
            raise web.HTTPServiceUnavailable(text="too many viewers\n") from None
        return stream
