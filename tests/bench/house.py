"""The house in figures: how large functions and files are, and where a rule is set aside.

It reads the sources and runs nothing. A function's lines are those from `def` to its end without its
docstring; functions inside of others count, too. `--beside FOLDER` measures other packages likewise, each a
folder in there, with docs and tests left out: `pip download --no-binary :all: --no-deps NAME` and unpack.
"""

import argparse
import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple, Self

from bench.pages import DOCS, table, write_part

OURS = Path(__file__).parents[2] / "src" / "sealgate"
PAGE = DOCS / "design.md"
RUN = 6  # lines in a row that are the same elsewhere
ROOM = 50  # lines of a function that need no reason
CLOCKS = frozenset({"time", "random", "secrets", "uuid"})
NOWS = frozenset(
    [
        "asyncio.sleep",
        "datetime.now",
        "datetime.utcnow",
        "loop.time",
        "_loop.time",
        "processors.TimeStamper",
    ]
)
_LEFT_OUT = frozenset({"tests", "docs", "examples", "bench", "scripts", "fuzz"})
HOST = "host.py"  # the one door to clock and chance; a part has at most one
_ANOTHER = re.compile(r"(?=# ?(?:noqa|type: ignore|pragma: no))")
_ASIDE = re.compile(r"#\s*(noqa|type: ignore|pragma: no ?cover)(?:: ?([A-Z][A-Z0-9, ]*)|\[([\w, -]+)\])?(.*)")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One file; `name` is its path in its package."""

    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def functions(self) -> list[Function]:
        return [node for node in ast.walk(self.tree) if isinstance(node, Function)]

    @cached_property
    def aside(self) -> list["Aside"]:
        """What is told to linter, types and coverage."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        comments = (token.string for token in tokens if token.type == tokenize.COMMENT)
        parts = (part for one in comments for part in _ANOTHER.split(one))
        return [Aside.of(found) for part in parts if (found := _ASIDE.match(part))]


class Aside(NamedTuple):
    """A rule that is set aside: which kind, what of it, and why ("" where nothing is said)."""

    kind: str
    what: str
    why: str

    @classmethod
    def of(cls, found: re.Match[str]) -> Self:
        kind, code, types, rest = found.groups()
        return cls(kind.replace("nocover", "no cover"), (code or types or "").strip(), rest.strip(" -#"))


def read(folder: Path) -> list[Source]:
    """Read the Python files of a package."""
    files = sorted(folder.rglob("*.py"))
    named = ((file.relative_to(folder), file) for file in files)
    return [Source(str(name), file.read_text()) for name, file in named if not _LEFT_OUT & set(name.parts)]


def size(function: Function) -> int:
    """Return a function's lines without its docstring."""
    first = function.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    is_docstring = is_docstring and isinstance(first.value.value, str)  # type: ignore[attr-defined]
    whole = (function.end_lineno or 0) - function.lineno + 1
    return whole - ((first.end_lineno or 0) - first.lineno + 1 if is_docstring else 0)


def parameters(function: Function) -> int:
    """Return how many values a call may give, `self` and `cls` apart."""
    arguments = function.args
    named = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len([name for name in named if name not in {"self", "cls"}])


def clock_uses(source: Source) -> Iterator[str]:
    """Yield each use of the machine's clock or chance: an import, a sleep, a date of now, the loop's time.

    In the file that is the door to them, none.
    """
    if Path(source.name).name == HOST:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in CLOCKS)
        elif isinstance(node, ast.ImportFrom) and node.module in CLOCKS:
            yield str(node.module)
        elif isinstance(node, ast.Attribute):
            name = f"{_last(node.value)}.{node.attr}"
            if name in NOWS:
                yield name.removeprefix("_")


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def annotated_any(source: Source) -> int:
    """Count where `Any` stands, its import apart."""
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(source.tree))


def repeated(sources: Sequence[Source]) -> int:
    """Count the lines that stand in a run of RUN or more which stands elsewhere, too; imports apart."""
    runs: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for number, source in enumerate(sources):
        lines = _meant(source)
        for at in range(len(lines) - RUN + 1):
            runs.setdefault(tuple(lines[at : at + RUN]), []).append((number, at))
    twice = [places for places in runs.values() if len(places) > 1]
    return len({(number, at + more) for places in twice for number, at in places for more in range(RUN)})


def _meant(source: Source) -> list[str]:
    """Return the lines that are neither empty nor comments nor of an import."""
    imports = {
        number
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for number in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    stripped = [line.strip() for number, line in enumerate(source.lines, 1) if number not in imports]
    return [line for line in stripped if line and not line.startswith("#")]


def figures(sources: Sequence[Source]) -> list[str]:
    """Return one row: files, lines, and what the rules of size are about."""
    functions = [function for source in sources for function in source.functions]
    sizes = sorted(map(size, functions))
    lengths = [len(source.lines) for source in sources]
    asked = sorted(map(parameters, functions))
    return [
        *(f"{number:,}" for number in (len(sources), sum(lengths))),
        f"{median(lengths):.0f} / {max(lengths)}",
        f"{len(functions):,}",
        f"{median(sizes):.0f} / {ninetieth(sizes):.0f} / {sizes[-1]}",
        str(sum(one > ROOM for one in sizes)),
        f"{median(asked):.0f} / {asked[-1]}",
        f"{100 * repeated(sources) / sum(lengths):.1f}",
    ]


def ninetieth(values: Sequence[int]) -> float:
    """Return the 90th percentile."""
    return quantiles(values, n=10)[8] if len(values) > 1 else values[0]


def aside(sources: Sequence[Source]) -> list[str]:
    """Return one row: where a rule is set aside."""
    told = Counter(one.kind for source in sources for one in source.aside)
    uses = Counter(use for source in sources for use in clock_uses(source))
    timers = uses.pop("loop.time", 0)
    kinds = ("noqa", "type: ignore", "pragma: no cover")
    counts = (uses.total(), timers, sum(map(annotated_any, sources)), *(told[kind] for kind in kinds))
    return [str(count) for count in counts]


SIZES = (
    *("", "files", "lines", "a file: median / largest", "functions", "a function: median / 90 % / largest"),
    *(f"over {ROOM}", "parameters: median / most", "% repeated"),
)
ASIDE = ("", "clock and chance", "loop.time()", "`Any`", "`noqa`", "`type: ignore`", "`pragma: no cover`")


def reasons(sources: Sequence[Source]) -> str:
    """Return the table of what is set aside, and why."""
    why: dict[tuple[str, str], list[str]] = {}
    for one in (one for source in sources for one in source.aside):
        why.setdefault((one.kind, one.what), []).append(one.why)
    rows = [
        (f"`{kind}: {what}`" if kind == "noqa" else f"`{kind}[{what}]`", said)
        for (kind, what), said in why.items()
    ]
    rows.sort(key=lambda row: (-len(row[1]), row[0]))
    lines = ((what, "; ".join(sorted(set(said))), str(len(said))) for what, said in rows)
    return table(("set aside", "because", "times"), lines, words=2)


def parts(sources: Sequence[Source]) -> dict[str, list[Source]]:
    """Return the sources of each part of the house, the whole last."""
    names = sorted({source.name.partition("/")[0] for source in sources if "/" in source.name})
    inside = {
        f"{name}/": [source for source in sources if source.name.startswith(f"{name}/")] for name in names
    }
    return {**inside, "all": list(sources)}


def report(packages: Mapping[str, Sequence[Source]]) -> str:
    """Return both tables, a row for each."""
    return "\n\n".join(
        (
            table(SIZES, ((name, *figures(sources)) for name, sources in packages.items())),
            table(ASIDE, ((name, *aside(sources)) for name, sources in packages.items())),
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="put them into docs/design.md")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="measure the packages in there, too")
    options = parser.parse_args()
    ours = read(OURS)
    made = {"house": f"{report(parts(ours))}\n\n{reasons(ours)}"}
    if options.beside is not None:
        others = {path.name: read(path) for path in sorted(options.beside.iterdir()) if path.is_dir()}
        made["beside"] = report({**others, "sealgate": ours})
    for name, text in made.items():
        print(f"{text}\n")
        if options.write:
            write_part(name, text, PAGE)


if __name__ == "__main__":
    main()
