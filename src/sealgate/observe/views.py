"""Routes for people: the live page, its files, its stream, and the page of errors."""

import contextlib
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from pathlib import PurePath

from aiohttp import web
from aiohttp_sse import sse_response

from sealgate.observe.live import Live, TooManyViewersError
from sealgate.observe.serving import HEADERS
from sealgate.venues.replies import ErrorRow, Judge

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_RETRY_MS = 1000  # after which a page that lost its stream asks again


def load_assets() -> dict[str, tuple[str, bytes]]:
    """Return type and content of the page's files, by name: a path of a request never names a file."""
    folder = files("sealgate.observe") / "page"
    return {
        f"{prefix}{file.name}": (media_type, file.read_bytes())
        for prefix, place in (("", folder), ("vendor/", folder / "vendor"))
        for file in place.iterdir()
        if (media_type := _TYPES.get(PurePath(file.name).suffix))
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
%s
</main>
</html>
"""
_TABLE = """<div class="card wide">%s<table>
<thead><tr><th>kind</th><th>status</th><th>its words</th><th>look at</th><th>what to do</th></tr></thead>
<tbody>
%s
</tbody></table></div>"""


def errors_page(judges: Mapping[str, Judge]) -> str:
    """Return the page that explains each kind of error, at each exchange."""
    tables = []
    for exchange, judge in judges.items():
        head, at = (f"<h2>{escape(exchange)}</h2>", f"{exchange}/") if len(judges) > 1 else ("", "")
        lines = [_line(f"{at}{kind}", kind, row) for kind, row in judge.errors().items()]
        tables.append(_TABLE % (head, "\n".join(lines)))
    return _PAGE % "\n".join(tables)


def _line(anchor: str, kind: str, row: ErrorRow) -> str:
    statuses = ", ".join(map(str, row.statuses)) or "-"
    words = " / ".join(row.words) or "-"
    cells = (statuses, words, row.verdict.whose.value, row.verdict.advice)
    rest = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f'<tr id="{escape(anchor)}"><td><code>{kind}</code></td>{rest}</tr>'


def view_routes(live: Live) -> list[web.RouteDef]:
    """Return the pages for people."""
    assets = load_assets()

    async def asset(request: web.Request) -> web.Response:
        media_type, body = assets.get(request.match_info.get("name", "index.html"), (None, b""))
        if media_type is None:
            raise web.HTTPNotFound
        return web.Response(body=body, headers={"Content-Type": media_type})

    async def errors(_: web.Request) -> web.Response:
        return web.Response(text=errors_page(live.judges()), content_type="text/html")

    async def requests(_: web.Request) -> web.Response:
        return web.json_response({"requests": live.requests()})

    async def events(request: web.Request) -> web.StreamResponse:
        """Send the history, then each picture, until the viewer goes or the gateway ends."""
        try:
            with live.broadcast.viewing() as queue:
                async with sse_response(request, headers=HEADERS) as stream:
                    with contextlib.suppress(ConnectionResetError):  # the viewer has gone
                        await stream.send(live.history(), event="history", retry=_RETRY_MS)
                        while (event := await queue.get()) is not None:
                            await stream.send(event[1], event=event[0])
        except TooManyViewersError:
            raise web.HTTPServiceUnavailable(text="too many viewers\n") from None
        return stream

    return [
        web.get("/", asset),
        web.get("/page/{name:.+}", asset),
        web.get("/errors", errors),
        web.get("/events", events, allow_head=False),
        web.get("/requests.json", requests),
    ]
