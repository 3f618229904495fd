"""The exchange's address, TLS to it, and what can go wrong with a connection, in words."""

import os
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from sealgate.config import Config
from sealgate.venues.replies import Judge

# A container without a way out, or a resolver that is down, gives the second; it says nothing of the name.
_LOOK_UP: dict[int | None, str] = {
    socket.EAI_NONAME: "no such host name",
    socket.EAI_AGAIN: "its name cannot be looked up at the moment: the DNS servers do not answer",
}


@dataclass(frozen=True, slots=True)
class Destination:
    """Where all requests go. `base_url` has no trailing slash; durations are seconds.

    `keep_alive_s` is less than the server's, so that it is not the first to close an idle connection.
    `ca_digest` is of what `ca_file` holds: with other certificates in it, it is another destination.
    `replies` says what a reply means.
    """

    base_url: str
    connect_timeout_s: float
    total_timeout_s: float
    max_connections: int
    ca_file: Path | None = None
    keep_alive_s: float = 15.0
    ca_digest: bytes = b""
    replies: Judge = Judge()  # noqa: RUF009 - frozen


def destination_of(config: Config, ca_digest: bytes = b"") -> Destination:
    """Return the destination that a configuration names."""
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

    For one upstream only: a session is proof of that server's certificate (RFC 8446 section 2.2). The loops
    and aiohttp have no place to hand a session in, but all of them make the TLS object here.
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
    """Ask whether the peer ended the session and not just the connection (RFC 8446 section 6.1)."""
    try:
        return not tls.read(1)
    except ssl.SSLZeroReturnError:
        return True
    except ssl.SSLError:
        return False


class ReplyError(Exception):
    """No whole reply came, or one that is not accepted: its words say why."""


# All that is raised where a connection cannot be made (by aiohttp), breaks, or carries no HTTP.
TRANSPORT_ERRORS = (aiohttp.ClientError, OSError, EOFError, ReplyError)


def describe(error: BaseException) -> str:
    """Say in a few words what went wrong.

    The words never repeat what the peer sent.
    """
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"cannot connect to {error.host}:{error.port}: {_cause(error.certificate_error)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect to {error.host}:{error.port}: {_cause(error.os_error)}"
    if isinstance(error, ReplyError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return "it took too long" if isinstance(error, TimeoutError) else type(error).__name__


def _cause(error: Exception) -> str:
    """Return the words of whoever knows: TLS, the resolver or the system (asyncio's repeat the address)."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused ({error.verify_message}); see upstream.ca_file"
    if isinstance(error, ssl.SSLError):
        return f"it does not speak TLS as expected ({error.reason})"
    if isinstance(error, socket.gaierror):
        return _LOOK_UP.get(error.errno, f"its name cannot be looked up ({error.strerror})")
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
