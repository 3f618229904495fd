"""JSON that a venue's file describes: a table is an object, in its order, and each text a JSON string.

Values of requests are escaped, so that none can end its place.
"""

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from sealgate.venues.document import Table
from sealgate.venues.json_bytes import put_members
from sealgate.venues.templates import Ref, Render, Template, names_in
from sealgate.venues.unsignable import UnsignableError

OWN = "*"  # the name at which the members of the bot stand
_OPTIONAL = "?"
_BARE = "bare"


@dataclass(frozen=True, slots=True)
class JsonText:
    """A value that is made for each request. One that `is_bare` is JSON itself, and no string."""

    text: Template
    is_bare: bool = False


@dataclass(frozen=True, slots=True)
class JsonList:
    """A list of values."""

    values: "tuple[JsonNode, ...]"


@dataclass(frozen=True, slots=True)
class JsonMember:
    """A member of an object; `name` is a JSON string. One that `is_optional` is left out if it is empty."""

    name: bytes
    value: "JsonNode"
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class JsonObject:
    """An object. With `own`, a text that is an object, that one's members stand between the others."""

    before: tuple[JsonMember, ...] = ()
    own: Template | None = None
    behind: tuple[JsonMember, ...] = ()

    @property
    def names(self) -> set[bytes]:
        """The names of the members that the file sets."""
        return {json.loads(member.name).encode("ascii") for member in (*self.before, *self.behind)}


JsonNode = JsonText | JsonList | JsonObject | bytes


def read_object(table: Table, names: Collection[str]) -> JsonObject:
    """Read a table of a venue's file as a JSON object, whose texts may mention `names`. Raises VenueError."""
    before: list[JsonMember] = []
    members, own = before, None
    for key, value in table.data.items():
        if key == OWN:
            own = table.template(key, table.text(key), names)
            members = []
            continue
        name = key.removesuffix(_OPTIONAL)
        if not name or not (name.isascii() and name.isprintable()):
            raise table.error(key, f"{key!r} is not a name of printable ASCII")
        node = _read(table, key, value, names)
        members.append(JsonMember(json.dumps(name).encode("ascii"), node, is_optional=name != key))
    return JsonObject(tuple(before), own, () if own is None else tuple(members))


def _read(table: Table, key: str, value: object, names: Collection[str]) -> JsonNode:
    if isinstance(value, dict):
        return read_object(Table(table.document, (*table.path, key), value, value), names)
    if isinstance(value, list):
        return JsonList(tuple(_read(table, key, one, names) for one in value))
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, int):
        return b"%d" % value
    if not isinstance(value, str):
        raise table.error(key, f"{key} must be a text, a whole number, true or false, a list or a table")
    return read_text(table, key, value, names)


def read_text(table: Table, key: str, value: str, names: Collection[str]) -> JsonText:
    """Read a text that becomes a JSON string, or JSON itself with `bare`. Raises VenueError."""
    text = table.template(key, value, names)
    bare = [piece for piece in text if isinstance(piece, Ref) and _BARE in piece.filters]
    if bare and (len(text) > 1 or bare[0].filters.index(_BARE) < len(bare[0].filters) - 1):
        raise table.error(key, f"{key}: {{name|bare}} must be the whole text, and bare its last filter")
    return JsonText(text, bool(bare))


def templates_in(node: JsonNode) -> Iterator[Template]:
    """Yield the templates of all texts."""
    if isinstance(node, JsonText):
        yield node.text
    elif isinstance(node, JsonList):
        for value in node.values:
            yield from templates_in(value)
    elif isinstance(node, JsonObject):
        yield from () if node.own is None else (node.own,)
        for member in (*node.before, *node.behind):
            yield from templates_in(member.value)


def names_in_json(node: JsonNode) -> set[str]:
    """Return the names that its texts mention."""
    return set[str]().union(*map(names_in, templates_in(node)))


def bind_json(node: JsonNode, bound: Callable[[Template], Render]) -> Render:
    """Make a function that writes a value; `bound` makes one of a template."""
    if isinstance(node, bytes):
        constant = node
        return lambda _values: constant
    if isinstance(node, JsonList):
        makers = [bind_json(value, bound) for value in node.values]
        return lambda values: b"[%b]" % b",".join([make(values) for make in makers])
    if isinstance(node, JsonObject):
        before, behind = _writer(node.before, bound), _writer(node.behind, bound)
        if node.own is None:
            return lambda values: b"{%b}" % b",".join(before(values))
        own = bound(node.own)
        return lambda values: put_members(own(values), before(values), behind(values))
    render = bound(node.text)
    return render if node.is_bare else lambda values: _string(render(values))


def _writer(
    members: tuple[JsonMember, ...], bound: Callable[[Template], Render]
) -> Callable[[list[bytes]], list[bytes]]:
    makers = [(member.name, member.is_optional, bind_json(member.value, bound)) for member in members]

    def write(values: list[bytes]) -> list[bytes]:
        made = [(name, is_optional, make(values)) for name, is_optional, make in makers]
        if any(not (value or is_optional) for _, is_optional, value in made):
            raise UnsignableError("the body lacks a member that this venue signs")
        return [
            b"%b:%b" % (name, value)
            for name, is_optional, value in made
            if not (is_optional and value in (b"", b'""'))
        ]

    return write


def _string(text: bytes) -> bytes:
    try:
        return json.dumps(text.decode("utf-8"), ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError:
        raise UnsignableError("what this venue signs must be in UTF-8") from None
