"""What an order may be, decided a second time by other means: a parser of its own, fractions, no shared line.

It says no where two servers could read an order differently, and it knows nothing of speed.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from urllib.parse import parse_qsl

Pairs = tuple[tuple[str, Any], ...]
_FRAMES = 20_000  # for bodies nested 3,000 deep, which the C parser reads from Python 3.12 on


class NoOrderError(Exception):
    """Nothing that has one reading."""


@dataclass(frozen=True)
class Limits:
    symbols: frozenset[str] | None = None
    max_size: Fraction | Mapping[str, Fraction] | None = None
    max_notional: Fraction | None = None
    reduce_only: bool = False
    prices: Mapping[str, Fraction] = field(default_factory=dict)


@dataclass(frozen=True)
class Number:
    value: Fraction


class Json:
    """RFC 8259, read letter by letter. Objects are tuples of pairs, arrays are lists."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def read(self) -> Any:
        usual = sys.getrecursionlimit()
        sys.setrecursionlimit(_FRAMES)
        try:
            value = self._value()
        finally:
            sys.setrecursionlimit(usual)
        self._space()
        if self._at != len(self._text):
            raise NoOrderError
        return value

    def _next(self) -> str:
        return self._text[self._at] if self._at < len(self._text) else ""

    def _space(self) -> None:
        while self._next() and self._next() in " \t\n\r":
            self._at += 1

    def _expect(self, text: str) -> None:
        if not self._text.startswith(text, self._at):
            raise NoOrderError
        self._at += len(text)

    def _value(self) -> Any:
        self._space()
        first = self._next()
        if first == "{":
            return self._object()
        if first == "[":
            return self._array()
        if first == '"':
            return self._string()
        for word, value in (("true", True), ("false", False), ("null", None)):
            if self._text.startswith(word, self._at):
                self._at += len(word)
                return value
        return self._number()

    def _object(self) -> Pairs:
        self._expect("{")
        pairs: list[tuple[str, Any]] = []
        self._space()
        while self._next() != "}":
            if pairs:
                self._expect(",")
                self._space()
            key = self._string()
            self._space()
            self._expect(":")
            pairs.append((key, self._value()))
            self._space()
        self._expect("}")
        if len({key.lower() for key, _ in pairs}) < len(pairs):
            raise NoOrderError
        return tuple(pairs)

    def _array(self) -> list[Any]:
        self._expect("[")
        members: list[Any] = []
        self._space()
        while self._next() != "]":
            if members:
                self._expect(",")
            members.append(self._value())
            self._space()
        self._expect("]")
        return members

    def _string(self) -> str:
        self._expect('"')
        text = ""
        while (letter := self._next()) != '"':
            if not letter or ord(letter) < 0x20:
                raise NoOrderError
            self._at += 1
            text += self._escape() if letter == "\\" else letter
        self._at += 1
        return text

    def _escape(self) -> str:
        letter = self._next()
        self._at += 1
        if letter == "u":
            digits = self._text[self._at : self._at + 4]
            if len(digits) < 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                raise NoOrderError
            self._at += 4
            return chr(int(digits, 16))
        plain = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
        if letter not in plain:
            raise NoOrderError
        return plain[letter]

    def _number(self) -> Number:
        start = self._at
        while self._next() and self._next() in "+-.eE0123456789":
            self._at += 1
        return Number(fraction(self._text[start : self._at]))


def fraction(text: str) -> Fraction:
    """Read a number as JSON writes it."""
    rest = text.removeprefix("-")
    mantissa, exponent, sign = rest, "0", 1
    for mark in "eE":
        if mark in mantissa:
            mantissa, _, exponent = mantissa.partition(mark)
            if exponent[:1] in ("+", "-"):
                sign, exponent = (-1 if exponent[0] == "-" else 1), exponent[1:]
            break
    whole, point, part = mantissa.partition(".")
    digits = set("0123456789")
    groups = [whole, exponent, *([part] if point else [])]
    if any(not group or not set(group) <= digits for group in groups) or (whole != "0" and whole[0] == "0"):
        raise NoOrderError
    if len(exponent) > 5:
        raise NoOrderError
    value = Fraction(int(whole + part), 10 ** len(part)) * Fraction(10) ** (sign * int(exponent))
    return -value if text.startswith("-") else value


def may_pass_json(limits: Limits, body: bytes, query: str | None, content_type: str | None) -> bool:
    """Decide on a flat order in a JSON body."""
    if query is not None or content_type not in (None, "application/json"):
        return False
    try:
        document = Json(body.decode("utf-8")).read()
        return isinstance(document, tuple) and _may(limits, dict(document), is_json=True)
    except (NoOrderError, UnicodeDecodeError):
        return False


def may_pass_parameters(limits: Limits, body: bytes, query: str | None) -> bool:
    """Decide on an order in query and form."""
    parameters: list[tuple[str, str]] = []
    try:
        for text in (query or "", body.decode("ascii")):
            if text:
                parameters += parse_qsl(text, keep_blank_values=True, strict_parsing=True, errors="strict")
        if len({name.lower() for name, _ in parameters}) < len(parameters):
            return False
        return _may(limits, dict(parameters), is_json=False)
    except (NoOrderError, ValueError):
        return False


def _amount(value: Any) -> Fraction | None:
    if value is None:
        return None
    if isinstance(value, Number):
        return value.value
    if not isinstance(value, str):
        raise NoOrderError
    return fraction(value)


def _worth(limits: Limits, order: Mapping[str, Any], size: Fraction) -> Fraction | None:
    """Return what an order may come to at most, None where nobody knows: the market may be anywhere."""
    price, trigger = _amount(order.get("price")), _amount(order.get("trigger"))
    if order.get("side") == "buy" and price is not None and price > 0:
        return size * price
    market = limits.prices.get(order.get("symbol") or "")
    own = [abs(one) for one in (price, trigger) if one is not None]
    return None if market is None else size * max([market, *own])


def _may(limits: Limits, order: Mapping[str, Any], *, is_json: bool) -> bool:
    symbol, size = order.get("symbol"), abs(_amount(order.get("size")) or Fraction(0))
    _amount(order.get("price"))
    if symbol is not None and not isinstance(symbol, str):
        return False
    if limits.symbols is not None and symbol not in limits.symbols:
        return False
    reduces = order.get("reduce_only")
    if limits.reduce_only and not (reduces is True if is_json else reduces == "true"):
        return False
    most = limits.max_size
    if isinstance(most, Mapping):
        most = most.get(symbol or "", Fraction(-1))
    if most is not None and (not size or size > most):
        return False
    if limits.max_notional is not None:
        worth = _worth(limits, order, size)
        if not worth or worth > limits.max_notional:
            return False
    return True
