"""Private keys made at random, written as exchanges hand them out, and what verifies their signatures."""

import base64
from collections.abc import Callable
from functools import cache
from urllib.parse import quote, unquote

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat, load_der_public_key

import rig.private_keys
from rig.private_keys import base58, from_base58, new_key, private, public_der

PrivateKey = ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@cache
def key_of(kind: str, _owner: str) -> PrivateKey:
    """Return the key of an owner, which is another one in each run."""
    key: PrivateKey = new_key(kind)
    return key


def public_of(key: PrivateKey) -> str:
    """Return the public key, as base64 of its DER."""
    return base64.b64encode(public_der(key)).decode()


def verifies(public: str, message: bytes, signature: bytes, *, is_pss: bool = False) -> bool:
    """Ask whether a raw signature is one of a message; `public` is as `public_of` writes it."""
    key = load_der_public_key(base64.b64decode(public))
    return rig.private_keys.verifies(key, message, signature, is_pss=is_pss)


def _seed(key: PrivateKey) -> bytes:
    assert isinstance(key, ed25519.Ed25519PrivateKey)
    return key.private_bytes_raw()


def _pair(key: PrivateKey) -> bytes:
    """Return the 64 bytes of seed and public key."""
    assert isinstance(key, ed25519.Ed25519PrivateKey)
    return key.private_bytes_raw() + key.public_key().public_bytes_raw()


def from_base64(text: str) -> bytes:
    """Read base64 and base64url, with padding or without. Raises ValueError."""
    padded = text.rstrip("=").replace("+", "-").replace("/", "_")
    return base64.urlsafe_b64decode(padded + "=" * (-len(padded) % 4))


# How a key is handed out, by the names that rows in calls.py have for it.
FORMS: dict[str, Callable[[PrivateKey], str]] = {
    "pem": lambda key: private(key).decode(),
    "old-pem": lambda key: private(key, form=PrivateFormat.TraditionalOpenSSL).decode(),  # SEC1, PKCS1
    "der64": lambda key: base64.b64encode(private(key, Encoding.DER)).decode(),
    "seed64": lambda key: base64.b64encode(_seed(key)).decode(),
    "pair64": lambda key: base64.b64encode(_pair(key)).decode(),
    "seed58": lambda key: base58(_seed(key)),
    "pair58": lambda key: base58(_pair(key)),
    "orderly": lambda key: f"ed25519:{base58(_seed(key))}",
}

# How a signature is written in a request, and read back.
WRITINGS: tuple[tuple[Callable[[bytes], str], Callable[[str], bytes]], ...] = (
    (lambda raw: base64.b64encode(raw).decode(), from_base64),
    (lambda raw: quote(base64.b64encode(raw), safe=""), lambda text: from_base64(unquote(text))),
    (lambda raw: base64.urlsafe_b64encode(raw).decode().rstrip("="), from_base64),
    (base58, from_base58),
)
