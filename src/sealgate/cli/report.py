"""The report of a check: lines for a terminal, lines for a file, and JSON."""

import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sealgate.config.effective import Effective
from sealgate.config.listing import toml_text
from sealgate.machine.findings import Finding, Level, Weight, worst
from sealgate.machine.terminal import coloured, faint

if TYPE_CHECKING:
    from sealgate.diagnose.check import Checked

_LEVEL, _AREA = 4, 17
_INDENT = " " * (_LEVEL + 2)
_WIDEST = 120
_SURE = {
    Weight.PROVEN: "certain",
    Weight.LIKELY: "likely",
    Weight.POSSIBLE: "possible",
    Weight.UNLIKELY: "unlikely",
}


def as_document(checked: "Checked", *, explains: bool) -> dict[str, Any]:
    """Return the whole report for programs."""
    findings = [asdict(finding) for finding in checked.findings]
    for cause in (cause for finding in findings for cause in finding["causes"]):
        cause["weight"] = _SURE[cause["weight"]]
    settings = {"settings": [asdict(one) for one in checked.settings]} if explains else {}
    return {"result": worst(checked.findings).value, "findings": findings, **settings}


def closing_lines(checked: "Checked", *, explains: bool) -> Iterator[str]:
    """Yield the lines below the findings: the settings, if requested, and the totals."""
    if explains and checked.settings:
        yield from ("", *setting_lines(checked.settings), "")
    counts = Counter(finding.level for finding in checked.findings)
    parts = [f"{counts[level]} {level}" for level in Level if counts[level]]
    hides = any(one.causes and not one.lists_causes for one in checked.findings)
    more = "" if explains or not hides else "; more: --explain"
    more += f"; next: {checked.next_step}" if checked.next_step else ""
    yield coloured(", ".join(parts), worst(checked.findings).value) + more


def line_width() -> int | None:
    """Return the width of the terminal; None if the output is not a terminal, and lines are not wrapped."""
    return min(shutil.get_terminal_size().columns, _WIDEST) if sys.stdout.isatty() else None


def finding_lines(
    finding: Finding, width: int | None, *, explains: bool = False, name_length: int = 0
) -> Iterator[str]:
    """Yield the lines of a finding: level, area and text, then the fix and the causes.

    The name of its exchange precedes the area; `name_length` is the length of the longest such name.
    """
    room = _AREA + (name_length + len(": ") if name_length else 0)
    indent = _INDENT + " " * (room + 2)
    level = coloured(finding.level.value.ljust(_LEVEL), finding.level.value)
    area = f"{finding.exchange}: {finding.area}" if finding.exchange else finding.area
    head = f"{area.ljust(room)}  {finding.text}"
    if width is None:
        yield f"{level}  {head}" + (f"; {finding.fix}" if finding.fix else "")
    else:
        first, *rest = textwrap.wrap(
            head, width - len(_INDENT), break_long_words=False, break_on_hyphens=False
        )
        yield f"{level}  {first}"
        yield from _wrapped(" ".join(rest), indent, width)
        yield from _wrapped(f"-> {finding.fix}" if finding.fix else "", indent, width)
    yield from (f"{_INDENT}{line}" for line in finding.paste)
    if explains or finding.lists_causes:
        for number, cause in enumerate(finding.causes, 1):
            evidence = f" ({cause.evidence})" if cause.evidence else ""
            fix = f"; {cause.fix}" if cause.weight is not Weight.UNLIKELY else ""
            text = f"{number}. {_SURE[cause.weight]}: {cause.text}{evidence}{fix}"
            yield from _wrapped(text, f"{_INDENT}  ", width or sys.maxsize, "   ")


def _wrapped(text: str, indent: str, width: int, hanging: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def setting_lines(settings: Sequence[Effective]) -> Iterator[str]:
    """Yield aligned columns: name, value, source."""
    rows = [(one.name, toml_text(one.value), one.source) for one in settings]
    name, value = (max(len(row[column]) for row in rows) for column in (0, 1))
    for row in rows:
        yield f"{row[0].ljust(name)}  {row[1].ljust(value)}  {faint(row[2])}".rstrip()
