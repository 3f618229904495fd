"""Templates: literal bytes and `{name}` or `{name|filter|filter}`, with `{{` and `}}` for braces.

A template is parsed once per file and bound once per key: what a key or a venue fixes becomes literal, and
what is left is one formatting of bytes per request. Nothing is decoded, so bytes come out as they went in.
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import NamedTuple
from urllib.parse import quote, quote_from_bytes, unquote_to_bytes

from sealgate.machine.nearest import did_you_mean

Values = list[bytes]
Render = Callable[[Values], bytes]
Mac = Callable[[bytes], bytes]

_NOT_FLAT = "the body must be a flat JSON object, as this venue signs it as a query"
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]|[^{}]+")


class TemplateError(ValueError):
    """A template that cannot be read; the message is one line."""


class UnsignableError(ValueError):
    """A request that the venue's scheme cannot sign as it came; the message is for the bot."""


class Ref(NamedTuple):
    """A place in a template: the name of a value, and the filters that it goes through."""

    name: str
    filters: tuple[str, ...] = ()


Template = tuple[bytes | Ref, ...]


def parse_template(text: str, names: Iterable[str]) -> Template:
    """Read a template that may mention `names`. Raises TemplateError with the nearest valid name."""
    known = list(names)
    if not text.isascii():
        raise TemplateError("it has a letter that is not ASCII, which exchanges spell in different ways")
    pieces: list[bytes | Ref] = []
    for found in _PIECE.finditer(text):
        piece = found[0]
        if piece in ("{{", "}}"):
            pieces.append(piece[:1].encode("ascii"))
        elif found[1] is not None:
            pieces.extend(_expanded(found[1], known))
        elif piece in ("{", "}"):
            raise TemplateError(f"a lone {piece}: write {piece * 2} for the character itself")
        else:
            pieces.append(piece.encode("ascii"))
    return tuple(pieces)


def names_in(template: Template) -> set[str]:
    """Return the names that a template mentions."""
    return {piece.name for piece in template if isinstance(piece, Ref)}


def _expanded(text: str, known: list[str]) -> Iterable[Ref]:
    name, *filters = text.split("|")
    if name not in known:
        raise TemplateError(f"unknown name {{{name}}}; {did_you_mean(name, known)}")
    for one in filters:
        if one not in FILTERS:
            raise TemplateError(f"unknown filter |{one}; {did_you_mean(one, FILTERS)}")
    if name != "url":
        return (Ref(name, tuple(filters)),)
    if filters:
        raise TemplateError("{url} takes no filter")
    return Ref("root"), Ref("target")


def bind(template: Template, constants: Mapping[str, bytes], slots: Mapping[str, int], mac: Mac) -> Render:
    """Make a function of a template. `constants` are known now, `slots` say where the other values stand."""
    layout = b""
    rest: list[Ref] = []
    for piece in template:
        if isinstance(piece, Ref) and piece.name not in constants:
            layout += b"%b"
            rest.append(piece)
        else:
            value = (
                piece if isinstance(piece, bytes) else _filtered(constants[piece.name], piece.filters, mac)
            )
            layout += value.replace(b"%", b"%%")
    if not rest:
        fixed = layout % ()
        return lambda _values: fixed
    if any(ref.filters for ref in rest):
        makers = [_maker(slots[ref.name], ref.filters, mac) for ref in rest]
        if any("more" in ref.filters for ref in rest):
            return lambda values: _checked_object(layout % tuple([make(values) for make in makers]))
        return lambda values: layout % tuple([make(values) for make in makers])
    pick = itemgetter(*(slots[ref.name] for ref in rest))
    return pick if layout == b"%b" else lambda values: layout % pick(values)


def _maker(slot: int, filters: tuple[str, ...], mac: Mac) -> Render:
    return lambda values: _filtered(values[slot], filters, mac)


def _filtered(value: bytes, filters: tuple[str, ...], mac: Mac) -> bytes:
    for name in filters:
        value = mac(value) if name == "hmac" else FILTERS[name](value)
    return value


def sort_parameters(query: bytes) -> bytes:
    """Put parameters in order of their names, each with the bytes that it came with."""
    parameters: list[bytes] = sorted(query.split(b"&"), key=_name)
    return b"&".join(parameters)


def _name(parameter: bytes) -> bytes:
    return parameter.partition(b"=")[0]


def _more(body: bytes) -> bytes:
    """Return what follows the members of an object into which those of `body` are put."""
    inner = body.strip()
    if not inner:
        return b"}"
    if not (inner.startswith(b"{") and inner.endswith(b"}")):
        raise UnsignableError("the body must be a JSON object, as this venue signs its members")
    members = inner[1:].lstrip()
    return members if members == b"}" else b"," + members


def _checked_object(text: bytes) -> bytes:
    """Return an object that a bot's members were put into, if it has one reading.

    Of a member that comes twice some parsers take the first and some the last, and some read names without
    case; then a bot could have its own in the place of the gateway's.
    """
    try:
        members = json.loads(
            text.decode("utf-8"),
            parse_int=str,
            parse_float=str,
            parse_constant=_refuse_constant,
            object_pairs_hook=tuple,
        )
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, tuple):
        raise UnsignableError("the body must be a JSON object in UTF-8, as this venue signs its members")
    names = [str(name).casefold() for name, _ in members]
    if len(set(names)) < len(names):
        raise UnsignableError("the body repeats a member, or has one that the gateway sets")
    return text


def _refuse_constant(name: str) -> str:
    raise ValueError(name)


def _as_form(body: bytes) -> bytes:
    """Return the members of a flat JSON object as a query, numbers as they are written."""
    if not body:
        return b""
    try:
        members = json.loads(body, parse_int=str, parse_float=str, object_pairs_hook=list)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, list) or not all(_is_flat(member) for member in members):
        raise UnsignableError(_NOT_FLAT)
    texts = [(name, {True: "true", False: "false"}.get(value, value)) for name, value in members]
    try:
        pairs = [f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in texts]
    except UnicodeEncodeError:  # half of a surrogate pair, which is no letter
        raise UnsignableError(_NOT_FLAT) from None
    return "&".join(pairs).encode("ascii")


def _is_flat(member: object) -> bool:
    return isinstance(member, tuple) and isinstance(member[1], str | bool)


FILTERS: dict[str, Callable[[bytes], bytes]] = {
    "amp": lambda value: value and value + b"&",
    "lamp": lambda value: value and b"&" + value,
    "q": lambda value: value and b"?" + value,
    "hash": lambda value: value and b"#" + value,
    "pct": lambda value: quote_from_bytes(value, safe="").encode("ascii"),
    "unquote": unquote_to_bytes,
    "sorted": sort_parameters,
    "base64": base64.b64encode,
    "sha256bin": lambda value: hashlib.sha256(value).digest(),
    "sha512": lambda value: binascii.hexlify(hashlib.sha512(value).digest()),
    "hmac": bytes,  # keyed: `bind` puts the key's own in its place
    "more": _more,
    "as_form": _as_form,
}
