"""Seal: make the bytes of one attempt, after every wait and anew for every send."""

from collections.abc import Callable

from sealgate.core.admission import Ticket
from sealgate.core.headers import content_length
from sealgate.core.routes import Auth
from sealgate.core.venues.templates import UnsignableError
from sealgate.errors import Refusal
from sealgate.gateway.keys.key import FORM, Secret, SigningKey

_SESSION, _SIGNED, _KEY = Auth.SESSION, Auth.SIGNED, Auth.KEY
# RFC 9110 section 8.6: a request of these methods states its length even when it is 0.
STATES_LENGTH = frozenset({"POST", "PUT", "PATCH"})


def sealed_request(
    head: Callable[[str, str], bytes],
    ticket: Ticket,
    key: SigningKey,
    stamp: tuple[int, bytes],
    body: bytes,
) -> bytes:
    """Return what goes upstream; `head` makes its request line and Host, `stamp` is timestamp and nonce.

    A session route needs a key with a session token: `check_session`. Raises Refusal where the exchange has
    no way to sign such a request.
    """
    raw, proof, (timestamp_ms, nonce) = ticket.target.raw, b"", stamp
    if ticket.route.auth is _SIGNED:
        try:
            proof, raw, body, is_new_form = key.sealer.sign(
                timestamp_ms, nonce, ticket.method, ticket.target, body
            )
        except UnsignableError as error:
            raise Refusal("bad_request", f"It cannot be signed: {error}.") from None
        if is_new_form and b"content-type" not in ticket.head.kept:
            proof += FORM
    elif ticket.route.auth is _KEY:
        proof = key.sealer.key_lines()
    elif ticket.route.auth is _SESSION and key.session is not None:
        proof = bearer_line(key.session)
    has_length = body or ticket.method in STATES_LENGTH
    length = content_length(len(body)) if has_length else b""
    return b"".join((head(ticket.method, raw), ticket.head.passed, length, proof, b"\r\n", body))


def bearer_line(session: Secret) -> bytes:
    """Return the header line that proves a session."""
    return f"Authorization: Bearer {session.reveal()}\r\n".encode("ascii")


def check_session(ticket: Ticket, key: SigningKey) -> None:
    """Refuse a session route for a key that has no session token."""
    if ticket.route.auth is _SESSION and key.session is None:
        raise Refusal("bot_forbidden", f"The key has no session token: set keys.{key.alias}.session.")
