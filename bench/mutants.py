"""What can be broken in a module, one small change at a time, and how each change reads.

Changes are made in the syntax tree. Left alone is what only a type checker or a person reads: annotations,
decorators, docstrings, the values of plain enums and texts with a space in them.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

_MOST_SHOWN = 90  # characters of a change; longer ones are cut

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_REVERSED = (
    ast.Lt,
    ast.LtE,
    ast.Gt,
    ast.GtE,
)  # whose change above only moves the border: they are negated, too
_COUNTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_OPPOSITES = (
    ("min", "max"),
    ("any", "all"),
    ("startswith", "endswith"),
    ("lower", "upper"),
    ("lstrip", "rstrip"),
    ("partition", "rpartition"),
    ("append", "appendleft"),
    ("pop", "popleft"),
    ("removeprefix", "removesuffix"),
    ("floor", "ceil"),
)
_OTHER_NAME = {a: b for pair in _OPPOSITES for a, b in (pair, pair[::-1])}
# Whose arguments are broken in another way: a set's characters, what is stripped.
_OF_OWN_KIND = r"frozenset|.*\.[lr]?strip"
_UNREAD = {"annotation", "returns", "decorator_list", "targets", "target", "type_params", "bases", "keywords"}
_READ_ANYWAY = {(ast.Call, "keywords"), (ast.comprehension, "ifs")}

Scope = ast.FunctionDef | ast.ClassDef
Node = TypeVar("Node", bound=ast.AST)
Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change. `apply` makes it in the tree that it was found in; `lines` are those of what changes."""

    scope: str
    lines: range
    before: str
    after: str
    apply: Callable[[], None]

    @property
    def change(self) -> str:
        """How it reads."""
        return f"{self.before} -> {self.after}"


@dataclass(frozen=True, slots=True)
class _Slot:
    """A place in the tree: a field of a node, or one entry of a field that is a list."""

    owner: ast.AST
    field: str
    index: int | None = None

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.owner, self.field, node)
        else:
            getattr(self.owner, self.field)[self.index] = node


@dataclass(frozen=True, slots=True)
class _Change:
    """What stands instead of a node; `shown` where that is not the whole of it."""

    node: ast.AST
    shown: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the walk is: the scopes around a node, and the nodes from its statement down to it."""

    names: tuple[str, ...] = ()
    above: tuple[ast.AST, ...] = ()
    in_function: bool = False

    def within(self, node: ast.AST) -> "_Place":
        names, in_function = self.names, self.in_function
        if isinstance(node, Scope):
            names, in_function = (*names, node.name), in_function or isinstance(node, ast.FunctionDef)
        above = (node,) if isinstance(node, ast.stmt) else (*self.above, node)
        return _Place(names, above, in_function)


def enums_of(sources: Sequence[str]) -> dict[str, list[str]]:
    """Return the members of every enum that the sources define."""
    return {
        node.name: [
            part.targets[0].id
            for part in node.body
            if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name)
        ]
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(base) for base in node.bases)
    }


def mutants_of(tree: ast.Module, enums: Mapping[str, Sequence[str]]) -> list[Mutant]:
    """Return every mutant of a module, in the order of its lines; each reads differently within its scope."""
    found = list(_walk(tree, _Place(), enums))
    seen: Counter[tuple[str, str]] = Counter()
    told = []
    for one in found:
        key = one.scope, one.change
        seen[key] += 1
        number = f" #{seen[key]}" if seen[key] > 1 else ""
        told.append(Mutant(one.scope, one.lines, one.before, one.after + number, one.apply))
    return told


def _walk(node: ast.AST, place: _Place, enums: Mapping[str, Sequence[str]]) -> Iterator[Mutant]:
    inner = place.within(node) if not isinstance(node, ast.Module) else place
    for slot, child in _children(node):
        for change in _changes(child, inner, enums):
            if not _is_mere_form(node, child):
                yield _mutant(slot, child, change, inner)
        yield from _walk(child, inner, enums)


def _is_mere_form(node: ast.AST, child: ast.AST) -> bool:
    """Ask whether a change would be one of types, or of the words of a text with holes."""
    if _is_for_types(child):
        return True
    if isinstance(node, ast.Call) and re.fullmatch(_OF_OWN_KIND, ast.unparse(node.func)):
        return isinstance(child, ast.Constant)
    is_words = (
        isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant) and " " in ast.unparse(node)
    )
    return is_words or (isinstance(node, ast.Subscript) and isinstance(child, ast.Tuple))


def _children(node: ast.AST) -> Iterator[tuple[_Slot, ast.AST]]:
    if _is_for_types(node) or (isinstance(node, ast.Call) and ast.unparse(node.func) == "lru_cache"):
        return
    names_alone = isinstance(node, ast.ClassDef) and [ast.unparse(base) for base in node.bases] == ["Enum"]
    for name, value in ast.iter_fields(node):
        if name in _UNREAD and (type(node), name) not in _READ_ANYWAY:
            continue
        if isinstance(value, ast.AST):
            yield _Slot(node, name), value
        elif isinstance(value, list):
            first = 1 if name == "body" and _has_docstring(node) else 0
            yield from (
                (_Slot(node, name, at), each)
                for at, each in enumerate(value)
                if at >= first and isinstance(each, ast.AST)
                if not (names_alone and isinstance(each, ast.Assign))
            )


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _has_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Module | Scope) and ast.get_docstring(node) is not None


def _mutant(slot: _Slot, node: ast.AST, change: _Change, place: _Place) -> Mutant:
    before, after = change.shown or _shown(slot, node, change.node, place)
    first = getattr(place.above[0] if place.above else node, "lineno", 1)
    last = first if isinstance(node, ast.stmt) else getattr(node, "end_lineno", first)
    put = partial(slot.put, ast.fix_missing_locations(ast.copy_location(change.node, node)))
    return Mutant(".".join(place.names), range(first, last + 1), _cut(before), _cut(after), put)


def _shown(slot: _Slot, node: ast.AST, new: ast.AST, place: _Place) -> tuple[str, str]:
    """Return the largest piece of code around a change that fits on a line, before and after."""
    shown = node
    for outer in reversed(place.above):
        text = ast.unparse(outer)
        if "\n" in text or len(text) > _MOST_SHOWN or isinstance(outer, ast.comprehension | ast.arguments):
            break
        shown = outer
    if shown is node:
        return ast.unparse(node), ast.unparse(new)
    before = ast.unparse(shown)
    slot.put(new)
    after = ast.unparse(shown)
    slot.put(node)
    return before, after


def _cut(text: str) -> str:
    line = re.sub(r"\s+", " ", text)
    return line if len(line) <= _MOST_SHOWN + 10 else f"{line[:_MOST_SHOWN]}…"


def _changes(node: ast.AST, place: _Place, enums: Mapping[str, Sequence[str]]) -> Iterator[_Change]:
    if isinstance(node, ast.stmt):
        yield from _other_statements(node)
        yield from _left_out(node)
    elif isinstance(node, ast.Attribute):
        yield from map(_Change, _other_attributes(node, enums))
    elif isinstance(node, ast.expr):
        yield from map(_Change, _other_values(node))
        if not place.in_function:
            yield from _shortened(node)
    elif isinstance(node, ast.comprehension):
        yield from map(_Change, _other_filters(node))


def _other_statements(node: ast.stmt) -> Iterator[_Change]:
    match node:
        case ast.If(test=test) | ast.While(test=test) if not _is_flipped(test):
            yield _Change(_like(node, test=_negated(test)), (ast.unparse(test), ast.unparse(_negated(test))))
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield _Change(ast.Return(ast.Constant(None)))
        case ast.AugAssign(op=op) if type(op) in _COUNTED:
            yield _Change(_like(node, op=_COUNTED[type(op)]()))
        case ast.Break():
            yield _Change(ast.Continue())
        case ast.Continue():
            yield _Change(ast.Break())


def _left_out(node: ast.stmt) -> Iterator[_Change]:
    """Leave out what acts: a name that is not bound would be noticed by anything."""
    is_act = isinstance(node, ast.Expr | ast.AugAssign | ast.Raise | ast.Delete | ast.Continue | ast.Break)
    is_kept = isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name | ast.Tuple)
    if is_act or is_kept:
        yield _Change(ast.Pass(), (ast.unparse(node).partition("\n")[0], "pass"))


def _other_values(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Call(func=ast.Attribute(attr="strip" | "lstrip" | "rstrip"), args=[_]):
            yield _like(node, args=[])
        case ast.Compare(ops=ops):
            yield from _other_comparisons(node, ops)
        case ast.BoolOp(op=ast.And()):
            yield _like(node, op=ast.Or())
        case ast.BoolOp(op=ast.Or()):
            yield _like(node, op=ast.And())
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.BinOp(op=operator) if type(operator) in _COUNTED:
            yield _like(node, op=_COUNTED[type(operator)]())
        case ast.IfExp(test=test) if not _is_flipped(test):
            yield _like(node, test=_negated(test))
        case ast.Name(id=name, ctx=ast.Load()) if name in _OTHER_NAME:
            yield ast.Name(_OTHER_NAME[name], ast.Load())
        case ast.Constant(value=value):
            yield from map(ast.Constant, _other_constants(value))


def _other_comparisons(node: ast.Compare, ops: Sequence[ast.cmpop]) -> Iterator[ast.expr]:
    for at, op in enumerate(ops):
        yield _like(node, ops=[*ops[:at], _COMPARED[type(op)](), *ops[at + 1 :]])
    if len(ops) == 1 and isinstance(ops[0], _REVERSED):
        yield _negated(node)


def _other_constants(value: object) -> Iterator[bool | int | float | str | bytes]:
    match value:
        case bool():
            yield not value
        case int():
            yield value + 1
            if value > 1:  # 0 of 1 is mostly what leaves it out, and -1 of 0 no number that is meant
                yield value - 1
        case float():
            yield value * 2 or 1.0
        case str() if " " not in value:
            yield f"XX{value}" if value else "XX"
        case bytes() if b" " not in value:
            yield b"XX" + value


def _other_attributes(node: ast.Attribute, enums: Mapping[str, Sequence[str]]) -> Iterator[ast.expr]:
    if node.attr in _OTHER_NAME:
        yield _like(node, attr=_OTHER_NAME[node.attr])
    members = enums.get(node.value.id, ()) if isinstance(node.value, ast.Name) else ()
    if node.attr in members:
        yield _like(node, attr=members[(members.index(node.attr) + 1) % len(members)])


def _other_filters(node: ast.comprehension) -> Iterator[ast.comprehension]:
    for at in range(len(node.ifs)):
        yield _like(node, ifs=_without(node.ifs, at))


def _shortened(node: ast.expr) -> Iterator[_Change]:
    """Leave out each entry of a table."""
    match node:
        case ast.Dict(keys=keys, values=values):
            for at, (key, value) in enumerate(zip(keys, values, strict=True)):
                name = f"{ast.unparse(key)}: {ast.unparse(value)}" if key else ast.unparse(value)
                fewer = _like(node, keys=_without(keys, at), values=_without(values, at))
                yield _Change(fewer, (name, "left out"))
        case ast.List(elts=entries) | ast.Set(elts=entries) | ast.Tuple(elts=entries) if len(entries) > 1:
            for at, entry in enumerate(entries):
                yield _Change(_like(node, elts=_without(entries, at)), (ast.unparse(entry), "left out"))
        case ast.Call(func=ast.Name(id="frozenset"), args=[ast.Constant(value=bytes() as octets)]):
            for at in range(len(octets)):
                rest = ast.Constant(octets[:at] + octets[at + 1 :])
                yield _Change(_like(node, args=[rest]), (repr(octets[at : at + 1]), "left out"))


def _without(entries: Sequence[Entry], at: int) -> list[Entry]:
    return [*entries[:at], *entries[at + 1 :]]


def _is_flipped(test: ast.expr) -> bool:
    """Ask whether another change negates it already."""
    return isinstance(test, ast.Compare) or (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _negated(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def _like(node: Node, **fields: Any) -> Node:
    """Return a copy of a node with other fields; what lies below is shared."""
    own = dict(ast.iter_fields(node)) | fields
    return ast.copy_location(type(node)(**own), node)
