"""The request signature of spec.md, "API-key request signing", rules 1 to 3. Pure: bytes in, verdict out."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Mapping

from sealgate.sandbox.settings import SecretIs, SignatureEncoding, SignedTarget

PREFIX = "/v1/trade"

_HMAC_KEY: Mapping[SecretIs, Callable[[str], bytes]] = {
    "utf8": str.encode,
    "hex": bytes.fromhex,
    "base64": base64.b64decode,
    "sha256hex": lambda secret: hashlib.sha256(secret.encode()).hexdigest().encode(),
}

_WRITTEN: Mapping[SignatureEncoding, Callable[[bytes], bytes]] = {
    "hex": binascii.hexlify,
    "HEX": lambda digest: binascii.hexlify(digest).upper(),
    "base64": base64.b64encode,
    "base64url": lambda digest: base64.urlsafe_b64encode(digest).rstrip(b"="),
}

# How a new secret is written, so that it can be read back as what it is.
_NEW_SECRET: Mapping[SecretIs, Callable[[bytes], str]] = {
    "utf8": bytes.hex,
    "hex": bytes.hex,
    "base64": lambda raw: base64.b64encode(raw).decode(),
    "sha256hex": bytes.hex,
}


def new_secret(raw: bytes, secret_is: SecretIs) -> str:
    """Write random bytes as an api_secret."""
    return _NEW_SECRET[secret_is](raw)


def hmac_state(secret: str, secret_is: SecretIs) -> hmac.HMAC:
    """Prepare the HMAC of a secret; it is copied for every check."""
    return hmac.new(_HMAC_KEY[secret_is](secret), digestmod=hashlib.sha256)


def signed_message(timestamp: str, method: str, target: str, body: bytes, signed: SignedTarget) -> bytes:
    """Concatenate timestamp, METHOD, path and body; the path is the raw target without the prefix."""
    path = target if signed == "path_and_query" else target.partition("?")[0]
    head = f"{timestamp}{method}{path.removeprefix(PREFIX)}"
    return head.encode("utf-8", "surrogateescape") + body


def is_genuine(state: hmac.HMAC, message: bytes, presented: str, encoding: SignatureEncoding) -> bool:
    """Compare, in constant time, the presented signature with the one that the message should have."""
    check = state.copy()
    check.update(message)
    return hmac.compare_digest(
        _WRITTEN[encoding](check.digest()), presented.encode("utf-8", "surrogateescape")
    )
