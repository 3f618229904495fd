"""The rules of the house that no linter knows: imports run downwards, and pure modules stay pure.

Both are computed from the imports; the order of the rooms is the one thing that is written down.
"""

import ast
import re
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter

import pytest

from rig.purity import ROOT, imports, pure_modules, shell_modules, sources
from sealgate import __name__ as program

# From the top down: the modules of a room import those of the rooms below it, of their own, and of no other.
ROOMS = (
    "testing",
    "cli",
    "demo",
    "diagnose",
    "server",
    "observe",
    "cluster",
    "streams",
    "request",
    "orders",
    "exchange",
    "keys",
    "config",
    "limits",
    "venues",
    "http",
    "machine",
    "errors",
)
UNMAPPED = frozenset({"cli", "testing", "errors"})  # a file per command, one fixture, one table
MAPPED = {*ROOMS} - UNMAPPED
SANDBOX = "sandbox"  # for the demo, the tests of bots and the command; it imports nothing of ours


def room_of(module: str) -> str:
    """Return the room of a module: "limits" of `sealgate.limits.pacer`, "" of the package itself."""
    return [*module.split("."), ""][1]


def ours(source: str) -> list[str]:
    """Return what a source imports of the program."""
    return [name for name in imports(source) if name.partition(".")[0] == program and "__" not in name]


def upward(module: str, source: str) -> list[str]:
    """Return what a module of a room imports from above it."""
    below = {*ROOMS[ROOMS.index(room_of(module)) :], SANDBOX}
    return [name for name in ours(source) if room_of(name) not in below]


def test_imports_run_downwards() -> None:
    inside = {name: source for name, source in sources().items() if room_of(name) in ROOMS}
    assert {name: found for name, source in inside.items() if (found := upward(name, source))} == {}


def test_every_module_is_in_a_room() -> None:
    assert {room_of(name) for name in sources()} == {*ROOMS, "", "__main__"}


def test_the_sandbox_imports_nothing_of_ours() -> None:
    files = sorted((ROOT / SANDBOX).rglob("*.py"))
    assert files
    assert {room_of(name) for file in files for name in ours(file.read_text("utf-8"))} == {SANDBOX}


def test_no_modules_import_each_other_in_a_circle() -> None:
    modules = sources()
    graph = {
        name: {found if found in modules else found.rpartition(".")[0] for found in ours(source)} - {name}
        for name, source in modules.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"these import each other: {error.args[1]}")


def test_what_imports_the_world_or_a_module_that_does_is_shell() -> None:
    made_up = {
        "a": "import asyncio",
        "b": "from a import f",
        "c": "from http import HTTPStatus",
        "d": "if TYPE_CHECKING:\n    from a import F",
    }
    assert shell_modules(made_up) == {"a", "b"}


def maps() -> dict[str, tuple[set[str], set[str]]]:
    """Return which modules each room's docstring calls pure, and which shell."""
    found = {}
    for name, source in sources().items():
        if room_of(name) in MAPPED and name.count(".") == 1:
            pure, _, shell = (ast.get_docstring(ast.parse(source)) or "").partition("\nShell:\n")
            _, _, pure = pure.partition("\nPure:\n")
            found[room_of(name)] = (_named(pure), _named(shell))
    return found


def _named(part: str) -> set[str]:
    return set(re.findall(r"^(\w+)  ", part, re.MULTILINE))


def test_each_room_begins_with_its_map() -> None:
    modules: dict[str, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    for name in sources():
        _, room, *rest = [*name.split("."), ""]
        if room in MAPPED and rest[0]:
            modules[room][name not in pure_modules()].add(rest[0])
    # A folder is shell if any of its modules is.
    found = {room: (pure - shell, shell) for room, (pure, shell) in modules.items()}
    assert maps() == found
