"""The fenced blocks of README and docs."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Fence(NamedTuple):
    """One block: `name` is "README.md:7", with the line that it begins at; `label` follows the language."""

    name: str
    language: str
    label: str
    text: str


def pages() -> list[Path]:
    """Return README and docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def fences(*pages_read: Path) -> Iterator[Fence]:
    """Yield the blocks of some pages, of all if none is named."""
    for page in pages_read or pages():
        whole = page.read_text()
        for found in _FENCE.finditer(whole):
            line = whole.count("\n", 0, found.start()) + 1
            yield Fence(f"{page.name}:{line}", found[1], found[2].strip(), found[3])
