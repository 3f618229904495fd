"""JSON by bytes: members put into a bot's object or cut out of it, and values written in one certain way.

What is the bot's keeps its bytes: members are found by the ranges in which they stand.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import wraps
from typing import Any, NamedTuple
from urllib.parse import quote

from sealgate.venues.unsignable import UnsignableError

MOST_BYTES = 64 * 1024  # of JSON that is looked through, which takes up to 2 us per byte: all others wait
MOST_MEMBERS = 1000  # of an object of which some are cut out, looked up, or the gateway's
_NO_OBJECT = "the body must be a JSON object in UTF-8, as this venue signs its members"
_NO_LIST = "the body must be a JSON list in UTF-8, as this venue signs its members one by one"
_NOT_FLAT = "the body must be a flat JSON object, as this venue signs its members one by one"
_UNWRITABLE = "the body has half of a letter, or too many lists within lists, to be signed at this venue"
_BLANK = b" \t\n\r"
_DEEPEST = 3  # objects within lists
_PLAIN = "!'()*"
_SPACE = re.compile(r"[ \t\n\r]*")


def check_size(text: bytes) -> None:
    """Raise UnsignableError for JSON that would hold up all other requests while it is looked through."""
    if len(text) > MOST_BYTES:
        raise UnsignableError(f"its JSON has more than {MOST_BYTES} bytes, and is looked through")


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


_Pairs = tuple[tuple[str, Any], ...]  # the members of an object, in their order


def _unique(members: list[tuple[str, Any]]) -> _Pairs:
    """Return the members of an object. Of two of one name, some parsers take the first, some the last."""
    if len({name for name, _ in members}) < len(members):
        raise UnsignableError("the body repeats a member")
    return tuple(members)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_unique)


class Span(NamedTuple):
    """Where a member stands in a text: its name, its first letter, its value's, and behind its last."""

    name: str
    start: int
    value: int
    end: int


def member_spans(text: str, start: int = 0) -> list[Span]:
    """Return where the members of an object stand. Raises ValueError if none begins at `start`."""
    at = _skip(text, start)
    if text[at : at + 1] != "{":
        raise ValueError("no object")
    at = _skip(text, at + 1)
    found: list[Span] = []
    while text[at : at + 1] != "}":
        if found:
            if text[at : at + 1] != ",":
                raise ValueError("no comma")
            at = _skip(text, at + 1)
        if text[at : at + 1] != '"':
            raise ValueError("no name")
        name, behind = _DECODER.raw_decode(text, at)
        colon = _skip(text, behind)
        if text[colon : colon + 1] != ":":
            raise ValueError("no colon")
        value = _skip(text, colon + 1)
        _, end = _DECODER.raw_decode(text, value)
        found.append(Span(name, at, value, end))
        if len(found) > MOST_MEMBERS:
            raise UnsignableError(f"an object has more than {MOST_MEMBERS} members")
        at = _skip(text, end)
    return found


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def cut_members(body: bytes, names: Collection[bytes]) -> bytes:
    """Cut the members of these names out of a JSON object, each with one comma.

    What is no object stays, and so does one of more than MOST_BYTES or MOST_MEMBERS, which is not signed.
    """
    if len(body) > MOST_BYTES:
        return body
    wanted = {name.decode("ascii") for name in names}
    try:
        return without_members(body.decode("utf-8"), wanted).encode("utf-8")
    except (ValueError, RecursionError):
        return body


def without_members(text: str, names: Collection[str]) -> str:
    """Cut the members of these names out of a JSON object, each with one comma. Raises ValueError."""
    spans = member_spans(text)
    kept = [place for place, span in enumerate(spans) if span.name not in names]
    if len(kept) == len(spans):
        return text
    if not kept:
        return f"{text[: spans[0].start]}{text[spans[-1].end :]}"
    # 1. A member goes with what stands between it and the next one.
    # 2. Behind the last that is kept, those that go take the comma before them along.
    pieces = [text[: spans[0].start]]
    for place in kept:
        is_last = place == kept[-1]
        end = spans[place].end if is_last else spans[place + 1].start
        pieces.append(text[spans[place].start : end])
    return "".join((*pieces, text[spans[-1].end :]))


def put_members(body: bytes, before: Sequence[bytes], behind: Sequence[bytes]) -> bytes:
    """Put members before and behind those of a JSON object, of which all bytes stay.

    An absent body becomes an object. Raises UnsignableError where the body is no object, or a name comes
    twice, in other letters, too, as some parsers read names without case.
    """
    start, end = body.find(b"{"), body.rfind(b"}")
    if body and (start < 0 or end < start or body[:start].strip(_BLANK) or body[end + 1 :].strip(_BLANK)):
        raise UnsignableError(_NO_OBJECT)
    inner = body[start + 1 : end] if body else b""
    own = [inner] if inner.strip(_BLANK) else []
    joined = b",".join((*before, *own, *behind))
    text = b"%b%b%b" % (body[: start + 1] or b"{", joined, body[end:] if body else b"}")
    names = [name.casefold() for name, _ in _pairs_of(text)]
    if len(set(names)) < len(names):
        raise UnsignableError("the body repeats a member, or has one that the gateway sets")
    return text


def member_at(text: bytes, steps: Sequence[str]) -> bytes:
    """Return what stands at a place of a JSON object, nothing if it is absent.

    It is as it is written, but a string is without quotes and escapes. Raises UnsignableError where there is
    no such object, or a name on the way comes twice.
    """
    check_size(text)
    try:
        whole = text.decode("utf-8")
        start, end = 0, len(whole)
        for step in steps:
            found = [span for span in member_spans(whole, start) if span.name == step]
            if not found:
                return b""
            [span] = found  # or a ValueError
            start, end = span.value, span.end
        value = whole[start:end]
        return (json.loads(value) if value.startswith('"') else value).encode("utf-8")
    except UnsignableError:
        raise
    except (ValueError, RecursionError):
        raise UnsignableError(_NO_OBJECT) from None


def items_of(text: bytes) -> list[bytes]:
    """Return the members of a JSON list with their bytes; what is no list is the only one, and nothing none.

    Raises UnsignableError where the list is none in UTF-8.
    """
    if not text.lstrip(_BLANK).startswith(b"["):
        return [text] if text else []
    check_size(text)
    try:
        whole = text.decode("utf-8")
        return [whole[start:end].encode("utf-8") for start, end in item_spans(whole)]
    except (ValueError, RecursionError):
        raise UnsignableError(_NO_LIST) from None


def item_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each member of a list begins and ends. Raises ValueError for what is more than a list."""
    at = start = _skip(text, _skip(text, 0) + 1)
    while text[at : at + 1] != "]":
        if at > start:
            if text[at : at + 1] != ",":
                raise ValueError("no comma")
            at = _skip(text, at + 1)
        _, end = _DECODER.raw_decode(text, at)
        yield at, end
        at = _skip(text, end)
    if _skip(text, at + 1) < len(text):
        raise ValueError("more than a list")


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def _parsed(text: bytes) -> Any:
    """Return a JSON document with numbers as they are written, and objects as tuples of pairs."""
    check_size(text)
    try:
        return json.loads(
            text.decode("utf-8"),
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_refuse_constant,
            object_pairs_hook=_unique,
        )
    except UnsignableError:
        raise
    except (ValueError, RecursionError):
        raise UnsignableError(_NO_OBJECT) from None


def _pairs_of(text: bytes) -> _Pairs:
    members = _parsed(text)
    if not isinstance(members, tuple):
        raise UnsignableError(_NO_OBJECT)
    return members


def _refusing(write: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """Raise UnsignableError for what cannot be written: half of a surrogate pair, lists in too many lists."""

    @wraps(write)
    def written(text: bytes) -> bytes:
        try:
            return write(text)
        except (UnicodeEncodeError, RecursionError):
            raise UnsignableError(_UNWRITABLE) from None

    return written


@_refusing
def canonical(text: bytes) -> bytes:
    """Write a JSON document without blanks, names in order at every depth, numbers as they are written."""
    return _compact(_parsed(text), is_canonical=True).encode("ascii") if text else b""


def _compact(value: Any, *, is_canonical: bool) -> str:
    """Write a value without blanks; one that is canonical has names in order, and ASCII alone."""
    if isinstance(value, tuple):
        members = sorted(value) if is_canonical else value
        pairs = [[_compact(one, is_canonical=is_canonical) for one in member] for member in members]
        return "{" + ",".join(map(":".join, pairs)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_compact(one, is_canonical=is_canonical) for one in value) + "]"
    return str(value) if isinstance(value, _Number) else json.dumps(value, ensure_ascii=is_canonical)


@_refusing
def flat_json(text: bytes) -> bytes:
    """Write an object as names, in order, each with its value; a list as its members, one after the other."""
    return _flat(_pairs_of(text), 0).encode("utf-8") if text else b""


def _flat(value: Any, depth: int) -> str:
    if isinstance(value, tuple) and depth < _DEEPEST:
        members = sorted(value)
        if not any(isinstance(inner, tuple) for _, inner in members):
            return "".join(f"{name}{_flat(inner, depth)}" for name, inner in members)
    elif isinstance(value, list):
        return "".join(_flat(inner, depth + 1) for inner in value)
    elif not isinstance(value, tuple):
        return _plain(value)
    raise UnsignableError("the body has an object within another one, which this venue does not sign")


def _plain(value: Any) -> str:
    return str(value) if isinstance(value, str) else json.dumps(value)  # true, false, null


def _flat_members(body: bytes) -> list[tuple[str, str]]:
    """Return the members of a flat object, numbers as they are written."""
    check_size(body)
    try:
        members = _pairs_of(body) if body else ()
    except UnsignableError:
        raise UnsignableError(_NOT_FLAT) from None
    if not all(isinstance(value, str | bool) for _, value in members):
        raise UnsignableError(_NOT_FLAT)
    return [(name, _plain(value)) for name, value in members]


@_refusing
def as_form(body: bytes) -> bytes:
    """Return the members of a flat JSON object as a query, numbers as they are written."""
    members = [f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in _flat_members(body)]
    return "&".join(members).encode("ascii")


@_refusing
def as_form_lists(body: bytes) -> bytes:
    """Return the members of a JSON object as `as_form` does, a list as `name[]` once for each of its members.

    Objects and lists within a list are written as JSON without blanks. As by JavaScript's encodeURIComponent,
    !'()* stay as they are.
    """
    members: list[str] = []
    for name, value in _pairs_of(body) if body else ():
        if isinstance(value, list):
            texts = [one if isinstance(one, str) else _compact(one, is_canonical=False) for one in value]
            members += [f"{quote(name, _PLAIN)}[]={quote(text, _PLAIN)}" for text in texts]
        elif isinstance(value, str | bool):
            members.append(f"{quote(name, _PLAIN)}={quote(_plain(value), _PLAIN)}")
        else:
            raise UnsignableError(_NOT_FLAT)
    return "&".join(members).encode("ascii")


def bare(value: bytes) -> bytes:
    """Return what stands in a JSON text without quotes, if it is one JSON value or nothing."""
    check_size(value)
    try:
        if value:
            json.loads(value.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise UnsignableError("a value that this venue signs as JSON is not JSON") from None
    return value.strip(_BLANK)


@_refusing
def pairs(body: bytes) -> bytes:
    """Return the members of a flat JSON object as name=value with commas between them, nothing escaped."""
    return ",".join(f"{name}={value}" for name, value in _flat_members(body)).encode("utf-8")


@_refusing
def raw_query(text: bytes) -> bytes:
    """Return the members of a flat JSON object as a query in order of their names, nothing escaped."""
    return "&".join(f"{name}={value}" for name, value in sorted(_flat_members(text))).encode("utf-8")
