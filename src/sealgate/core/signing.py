"""Signing: HMAC-SHA256 over timestamp + METHOD + path + body (spec.md, API-key request signing).

What spec.md does not show is a setting: how the signature is encoded, what keys the HMAC, and whether the
query belongs to the signed path. The prefix never does (rule 2), and the body is the bytes sent (rule 3).

A `Signer` keeps no secret, only the two hashes that an HMAC is made of, each fed its key block (RFC 2104),
and copies them for each request. That is also faster: the key blocks are hashed once, and the standard
library's `hmac` object costs twice as much to copy and to finish.
"""

import base64
import binascii
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from sealgate.core.target import Target

_BLOCK_BYTES, _INNER, _OUTER = 64, 0x36, 0x5C  # RFC 2104 section 2
# No message that is ever signed: those begin with a timestamp.
_FINGERPRINT = b"sealgate: fingerprint of a secret"


class Encoding(StrEnum):
    """How the 32 bytes of the signature are written."""

    HEX = "hex"
    UPPER_HEX = "HEX"
    BASE64 = "base64"
    BASE64URL = "base64url"


class SecretIs(StrEnum):
    """What the stored secret is to the HMAC."""

    UTF8 = "utf8"
    HEX = "hex"
    BASE64 = "base64"
    SHA256HEX = "sha256hex"


class SignedTarget(StrEnum):
    """Which part of the target is signed."""

    PATH = "path"
    PATH_AND_QUERY = "path_and_query"


@dataclass(frozen=True, slots=True)
class Scheme:
    """The signing settings of one upstream. `prefix` ("/v1/trade") is forwarded but not signed."""

    prefix: str
    encoding: Encoding = Encoding.HEX
    secret_is: SecretIs = SecretIs.UTF8
    target: SignedTarget = SignedTarget.PATH

    def message(self, timestamp: str, method: str, target: Target, body: bytes) -> bytes:
        """Return the exact bytes that are signed; `timestamp` is as its header has it."""
        signed = target.path if self.target is SignedTarget.PATH else target.raw
        return f"{timestamp}{method}{signed[len(self.prefix) :]}".encode("ascii") + body

    def left_out(self, target: Target) -> tuple[str, ...]:
        """Return the parts of a target that are sent and not signed, in order; none is empty."""
        query = f"?{target.query}" if target.query and self.target is SignedTarget.PATH else ""
        return tuple(part for part in (self.prefix, query) if part)


_WRITERS: dict[Encoding, Callable[[bytes], str]] = {
    Encoding.HEX: bytes.hex,
    Encoding.UPPER_HEX: lambda digest: digest.hex().upper(),
    Encoding.BASE64: lambda digest: base64.b64encode(digest).decode("ascii"),
    Encoding.BASE64URL: lambda digest: base64.urlsafe_b64encode(digest).decode("ascii").rstrip("="),
}

# RFC 4648 sections 4 and 5: all that the two alphabets differ in.
_OWN_LETTERS = {Encoding.BASE64: frozenset("+/"), Encoding.BASE64URL: frozenset("-_")}


class Signer:
    """Signs with one secret. The buffer is read once, here; the caller wipes it afterwards.

    Raises ValueError, without the secret, where the secret is not what `scheme.secret_is` says.
    """

    def __init__(self, scheme: Scheme, secret: bytearray) -> None:
        self.scheme = scheme
        key = _hmac_key(scheme.secret_is, secret)
        block = _key_block(key)
        _flip(block, _INNER)
        self._inner = hashlib.sha256(block)
        _flip(block, _INNER ^ _OUTER)
        self._outer = hashlib.sha256(block)
        for own in (block,) if key is secret else (block, key):
            own[:] = bytes(len(own))
        self._write = _WRITERS[scheme.encoding]

    def sign(self, timestamp_ms: int, method: str, target: Target, body: bytes) -> str:
        """Return the signature in the scheme's encoding."""
        return self._write(self._mac(self.scheme.message(str(timestamp_ms), method, target, body)))

    def sign_message(self, message: bytes) -> str:
        """Return the signature of bytes put together elsewhere."""
        return self._write(self._mac(message))

    def fingerprint(self) -> str:
        """Return 8 hex digits that tell secrets apart, and show no more of one than a signature does.

        The same secret has another fingerprint where `secret_is` differs.
        """
        return self._mac(_FINGERPRINT).hex()[:8]

    def _mac(self, message: bytes) -> bytes:
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()


def tells_encoding(encoding: Encoding, signature: str) -> bool:
    """Ask whether a signature has a letter that the other base64 alphabet lacks.

    One in four has none; an exchange that is lenient about padding reads such a one in either encoding.
    """
    own = _OWN_LETTERS.get(encoding)
    return own is None or not own.isdisjoint(signature)


def fits(secret_is: SecretIs, secret: bytearray) -> bool:
    """Ask whether a secret can be what `secret_is` says."""
    try:
        _hmac_key(secret_is, secret)
    except ValueError:
        return False
    return True


def _hmac_key(secret_is: SecretIs, secret: bytearray) -> bytearray:
    try:
        return _KEYS[secret_is](secret)
    except binascii.Error:
        raise ValueError(f"the secret is not {secret_is.value}, as signing.secret_is says") from None


def _key_block(key: bytearray) -> bytearray:
    block = bytearray(_BLOCK_BYTES)
    short = hashlib.sha256(key).digest() if len(key) > _BLOCK_BYTES else key
    block[: len(short)] = short
    return block


def _flip(block: bytearray, pad: int) -> None:
    """XOR every byte in place: a copy would stay in memory."""
    for place in range(len(block)):
        block[place] ^= pad


_KEYS: dict[SecretIs, Callable[[bytearray], bytearray]] = {
    SecretIs.UTF8: lambda secret: secret,
    SecretIs.HEX: lambda secret: bytearray(binascii.unhexlify(secret)),
    SecretIs.BASE64: lambda secret: bytearray(binascii.a2b_base64(secret, strict_mode=True)),
    SecretIs.SHA256HEX: lambda secret: bytearray(hashlib.sha256(secret).hexdigest(), "ascii"),
}
