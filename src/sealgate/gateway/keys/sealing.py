"""Stamp and seal: the bytes of one attempt, made after every wait, for every send anew."""

from sealgate.core.admission import Ticket
from sealgate.core.headers import content_length
from sealgate.core.routes import Auth
from sealgate.errors import Refusal
from sealgate.gateway.keys.key import Secret, SigningKey

_SESSION, _SIGNED = Auth.SESSION, Auth.SIGNED
# RFC 9110 section 8.6: a request of these methods states its length even when it is 0.
_STATES_LENGTH = frozenset({"POST", "PUT", "PATCH"})


def sealed_request(start: bytes, ticket: Ticket, key: SigningKey, timestamp_ms: int, body: bytes) -> bytes:
    """Return what goes upstream; `start` is its request line and Host.

    A session route needs a key with a session token: `check_session`.
    """
    has_length = body or ticket.method in _STATES_LENGTH
    length = content_length(len(body)) if has_length else b""
    proof = _proof(ticket, key, timestamp_ms, body)
    return b"".join((start, ticket.head.passed, length, proof, b"\r\n", body))


def _proof(ticket: Ticket, key: SigningKey, timestamp_ms: int, body: bytes) -> bytes:
    if ticket.route.auth is _SIGNED:
        return key.signing_lines(timestamp_ms, ticket.method, ticket.target, body)
    if ticket.route.auth is _SESSION and key.session is not None:
        return bearer_line(key.session)
    return b""


def bearer_line(session: Secret) -> bytes:
    """Return the header line that proves a session."""
    return f"Authorization: Bearer {session.reveal()}\r\n".encode("ascii")


def check_session(ticket: Ticket, key: SigningKey) -> None:
    """Refuse a session route for a key that has no session token."""
    if ticket.route.auth is _SESSION and key.session is None:
        raise Refusal("bot_forbidden", f"The key has no session token: set keys.{key.alias}.session.")
