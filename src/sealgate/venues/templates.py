"""Templates: literal bytes and `{name}` or `{name|filter|filter}`, with `{{` and `}}` for braces.

A template is parsed once per file and bound once per key: what a key or a venue fixes becomes literal, and
what is left is one formatting of bytes per request. Nothing is decoded, so bytes come out as they went in.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import NamedTuple

from sealgate.machine.nearest import did_you_mean
from sealgate.venues.filters import FILTERS

Values = list[bytes]
Render = Callable[[Values], bytes]
Mac = Callable[[bytes], bytes]

_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]|[^{}]+")


class TemplateError(ValueError):
    """A template that cannot be read; the message is one line."""


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
        return lambda values: layout % tuple([make(values) for make in makers])
    pick = itemgetter(*(slots[ref.name] for ref in rest))
    return pick if layout == b"%b" else lambda values: layout % pick(values)


def _maker(slot: int, filters: tuple[str, ...], mac: Mac) -> Render:
    return lambda values: _filtered(values[slot], filters, mac)


def _filtered(value: bytes, filters: tuple[str, ...], mac: Mac) -> bytes:
    for name in filters:
        value = mac(value) if name == "hmac" else FILTERS[name](value)
    return value
