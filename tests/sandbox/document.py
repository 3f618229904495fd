"""The table of options in docs/internals/sandbox-assumptions.md, made from the settings.

`PYTHONPATH=tests python -m sandbox.document` writes it into the document.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

from sealgate.sandbox.settings import Option, SandboxSettings

DOCUMENT = Path(__file__).parents[2] / "docs" / "internals" / "sandbox-assumptions.md"
START, END = "<!-- options -->\n", "<!-- end of options -->\n"


@dataclass(frozen=True)
class Row:
    name: str
    about: Option
    choices: tuple[object, ...]
    default: object

    def line(self) -> str:
        flag = self.name.replace("_", "-")
        allowed = f" ({', '.join(f'`{choice}`' for choice in self.choices)})" if self.choices else ""
        return f"| `--{flag}` | {self._default()} | {self.about.gap} | {self.about.help}{allowed} |"

    def _default(self) -> str:
        shown = {True: "on", False: "off", "": "none", (): "none"}
        known = isinstance(self.default, bool | str | tuple)
        return shown.get(self.default, f"`{self.default}`") if known else f"`{self.default}`"


def options() -> list[Row]:
    hints = get_type_hints(SandboxSettings, include_extras=True)
    rows = []
    for setting in fields(SandboxSettings):
        kind, about = get_args(hints[setting.name])
        choices = get_args(kind) if get_origin(kind) is Literal else ()
        rows.append(Row(setting.name, about, choices, setting.default))
    return rows


def document(text: str) -> str:
    """Put the table between its marks."""
    head, _, rest = text.partition(START)
    _, _, tail = rest.partition(END)
    lines = ["| Option | Default | Gap of the specification | What it does |", "|---|---|---|---|"]
    table = "\n".join([*lines, *(row.line() for row in options())])
    return f"{head}{START}{table}\n{END}{tail}"


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
