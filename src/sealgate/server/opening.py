"""Where bots connect: TCP addresses, with or without TLS, and the Unix socket."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Mapping
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
class Bound:
    """Sockets that listen at an address, before anything is accepted. `wanted` may ask for any free port."""

    wanted: Address
    sockets: list[socket.socket]

    @property
    def address(self) -> Address:
        """The real address."""
        return Address(*self.sockets[0].getsockname()[:2])

    def close(self) -> None:
        """Give the address back."""
        for sock in self.sockets:
            sock.close()


@dataclass(frozen=True, slots=True)
class _Open:
    """An address where connections are accepted."""

    bound: Bound
    close: Callable[[], None]


def exchange_addresses(config: Config) -> dict[str, Address]:
    """Return the addresses that single exchanges have for themselves, by their names."""
    return {name: one.listen for name, one in config.served.items() if one.listen is not None}


class Listeners:
    """The open listeners: `tcp` and `unix` for all exchanges, and those of single exchanges.

    `tcp` is the real address: the settings may ask for any free port. `server_of` returns what serves the
    connections to an exchange's own address, or to the common ones for None.
    """

    def __init__(
        self, settings: Listen, server_of: Callable[[str | None], BotServer], system: System
    ) -> None:
        self.tcp: Address | None = None
        self.unix: Path | None = None
        self._settings = settings
        self._server_of = server_of
        self._system = system
        self._tls: ServerTls | None = None
        self._exchanges: dict[str, _Open] = {}
        self._ends = contextlib.ExitStack()

    @property
    def urls(self) -> tuple[str, ...]:
        """Where bots connect, as text."""
        tcp = (f"{self._scheme}://{self.tcp}",) if self.tcp else ()
        return tcp + ((f"unix:{self.unix}",) if self.unix else ())

    @property
    def exchange_urls(self) -> dict[str, str]:
        """Where bots reach an exchange that has an address of its own."""
        return {name: f"{self._scheme}://{one.bound.address}" for name, one in self._exchanges.items()}

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
                ends.callback((await loop.create_unix_server(self._server_of(None), sock=unix.sock)).close)
                self.unix = settings.unix
            # 2. TCP: the common address, and those of single exchanges.
            if settings.tls_cert is not None:
                self._tls = ServerTls(settings)
            if settings.tcp is not None:
                bound = Bound(settings.tcp, await bind(settings.tcp, "listen.tcp"))
                ends.callback((await self._accept(bound, None)).close)
                self.tcp = bound.address
            await self.serve(await self.bind(exchanges), exchanges)
            self._ends = ends.pop_all()

    async def bind(self, exchanges: Mapping[str, Address]) -> dict[str, Bound]:
        """Listen at those addresses of exchanges that are new. Raises StartError; then at none of them."""
        new: dict[str, Bound] = {}
        try:
            for name, address in exchanges.items():
                if name not in self._exchanges or self._exchanges[name].bound.wanted != address:
                    new[name] = Bound(address, await bind(address, f"exchanges.{name}.listen"))
        except BaseException:
            for bound in new.values():
                bound.close()
            raise
        return new

    async def serve(self, new: Mapping[str, Bound], exchanges: Mapping[str, Address]) -> None:
        """Accept at the addresses that are new, and no longer at those that no exchange has any more."""
        for name in [name for name in self._exchanges if name in new or name not in exchanges]:
            self._exchanges.pop(name).close()
        for name, bound in new.items():
            self._exchanges[name] = await self._accept(bound, name)

    async def _accept(self, bound: Bound, exchange: str | None) -> _Open:
        server = self._server_of(exchange)
        if self._tls is not None:
            over_tls = TlsListener(server, self._tls, self._settings.head_timeout, self._system)
            for sock in bound.sockets:
                over_tls.open(sock)
            return _Open(bound, over_tls.close)
        # Containers of one machine often share a network of their own, so this is not refused.
        if not bound.wanted.is_loopback:
            log.warning("bots_without_tls", address=str(bound.wanted), cause=OPEN_WIRE, fix=OPEN_WIRE_FIX)
        loop = asyncio.get_running_loop()
        ends = contextlib.ExitStack()
        for sock in bound.sockets:  # a name such as "localhost" may stand for two addresses
            ends.callback((await loop.create_server(server, sock=sock, backlog=BACKLOG)).close)
        return _Open(bound, ends.close)

    def close(self) -> None:
        """Stop accepting. Open connections stay."""
        for one in self._exchanges.values():
            one.close()
        self._exchanges.clear()
        self._ends.close()
