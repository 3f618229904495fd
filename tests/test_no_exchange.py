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
_COMMON = re.compile(r"/api(/v\d)?$")  # a prefix that any exchange may have
_LONG = 15  # letters of a message that no two exchanges have by chance


def facts(venue: Venue) -> Iterator[str]:
    """Yield what only the file of this venue may say."""
    if venue.name != DEFAULT_VENUE:
        yield venue.name if len(venue.name) > len("bitso") else f"={venue.name}"
    yield from (name.strip("*") for name in venue.own_headers if _OWN.fullmatch(name))
    yield from filter(None, (urlsplit(venue.base_url).netloc, _COMMON.sub("", venue.prefix)))
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


def test_no_exchange_is_named() -> None:
    said = [
        (f"{file.relative_to(ROOT)}:{line}", text)
        for file in SOURCES
        for line, text in texts(file.read_text("utf-8"))
    ]
    everything = "\n".join(text for _, text in said).lower()
    found = {fact for fact in FACTS if fact in everything}  # each is looked for once, in all texts
    assert [
        (where, text)
        for where, text in said
        if f"={text}" in FACTS or any(fact in text.lower() for fact in found)
    ] == []
