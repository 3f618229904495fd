"""The exchange's address, how a connection to it is opened, and what can go wrong with one, in words."""

import asyncio
import errno
import math
import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from aiohappyeyeballs import AddrInfoType, pop_addr_infos_interleave, start_connection
from yarl import URL

from sealgate.config.addresses import ProxyUrl, family_name, family_of
from sealgate.config.tree import ExchangeConfig
from sealgate.exchange.tunnel import TunnelError, open_tunnel
from sealgate.keys.key import NO_SECRET, Secret
from sealgate.machine.look_up import look_up
from sealgate.venues.replies import Judge

_NEXT_ADDRESS_S = 0.25  # until the next address is tried beside the last one (RFC 8305 section 8)
_LOOK_UP_S = 10.0  # for how long the addresses of a name are used

# EAI_AGAIN says nothing about the name: a container has no route out, or its resolver is down.
_LOOK_UP_FAULTS: dict[int | None, str] = {
    socket.EAI_NONAME: "no such host name",
    socket.EAI_AGAIN: "its name cannot be resolved at the moment: the DNS servers do not answer",
}
# Where a name may have addresses of another family only.
_WITHOUT_ADDRESS = (socket.EAI_NONAME, socket.EAI_NODATA, socket.EAI_ADDRFAMILY)


@dataclass(frozen=True, slots=True)
class Way:
    """How the exchange is reached. `source` is the local address of connections, "" for any.

    `password` is that of the proxy's user.
    """

    source: str = ""
    proxy: ProxyUrl | None = None
    password: Secret = NO_SECRET


@dataclass(frozen=True, slots=True)
class Destination:
    """Where all requests go. `base_url` has no trailing slash; durations are seconds.

    `keep_alive_s` is less than the server's, so that it is not the first to close an idle connection.
    `ca_digest` is that of the content of `ca_file`: other certificates make another destination. `replies`
    says what a reply means. `headers` are whole lines that each request has.
    """

    base_url: str
    connect_timeout_s: float
    total_timeout_s: float
    max_connections: int
    ca_file: Path | None = None
    keep_alive_s: float = 15.0
    ca_digest: bytes = b""
    replies: Judge = Judge()  # noqa: RUF009 - frozen
    headers: str = ""
    way: Way = Way()


def destination_of(
    config: ExchangeConfig, ca_digest: bytes = b"", proxy_password: Secret = NO_SECRET
) -> Destination:
    """Return the destination of an exchange's requests."""
    upstream = config.upstream
    return Destination(
        base_url=str(config.base_url),
        connect_timeout_s=upstream.connect_timeout,
        total_timeout_s=upstream.total_timeout,
        max_connections=upstream.max_connections,
        ca_file=upstream.ca_file,
        keep_alive_s=upstream.keep_alive,
        ca_digest=ca_digest,
        replies=config.venue.replies,
        headers="".join(f"{name}: {value}\r\n" for name, value in upstream.headers.items()),
        way=Way(upstream.source or "", upstream.proxy, proxy_password),
    )


_ANY_WAY = Way()


class ResumingContext(ssl.SSLContext):
    """A client's context that offers the last session again, which saves a part of the next handshake.

    For one exchange only: a session stands for that server's certificate (RFC 8446 section 2.2). The loops
    accept no session, but both of them create the TLS object here.
    """

    session: ssl.SSLSession | None = None

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        """Make the TLS object of a new connection."""
        return super().wrap_bio(*args, **{**kwargs, "session": self.session})

    def remember(self, tls: ssl.SSLObject) -> None:
        """Keep the session of a connection for the next one, if it can be resumed."""
        session = tls.session
        if session is not None and session.has_ticket:
            self.session = session


def client_context(ca_file: Path | None) -> ResumingContext:
    """Return a context that trusts the system's authorities, or those of a file alone."""
    context = ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca_file is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(ca_file)
    return context


def has_said_goodbye(tls: ssl.SSLObject) -> bool:
    """Return whether the peer ended the session, and not just the connection (RFC 8446 section 6.1)."""
    try:
        return not tls.read(1)
    except ssl.SSLZeroReturnError:
        return True
    except ssl.SSLError:
        return False


class ReplyError(Exception):
    """There is no whole reply, or one that is not accepted: its words say why."""


class ConnectError(Exception):
    """There is no connection, and nothing was sent: its words say why."""


class ProxyRefusedError(ConnectError):
    """The proxy is not reached, or opens no way to the exchange."""


# Everything that is raised when a connection breaks, or carries something else than HTTP.
TRANSPORT_ERRORS = (OSError, EOFError, ReplyError)


def describe(error: BaseException) -> str:
    """Say in a few words how a reply was lost. The words never repeat what the peer sent."""
    if isinstance(error, ReplyError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return "it took too long" if isinstance(error, TimeoutError) else type(error).__name__


P = TypeVar("P", bound=asyncio.Protocol)


class Dialer:
    """Opens connections to the host of a URL. Proxies of the environment are not used.

    Make it inside a running loop. `tls` is None where the URL is plain HTTP. `too_late` says what took too
    long where a connection is not there in time.
    """

    def __init__(self, url: URL, tls: ssl.SSLContext | None, way: Way = _ANY_WAY) -> None:
        self._loop = asyncio.get_running_loop()
        self._host, self._port = url.raw_host or "", url.port or 0
        self._tls = tls
        self._there = f"cannot connect to {self._host}:{self._port}"
        self._name = None if tls is None else self._host.rstrip(".")  # RFC 6066 section 3
        self._way = way
        self._family = family_of(way.source) if way.source else socket.AF_UNSPEC
        local: list[AddrInfoType] = [(self._family, socket.SOCK_STREAM, 0, "", (way.source, 0))]
        self._local = local if way.source else None
        # What is looked up: a proxy gets the exchange's name.
        self._next = (self._host, self._port) if way.proxy is None else (way.proxy.host, way.proxy.port)
        self._look_up: asyncio.Task[list[AddrInfoType]] | None = None
        self._look_up_ends_at = -math.inf
        through = "" if way.proxy is None else f" through the proxy {way.proxy.authority}"
        self.too_late = f"no connection{through} in time" + ("; see upstream.proxy" if through else "")

    async def dial(self, protocol: Callable[[], P]) -> P:
        """Open a connection and return its protocol. Raises ConnectError."""
        addresses = await self._addresses()
        while True:
            # 1. TCP, and a tunnel if there is a proxy.
            sock = await self._reach(addresses)
            # 2. TLS. One server of several may be misconfigured: then try the other addresses.
            try:
                _, made = await self._loop.create_connection(
                    protocol, sock=sock, ssl=self._tls, server_hostname=self._name
                )
            except OSError as error:
                pop_addr_infos_interleave(addresses)
                if not addresses:
                    raise self._failed(error, is_far=True) from None
            else:
                return made

    async def reach(self) -> socket.socket:
        """Return a socket for the bytes to the exchange, before any TLS. Raises ConnectError."""
        return await self._reach(await self._addresses())

    async def _reach(self, addresses: list[AddrInfoType]) -> socket.socket:
        proxy = self._way.proxy
        try:
            # 1. TCP, to whichever address accepts first (RFC 8305).
            sock = await start_connection(
                addresses, local_addr_infos=self._local, happy_eyeballs_delay=_NEXT_ADDRESS_S
            )
            # 2. The tunnel.
            if proxy is not None:
                await open_tunnel(sock, proxy, self._way.password.reveal(), self._host, self._port)
        except TunnelError as error:
            raise ProxyRefusedError(f"{self._there}: {error}") from None
        except OSError as error:
            raise self._failed(error) from None
        return sock

    def _failed(self, error: OSError, *, is_far: bool = False) -> ConnectError:
        """Return why there is no connection. `is_far`: the error is of the exchange, behind any proxy."""
        source, proxy, there = self._way.source, self._way.proxy, self._there
        if source and error.errno == errno.EADDRNOTAVAIL:
            cause = "this machine does not have that address any more; see upstream.source"
        elif source and isinstance(error, socket.gaierror) and error.errno in _WITHOUT_ADDRESS:
            cause = f"no such host name, or it has no {family_name(source)} address; see upstream.source"
        else:
            cause = _cause(error)
        start = f" from {source}" if source else ""
        if proxy is None or is_far:
            through = "" if proxy is None else f" through the proxy {proxy.authority}"
            return ConnectError(f"{there}{through}{start}: {cause}")
        fix = "" if "; see " in cause else "; see upstream.proxy"
        return ProxyRefusedError(
            f"{there}: the proxy {proxy.authority} cannot be reached{start}: {cause}{fix}"
        )

    async def _addresses(self) -> list[AddrInfoType]:
        """Return the addresses to connect to, the exchange's or the proxy's. Raises ConnectError."""
        try:
            return list(await self._looked_up())
        except OSError as error:
            raise self._failed(error) from None

    async def _looked_up(self) -> list[AddrInfoType]:
        """Look a name up. All who connect within ten seconds share one look-up, as each takes a thread."""
        now, latest = self._loop.time(), self._look_up
        if latest is not None and not latest.done():
            return await asyncio.shield(latest)
        if latest is None or now >= self._look_up_ends_at or latest.exception() is not None:
            latest = self._look_up = self._loop.create_task(look_up(*self._next, self._family))
            self._look_up_ends_at = now + _LOOK_UP_S
        return await asyncio.shield(latest)


def _cause(error: OSError) -> str:
    """Return the words of TLS, the resolver or the system; asyncio's own would repeat the address."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused ({error.verify_message}); see upstream.ca_file"
    if isinstance(error, ssl.SSLError):
        return f"it does not speak TLS as expected ({error.reason})"
    if isinstance(error, socket.gaierror):
        return _LOOK_UP_FAULTS.get(error.errno, f"its name cannot be resolved ({error.strerror})")
    return os.strerror(error.errno) if error.errno else str(error) or "the connection was closed"
