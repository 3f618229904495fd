"""What the documents have of the venues' files. `PYTHONPATH=tests python -m venues.pages` writes it."""

import re
import textwrap
from pathlib import Path

from sealgate.core.venues.replies import ErrorRow
from sealgate.core.venues.venue import Venue
from venues.through import FILES, venue_of

ROOT = Path(__file__).parents[2]

_ERRORS_HEAD = """\
| kind | status | its words | look at | what to do |
|---|---|---|---|---|
"""
_LIST_HEAD = """\
| venue | tier | verified with | signature | key | time | replies | counts by | note |
|---|---|---|---|---|---|---|---|---|
"""


def venues_block() -> str:
    """Return the table of venues, the default first."""
    venues = sorted(map(venue_of, FILES), key=lambda venue: (venue.tier != "built-in", venue.name))
    return _LIST_HEAD + "".join(map(_venue_row, venues))


def _venue_row(venue: Venue) -> str:
    signing = venue.signing
    title = f"[{venue.title}]({venue.docs})" if venue.docs else venue.title
    wants = [f"`{name}`" for name in ("passphrase", "uid") if signing.needs(name)]
    cells = (
        f"`{venue.name}`<br>{title}",
        venue.tier,
        venue.checked,
        f"{signing.digest} {signing.encoding}",
        ", ".join(wants) or "-",
        "yes" if venue.clock_path else "-",
        str(len(venue.replies.rules) or "-"),
        venue.limits.scope.value,
        venue.note or "-",
    )
    return f"| {' | '.join(cells)} |\n"


def exchanges_block() -> str:
    """Return the exchanges by name, as a paragraph."""
    titles = sorted(
        (venue.title.partition(",")[0] for venue in map(venue_of, FILES) if venue.name != "service"),
        key=str.lower,
    )
    return "\n".join(textwrap.wrap(f"{', '.join(titles)}.", 120, break_on_hyphens=False)) + "\n"


def errors_block() -> str:
    """Return the errors that the default venue's file knows, and those of the way to an exchange."""
    [service] = [venue_of(file) for file in FILES if file.stem == "service"]
    return _ERRORS_HEAD + "".join(_error_row(kind, row) for kind, row in service.replies.errors().items())


def _error_row(kind: str, row: ErrorRow) -> str:
    cells = (
        f'`{kind}` <a id="{kind}"></a>',
        ", ".join(map(str, row.statuses)) or "-",
        " / ".join(row.words) or "-",
        row.verdict.whose.value,
        row.verdict.advice,
    )
    return f"| {' | '.join(cells)} |\n"


BLOCKS = {
    ("docs/venues.md", "venues"): venues_block,
    ("docs/errors.md", "errors"): errors_block,
    ("README.md", "exchanges"): exchanges_block,
}


def block(page: str, name: str) -> str:
    """Return what stands between the marks of a block."""
    found = re.search(rf"<!-- begin {name}\b.*-->\n(.*?)<!-- end {name} -->", page, re.DOTALL)
    assert found, f"there is no block {name}"
    return found[1].strip("\n") + "\n"


def with_block(page: str, name: str, text: str) -> str:
    """Return a page with a block replaced."""
    pattern = rf"(<!-- begin {name}\b.*-->\n).*?(<!-- end {name} -->)"
    return re.sub(pattern, lambda found: f"{found[1]}\n{text}\n{found[2]}", page, flags=re.DOTALL)


if __name__ == "__main__":
    for (file, name), text in BLOCKS.items():
        path = ROOT / file
        path.write_text(with_block(path.read_text("utf-8"), name, text()), "utf-8")
