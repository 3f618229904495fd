"""Where bots connect: TCP addresses (of all, of one exchange, of one bot), and the Unix socket."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from sealgate.config import Address, ExchangeConfig, Listen, OwnAddress
from sealgate.machine.system import System
from sealgate.request.bots import BotServer
from sealgate.server.sockets import BACKLOG, bind, bind_unix
from sealgate.server.tls import ServerTls, TlsListener

if TYPE_CHECKING:
    from pathlib import Path

# An address without TLS that other machines reach: what that means, in the log and in `sealgate check`.
OPEN_WIRE = "tokens and orders pass unencrypted"
OPEN_WIRE_FIX = "set listen.tls_cert and listen.tls_key, unless only containers on this machine can connect"

log = structlog.get_logger("sealgate.listeners")


@dataclass(frozen=True, slots=True)
class Listener:
    """Sockets that listen at an address; `start` begins to accept."""

    sockets: Sequence[socket.socket]
    start: Callable[[], Awaitable[None]]
    close: Callable[[], None]

    @property
    def address(self) -> Address:
        """The real address."""
        return Address(*self.sockets[0].getsockname()[:2])


class Listeners:
    """The open listeners: `tcp` and `unix` for all, and those of single exchanges and bots.

    `tcp` is the real address: the settings may ask for any free port. `server_at` returns what serves the
    connections to an own address, or to the common ones for None.
    """

    def __init__(
        self, settings: Listen, server_at: Callable[[OwnAddress | None], BotServer], system: System
    ) -> None:
        self.tcp: Address | None = None
        self.unix: Path | None = None
        self._settings = settings
        self._server_at = server_at
        self._system = system
        self._tls: ServerTls | None = None
        self._own: dict[OwnAddress, Listener] = {}
        self._is_closed = False
        self._ends = contextlib.ExitStack()

    @property
    def urls(self) -> tuple[str, ...]:
        """Where bots connect, as text."""
        tcp = (f"{self._scheme}://{self.tcp}",) if self.tcp else ()
        return tcp + ((f"unix:{self.unix}",) if self.unix else ())

    @property
    def exchange_urls(self) -> dict[str, str]:
        """Where bots reach an exchange that has an address of its own."""
        return {
            own.exchange: f"{self._scheme}://{one.address}" for own, one in self._own.items() if own.exchange
        }

    @property
    def bot_urls(self) -> dict[str, str]:
        """The addresses that bots have for themselves, by the bots' names."""
        return {own.bot: f"http://{one.address}" for own, one in self._own.items() if own.bot}

    def urls_of(self, exchange: ExchangeConfig) -> tuple[str, ...]:
        """Return where bots reach an exchange, as text; its own address first."""
        if not exchange.at:
            return self.urls
        urls = [self.exchange_urls[exchange.name]] if exchange.name in self.exchange_urls else []
        if self.tcp:
            urls.append(f"{self._scheme}://{self.tcp}/{exchange.name}")
        if self.unix:
            urls.append(f"unix:{self.unix}:/{exchange.name}")
        return tuple(urls)

    @property
    def certificate_expires_at(self) -> float | None:
        """When the certificate expires, in epoch seconds; None without one, or if it cannot be read."""
        return None if self._tls is None else self._tls.expires_at

    @property
    def _scheme(self) -> str:
        return "http" if self._tls is None else "https"

    async def open(self, addresses: Collection[OwnAddress]) -> None:
        """Listen wherever the settings say. Raises StartError; then nothing listens."""
        settings = self._settings
        with contextlib.ExitStack() as ends:
            # 1. The Unix socket.
            if settings.unix is not None:
                unix = bind_unix(settings.unix, "listen.unix", settings.unix_group)
                ends.callback(unix.sock.close)
                ends.callback(unix.remove)
                loop = asyncio.get_running_loop()
                ends.callback((await loop.create_unix_server(self._server_at(None), sock=unix.sock)).close)
                self.unix = settings.unix
            # 2. TCP: the common address, and those of single exchanges and bots.
            if settings.tls_cert is not None:
                self._tls = ServerTls(settings)
            if settings.tcp is not None:
                listener = await self._listener(settings.tcp, await bind(settings.tcp, "listen.tcp"), None)
                ends.callback(listener.close)
                await listener.start()
                self.tcp = listener.address
            await self.serve(await self.bind(addresses), addresses)
            self._ends = ends.pop_all()

    async def bind(self, addresses: Collection[OwnAddress]) -> dict[OwnAddress, Listener]:
        """Listen at the addresses that are new, but accept nothing yet.

        One that another exchange or bot gives up is taken over. Raises StartError; then nothing has changed.
        """
        new: dict[OwnAddress, Listener] = {}
        try:
            for own in (one for one in addresses if one not in self._own):
                # No two settings have the same address, but for port 0, which is another one for each.
                same = (listener for one, listener in self._own.items() if one.address == own.address)
                held = next(same, None) if own.address.port else None
                if held is None:
                    sockets = await bind(own.address, own.setting)
                else:
                    sockets = [sock.dup() for sock in held.sockets]
                new[own] = await self._listener(own.address, sockets, own)
        except BaseException:
            for listener in new.values():
                listener.close()
            raise
        return new

    async def serve(self, new: Mapping[OwnAddress, Listener], addresses: Collection[OwnAddress]) -> None:
        """Accept at the addresses that are new, and no longer at those that have gone."""
        for own in [one for one in self._own if one not in addresses]:
            self._own.pop(own).close()
        for own, listener in new.items():
            if self._is_closed:
                listener.close()
            else:
                self._own[own] = listener
                await listener.start()

    async def _listener(
        self, address: Address, sockets: Sequence[socket.socket], own: OwnAddress | None
    ) -> Listener:
        """Return what will accept on these sockets, for an own address, or the common one for None."""
        server, ends = self._server_at(own), contextlib.ExitStack()
        for sock in sockets:
            ends.callback(sock.close)
        # 1. TLS accepts by itself. A bot's own address has none: nothing of it leaves this machine.
        if self._tls is not None and not (own is not None and own.bot):
            over_tls = TlsListener(server, self._tls, self._settings.head_timeout, self._system)

            async def open_tls() -> None:
                ends.pop_all()  # closed by whoever accepts on them
                ends.callback(over_tls.close)
                for sock in sockets:
                    over_tls.open(sock)

            return Listener(sockets, open_tls, ends.close)
        # 2. Without it, the loop does. Containers of one machine often share a network of their own, so an
        #    address that others reach is not refused.
        if not address.is_loopback:
            log.warning("bots_without_tls", address=str(address), cause=OPEN_WIRE, fix=OPEN_WIRE_FIX)
        loop = asyncio.get_running_loop()
        accepting = []
        for sock in sockets:  # a name such as "localhost" may stand for two addresses
            accepting.append(
                await loop.create_server(server, sock=sock, backlog=BACKLOG, start_serving=False)
            )
            ends.callback(accepting[-1].close)

        async def start() -> None:
            for one in accepting:
                await one.start_serving()

        return Listener(sockets, start, ends.close)

    def close(self) -> None:
        """Stop accepting, for good. Open connections stay."""
        self._is_closed = True
        for one in self._own.values():
            one.close()
        self._own.clear()
        self._ends.close()
