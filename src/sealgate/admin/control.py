"""The admin socket: what the admin address shows, and the commands that change something.

Only on a Unix socket that this user alone can reach, so that neither a web page nor another user can halt or
reload; who connects is checked all the same.
"""

import json
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from sealgate.admin.metrics import Metrics
from sealgate.admin.server import pages
from sealgate.core.halts import Scope
from sealgate.core.status import Status

Action = Callable[[Scope], Awaitable[tuple[int, dict[str, Any]]]]

_UCRED = struct.Struct("3i")  # struct ucred of unix(7): process, user, group
_NAMES = frozenset({"bot", "key"})
_LONGEST = 4096


def control_app(
    status: Callable[[], Status], metrics: Metrics, actions: Mapping[str, Action]
) -> web.Application:
    """Return the application. `actions` are by name: `halt` is called by `POST /-/halt`."""
    app = web.Application(middlewares=[_own_user_only], client_max_size=_LONGEST)
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


@web.middleware
async def _own_user_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    if _user(request) not in {None, os.geteuid(), 0}:
        raise web.HTTPForbidden(text="refused: called by another user\n")
    return await handler(request)


def _user(request: web.Request) -> int | None:
    """Return who connected (SO_PEERCRED, Linux's); None where the system does not say."""
    sock = request.transport.get_extra_info("socket") if request.transport else None
    if sock is None or not hasattr(socket, "SO_PEERCRED"):
        return None
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    user: int = _UCRED.unpack(credentials)[1]
    return user & 0xFFFFFFFF  # the kernel's are unsigned
