"""The parts of the docs that benchmarks write, and the machine they ran on."""

import os
import platform
import re
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median

from bench.rivals import versions

DOCS = Path(__file__).parents[1] / "docs"
INTERNALS = DOCS / "internals"
PAGE = INTERNALS / "performance.md"
SCALING = INTERNALS / "scaling.md"


def write_part(name: str, text: str, file: Path = PAGE) -> None:
    """Replace what stands between the markers of a part. Raises ValueError where there are none."""
    page = file.read_text()
    part = re.compile(rf"(?<=<!-- begin {name} -->\n).*?(?=<!-- end {name} -->\n)", re.DOTALL)
    if not part.search(page):
        raise ValueError(f"{file.name} has no markers for {name}")
    file.write_text(part.sub(lambda _: f"\n{text.strip()}\n\n", page))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Write a Markdown table that also reads well as it stands; after the first `words` columns, numbers."""
    lines = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = [_line(line, widths, words) for line in lines]
    rules = ("-" * width if at < words else f"{'-' * (width - 1)}:" for at, width in enumerate(widths))
    return "\n".join((texts[0], f"| {' | '.join(rules)} |", *texts[1:]))


def _line(cells: Sequence[str], widths: Sequence[int], words: int) -> str:
    padded = (
        cell.ljust(width) if at < words else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return f"| {' | '.join(padded)} |"


def spread(values: Sequence[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def machine() -> str:
    """Name the machine and the versions, which the figures depend on; no host and no path."""
    python = f"Python {platform.python_version()}"
    libraries = (f"{name} {version(name)}" for name in ("aiohttp", "uvloop", "sealgate"))
    software = ", ".join((python, *libraries, *versions()))
    return f"Measured on {_processor()}, {os.cpu_count()} cores, {platform.system()}, with {software}."


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
