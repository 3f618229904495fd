"""The exchange's address, how a connection to it is opened, and what can go wrong with one, in words."""

import asyncio
import math
import os
import socket
import ssl
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from aiohappyeyeballs import AddrInfoType, pop_addr_infos_interleave, start_connection
from yarl import URL

from sealgate.config.addresses import is_ip
from sealgate.config.tree import ExchangeConfig
from sealgate.venues.replies import Judge

_NEXT_ADDRESS_S = 0.25  # until the next address is tried beside the last one (RFC 8305 section 8)
_LOOK_UP_S = 10.0  # for how long the addresses of a name are used

# EAI_AGAIN says nothing about the name: a container has no route out, or its resolver is down.
_LOOK_UP_FAULTS: dict[int | None, str] = {
    socket.EAI_NONAME: "no such host name",
    socket.EAI_AGAIN: "its name cannot be looked up at the moment: the DNS servers do not answer",
}


@dataclass(frozen=True, slots=True)
class Destination:
    """Where all requests go. `base_url` has no trailing slash; durations are seconds.

    `keep_alive_s` is less than the server's, so that it is not the first to close an idle connection.
    `ca_digest` is that of the content of `ca_file`: other certificates make another destination. `replies`
    says what a reply means.
    """

    base_url: str
    connect_timeout_s: float
    total_timeout_s: float
    max_connections: int
    ca_file: Path | None = None
    keep_alive_s: float = 15.0
    ca_digest: bytes = b""
    replies: Judge = Judge()  # noqa: RUF009 - frozen


def destination_of(config: ExchangeConfig, ca_digest: bytes = b"") -> Destination:
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
    )


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
    """Opens connections to the host of a URL, directly: proxies of the environment are not used.

    Make it inside a running loop. `tls` is None where the URL is plain HTTP.
    """

    def __init__(self, url: URL, tls: ssl.SSLContext | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._host, self._port = url.raw_host or "", url.port or 0
        self._tls = tls
        self._name = None if tls is None else self._host.rstrip(".")  # RFC 6066 section 3
        self._look_up: asyncio.Task[list[AddrInfoType]] | None = None
        self._look_up_ends_at = -math.inf

    async def dial(self, protocol: Callable[[], P]) -> P:
        """Open a connection and return its protocol. Raises ConnectError."""
        try:
            addresses = list(await self._addresses())
            while True:
                # 1. TCP, to whichever address accepts first (RFC 8305).
                sock = await start_connection(addresses, happy_eyeballs_delay=_NEXT_ADDRESS_S)
                # 2. TLS. One server of several may be misconfigured: then try the other addresses.
                try:
                    _, made = await self._loop.create_connection(
                        protocol, sock=sock, ssl=self._tls, server_hostname=self._name
                    )
                except OSError:
                    pop_addr_infos_interleave(addresses)
                    if not addresses:
                        raise
                else:
                    return made
        except OSError as error:
            raise ConnectError(f"cannot connect to {self._host}:{self._port}: {_cause(error)}") from None

    async def _addresses(self) -> list[AddrInfoType]:
        """Look the host up. All who connect within ten seconds share one look-up.

        Each look-up takes a thread, and one whose DNS server does not answer keeps it.
        """
        now, latest = self._loop.time(), self._look_up
        if latest is not None and not latest.done():
            return await asyncio.shield(latest)
        if latest is None or now >= self._look_up_ends_at or latest.exception() is not None:
            # glibc does not count loopback: asked for configured families only, it may refuse "::1".
            flags = 0 if is_ip(self._host) else socket.AI_ADDRCONFIG
            look_up: Coroutine[Any, Any, list[Any]] = self._loop.getaddrinfo(
                self._host, self._port, type=socket.SOCK_STREAM, flags=flags
            )
            latest = self._look_up = self._loop.create_task(look_up)
            self._look_up_ends_at = now + _LOOK_UP_S
        return await asyncio.shield(latest)


def _cause(error: OSError) -> str:
    """Return the words of TLS, the resolver or the system; asyncio's own would repeat the address."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused ({error.verify_message}); see upstream.ca_file"
    if isinstance(error, ssl.SSLError):
        return f"it does not speak TLS as expected ({error.reason})"
    if isinstance(error, socket.gaierror):
        return _LOOK_UP_FAULTS.get(error.errno, f"its name cannot be looked up ({error.strerror})")
    return os.strerror(error.errno) if error.errno else str(error) or "the connection was closed"
