"""A strict reader of JSON texts, which shares nothing with the gateway's: the grammar of RFC 8259, in UTF-8.

It refuses a name that comes twice in an object, and keeps the bytes of each value, so that they can be
compared as they are written.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

_TOKEN = re.compile(
    rb"""[ \t\n\r]*(?:
        (?P<mark>[{}\[\]:,])
        |(?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*")
        |(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
        |(?P<literal>true|false|null)
    )""",
    re.VERBOSE,
)
_BLANK = b" \t\n\r"
_LEAVES = ("string", "number", "literal")
_CLOSES = {"}": ("{", "first name"), "]": ("[", "first")}  # and what else may be expected there than a comma


class NotJsonError(ValueError):
    """A text that RFC 8259 does not allow, or that repeats a name."""


@dataclass(slots=True)
class Value:
    """A value as it is written. `text` is a string's without quotes and escapes; `kind` is a token's, { or [.

    `written` are the members of an object: name, and the bytes from there to the end of the value.
    """

    kind: str
    raw: bytes = b""
    text: str = ""
    members: "dict[str, Value]" = field(default_factory=dict)
    written: list[tuple[str, bytes]] = field(default_factory=list)
    items: "list[Value]" = field(default_factory=list)

    def __getitem__(self, name: str) -> "Value":
        return self.members[name]

    def __contains__(self, name: str) -> bool:
        return name in self.members


class _Token(NamedTuple):
    kind: str  # a mark is its own
    text: bytes
    start: int
    end: int


def _tokens(text: bytes) -> Iterator[_Token]:
    at, end = 0, len(text.rstrip(_BLANK))
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            raise NotJsonError(f"no JSON at byte {at}")
        kind = found.lastgroup or ""
        start, at = found.span(kind)
        yield _Token(text[start:at].decode() if kind == "mark" else kind, text[start:at], start, at)


@dataclass(slots=True)
class _Open:
    """An object or a list that is being read, from where on, and the name of its next value."""

    value: Value
    start: int
    name: str = ""
    name_at: int = 0


def read(text: bytes, *, may_repeat: bool = False) -> Value:
    """Return the one value of a text. Raises NotJsonError; names come twice in it only if it `may_repeat`."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        raise NotJsonError("it is not UTF-8") from None
    reader = _Reader(text, may_repeat=may_repeat)
    for token in _tokens(text):
        reader.take(token)
    if reader.whole is None:
        raise NotJsonError("it ends too early")
    return reader.whole


class _Reader:
    """Takes one token after the other: no depth is too deep for it."""

    def __init__(self, text: bytes, *, may_repeat: bool) -> None:
        self.whole: Value | None = None
        self._text = text
        self._may_repeat = may_repeat
        self._opened: list[_Open] = []
        self._expected = "value"

    def take(self, token: _Token) -> None:
        """Take a token. Raises NotJsonError where it may not stand there."""
        kind, expected = token.kind, self._expected
        closes, or_expected = _CLOSES.get(kind, ("", ""))
        if expected in ("value", "first") and kind in ("{", "["):
            self._opened.append(_Open(Value(kind), token.start))
            self._expected = "first name" if kind == "{" else "first"
        elif expected in ("value", "first") and kind in _LEAVES:
            self._end(Value(kind, token.text, _text_of(token)), token.end)
        elif expected in ("name", "first name") and kind == "string":
            self._opened[-1].name, self._opened[-1].name_at = _text_of(token), token.start
            self._expected = "colon"
        elif (expected, kind) in (("colon", ":"), ("comma", ",")):
            is_in_object = kind == "," and self._opened[-1].value.kind == "{"
            self._expected = "name" if is_in_object else "value"
        elif closes and expected in ("comma", or_expected) and self._opened[-1].value.kind == closes:
            done = self._opened.pop()
            done.value.raw = self._text[done.start : token.end]
            self._end(done.value, token.end)
        else:
            raise NotJsonError(f"{kind} at byte {token.start}, where a {expected} is expected")

    def _end(self, value: Value, end: int) -> None:
        """Put a value where it belongs."""
        if not self._opened:
            self.whole, self._expected = value, "end"
            return
        to, self._expected = self._opened[-1], "comma"
        if to.value.kind == "[":
            to.value.items.append(value)
            return
        if to.name in to.value.members and not self._may_repeat:
            raise NotJsonError(f"{to.name!r} comes twice")
        to.value.members[to.name] = value
        to.value.written.append((to.name, self._text[to.name_at : end]))


def _text_of(token: _Token) -> str:
    return str(json.loads(token.text)) if token.kind == "string" else token.text.decode()
