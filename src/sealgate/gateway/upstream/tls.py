"""TLS to the upstream: always verified, and resumed where the upstream allows it."""

import ssl
from pathlib import Path
from typing import Any


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
