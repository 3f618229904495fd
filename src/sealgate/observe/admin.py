"""The admin address: the live page, metrics, health and status, to be read only; and the admin socket.

Guarded against other sites' web pages as the bots' address is: an exact list of Host names, and no CORS
header anywhere. Metrics and health answer to any Host once the address is not loopback, because a scraper in
a container calls it by a service name.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from sealgate.http.target import host_name
from sealgate.observe.live import Live
from sealgate.observe.metrics import Metrics
from sealgate.observe.status import Status
from sealgate.observe.views import view_routes
from sealgate.orders.halts import Origin, Scope

_FOR_SCRAPERS = frozenset({"/metrics", "/-/healthy", "/-/ready"})
_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_NAMES = frozenset({"bot", "key", "reason"})
_LONGEST_REASON = 200
_LONGEST = 4096


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
        body = await asyncio.to_thread(self._metrics.snapshot())
        return web.Response(body=body, headers={"Content-Type": _TEXT})

    async def healthy(self, _: web.Request) -> web.Response:
        return web.Response(text="healthy\n")

    async def ready(self, _: web.Request) -> web.Response:
        status = self._status()
        if status.not_ready:
            reasons = (f"not ready: {reason}\n" for reason in status.not_ready)
            return web.Response(status=503, text="".join(reasons))
        return web.Response(text="".join(("ready\n", *(f"note: {one}\n" for one in notes(status)))))

    async def status(self, _: web.Request) -> web.Response:
        return web.json_response(self._document())


def notes(status: Status) -> Iterator[str]:
    """Yield what people must know of a gateway that serves.

    A halt is what somebody wanted: reads and cancels pass. Where the exchange refuses signatures the cause is
    a secret or a setting, and while it is away that is not the gateway's doing: another gateway would do no
    better.
    """
    if status.halts:
        yield "orders are halted"
    if status.clock.trouble is not None:
        yield f"clock: {status.clock.trouble}"
    for key in status.keys:
        if key.trouble is not None:
            yield f"the key {key.alias}: {key.trouble}"


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


Action = Callable[[Scope, Origin], Awaitable[tuple[int, dict[str, Any]]]]
CallerOf = Callable[[asyncio.BaseTransport], tuple[int | None, int | None]]


def control_app(
    status: Callable[[], Status],
    metrics: Metrics,
    actions: Mapping[str, Action],
    caller_of: CallerOf,
    document: Callable[[], Any] | None = None,
) -> web.Application:
    """Return the application. `actions` are by name: `halt` is called by `POST /-/halt`.

    `document` is /status.json, as on the admin address. `caller_of` returns user and process at the other end
    of a Unix socket, None where they are not known.

    It is served on a Unix socket that this user alone can reach, so that neither a web page nor another user
    can halt or reload; who connects is checked all the same.
    """
    app = web.Application(middlewares=[_own_user_only(caller_of)], client_max_size=_LONGEST)
    app.add_routes(pages(status, metrics, document))
    app.add_routes([web.post(f"/-/{name}", _view(action, caller_of)) for name, action in actions.items()])
    return app


def _view(action: Action, caller_of: CallerOf) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def view(request: web.Request) -> web.Response:
        try:
            scope, reason = parse_command(await request.read())
        except ValueError as error:
            return web.json_response({"error": str(error)}, status=400)
        uid, pid = (None, None) if request.transport is None else caller_of(request.transport)
        status, document = await action(scope, Origin(uid, pid, reason))
        return web.json_response(document, status=status)

    return view


def parse_command(body: bytes) -> tuple[Scope, str]:
    """Read `{"bot": …, "key": …, "reason": …}`, all optional; an empty body means all. Raises ValueError.

    Anything else is refused: a misspelt name must not halt everything.
    """
    document = json.loads(body) if body.strip() else {}
    if not isinstance(document, dict) or not document.keys() <= _NAMES:
        raise ValueError('the body must be a JSON object with "bot", "key" and "reason", or some of them')
    if not all(value is None or (isinstance(value, str) and value) for value in document.values()):
        raise ValueError("bot and key must be names, reason a text, or null")
    reason = document.get("reason") or ""
    if len(reason) > _LONGEST_REASON or not reason.isprintable():
        raise ValueError(f"the reason must be one line of at most {_LONGEST_REASON} characters")
    return Scope(document.get("bot"), document.get("key")), reason


def _own_user_only(caller_of: CallerOf) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        user = caller_of(request.transport)[0] if request.transport is not None else None
        if user not in {None, os.geteuid(), 0}:
            raise web.HTTPForbidden(text="refused: called by another user\n")
        return await handler(request)

    return guard
