"""New private keys, as files of them, and a venue that takes each kind."""

import base64
from collections import Counter
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from sealgate.venues.key_kinds import Kind

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_DIGESTS = {"sha256": hashes.SHA256(), "sha384": hashes.SHA384(), "sha512": hashes.SHA512()}
_START, _LETTERS = 16, 16  # bytes, and letters of base64, that are looked for
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


def new_key(kind: str, bits: int = 2048) -> Any:
    """Return a new private key of `cryptography`; an RSA key has so many bits."""
    if kind == Kind.RSA:
        return rsa.generate_private_key(65537, bits)
    if kind == Kind.ED25519:
        return ed25519.Ed25519PrivateKey.generate()
    return ec.generate_private_key(ec.SECP256R1())


def verifies(
    public: Any, message: bytes, signature: bytes, *, is_pss: bool = False, digest: str = "sha256"
) -> bool:
    """Ask whether a raw signature (of ES256: r and s, 64 bytes) is one of a message; `digest` is RSA's."""
    try:
        if isinstance(public, ed25519.Ed25519PublicKey):
            public.verify(signature, message)
        elif isinstance(public, rsa.RSAPublicKey):
            algorithm = _DIGESTS[digest]
            pss = padding.PSS(padding.MGF1(algorithm), padding.PSS.DIGEST_LENGTH)
            public.verify(signature, message, pss if is_pss else padding.PKCS1v15(), algorithm)
        else:
            assert isinstance(public, ec.EllipticCurvePublicKey)
            if len(signature) != 64:
                return False
            both = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
            public.verify(encode_dss_signature(*both), message, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


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


def base58(value: bytes) -> str:
    """Write bytes in Bitcoin's base58."""
    number, text = int.from_bytes(value, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = _BASE58[digit] + text
    return "1" * (len(value) - len(value.lstrip(b"\0"))) + text


def from_base58(text: str) -> bytes:
    """Read what `base58` writes. Raises ValueError."""
    number = 0
    for letter in text:
        number = number * 58 + _BASE58.index(letter)
    zeros = len(text) - len(text.lstrip("1"))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")


def public_der(key: Any) -> bytes:
    """Return its public key."""
    written: bytes = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return written


def numbers(key: Any) -> dict[str, bytes]:
    """Return the private numbers of a key, by name, the highest byte first."""
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return {"seed": key.private_bytes_raw()}
    values = key.private_numbers()
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return {"scalar": values.private_value.to_bytes(32, "big")}
    names = ("d", "p", "q", "dmp1", "dmq1", "iqmp")
    return {name: _bytes_of(getattr(values, name)) for name in names}


def _bytes_of(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def raw_forms(key: Any) -> dict[str, bytes]:
    """Return what to look for where not even OpenSSL's numbers may be: the first bytes give one away."""
    found = {}
    for name, number in numbers(key).items():
        found[f"{name}, the highest byte first"] = number[:_START]
        found[f"{name}, the lowest byte first"] = number[::-1][:_START]
    return found


def text_forms(key: Any) -> dict[str, bytes]:
    """Return what to look for everywhere: DER, PEM, base64, hex and digits, by name."""
    found = {}
    for name, number in numbers(key).items():
        start = number[:_START]
        found[f"{name} in hex"] = start.hex().encode()
        found[f"{name} in HEX"] = start.hex().upper().encode()
        found[f"{name} in digits"] = str(int.from_bytes(number, "big"))[:30].encode()
        # In base64 three bytes are four letters, so that where a text begins in it changes how it looks.
        for at in range(3):
            found[f"{name} in base64 at {at}"] = base64.b64encode(bytes(at) + number)[4 * bool(at) :][:20]
    forms = [PrivateFormat.PKCS8]
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        forms.append(PrivateFormat.TraditionalOpenSSL)
    for form in forms:
        der, letters = private(key, Encoding.DER, form), private(key, Encoding.PEM, form).split(b"\n")[1:-2]
        for name, number in numbers(key).items():
            at = der.index(number)
            found[f"{name} in DER ({form})"] = der[at - 2 : at + _START]
            # The lines of PEM have the letters of 48 bytes each.
            first, end = -(-at // 3) * 4, (at + len(number)) // 3 * 4
            for line, text in enumerate(letters):
                piece = text[max(0, first - 64 * line) : max(0, end - 64 * line)]
                if len(piece) >= _LETTERS:
                    found[f"{name} in line {line} of PEM ({form})"] = piece[:_LETTERS]
    return found


def found_in(content: bytes, forms: Mapping[str, bytes]) -> Counter[str]:
    """Count the forms that a content has."""
    return Counter({name: count for name, form in forms.items() if (count := content.count(form))})
