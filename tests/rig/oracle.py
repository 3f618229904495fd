"""The signature as spec.md describes it, computed without the gateway's code and without `hmac`."""

import hashlib

_BLOCK = 64


def hmac_sha256(key: bytes, message: bytes) -> str:
    """Compute HMAC-SHA256 from its definition (RFC 2104, section 2), in hex."""
    if len(key) > _BLOCK:
        key = hashlib.sha256(key).digest()
    key = key.ljust(_BLOCK, b"\0")
    inner = hashlib.sha256(bytes(octet ^ 0x36 for octet in key) + message).digest()
    return hashlib.sha256(bytes(octet ^ 0x5C for octet in key) + inner).hexdigest()


def signature(secret: bytes, timestamp: bytes, method: bytes, target: bytes, body: bytes) -> str:
    """Sign what was received: timestamp + METHOD + path + body, the path without /v1/trade and query."""
    path = target.split(b"?")[0]
    assert path.startswith(b"/v1/trade/")
    return hmac_sha256(secret, timestamp + method + path[len(b"/v1/trade") :] + body)
