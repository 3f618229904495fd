"""What a key signs with: a function of its secret from which the secret cannot be read back.

The names of digests and forms of secrets that a venue's file may use are in venues/scheme.py.
"""

import binascii
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field

from sealgate.venues.scheme import APPENDED, KeyTexts, Scheme, Sealer
from sealgate.venues.venue import Venue

Sign = Callable[[bytes], bytes]

# What keys the HMAC, by the form of the stored secret.
_HMAC_KEYS: dict[str, Callable[[bytearray], bytearray]] = {
    "utf8": lambda secret: secret,
    "hex": lambda secret: bytearray(binascii.unhexlify(secret)),
    "base64": lambda secret: bytearray(binascii.a2b_base64(secret, strict_mode=True)),
    "as_base64": lambda secret: bytearray(binascii.b2a_base64(secret, newline=False)),
    "sha256hex": lambda secret: bytearray(binascii.hexlify(hashlib.sha256(secret).digest())),
    "md5hex": lambda secret: bytearray(binascii.hexlify(hashlib.md5(secret, usedforsecurity=False).digest())),
}


@dataclass(frozen=True, slots=True)
class KeyMaterial:
    """The parts of one key. Its buffers are read once, by `sealer_of`; the caller wipes them then.

    `kind` is "" where the secret shows it. `secret_passphrase` is that of an encrypted private key.
    """

    api_key: str
    secret: bytearray = field(repr=False)
    passphrase: str = field(default="", repr=False)
    uid: str = ""
    recv_window: str = ""  # "": the file's
    kind: str = ""
    secret_passphrase: bytearray | None = field(default=None, repr=False)


def sealer_of(venue: Venue, key: KeyMaterial, base_url: str = "") -> Sealer:
    """Return the sealer of one key.

    Raises ValueError, without the secret, where that is not what the file says.
    """
    texts = KeyTexts(key.api_key, key.passphrase, key.uid, key.recv_window)
    return venue.sealer(texts, signer(venue.signing, key.secret), base_url)


def signer(scheme: Scheme, secret: bytearray) -> Sign:
    """Return a function that makes the raw signature of a message, by the scheme's digest and form of secret.

    Raises ValueError where the secret has another form.
    """
    if scheme.secret == APPENDED:
        return _hash_before(scheme.digest, bytes(secret))
    try:
        key = _HMAC_KEYS[scheme.secret](secret)
    except binascii.Error:
        raise ValueError(f"the secret is not {scheme.secret}") from None
    keyed = hmac.new(key, digestmod=scheme.digest)
    if key is not secret:
        key[:] = bytes(len(key))

    def sign(message: bytes) -> bytes:
        state = keyed.copy()
        state.update(message)
        return state.digest()

    return sign


def _hash_before(digest: str, secret: bytes) -> Sign:
    """Return a hash of a message with the secret after it.

    No hash can be prepared for what is hashed last, so the secret stays in memory.
    """
    fresh = getattr(hashlib, digest)

    def sign(message: bytes) -> bytes:
        state = fresh(message)
        state.update(secret)  # not `message + secret`, which would leave copies
        signature: bytes = state.digest()
        return signature

    return sign
