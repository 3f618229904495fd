"""The code knows the grammar of venues' files and no exchange: what their files say stands nowhere else."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import sealgate
from sealgate.config.venues import DEFAULT_VENUE, built_in_venue, venue_names
from sealgate.venues.venue import Venue

ROOT = Path(sealgate.__file__).parent
# The sandbox is the exchange of spec.md itself, and the demo's bots are its clients.
APART = ("sandbox/", "cli/sandbox.py", "demo/")
SOURCES = [file for file in sorted(ROOT.rglob("*.py")) if not str(file.relative_to(ROOT)).startswith(APART)]
# A header that no other exchange has by chance: in two words or more, and none that HTTP itself knows.
_OWN = re.compile(r"(?!api-|request-|proxy-)[a-z]+(-[a-z]+)+[*-]*")
_LONG = 15  # letters of a message that no two exchanges have by chance


def facts(venue: Venue) -> Iterator[str]:
    """Yield what only the file of this venue may say."""
    if venue.name != DEFAULT_VENUE:
        yield venue.name if len(venue.name) > len("bitso") else f"={venue.name}"
    yield from (name.strip("*") for name in venue.own_headers if _OWN.fullmatch(name))
    yield from filter(None, (urlsplit(venue.base_url).netloc, venue.prefix))
    paths = (venue.clock_path, venue.signed_read, venue.key_list)
    yield from (path for path in paths if path.count("/") > 1)
    for rule in venue.replies.rules:
        texts = {*rule.exact, *rule.begins, *rule.contains}
        yield from (text for text in texts if len(text) >= _LONG and " " in text)


FACTS = {fact.lower() for name in venue_names() for fact in facts(built_in_venue(name))}


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each constant that is no docstring."""
    tree = ast.parse(source)
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            if isinstance(node.value, bytes):
                yield node.lineno, node.value.decode("latin-1")
            elif isinstance(node.value, str):
                yield node.lineno, node.value


def told(source: str) -> list[str]:
    """Return what a source says of an exchange, as "line: text"."""
    return [
        f"{line}: {text}"
        for line, text in texts(source)
        if any(fact in text.lower() or fact == f"={text}" for fact in FACTS)
    ]


def test_no_exchange_is_named() -> None:
    found = {str(file.relative_to(ROOT)): told(file.read_text("utf-8")) for file in SOURCES}
    assert {name: texts for name, texts in found.items() if texts} == {}
