"""Where bots connect: the TCP address, with or without TLS, and the Unix socket."""

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path

import structlog

from sealgate.config import Address, Listen
from sealgate.machine.system import System
from sealgate.request.bots import BotServer
from sealgate.server.sockets import BACKLOG, bind, bind_unix
from sealgate.server.tls import ServerTls, TlsListener

# An address without TLS that other machines reach: what that means, in the log and in `sealgate check`.
OPEN_WIRE = "tokens and orders pass unencrypted"
OPEN_WIRE_FIX = "set listen.tls_cert and listen.tls_key, unless only this machine's containers reach it"

log = structlog.get_logger("sealgate.listeners")


@dataclass(frozen=True, slots=True)
class Listeners:
    """The open listeners. `tcp` is the real address: the settings may ask for any free port."""

    tcp: Address | None
    unix: Path | None
    tls: TlsListener | None
    _ends: contextlib.ExitStack

    @property
    def urls(self) -> tuple[str, ...]:
        """Return where bots connect, as text."""
        tcp = (f"{'https' if self.tls else 'http'}://{self.tcp}",) if self.tcp else ()
        return tcp + ((f"unix:{self.unix}",) if self.unix else ())

    def close(self) -> None:
        """Stop accepting. Open connections stay."""
        self._ends.close()


async def open_listeners(server: BotServer, settings: Listen, system: System) -> Listeners:
    """Listen wherever the settings say. Raises StartError; then nothing listens."""
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as ends:
        # 1. The Unix socket.
        if settings.unix is not None:
            bound = bind_unix(settings.unix, "listen.unix", settings.unix_group)
            ends.callback(bound.sock.close)
            ends.callback(bound.remove)
            ends.callback((await loop.create_unix_server(server, sock=bound.sock)).close)
        # 2. TCP: a name such as "localhost" may stand for two addresses.
        address, over_tls = None, None
        if settings.tcp is not None:
            tls = None if settings.tls_cert is None else ServerTls(settings)
            sockets = await bind(settings.tcp, "listen.tcp")
            address = Address(*sockets[0].getsockname()[:2])
            if tls is not None:
                over_tls = TlsListener(server, tls, settings.head_timeout, system)
                ends.callback(over_tls.close)
                for sock in sockets:
                    over_tls.open(sock)
            else:
                # Containers of one machine often share a network of their own, so this is not refused.
                if not settings.tcp.is_loopback:
                    log.warning(
                        "bots_without_tls", address=str(settings.tcp), cause=OPEN_WIRE, fix=OPEN_WIRE_FIX
                    )
                for sock in sockets:
                    listener = await loop.create_server(server, sock=sock, backlog=BACKLOG)
                    ends.callback(listener.close)
        return Listeners(address, settings.unix, over_tls, ends.pop_all())
