"""The rules of the house that no linter knows: which way imports run.

Each rule is a function of a made-up or real source, so that the tests below show that it can fail.
"""

import ast
import re
import sys
from collections.abc import Container, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import sealgate

ROOT = Path(sealgate.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))

# What the modules of a part may import of ours, itself apart. "" is the package, which has only the version.
OURS = {
    "": frozenset({"cli"}),  # __main__ starts the program
    "errors": frozenset(),
    "core": frozenset({"errors"}),
    "config": frozenset({"core"}),
    "sandbox": frozenset(),
    "admin": frozenset({"", "core", "errors"}),
    "gateway": frozenset({"", "core", "config", "errors"}),
    "cli": frozenset({"", "gateway", "admin", "sandbox", "config", "core", "errors"}),
    "testing": frozenset({"admin", "cli", "gateway", "sandbox", "config", "core", "errors"}),
}

DESIGN = Path(__file__).parents[1] / "docs" / "internals" / "design.md"

# The rooms of the gateway: each may import those that stand after it.
ROOMS = (
    "runtime",
    "probe",
    "request",
    "listeners",
    "bots",
    "sharing",
    "journal",
    "clock",
    "upstream",
    "pacing",
    "keys",
    "http",
    "platform",
)

# What they may import of others; where nothing is said, anything.
_STANDARD = frozenset(sys.stdlib_module_names)
_OUTSIDE_WORLD = frozenset(
    [
        "asyncio",
        "logging",
        "os",
        "pathlib",
        "random",
        "secrets",
        "socket",
        "ssl",
        "subprocess",
        "threading",
        "time",
        "uuid",
    ]
)
OTHERS = {
    "errors": _STANDARD - _OUTSIDE_WORLD,
    "core": _STANDARD - _OUTSIDE_WORLD,
    "config": _STANDARD | {"pydantic", "pydantic_core", "pydantic_settings"},
}


def part_of(module: str) -> str:
    """Return the part that a module of ours belongs to: "core" of `sealgate.core.pause`."""
    return [*module.split("."), ""][1]


def imports(source: str) -> Iterator[str]:
    """Yield every module that a source imports, wherever the statement stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative imports hide the direction"
            # `from sealgate import core` imports a module, `from sealgate import __version__` does not.
            is_package = node.module == "sealgate" and not node.names[0].name.startswith("__")
            yield from (
                (f"sealgate.{alias.name}" for alias in node.names) if is_package else [str(node.module)]
            )


def wrong_imports(part: str, source: str) -> list[str]:
    """Return the modules that a source of a part imports against the rules."""
    return [module for module in imports(source) if not may_import(part, module)]


def may_import(part: str, module: str) -> bool:
    package = module.partition(".")[0]
    if package == "sealgate":
        return part_of(module) in OURS[part] | {part}
    return part not in OTHERS or package in OTHERS[part]


def upward_imports(room: str, source: str) -> list[str]:
    """Return the modules of the gateway that a source of a room may not import: they stand above it."""
    above = ROOMS[: ROOMS.index(room)]
    return [
        module
        for module in imports(source)
        if module.startswith("sealgate.gateway.") and module.split(".")[2] in above
    ]


def module_of(file: Path) -> str:
    return ".".join(["sealgate", *file.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")


def circle(sources: Mapping[str, str]) -> list[str]:
    """Return modules that import each other in a circle, those for types alone included; [] if none do."""
    graph = {name: set(imported(source, sources)) - {name} for name, source in sources.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def imported(source: str, modules: Container[str]) -> Iterator[str]:
    """Yield those of the modules that a source imports."""
    for node in ast.walk(ast.parse(source)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            inner = [f"{node.module}.{name}" for name in names]
            names = [name if name in modules else str(node.module) for name in inner]
        yield from (name for name in names if name in modules)


def name_of(file: Path) -> str:
    return str(file.relative_to(ROOT))


def part_of_file(file: Path) -> str:
    first = file.relative_to(ROOT).parts[0].removesuffix(".py")
    return "" if first.startswith("__") else first


def test_imports_run_downwards() -> None:
    wrong = {name_of(file): wrong_imports(part_of_file(file), file.read_text()) for file in SOURCES}
    assert {name: modules for name, modules in wrong.items() if modules} == {}


@pytest.mark.parametrize("room", ROOMS)
def test_imports_run_downwards_in_the_gateway(room: str) -> None:
    files = sorted({*(ROOT / "gateway" / room).rglob("*.py"), *(ROOT / "gateway").glob(f"{room}.py")})
    assert files
    assert [upward_imports(room, file.read_text()) for file in files] == [[]] * len(files)


def test_every_room_of_the_gateway_has_its_place() -> None:
    inside = {path.name.partition(".")[0] for path in (ROOT / "gateway").iterdir()}
    assert inside - {"__init__", "__pycache__"} == set(ROOMS)


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle({module_of(file): file.read_text() for file in SOURCES}) == []


WRONG = [
    ("core", "import sealgate.config"),
    ("core", "from sealgate import gateway"),
    ("core", "def f():\n    import asyncio.events"),
    ("config", "import aiohttp"),
    ("sandbox", "from sealgate import __version__"),
    ("gateway", "from sealgate.cli.frame import leave"),
    ("", "import sealgate.gateway"),
]
RIGHT = [
    ("core", "import hmac\nfrom sealgate.errors import Refusal\nfrom sealgate.core.pause import Pause"),
    ("gateway", "import aiohttp\nfrom sealgate import __version__\nfrom sealgate.config import Config"),
]


def test_the_rule_of_imports_can_fail() -> None:
    assert [len(wrong_imports(*one)) for one in WRONG] == [1] * len(WRONG)
    assert [wrong_imports(*one) for one in RIGHT] == [[]] * len(RIGHT)


def test_the_rule_of_rooms_can_fail() -> None:
    source = (
        "from sealgate.gateway.request import pipeline\nfrom sealgate.gateway.platform.system import System"
    )
    assert upward_imports("bots", source) == ["sealgate.gateway.request"]
    assert upward_imports("runtime", source) == []


def test_the_rule_of_circles_can_fail() -> None:
    sources = {"a": "import b", "b": "if TYPE_CHECKING:\n    from c import D", "c": "from a import E"}
    assert set(circle(sources)) == {"a", "b", "c"}
    assert circle(sources | {"c": ""}) == []


def drawn_plan(page: str) -> dict[str, frozenset[str]]:
    """Read what each part imports, from the picture at the head of the design page."""
    rows = [re.split("  +", line.strip()) for line in page.split("```")[1].strip().splitlines()]
    imported = {row[0]: [] if row[-1] == "nothing of ours" else row[-1].split(", ") for row in rows}
    package = {"sealgate": ""}
    return {
        package.get(part, part): frozenset(package.get(one, one) for one in ours)
        for part, ours in imported.items()
    }


def test_the_design_draws_the_rule_of_imports() -> None:
    assert drawn_plan(DESIGN.read_text()) == OURS


def test_the_design_lists_the_rooms_in_their_order() -> None:
    plan = DESIGN.read_text().split("\n## ")[1]
    assert tuple(re.findall(r"^\| `(\w+)` \|", plan, re.MULTILINE)) == ROOMS


def test_every_part_has_its_rule() -> None:
    assert {part_of_file(file) for file in SOURCES} <= set(OURS)
