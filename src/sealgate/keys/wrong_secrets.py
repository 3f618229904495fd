"""Texts that people store in the place of a secret or a token: what they are, never what they say."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sealgate.venues.key_kinds import Kind

_HEADER = re.compile(rb"\s*(?:authorization:\s*)?bearer\s+\S", re.IGNORECASE)

_WRAPPING = b"\"'` \t\r\n"
_UNSEEN = re.compile(rb"[^\t\n\r -~]")  # each secret of an exchange is visible ASCII
# `secret = X`, `export API_SECRET=X`, `key: X`. What follows is no `=`, as the padding of base64 would be.
_NAMED = re.compile(
    rb"[\s{]*(?:export\s+)?[\"']?(?:\w{0,30}[_-])?(?:api)?(?:secret|private|key)[_-]?(?:key)?[\"']?\s*[:=]\s*[^\s=]",
    re.IGNORECASE,
)

_STORED = "what is stored as the secret"
_STORE_THE_OTHER = "store the secret of this API key: it is shown only once, so you may need a new key"
_KINDS: Mapping[Kind, tuple[str, str]] = {
    Kind.HMAC: ("not a private key", "HMAC secrets"),
    Kind.ED25519: ("an Ed25519 private key", "Ed25519 keys"),
    Kind.RSA: ("an RSA private key", "RSA keys"),
    Kind.ES256: ("an EC private key", "EC keys (ES256)"),
}


def not_a_secret(secret: bytearray, api_keys: Mapping[str, str]) -> tuple[str, str] | None:
    """Return cause and fix if a text is an API key, None if it may be a secret or a private key.

    `api_keys` are those of the configuration, by alias. No copy of the text stays in memory.
    """
    text = secret.strip()
    try:
        for alias, api_key in api_keys.items():
            if api_key and text == api_key.encode("utf-8"):
                return f"{_STORED} is the API key, keys.{alias}.api_key", _STORE_THE_OTHER
    finally:
        text[:] = bytes(len(text))
    return None


def in_words(kind: Kind) -> str:
    """Return what is stored as the secret of a private key of a kind, in words."""
    return _KINDS[kind][0]


def wrong_kind(kind: Kind, takes: Collection[Kind], title: str) -> tuple[str, str]:
    """Return cause and fix for a stored key of a kind that an exchange does not take."""
    *others, last = (_KINDS[one][1] for one in Kind if one in takes)
    taken = f"{', '.join(others)} or {last}" if others else last
    fix = "make such a key there, and store its secret"
    return f"is {_KINDS[kind][0]}, but {title} accepts {taken}", fix


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
        odd = "has invisible characters, such as a byte order mark, a no-break space or those of UTF-16"
    elif b"\n" in secret.strip():
        odd = "has more than one line"
    return Shape(odd, len(secret) < len(api_key))


def not_a_token(token: bytearray) -> tuple[str, str] | None:
    """Return cause and fix if a text is a whole header and not a bot's token alone, None if it may be one."""
    if _HEADER.match(token) is None:
        return None
    return 'the token begins with "Bearer", which belongs to the header', "store only the token"
