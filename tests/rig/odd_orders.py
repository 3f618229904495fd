"""Orders as a bot that has gone wrong, or means no good, may spell them: JSON bodies, forms and queries.

Each is made from a `Random`, whose seed Hypothesis draws: to draw every choice would take a hundred times as
long. About a third of them are ordinary, so that many pass.
"""

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random  # noqa: TID251 - by a seed that Hypothesis draws

NUMBERS = (
    *("0.1", "0.5", "0.50", "5e-1", "0.05e1", "5E-1", "500e-3", "-0.4", "-0.6", "0.500000000000000000000001"),
    *("0", "-0", "0.0", "1", "2", "100", "10000.01", "1e400", "1e-400", "1E+2", "1e99999", "9" * 45),
    *("00.5", ".5", "5.", "+0.5", "1_0", "0x1", "1,5", "NaN", "Infinity", "-Infinity", "nan", "1e", "--1"),
    *(
        *("\u0660.\u0665", "\uff10.5", "0.5 ", " 0.5", "0.5\n", "", "true", "½", "1e\u0661", "0.1f", "1d"),
        *("0b1", "1 000"),
    ),
)
_SYMBOLS = ("btc", "BTC ", " BTC", "BTC\u0000", "\uff22\uff34\uff23", "\u0392TC", "", "BTC,DOGE")
_NAMES = ("symbol", "size", "price", "reduce_only", "side")
_SIDES = ("Buy", "BUY", "buy ", "bu\u0443", "b", "long", "")
_OTHERS = (
    "Size",
    "SIZE",
    "qty",
    "\u017fize",
    "size ",
    "price\u0000",
    "order",
    "size[]",
    "Symbol",
    "x",
    *_NAMES,
)
_SPACES = ("\n", "\t", "\r\n", "\u00a0", "\ufeff", "\x0b")
_NO_TEXT = ('["0.1"]', '{"value": "0.1"}', "null", "true", "false", "[]", '"', "BTC", "1")
_TRUTHS = ("false", '"true"', "1", "null", "True", "[true]")
_TYPES = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp")
_ENCODERS: Mapping[str, Callable[[str], bytes]] = {
    "utf-8-sig": lambda text: text.encode("utf-8-sig"),
    "utf-16": lambda text: text.encode("utf-16"),
    "utf-16-le": lambda text: text.encode("utf-16-le"),
    "utf-32": lambda text: text.encode("utf-32"),
    "latin-1": lambda text: text.encode("latin-1", "replace"),
    "gzip": lambda text: gzip.compress(text.encode()),
    "stray": lambda text: text.encode().replace(b'"', b'"\xff', 1),
    "overlong": lambda text: text.encode() + b"\xc0\xa0",
    "nul": lambda text: text.encode() + b"\0",
}
_BARE = (
    *("size=1", "size", "&", "size[]=9", "size;x=1", "%73ize=9", "SIZE=9", "reduce_only=true"),
    *("a=b=c", "="),
)


@dataclass(frozen=True)
class OddOrder:
    body: bytes
    query: str | None = None
    content_type: str | None = None


def _odd(random: Random, one_in: int, plain: Sequence[str], odd: Sequence[str]) -> str:
    return random.choice(plain if random.randrange(one_in) else odd)


def _number(random: Random) -> str:
    return _odd(random, 5, ("0.1", "0.5", "1", "0.25", "100", "2e2"), NUMBERS)


def _symbol(random: Random) -> str:
    return _odd(random, 8, ("BTC", "BTC", "ETH", "DOGE"), _SYMBOLS)


def _quoted(random: Random, text: str) -> str:
    if random.randrange(8):
        return json.dumps(text, ensure_ascii=False)
    return '"' + "".join(f"\\u{ord(letter):04x}" for letter in text) + '"'


def _value(random: Random, name: str) -> str:
    if not random.randrange(16):
        return random.choice(_NO_TEXT)
    if name.lower() == "symbol":
        return _quoted(random, _symbol(random))
    if name == "reduce_only":
        return _odd(random, 5, ("true",), _TRUTHS)
    if name == "side":
        return _quoted(random, _odd(random, 8, ("buy", "buy", "sell"), _SIDES))
    number = _number(random)
    return number if random.randrange(2) else _quoted(random, number)


def _names(random: Random) -> list[str]:
    return [
        *(name for name in _NAMES if random.randrange(12)),
        *(() if random.randrange(6) else ("trigger",)),
    ]


def _document(random: Random) -> str:
    names = _names(random)
    if not random.randrange(5):
        names.insert(random.randrange(len(names) + 1), random.choice(_OTHERS))
    random.shuffle(names)
    gap = _odd(random, 10, ("", " "), _SPACES)
    members = [f"{gap}{_quoted(random, name)}{gap}:{gap}{_value(random, name)}" for name in names]
    inner = ",".join(members)
    if random.randrange(5):
        return "{" + inner + "}"
    forms = (
        '{"order": {%s}}',
        '{%s, "nested": {"symbol": "DOGE", "size": 9}}',
        '{%s, "nested": {"size": 1, "size": 2}}',
        '{%s, "list": [{"x": 1}, {"a": 1, "A": 2}]}',
        "[{%s}]",
        "{%s,}",
        "{%s} {}",
        "{%s}//",
        "'%s'",
        "{%s",
        "[" * 3000 + "{%s}" + "]" * 3000,
        '{"a":' * 2000 + "{%s}" + "}" * 2000,
    )
    return random.choice(forms).replace("%s", inner)


def json_order(random: Random) -> OddOrder:
    """Make an order for a route with a JSON body."""
    text = _document(random)
    encode = random.choice(tuple(_ENCODERS.values())) if not random.randrange(12) else str.encode
    content_type = random.choice(_TYPES) if not random.randrange(16) else "application/json"
    return OddOrder(
        encode(text),
        random.choice(("size=100", "symbol=DOGE&size=9")) if not random.randrange(16) else None,
        content_type if random.randrange(3) else None,
    )


def _parameter(random: Random, name: str) -> str:
    if name == "symbol":
        return "".join(letter for letter in _symbol(random) if letter.isascii() and letter.isalnum())
    if name == "reduce_only":
        return _odd(random, 5, ("true",), ("false", "True", "1", "tru%65", ""))
    if name == "side":
        return _odd(random, 8, ("buy", "buy", "sell"), ("Buy", "b%75y", "buy+", "%62uy%00", "1", ""))
    number = _number(random)
    if number.isascii() and number.isprintable() and random.randrange(4):
        return number.replace(" ", "+")
    return "".join(f"%{octet:02X}" for octet in number.encode())


def parameter_order(random: Random) -> OddOrder:
    """Make an order in query, form, or both."""
    parts = [f"{name}={_parameter(random, name)}" for name in _names(random)]
    if not random.randrange(5):
        parts.insert(random.randrange(len(parts) + 1), random.choice(_BARE))
    text = "&".join(parts)
    head, _, tail = text.partition("&")
    query, body = random.choice(((text, ""), ("", text), (head, tail), (text, ""), ("", text), (text, head)))
    if not random.randrange(40):
        body += random.choice(("\n", ";size=9", "é", "\x00"))
    return OddOrder(body.encode(), query or None)
