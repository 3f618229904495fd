"""The paths that files name, against those that ccxt has, or documents: of each that has a number in it.

paths.txt has those that ccxt 4.5.90 does not have, and needs.txt, hummingbot.txt and pools.txt neither.
"""

import re
import tomllib
from collections import Counter

import pytest

from venues.pages import own_routes
from venues.test_needs_of_venues import listed_in
from venues.test_pools_of_venues import LINES
from venues.through import FILES, HERE, Call, family, named

_HOLE = re.compile(r"\{\w*\}|(?<=[/_])x\d+(?=[/_-]|$)")  # as files have it, and ccxt's paths in conftest.py


def documented() -> dict[str, set[str]]:
    """Return the paths of the lists here, by venue."""
    found: dict[str, set[str]] = {}
    for one in (*listed_in("needs.txt"), *listed_in("hummingbot.txt")):
        found.setdefault(one.venue, set()).add(one.path)
    for line in LINES:
        found.setdefault(line.venue, set()).add(line.path)
    for section in (HERE / "paths.txt").read_text("utf-8").split("\n[")[1:]:
        name, _, paths = section.partition("]\n")
        found.setdefault(name, set()).update(paths.split())
    return found


DOCUMENTED = documented()


def without_names(path: str) -> str:
    return _HOLE.sub("x", path.rstrip("/"))


@pytest.mark.parametrize("name", [file.stem for file in FILES if file.stem != "service"])
def test_each_path_with_a_number_is_one_that_ccxt_or_a_document_has(
    name: str, every_call: dict[str, list[Call]]
) -> None:
    names = [one.stem for one in FILES if family(one.stem) == family(name)]
    of_ccxt = {call.path for one in names for call in every_call.get(one, ())}
    known = {without_names(path) for path in of_ccxt.union(*(DOCUMENTED.get(one, ()) for one in names))}

    def is_known(path: str) -> bool:
        whole = path.removesuffix("/**").rstrip("/")
        pattern = "[^/]+".join(map(re.escape, _HOLE.split(whole)))
        rest = "(/.*)?" if path.endswith("/**") else ""
        return any(re.fullmatch(pattern + rest, one) for one in known)

    prefix = named(name).prefix
    paths = [prefix + row.template for row in own_routes(named(name))]
    assert [path for path in paths if re.search(r"\d", path) and not is_known(path)] == []


@pytest.mark.parametrize("name", [file.stem for file in FILES])
def test_no_route_is_named_twice(name: str) -> None:
    """But that of the time, which is open by itself. A version that slipped may name what another row has.

    A row for every method of a path, and one that says more of one of these, are no two of the same.
    """
    venue = named(name)
    text = next(file for file in FILES if file.stem == name).read_text("utf-8")
    matches = (row["match"] for row in tomllib.loads(text).get("routes", ()))
    rows = Counter(one for match in matches for one in ([match] if isinstance(match, str) else match))
    assert [row for row, count in rows.items() if count > 1 and row != f"GET {venue.clock_path}"] == []
