"""Routes for people: the live page, its files, its stream, and the page of errors."""

import contextlib
from html import escape
from importlib.resources import files
from typing import NamedTuple

from aiohttp import web
from aiohttp_sse import sse_response

from sealgate.observe.live import Live, TooManyViewersError
from sealgate.observe.serving import HEADERS
from sealgate.venues.replies import ErrorRow, Judge

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
# The only ones that are served: a path of a request never names a file.
_NAMES = (
    "index.html",
    "icon.svg",
    "page.css",
    "charts.css",
    "page.js",
    "stream.js",
    "charts.js",
    "bands.js",
    "lists.js",
    "parts.js",
    "requests.js",
    "words.js",
    "vendor/uPlot.iife.min.js",
    "vendor/uPlot.min.css",
)
_RETRY_MS = 1000  # after which a page that lost its stream asks again


class Asset(NamedTuple):
    """A file of the page."""

    media_type: str
    body: bytes


def load_assets() -> dict[str, Asset]:
    """Return all files of the page, by name."""
    folder = files("sealgate.observe").joinpath("page")
    return {
        name: Asset(_TYPES[name.rpartition(".")[2]], folder.joinpath(*name.split("/")).read_bytes())
        for name in _NAMES
    }


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sealgate: errors of the exchange</title>
<link rel="icon" href="page/icon.svg">
<link rel="stylesheet" href="page/page.css">
<main>
<h1>Errors of the exchange</h1>
<p><a href="./">Back to the live page</a></p>
<div class="card wide"><table>
<thead><tr><th>kind</th><th>status</th><th>its words</th><th>look at</th><th>what to do</th></tr></thead>
<tbody>
%s
</tbody></table></div>
</main>
</html>
"""


def errors_page(judge: Judge) -> str:
    """Return the page that explains each kind of error."""
    return _PAGE % "\n".join(_line(kind, row) for kind, row in judge.errors().items())


def _line(kind: str, row: ErrorRow) -> str:
    statuses = ", ".join(map(str, row.statuses)) or "-"
    words = " / ".join(row.words) or "-"
    cells = (statuses, words, row.verdict.whose.value, row.verdict.advice)
    rest = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f'<tr id="{kind}"><td><code>{kind}</code></td>{rest}</tr>'


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
