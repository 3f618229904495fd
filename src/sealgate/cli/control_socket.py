"""The admin socket of a gateway that runs: what `halt`, `resume` and `reload` talk to."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from sealgate.admin.control import control_app
from sealgate.admin.metrics import Metrics
from sealgate.admin.serving import BACKLOG, running_app
from sealgate.gateway.bots.peer import caller_of
from sealgate.gateway.listeners.admin_socket import bind_admin
from sealgate.gateway.runtime.controls import Controls
from sealgate.gateway.runtime.gateway import Gateway

_MOST_AT_ONCE = 8  # commands; they are a person's


@contextlib.asynccontextmanager
async def running_control(
    gateway: Gateway, metrics: Metrics, document: Callable[[], Any] | None = None
) -> AsyncIterator[Path | None]:
    """Take commands as long as the block lasts; yield where, None where it is off. Raises StartError."""
    bound = bind_admin(gateway.config.admin.unix, gateway.services.environ)
    if bound is None:
        yield None
        return
    controls = Controls(gateway)
    actions = {"reload": controls.reload, "halt": controls.halt, "resume": controls.resume}
    app = control_app(gateway.status, metrics, actions, caller_of, document)
    async with running_app(app, _MOST_AT_ONCE, gateway.config.listen.head_timeout) as protocol:
        try:
            loop = asyncio.get_running_loop()
            server = await loop.create_server(protocol, sock=bound.sock, backlog=BACKLOG)
            with contextlib.closing(server):
                yield bound.path
        finally:
            bound.remove()
            bound.sock.close()
