"""Where bots connect: TCP addresses, with or without TLS, and the Unix socket."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from sealgate.config import Address, Config, ExchangeConfig, Listen
from sealgate.machine.system import System
from sealgate.request.bots import BotServer
from sealgate.server.sockets import BACKLOG, bind, bind_unix
from sealgate.server.tls import ServerTls, TlsListener

if TYPE_CHECKING:
    from pathlib import Path

# An address without TLS that other machines reach: what that means, in the log and in `sealgate check`.
OPEN_WIRE = "tokens and orders pass unencrypted"
OPEN_WIRE_FIX = "set listen.tls_cert and listen.tls_key, unless only this machine's containers reach it"

log = structlog.get_logger("sealgate.listeners")


@dataclass(frozen=True, slots=True)
class Listener:
    """Sockets that listen at an address; `start` begins to accept. `wanted` may ask for any free port."""

    wanted: Address
    sockets: Sequence[socket.socket]
    start: Callable[[], Awaitable[None]]
    close: Callable[[], None]

    @property
    def address(self) -> Address:
        """The real address."""
        return Address(*self.sockets[0].getsockname()[:2])


def exchange_addresses(config: Config) -> dict[str, Address]:
    """Return the addresses that single exchanges have for themselves, by their names."""
    return {name: one.listen for name, one in config.served.items() if one.listen is not None}


class Listeners:
    """The open listeners: `tcp` and `unix` for all exchanges, and those of single exchanges.

    `tcp` is the real address: the settings may ask for any free port. `server_at` returns what serves the
    connections to an exchange's own address, or to the common ones for "".
    """

    def __init__(self, settings: Listen, server_at: Callable[[str], BotServer], system: System) -> None:
        self.tcp: Address | None = None
        self.unix: Path | None = None
        self._settings = settings
        self._server_at = server_at
        self._system = system
        self._tls: ServerTls | None = None
        self._exchanges: dict[str, Listener] = {}
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
        return {name: f"{self._scheme}://{one.address}" for name, one in self._exchanges.items()}

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

    async def open(self, exchanges: Mapping[str, Address]) -> None:
        """Listen wherever the settings say. Raises StartError; then nothing listens."""
        settings = self._settings
        with contextlib.ExitStack() as ends:
            # 1. The Unix socket.
            if settings.unix is not None:
                unix = bind_unix(settings.unix, "listen.unix", settings.unix_group)
                ends.callback(unix.sock.close)
                ends.callback(unix.remove)
                loop = asyncio.get_running_loop()
                ends.callback((await loop.create_unix_server(self._server_at(""), sock=unix.sock)).close)
                self.unix = settings.unix
            # 2. TCP: the common address, and those of single exchanges.
            if settings.tls_cert is not None:
                self._tls = ServerTls(settings)
            if settings.tcp is not None:
                listener = await self._listener(settings.tcp, await bind(settings.tcp, "listen.tcp"), "")
                ends.callback(listener.close)
                await listener.start()
                self.tcp = listener.address
            await self.serve(await self.bind(exchanges), exchanges)
            self._ends = ends.pop_all()

    async def bind(self, exchanges: Mapping[str, Address]) -> dict[str, Listener]:
        """Listen at the addresses that are new to an exchange, but accept nothing yet.

        One that another exchange gives up is taken over. Raises StartError; then nothing has changed.
        """
        new: dict[str, Listener] = {}
        try:
            for name, address in exchanges.items():
                held = next((one for one in self._exchanges.values() if one.wanted == address), None)
                if held is None:
                    sockets = await bind(address, f"exchanges.{name}.listen")
                elif held is self._exchanges.get(name):
                    continue
                else:
                    sockets = [sock.dup() for sock in held.sockets]
                new[name] = await self._listener(address, sockets, name)
        except BaseException:
            for listener in new.values():
                listener.close()
            raise
        return new

    async def serve(self, new: Mapping[str, Listener], exchanges: Mapping[str, Address]) -> None:
        """Accept at the addresses that are new, and no longer at those that no exchange has any more."""
        for name in [name for name in self._exchanges if name in new or name not in exchanges]:
            self._exchanges.pop(name).close()
        for name, listener in new.items():
            if self._is_closed:
                listener.close()
            else:
                self._exchanges[name] = listener
                await listener.start()

    async def _listener(self, address: Address, sockets: Sequence[socket.socket], own: str) -> Listener:
        """Return what will accept on these sockets, for an exchange's own address, or a common one for ""."""
        server, ends = self._server_at(own), contextlib.ExitStack()
        for sock in sockets:
            ends.callback(sock.close)
        # 1. TLS accepts by itself.
        if self._tls is not None:
            over_tls = TlsListener(server, self._tls, self._settings.head_timeout, self._system)

            async def open_tls() -> None:
                ends.pop_all()  # closed by whoever accepts on them
                ends.callback(over_tls.close)
                for sock in sockets:
                    over_tls.open(sock)

            return Listener(address, sockets, open_tls, ends.close)
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

        return Listener(address, sockets, start, ends.close)

    def close(self) -> None:
        """Stop accepting, for good. Open connections stay."""
        self._is_closed = True
        for one in self._exchanges.values():
            one.close()
        self._exchanges.clear()
        self._ends.close()
