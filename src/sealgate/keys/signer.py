"""What a key signs with: a function of its secret from which the secret cannot be read back.

The names of digests and forms of secrets that a venue's file may use are in venues/encodings.py.
"""

import binascii
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field

from sealgate.keys.private_keys import PrivateKeyError, read_private_key
from sealgate.keys.wrong_secrets import wrong_kind
from sealgate.venues.encodings import APPENDED
from sealgate.venues.key_kinds import Kind, Signer
from sealgate.venues.scheme import Scheme
from sealgate.venues.sealer import KeyTexts, Sealer
from sealgate.venues.venue import Venue

Sign = Callable[[bytes], bytes]

# No message that is ever signed: those begin with a timestamp, a key or a method.
_FINGERPRINT = b"sealgate: fingerprint of a secret"

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

    Raises ValueError with the cause, without the secret, where that is not what the file says; it is a
    PrivateKeyError where the fix is known, too.
    """
    signer = signer_of(venue, key)
    secret = key.secret.decode("utf-8") if venue.schemes[signer.kind].is_static else ""
    texts = KeyTexts(key.api_key, key.passphrase, key.uid, key.recv_window, secret)
    return venue.sealer(texts, signer, base_url)


def signer_of(venue: Venue, key: KeyMaterial) -> Signer:
    """Return what signs with a key, whose kind the venue takes. Raises ValueError as `sealer_of` does."""
    schemes = venue.schemes
    text = next((one for one in schemes.values() if one.key_text != "pem"), venue.signing)
    private = read_private_key(key.secret, text.key_text, text.key_prefix, key.secret_passphrase)
    kind = Kind.HMAC if private is None else private.kind
    if kind not in schemes:
        raise PrivateKeyError(*wrong_kind(kind, schemes, venue.title))
    if key.kind and kind != key.kind:
        cause = f"is of the kind {kind}, but the setting `kind` requires {key.kind}"
        raise PrivateKeyError(cause, "correct the setting, or store the other key")
    if private is None:
        return hmac_signer(schemes[kind], key.secret)
    return private.signer(schemes[kind].padding, schemes[kind].digest)


def hmac_signer(scheme: Scheme, secret: bytearray) -> Signer:
    """Return what signs with a secret that the exchange has, too, by the scheme's digest and form of secret.

    Raises ValueError where the secret has another form.
    """
    sign = _hash_before(scheme.digest, bytes(secret)) if scheme.secret == APPENDED else _keyed(scheme, secret)
    return Signer(Kind.HMAC, sign, sign(_FINGERPRINT))


def _keyed(scheme: Scheme, secret: bytearray) -> Sign:
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
