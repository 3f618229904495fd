"""Which pools a request passes at each venue, and what its documented refusals close, and for how long."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from sealgate.venues.routes import Auth
from sealgate.venues.venue import Venue
from venues.through import FILES, HERE, Call, named, table_of, venue_of


class Line(NamedTuple):
    """A line of pools.txt; `status` is 0 where it is about no reply."""

    venue: str
    method: str
    path: str
    status: int
    said: str
    pools: str
    wait: str


def listed() -> Iterator[Line]:
    venue = ""
    for line in (HERE / "pools.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            venue = line.strip("[]")
        elif line and not line.startswith("#"):
            asked, pools = line.split(" -> ")
            method, path, status, said = (*asked.split(" ", 3), "0", "")[:4]
            yield Line(venue, method, path, int(status), said, *(*pools.split("; "), "")[:2])


LINES = list(listed())


def pools_of(name: str, method: str, path: str) -> list[str]:
    """Return the names of the pools that a request passes, as docs/venues.md has it."""
    venue = named(name)
    route = table_of(name).find(method, path.removeprefix(venue.prefix))
    is_open = route.auth is Auth.OPEN
    return [
        pool.name
        for pool in venue.limits.pools
        if pool.takes(method, route.template)
        and (not pool.lanes or route.lane in pool.lanes)
        and (is_open or not pool.is_open)
        and not (is_open and pool.is_signed)
    ]


@pytest.mark.parametrize("line", [line for line in LINES if not line.status], ids=str)
def test_a_request_passes_the_pools_that_are_documented(line: Line) -> None:
    assert " ".join(pools_of(line.venue, line.method, line.path)) == line.pools


@pytest.mark.parametrize("line", [line for line in LINES if line.status], ids=str)
def test_a_refusal_closes_what_is_documented_for_as_long(line: Line) -> None:
    verdict = named(line.venue).replies.judge(line.status, line.said.encode())
    rule, passed = verdict.wait, pools_of(line.venue, line.method, line.path)
    assert verdict.is_limited
    meant = [pool for pool in passed if pool in rule.pools] or passed  # as docs/venues.md has it
    assert (rule.scope or " ".join(meant)) == line.pools
    stated = f"{rule.header} as {rule.moment}" if rule.header else verdict.found.get("until")
    assert (stated or f"{rule.documented_s or 0:g}") == (line.wait or "0")


def with_pools() -> list[Venue]:
    return [venue for venue in map(venue_of, FILES) if len(venue.limits.pools) > 1]


@pytest.mark.parametrize("name", [venue.name for venue in with_pools()])
def test_each_call_that_ccxt_knows_passes_a_pool(name: str, every_call: dict[str, list[Call]]) -> None:
    calls = every_call.get(name, [])
    assert [call for call in calls if not pools_of(name, call.method, call.path)] == []


def test_each_venue_with_pools_is_listed() -> None:
    names = {venue.name for venue in with_pools() if not venue.like}
    assert names <= {line.venue for line in LINES}
