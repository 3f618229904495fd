"""New private keys, as files of them, and a venue that takes each kind."""

from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from sealgate.venues.key_kinds import Kind

PRIVATE = tuple(kind for kind in Kind if kind is not Kind.HMAC)
VENUE = """
name = "mine"
title = "Mine"
[signing]
message = "{timestamp}{method}{target}{body}"
encoding = "base64"
[signing.headers]
X-KEY = "{api_key}"
X-TIME = "{timestamp}"
X-SIGN = "{signature}"
[signing.kinds]
hmac = { advice = "keys of this kind have expired; make an Ed25519 key" }
ed25519 = {}
rsa = { padding = "pss" }
es256 = {}
"""


def new_key(kind: Kind) -> Any:
    """Return a new private key of `cryptography`."""
    if kind is Kind.RSA:
        return rsa.generate_private_key(65537, 2048)
    if kind is Kind.ED25519:
        return ed25519.Ed25519PrivateKey.generate()
    return ec.generate_private_key(ec.SECP256R1())


def private(
    key: Any,
    encoding: Encoding = Encoding.PEM,
    form: PrivateFormat = PrivateFormat.PKCS8,
    passphrase: bytes = b"",
) -> bytes:
    """Return a private key as a file has it, encrypted if there is a passphrase."""
    lock = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    written: bytes = key.private_bytes(encoding, form, lock)
    return written


def public_der(key: Any) -> bytes:
    """Return its public key."""
    written: bytes = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return written
