"""The forms in which private keys are handed out, decoded into memory that can be wiped.

A str or bytes object cannot be wiped, so no step makes one of what it decodes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Self

from sealgate.venues.filters import BASE58_DIGITS

INTEGER, BIT_STRING, OCTET_STRING, SEQUENCE = 0x02, 0x03, 0x04, 0x30
_LONG_FORM, _LONGEST_LENGTH = 0x80, 3
_FIRST_IN_TEXTS, _LOOKED_AT = 0x09, 6

_BLANK, _NOT_ONE = 0xFE, 0xFF
_PAD = ord("=")
_LONGEST_BASE58 = 100  # 64 bytes are at most 88

_OBJECT = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{")
_MEMBER = re.compile(rb'"privateKey"\s*:\s*"')
_ESCAPED = {ord("n"): ord("\n"), ord("r"): ord("\r"), ord("t"): ord("\t")}
_BACKSLASH, _QUOTE = ord("\\"), ord('"')
# Nothing between the two lines has five dashes: with `.*?`, a text of many first lines took seconds.
_PEM = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----((?:[^-]|-(?!----))*+)-----END \1-----")
_DEK_INFO = re.compile(
    rb"\s*Proc-Type:\s*4,\s*ENCRYPTED\s+DEK-Info:\s*(?P<cipher>[A-Z0-9-]+),\s*(?P<iv>[0-9A-Fa-f]+)\s"
)


def _values(*alphabets: bytes) -> bytes:
    table = bytearray([_NOT_ONE]) * 256
    for alphabet in alphabets:
        for value, digit in enumerate(alphabet):
            table[digit] = value
    for blank in b" \t\r\n":
        table[blank] = _BLANK
    return bytes(table)


_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_BASE64, _BASE58 = _values(_LETTERS + b"+/", _LETTERS + b"-_"), _values(BASE58_DIGITS)


class Wiped:
    """Buffers that are overwritten at the end of a block."""

    def __init__(self) -> None:
        self._buffers: list[bytearray] = []

    def __call__(self, buffer: bytearray) -> bytearray:
        """Add a buffer, and return it."""
        self._buffers.append(buffer)
        return buffer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for buffer in self._buffers:
            buffer[:] = bytes(len(buffer))


def part_of(buffer: bytearray, start: int, end: int) -> bytearray:
    """Return a copy of a part, made in one step."""
    with memoryview(buffer) as view:
        return bytearray(view[start:end])


class Element(NamedTuple):
    """An element of DER: its tag, and where its content stands."""

    tag: int
    start: int
    end: int


def element(data: bytearray, at: int, end: int) -> Element:
    """Return the element of DER at a place (X.690 section 8.1). Raises ValueError where there is none."""
    if at + 2 > end:
        raise ValueError("the data ends too early")
    tag, size, start = data[at], data[at + 1], at + 2
    if size >= _LONG_FORM:
        count = size - _LONG_FORM
        if not 0 < count <= _LONGEST_LENGTH or start + count > end:
            raise ValueError("the length is no length")
        size = int.from_bytes(data[start : start + count], "big")
        start += count
    if start + size > end:
        raise ValueError("the data ends too early")
    return Element(tag, start, start + size)


def members(data: bytearray, outer: Element) -> list[Element]:
    """Return the elements inside another one. Raises ValueError."""
    found, at = [], outer.start
    while at < outer.end:
        found.append(element(data, at, outer.end))
        at = found[-1].end
    return found


def is_der(data: bytearray, length: int | None = None) -> bool:
    """Whether these bytes are one SEQUENCE of DER and nothing else, as each key is.

    A text may begin with "0", which is the tag of a SEQUENCE, and its second character may be its length. But
    no text has the control characters with which the content of a key begins: a version, a length or a tag.
    """
    end = len(data) if length is None else length
    try:
        outer = element(data, 0, end)
    except ValueError:
        return False
    first = range(outer.start, min(outer.start + _LOOKED_AT, end))
    return (outer.tag, outer.end) == (SEQUENCE, end) and any(data[at] < _FIRST_IN_TEXTS for at in first)


def from_base64(text: bytearray) -> bytearray | None:
    """Decode base64 of either alphabet, with or without its padding and line ends; None where it is none."""
    digits = sum(_BASE64[code] < _BLANK for code in text)
    data, at, group, bits, pads = bytearray(digits * 3 // 4), 0, 0, 0, 0
    for code in text:
        value = _BASE64[code]
        if code == _PAD:
            pads += 1
        elif value == _NOT_ONE or (pads and value != _BLANK):
            break
        elif value != _BLANK:
            group, bits = (group << 6 | value) & 0xFFF, bits + 6
            if bits >= 8:  # noqa: PLR2004 - the bits of a byte
                bits -= 8
                data[at] = group >> bits & 0xFF
                at += 1
    else:
        is_whole = digits % 4 != 1 and not group & ((1 << bits) - 1)
        if is_whole and pads in {0, -digits % 4}:
            return data
    data[:] = bytes(len(data))
    return None


def from_base58(text: bytearray) -> bytearray | None:
    """Decode base58 in Bitcoin's alphabet; None where a text is none, or longer than any key."""
    digits = sum(_BASE58[code] != _BLANK for code in text)
    if digits > _LONGEST_BASE58:
        return None
    with Wiped() as wiped:
        number, size, zeros = wiped(bytearray(digits)), 0, 0  # the lowest byte first
        for code in text:
            carry, at = _BASE58[code], 0
            if carry == _BLANK:
                continue
            if carry == _NOT_ONE:
                return None
            zeros += not carry and not size
            while carry or at < size:
                carry += number[at] * 58
                number[at], carry, at = carry & 0xFF, carry >> 8, at + 1
            size = at
        number.reverse()
        return part_of(number, digits - size - zeros, digits)


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two lines of PEM (RFC 7468)."""

    label: str
    start: int
    end: int

    @property
    def is_private(self) -> bool:
        """Whether it is called a private key."""
        return self.label.endswith("PRIVATE KEY")

    def encrypted_pem(self, headers: re.Match[bytes], body: bytearray) -> bytearray:
        """Return an encrypted block with its headers on lines of their own, as programs expect them."""
        label = self.label.encode("ascii")
        dek_info = headers["cipher"] + b"," + headers["iv"]
        start = b"-----BEGIN %b-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: %b\n\n" % (label, dek_info)
        return bytearray(b"%b%b\n-----END %b-----\n" % (start, bytes(body), label))


def blocks(text: bytearray) -> Iterator[Block]:
    """Yield the blocks of PEM in a text; what stands around them is skipped."""
    for found in _PEM.finditer(text):
        yield Block(found[1].decode("ascii"), *found.span(2))


def dek_info(text: bytearray, block: Block) -> re.Match[bytes] | None:
    """Return the headers that say how a block is encrypted (RFC 1421 section 4.6), None where it is not."""
    return _DEK_INFO.match(text, block.start, block.end)


def break_lines(text: bytearray) -> None:
    r"""Write line ends in the place of `\n` and `\r`, as a PEM in one line has them; no length changes."""
    at = text.find(b"\\")
    while at >= 0:
        text[at] = ord(" ")
        if text.startswith((b"n", b"r"), at + 1):
            text[at + 1] = ord("\n")
        at = text.find(b"\\", at)


def private_member(text: bytearray) -> bytearray | None:
    """Return the member `privateKey` of a JSON object, None where there is none.

    Raises ValueError where it has no end, or several are there.
    """
    if _OBJECT.match(text) is None:
        return None
    starts = [found.end() for found in _MEMBER.finditer(text)]
    if len(starts) != 1:
        if starts:
            raise ValueError("several members have the name")
        return None
    with Wiped() as wiped:
        value, size, at = wiped(bytearray(len(text))), 0, starts[0]
        while text[at : at + 1] != b'"':
            if at >= len(text) - 1:
                raise ValueError("the text has no end")
            code, step = text[at], 1
            if code == _BACKSLASH:
                code, step = _unescaped(text, at)
            value[size] = code
            size, at = size + 1, at + step
        return part_of(value, 0, size)


def _unescaped(text: bytearray, at: int) -> tuple[int, int]:
    """Return the character that an escape sequence stands for, and how long that is (RFC 8259 section 7)."""
    code = text[at + 1]
    if code != ord("u"):
        return _ESCAPED.get(code, code), 2
    return min(int(text[at + 2 : at + 6], 16), 0xFF), 6
