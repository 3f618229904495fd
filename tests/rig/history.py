"""What must hold for everything that an upstream received, in the style of a history check."""

from collections.abc import Iterable

from rig import oracle
from rig.upstream import Received

WINDOW_MS = 5000


def check_seal(request: Received, secret: bytes, api_key: bytes) -> None:
    """Check the three signing headers of one request against the bytes received."""
    stamp = request.head.value(b"X-SERVICE-TIMESTAMP")
    assert stamp is not None
    assert len(stamp) == 13
    assert request.at_ms - WINDOW_MS < int(stamp) <= request.at_ms
    assert request.head.value(b"X-SERVICE-APIKEY") == api_key
    expected = oracle.signature(secret, stamp, request.method, request.target, request.body)
    assert request.head.value(b"X-SERVICE-SIGNATURE") == expected.encode()


def check_history(received: Iterable[Received], secret: bytes, api_key: bytes) -> None:
    """Check that each request is sealed, and each with a seal of its own."""
    signatures: set[bytes | None] = set()
    for request in received:
        check_seal(request, secret, api_key)
        signature = request.head.value(b"X-SERVICE-SIGNATURE")
        assert signature not in signatures, "one signature was received twice"
        signatures.add(signature)
