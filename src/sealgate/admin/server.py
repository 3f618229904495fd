"""The admin address: the live page, metrics, health and status, to be read only.

Guarded against other sites' web pages as the bots' address is: an exact list of Host names, and no CORS
header anywhere. Metrics and health answer to any Host once the address is not loopback, because a scraper in
a container calls it by a service name.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from sealgate.admin.live import Live
from sealgate.admin.metrics import Metrics
from sealgate.admin.views import view_routes
from sealgate.core.host_name import host_name
from sealgate.core.status import Status

_FOR_SCRAPERS = frozenset({"/metrics", "/-/healthy", "/-/ready"})
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


def admin_app(
    status: Callable[[], Status], metrics: Metrics, live: Live, hosts: frozenset[str], *, is_loopback: bool
) -> web.Application:
    """Return the application, which runs `live`. `hosts` are lower-case names without a port."""
    app = web.Application(middlewares=[_guard(hosts, is_loopback=is_loopback)])
    app.add_routes(pages(status, metrics, live.document))
    app.add_routes(view_routes(live))
    app.on_startup.append(_called(live.start))
    app.on_shutdown.append(_called(live.close))  # or the server would wait for the viewers
    return app


def _called(act: Callable[[], None]) -> Callable[[web.Application], Awaitable[None]]:
    async def call(_: web.Application) -> None:
        act()

    return call


def pages(
    status: Callable[[], Status], metrics: Metrics, document: Callable[[], Any] | None = None
) -> list[web.RouteDef]:
    """Return what programs read, here and on the admin socket. `document` is /status.json."""
    views = _Views(status, metrics, document or (lambda: asdict(status())))
    return [
        web.get("/metrics", views.metrics),
        web.get("/-/healthy", views.healthy),
        web.get("/-/ready", views.ready),
        web.get("/status.json", views.status),
    ]


class _Views:
    def __init__(self, status: Callable[[], Status], metrics: Metrics, document: Callable[[], Any]) -> None:
        self._status = status
        self._metrics = metrics
        self._document = document

    async def metrics(self, _: web.Request) -> web.Response:
        # Writing it takes milliseconds, which bots would feel; the state is not looked at from a thread.
        body = await asyncio.to_thread(self._metrics.look())
        return web.Response(body=body, headers={"Content-Type": _TEXT})

    async def healthy(self, _: web.Request) -> web.Response:
        return web.Response(text="healthy\n")

    async def ready(self, _: web.Request) -> web.Response:
        status = self._status()
        if status.not_ready:
            reasons = (f"not ready: {reason}\n" for reason in status.not_ready)
            return web.Response(status=503, text="".join(reasons))
        return web.Response(text="".join(("ready\n", *_notes(status))))

    async def status(self, _: web.Request) -> web.Response:
        return web.json_response(self._document())


def _notes(status: Status) -> Iterator[str]:
    """Yield what people must know of a gateway that serves.

    A halt is what somebody wanted: reads and cancels pass. Where the exchange refuses signatures the cause is
    a secret or a setting, and while it is away that is not the gateway's doing: another gateway would do no
    better.
    """
    if status.halts:
        yield "note: orders are halted\n"
    if status.clock.trouble is not None:
        yield f"note: clock: {status.clock.trouble}\n"
    for key in status.keys:
        if key.trouble is not None:
            yield f"note: the key {key.alias}: {key.trouble}\n"


def _guard(hosts: frozenset[str], *, is_loopback: bool) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        is_for_anyone = not is_loopback and request.path in _FOR_SCRAPERS
        if not is_for_anyone and host_name(request.headers.get("Host", "")) not in hosts:
            raise web.HTTPMisdirectedRequest(text="host refused: use a name of admin.hosts\n")
        if _is_cross_site(request):
            raise web.HTTPForbidden(text="refused: called from another site\n")
        return await handler(request)

    return guard


def _is_cross_site(request: web.Request) -> bool:
    """Ask whether another site's page is behind it. A module of the own page comes with an Origin, too."""
    host = request.headers.get("Host", "")
    is_own = request.headers.get("Origin") in (None, f"http://{host}", f"https://{host}")
    return not is_own or request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
