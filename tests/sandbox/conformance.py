"""docs/internals/conformance.md: what service.toml says, and the statements that hold the sandbox to it.

`PYTHONPATH=tests python -m sandbox.conformance` writes the document.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from sandbox.statements.endpoints import endpoints
from sandbox.statements.executions import executions
from sandbox.statements.limits import limits, versioning
from sandbox.statements.refusals import refusals
from sandbox.statements.resources import resources, states
from sandbox.statements.service import service
from sandbox.statements.sessions import passkey, session
from sandbox.statements.signing import signing
from sandbox.statements.table import Statement
from sealgate.config.venues import default_venue
from sealgate.venues.replies import Rule
from sealgate.venues.routes import Auth, RouteRow
from sealgate.venues.templates import Ref, Template
from sealgate.venues.venue import Venue

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
DOCUMENT = Path(__file__).parents[2] / "docs" / "internals" / "conformance.md"

HEAD = f"""\
# Conformance of the sandbox

The {len(STATEMENTS)} testable statements of the specification, in its order. Each has a case in
`tests/sandbox/statements/`, run by `tests/sandbox/test_conformance.py` against a running sandbox.
"Assumed" marks what the specification does not show; see [the sandbox's assumptions](sandbox-assumptions.md).
Where the code cites `spec.md` and a heading, it means that specification; the headings below are its own.

`PYTHONPATH=tests python -m sandbox.conformance` writes this page, from the venue's file `service.toml` and
the cases.
"""


_PLACEHOLDER = re.compile(r"\{\w+\}")

FACTS_HEAD = """\
Each line is read from `service.toml`, with the numbers of the statements below that hold the sandbox to
it. A line without a statement fails the tests, and so does a page that is out of date.
"""


class Fact(NamedTuple):
    """One thing that the venue's file says, and what a statement about it has in its text."""

    says: str
    words: tuple[str, ...] = ()
    statuses: tuple[int, ...] = ()

    def held_by(self) -> list[int]:
        """Return the numbers of the statements about it."""
        return [number for number, one in enumerate(STATEMENTS, start=1) if self._is_in(one.text)]

    def _is_in(self, text: str) -> bool:
        """Ask whether a statement speaks of this; one that names a status must name the same."""
        named = set(map(int, re.findall(r"\b[45]\d\d\b", text)))
        if self.statuses and not named & set(self.statuses) and (named or not self.words):
            return False
        plain = _PLACEHOLDER.sub("{}", text).casefold()
        whole = (rf"(?<![\w/]){re.escape(word)}(?![\w/{{])" for word in self.words)
        return not self.words or any(re.search(word, plain) for word in whole)


def facts(venue: Venue) -> Iterator[Fact]:
    """Yield what a venue's file says of addresses, signing, routes and errors."""
    yield Fact(f"prefix `{venue.prefix}`, not signed", (venue.prefix,))
    for name, text in venue.signing.headers:
        yield Fact(f"header `{name}`: `{_source(text)}`", (name.casefold(),))
    for text in venue.signing.message.values():
        yield Fact(f"message `{_source(text)}`", ("rule 1", "rule 2", "rule 3"))
    yield Fact(f"recv_window {venue.recv_window_ms} ms", (f"{venue.recv_window_ms} ms",))
    for row in venue.routes:
        yield _route_fact(row, venue.routes)
    yield from map(_reply_fact, venue.replies.rules)


def _source(text: Template) -> str:
    return "".join(f"{{{piece.name}}}" if isinstance(piece, Ref) else piece.decode("ascii") for piece in text)


def _route_fact(row: RouteRow, rows: Sequence[RouteRow]) -> Fact:
    before, is_inner, after = row.template.partition("/**/")
    if is_inner:  # held by the statements about the paths that it stands for
        names = (one.template for one in rows if one is not row)
        covered = (name for name in names if name.startswith(before) and name.endswith(f"/{after}"))
        return Fact(f"`{row.method} {row.template}`: {row.auth}", tuple(covered))
    path = _PLACEHOLDER.sub("{}", row.template.removesuffix("/**")).casefold()
    is_apps = row.auth is Auth.APP_ONLY and path == "/api-keys"
    return Fact(f"`{row.method} {row.template}`: {row.auth}", ("app-only" if is_apps else path,))


def _reply_fact(rule: Rule) -> Fact:
    words = " or ".join(f"*{word}*" for word in rule.contains)
    said = ", ".join(filter(None, ("/".join(map(str, rule.statuses)), words)))
    return Fact(f"{said}: `{rule.verdict.kind}`", rule.contains, rule.statuses)


def _fact_row(fact: Fact) -> str:
    return f"| {fact.says} | {', '.join(map(str, fact.held_by()))} |"


def document() -> str:
    lines = [
        HEAD,
        "## What the venue's file says\n",
        FACTS_HEAD,
        "| `service.toml` | Statements |",
        "|---|---|",
    ]
    lines += [*map(_fact_row, facts(default_venue())), ""]
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
