"""The bytes of one attempt: which fields go with which method and proof, and in which order."""

import pytest

from rig.admitted import signing_key, ticket
from sealgate.core.admission import Ticket
from sealgate.errors import Refusal
from sealgate.gateway.keys.key import Secret, bearer_line, check_session, sealed_request

START = b"%b %b HTTP/1.1\r\nHost: api.example.com\r\n"
STAMP_MS = 1_790_000_000_000
PASSED = (b"X-Own", b"1")
SESSION = "tok-1"
BEARER = b"Authorization: Bearer tok-1\r\n"


def signed_lines(one: Ticket, body: bytes) -> bytes:
    """Return the three lines as the venue's file makes them, which has tests of its own."""
    lines, _, _, _ = signing_key().sealer.sign(STAMP_MS, b"", one.method, one.target, body)
    return lines


def head(method: str, raw: str) -> bytes:
    return START % (method.encode(), raw.encode())


SIGNED = {
    "a read": ("GET /symbols/list", b"", b""),
    "a read with a body": ("GET /symbols/list", b"{}", b"Content-Length: 2\r\n"),
    "an order": ("POST /order", b"{}", b"Content-Length: 2\r\n"),
    "POST without a body": ("POST /order/cancel", b"", b"Content-Length: 0\r\n"),
    "PUT without a body": ("PUT /order", b"", b"Content-Length: 0\r\n"),
    "PATCH without a body": ("PATCH /order", b"", b"Content-Length: 0\r\n"),
    "DELETE without a body": ("DELETE /order", b"", b""),
}


@pytest.mark.parametrize(("call", "body", "length"), SIGNED.values(), ids=SIGNED)
def test_a_signed_request(call: str, body: bytes, length: bytes) -> None:
    """RFC 9110 section 8.6 says who states a length although there is no body."""
    one = ticket(call, PASSED)
    sealed = sealed_request(head, one, signing_key(SESSION), (STAMP_MS, b""), body)
    fields = b"X-Own: 1\r\n" + length + signed_lines(one, body) + b"\r\n"
    assert sealed == head(one.method, one.target.raw) + fields + body


UNSIGNED = {
    "open": ("GET /time", SESSION, b""),
    "by session": ("GET /api-keys", SESSION, BEARER),
    "by a session that there is not": ("GET /api-keys", None, b""),
}


@pytest.mark.parametrize(("call", "session", "proof"), UNSIGNED.values(), ids=UNSIGNED)
def test_what_is_not_signed_has_nothing_of_the_key(call: str, session: str | None, proof: bytes) -> None:
    one = ticket(call, PASSED)
    sealed = sealed_request(head, one, signing_key(session), (STAMP_MS, b""), b"")
    assert sealed == head(one.method, one.target.raw) + b"X-Own: 1\r\n" + proof + b"\r\n"


def test_each_stamp_has_its_own_signature() -> None:
    one, key = ticket("POST /order"), signing_key()
    first, second = (sealed_request(head, one, key, (STAMP_MS + step, b""), b"") for step in (0, 1))
    assert first.splitlines()[-2] != second.splitlines()[-2]


def test_a_session_is_said_as_rfc_6750_has_it() -> None:
    assert bearer_line(Secret(SESSION)) == BEARER


FINE = {
    "a session route with a session": ("GET /api-keys", SESSION),
    "a signed route without one": ("POST /order", None),
    "an open route without one": ("GET /time", None),
}


@pytest.mark.parametrize(("call", "session"), FINE.values(), ids=FINE)
def test_who_needs_no_session_or_has_one(call: str, session: str | None) -> None:
    check_session(ticket(call), signing_key(session))


def test_a_session_route_without_a_session_names_the_setting() -> None:
    with pytest.raises(Refusal, match=r"^bot_forbidden: .+: set keys\.main\.session\.$"):
        check_session(ticket("GET /api-keys"), signing_key())
