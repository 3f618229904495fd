"""All statements in the order of spec.md, and docs/conformance.md made from them.

`PYTHONPATH=tests python -m sandbox.conformance` writes the document.
"""

from itertools import groupby
from pathlib import Path

from sandbox.statements.endpoints import endpoints
from sandbox.statements.executions import executions
from sandbox.statements.limits import limits, versioning
from sandbox.statements.refusals import refusals
from sandbox.statements.resources import resources, states
from sandbox.statements.service import service
from sandbox.statements.sessions import passkey, session
from sandbox.statements.signing import signing
from sandbox.statements.table import Statement

PARTS = (
    service,
    resources,
    states,
    endpoints,
    session,
    passkey,
    signing,
    refusals,
    executions,
    limits,
    versioning,
)
STATEMENTS = tuple(statement for part in PARTS for statement in part.statements)
DOCUMENT = Path(__file__).parents[2] / "docs" / "conformance.md"

HEAD = f"""\
# Conformance of the sandbox

The {len(STATEMENTS)} testable statements of the specification, in its order. Each has one case in
`tests/sandbox/statements/`, run by `tests/sandbox/test_conformance.py` against a running sandbox.
"Assumed" marks what the specification does not show; see [the sandbox's assumptions](sandbox.md).
Where the code cites `spec.md` and a heading, it means that specification; the headings below are its own.

This file is written by `PYTHONPATH=tests python -m sandbox.conformance`.
"""


def document() -> str:
    lines = [HEAD]
    numbered = enumerate(STATEMENTS, start=1)
    for part, rows in groupby(numbered, key=lambda row: row[1].part):
        lines += [f"## {part}\n", "| No | Statement | Case |", "|---|---|---|"]
        lines += [_row(number, statement) for number, statement in rows]
        lines.append("")
    return "\n".join(lines)


def _row(number: int, statement: Statement) -> str:
    return f"| {number} | {statement.text.replace('|', '/')} | `{statement.name}` |"


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
