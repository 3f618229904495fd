"""The kinds of keys: what a venue's file can name, and what signs with one of them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """The algorithm that a key signs with."""

    HMAC = "hmac"
    ED25519 = "ed25519"
    RSA = "rsa"
    ES256 = "es256"


@dataclass(frozen=True, slots=True)
class Signer:
    """What signs with one key.

    `sign` returns the raw signature of a message: of ES256 the 64 bytes of r and s (RFC 7518 section 3.4).
    `identity` is the same for the same key however it was stored, and shows no more of it than a signature or
    its public key does. One that `is_slow` may take more than 1 ms. `verifies` asks the public key of a
    private one whether a signature is that of a message.
    """

    kind: Kind
    sign: Callable[[bytes], bytes] = field(repr=False)
    identity: bytes
    is_slow: bool = False
    verifies: Callable[[bytes, bytes], bool] | None = field(default=None, repr=False)
