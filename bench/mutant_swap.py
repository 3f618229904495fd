"""Gives a function of an imported module the code of a mutant, where that is all that the mutant changes."""

import ast
import gc
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

_SOURCES = Path(__file__).parents[1] / "src"

Key = tuple[str, int]  # of a function: its qualified name and its first line


def module_name(file: Path) -> str:
    """Return the dotted name of a module of ours."""
    return ".".join(file.relative_to(_SOURCES).with_suffix("").parts)


class Swap:
    """Compares the code of a module as it is with what a change of its tree makes of it."""

    def __init__(self, file: Path, tree: ast.Module) -> None:
        self._file = file
        self._code = compile(tree, str(file), "exec")

    def changed_to(self, tree: ast.Module) -> bool:
        """Put the code of the changed functions in force; say whether that is the whole change."""
        code = compile(tree, str(self._file), "exec")
        if _frame(code) != _frame(self._code):
            return False
        before, after = dict(_functions(self._code)), dict(_functions(code))
        changed = {key for key, body in after.items() if body != before[key]}
        found = self._imported()
        if not all(key in found and _is_alone(before[key], after[key]) for key in changed):
            return False
        for key in changed:
            found[key].__code__ = after[key]
        return bool(changed)

    def _imported(self) -> dict[Key, FunctionType]:
        name = module_name(self._file)
        functions = [
            one for one in gc.get_objects() if isinstance(one, FunctionType) and one.__module__ == name
        ]
        return {_key(one.__code__): one for one in functions} if name in sys.modules else {}


def _frame(code: CodeType) -> tuple[object, ...]:
    """Return what runs at import: the code of a module and its classes, without what its functions do."""
    inner = [
        (_key(part) if _is_function(part) else _frame(part)) if isinstance(part, CodeType) else repr(part)
        for part in code.co_consts
    ]
    return code.co_code, code.co_names, tuple(inner)


def _functions(code: CodeType) -> Iterator[tuple[Key, CodeType]]:
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from [(_key(part), part)] if _is_function(part) else _functions(part)


def _is_alone(before: CodeType, after: CodeType) -> bool:
    """Ask whether a function has a name, and none that it makes has changed: one of them may be in use."""
    is_named = not before.co_name.startswith("<")
    return is_named and before.co_freevars == after.co_freevars and _made_by(before) == _made_by(after)


def _made_by(code: CodeType) -> list[CodeType]:
    return [part for key, part in _functions(code) if not key[0].endswith(("comp>", "<genexpr>"))]


def _key(code: CodeType) -> Key:
    return code.co_qualname, code.co_firstlineno


def _is_function(code: CodeType) -> bool:
    return bool(code.co_flags & inspect.CO_OPTIMIZED)
