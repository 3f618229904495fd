"""Stamp and seal: the header lines of one attempt, made after every wait, for every send anew."""

from sealgate.core.admission import Ticket
from sealgate.core.routes import Auth
from sealgate.errors import Refusal
from sealgate.gateway.keys import SigningKey

# RFC 9110 section 8.6: a request of these methods states its length even when it is 0.
_STATES_LENGTH = frozenset({"POST", "PUT", "PATCH"})


def sealed_fields(ticket: Ticket, key: SigningKey, timestamp_ms: int, body: bytes) -> bytes:
    """Return the header lines that go upstream, each with its CRLF, without Host.

    A session route needs a key with a session token: `check_session`.
    """
    lines = [b"%b: %b\r\n" % field for field in ticket.head.passed]
    if body or ticket.method in _STATES_LENGTH:
        lines.append(b"Content-Length: %d\r\n" % len(body))
    proof = _proof(ticket, key, timestamp_ms, body)
    lines += [f"{name}: {value}\r\n".encode("ascii") for name, value in proof.items()]
    return b"".join(lines)


def _proof(ticket: Ticket, key: SigningKey, timestamp_ms: int, body: bytes) -> dict[str, str]:
    if ticket.route.auth is Auth.SIGNED:
        return key.signing_headers(timestamp_ms, ticket.method, ticket.target, body)
    if ticket.route.auth is Auth.SESSION and key.session is not None:
        return {"Authorization": f"Bearer {key.session.reveal()}"}
    return {}


def check_session(ticket: Ticket, key: SigningKey) -> None:
    """Refuse a session route for a key that has no session token."""
    if ticket.route.auth is Auth.SESSION and key.session is None:
        raise Refusal("bot_forbidden", f"The key has no session token: set keys.{key.alias}.session.")
