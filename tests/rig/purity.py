"""Which modules decide and which act, computed from what they import.

A module is *shell* if it imports what reaches the world outside the process (`OUTSIDE`), or a shell module;
all others are *pure*: values and `now` in, values out. What is imported for types alone does not count.

`python -m rig.purity` prints the files of the tests that need neither sockets, tasks nor other programs.
`python -m rig.purity --modules` prints the pure modules, as coverage takes them.
"""

import ast
import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import sealgate

ROOT = Path(sealgate.__file__).parent
TESTS = Path(__file__).parents[1]

# What reaches sockets, tasks and other programs; a test without these takes no time.
_SLOW = frozenset({"aiohttp", "asyncio", "multiprocessing", "socket", "sqlite3", "subprocess"})
# What reaches beside these clock, chance, files or people.
OUTSIDE = _SLOW | {
    *(
        "aiohttp_sse",
        "click",
        "concurrent",
        "fcntl",
        "getpass",
        "http",
        "importlib",
        "keyring",
        "logging",
        "os",
    ),
    *("pathlib", "platform", "pwd", "random", "redis", "resource", "rich", "secrets", "select", "shutil"),
    *("signal", "ssl", "structlog", "sys", "syslog", "tempfile", "termios", "threading", "time", "tty"),
    *("python_socks", "uuid", "uvloop"),
}
_HARMLESS = frozenset({"http.HTTPStatus", "http.HTTPMethod"})
# Oracles and long runs have streams of their own.
_APART = frozenset({"simulations", "faults", "sandbox", "deploy"})


def module_of(file: Path, root: Path = ROOT, package: str = "sealgate.") -> str:
    """Return the dotted name of a module's file."""
    return (package + ".".join(file.relative_to(root).with_suffix("").parts)).removesuffix(".__init__")


@cache
def imports(source: str, *, for_types: bool = True) -> Sequence[str]:
    """Return each name that a source imports, wherever the statement stands, as `module.name`."""
    found: list[str] = []
    for node in _statements(ast.parse(source), for_types=for_types):
        if isinstance(node, ast.Import | ast.ImportFrom):
            assert not getattr(node, "level", 0), "relative imports hide the direction"
            prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            found += (f"{prefix}{alias.name}" for alias in node.names)
    return found


def _statements(within: ast.AST, *, for_types: bool) -> Iterator[ast.AST]:
    """Yield each statement, also what is nested; on request without what is for types alone."""
    is_for_types = isinstance(within, ast.If) and ast.unparse(within.test) == "TYPE_CHECKING"
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        if part == "body" and is_for_types and not for_types:
            continue
        for statement in getattr(within, part, ()):
            yield statement
            yield from _statements(statement, for_types=for_types)


def shell_modules(modules: Mapping[str, str], outside: Container[str] = OUTSIDE) -> set[str]:
    """Return the shell modules among these sources by name."""
    imported = {name: imports(source, for_types=False) for name, source in modules.items()}
    shell = {name for name, names in imported.items() if any(_reaches(one, outside) for one in names)}
    while True:
        more = {name for name, names in imported.items() if any(_is_in(one, shell) for one in names)} - shell
        if not more:
            return shell
        shell |= more


def _reaches(name: str, outside: Container[str]) -> bool:
    return name.partition(".")[0] in outside and name not in _HARMLESS


def _is_in(name: str, modules: Container[str]) -> bool:
    return name in modules or name.rpartition(".")[0] in modules


@cache
def sources() -> dict[str, str]:
    """Return the sources of the program by module; the sandbox stands apart."""
    files = (file for file in sorted(ROOT.rglob("*.py")) if ROOT / "sandbox" not in file.parents)
    return {module_of(file): file.read_text("utf-8") for file in files}


@cache
def pure_modules() -> frozenset[str]:
    """Return the pure modules of the program."""
    return frozenset(sources().keys() - shell_modules(sources()))


def pure_tests() -> list[Path]:
    """Return the files of tests that need no sockets, tasks or programs, themselves or through the rig."""
    files = {module_of(file, TESTS, ""): file for file in sorted(TESTS.rglob("*.py"))}
    texts = {name: file.read_text("utf-8") for name, file in files.items()}
    slow = shell_modules(sources() | texts, _SLOW)
    return [
        file
        for name, file in files.items()
        if file.name.startswith("test_") and name not in slow and not _APART & set(file.parts)
    ]


def main(arguments: list[str]) -> None:
    """Print what was asked for."""
    if arguments == ["--modules"]:
        files = (name.replace(".", "/") for name in sorted(pure_modules()))
        sys.stdout.write(
            ",".join(pattern for file in files for pattern in (f"*/{file}.py", f"*/{file}/__init__.py"))
        )
    else:
        sys.stdout.writelines(f"{file.relative_to(TESTS.parent)}\n" for file in pure_tests())


if __name__ == "__main__":
    main(sys.argv[1:])
