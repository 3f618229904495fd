"""The bytes of one attempt: which fields go with which method and proof, and in which order."""

import pytest

from rig.admitted import signing_key, ticket
from sealgate.request.admission import Ticket
from sealgate.request.sender import sealed_request

START = b"%b %b HTTP/1.1\r\nHost: api.example.com\r\n"
STAMP_MS = 1_790_000_000_000
PASSED = (b"X-Own", b"1")
SESSION = "tok-1"


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
    sealed = sealed_request(head, one, signing_key(SESSION), STAMP_MS, b"", body)
    fields = b"X-Own: 1\r\n" + length + signed_lines(one, body) + b"\r\n"
    assert sealed == head(one.method, one.target.raw) + fields + body
