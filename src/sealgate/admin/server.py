"""The admin address: metrics, health and status, to be read only.

Guarded against other sites' web pages as the bots' address is: an exact list of Host names, and no CORS
header anywhere. Metrics and health answer to any Host once the address is not loopback, because a scraper in
a container calls it by a service name.
"""

import asyncio
from collections.abc import Callable
from dataclasses import asdict

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from sealgate.admin.metrics import Metrics
from sealgate.core.host_name import host_name
from sealgate.core.status import Status

_FOR_SCRAPERS = frozenset({"/metrics", "/-/healthy", "/-/ready"})
_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Server": "sealgate",
}


def admin_app(
    status: Callable[[], Status], metrics: Metrics, hosts: frozenset[str], *, is_loopback: bool
) -> web.Application:
    """Return the application. `hosts` are lower-case names without a port."""
    views = _Views(status, metrics)
    app = web.Application(middlewares=[_guard(hosts, is_loopback=is_loopback)])
    app.router.add_get("/", views.index)
    app.router.add_get("/metrics", views.metrics)
    app.router.add_get("/-/healthy", views.healthy)
    app.router.add_get("/-/ready", views.ready)
    app.router.add_get("/status.json", views.status)
    return app


class _Views:
    def __init__(self, status: Callable[[], Status], metrics: Metrics) -> None:
        self._status = status
        self._metrics = metrics

    async def index(self, _: web.Request) -> web.Response:
        return web.Response(text="sealgate\n/metrics\n/status.json\n/-/healthy\n/-/ready\n")

    async def metrics(self, _: web.Request) -> web.Response:
        # Rendering takes milliseconds, which bots would feel.
        body = await asyncio.to_thread(self._metrics.render)
        return web.Response(body=body, headers={"Content-Type": _TEXT})

    async def healthy(self, _: web.Request) -> web.Response:
        return web.Response(text="healthy\n")

    async def ready(self, _: web.Request) -> web.Response:
        reasons = self._status().not_ready
        if reasons:
            return web.Response(status=503, text="".join(f"not ready: {reason}\n" for reason in reasons))
        return web.Response(text="ready\n")

    async def status(self, _: web.Request) -> web.Response:
        return web.json_response(asdict(self._status()))


def _guard(hosts: frozenset[str], *, is_loopback: bool) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        is_for_anyone = not is_loopback and request.path in _FOR_SCRAPERS
        if not is_for_anyone and host_name(request.headers.get("Host", "")) not in hosts:
            raise web.HTTPMisdirectedRequest(
                text="host refused: use a name of admin.hosts\n", headers=_HEADERS
            )
        if _is_cross_site(request):
            raise web.HTTPForbidden(text="refused: called from another site\n", headers=_HEADERS)
        try:
            response = await handler(request)
        except web.HTTPException as error:  # no such page, no such method
            error.headers.update(_HEADERS)
            raise
        response.headers.update(_HEADERS)
        return response

    return guard


def _is_cross_site(request: web.Request) -> bool:
    return "Origin" in request.headers or request.headers.get("Sec-Fetch-Site", "none") not in (
        "none",
        "same-origin",
    )
