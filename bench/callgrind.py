"""A file of valgrind's callgrind, read: the instructions of each function, with the chain of its callers."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_NAMES = ("fn=", "ob=", "cfn=", "cob=", "cfi=", "cfl=", "fl=", "fi=", "fe=", "jcnd=", "jump=")

# A function and its callers, nearest first, and the file of the function's code.
Place = tuple[Sequence[str], str]


def costs(file: Path) -> Mapping[Place, int]:
    """Return what each place cost by itself, without what it called."""
    found: Counter[Place] = Counter()
    for part in sorted(file.parent.glob(f"{file.name}*")):
        _add(part.open(encoding="latin-1"), found)
    return found


def _add(lines: Iterator[str], found: Counter[Place]) -> None:
    functions: dict[str, str] = {}
    objects: dict[str, str] = {}
    function = library = ""
    for line in lines:
        if line.startswith(("fn=", "cfn=")):
            name = _named(line, functions)
            function = name if line[0] == "f" else function
        elif line.startswith(("ob=", "cob=")):
            name = _named(line, objects)
            library = name if line[0] == "o" else library
        elif line.startswith("calls="):
            next(lines)  # what the call cost altogether
        elif line[0] in "+-*0123456789" and not line.startswith(_NAMES):
            found[tuple(function.split("'")), library] += int(line.split()[-1])


def _named(line: str, known: dict[str, str]) -> str:
    """Return the name of a line: it is written out where its number comes first."""
    number, _, name = line.rstrip("\n").partition("=")[2].partition(" ")
    return known.setdefault(number, name) if number.startswith("(") else number
