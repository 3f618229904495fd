"""The admin address: the live page, metrics, health and status, to be read only.

Guarded against other sites' web pages as the bots' address is: an exact list of Host names, and no CORS
header anywhere. Metrics and health answer to any Host once the address is not loopback, because a scraper in
a container calls it by a service name.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from sealgate.http.target import host_name
from sealgate.observe.live import Live
from sealgate.observe.metrics import Metrics
from sealgate.observe.status import Status, notes
from sealgate.observe.views import view_routes

_FOR_SCRAPERS = frozenset({"/metrics", "/-/healthy", "/-/ready"})
_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_OPENMETRICS = "application/openmetrics-text"
_UNWANTED = frozenset({"q=0", "q=0.0", "q=0.00", "q=0.000"})  # RFC 9110 12.4.2


def admin_app(
    status: Callable[[], Status], metrics: Metrics, live: Live, hosts: frozenset[str], *, is_loopback: bool
) -> web.Application:
    """Return the application, which runs `live`. `hosts` are lower-case names without a port."""

    async def start(_: web.Application) -> None:
        live.start()

    async def close(_: web.Application) -> None:
        live.close()

    app = web.Application(middlewares=[_guard(hosts, is_loopback=is_loopback)])
    app.add_routes([*pages(status, metrics, live.document), *view_routes(live)])
    app.on_startup.append(start)
    app.on_shutdown.append(close)  # or the server would wait for the viewers
    return app


def pages(status: Callable[[], Status], metrics: Metrics, document: Callable[[], Any]) -> list[web.RouteDef]:
    """Return what programs read, here and on the admin socket. `document` is /status.json."""

    async def exposition(request: web.Request) -> web.Response:
        write, media_type = _format(",".join(request.headers.getall("Accept", ())))
        # Writing it takes milliseconds, which bots would feel; the state is not looked at from a thread.
        body = await asyncio.to_thread(metrics.snapshot(write))
        return web.Response(body=body, headers={"Content-Type": media_type, "Vary": "Accept"})

    async def healthy(_: web.Request) -> web.Response:
        return web.Response(text="healthy\n")

    async def ready(request: web.Request) -> web.Response:
        now = status()
        if (name := request.query.get("exchange")) is not None:
            if (exchange := now.exchange(name)) is None:
                known = ", ".join(one.name for one in now.exchanges)
                return web.Response(status=404, text=f"no such exchange; known: {known}\n")
            now = now.about(exchange)
        if now.not_ready:
            reasons = "".join(f"not ready: {reason}\n" for reason in now.not_ready)
            return web.Response(status=503, text=reasons)
        return web.Response(text="".join(("ready\n", *(f"note: {one}\n" for one in notes(now)))))

    async def status_json(_: web.Request) -> web.Response:
        return web.json_response(document())

    return [
        web.get("/metrics", exposition),
        web.get("/-/healthy", healthy),
        web.get("/-/ready", ready),
        web.get("/status.json", status_json),
    ]


def _format(accept: str) -> tuple[Callable[[Collector], bytes], str]:
    """Return the writer and media type of OpenMetrics if Accept names it, else of Prometheus' text."""
    for media_range in accept.lower().split(","):
        name, *parameters = (part.strip() for part in media_range.split(";"))
        if name == _OPENMETRICS and _UNWANTED.isdisjoint(parameters):
            return openmetrics.generate_latest, openmetrics.CONTENT_TYPE_LATEST
    return generate_latest, _TEXT


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
