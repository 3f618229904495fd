"""What documents have of venues and `--help`; `PYTHONPATH=tests python -m venues.pages` writes it."""

import re
import textwrap
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from cli.command_pages import MANUAL, commands_block, manual
from sealgate.errors import REASONS
from sealgate.venues.replies import Means, Verdict
from sealgate.venues.routes import METHODS, Auth, Permission, Route, RouteRow, RouteTable
from sealgate.venues.venue import Venue
from venues import exchange_pages
from venues.client_record import ccxt_block, libraries_block
from venues.exchange_tables import names_block, pools_block, signatures_block, streams_block, venues_block
from venues.page_rows import DEFAULT, PAGES, code, parent_of, table_row
from venues.through import FILES, venue_of

ROOT = Path(__file__).parents[2]

_ONE_OF = "Log and page list what the reply can mean. `sealgate check` excludes what it can."
_KINDS_HEAD = """\
| kind | means | look at | what to do |
|---|---|---|---|
"""
_REASONS_HEAD = """\
| reason | status | look at | title | what to do |
|---|---|---|---|---|
"""


def own_routes(venue: Venue) -> list[RouteRow]:
    """Return the routes that are not those of the file that a file is like."""
    parent = parent_of(venue)
    return [row for row in venue.routes if parent is None or row not in parent.routes]


def exchanges_block() -> str:
    """Return the exchanges by the name that a user types, as a paragraph."""
    names = sorted(venue.name for venue in map(venue_of, FILES) if venue.name != DEFAULT)
    text = ", ".join(f"`{name}`" for name in names)
    return "\n".join(textwrap.wrap(f"{text}.", 120, break_on_hyphens=False)) + "\n"


def kinds_block() -> str:
    """Return the kinds of error that several venues share, or that come without a venue's rule."""
    found: dict[str, list[list[Verdict]]] = {}
    for venue in map(venue_of, FILES):
        parent = parent_of(venue)
        if venue.name != DEFAULT and (parent is None or parent.replies.rules != venue.replies.rules):
            for kind, row in venue.replies.errors().items():
                stated = [rule.verdict for rule in venue.replies.rules if rule.verdict.kind == kind]
                found.setdefault(kind, []).append(stated or [row.verdict])
    return _KINDS_HEAD + "".join(_kind_row(kind, by_venue) for kind, by_venue in sorted(found.items()))


def _kind_row(kind: str, by_venue: list[list[Verdict]]) -> str:
    """Return the row of a kind; a verdict that means one thing alone explains it, if there is one."""
    verdicts = [verdict for of_one in by_venue for verdict in of_one]
    verdict = min(verdicts, key=lambda one: len(one.others))
    if not verdict.others:
        each = dict.fromkeys(one.advice for one in verdicts)
        advice = " Or: ".join(each) if len(by_venue) == 1 else verdict.advice
        return table_row(_anchored(kind), _meaning(verdict), verdict.whose.value, advice)
    every = dict.fromkeys(means for one in verdicts for means in (one.means, *one.others))
    meanings = " or ".join(f"[{means}](#{means})" for means in every)
    return table_row(_anchored(kind), meanings, verdict.whose.value, _ONE_OF)


def is_stated(venue: Venue, kind: str) -> bool:
    """Ask whether a rule of the venue's file has this kind."""
    return any(rule.verdict.kind == kind for rule in venue.replies.rules)


def _named(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "all"


def errors_block() -> str:
    """Return the kinds that only the default venue's file knows, by what they mean."""
    [service] = [venue_of(file) for file in FILES if file.stem == DEFAULT]
    shared = kinds_block()
    by_meaning: dict[str, list[str]] = {}
    for kind, row in service.replies.errors().items():
        if is_stated(service, kind) and f'id="{kind}"' not in shared:
            by_meaning.setdefault(_meaning(row.verdict), []).append(_anchored(kind))
    return "".join(f"- {meaning}: {', '.join(kinds)}\n" for meaning, kinds in by_meaning.items())


def reasons_block() -> str:
    """Return the reasons why the gateway itself answers."""
    return _REASONS_HEAD + "".join(
        table_row(f"`{slug}`", str(row.status), row.fault.value, row.title, row.advice)
        for slug, row in sorted(REASONS.items(), key=lambda item: (item[1].status, item[0]))
    )


def _anchored(kind: str) -> str:
    # A meaning has an anchor of the same name already.
    return f"`{kind}`" if kind in list(Means) else f'`{kind}` <a id="{kind}"></a>'


def _meaning(verdict: Verdict) -> str:
    return f"[{verdict.means}](#{verdict.means})"


_BY_WHAT: dict[str, Callable[[str, Route], bool]] = {
    "needs `keys`": lambda _, route: route.needs is Permission.KEYS,
    "needs no more than `trade`": lambda method, route: (
        method not in ("GET", "HEAD")
        and (route.needs, route.auth) == (Permission.TRADE, Auth.SIGNED)
        and not route.is_cancel
        and route.order is None
    ),
    "needs `trade`, though a GET": lambda method, route: (
        method == "GET" and route.needs is Permission.TRADE and not route.is_cancel
    ),
    "needs `read`, though no GET": lambda method, route: (
        method not in ("GET", "HEAD") and route.needs is Permission.READ and route.auth is Auth.SIGNED
    ),
    "counts as cancel": lambda _, route: route.is_cancel,
}


def permissions_block() -> str:
    """Return the private calls of each venue for which the method alone does not say what they need."""
    return "\n".join(filter(None, (_permissions_of(venue) for venue in map(venue_of, FILES))))


def bodies_block() -> str:
    """Return the calls whose body says what they need."""
    return "| venue | call | needs `trade` if |\n|---|---|---|\n" + "".join(
        table_row(
            f"`{venue.name}`",
            f"`{row.method} {row.template}`",
            " or ".join(map(_fields, row.trade_if.only)),
        )
        for venue in map(venue_of, FILES)
        for row in own_routes(venue)
        if row.trade_if is not None
    )


def _fields(alternative: Mapping[tuple[str, ...], "re.Pattern[str]"]) -> str:
    return ", ".join(
        f"`{'/'.join(path)}` is `{pattern.pattern}`" if pattern.pattern else f"no `{'/'.join(path)}`"
        for path, pattern in alternative.items()
    )


def _permissions_of(venue: Venue) -> str:
    table = RouteTable(venue.routes)
    trees = RouteTable(row for row in venue.routes if row.template.endswith("**"))
    rows = [row for row in own_routes(venue) if _is_tree(row) or _says_more(row, table, trees)]
    parts = []
    for title, is_so in _BY_WHAT.items():
        by_method: dict[str, list[str]] = {}
        for row in rows:
            methods = METHODS if row.method == "*" else (row.method,)
            if all(is_so(method, table.find(method, row.template)) for method in methods):
                by_method.setdefault(row.method, []).append(f"{venue.prefix}{row.template}")
        if by_method:
            parts.append(f"- **{title}**: {_calls(by_method)}\n")
    alike = [one.name for one in map(venue_of, FILES) if one.like == venue.name]
    also = f"The same holds at {_named(alike)}.\n\n" if alike else ""
    also += f"Besides what [{venue.like}](#{venue.like}) has:\n\n" if venue.like else ""
    return f"### {venue.name}\n\n{also}{''.join(parts)}" if parts else ""


def _is_tree(row: RouteRow) -> bool:
    """Ask whether a row is about a whole tree, and not there for a pool alone."""
    return row.template.endswith("**") and (row.needs, row.lane, row.auth) != (None, None, Auth.SIGNED)


def _says_more(row: RouteRow, table: RouteTable, trees: RouteTable) -> bool:
    """Ask whether a call needs `keys`, or something else than its method, its words and its tree say."""
    method = "PUT" if row.method == "*" else row.method
    path = re.sub(r"\{\w*\}", "x1", row.template)
    found, without = table.find(method, path), trees.find(method, path)
    needs_keys = found.needs is Permission.KEYS
    return needs_keys or (found.needs, found.is_cancel) != (without.needs, without.is_cancel)


def _calls(by_method: dict[str, list[str]]) -> str:
    return "; ".join(
        f"{'any method of' if method == '*' else method} {code(sorted(set(paths)))}"
        for method, paths in sorted(by_method.items(), reverse=True)
    )


BLOCKS: dict[tuple[str, str], Callable[[], str]] = {
    ("docs/exchanges/README.md", "venues"): venues_block,
    ("docs/exchanges/README.md", "names"): names_block,
    ("docs/exchanges/reference.md", "pools"): pools_block,
    ("docs/exchanges/reference.md", "streams"): streams_block,
    ("docs/exchanges/reference.md", "signatures"): signatures_block,
    ("docs/permissions.md", "bodies"): bodies_block,
    ("docs/permissions.md", "permissions"): permissions_block,
    ("docs/errors.md", "kinds"): kinds_block,
    ("docs/errors.md", "errors"): errors_block,
    ("docs/replies.md", "reasons"): reasons_block,
    ("docs/commands.md", "commands"): commands_block,
    ("docs/client-errors.md", "libraries"): libraries_block,
    ("docs/client-errors.md", "ccxt"): ccxt_block,
    ("README.md", "exchanges"): exchanges_block,
    ("docs/exchanges/README.md", "pages"): exchange_pages.pages_block,
    ("docs/test-networks.md", "networks"): exchange_pages.networks_block,
    **{
        (f"docs/exchanges/{page}.md", name): partial(block, page)
        for page in PAGES
        for name, block in exchange_pages.BLOCKS.items()
    },
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
    MANUAL.write_text(manual(), "utf-8")
