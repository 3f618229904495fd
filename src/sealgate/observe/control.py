"""The admin socket: what the admin address serves for programs, and the commands.

It is a Unix socket that this user alone can reach, so that neither a web page nor another user can halt or
reload; who connects is checked all the same.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from sealgate.orders.halts import Origin, Scope

_NAMES = frozenset({"bot", "key", "exchange", "reason"})
_LONGEST_REASON = 200
_LONGEST = 4096

Action = Callable[[Scope, Origin], Awaitable[tuple[int, dict[str, Any]]]]
CallerOf = Callable[[asyncio.BaseTransport], tuple[int | None, int | None]]


def control_app(
    pages: list[web.RouteDef], actions: Mapping[str, Action], caller_of: CallerOf
) -> web.Application:
    """Return the application. `actions` are by name: `halt` is called by `POST /-/halt`.

    `caller_of` returns user and process at the other end of a Unix socket, None where they are not known.
    """
    app = web.Application(middlewares=[_own_user_only(caller_of)], client_max_size=_LONGEST)
    app.add_routes(pages)
    app.add_routes([web.post(f"/-/{name}", _view(action, caller_of)) for name, action in actions.items()])
    return app


def _view(action: Action, caller_of: CallerOf) -> Handler:
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
    """Read `{"bot": …, "key": …, "exchange": …, "reason": …}`, all optional. Raises ValueError.

    An empty body means all. Anything else is refused: a misspelt name must not halt everything.
    """
    document = json.loads(body) if body.strip() else {}
    if not isinstance(document, dict) or not document.keys() <= _NAMES:
        raise ValueError(
            'the body must be a JSON object with "bot", "key", "exchange" and "reason", or some of them'
        )
    if not all(value is None or (isinstance(value, str) and value) for value in document.values()):
        raise ValueError("bot, key and exchange must be names, reason a text, or null")
    reason = document.get("reason") or ""
    if len(reason) > _LONGEST_REASON or not reason.isprintable():
        raise ValueError(f"the reason must be one line of at most {_LONGEST_REASON} characters")
    return Scope(document.get("bot"), document.get("key"), document.get("exchange")), reason


def _own_user_only(caller_of: CallerOf) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        user = caller_of(request.transport)[0] if request.transport is not None else None
        if user not in {None, os.geteuid(), 0}:
            raise web.HTTPForbidden(text="refused: called by another user\n")
        return await handler(request)

    return guard
