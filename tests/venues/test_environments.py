"""Environments, which are the test networks of exchanges: their grammar, and the files against ccxt."""

import json

import pytest

from sealgate.config.venues import venue_names
from sealgate.venues.environments import Environment
from sealgate.venues.venue import VenueError, read_venue
from venues.calls import GONE, VENUES
from venues.through import named, printed_by

LEAST = (
    'name = "mine"\ntitle = "Mine"\n[signing]\nmessage = "{timestamp}"\nheaders = { SIGN = "{signature}" }\n'
)


def test_a_file_says_what_is_other_in_an_environment() -> None:
    text = """[environments.test]
base_url = "https://testnet.example.com"
[environments.demo]
headers = { x-demo = "1" }
streams = { "ws.example.com" = "demo.example.com:8443", "ws.example.com:9443" = "demo.example.com" }
"""
    assert read_venue("mine.toml", LEAST + text).environments == {
        "test": Environment("https://testnet.example.com"),
        "demo": Environment(
            headers={"x-demo": "1"},
            streams={
                "ws.example.com": "demo.example.com:8443",
                "ws.example.com:9443": "demo.example.com",
            },
        ),
    }
    assert read_venue("mine.toml", LEAST).environments == {}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[environments.Test]", "6: 'Test' is not a name such as test"),
        ("[environments.test]", "6: test changes nothing: it may have base_url, headers, streams"),
        ('[environments]\ntest = "x"', "7: test must be a table"),
        ('[environments.test]\nbase = ""', "7: unknown key base; did you mean base_url?"),
        (
            '[environments.test]\nbase_url = "http://x.y"',
            "7: base_url = 'http://x.y' is not an https address without a slash at its end",
        ),
        ('[environments.test]\nheaders = { "A B" = "1" }', "7: 'A B' is not a header name"),
        ('[environments.test]\nheaders = { A = "a\\r\\nb" }', "7: A = 'a\\r\\nb' is not a value of a header"),
        ('[environments.test]\nheaders = { A = "" }', "7: A = '' is not a value of a header"),
        ('[environments.test]\nheaders = { sign = "1" }', "7: sign is a header of [signing], which sets it"),
        ('[environments.test.streams]\n"wss://a.b" = "c.d"', "7: 'wss://a.b' is not a host such as"),
        ('[environments.test.streams]\n"a.b" = "c.d/x"', "7: a.b = 'c.d/x' is not a host such as"),
    ],
)
def test_a_broken_environment_is_refused_with_its_place(text: str, error: str) -> None:
    with pytest.raises(VenueError) as raised:
        read_venue("mine.toml", LEAST + text)
    assert str(raised.value).startswith(f"mine.toml:{error}")


# Remembered; and what ccxt refuses to trade on, though it knows the address.
_NOT_IN_CCXT = {("bitmart-futures", "demo"), ("binanceusdm", "test"), ("binancecoinm", "test")}
# What ccxt has by mistake, or for spot alone where the file is about futures, too.
_NOT_IN_FILES = {"binanceus", "poloniex"}

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
