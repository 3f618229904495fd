"""Where bots come in: the TCP address, with or without TLS, and the Unix socket."""

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

# What a wire that strangers can read means, and what to do about it, in the log and in `sealgate check`.
OPEN_WIRE = "tokens and orders pass unencrypted"
OPEN_WIRE_FIX = "set listen.tls_cert and listen.tls_key, unless only this machine's containers reach it"

log = structlog.get_logger("sealgate.listeners")


@dataclass(frozen=True, slots=True)
class Listeners:
    """The open listeners. `tcp` is where it really listens (a free port may have been asked for)."""

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
        """Accept no more. Connections that are in may stay."""
        self._ends.close()


async def open_listeners(server: BotServer, settings: Listen, system: System) -> Listeners:
    """Listen wherever the settings say. Raises StartError."""
    with contextlib.ExitStack() as ends:
        unix = await _open_unix(server, settings, ends)
        tcp, tls = await _open_tcp(server, settings, system, ends)
        return Listeners(tcp, unix, tls, ends.pop_all())


async def _open_unix(server: BotServer, settings: Listen, ends: contextlib.ExitStack) -> Path | None:
    if settings.unix is None:
        return None
    bound = bind_unix(settings.unix, "listen.unix", settings.unix_group)
    ends.callback(bound.sock.close)
    ends.callback(bound.remove)
    listener = await asyncio.get_running_loop().create_unix_server(server, sock=bound.sock)
    ends.callback(listener.close)
    return settings.unix


async def _open_tcp(
    server: BotServer, settings: Listen, system: System, ends: contextlib.ExitStack
) -> tuple[Address | None, TlsListener | None]:
    if settings.tcp is None:
        return None, None
    tls = None if settings.tls_cert is None else ServerTls(settings)
    listeners = await bind(settings.tcp, "listen.tcp")
    address = Address(*listeners[0].getsockname()[:2])
    if tls is None:
        _warn_of_open_wire(settings.tcp)
        for sock in listeners:
            listener = await asyncio.get_running_loop().create_server(server, sock=sock, backlog=BACKLOG)
            ends.callback(listener.close)
        return address, None
    over_tls = TlsListener(server, tls, settings.head_timeout, system)
    ends.callback(over_tls.close)
    for sock in listeners:
        over_tls.open(sock)
    return address, over_tls


def _warn_of_open_wire(address: Address) -> None:
    """Containers of one machine often have a network of their own, so it is no reason to refuse."""
    if not address.is_loopback:
        log.warning("bots_without_tls", address=str(address), cause=OPEN_WIRE, fix=OPEN_WIRE_FIX)
