"""What a wrong digit in a venue's file turns red: each digit, changed by itself.

`--letters` changes each letter of the tables of signing, too. A digit in a comment or in a text for people
is no fact and stays. The changed text is read as a venue; then the tests of tests/venues that read what has
changed of it are called, the quick ones first, until one fails: so what is noticed here is noticed there.
Tests that are coroutines, and those of written pages, are left out. It prints what nothing notices, and
ends with 1 if there is anything.
"""

import argparse
import inspect
import re
import string
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from operator import attrgetter
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

import sealgate.config.venues
from sealgate.venues.document import VenueError
from sealgate.venues.routes import RouteTable
from sealgate.venues.venue import Venue, read_venue
from venues import through

# Those of sockets and pages, and those that read no venue's file.
_IGNORED = (
    *("pages", "through_gateway", "recipes", "hosts", "requests_at_venues", "one_key", "errors_of_service"),
    *("json_bodies", "lists_in_bodies", "limit_rules", "order_terms", "replies", "routes", "server_time"),
    *(
        "document",
        "environment_grammar",
        "letters",
        "private_keys",
        "service_signing",
        "templates",
        "time_zones",
    ),
)
_FOR_PEOPLE = re.compile(r"(docs|checked|note|title|advice)\s*=")
_COMMENT = re.compile(r"""("[^"]*"|'[^']*'|[^#"'])*""")  # all of a line that stands before it

Reads = set[tuple[str, str]]  # names of venues, and the fields that are read of them


@dataclass
class Files:
    """The venues' files, of which one may be changed, and who reads what of them."""

    texts: dict[str, str] = field(default_factory=dict)
    venues: dict[str, Venue] = field(default_factory=dict)
    tables: dict[str, RouteTable] = field(default_factory=dict)
    reads: Reads = field(default_factory=set)

    def read(self, name: str, changed: Mapping[str, str] = MappingProxyType({})) -> Venue:
        """Read a venue, with other texts than the files' where there are any."""
        texts = {**self.texts, **changed}
        venue = read_venue(f"{name}.toml", texts[name], lambda like, _: (f"{like}.toml", texts[like]))
        return Watched(**{one.name: getattr(venue, one.name) for one in fields(venue)})

    def named(self, name: str) -> Venue:
        """Stand in for `built_in_venue`."""
        self.reads.add((name, "name"))
        return self.venues[name]

    def table_of(self, name: str) -> RouteTable:
        """Stand in for the tests' `table_of`."""
        self.reads.add((name, "routes"))
        if name not in self.tables:
            self.tables[name] = RouteTable(self.venues[name].routes)
        return self.tables[name]


FILES = Files()


class Watched(Venue):
    """A venue that notes which of its fields are read."""

    def __getattribute__(self, name: str) -> Any:
        if name in _FIELDS:
            FILES.reads.add((object.__getattribute__(self, "name"), name))
        elif name in _KEPT:  # made anew each time, so that what it is made of is noted
            vars(self).pop(name, None)
        return super().__getattribute__(name)


_FIELDS = frozenset(one.name for one in fields(Venue))
_KEPT = frozenset(name for name, one in vars(Venue).items() if isinstance(one, cached_property))


@dataclass
class Test:
    """A test that passes, and what it reads of the venues."""

    name: str
    call: Callable[[], Any]
    seconds: float
    reads: Reads

    def fails(self) -> bool:
        """Call it; whatever it raises is a failure."""
        try:
            self.call()
        except (Exception, pytest.fail.Exception):  # noqa: BLE001
            return True
        return False


class Watching:
    """Notes each test that pytest calls."""

    def __init__(self) -> None:
        self.tests: list[Test] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Iterator[None]:
        """Note how long it takes, and what it reads."""
        FILES.reads.clear()
        began = time.perf_counter()
        yield
        seconds, function, given = time.perf_counter() - began, pyfuncitem.obj, pyfuncitem.funcargs
        names = pyfuncitem._fixtureinfo.argnames
        if FILES.reads and not inspect.iscoroutinefunction(function):
            call = lambda: function(**{name: given[name] for name in names})  # noqa: E731
            self.tests.append(Test(pyfuncitem.name, call, seconds, set(FILES.reads)))


class Change(NamedTuple):
    """One character of a file, and another in its place."""

    name: str
    at: int
    to: str

    def text(self) -> str:
        """Return the file as it is then."""
        whole = FILES.texts[self.name]
        return whole[: self.at] + self.to + whole[self.at + 1 :]

    def __str__(self) -> str:
        whole = FILES.texts[self.name]
        line = whole.count("\n", 0, self.at)
        first = whole.rfind("\n", 0, self.at) + 1
        column = self.at - first
        shown = whole[first:].partition("\n")[0]
        return (
            f"{self.name}.toml:{line + 1}: {shown[:column]}[{shown[column]}>{self.to}]{shown[column + 1 :]}"
        )


def changes_of(name: str, seed: int, *, letters: bool) -> Iterator[Change]:
    """Yield a change of each digit that is a fact's, and with `letters` of each letter of [signing]."""
    chance, at, table = Random(f"{seed} {name}"), 0, ""
    for line in FILES.texts[name].splitlines(keepends=True):
        if line.startswith("["):
            table = line.strip("[] \n").partition("]")[0]
        match = _COMMENT.match(line)
        facts = 0 if _FOR_PEOPLE.match(line) or match is None else match.end()
        for place in range(facts):
            kinds = [string.digits]
            if letters and table.startswith("signing") and not line.startswith("["):
                kinds += [string.ascii_lowercase, string.ascii_uppercase]
            for kind in kinds:
                if line[place] in kind:
                    yield Change(name, at + place, chance.choice(kind.replace(line[place], "")))
        at += len(line)


def noticed(change: Change, tests: Mapping[tuple[str, str], list[Test]]) -> str:
    """Return what notices a change: an error, a test, "no difference"; "" for nothing."""
    name = change.name
    users = [name, *(one for one, venue in FILES.venues.items() if venue.like == name)]
    before = {one: FILES.venues[one] for one in users}
    try:
        after = {one: FILES.read(one, {name: change.text()}) for one in users}
    except VenueError:
        return "an error"
    differs = {
        (one, field)
        for one in users
        for field in _FIELDS
        if getattr(before[one], field) != getattr(after[one], field)
    }
    if not differs:
        return "no difference"
    FILES.venues.update(after)
    for one in users:
        FILES.tables.pop(one, None)
    asked = {id(test): test for at in differs for test in tests.get(at, ())}
    found = next((test for test in sorted(asked.values(), key=attrgetter("seconds")) if test.fails()), None)
    if found is not None:
        found.seconds /= 2  # what notices much is called first
    FILES.venues.update(before)
    for one in users:
        FILES.tables.pop(one, None)
    return "" if found is None else "a test"


def tests_of_venues() -> dict[tuple[str, str], list[Test]]:
    """Run the tests; return those that read a venue, by what they read. Exits where one fails."""
    watching = Watching()
    ignored = [f"--ignore={through.HERE}/test_{name}.py" for name in _IGNORED]
    arguments = [
        "-q",
        "-x",
        "--assert=plain",
        "-p",
        "no:cacheprovider",
        "--no-header",
        *ignored,
        str(through.HERE),
    ]
    if status := pytest.main(arguments, plugins=[watching]):
        sys.exit(int(status))
    tests: dict[tuple[str, str], list[Test]] = defaultdict(list)
    for test in watching.tests:
        for at in test.reads:
            tests[at].append(test)
    return tests


def main() -> None:
    """Run."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--venues", nargs="+", default=[file.stem for file in through.FILES])
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--letters", action="store_true")
    given = options.parse_args()

    # 1. Whoever reads a venue, reads it here.
    FILES.texts.update({file.stem: file.read_text("utf-8") for file in through.FILES})
    FILES.venues.update({name: FILES.read(name) for name in FILES.texts})
    sealgate.config.venues.built_in_venue = through.built_in_venue = FILES.named  # type: ignore[assignment, attr-defined]
    through.table_of = FILES.table_of  # type: ignore[assignment]
    through.printed_by = cache(through.printed_by)

    # 2. The tests pass as the files are. 3. Each change by itself.
    tests = tests_of_venues()
    found: Counter[str] = Counter()
    for name in given.venues:
        for change in changes_of(name, given.seed, letters=given.letters):
            by = noticed(change, tests)
            found[by or "nothing"] += 1
            if not by:
                print(change, flush=True)
    print(f"{found.total()} changes, seed {given.seed}: " + ", ".join(f"{n} {by}" for by, n in found.items()))
    sys.exit(1 if found["nothing"] else 0)


if __name__ == "__main__":
    main()
