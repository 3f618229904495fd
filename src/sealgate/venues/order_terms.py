"""What an order says: symbol, size, price, reduce-only, read from its untouched body or query.

Where two servers could read an order differently it cannot be read: repeated keys, keys of the venue's file
in other letters, other encodings, numbers spelled otherwise than in JSON, parameters beside a JSON body.
Nothing here is repaired, and nothing is sent from what was read: the bytes that came are the bytes that go.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from json.scanner import make_scanner
from re import Pattern
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

from sealgate.http.headers import Head
from sealgate.venues.document import pick

Path = tuple[str, ...]  # the steps of a JSON pointer; a parameter's is its name alone
Rows = tuple[Mapping[Path, Pattern[str]], ...]  # an order matches all patterns of one of them

_JSON_TYPES = frozenset({b"", b"application/json", b"application/json;charset=utf-8"})
_FORM_TYPES = frozenset(
    {b"", b"application/x-www-form-urlencoded", b"application/x-www-form-urlencoded;charset=utf-8"}
)
# JSON's grammar (RFC 8259 section 6), in ASCII, and no longer than any exchange takes.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,39})(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,4})?")
_NAME = re.compile(r"[A-Za-z0-9_]+")
_LONGEST_READ = 16_384  # bytes of a body of which one parameter is read; a batch of 20 orders has 6,000
_SEPARATORS = frozenset("&;%")  # of parameters, and of an escape
_FORM = re.compile(rb"[!-:<-~]*")  # printable ASCII without the semicolon, at which some servers cut


class UnreadableError(ValueError):
    """An order that cannot be read; the message says why in one clause."""


class _Literal(str):
    """A number of a JSON document, with every digit that was sent."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class OrderShape:
    """Where the orders of a route have what a policy asks for; None: nowhere.

    `is_json`: in a JSON body, else in a form; `in_query`: in the query, too. `each` leads to a list of
    orders, None where the request is one; what is in `beside` then stands beside that list, and all else in
    its members. A price caps what an order costs only where `kind` has one of `limit`, if there is a `kind`,
    and `side` one of `buys`. `trigger` is a price at which an order becomes one at the market. Where there is
    an `only`, an order must match one of its rows; what is absent is matched as "". `reduce_only` counts only
    in an order that matches one of `reduce_only_if`, if there are any. An order that has one of `never` is of
    another kind than these pointers are for. `in_contracts`: sizes are numbers of contracts, so size x price
    is no notional.
    """

    is_json: bool = True
    in_query: bool = False
    each: Path | None = None
    beside: tuple[Path, ...] = ()
    symbol: Path | None = None
    size: Path | None = None
    price: Path | None = None
    reduce_only: Path | None = None
    reduce_only_if: Rows = ()
    kind: Path | None = None
    limit: frozenset[str] = frozenset()
    side: Path | None = None
    buys: frozenset[str] = frozenset()
    trigger: Path | None = None
    only: Rows = ()
    never: tuple[Path, ...] = ()
    in_contracts: bool = False

    # What follows from these: how the members are called of an order, and of what is around a batch's orders;
    # what makes a table of members, and raises UnreadableError; and what reads a body.
    own: frozenset[str] = field(init=False, repr=False, compare=False)
    around: frozenset[str] = field(init=False, repr=False, compare=False)
    table: "_Table" = field(init=False, repr=False, compare=False)
    scan: Callable[[str, int], tuple[Any, int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        places = (self.symbol, self.size, self.price, self.reduce_only, self.kind, self.side, self.trigger)
        matched = (path for row in (*self.only, *self.reduce_only_if) for path in row)
        paths = {*places, *self.never, *matched} - {None, *self.beside}
        own = frozenset(step for path in paths for step in path or ())
        around = frozenset(step for path in self.beside for step in path)
        table = _table_of(own | around | {*(self.each or ())})
        decoder = json.JSONDecoder(
            object_pairs_hook=table, parse_int=_Literal, parse_float=_Literal, parse_constant=_constant
        )
        # Not its `decode`, which looks for space around the JSON for as long again as an order takes.
        scan = make_scanner(decoder)  # type: ignore[arg-type] # typeshed takes it for a scanner
        for name, value in (("own", own), ("around", around), ("table", table), ("scan", scan)):
            object.__setattr__(self, name, value)


@dataclass(frozen=True, slots=True)
class PriceShape:
    """Where the replies of a route have prices: in each of a list.

    With `each` None that is the reply, or the reply is one row.
    """

    symbol: Path
    price: Path
    each: Path | None = None


class OrderTerms(NamedTuple):
    """One order as it was sent: absolute values; None where it does not say.

    `is_capped`: it is surely a buy with a limit, so that it cannot execute above its `price`.
    """

    symbol: str | None
    size: Decimal | None
    price: Decimal | None
    reduces: bool
    is_capped: bool = False


def read_orders(shape: OrderShape, query: str | None, body: bytes, head: Head) -> list[OrderTerms]:
    """Return the orders of a request, at least one. Raises UnreadableError."""
    if b"content-encoding" in head.kept:
        raise UnreadableError("the body has a Content-Encoding")
    content_type = head.kept.get(b"content-type")
    types = _JSON_TYPES if shape.is_json else _FORM_TYPES
    is_of_type = content_type is None or content_type in types or _plain(content_type) in types
    if body and not is_of_type:
        raise UnreadableError(f"the Content-Type is not {'JSON' if shape.is_json else 'a form'} in UTF-8")
    if query is not None and not shape.in_query:
        raise UnreadableError("there is a query as well as a body")
    document = _json(body, shape) if shape.is_json else shape.table(_parameters(query, body))
    orders = _each(document, shape.each)
    if shape.each:
        _check_places(document, orders, shape)
    return [_read(order, document, shape) for order in orders]


def _check_places(batch: object, orders: list[Any], shape: OrderShape) -> None:
    """Refuse what stands beside a batch's orders and belongs in them, and the other way round."""
    for names, tables in ((shape.own, [batch]), (shape.around, orders)):
        for table in tables:
            if isinstance(table, dict) and (strays := table.keys() & names):
                raise UnreadableError(f"{min(strays)} is not at the place that the venue's file names")


def _matches(rows: Rows, order: object, batch: object, shape: OrderShape) -> bool:
    return any(
        all(
            pattern.fullmatch(_text(batch if path in shape.beside else order, path) or "")
            for path, pattern in row.items()
        )
        for row in rows
    )


def _plain(content_type: bytes) -> bytes:
    return content_type.lower().replace(b" ", b"").replace(b'"', b"")


def read_prices(shape: PriceShape, body: bytes) -> dict[str, str]:
    """Return the prices of a reply by symbol, as they are written there, as many as can be read.

    By the plain reader, in a tenth of the time: what the exchange says is not written to mislead.
    """
    try:
        document = json.loads(body, parse_int=str, parse_float=str)
        rows = document if isinstance(document, list) and shape.each is None else _each(document, shape.each)
    except (ValueError, RecursionError):
        return {}
    found = ((_picked(row, shape.symbol), _picked(row, shape.price)) for row in rows)
    return {symbol: price for symbol, price in found if isinstance(symbol, str) and isinstance(price, str)}


_parse_as_texts = json.JSONDecoder(parse_int=str, parse_float=str).decode


def read_parameter(pointer: str, query: str | None, body: bytes) -> str:
    """Return the text at a pointer into a JSON body, or the parameter of that name; "" without one.

    There is none either where two servers could read different ones, or where the body is larger than orders
    are, as it is read for each attempt.
    """
    if len(body) > _LONGEST_READ:
        return ""
    path, table = _reader(pointer)
    try:
        if body.lstrip()[:1] != b"{":
            found: object = table(_parameters(query, body)).get(path[0])
        elif path[0] in table(_parameters(query, b"")):
            found = None
        else:
            found = pick(json.loads(body, object_pairs_hook=table, parse_int=str, parse_float=str), pointer)
    except (ValueError, RecursionError, UnreadableError):
        return ""
    return found if isinstance(found, str) else ""


@lru_cache
def _reader(pointer: str) -> tuple[Path, "_Table"]:
    """Return the steps of a pointer, and what makes a table in which they lead to one place."""
    path = steps(pointer)
    return path, _table_of(frozenset(path))


def _picked(value: object, path: Path) -> object:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def read_price(text: str | None) -> Decimal | None:
    """Return a price that `read_prices` found, None where it is none."""
    price = None if text is None else _decimal(text)
    return price if price is not None and price > 0 else None


def _each(document: object, path: Path | None) -> list[Any]:
    if path is None:
        return [document]
    rows = _find(document, path)
    if not isinstance(rows, list) or not rows:
        raise UnreadableError("there is no list at the place that the venue's file names")
    return rows


def _read(order: object, batch: object, shape: OrderShape) -> OrderTerms:
    if shape.only and not _matches(shape.only, order, batch, shape):
        raise UnreadableError("the venue's file does not say how orders of this kind are read")
    for never in shape.never:
        if _at(order, never) is not None:
            raise UnreadableError(f"it has {'/'.join(never)}, which makes it another kind of order")
    price, trigger = _number(order, shape.price), _number(order, shape.trigger)
    kind = _at(order, shape.kind)
    is_capped = (
        price is not None
        and price > 0  # at some venues a negative one is relative
        and _at(order, shape.side) in shape.buys
        and (shape.kind is None or ("" if kind is None else kind) in shape.limit)
    )
    if price is not None:
        price = price.copy_abs() or None  # where it is zero, some exchanges take it for a market order
    if trigger and not is_capped:
        price = max(price or trigger, trigger.copy_abs())
    size, symbol = _number(order, shape.size), _text(order, shape.symbol)
    if isinstance(symbol, _Literal):
        raise UnreadableError("the symbol is not text")
    reduces = shape.reduce_only is not None and _at(order, shape.reduce_only) == (shape.is_json or "true")
    if reduces and shape.reduce_only_if:
        reduces = _matches(shape.reduce_only_if, order, batch, shape)
    return OrderTerms(symbol, None if size is None else size.copy_abs(), price, reduces, is_capped)


def _find(table: object, path: Path) -> object:
    for step in path:
        if not isinstance(table, dict):
            raise UnreadableError(f"there is no object that could contain {step}")
        table = table.get(step)
        if table is None:
            return None
    return table


def _at(order: object, path: Path | None) -> object:
    found = None if path is None else _find(order, path)
    # A list or a table is equal to no text, and has no hash to be looked up by.
    if isinstance(found, (list, dict)):
        raise UnreadableError(f"{'/'.join(path or ())} is a list or a table")
    return found


def _text(order: object, path: Path | None) -> str | None:
    found = _at(order, path)
    if found is None or isinstance(found, str):
        return found
    raise UnreadableError(f"{'/'.join(path or ())} is neither text nor a number")


def _number(order: object, path: Path | None) -> Decimal | None:
    text = _text(order, path)
    if text is None:
        return None
    if (number := _decimal(text)) is None:
        raise UnreadableError(f"{'/'.join(path or ())} is not a JSON number")
    return number


@lru_cache(maxsize=512)
def _decimal(text: str) -> Decimal | None:
    """Return a number as JSON writes it, exactly; None for other text, and where a double would be zero."""
    if len(text) > _LONGEST or not _NUMBER.fullmatch(text):
        return None
    number = Decimal(text)
    return None if number and not float(number) else number


_LONGEST = 88  # characters that `_NUMBER` may match


def _json(body: bytes, shape: OrderShape) -> object:
    try:
        text = body.decode("utf-8").strip(_SPACE)
        document, end = shape.scan(text, 0)
        if end == len(text):
            return document
        raise UnreadableError("the body goes on after the JSON")
    except (ValueError, RecursionError, StopIteration) as error:
        cause = str(error) if isinstance(error, UnreadableError) else "the body is not JSON in UTF-8"
        raise UnreadableError(cause) from None


_Table = Callable[[list[tuple[str, Any]]], dict[str, Any]]


def clear_decoder(names: Iterable[str]) -> Callable[[str], Any]:
    """Return what reads JSON; it raises ValueError where two could read different values of `names`."""
    table = _table_of(frozenset(names))
    return json.JSONDecoder(object_pairs_hook=table, parse_constant=_constant).decode


def _table_of(names: frozenset[str]) -> _Table:
    """Return what refuses keys that come twice, and keys that some servers take for one of `names`.

    Some servers ignore the case of letters, some all marks and white space, and some cut a key at a NUL.
    """
    known = frozenset(map(_fold, names))

    def table_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        others = [name for name in table if name not in names]
        folded = _fold("\0".join(others)).split(b"\0")  # together, as each alone costs 0.3 us
        if len(table) < len(pairs) or (len(folded) > 1 and len({*folded}) < len(folded)):
            raise UnreadableError("a key comes twice")
        if not known.isdisjoint(folded):
            raise UnreadableError("a key is not spelled as the exchange spells it")
        return table

    return table_of


_MARKS = bytes(code for code in range(1, 128) if not chr(code).isalnum())


def _fold(names: str) -> bytes:
    names = names.casefold()
    if not names.isascii():
        names = re.sub(r"[^\w\0]", "", names)
    return names.encode().translate(None, _MARKS)


def _constant(name: str) -> object:
    raise UnreadableError(f"{name} is not JSON")


_SPACE = " \t\n\r"  # RFC 8259 section 2


def _parameters(query: str | None, body: bytes) -> list[tuple[str, str]]:
    """Return the parameters of query and form."""
    if not _FORM.fullmatch(body):
        raise UnreadableError("the body is not a plain form")
    return [pair for text in (query, body.decode("ascii")) if text for pair in _pairs(text)]


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for pair in text.split("&"):
        name, mark, value = pair.partition("=")
        if not mark or not _NAME.fullmatch(name):
            raise UnreadableError("a parameter is not NAME=VALUE with a plain name")
        try:
            text = unquote_plus(value, errors="strict")
        except UnicodeDecodeError:
            raise UnreadableError("a parameter is not UTF-8") from None
        if not _SEPARATORS.isdisjoint(text):  # some servers undo escapes before they split, or twice
            raise UnreadableError("a parameter's value escapes a separator or a %")
        yield name, text


@lru_cache(maxsize=256)
def steps(pointer: str) -> Path:
    """Return the steps of a JSON pointer; "" has none."""
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])
