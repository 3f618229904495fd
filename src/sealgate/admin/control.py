"""The admin socket: what the admin address shows, and the commands that change something.

Only on a Unix socket that this user alone can reach, so that neither a web page nor another user can halt or
reload; who connects is checked all the same.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from sealgate.admin.metrics import Metrics
from sealgate.admin.server import pages
from sealgate.core.halts import Scope
from sealgate.core.status import Status

Action = Callable[[Scope], Awaitable[tuple[int, dict[str, Any]]]]
UserOf = Callable[[asyncio.BaseTransport], int | None]

_NAMES = frozenset({"bot", "key"})
_LONGEST = 4096


def control_app(
    status: Callable[[], Status], metrics: Metrics, actions: Mapping[str, Action], user_of: UserOf
) -> web.Application:
    """Return the application. `actions` are by name: `halt` is called by `POST /-/halt`.

    `user_of` tells the user at the other end of a Unix socket, None where the system does not say.
    """
    app = web.Application(middlewares=[_own_user_only(user_of)], client_max_size=_LONGEST)
    app.add_routes(pages(status, metrics))
    app.add_routes([web.post(f"/-/{name}", _view(action)) for name, action in actions.items()])
    return app


def _view(action: Action) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def view(request: web.Request) -> web.Response:
        try:
            scope = parse_scope(await request.read())
        except ValueError as error:
            return web.json_response({"error": str(error)}, status=400)
        status, document = await action(scope)
        return web.json_response(document, status=status)

    return view


def parse_scope(body: bytes) -> Scope:
    """Read `{"bot": …, "key": …}`, both optional; an empty body means all. Raises ValueError.

    Anything else is refused: a misspelt name must not halt everything.
    """
    document = json.loads(body) if body.strip() else {}
    if not isinstance(document, dict) or not document.keys() <= _NAMES:
        raise ValueError('the body must be a JSON object with "bot", "key", both or neither')
    if not all(value is None or (isinstance(value, str) and value) for value in document.values()):
        raise ValueError("bot and key must be names, or null")
    return Scope(document.get("bot"), document.get("key"))


def _own_user_only(user_of: UserOf) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        user = user_of(request.transport) if request.transport is not None else None
        if user not in {None, os.geteuid(), 0}:
            raise web.HTTPForbidden(text="refused: called by another user\n")
        return await handler(request)

    return guard
