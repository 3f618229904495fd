"""Makes up requests of a bot that would like its own members in the place of the gateway's.

Bodies are JSON as it should be, nearly is, or is in another encoding; forms; and what begins as one and ends
as the other. Names are those that the gateway sets, spelled so that some reader could take them for it.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

Fields = list[tuple[bytes, bytes]]

EVIL = b"EVIL"  # in each header that must not arrive
_PLAIN_NAMES = (
    "symbol",
    "side",
    "id",
    "method",
    "params",
    "orders",
    "price",
    "a",
    "",
    "__proto__",
    "ä",
    "\U0001f600",
)
_STRINGS = (
    *(
        b'"BTC"',
        b'""',
        b'"a\\"b"',
        b'"\\\\"',
        b'"\\\\\\""',
        b'"}{"',
        b'"],["',
        b'","nonce":"1',
        b'"\\u0000"',
        b'"\\ud800"',
    ),
    *(
        b'"\\udc00\\ud800"',
        b'"\\u007f\\u2028"',
        b'"\xe2\x80\xa8"',
        b'"\xc3\xa4"',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\x00"',
    ),
    *(
        b'"\x01"',
        b'"\n"',
        b'"\\x41"',
        b'"\\u00zz"',
        b'"\\/"',
        b"'a'",
        b'"%22%7d"',
        b'"a=b&c=d"',
        b'"a,nonce=1"',
        b'"</s>"',
    ),
    *(
        b'"\xf0\x9f\x98\x80"',
        b'"\\ud83d\\ude00"',
        b'"' + b"x" * 300 + b'"',
        b'"{signature}"',
        b'"%s%b"',
        b'"\\r\\nX: 1"',
    ),
)
_NUMBERS = (
    *(
        b"0",
        b"-0",
        b"1",
        b"1.50",
        b"65000.50",
        b"1e5",
        b"1E+2",
        b"1e999",
        b"-1e-999",
        b"9" * 400,
        b"0." + b"0" * 60 + b"1",
    ),
    *(
        b"123456789012345678901234567890",
        b"01",
        b"+1",
        b".5",
        b"1.",
        b"0x10",
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b"1_0",
    ),
)
_LITERALS = (b"true", b"false", b"null", b"None", b"undefined", b"True", b"tru")
_BLANKS = (*((b"",) * 12), b" ", b"\n", b"\t", b"\r\n", b"  ", b"\x0b", b"\xc2\xa0", b"\x00", b"/**/", b"#\n")
_AROUND = (
    *((b"",) * 30),
    b" ",
    b"\r\n",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\x00",
    b"\x0c",
    b",",
    b"}",
    b"{}",
    b";",
    b"\x1e",
    b"[1]",
    b")]}'\n",
)
_TYPES = (
    *((b"application/json",) * 8),
    *(
        b"application/json; charset=utf-8",
        b"application/json;charset=UTF-16",
        b"text/plain",
        b"APPLICATION/JSON",
    ),
    *(
        b"application/x-www-form-urlencoded",
        b"multipart/form-data; boundary=x",
        b"application/json, text/plain",
    ),
    *(
        b"application/problem+json",
        b'text/json; charset="latin1"',
        b"",
        b"application/json; charset=shift_jis",
    ),
)
_ENCODINGS = ("utf-16", "utf-16-le", "utf-16-be", "utf-32-le", "utf-7", "utf-8-sig")
_SEGMENTS = (
    *(
        "x1",
        "7",
        "a%22b",
        "a%5Cb",
        "%7B%22a%22:1%7D",
        "a'b",
        "a,b",
        "a;nonce=1",
        "a:b",
        "a=b&c=d",
        "a@b",
        "a%E2%82%AC",
    ),
    *(
        "a%0D%0AX:1",
        "%00",
        "a%2Fb",
        "..",
        "%2e%2e",
        "a%C3%A4",
        "(1)",
        "$x",
        "a+b",
        "a%20b",
        'a"b',
        "a\\b",
        "{a}",
        "a%u0022",
    ),
)
_FINE = ("1", "", "BTC/USDT", "%22", "%5C", "a%26b=c", "x+y", "%C3%A4", "%7B%7D", "a%0Ab", "%ff")
_VALUES = (*_FINE, "%00", '"', "\\", "é", "'")
_FINE_VALUES = (*_FINE, "BTC", "7.50")


@dataclass(slots=True)
class Bot:
    """A request as a bot writes it. `body` is None where it has none."""

    method: bytes
    target: bytes
    fields: Fields
    body: bytes | None

    def raw(self) -> bytes:
        """Write it for the gateway."""
        lines = [b"%b %b HTTP/1.1" % (self.method, self.target), b"Host: localhost"]
        lines += [b"%b: %b" % one for one in self.fields]
        if self.body is not None:
            lines.append(b"Content-Length: %d" % len(self.body))
        return b"\r\n".join(lines) + b"\r\n\r\n" + (self.body or b"")


class Writer:
    """Makes up requests. `own` are names that the gateway sets in bodies and queries, `sealed` its headers.

    `templates` are methods and paths with `{}` for what a bot chooses.
    """

    def __init__(
        self, chance: Random, templates: Sequence[tuple[str, str]], own: Sequence[str], sealed: Sequence[str]
    ) -> None:
        self._chance = chance
        self._templates = templates
        self._own = own
        self._sealed = sealed
        self._makers: tuple[Callable[[], bytes], ...] = (
            *((self._object,) * 8),
            self._usual,
            self._usual,
            self._form,
            self._mutated,
            self._mutated,
            self._wrapped,
            self._wrapped,
            self._encoded,
            self._deep,
            self._value,
            lambda: chance.randbytes(chance.randrange(1, 40)),
        )

    def request(self) -> Bot:
        """Return the next request."""
        chance = self._chance
        method, path = chance.choice(self._templates)
        while "{}" in path:
            path = path.replace("{}", chance.choice(_SEGMENTS if chance.random() < 0.4 else _SEGMENTS[:2]), 1)
        if chance.random() < 0.1:
            method = chance.choice(("GET", "POST", "PUT", "PATCH", "DELETE"))
        if chance.random() < 0.03:
            path += "/" + chance.choice(_SEGMENTS)
        query = (
            "?" + self._query() if chance.random() < (0.6 if method in ("GET", "DELETE") else 0.15) else ""
        )
        has_body = chance.random() < (0.1 if method in ("GET", "HEAD") else 0.9)
        body = chance.choice(self._makers)() if has_body else None
        return Bot(method.encode(), f"{path}{query}".encode("utf-8", "replace"), self._fields(body), body)

    def _fields(self, body: bytes | None) -> Fields:
        chance = self._chance
        fields: Fields = [(b"Accept", b"*/*")] if chance.random() < 0.3 else []
        if body is not None or chance.random() < 0.1:
            declared = chance.choice(_TYPES)
            fields += [(b"Content-Type", declared)] if declared else []
        for name in self._sealed:
            if chance.random() < 0.2:
                spelled = chance.choice((name, name.lower(), name.upper(), name.replace("-", "_")))
                fields.append((spelled.encode(), EVIL + b"%d" % chance.randrange(1000)))
        chance.shuffle(fields)
        return fields

    def _query(self) -> str:
        chance = self._chance
        names = [self._name() for _ in range(chance.choice((1, 1, 2, 3)))]
        values = _VALUES if chance.random() < 0.2 else _FINE_VALUES
        pairs = [f"{self._escaped(name)}={chance.choice(values)}" for name in names]
        return chance.choice(("&", "&", "&", "&&", ";")).join(pairs)

    def _escaped(self, name: str) -> str:
        kept = "".join(
            one
            if one.isalnum() and one.isascii()
            else "".join(f"%{byte:02X}" for byte in one.encode("utf-8", "replace"))
            for one in name
        )
        if kept and self._chance.random() < 0.1:
            at = self._chance.randrange(len(kept))
            kept = kept[:at] + (f"%{ord(kept[at]):02x}" if kept[at] != "%" else "%") + kept[at + 1 :]
        return kept

    def _name(self) -> str:
        """Return a name, one in three of them the gateway's or nearly."""
        chance = self._chance
        if not self._own or chance.random() < 0.65:
            return chance.choice(_PLAIN_NAMES)
        name = chance.choice(self._own)
        ways: tuple[Callable[[str], str], ...] = (
            *((str,) * 4),
            str.upper,
            str.title,
            lambda one: one + " ",
            lambda one: " " + one,
            lambda one: one + "[]",
            lambda one: one + "\0",
            lambda one: one + ".x",
            lambda one: one.replace("i", "ı").replace("s", "ſ").replace("k", "\u212a"),  # noqa: RUF001
            lambda one: one[:-1],
            lambda one: one.replace("n", "ｎ"),  # noqa: RUF001
        )
        return chance.choice(ways)(name)

    def _quoted(self, name: str) -> bytes:
        """Write a name as a JSON string, with escapes that need not be."""
        chance = self._chance
        if chance.random() < 0.75:
            return json.dumps(name, ensure_ascii=chance.random() < 0.5).encode("utf-8", "replace")
        way = "\\u{:04x}" if chance.random() < 0.5 else "\\u{:04X}"

        def written(one: str) -> str:
            is_escaped = ord(one) < 0x10000 and chance.random() < 0.5
            return way.format(ord(one)) if is_escaped else json.dumps(one)[1:-1]

        return f'"{"".join(map(written, name))}"'.encode()

    def _value(self, depth: int = 0) -> bytes:
        chance = self._chance
        kind = chance.random()
        if depth < 3 and kind < 0.12:
            return self._object(depth + 1)
        if depth < 3 and kind < 0.2:
            values = [self._value(depth + 1) for _ in range(chance.randrange(4))]
            return b"[%b]" % self._joined(values)
        if kind < 0.6:
            return chance.choice(_STRINGS) if chance.random() < 0.4 else b'"%d"' % chance.randrange(10**6)
        if kind < 0.9:
            return chance.choice(_NUMBERS) if chance.random() < 0.4 else b"%d" % chance.randrange(10**6)
        return chance.choice(_LITERALS[:3] if chance.random() < 0.8 else _LITERALS)

    def _blank(self) -> bytes:
        return self._chance.choice(_BLANKS if self._chance.random() < 0.06 else _BLANKS[:17])

    def _joined(self, parts: Sequence[bytes]) -> bytes:
        comma = b"," if self._chance.random() < 0.99 else self._chance.choice((b",,", b"", b";", b" "))
        return comma.join(b"%b%b%b" % (self._blank(), part, self._blank()) for part in parts)

    def _object(self, depth: int = 0) -> bytes:
        chance = self._chance
        names = [self._name() for _ in range(chance.choice((0, 1, 1, 2, 3, 5)))]
        if chance.random() < 0.8:
            names = list(dict.fromkeys(names))
        members = [
            b"%b%b:%b%b" % (self._quoted(one), self._blank(), self._blank(), self._value(depth + 1))
            for one in names
        ]
        end = b"}" if chance.random() < 0.99 else chance.choice((b",}", b"", b"}}", b"]", b"} "))
        return b"{%b%b" % (self._joined(members) if members else self._blank(), end)

    def _usual(self) -> bytes:
        """Write what a client library would."""
        chance = self._chance
        members: dict[str, Any] = {
            name: chance.choice(("1.5", 7, 0.25, True, "a b", 'q"', "ä"))
            for name in ("symbol", "side", "price")
        }
        if chance.random() < 0.5:
            members = {"id": chance.choice((1, "2")), "method": "private/create-order", "params": members}
        own: dict[str, Any] = {
            name: chance.choice(("EVIL", 1, None)) for name in self._own if chance.random() < 0.3
        }
        whole = members | own if chance.random() < 0.5 else own | members
        return json.dumps(whole, separators=chance.choice(((",", ":"), (", ", ": ")))).encode()

    def _form(self) -> bytes:
        return self._query().encode("utf-8", "replace")

    def _wrapped(self) -> bytes:
        around = (self._chance.choice(_AROUND), self._chance.choice(_AROUND))
        return around[0] + self._object() + around[1]

    def _encoded(self) -> bytes:
        text = self._object().decode("utf-8", "replace")
        return text.encode(self._chance.choice(_ENCODINGS), "replace")

    def _deep(self) -> bytes:
        depth = self._chance.choice((20, 100, 900, 2000, 20000))
        opening, closing = self._chance.choice(((b"[", b"]"), (b'{"a":', b"}")))
        return b'{"params":%b%b%b}' % (opening * depth, b"1", closing * depth)

    def _mutated(self) -> bytes:
        """Damage a body at some bytes."""
        chance = self._chance
        body = bytearray(self._usual() if chance.random() < 0.5 else self._object())
        for _ in range(chance.choice((1, 1, 2, 4))):
            at = chance.randrange(len(body) + 1)
            new = bytes([chance.choice((*b'{}[]:,"\\ \n0ue', chance.randrange(256)))])
            body[at : at + chance.choice((0, 1))] = new if chance.random() < 0.8 else b""
        return bytes(body)
