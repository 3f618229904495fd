"""The lines of a check: for people in a terminal, for people in a file, and as JSON."""

import json
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import click

from sealgate.config.effective import Effective
from sealgate.config.listing import toml_text
from sealgate.machine.findings import Cause, Finding, Level, Weight, worst
from sealgate.machine.terminal import coloured, faint

_LEVEL, _AREA = 4, 17
_INDENT = " " * (_LEVEL + 2)
_WIDEST = 120
_SURE = {
    Weight.PROVEN: "certain",
    Weight.LIKELY: "likely",
    Weight.POSSIBLE: "possible",
    Weight.UNLIKELY: "unlikely",
}


class Report:
    """Takes findings as they come, and prints each at once unless it is to be JSON."""

    def __init__(self, *, as_json: bool, explains: bool) -> None:
        self._as_json = as_json
        self._explains = explains
        self._settings: Sequence[Effective] = ()
        self.findings: list[Finding] = []

    @property
    def has_failed(self) -> bool:
        """Whether anything so far keeps the gateway from working."""
        return worst(self.findings) is Level.FAIL

    def add(self, finding: Finding) -> None:
        """Take a line."""
        self.findings.append(finding)
        if not self._as_json:
            for line in finding_lines(finding, line_width(), explains=self._explains):
                click.echo(line)

    def explain(self, settings: Sequence[Effective]) -> None:
        """Take the settings with their sources, shown behind the lines where they were asked for."""
        if self._explains:
            self._settings = settings

    def end(self) -> None:
        """Print the settings, and the sum of it."""
        if self._as_json:
            click.echo(json.dumps(self._document()))
            return
        if self._settings:
            click.echo()
            click.echo("\n".join(setting_lines(self._settings)))
            click.echo()
        counts = Counter(finding.level for finding in self.findings)
        parts = [f"{counts[level]} {level}" for level in Level if counts[level]]
        hides = any(one.causes and not one.lists_causes for one in self.findings)
        more = "" if self._explains or not hides else "; more: --explain"
        click.echo(coloured(", ".join(parts), worst(self.findings).value) + more)

    def _document(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "result": worst(self.findings).value,
            "findings": [_plain(finding) for finding in self.findings],
        }
        return document | ({"settings": [asdict(one) for one in self._settings]} if self._explains else {})


def _plain(finding: Finding) -> dict[str, Any]:
    causes = [asdict(cause) | {"weight": _SURE[cause.weight]} for cause in finding.causes]
    return {**asdict(finding), "causes": causes}


def line_width() -> int | None:
    """Return how wide lines may be, None where nobody would see them break: each is one line then."""
    return min(shutil.get_terminal_size().columns, _WIDEST) if sys.stdout.isatty() else None


def finding_lines(finding: Finding, width: int | None, *, explains: bool = False) -> Iterator[str]:
    """Yield the lines of a finding: level, area, text; then what to do about it, and the causes."""
    indent = _INDENT + " " * (_AREA + 2)
    level = coloured(finding.level.value.ljust(_LEVEL), finding.level.value)
    head = f"{finding.area.ljust(_AREA)}  {finding.text}"
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
            yield from _wrapped(_cause(number, cause), f"{_INDENT}  ", width or sys.maxsize, "   ")


def _wrapped(text: str, indent: str, width: int, hanging: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _cause(number: int, cause: Cause) -> str:
    evidence = f" ({cause.evidence})" if cause.evidence else ""
    fix = f"; {cause.fix}" if cause.weight is not Weight.UNLIKELY else ""
    return f"{number}. {_SURE[cause.weight]}: {cause.text}{evidence}{fix}"


def setting_lines(settings: Sequence[Effective]) -> Iterator[str]:
    """Yield aligned columns: name, value, source."""
    rows = [(one.name, toml_text(one.value), one.source) for one in settings]
    name, value = (max(len(row[column]) for row in rows) for column in (0, 1))
    for row in rows:
        yield f"{row[0].ljust(name)}  {row[1].ljust(value)}  {faint(row[2])}".rstrip()
