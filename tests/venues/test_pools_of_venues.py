"""Which pools a request passes at each venue, and what its documented refusals close, and for how long."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from sealgate.limits.membership import Membership, Subjects
from sealgate.limits.pool import name_in
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


def places_of(name: str, method: str, path: str, query: str = "", body: bytes = b"") -> tuple[str, ...]:
    """Return the places of the pools that a request passes."""
    venue = named(name)
    route = table_of(name).find(method, path.removeprefix(venue.prefix))
    is_open = route.auth is Auth.OPEN
    subjects = Subjects("address", "address", "address") if is_open else Subjects("key", "account", "address")
    return Membership(venue.limits.pools, subjects, is_open=is_open).pools_of(method, route, query, body)


def pools_of(name: str, method: str, path: str) -> list[str]:
    return sorted(map(name_in, places_of(name, method, path)))


@pytest.mark.parametrize("line", [line for line in LINES if not line.status], ids=str)
def test_a_request_passes_the_pools_that_are_documented(line: Line) -> None:
    assert pools_of(line.venue, line.method, line.path) == sorted(line.pools.split())


@pytest.mark.parametrize("line", [line for line in LINES if line.status], ids=str)
def test_a_refusal_closes_what_is_documented_for_as_long(line: Line) -> None:
    verdict = named(line.venue).replies.judge(line.status, line.said.encode())
    rule, passed = verdict.wait, pools_of(line.venue, line.method, line.path)
    assert verdict.is_limited
    meant = [pool for pool in passed if pool in rule.pools] or passed  # as docs/venue-files.md has it
    assert ([rule.scope] if rule.scope else meant) == sorted(line.pools.split())
    stated = f"{rule.header} as {rule.moment}" if rule.header else verdict.found.get("until")
    assert (stated or f"{rule.documented_s or 0:g}") == (line.wait or "0")


def with_pools() -> list[Venue]:
    return [venue for venue in map(venue_of, FILES) if len(venue.limits.pools) > 1]


@pytest.mark.parametrize("name", [venue.name for venue in with_pools()])
def test_each_call_that_ccxt_knows_passes_a_pool(name: str, every_call: dict[str, list[Call]]) -> None:
    calls = every_call.get(name, [])
    names = {pool.name for pool in named(name).limits.pools}
    assert [call for call in calls if not set(pools_of(name, call.method, call.path)) <= names] == []


def test_an_order_is_counted_by_its_pair_and_a_path_by_itself() -> None:
    def pair(body: bytes) -> tuple[str, ...]:
        return places_of("kraken", "POST", "/0/private/AddOrder", body=body)

    xbt, eth = pair(b"nonce=1&pair=XBTUSD&type=buy"), pair(b"pair=ETHUSD")
    assert [place for place in xbt if place in eth] == [place for place in xbt if "concurrency" in place]
    assert set(xbt) != set(eth)
    orders = [
        places_of("gate", "POST", "/api/v4/spot/orders", body=b'{"currency_pair":"%s"}' % one)
        for one in (b"A_B", b"A_B", b"C_D")
    ]
    assert orders[0] == orders[1] != orders[2]
    reads = [places_of("gate", "GET", f"/api/v4/spot/{one}") for one in ("accounts", "open_orders")]
    assert reads[0] != reads[1]


def test_each_venue_with_pools_is_listed() -> None:
    names = {venue.name for venue in with_pools() if not venue.like}
    assert names <= {line.venue for line in LINES}
