"""The signed bytes of one attempt."""

from collections.abc import Callable

from sealgate.errors import Refusal
from sealgate.http.headers import content_length
from sealgate.keys.key import FORM, STATES_LENGTH, SigningKey, bearer_line
from sealgate.request.admission import Ticket
from sealgate.venues.own_parameters import body_type
from sealgate.venues.routes import Auth
from sealgate.venues.templates import UnsignableError

_SESSION, _SIGNED, _KEY = Auth.SESSION, Auth.SIGNED, Auth.KEY


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
            if body:
                kept = ticket.head.kept
                declared = body_type(kept.get(b"content-type"), kept.get(b"content-encoding"))
                key.sealer.check_declared(body, declared)
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


def check_session(ticket: Ticket, key: SigningKey) -> None:
    """Refuse a session route for a key that has no session token."""
    if ticket.route.auth is _SESSION and key.session is None:
        raise Refusal("bot_forbidden", f"The key has no session token: set keys.{key.alias}.session.")
