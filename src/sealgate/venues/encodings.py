"""How times, nonces and signatures are written: the names that a venue's file may use."""

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from sealgate.venues.filters import base58, base64url

DIGESTS = ("sha256", "sha384", "sha512", "sha1", "md5")
PADDINGS = ("pkcs1v15", "pss")
KEY_TEXTS = ("pem", "base64", "base58")

# What the stored secret is to the HMAC: the key itself, or what its key is made of. With "appended" there is
# no HMAC, but a hash of the message with the secret after it.
APPENDED = "appended"
SECRETS = ("utf8", "hex", "base64", "as_base64", "sha256hex", "md5hex", APPENDED)

# Nonces that are numbers, and how much they rise in a second.
PER_S: Mapping[str, int] = {"s": 1, "ms": 1000, "us": 10**6, "s8": 10**8, "ns": 10**9}
NONCES = ("none", *PER_S, "uuid", "hex")
# What the exchange takes: "rising" ones alone, or each that it has not seen yet.
NONCE_ORDERS = ("rising", "any")


def write_nonce(kind: str, number: int) -> bytes:
    """Write a nonce that is a number."""
    if kind == "s8":
        seconds, rest = divmod(number, PER_S[kind])
        return b"%d.%08d" % (seconds, rest)
    return b"%d" % number


ENCODERS: Mapping[str, Callable[[bytes], bytes]] = {
    "hex": binascii.hexlify,
    "HEX": lambda signature: binascii.hexlify(signature).upper(),
    "base64": lambda signature: binascii.b2a_base64(signature, newline=False),
    "base64url": base64url,
    "base64hex": lambda signature: base64.b64encode(binascii.hexlify(signature)),
    "base58": base58,
}


def _iso(timestamp_ms: int, timespec: str) -> bytes:
    moment = datetime.fromtimestamp(timestamp_ms // 1000, UTC).replace(microsecond=timestamp_ms % 1000 * 1000)
    return moment.replace(tzinfo=None).isoformat(timespec=timespec).encode("ascii")


STAMPS: Mapping[str, Callable[[int], bytes]] = {
    "ms": b"%d".__mod__,
    "s": lambda now_ms: b"%d" % (now_ms // 1000),
    "us": lambda now_ms: b"%d" % (now_ms * 1000),
    "ns": lambda now_ms: b"%d" % (now_ms * 1_000_000),
    "iso_ms": lambda now_ms: _iso(now_ms, "milliseconds") + b"Z",
    "iso_s": lambda now_ms: _iso(now_ms, "seconds"),
}
