"""What the filters of a venue's file make of a value, and how it writes a signature: told anew.

It shares nothing with the gateway's, and reads JSON strictly (tests/rig/strict_json.py).
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Callable
from operator import itemgetter
from typing import Any
from urllib.parse import quote, quote_from_bytes, unquote_to_bytes

from rig.strict_json import NotJsonError, Value, read

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
Table = dict[str, Any]


class NoAnswerError(Exception):
    """A request for which the file says nothing: none like it may be sent."""


def read_signed(text: bytes, *, may_repeat: bool = False) -> Value:
    """Read JSON that is signed. Raises NoAnswerError where it is none."""
    try:
        return read(text, may_repeat=may_repeat)
    except NotJsonError as error:
        raise NoAnswerError(f"the JSON that is signed is none: {error}") from None


def value_at(text: bytes, pointer: str) -> bytes:
    """Return what stands at a place of JSON: a string without quotes, all else as it is written."""
    value = read_signed(text)
    for step in pointer.split("/")[1:]:
        if value.kind != "{":
            raise NoAnswerError(f"{pointer} leads through no object")
        if step not in value:
            return b""
        value = value[step]
    return _encoded(value.text) if value.kind == "string" else value.raw


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise NoAnswerError("half of a surrogate pair is signed") from None


def _flat(text: bytes) -> list[tuple[str, str]]:
    """Return the members of a flat object: texts, numbers as they are written, true and false."""
    if not text:
        return []
    whole = read_signed(text)
    if whole.kind != "{" or any(
        one.kind in ("{", "[") or one.raw == b"null" for one in whole.members.values()
    ):
        raise NoAnswerError("the body is not flat")
    return [(name, value.text) for name, value in whole.members.items()]


def _as_form(text: bytes) -> bytes:
    return "&".join(f"{_pct(name)}={_pct(value)}" for name, value in _flat(text)).encode()


def _as_form_lists(text: bytes) -> bytes:
    pairs = []
    whole = read_signed(text) if text else Value("{")
    if whole.kind != "{":
        raise NoAnswerError("the body is no object")
    for name, value in whole.members.items():
        if value.kind == "[":
            pairs += [
                (f"{name}", one.text if one.kind == "string" else _compact(one), "[]") for one in value.items
            ]
        elif value.kind == "{" or value.raw == b"null":
            raise NoAnswerError("the body is not flat")
        else:
            pairs.append((name, value.text, ""))
    return "&".join(
        f"{_pct(name, safe)}{mark}={_pct(value, safe)}" for safe in ["!'()*"] for name, value, mark in pairs
    ).encode()


def _compact(value: Value) -> str:
    if value.kind == "{":
        members = (
            f"{json.dumps(name, ensure_ascii=False)}:{_compact(one)}" for name, one in value.members.items()
        )
        return "{" + ",".join(members) + "}"
    if value.kind == "[":
        return "[" + ",".join(map(_compact, value.items)) + "]"
    return json.dumps(value.text, ensure_ascii=False) if value.kind == "string" else value.text


def _pct(text: str, safe: str = "") -> str:
    return quote(_encoded(text), safe=safe)


def _pairs(text: bytes) -> bytes:
    return _encoded(",".join(f"{name}={value}" for name, value in _flat(text)))


def _canonical(text: bytes) -> bytes:
    def written(value: Value) -> str:
        if value.kind == "{":
            members = sorted(value.members.items(), key=lambda member: member[0])
            return "{" + ",".join(f"{json.dumps(name)}:{written(inner)}" for name, inner in members) + "}"
        if value.kind == "[":
            return "[" + ",".join(map(written, value.items)) + "]"
        return json.dumps(value.text) if value.kind == "string" else value.text

    return written(read_signed(text)).encode() if text else b""


def _flat_json(text: bytes) -> bytes:
    def flat(value: Value) -> str:
        if value.kind == "{":
            return "".join(name + flat(value[name]) for name in sorted(value.members))
        return "".join(map(flat, value.items)) if value.kind == "[" else value.text

    return _encoded(flat(read_signed(text))) if text else b""


def base58(value: bytes) -> bytes:
    """Write bytes in base58."""
    number, text = int.from_bytes(value, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = _BASE58[digit] + text
    return ("1" * (len(value) - len(value.lstrip(b"\0"))) + text).encode()


def _hashed(name: str) -> Callable[[bytes], bytes]:
    return lambda value: hashlib.new(name, value).hexdigest().encode()


def _sorted(query: bytes) -> bytes:
    parameters = [one.partition(b"=") for one in query.split(b"&")]
    return b"&".join(b"".join(one) for one in sorted(parameters, key=itemgetter(0)))


FILTERS: dict[str, Callable[[bytes], bytes]] = {
    "amp": lambda value: value + b"&" if value else b"",
    "lamp": lambda value: b"&" + value if value else b"",
    "q": lambda value: b"?" + value if value else b"",
    "hash": lambda value: b"#" + value if value else b"",
    "pct": lambda value: quote_from_bytes(value, safe="").encode(),
    "unquote": unquote_to_bytes,
    "sorted": _sorted,
    "upper": bytes.upper,
    "base64": base64.b64encode,
    "base64url": lambda value: base64.urlsafe_b64encode(value).rstrip(b"="),
    "base58": base58,
    "md5": _hashed("md5"),
    "sha256": _hashed("sha256"),
    "sha512": _hashed("sha512"),
    "sha256bin": lambda value: hashlib.sha256(value).digest(),
    "as_form": _as_form,
    "as_form_lists": _as_form_lists,
    "pairs": _pairs,
    "canonical": _canonical,
    "flat_json": _flat_json,
    "bare": lambda value: read_signed(value).raw if value else b"",
}
_WRITERS: dict[str, Callable[[bytes], bytes]] = {
    "hex": binascii.hexlify,
    "HEX": lambda value: binascii.hexlify(value).upper(),
    "base64": base64.b64encode,
    "base64url": FILTERS["base64url"],
    "base64hex": lambda value: base64.b64encode(binascii.hexlify(value)),
    "base58": base58,
}
_SECRETS: dict[str, Callable[[bytes], bytes]] = {
    "utf8": bytes,
    "hex": binascii.unhexlify,
    "base64": base64.b64decode,
    "as_base64": base64.b64encode,
    "sha256hex": _hashed("sha256"),
    "md5hex": _hashed("md5"),
}


def mac_of(signing: Table, secret: str, message: bytes) -> bytes:
    """Return what a secret makes of a message, raw."""
    form, digest = signing.get("secret", "utf8"), signing.get("digest", "sha256")
    if form == "appended":
        return hashlib.new(digest, message + secret.encode()).digest()
    return hmac.new(_SECRETS[form](secret.encode()), message, digest).digest()


def written_seal(signing: Table, raw: bytes) -> bytes:
    """Write a signature as the file says."""
    first, *filters = signing.get("encoding", "hex").split("|")
    text = _WRITERS[first](raw)
    for one in filters:
        text = FILTERS[one](text)
    return text


def read_seal(signing: Table, text: bytes) -> bytes:
    """Return the raw signature of a text. Raises ValueError where it is none."""
    first, *filters = signing.get("encoding", "hex").split("|")
    plain = unquote_to_bytes(text) if "pct" in filters else text
    if first in ("hex", "HEX"):
        return binascii.unhexlify(plain)
    if first == "base58":
        number = 0
        for letter in plain.decode():
            number = number * 58 + _BASE58.index(letter)
        return number.to_bytes(64, "big")
    padded = plain + b"=" * (-len(plain) % 4)
    return base64.b64decode(padded.translate(bytes.maketrans(b"-_", b"+/")), validate=True)
