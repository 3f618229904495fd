"""Texts that people store in the place of a secret or a token: what they are, never what they say."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_BEGIN = b"-----BEGIN "
# The names in the first lines of PEM files (RFC 7468, RFC 4716 and OpenSSL's older ones), the longest first.
_PEM = {
    b"OPENSSH PRIVATE KEY": "an OpenSSH private key",
    b"ENCRYPTED PRIVATE KEY": "an encrypted private key",
    b"RSA PRIVATE KEY": "an RSA private key",
    b"EC PRIVATE KEY": "an EC private key",
    b"PRIVATE KEY": "a private key",
    b"PUBLIC KEY": "a public key",
    b"CERTIFICATE REQUEST": "a certificate request",
    b"CERTIFICATE": "a certificate",
}
_SSH = (b"ssh-rsa ", b"ssh-ed25519 ", b"ecdsa-sha2-", b"sk-ssh-", b"sk-ecdsa-")
# The base64 of what a key in DER begins with: its version and the object identifier of its algorithm (RFC
# 5208, 5280, 5915, 8410). Some exchanges hand keys out like this, without the lines of PEM.
_PUBLIC = (b"MCowBQYDK2Vw", b"MFkwEwYHKoZIzj0C", b"MIIBIjANBgkqhkiG9w0B", b"MIICIjANBgkqhkiG9w0B")
_PRIVATE = {
    b"MC4CAQAwBQYDK2Vw": "an Ed25519 private key",
    b"ADANBgkqhkiG9w0B": "an RSA private key",
    b"MIGHAgEAMBMGByqGSM49": "an EC private key",
    b"MHcCAQEEI": "an EC private key",
}
_LENGTHS = 8  # letters: the length of an RSA key and its version stand before what is the same in all
_VERSIONS = (b"\x02\x01\x00", b"\x02\x01\x01")  # an INTEGER, which each private key in DER begins with
_SEQUENCE = 0x30
_LONG_FORM = 0x80

_HEADER = re.compile(rb"\s*(?:authorization:\s*)?bearer\s+\S", re.IGNORECASE)

_WRAPPING = b"\"'` \t\r\n"
_UNSEEN = re.compile(rb"[^\t\n\r -~]")  # each secret of an exchange is visible ASCII
# `secret = X`, `export API_SECRET=X`, `key: X`. What follows is no `=`, as the padding of base64 would be.
_NAMED = re.compile(
    rb"[\s{]*(?:export\s+)?[\"']?(?:\w{0,30}[_-])?(?:api)?(?:secret|private|key)[_-]?(?:key)?[\"']?\s*[:=]\s*[^\s=]",
    re.IGNORECASE,
)

_STORED = "what is stored as the secret"
_STORE_THE_OTHER = "store the secret that belongs to it: it is shown only once, so you may need a new key"
_MAKE_HMAC = "store the secret of an HMAC key (or system-generated key), if the exchange still issues them"


def not_a_secret(secret: bytearray, api_keys: Mapping[str, str]) -> tuple[str, str] | None:
    """Return cause and fix if a text is something else than an HMAC secret, None if it may be one.

    `api_keys` are those of the configuration, by alias. No copy of the text stays in memory.
    """
    text = secret.strip()
    try:
        for alias, api_key in api_keys.items():
            if api_key and text == api_key.encode("utf-8"):
                return f"{_STORED} is the API key, keys.{alias}.api_key", _STORE_THE_OTHER
        kind = "a private key (DER)" if _is_private_der(secret) else _other_kind(text)
    finally:
        text[:] = bytes(len(text))
    if kind is None:
        return None
    return f"{_STORED} is {kind}, and only HMAC secrets are supported yet", _MAKE_HMAC


@dataclass(frozen=True, slots=True)
class Shape:
    """`oddity` is what no secret has, as a clause, "" without any. `is_shorter`: than its API key."""

    oddity: str = ""
    is_shorter: bool = False


def shape_of(secret: bytearray, api_key: str) -> Shape:
    """Return what a secret looks like; it must not be empty."""
    odd = ""
    if _NAMED.match(secret):
        odd = "begins with a name, as in API_SECRET=..."
    elif secret[0] in _WRAPPING or secret[-1] in _WRAPPING:
        odd = "begins or ends with a quote or a space"
    elif _UNSEEN.search(secret):
        odd = (
            "has characters that nobody sees, such as a byte order mark, a no-break space or those of UTF-16"
        )
    elif b"\n" in secret.strip():
        odd = "has more than one line"
    return Shape(odd, len(secret) < len(api_key))


def not_a_token(token: bytearray) -> tuple[str, str] | None:
    """Return cause and fix if a text is a whole header and not a bot's token alone, None if it may be one."""
    if _HEADER.match(token) is None:
        return None
    return 'the token begins with "Bearer", which belongs to the header', "store the token alone"


def _other_kind(text: bytearray) -> str | None:
    if (begin := text.find(_BEGIN)) >= 0:
        label = text[begin + len(_BEGIN) : text.find(b"-----", begin + len(_BEGIN))]
        marks = _PRIVATE if label == b"PRIVATE KEY" else {}
        algorithm = next((name for mark, name in marks.items() if mark in text), None)
        return algorithm or next((name for part, name in _PEM.items() if part in label), "a PEM file")
    if text.startswith((*_SSH, *_PUBLIC)):
        return "a public key"
    if text.startswith(b"{") and b'"privateKey"' in text:
        return "the file of a private key, as an exchange offers it for download"
    return next((name for mark, name in _PRIVATE.items() if 0 <= text.find(mark) <= _LENGTHS), None)


def _is_private_der(secret: bytearray) -> bool:
    """Whether bytes are one SEQUENCE that begins with a version. Its last byte may be gone, as a line end."""
    is_long = len(secret) > 1 and secret[1] > _LONG_FORM
    start = 2 + (secret[1] - _LONG_FORM if is_long else 0)
    size = int.from_bytes(secret[2:start] if is_long else secret[1:2], "big")
    is_whole = len(secret) - start in (size, size - 1)
    return secret[0] == _SEQUENCE and is_whole and secret[start : start + 3] in _VERSIONS
