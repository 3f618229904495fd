"""What a value of a template can be put through: `{name|filter}`. Bytes in, bytes out."""

import base64
import binascii
import hashlib
from collections.abc import Callable
from urllib.parse import quote_from_bytes, unquote_to_bytes

from sealgate.venues.json_bytes import as_form, as_form_lists, bare, canonical, flat_json, pairs, raw_query

BASE58_DIGITS = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def base64url(value: bytes) -> bytes:
    """Write in the base64 of URLs, without padding (RFC 7515 section 2)."""
    return base64.urlsafe_b64encode(value).rstrip(b"=")


def base58(value: bytes) -> bytes:
    """Write in the base58 of Bitcoin; each leading zero byte is a 1."""
    zeros = len(value) - len(value.lstrip(b"\0"))
    number, digits = int.from_bytes(value, "big"), bytearray()
    while number:
        number, digit = divmod(number, 58)
        digits.append(BASE58_DIGITS[digit])
    return b"1" * zeros + bytes(reversed(digits))


def sort_parameters(query: bytes) -> bytes:
    """Put parameters in order of their names, each with the bytes that it came with."""
    parameters: list[bytes] = sorted(query.split(b"&"), key=_name)
    return b"&".join(parameters)


def _name(parameter: bytes) -> bytes:
    return parameter.partition(b"=")[0]


FILTERS: dict[str, Callable[[bytes], bytes]] = {
    "amp": lambda value: value and value + b"&",
    "lamp": lambda value: value and b"&" + value,
    "q": lambda value: value and b"?" + value,
    "hash": lambda value: value and b"#" + value,
    "pct": lambda value: quote_from_bytes(value, safe="").encode("ascii"),
    "unquote": unquote_to_bytes,
    "sorted": sort_parameters,
    "upper": lambda value: value.upper(),
    "base64": base64.b64encode,
    "base64url": base64url,
    "base58": base58,
    "md5": lambda value: binascii.hexlify(hashlib.md5(value, usedforsecurity=False).digest()),
    "sha256": lambda value: binascii.hexlify(hashlib.sha256(value).digest()),
    "sha256bin": lambda value: hashlib.sha256(value).digest(),
    "sha512": lambda value: binascii.hexlify(hashlib.sha512(value).digest()),
    "hmac": bytes,  # keyed: `bind` puts the key's own in its place
    "as_form": as_form,
    "as_form_lists": as_form_lists,
    "pairs": pairs,
    "raw_query": raw_query,
    "canonical": canonical,
    "flat_json": flat_json,
    "bare": bare,
}
