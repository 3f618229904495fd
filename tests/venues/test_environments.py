"""Environments, which are the test networks of exchanges: the files against ccxt."""

import json

import pytest

from sealgate.config.venues import venue_names
from sealgate.venues.environments import Environment
from sealgate.venues.streams import plain_host
from venues.calls import GONE, VENUES
from venues.through import named, printed_by

# Remembered; from the exchange's documents; and what ccxt refuses to trade on, though it knows the address.
_NOT_IN_CCXT = {
    ("bitmart-futures", "demo"),
    ("indodax", "demo"),
    *((name, "test") for name in ("binanceusdm", "binancecoinm")),
}
# What ccxt has by mistake, or for spot alone where the file is about futures, too.
_NOT_IN_FILES = {"binanceus", "blockchaincom", "poloniex"}

Environments = dict[str, Environment]


@pytest.fixture(scope="module")
def of_ccxt() -> dict[str, Environments]:
    """Return where ccxt's sandbox and its demo are, by venue, and what headers they add."""
    found: dict[str, Environments] = {}
    names = [f"{name}={named(name).base_url}" for name in VENUES if name not in GONE]
    for row in map(json.loads, printed_by("venues.oracle", "environments", *names).splitlines()):
        found.setdefault(row["venue"], {})[row["name"]] = Environment(row["base_url"], row["headers"])
    return found


def of_file(name: str) -> Environments:
    """Return the environments of a file with what ccxt can say of them."""
    venue = named(name)
    return {
        name: Environment(one.base_url or venue.base_url, one.headers)
        for name, one in venue.environments.items()
    }


def test_each_environment_is_where_ccxt_has_it(of_ccxt: dict[str, Environments]) -> None:
    held = 0
    for venue in venue_names():
        known = of_ccxt.get(venue, {})
        for name, own in of_file(venue).items():
            if (venue, name) not in _NOT_IN_CCXT:
                # Where there is one alone, ccxt calls it a sandbox, and the exchange may call it a demo.
                assert own == known.get(name, known.get("test")), (venue, name)
                held += 1
    assert held > 30


def test_each_environment_that_ccxt_has_is_in_a_file(of_ccxt: dict[str, Environments]) -> None:
    assert {
        venue
        for venue, environments in of_ccxt.items()
        for one in environments.values()
        if one not in of_file(venue).values()
    } == _NOT_IN_FILES


def test_the_hosts_of_streams_that_an_environment_has_are_other_ones() -> None:
    for venue in map(named, venue_names()):
        for environment in venue.environments.values():
            assert all(host != other for host, other in environment.streams.items())


def test_they_stand_in_for_hosts_of_streams_that_the_file_has() -> None:
    for venue in map(named, venue_names()):
        listed = {host for stream in venue.streams for host in stream.hosts}
        for environment in venue.environments.values():
            assert set(map(plain_host, environment.streams)) <= listed, venue.name
