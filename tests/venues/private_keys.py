"""Private keys made at random, written as exchanges hand them out, and what verifies their signatures."""

import base64
from collections.abc import Callable
from functools import cache
from urllib.parse import quote, unquote

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from rig.private_keys import base58, from_base58

PrivateKey = ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

_MADE: dict[str, Callable[[], PrivateKey]] = {
    "ed25519": ed25519.Ed25519PrivateKey.generate,
    "rsa": lambda: rsa.generate_private_key(65537, 2048),
    "es256": lambda: ec.generate_private_key(ec.SECP256R1()),
}


@cache
def key_of(kind: str, _owner: str) -> PrivateKey:
    """Return the key of an owner, which is another one in each run."""
    return _MADE[kind]()


def public_of(key: PrivateKey) -> str:
    """Return the public key, as base64 of its DER."""
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return base64.b64encode(public).decode()


def verifies(public: str, message: bytes, signature: bytes, *, is_pss: bool = False) -> bool:
    """Ask whether a raw signature (of ES256: r and s, 64 bytes) is one of a message."""
    key = serialization.load_der_public_key(base64.b64decode(public))
    try:
        if isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(signature, message)
        elif isinstance(key, rsa.RSAPublicKey):
            pss = padding.PSS(padding.MGF1(SHA256()), padding.PSS.DIGEST_LENGTH)
            key.verify(signature, message, pss if is_pss else padding.PKCS1v15(), SHA256())
        else:
            assert isinstance(key, ec.EllipticCurvePublicKey)
            if len(signature) != 64:
                return False
            both = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
            key.verify(encode_dss_signature(*both), message, ec.ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


def _pem(format_: serialization.PrivateFormat) -> Callable[[PrivateKey], str]:
    plain = serialization.NoEncryption()
    return lambda key: key.private_bytes(serialization.Encoding.PEM, format_, plain).decode()


def _der(key: PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


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
    "pem": _pem(serialization.PrivateFormat.PKCS8),
    "old-pem": _pem(serialization.PrivateFormat.TraditionalOpenSSL),  # SEC1, PKCS1
    "der64": lambda key: base64.b64encode(_der(key)).decode(),
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
